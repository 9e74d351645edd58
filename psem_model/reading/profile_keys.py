"""What a difference of a profile changes: its keys, and what they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from psem_model.reading.shapes import small
from psem_model.reading.toml_lines import File, shown
from psem_model.reading.toml_lines import Path as Keys
from psem_model.text.errors import nearest
from spec.costs.memory import MODEL_STATES
from spec.models.layers import ROOT, HeldUnits, Layers
from spec.models.parts import WORD_WEIGHT, parts
from spec.models.profiles import CROSS_ENTROPY, NORM_FUNCTIONS, Padding, Samples, Units
from spec.models.states import POLICIES, State
from spec.models.transformer import CAPPED, DROPPED, EMBEDDING, HEAD, Latent
from spec.models.values import Role
from spec.numbers.arithmetic import Number

FEW = 20  # names that fit in a line
OF_WORDS = ("logits", "logits_capped", "largest", "total", "lost", "loss")  # of the head
WORD_WEIGHTS = (WORD_WEIGHT, "head_weight")
ROW_FUNCTIONS = (*sorted(NORM_FUNCTIONS), "softmax")


@cache
def handed_on() -> frozenset[str]:
    """The names of values that one part gives and another takes."""
    found: set[str] = set()
    for block in ("gpt", "llama"):
        *others, last = parts(small(block, False))
        found |= {part.gives.name for part in others}
        found |= {part.takes.name for part in (*others, last) if part.takes}
    return frozenset(found)


@cache
def value_names() -> tuple[str, ...]:
    """The names of values that parts compute, of all kinds of models."""
    found: dict[str, None] = {}
    for block, experts in product(("gpt", "llama"), (False, True)):
        usual = replace(small(block, experts), capped=CAPPED, dropout=DROPPED)
        other = replace(usual, latent=Latent(1, 1, 1, 1), shared=1, sinks=True, clamped=True)
        within = replace(other, weighed_within=True, biases=frozenset())
        for part in (*parts(usual), *parts(other), *parts(within)):
            values = (v for op in part.operations for v in (*op.reads, op.makes))
            found |= {v.name: None for v in values if v.role is not Role.WEIGHT}
    beside = ("argument", "fp32", "repeated", "mean", "root")
    copies = [f"{name}_{of}" for name in found for of in beside]
    return (*found, *copies)


# the file, the key's place, the field as it was, and what is given: the field as it is then
Change = Callable[[File, Keys, Any, Any], Any]
Known = Callable[[], Iterable[str]]  # the names that a list may have


def _names(file: File, path: Keys, given: Any, known: Known) -> frozenset[str]:
    """A list of names, each once."""
    names = file.typed(path, given, list)
    choices = [*known()]
    for name in names:
        _name(file, path, name, choices)
    return frozenset(file.once(path, names, "name"))


def _name(file: File, path: Keys, given: Any, choices: list[str]) -> str:
    """One of some names; of very many only the nearest is told."""
    if len(choices) > FEW and file.typed(path, given, str) not in choices:
        near = nearest(given, choices) or choices[0]
        raise file.wrong(path, shown(given), "a name of `psem derive --part`", near)
    return file.choose(path, given, choices)


def _adding(known: Known) -> Change:
    return lambda file, path, before, given: before | _names(file, path, given, known)


def _dropping(known: Known) -> Change:
    return lambda file, path, before, given: before - _names(file, path, given, known)


def _listing(known: Known) -> Change:
    return lambda file, path, before, given: _names(file, path, given, known)


def _one_of(kinds: Iterable[Enum]) -> Change:
    by_name = {kind.value: kind for kind in kinds}
    return lambda file, path, before, given: by_name[file.choose(path, given, by_name)]


def _number(least: int, most: int, what: str) -> Change:
    def change(file: File, path: Keys, before: Any, given: Any) -> int:
        if type(given) is not int or not least <= given <= most:
            raise file.wrong(path, shown(given), f"{what}, from {least} to {most}")
        return given

    return change


def _truth(file: File, path: Keys, before: Any, given: Any) -> bool:
    return file.typed(path, given, bool)


def _states(known: Iterable[State]) -> Change:
    """A list of states, of those that are known."""
    by_name = {state.value: state for state in known}
    return lambda file, path, before, given: frozenset(
        by_name[name] for name in _names(file, path, given, lambda: by_name)
    )


def _policy(file: File, path: Keys, before: Any, given: Any) -> str:
    return file.choose(path, given, POLICIES)


def _width(*widths: Number) -> Change:
    """Bytes of an element, of those that there are."""
    *others, last = (f"{float(width):g}" for width in widths)

    def change(file: File, path: Keys, before: Any, given: Any) -> Number:
        if type(given) not in (int, float) or given not in widths:
            raise file.wrong(path, shown(given), f"bytes of an element: {', '.join(others)} or {last}")
        return Fraction(given) if type(given) is float else given

    return change


def _inside(file: File, path: Keys, before: Any, given: Any) -> Any:
    found = _names(file, path, given, value_names)
    _require_within_a_part(file, path, found)
    return before | found


def _widths(file: File, path: Keys, before: Any, given: Any) -> Any:
    """Names of values, and bytes of an element."""
    table = file.table(path, given, None)
    for name, width in table.items():
        _name(file, path, name, [*value_names()])
        WIDTH(file, (*path, name), None, width)
    _require_within_a_part(file, path, table)
    return tuple({**dict(before), **table}.items())


def _require_within_a_part(file: File, path: Keys, names: Iterable[str]) -> None:
    """Values that go from part to part are in memory, of the type that both parts know."""
    for name in names:
        if name in handed_on():
            raise file.wrong(path, shown(name), "a value that does not go from one part to the next")


def _buckets(file: File, path: Keys, before: Any, given: Any) -> tuple[int, int]:
    sizes = file.typed(path, given, list)
    if len(sizes) != 2 or not all(type(size) is int and size > 0 for size in sizes):
        raise file.wrong(path, shown(given), "bytes of the first bucket, and of each other one")
    return sizes[0], sizes[1]


def units_outside(units: Units) -> tuple[str, ...]:
    """The names of units that are no layers."""
    return (ROOT,) if units is Units.ROOT else (EMBEDDING, HEAD)


def _held_units(file: File, path: Keys, before: HeldUnits, given: Any) -> HeldUnits:
    """Layers by their numbers, from the end if negative, and other units by their names."""
    every: tuple[Any, ...] = file.once(path, file.typed(path, given, list), "unit")
    names = (EMBEDDING, HEAD, ROOT)
    for unit in every:
        if type(unit) is not int and unit not in names:
            expected = f"numbers of layers, or {', '.join(names[:-1])} or {names[-1]}"
            near = nearest(unit, names) if isinstance(unit, str) else ""
            raise file.wrong(path, shown(unit), expected, near)
    numbers = frozenset(unit for unit in every if type(unit) is int)
    return HeldUnits(frozenset(every) - numbers, Layers(numbers, others=False))


WIDTH = _width(1, 2, 4, 8)
TRUTHS = (
    *("repeats", "maximum", "step_counts", "each", "holds", "copies", "apart"),
    *("sums_first", "like_gradients", "placeholders", "at_once", "weighs_within", "fills"),
    *("waits_whole", "waits_staged", "stays", "sums_whole", "uneven", "copies_heads", "starts_whole"),
    *("composes", "scales_in_full", "gathers_again", "routes", "views", "adds_back"),
    *("rings_in_full", "adds_alone", "masks", "heads_alike", "keeps_given"),
)
CHANGED_BY = {"outside": "inside", "keeps": "again"}  # the field that a key changes, if it is another
CHANGES: dict[str, Change] = {
    "inside": _inside,
    "outside": _dropping(value_names),
    "again": _adding(lambda: (*ROW_FUNCTIONS, *value_names())),
    "stores": _adding(value_names),
    "keeps": _dropping(lambda: NORM_FUNCTIONS),
    "widths": _widths,
    "in_full": _adding(lambda: (*ROW_FUNCTIONS, CROSS_ENTROPY)),
    "rows": _adding(lambda: NORM_FUNCTIONS),
    "rows_as_computed": _adding(lambda: NORM_FUNCTIONS),
    "whole": _listing(lambda: (*OF_WORDS, *WORD_WEIGHTS)),
    "merged": _adding(lambda: (*OF_WORDS, "of_keys")),
    "overwritten": _adding(value_names),
    "held": _adding(value_names),
    "held_units": _held_units,
    "as_computed": _adding(value_names),
    "whole_gradients": _listing(lambda: WORD_WEIGHTS),
    "samples": _one_of(Samples),
    "buckets": _buckets,
    "uses": _number(1, 8, "how often the optimizer uses a gradient"),
    "words_a_device": _number(1, 65536, "of how many words for each device there is a multiple"),
    "elements_a_device": _number(1, 65536, "of how many elements a slice has a multiple"),
    "policy": _policy,
    "gathered": WIDTH,
    "reduced": _width(Fraction(1, 2), 1, 2, 4, 8),
    "quantised": WIDTH,
    "units": _one_of(kind for kind in Units if kind is not Units.BUCKET),  # those have sizes
    "padding": _one_of(Padding),
    "prefetch": _number(0, 16, "units that are gathered before they are needed"),
    **dict.fromkeys(TRUTHS, _truth),
    "unpadded": _states(State),
    "pinned": _states(MODEL_STATES),
}
