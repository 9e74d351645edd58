"""How the operands of an operation must lie along an axis, given how they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spec.devices.layouts import WHOLE, LayoutError, Lie, Lies, along, contract
from spec.language.moves import Axis
from spec.models.values import Does, Operation, Part, Role, Value


def needs_of(
    operation: Operation, reads: list[Value], has: list[Lie], axis: Axis, part: Part
) -> tuple[Lie, ...]:
    """How an operation's operands must lie along an axis; as they are, if that will do.

    Raises LayoutError if there is no way.
    """
    brought = dict(axis.brought).get(operation.makes.name)
    if brought:
        return tuple(along(brought) if brought in v.indices else WHOLE for v in reads)
    if operation.does is Does.ADD:
        return (has[0], has[0])
    if operation.does is Does.NORMALISE and has[0] == along(operation.over) and not axis.in_time:
        return (WHOLE,)
    if operation.does is Does.RENAME and is_lost(operation, has[0]):
        return (axis.home(reads[0], part),)
    if operation.does is not Does.CONTRACT:
        return tuple(has)
    for left, right in options(reads, has, axis, part):
        try:
            contract(operation.contraction, left.plain, right.plain)
            return left, right
        except LayoutError:
            continue
    raise LayoutError(f"{operation}: no way to lie along {axis.name}")


def within_stream(axis: Axis, needed: Iterable[Lies], part: Part) -> Axis:
    """An axis; without its stream, where none is cut along the axis outside. `needed`: along that."""
    if not axis.copies_of:
        return axis
    names = part.names_of(axis.stream)
    is_cut = any(needs[axis.copies_of].index in names for needs in needed)
    return axis if is_cut else replace(axis, stream="")


def is_lost(rename: Operation, lie: Lie) -> bool:
    """Whether what is cut is an index that a rename sums over."""
    return lie.index not in ("", *rename.makes.indices, *(old for old, _ in rename.renamed))


def options(reads: list[Value], has: list[Lie], axis: Axis, part: Part) -> Iterable[tuple[Lie, Lie]]:
    """Ways for two operands to lie, the cheapest first.

    A weight stays; a constant lies as it must; of two activations that without the stream's index is
    brought, or the second. What a constant spreads over an index that weights are cut along is gathered
    before, not after.
    """
    (left, right), (first, second) = reads, has
    has_stream = [axis.stream in value.indices for value in reads]
    is_brought = left.role is Role.CONSTANT or has_stream == [False, True]
    if is_brought and right.role is not Role.CONSTANT:
        return [(one, other) for other, one in options(reads[::-1], has[::-1], axis, part)]

    def choices(value: Value, own: Lie, other: Lie) -> list[Lie]:
        like = [other.plain] if other.index in value.indices else []
        home = [axis.home(value, part)]
        if value.role is not Role.CONSTANT:
            return [own, *like, *home, WHOLE]
        return [*home, *like, WHOLE]

    if right.role is Role.WEIGHT:
        return [(choice, second) for choice in choices(left, first, second)]
    is_spread = right.role is Role.CONSTANT and first.index in ("", *part.names_of(axis.stream))
    spread = [(WHOLE, along(i)) for i in right.indices if is_spread and i in axis.weight_indices]
    return [*spread, *((first, choice) for choice in choices(right, second, first))]
