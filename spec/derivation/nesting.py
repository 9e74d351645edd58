"""Of an index that several axes cut: which of them is the outer one.

A device's slice is one contiguous chunk: the outer axis's, and of that the inner one's. What joins
slices along an axis (all-gather, all-to-all) puts buffers side by side, which makes a chunk along the
inner axis only; what cuts along an axis (reduce-scatter, slice, all-to-all) leaves a part of a chunk,
so that this axis is the inner one from then on. Along an outer axis the same messages would leave
parts of every chunk, which is no slice of an index. Round a ring whole buffers go: their order does not
matter. An index that is renamed to another is cut as that is; several that become one make an index of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from spec.devices.layouts import Lies
from spec.language.moves import Move
from spec.language.programs import Program
from spec.models.values import Operation

AxisOrders = dict[str, tuple[str, ...]]  # of each index, the axes that cut it, the outer one first


class InnerMove(NamedTuple):
    """A move along an axis, the inner one of two that cut an index."""

    of: str
    outer: str
    inner: str
    move: Move
    program: Program


def needed(programs: Iterable[Program]) -> Iterator[InnerMove]:
    """Of each move, the axes that must be outside its own."""
    for program in programs:
        rings = {axis.turns: axis.name for axis in program.axes}
        for move in program.moves:
            if move.in_turns:
                continue
            for index in filter(None, (move.before.index, move.after.index)):
                for name, lie in program.lies[move.value].items():
                    axis = rings.get(name, name)
                    if lie.index == index and axis != move.axis:
                        yield InnerMove(index, axis, move.axis, move, program)


def families(programs: Iterable[Program]) -> dict[str, str]:
    """Of each index one of those that it is renamed to, or from, one by one: all are cut alike."""
    found: dict[str, str] = {}

    def root(index: str) -> str:
        while found.setdefault(index, index) != index:
            index = found[index]
        return index

    for program in programs:
        lines = program.lines
        alike = {value.indices: None for line in lines for value in (*line.reads, line.makes)}
        for index in (index for indices in alike for index in indices):
            found.setdefault(index, index)
        for line in (line for line in lines if isinstance(line, Operation) and line.renamed):
            for old, new in one_by_one(line):
                found[root(new)] = root(old)
    return {index: root(index) for index in found}


def one_by_one(line: Operation) -> Iterator[tuple[str, str]]:
    """Indices that have another name after a line, and are the same."""
    olds, news = [old for old, _ in line.renamed], [new for _, new in line.renamed]
    return ((o, n) for o, n in line.renamed if olds.count(o) == 1 and news.count(n) == 1)


def axis_orders(programs: tuple[Program, ...]) -> AxisOrders:
    """Of each index an order of the axes in which moves are along the inner one of those that cut it.

    As they are declared, where moves need no other order, or there is none.
    """
    axes = tuple(axis.name for axis in programs[0].axes) if programs else ()
    family = families(programs)
    pairs: dict[str, set[tuple[str, str]]] = {}
    for each in needed(programs):
        pairs.setdefault(family[each.of], set()).add((each.outer, each.inner))
    found = {of: axes_in_order(axes, pairs.get(of, set())) for of in {*family.values()}}
    return {index: found[of] for index, of in family.items()}


def in_orders(program: Program, orders: AxisOrders) -> Program:
    """The program, whose values lie along axes in these orders: the outer one first."""
    if all(order == tuple(axis.name for axis in program.axes) for order in orders.values()):
        return program

    def nested(lies: Lies) -> Lies:
        def number(axis: str) -> int:
            order = orders.get(lies[axis].index, ())
            return order.index(axis) if axis in order else 0

        return {axis: lies[axis] for axis in sorted(lies, key=number)}

    return replace(program, lies={value: nested(lies) for value, lies in program.lies.items()})


def axes_in_order(axes: tuple[str, ...], pairs: set[tuple[str, str]]) -> tuple[str, ...]:
    """The axes, the outer of each pair first; as they are where pairs contradict one another."""
    found: list[str] = []
    while len(found) < len(axes):
        left = [axis for axis in axes if axis not in found]
        free = [a for a in left if not any(inner == a and outer in left for outer, inner in pairs)]
        if not free:
            return axes
        found.append(free[0])
    return tuple(found)
