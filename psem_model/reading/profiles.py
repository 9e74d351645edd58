"""Profiles from their files: how a system realises a placement, difference by difference."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from psem_model.reading.shapes import small
from psem_model.reading.toml_lines import content_of
from psem_model.text.errors import BadInput, choose, nearest, quoted
from psem_model.text.files import named, read_text
from psem_model.text.places import EXAMPLES
from spec.models.parts import WORD_WEIGHT, parts
from spec.models.profiles import NORM_FUNCTIONS, TEXTBOOK, Difference, Padding, Profile, Samples, Units
from spec.models.states import POLICIES, State
from spec.models.transformer import CAPPED, DROPPED, Latent
from spec.models.values import Role
from spec.numbers.arithmetic import Number

FORM = "a profile in TOML"
LARGEST_WIDTH = 8  # bytes of an element
SAID = ("what", "why", "source")
MOST_USES = 8  # of a gradient by an optimizer
MOST_AHEAD = 16  # units that are gathered before they are needed
FEW = 20  # names that fit in a line
OF_WORDS = ("logits", "logits_capped", "largest", "total", "lost", "loss")  # of the head
ROW_FUNCTIONS = (*sorted(NORM_FUNCTIONS), "softmax")


def packaged() -> dict[str, Path]:
    """The profiles that are packaged, by their names."""
    return {path.stem: path for path in sorted((EXAMPLES / "profiles").glob("*.toml"))}


def read(given: str) -> Profile:
    """A packaged profile by its name, or one from a file. Raises BadInput with one line."""
    shipped = packaged()
    if given in shipped:
        return _packaged(given)
    if not Path(given).exists():
        choices = ", ".join(shipped)
        near = nearest(given, shipped)
        raise BadInput(
            f"--profile: given {quoted(given)}; expected a file, or one of {choices}"
            + (f"; nearest: {near}" if near else "")
        )
    return _read(Path(given).stem, given)


def changed(profile: Profile, changes: Mapping[str, Any]) -> Profile:
    """A profile with what a file that is `like` it would change. Raises BadInput."""
    reader = _Reader(profile.name)
    reader.only(changes, tuple(CHANGES))
    for key, given in changes.items():
        profile = CHANGES[key](reader, profile, key, given)
    return profile


@cache
def _packaged(name: str) -> Profile:
    return _read(name, str(packaged()[name]))


def _read(name: str, path: str) -> Profile:
    try:
        content = content_of(read_text(path, FORM), path, FORM)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{named(path)}: {error}; expected {FORM}") from None
    reader = _Reader(path)
    reader.only(content, ("title", "like", "differs"))
    like = content.get("like")
    start = TEXTBOOK if like is None else _packaged(reader.name("like", like, packaged()))
    profile = replace(start, name=name, title=reader.words("title", content.get("title")))
    differs = content.get("differs", [])
    if not isinstance(differs, list) or not all(isinstance(row, dict) for row in differs):
        raise reader.wrong("differs", differs, "tables: [[differs]]")
    for row in differs:
        profile = reader.with_difference(profile, row)
    return profile


class _Reader:
    """The fields of one file. Raises BadInput."""

    def __init__(self, path: str) -> None:
        self.path = path

    def wrong(self, key: str, given: object, expected: str) -> BadInput:
        return BadInput(f"{named(self.path)}: {key}: given {quoted(given)}; expected {expected}")

    def only(self, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in given:
            choose(named(self.path), key, known)

    def words(self, key: str, given: Any) -> str:
        if given is None:
            raise BadInput(f"{named(self.path)}: {key} is missing; expected words")
        if not isinstance(given, str) or not given:
            raise self.wrong(key, given, "words")
        return given

    def name(self, key: str, given: Any, known: Any) -> str:
        names, near = [*known], nearest(given, known) if isinstance(given, str) else ""
        if len(names) > FEW and self.words(key, given) not in names:
            raise self.wrong(key, given, f"a name of `psem derive --part`; nearest: {near or names[0]}")
        return choose(f"{named(self.path)}: {key}", self.words(key, given), known)

    def names(self, key: str, given: Any, known: Any) -> frozenset[str]:
        if not isinstance(given, list):
            raise self.wrong(key, given, "a list of names")
        if len({*map(str, given)}) < len(given):
            raise self.wrong(key, given, "each name once")
        return frozenset(self.name(key, each, known) for each in given)

    def width(self, key: str, given: Any) -> int:
        if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= LARGEST_WIDTH:
            raise self.wrong(key, given, f"bytes of an element, from 1 to {LARGEST_WIDTH}")
        return given

    def truth(self, key: str, given: Any) -> bool:
        if not isinstance(given, bool):
            raise self.wrong(key, given, "true or false")
        return given

    def with_difference(self, profile: Profile, row: Mapping[str, Any]) -> Profile:
        """The profile, with one more difference from the textbook."""
        self.only(row, (*SAID, *CHANGES))
        what, why, source = (self.words(key, row.get(key)) for key in SAID)
        said = Difference(what, why, source, frozenset(row.keys() - {*SAID}))
        if not said.changes:
            raise self.wrong("differs", what, f"one of {', '.join(CHANGES)} in it")
        for key, given in row.items():
            if key not in SAID:
                before, profile = profile, CHANGES[key](self, profile, key, given)
                if profile == before:
                    raise self.wrong(key, given, "what is not so without it")
        return replace(profile, differs=(*profile.differs, said))

    # ------------------------------------------------------------------ what a difference changes
    def inside(self, profile: Profile, key: str, given: Any) -> Profile:
        found = self.names(key, given, value_names())
        self.not_handed_on(key, found)
        return replace(profile, inside=profile.inside | found)

    def outside(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, inside=profile.inside - self.names(key, given, value_names()))

    def not_handed_on(self, key: str, names: Iterable[str]) -> None:
        """Values that go from part to part are in memory, of the type that both parts know."""
        for name in names:
            if name in handed_on():
                raise self.wrong(key, name, "a value that does not go from one part to the next")

    def again(self, profile: Profile, key: str, given: Any) -> Profile:
        known = (*ROW_FUNCTIONS, *value_names())
        return replace(profile, again=profile.again | self.names(key, given, known))

    def stores(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, stores=profile.stores | self.names(key, given, value_names()))

    def keeps(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, again=profile.again - self.names(key, given, NORM_FUNCTIONS))

    def widths(self, profile: Profile, key: str, given: Any) -> Profile:
        if not isinstance(given, dict):
            raise self.wrong(key, given, "names of values, and bytes of an element")
        named = {
            self.name(key, name, value_names()): self.width(key, width) for name, width in given.items()
        }
        self.not_handed_on(key, named)
        return replace(profile, widths=tuple({**dict(profile.widths), **named}.items()))

    def in_full(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, in_full=profile.in_full | self.names(key, given, ROW_FUNCTIONS))

    def rows(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, rows=profile.rows | self.names(key, given, NORM_FUNCTIONS))

    def whole(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, whole=self.names(key, given, OF_WORDS))

    def merged(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, merged=profile.merged | self.names(key, given, OF_WORDS))

    def whole_gradients(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, whole_gradients=self.names(key, given, (WORD_WEIGHT, "head_weight")))

    def samples(self, profile: Profile, key: str, given: Any) -> Profile:
        kinds = {kind.value: kind for kind in Samples}
        return replace(profile, samples=kinds[self.name(key, given, kinds)])

    def of_states(self, profile: Profile, key: str, given: Any) -> Profile:
        """With a field that names states."""
        states = {state.value: state for state in State}
        change: dict[str, Any] = {key: frozenset(states[n] for n in self.names(key, given, states))}
        return replace(profile, **change)

    def buckets(self, profile: Profile, key: str, given: Any) -> Profile:
        is_pair = isinstance(given, list) and len(given) == 2
        if not is_pair or not all(type(size) is int and size > 0 for size in given):
            raise self.wrong(key, given, "bytes of the first bucket, and of each other one")
        return replace(profile, units=Units.BUCKET, buckets=(given[0], given[1]))

    def says(self, profile: Profile, key: str, given: Any) -> Profile:
        """With a field that is true or false."""
        change: dict[str, Any] = {key: self.truth(key, given)}
        return replace(profile, **change)

    def uses(self, profile: Profile, key: str, given: Any) -> Profile:
        if type(given) is not int or not 1 <= given <= MOST_USES:
            raise self.wrong(key, given, f"how often the optimizer uses a gradient, 1 to {MOST_USES}")
        return replace(profile, uses=given)

    def policy(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, policy=self.name(key, given, POLICIES))

    def passing(self, key: str, given: Any) -> Number:
        """Bytes of an element, or half of one."""
        return Fraction(1, 2) if given == 0.5 else self.width(key, given)

    def quantised(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, quantised=self.passing(key, given))

    def gathered(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, gathered=self.width(key, given))

    def reduced(self, profile: Profile, key: str, given: Any) -> Profile:
        return replace(profile, reduced=self.passing(key, given))

    def units(self, profile: Profile, key: str, given: Any) -> Profile:
        kinds = {kind.value: kind for kind in Units if kind is not Units.BUCKET}  # those have sizes
        return replace(profile, units=kinds[self.name(key, given, kinds)])

    def padding(self, profile: Profile, key: str, given: Any) -> Profile:
        kinds = {kind.value: kind for kind in Padding}
        return replace(profile, padding=kinds[self.name(key, given, kinds)])

    def prefetch(self, profile: Profile, key: str, given: Any) -> Profile:
        if type(given) is not int or not 0 <= given <= MOST_AHEAD:
            expected = f"units gathered before they are needed, 0 to {MOST_AHEAD}"
            raise self.wrong(key, given, expected)
        return replace(profile, prefetch=given)


Change = Callable[[_Reader, Profile, str, Any], Profile]
TRUTHS = (
    *("repeats", "maximum", "step_counts", "each", "holds", "holds_root", "copies", "apart"),
    *("sums_first", "like_gradients", "owners", "placeholders", "at_once", "weighs_within", "fills"),
    *("waits_whole", "uneven", "starts_whole"),
)
OF_STATES = ("unpadded", "pinned")
CHANGES: dict[str, Change] = {
    name: getattr(_Reader, name)
    for name in (
        *("inside", "outside", "again", "stores", "keeps", "widths", "in_full"),
        *("rows", "whole", "merged", "whole_gradients", "samples", "buckets", "uses"),
        *("policy", "gathered", "reduced", "quantised", "units", "padding", "prefetch"),
    )
}
CHANGES |= dict.fromkeys(TRUTHS, _Reader.says) | dict.fromkeys(OF_STATES, _Reader.of_states)


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
    copies = [f"{name}_{of}" for name in found for of in ("argument", "fp32", "repeated")]
    return (*found, *copies)
