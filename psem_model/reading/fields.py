"""The fields of a model's configuration, checked as they are read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psem_model.reading.words import LARGEST, MOST_LAYERS
from psem_model.text.errors import BadInput, choose, nearest, quoted, shortened
from psem_model.text.files import beside, named

KNOWN = beside(__file__, "fields.toml")
# neither weights nor work depend on them
HARMLESS = frozenset[str]().union(*KNOWN["harmless"].values())
# what else would change a shape, and what it is where it does not
PLAIN: Mapping[str, Any] = KNOWN["plain"] | dict.fromkeys(KNOWN["none"]["names"])
ATTENTION: tuple[str, ...] = tuple(KNOWN["attention"]["names"])
TYPES: Mapping[str, str] = {name: kind for kind, names in KNOWN["types"].items() for name in names}
NEVER_NULL = frozenset(KNOWN["never_null"]["names"])
BYTES_OF = {"float32": 4, "bfloat16": 2, "float16": 2}  # of stored weights; --bytes says of training
MOST_LISTED = 10_000  # layers that are told apart
FUNCTIONS = {
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    **dict.fromkeys(("gelu", "gelu_pytorch_tanh"), "gelu"),
    **{name: name for name in ("gelu_new", "gelu_fast", "gelu_python")},
}
SAME = {  # two names of one field
    "n_embd": "hidden_size",
    "n_embed": "hidden_size",
    "n_head": "num_attention_heads",
    "n_layer": "num_hidden_layers",
    "n_positions": "max_position_embeddings",
    "num_local_experts": "num_experts",
}


@dataclass(frozen=True)
class Fields:
    """The fields of a configuration; each is checked when it is read.

    `read`: those that were asked for.
    """

    path: str
    given: Mapping[str, Any]
    read: set[str] = field(default_factory=set)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a field, or a default where it is absent."""
        self.read.add(name)
        return self.given.get(name, default)

    def wrong(self, name: str, expected: str) -> BadInput:
        """What to raise for a field that is not as it should be."""
        if name not in self.given:
            return self.missing(name, expected)
        given = shortened(json.dumps(self.given[name]))
        name = shortened(name if name.isprintable() else json.dumps(name))
        return BadInput(f"{named(self.path)}, {name}: given {given}; expected {expected}")

    def missing(self, name: str, expected: str) -> BadInput:
        """What to raise for a field that should be there."""
        near = nearest(name, self.given)
        close = f"; nearest: {quoted(near)}" if near else ""
        return BadInput(f"{named(self.path)}: {name} is missing; expected {expected}{close}")

    def size(self, name: str) -> int:
        """A whole number of at least 1."""
        expected = f"a whole number, at least 1, below 1e{LARGEST}"
        other = SAME.get(name, name)
        if name not in self.given:
            if other not in self.given:
                raise self.missing(name, expected)
            name = other
        value = self.get(name)
        if type(value) is not int or not 1 <= value < 10**LARGEST:
            raise self.wrong(name, expected)
        if self.get(other, value) != value:
            raise self.wrong(other, f"{value}, as {name} is")
        return value

    def layers(self, name: str) -> int:
        """A number of layers."""
        layers = self.size(name)
        if layers > MOST_LAYERS:
            raise self.wrong(
                name if name in self.given else SAME[name], f"at most {MOST_LAYERS:,} layers"
            )
        return layers

    def listed(self, name: str) -> int:
        """A number of layers of which each may differ."""
        layers = self.layers(name)
        if layers > MOST_LISTED:
            raise self.wrong(name, f"at most {MOST_LISTED:,} layers, as they may differ")
        return layers

    def numbers(self, name: str, most: int) -> list[int] | None:
        """A list of whole numbers below a bound, or null."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(n) is int and 0 <= n < most for n in value):
            raise self.wrong(name, f"a list of whole numbers, 0 or more and below {most:,}")
        return value

    def size_or(self, name: str, otherwise: Callable[[], int]) -> int:
        """A size that may be null or absent."""
        return otherwise() if self.get(name) is None else self.size(name)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def drops(self, name: str, default: float) -> bool:
        """Whether a probability of dropout is above 0."""
        value = self.get(name, default)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise self.wrong(name, "a probability, below 1")
        return bool(value > 0)

    def choice(self, name: str, value: object, names: Iterable[str]) -> str:
        """One of some names: the value of a field, or one that the field lists."""
        if not isinstance(value, str):
            raise self.wrong(name, f"one of {', '.join(names)}")
        return choose(f"{named(self.path)}, {name}", value, names)

    def function(self, names: Iterable[str], default: str) -> str:
        """The function of the MLP: of the first of some fields that is given."""
        given = [(name, value) for name in names if (value := self.get(name)) is not None]
        first, *_ = (FUNCTIONS[self.choice(*each, FUNCTIONS)] for each in given or [("", default)])
        return first

    def bound(self, name: str, default: float | None) -> float | None:
        """A number above 0, or null."""
        value = self.get(name, default)
        if value is not None and (type(value) not in (int, float) or not 0 < value < math.inf):
            raise self.wrong(name, "a number above 0, or null")
        return None if value is None else float(value)

    def count(self, name: str, default: int | None) -> int:
        """A whole number, 0 or more."""
        value = self.get(name, default)
        if type(value) is not int or not 0 <= value < 10**LARGEST:
            raise self.wrong(name, "a whole number, 0 or more")
        return value

    def divided(self, name: str, by: str) -> int:
        """One size over another that divides it."""
        whole, divisor = self.size(name), self.size(by)
        if whole % divisor:
            raise self.wrong(by if by in self.given else SAME[by], f"a divisor of {name}, {whole}")
        return whole // divisor

    def require_type(self, name: str) -> None:
        """Refuse a field of another type than it is known to have, though nothing depends on it."""
        kind = TYPES.get(name)
        if kind is not None and not KINDS[kind][0](self.given[name]):
            raise self.wrong(name, f"{KINDS[kind][1]}, or null")

    def require_value(self, name: str) -> None:
        """Refuse null, where an absent field would do."""
        if name in self.given and self.given[name] is None:
            raise self.wrong(name, "a value, or no such field: transformers takes no null there")

    def require_object(self, name: str, why: str) -> None:
        """Refuse what is no object, null and nothing among it."""
        if not isinstance(self.get(name), dict):
            raise self.wrong(name, f"an object: {why}")

    def share(self, name: str, default: float) -> float:
        """A share of something: above 0, at most 1; null or absent, a default."""
        value = self.get(name)
        if value is None:
            return default
        if type(value) not in (int, float) or not 0 < value <= 1:
            raise self.wrong(name, "a number above 0, at most 1")
        return float(value)

    def inside(self, name: str) -> Fields:
        """The fields of a field that is an object, or null."""
        value = self.get(name)
        if not isinstance(value, dict | None):
            raise self.wrong(name, "an object, or null")
        return Fields(f"{self.path}, {name}", value or {})

    def stored(self, method: str) -> None:
        """Refuse stored weights that are quantised otherwise; --bytes says what training takes."""
        given = self.get("quantization_config")
        if given is not None and (not isinstance(given, dict) or given.get("quant_method") != method):
            raise self.wrong("quantization_config", f'none, or one whose quant_method is "{method}"')

    def only(self, name: str, *values: object) -> None:
        """Refuse any other value of a field than these, null or none."""
        value = self.get(name)
        if not any(value == v and _as_exact(value, v) for v in (None, *values)):
            expected = " or ".join(
                dict.fromkeys("none" if v in (None, {}) else shortened(json.dumps(v)) for v in values)
            )
            raise self.wrong(name, f"{expected}: no other shape is known")


def _as_exact(value: object, known: object) -> bool:
    """Whether a value is no flag in place of a number, and no fraction in place of a whole number."""
    is_flag, is_fraction = (isinstance(value, kind) for kind in (bool, float))
    return is_flag is isinstance(known, bool) and not (is_fraction and isinstance(known, int))


def _is_number(value: Any) -> bool:
    """Whether it is a number, 0 or more."""
    return type(value) in (int, float) and bool(0 <= value < math.inf)


def _is_above(value: Any) -> bool:
    """Whether it is a number above 0."""
    return _is_number(value) and value > 0


def _is_token(value: object) -> bool:
    """Whether it is the number of a token, or of several."""
    return all(type(each) is int for each in (value if isinstance(value, list) else [value]))


# types of values on which nothing depends, and what they are called
KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "number": (_is_number, "a number, 0 or more"),
    "above": (_is_above, "a number above 0"),
    "count": (lambda value: type(value) is int and value > 0, "a whole number above 0"),
    "numbers": (
        lambda value: isinstance(value, list) and all(map(_is_number, value)),
        "a list of numbers, 0 or more",
    ),
    "whole": (lambda value: type(value) is int and value >= 0, "a whole number, 0 or more"),
    "flag": (lambda value: isinstance(value, bool), "true or false"),
    "words": (lambda value: isinstance(value, str), "words in quotes"),
    "object": (lambda value: isinstance(value, dict), "an object"),
    "token": (_is_token, "the number of a token, or a list of them"),
}
