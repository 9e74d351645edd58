"""Errors that a user reads: what was given, what is expected, and the nearest valid choice."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar

REJECTED, BAD_INPUT = 1, 2  # exit codes
LONGEST = 60  # characters that an error repeats of what was given
TOO_MANY_DIGITS = "a number of too many digits"  # in a file
TOO_DEEP = "too many brackets in each other"
# from which share of letters in common on a name is taken for a misspelled one: one that begins with
# the same letter, or any
ALIKE, ALIKE_WITHIN = 0.5, 0.65


class UserError(Exception):
    """What a user is told in one line, and the exit code that goes with it."""

    code: ClassVar[int] = REJECTED


class BadInput(UserError):
    """What was given cannot be used: what was given, what is expected, and the nearest valid choice."""

    code = BAD_INPUT


def shortened(text: str, most: int = LONGEST) -> str:
    """A text in full, or its first characters and how many there are."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def quoted(given: object) -> str:
    """What was given, as an error repeats it: in quotes, and no longer than an error may be."""
    if not isinstance(given, str):
        return shortened(repr(given))
    more = f"... ({len(given):,} characters)" if len(given) > LONGEST else ""
    return repr(given[:LONGEST]) + more


def listed(names: Iterable[str], most: int = 40) -> str:
    """Names beside each other, or the first of them and how many there are."""
    all_ = [shortened(name) for name in names]
    more = len(all_) - most
    return ", ".join(all_[:most]) + (f", ... ({more:,} more)" if more > 0 else "")


def nearest(given: str, choices: Iterable[str]) -> str:
    """The choice that is spelled most alike, in small or capital letters; empty if none is nearly."""
    small = {choice.lower(): choice for choice in choices}
    text = given[:LONGEST].lower()
    alike = [name for name in small if name[:1] == text[:1]]
    near = get_close_matches(text, small, 1, ALIKE_WITHIN) or get_close_matches(text, alike, 1, ALIKE)
    return next((small[name] for name in near), "")


def or_nearest(given: str, choices: Iterable[str]) -> str:
    """What an error ends in: the choice that is spelled most alike, if any is nearly alike."""
    near = nearest(given, choices)
    return f"; nearest: {near}" if near else ""


def refused(what: str, given: object, expected: str) -> BadInput:
    """What to raise for what cannot be used: of what it is, what was given, and what is expected."""
    return BadInput(f"{what}: given {quoted(given)}; expected {expected}")


def choose(what: str, given: str, choices: Iterable[str]) -> str:
    """One of some names. Raises BadInput that lists them."""
    names = list(dict.fromkeys(choices))
    if given not in names:
        raise refused(what, given, f"one of {', '.join(names)}{or_nearest(given, names)}")
    return given
