"""The tables of one axis (`axis_tables`) for axes of some devices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from math import prod
from typing import Any

from proofs.checking.axis_tables import Word, counts, entries, moved, only
from proofs.checking.lines import AXIS, FACTOR, MOVES
from spec.checking.symbols import Offsets
from spec.devices.operators import Offset
from spec.numbers.any_size import Polynomial

LINES = {move.name: move for move in MOVES}


def _number(amount: Any, size: int, factor: Any = 1) -> Any:
    """A number of a table, for an axis of some size."""
    if not isinstance(amount, Polynomial):
        return amount
    value = {AXIS: size, FACTOR: factor}
    return sum(times * prod(value[name] ** e for name, e in powers) for powers, times in amount.terms)


@cache
def row(
    kind: str, first: int, of_target: bool, size: int, factor: Any
) -> Mapping[int, list[tuple[int, Any]]]:
    """By operator, what a line makes of it along its axis."""
    found: dict[int, list[tuple[int, Any]]] = {}
    for ((made,), (read,)), amount in moved(LINES[kind], (first,), of_target).items():
        found.setdefault(read, []).append((made, _number(amount, size, factor)))
    return found


@cache
def entry(first: int, place: Offset, source: int, operator: int, size: int) -> Any:
    """How much of a source's value a device at a place has by an operator."""
    return _number(entries((first,)).get(((place,), (source,), (operator,)), 0), size)


@cache
def sources(first: int, place: Offset, size: int) -> tuple[int, ...]:
    """Whose values a device at a place can see, of those that there are."""
    found = {s: _number(n, size) for ((p,), (s,)), n in counts((first,)).items() if p == place}
    return tuple(source for source, count in found.items() if count > 0)


@cache
def spread(firsts: tuple[int, ...], places: Offsets) -> Mapping[Word, Any]:
    """The form of what devices at a place have, and no others."""
    per_axis = [
        [(o, c) for ((p,), (o,)), c in only((first,)).items() if p == place]
        for first, place in zip(firsts, places, strict=True)
    ]
    found: dict[Word, Any] = {}
    for terms in product(*per_axis):
        word = tuple(o for o, _ in terms)
        found[word] = found.get(word, 0) + prod(c for _, c in terms)
    return found
