"""Profiles from their files: how a system realises a placement, difference by difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import product
from os.path import exists
from pathlib import Path
from typing import Any

from psem_model.reading.profile_keys import CHANGED_BY, CHANGES, units_outside
from psem_model.reading.toml_lines import File, content_of, shown
from psem_model.reading.toml_lines import Path as Keys
from psem_model.text.errors import BadInput, or_nearest, quoted, refused
from psem_model.text.files import read_text
from psem_model.text.places import EXAMPLES
from spec.costs.memory import MODEL_STATES
from spec.models.differences import Difference
from spec.models.parts import Model
from spec.models.profiles import TEXTBOOK, Profile, Units
from spec.models.states import State
from spec.plans.modes import Mode, O

FORM = "a profile in TOML"
KEYS = "a key that docs/GUIDE.md lists of profiles"
SAID = ("what", "why", "source")
# keys that have not the same name in one file
EXCLUDING = (
    *(("inside", "outside"), ("again", "keeps"), ("stores", "inside"), ("stores", "again")),
    ("widths", "inside"),
)
EACH_OR_WHOLE = "each = false, where gradients wait whole for the last micro-step (waits_whole)"
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
    if exists(given):
        return _read(Path(given).stem, given)
    first, *others = (name.strip() for name in given.split(PLUS))
    if others and first in shipped:
        return _packaged_with(first, *others)
    if others and exists(first):
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
    """The profile with some additions. Raises BadInput if two of them have the same key."""
    known, said = additions(), dict[str, str]()  # by key, the addition that has it
    names = [*names]
    if "" in names:
        given = PLUS.join((profile.name, *names))
        raise refused("--profile", given, f"a name after each {PLUS}: of {', '.join(known)}")
    kin = {*profile.names, *profile.like, *names}
    for name in names:
        if name not in known:
            expected = f"what may be added: {', '.join(known)}{or_nearest(name, known)}"
            raise refused("--profile", f"{profile.name}{PLUS}{name}", expected)
        if name in profile.names:
            raise refused("--profile", f"{profile.name}{PLUS}{name}", f"{name} once")
        new = _added(profile, name, str(known[name]), kin)
        for key in (key for each in new.differs[len(profile.differs) :] for key in each.changes):
            if said.setdefault(key, name) != name:
                expected = f"one of {said[key]} and {name}: both say what is {key}"
                raise refused("--profile", new.name, expected)
        profile = new
    return profile


def _added(profile: Profile, name: str, path: str, kin: set[str]) -> Profile:
    """The profile with the differences of an addition's file.

    `kin`: the names of all that it is like, and of what else is added. Raises BadInput if the addition
    is of none of these, or if its differences are there without it.
    """
    text = read_text(path, FORM)
    file = File(path, text, content_of(text, path, FORM))
    content = file.table((), file.content, ("title", "to", "differs"))
    found, said = f"{profile.name}{PLUS}{name}", _words(file, (), content, "title")
    systems = content.get("to", [])
    if systems and kin.isdisjoint(systems):
        them = "it" if len(systems) == 1 else "them"
        expected = f"{name} with {' or '.join(systems)}, or what is like {them}: {said}"
        raise refused("--profile", found, expected)
    new = replace(profile, name=found, title=f"{profile.title}; {said}", names=(*profile.names, name))
    try:
        return _with_differences(file, new, content, name)
    except BadInput:
        raise refused("--profile", found, f"an addition that changes {profile.name}") from None


def _read(name: str, path: str) -> Profile:
    text = read_text(path, FORM)
    file = File(path, text, content_of(text, path, FORM))
    content = file.table((), file.content, ("title", "like", "places", "differs"))
    profile = TEXTBOOK
    if "like" in content:
        first, *others = file.typed(("like",), content["like"], str).split(PLUS)
        profile = _packaged(file.choose(("like",), first, packaged()))
        known = additions()
        profile = _with_additions(profile, (file.choose(("like",), each, known) for each in others))
    called = name if str(packaged().get(name)) == path else path
    profile = replace(
        profile,
        name=name,
        title=_words(file, (), content, "title"),
        names=(called,),
        like=profile.like.union(profile.names if "like" in content else ()),
        places=_places(file, content["places"]) if "places" in content else profile.places,
    )
    found = _with_differences(file, profile, content, called)
    _require_kept(file, profile, found)
    return found


def _require_kept(file: File, before: Profile, after: Profile) -> None:
    """Raise BadInput for a key that another key of the file undoes, or that it excludes."""
    added = [difference.given for difference in after.differs[len(before.differs) :]]
    said = [(("differs", row, key), value) for row, given in enumerate(added) for key, value in given]
    for (path, value), (other, given) in product(said, said):
        keys = str(path[-1]), str(other[-1])
        both = sorted({*value} & {*given}) if keys in EXCLUDING else []
        if both:
            raise file.wrong(path, shown(both[0]), f"it under one of {keys[0]} and {keys[1]}")
    for path, value in said:
        key = str(path[-1])
        if key in ("each", "waits_whole") and after.each and after.waits_whole:
            raise file.wrong(path, shown(value), EACH_OR_WHOLE)
        _require_units(file, path, value, after)
        left = before
        for other, given in said:
            left = changed(left, {str(other[-1]): given}) if other != path else left
        if replace(left, differs=after.differs) == after or _is_moot(key, after):
            raise file.wrong(path, shown(value), "what no other key of the file undoes")


def _require_units(file: File, path: Keys, value: Any, profile: Profile) -> None:
    """Raise BadInput where held units outside layers are others than the units that there are."""
    there = units_outside(profile.units)
    others = sorted(profile.held_units.names.difference(there))
    if others and path[-1] in ("units", "buckets", "held_units"):
        known = " and ".join(there)
        expected = f"held_units of layers, and of {known}: {others[0]} is no unit there"
        raise file.wrong(path, shown(value), expected, there[-1])


def require_held(profile: Profile, model: Model) -> None:
    """Raise BadInput for a profile that holds layers which a model has not, or one by two numbers."""
    count, numbers = int(model.layers), profile.held_units.layers.numbers
    if twice := sorted(n for n in numbers if n >= 0 and n - count in numbers):
        said = f"--profile: given {quoted(profile.name)}, which holds layer {twice[0]:,}"
        raise BadInput(f"{said}, and {twice[0] - count:,}, the same; expected each unit once")
    for number in sorted(numbers):
        if not -count <= number < count:
            said = f"--profile: given {quoted(profile.name)}, which holds layer {number}"
            if not count:
                raise BadInput(f"{said}; expected a model's shape and --sequence")
            few = f"expected layers from {-count:,} to {count - 1:,}"
            raise BadInput(f"{said}; {few}; nearest: {-count if number < 0 else count - 1:,}")


def _is_moot(key: str, profile: Profile) -> bool:
    """Whether a profile has what a key says where it does not count."""
    return key == "buckets" and profile.units is not Units.BUCKET


def _places(file: File, given: Any) -> tuple[tuple[State, str], ...]:
    """The modes of states that a system has along some axis."""
    states = {state.value: state for state in MODEL_STATES}
    symbols = [f"{mode.value}{host}" for host in ("", f"+{O.value}") for mode in Mode]
    table = file.table(("places",), given, states)
    said = {name: file.choose(("places", name), value, symbols) for name, value in table.items()}
    return tuple((state, said[name]) for name, state in states.items() if name in said)


def _with_differences(file: File, profile: Profile, content: Mapping[str, Any], of: str) -> Profile:
    """The profile, with the differences that a file lists; `of`: its name."""
    for number, row in enumerate(file.typed(("differs",), content.get("differs", []), list)):
        profile = _with_difference(file, ("differs", number), profile, row, of)
    return profile


def leaving_out(profile: Profile, left: Difference) -> Profile:
    """The profile without one of its differences from the textbook, and with all else that it says."""
    if not left.given:  # of a profile that no file says
        return replace(profile, **{name: getattr(TEXTBOOK, name) for name in left.changes})
    every = changed(TEXTBOOK, *(dict(each.given) for each in profile.differs))
    found = changed(TEXTBOOK, *(dict(each.given) for each in profile.differs if each is not left))
    names = (each.name for each in fields(Profile))
    other = (name for name in names if getattr(profile, name) != getattr(every, name))
    return replace(found, **{name: getattr(profile, name) for name in other})


def changed(profile: Profile, *changes: Mapping[str, Any]) -> Profile:
    """A profile with what files that are `like` it would change, in turn. Raises BadInput."""
    values: dict[str, Any] = {}  # of fields, so far
    for each in changes:
        file = File(profile.name, "", {**each})
        for key, given in file.known((), file.content, CHANGES, KEYS).items():
            values |= _change(file, (key,), profile, given, values)
    return replace(profile, **values)


def _changed(file: File, path: Keys, profile: Profile, given: Any) -> Profile:
    """The profile with the change that the key at a place makes."""
    return replace(profile, **_change(file, path, profile, given, {}))


def _change(
    file: File, path: Keys, profile: Profile, given: Any, changed: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of fields that the key at a place gives, of a profile with some changed already."""
    key = str(path[-1])
    field = CHANGED_BY.get(key, key)
    before = changed[field] if field in changed else getattr(profile, field)
    values: dict[str, Any] = {field: CHANGES[key](file, path, before, given)}
    if key == "buckets":
        values["units"] = Units.BUCKET
    return values


def _words(file: File, path: Keys, table: Mapping[str, Any], key: str) -> str:
    """Words that must be there."""
    if key not in table:
        raise file.missing(path, key, f"{key} = ...: words")
    said = file.typed((*path, key), table[key], str)
    if not said:
        raise file.wrong((*path, key), shown(said), "words")
    return said


def _with_difference(file: File, path: Keys, profile: Profile, given: Any, of: str) -> Profile:
    """The profile, with one more difference from the textbook."""
    row = file.known(path, given, (*SAID, *CHANGES), KEYS)
    what, why, source = (_words(file, path, row, key) for key in SAID)
    changes = {key: value for key, value in row.items() if key not in SAID}
    if not changes:
        raise file.missing(path, "key that changes anything", f"{KEYS}, such as inside")
    changed: set[str] = set()
    for key, value in changes.items():
        before, profile = profile, _changed(file, (*path, key), profile, value)
        if profile == before:
            raise file.wrong((*path, key), shown(value), "what is not so without it")
        names = (field.name for field in fields(Profile))
        changed |= {name for name in names if getattr(profile, name) != getattr(before, name)}
    said = Difference(what, why, source, frozenset(changed), tuple(changes.items()), of)
    return replace(profile, differs=(*profile.differs, said))
