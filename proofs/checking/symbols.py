"""Sorts of the theorems about a schedule as a symbol, kinds of lines and values, places of devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofs.checking import lines
from proofs.checking.lines import FIRST, MOVES, OWNER
from proofs.trusted.terms import (
    ArraySort,
    BoolSort,
    DeclareSort,
    EnumSort,
    If,
    IntSort,
    IntVal,
    RealSort,
    RealVal,
)
from spec.devices.operators import OTHER, Offset

INT, REAL, BOOL = IntSort(), RealSort(), BoolSort()
Element = DeclareSort("Element")
Run = DeclareSort("Run")  # of a model, its data and an optimizer
ROW = ArraySort(Element, REAL)
KindSort, _kinds = EnumSort(
    "LineKind", [*(m.name.capitalize() for m in MOVES), "Backward", "Update", "Norm", "Count"]
)
KINDS = dict(zip((m.name for m in MOVES), _kinds, strict=False))
BACKWARD, UPDATE, NORM_OF, COUNT_OF = _kinds[-4:]
WhatSort, ORIGINALS = EnumSort(
    "Original", ["Weight", "Moment", "Gradient", "Wrong", "Whole_norm", "Tokens", "Wrong_moment"]
)
WEIGHT, MOMENT, CONTRIBUTION, WRONG, NORM, TOKENS, WRONG_MOMENT = ORIGINALS
StartSort, _starts = EnumSort("Start", [*lines.STARTS, "Nothing"])
STARTS = dict(zip(lines.STARTS, _starts, strict=False))
NOTHING = _starts[-1]
PLACES: dict[Offset, int] = {OWNER: 0, FIRST: 1, OTHER: 2}  # a device's place as a number
FIRSTS = (OWNER, FIRST)  # where the first device may be
ZERO, ONE = RealVal(0), RealVal(1)


def indicator(said: Any) -> Any:
    """1 where a formula holds, 0 elsewhere."""
    return If(said, ONE, ZERO)


def cases(term: Any, table: dict[Any, Any], otherwise: Any) -> Any:
    """The value that a table has for a term."""
    for key, value in reversed(table.items()):
        otherwise = If(term == key, value, otherwise)
    return otherwise


def either(first: Any, table: Mapping[int, Any]) -> Any:
    """The value by where the first device is."""
    return If(first == OWNER, table[OWNER], table[FIRST])


def place_of(device: Any, owner: Any) -> Any:
    """A device's place, seen from an element's owner."""
    elsewhere = If(device == 0, IntVal(PLACES[FIRST]), IntVal(PLACES[OTHER]))
    return If(device == owner, IntVal(PLACES[OWNER]), elsewhere)


def first_of(owner: Any) -> Any:
    """The first device's place, likewise."""
    return If(owner == 0, IntVal(OWNER), IntVal(FIRST))
