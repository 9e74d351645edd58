"""Profiles from their files: how a system realises a placement, difference by difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from enum import Enum
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from psem_model.reading.shapes import small
from psem_model.reading.toml_lines import File, content_of, shown
from psem_model.reading.toml_lines import Path as Keys
from psem_model.text.errors import BadInput, nearest, or_nearest, refused
from psem_model.text.files import read_text
from psem_model.text.places import EXAMPLES
from spec.costs.memory import MODEL_STATES
from spec.models.parts import WORD_WEIGHT, parts
from spec.models.profiles import NORM_FUNCTIONS, TEXTBOOK, Difference, Padding, Profile, Samples, Units
from spec.models.states import POLICIES, State
from spec.models.transformer import CAPPED, DROPPED, Latent
from spec.models.values import Role
from spec.numbers.arithmetic import Number

FORM = "a profile in TOML"
SAID = ("what", "why", "source")
FEW = 20  # names that fit in a line
OF_WORDS = ("logits", "logits_capped", "largest", "total", "lost", "loss")  # of the head
WORD_WEIGHTS = (WORD_WEIGHT, "head_weight")
ROW_FUNCTIONS = (*sorted(NORM_FUNCTIONS), "softmax")


PLUS = "+"  # between a profile and what is added to it


def packaged() -> dict[str, Path]:
    """The profiles that are packaged, by their names."""
    return {path.stem: path for path in sorted((EXAMPLES / "profiles").glob("*.toml"))}


def additions() -> dict[str, Path]:
    """What may be added to a profile, as a user of its system switches it on, by names."""
    return {path.stem: path for path in sorted((EXAMPLES / "additions").glob("*.toml"))}


def read(given: str) -> Profile:
    """A packaged profile by its name, or one from a file, or one with additions: `ddp+no-sync`.

    Raises BadInput with one line.
    """
    shipped = packaged()
    if given in shipped:
        return _packaged(given)
    if Path(given).exists():
        return _read(Path(given).stem, given)
    first, *others = (name.strip() for name in given.split(PLUS))
    if others and first in shipped:
        return _packaged_with(first, *others)
    if others and first and Path(first).exists():
        return _with_additions(_read(Path(first).stem, first), others)
    expected = f"a file, or one of {', '.join(shipped)}{or_nearest(first, shipped)}"
    raise refused("--profile", given, expected)


@cache
def _packaged(name: str) -> Profile:
    return _read(name, str(packaged()[name]))


@cache
def _packaged_with(name: str, *others: str) -> Profile:
    return _with_additions(_packaged(name), others)


def _with_additions(profile: Profile, names: Iterable[str]) -> Profile:
    """The profile with some additions, one after the other."""
    known, said = additions(), dict[str, str]()
    for name in names:
        if name not in known:
            expected = f"what may be added: {', '.join(known)}{or_nearest(name, known)}"
            raise refused("--profile", f"{profile.name}{PLUS}{name}", expected)
        if name in said.values():
            raise refused("--profile", f"{profile.name}{PLUS}{name}", f"{name} once")
        before, profile = profile, _added(profile, name, str(known[name]))
        changed = {key for d in profile.differs if d not in before.differs for key in d.changes}
        for key in sorted(changed & said.keys()):
            expected = f"one of {said[key]} and {name}: both say what {key} is"
            raise refused("--profile", profile.name, expected)
        said |= dict.fromkeys(changed, name)
    return profile


def _added(profile: Profile, name: str, path: str) -> Profile:
    """The profile with the differences of a file. Raises BadInput if they are not there without it."""
    text = read_text(path, FORM)
    file = File(path, text, content_of(text, path, FORM))
    content = file.table((), file.content, ("title", "differs"))
    found = replace(profile, name=f"{profile.name}{PLUS}{name}")
    title = f"{profile.title}; {_words(file, (), content, 'title')}"
    try:
        return _with_differences(file, replace(found, title=title), content)
    except BadInput:
        expected = f"an addition that changes {profile.name}"
        raise refused("--profile", found.name, expected) from None


def _read(name: str, path: str) -> Profile:
    text = read_text(path, FORM)
    file = File(path, text, content_of(text, path, FORM))
    content = file.table((), file.content, ("title", "like", "differs"))
    profile = TEXTBOOK
    if "like" in content:
        first, *others = file.typed(("like",), content["like"], str).split(PLUS)
        profile = _packaged(file.choose(("like",), first, packaged()))
        known = additions()
        profile = _with_additions(profile, (file.choose(("like",), each, known) for each in others))
    profile = replace(profile, name=name, title=_words(file, (), content, "title"))
    return _with_differences(file, profile, content)


def _with_differences(file: File, profile: Profile, content: Mapping[str, Any]) -> Profile:
    """The profile, with the differences that a file lists."""
    for number, row in enumerate(file.typed(("differs",), content.get("differs", []), list)):
        profile = _with_difference(file, ("differs", number), profile, row)
    return profile


def leaving_out(profile: Profile, left: Difference) -> Profile:
    """The profile without one of its differences from the textbook, and with all else that it says."""
    every = found = TEXTBOOK
    if not left.given:  # of a profile that no file says
        return replace(profile, **{name: getattr(TEXTBOOK, name) for name in left.changes})
    for difference in profile.differs:
        every = changed(every, dict(difference.given))
        found = found if difference is left else changed(found, dict(difference.given))
    names = (each.name for each in fields(Profile))
    other = (name for name in names if getattr(profile, name) != getattr(every, name))
    return replace(found, **{name: getattr(profile, name) for name in other})


def changed(profile: Profile, changes: Mapping[str, Any]) -> Profile:
    """A profile with what a file that is `like` it would change. Raises BadInput."""
    file = File(profile.name, "", {**changes})
    for key, given in file.table((), file.content, CHANGES).items():
        profile = _changed(file, (key,), profile, given)
    return profile


def _changed(file: File, path: Keys, profile: Profile, given: Any) -> Profile:
    """The profile with the change that the key at a place makes."""
    key = str(path[-1])
    field = CHANGED_BY.get(key, key)
    change: dict[str, Any] = {field: CHANGES[key](file, path, getattr(profile, field), given)}
    if key == "buckets":
        change["units"] = Units.BUCKET
    return replace(profile, **change)


def _words(file: File, path: Keys, table: Mapping[str, Any], key: str) -> str:
    """Words that must be there."""
    if key not in table:
        raise file.missing(path, key, f"{key} = ...: words")
    said = file.typed((*path, key), table[key], str)
    if not said:
        raise file.wrong((*path, key), shown(said), "words")
    return said


def _with_difference(file: File, path: Keys, profile: Profile, given: Any) -> Profile:
    """The profile, with one more difference from the textbook."""
    row = file.table(path, given, (*SAID, *CHANGES))
    what, why, source = (_words(file, path, row, key) for key in SAID)
    changes = {key: value for key, value in row.items() if key not in SAID}
    if not changes:
        raise file.missing(path, "change", f"one of {', '.join(CHANGES)}")
    changed: set[str] = set()
    for key, value in changes.items():
        before, profile = profile, _changed(file, (*path, key), profile, value)
        if profile == before:
            raise file.wrong((*path, key), shown(value), "what is not so without it")
        names = (field.name for field in fields(Profile))
        changed |= {name for name in names if getattr(profile, name) != getattr(before, name)}
    said = Difference(what, why, source, frozenset(changed), tuple(changes.items()))
    return replace(profile, differs=(*profile.differs, said))


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


# ------------------------------------------------------------------------ what a difference changes
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


WIDTH = _width(1, 2, 4, 8)
TRUTHS = (
    *("repeats", "maximum", "step_counts", "each", "holds", "holds_root", "copies", "apart"),
    *("sums_first", "like_gradients", "owners", "placeholders", "at_once", "weighs_within", "fills"),
    *("waits_whole", "uneven", "copies_heads", "starts_whole"),
)
CHANGED_BY = {"outside": "inside", "keeps": "again"}  # the field that a key changes, if it is another
CHANGES: dict[str, Change] = {
    "inside": _inside,
    "outside": _dropping(value_names),
    "again": _adding(lambda: (*ROW_FUNCTIONS, *value_names())),
    "stores": _adding(value_names),
    "keeps": _dropping(lambda: NORM_FUNCTIONS),
    "widths": _widths,
    "in_full": _adding(lambda: ROW_FUNCTIONS),
    "rows": _adding(lambda: NORM_FUNCTIONS),
    "whole": _listing(lambda: (*OF_WORDS, *WORD_WEIGHTS)),
    "merged": _adding(lambda: OF_WORDS),
    "overwritten": _adding(value_names),
    "whole_gradients": _listing(lambda: WORD_WEIGHTS),
    "samples": _one_of(Samples),
    "buckets": _buckets,
    "uses": _number(1, 8, "how often the optimizer uses a gradient"),
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
