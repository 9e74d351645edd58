"""What each device of a mesh has of a value: its own array, and its positions of each index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from string import ascii_letters
from types import MappingProxyType

import numpy as np

from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.layout import Cluster
from psem_model.simulator.tables import Cell, Slots
from spec.devices.layouts import Layout, Lies
from spec.language.programs import Program

LETTERS = ascii_letters.replace("D", "")

SLOTTED = ("e", "c")  # experts, and their slots
ONCE: Mapping[str, int] = MappingProxyType({})  # in no loop


@dataclass(frozen=True)
class Slices:
    """`array` (devices, ...) has a dimension for each index; `where[index]` (devices, n): positions.

    A position that the whole value does not have is padding. `width`: bytes that training gives an
    element, whatever the array's numbers are; it goes where the array goes. `repeats`: indices along
    which elements are the same ones, in the same room. `slots`: of experts, if some are empty.
    """

    indices: tuple[str, ...]
    array: Array
    where: Mapping[str, Array]
    width: Number = 0
    repeats: tuple[str, ...] = ()
    slots: Slots | None = None

    @cached_property
    def bytes(self) -> Number:
        """On each device, with padding."""
        return self.elements * self.width

    @property
    def elements(self) -> int:
        """How many each device has, with padding; the first one, in filled slots of experts."""
        if self.slots:
            return int(self.filled[0])
        if not self.repeats:
            return prod(self.array.shape[1:])
        sizes = zip(self.indices, self.array.shape[1:], strict=True)
        return prod(size for index, size in sizes if index not in self.repeats)

    @cached_property
    def filled(self) -> Array:
        """Elements of each device's slots (devices,), without empty ones."""
        if self.slots is None:
            return np.full(len(self.array), self.elements)
        rows = self.slots.filled[self.where["e"][:, :, None], self.where["c"][:, None]]
        sizes = zip(self.indices, self.array.shape[1:], strict=True)
        of_slot = prod(int(size) for index, size in sizes if index not in SLOTTED)
        return np.asarray(rows.sum((1, 2)) * of_slot)

    def axis(self, index: str) -> int:
        """The array's dimension of an index."""
        return 1 + self.indices.index(index)


def take(array: Array, dimension: int, places: Array) -> Array:
    """What each device has at its own places (devices, n) along a dimension."""
    devices = np.arange(len(places))[:, None]
    return array.swapaxes(1, dimension)[devices, places].swapaxes(1, dimension)


@cache
def lettered(*several: tuple[str, ...]) -> tuple[str, ...]:
    """Indices of several arrays, a letter each, as `einsum` takes them; D is that of devices."""
    names = dict.fromkeys(index for indices in several for index in indices)
    letters = dict(zip(names, LETTERS, strict=False))
    return tuple("".join(letters[index] for index in indices) for indices in several)


def in_order(value: Slices, indices: Sequence[str]) -> Array:
    """A value's array, with its dimensions in the order of some indices, all that it has."""
    if value.indices == indices:
        return value.array
    return np.transpose(value.array, (0, *(value.axis(index) for index in indices)))


def cut(table: Array, indices: Sequence[str], where: Mapping[str, Array]) -> Slices:
    """Each device's slice of a whole value; 0 where it has no such position."""
    at, beyond = [], []
    for dimension, (index, size) in enumerate(zip(indices, table.shape, strict=True), 1):
        shape = [1] * (1 + table.ndim)
        shape[0], shape[dimension] = where[index].shape
        places = where[index].reshape(shape)
        if (outside := places >= size).any():
            beyond.append(outside)
            places = np.minimum(places, size - 1)
        at.append(places)
    devices = len(next(iter(where.values())))
    found = table[tuple(at)] if at else np.broadcast_to(table, devices)
    for outside in beyond:
        found = np.where(outside, 0, found)
    return Slices(tuple(indices), found, {i: where[i] for i in indices})


def _names(program: Program) -> Iterator[tuple[str, str]]:
    """Indices, each with one that is cut as it is: its other name, or what it and others become."""
    for line in program.part.operations:
        olds, news = [old for old, _ in line.renamed], [new for _, new in line.renamed]
        for old, new in line.renamed:
            if olds.count(old) == 1:
                yield old, new
                if news.count(new) == 1:
                    yield new, old


class Grid:
    """How a mesh cuts indices: each in as many cells as the axes that ever cut it have devices.

    Cells are consecutive, nested in the order of the axes; or, of an index that has one, in another of
    `orders`. A device has those cells of an index that are its own along the axes that cut a value.
    """

    def __init__(
        self,
        programs: Iterable[Program],
        mesh: Mapping[str, int],
        sizes: Mapping[str, int],
        orders: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self.sizes = sizes
        self.known: dict[tuple[str, tuple[tuple[str, int], ...]], Array] = {}  # positions
        programs = tuple(programs)
        names = tuple(axis.name for axis in programs[0].axes)
        self.weighing = {axis.name for axis in programs[0].axes if axis.weight_indices}
        self.rings = {axis.turns: axis.name for axis in programs[0].axes if axis.ring}
        self.cluster = Cluster(tuple((name, mesh[name]) for name in names))
        found: dict[str, set[str]] = {index: set() for index in sizes}
        for program in programs:
            for lies in program.lies.values():
                for axis, lie in lies.items():
                    if lie.layout is Layout.SHARDED:
                        found[lie.index].add(self.rings.get(axis, axis))
        self.cut_slots = {*found.get("c", ())}
        pairs = {pair for program in programs for pair in _names(program)}
        for _ in pairs:  # each name hands on to the next what cuts it
            for old, new in pairs:
                found[new] |= found[old]
        self.cuts = {
            index: tuple(axis for axis in orders.get(index, names) if axis in axes)
            for index, axes in found.items()
        }
        if "c" in sizes:  # a cell has as many slots of each expert, some of them empty
            self.sizes = {**sizes, "c": prod(self.counts("c")) * self.chunk("c")}

    def counts(self, index: str) -> tuple[int, ...]:
        """In how many parts each axis cuts an index."""
        return tuple(self.cluster.sizes[axis] for axis in self.cuts[index])

    def chunk(self, index: str) -> int:
        """Positions in a cell; the last ones may be padding."""
        return -(-self.sizes[index] // prod(self.counts(index)))

    def owner(self, index: str, axis: str, positions: Array) -> Array:
        """The coordinate, along an axis that cuts the index, of the devices that have a position."""
        cells = np.unravel_index(positions // self.chunk(index), self.counts(index))
        return np.asarray(cells[self.cuts[index].index(axis)])

    def positions(self, index: str, axes: Iterable[str], turn: Mapping[str, int] = ONCE) -> Array:
        """Of an index that some axes cut, on each device (devices, n); where turns do, in that `turn`.

        In its first turn a device has its own slice, then that of the device before it, and so on. What
        no axis cuts has no padding.
        """
        turns = tuple((name, turn.get(name, 0)) for name in axes)
        if (index, turns) not in self.known:
            self.known[index, turns] = self._positions(index, turns)
            self.known[index, turns].setflags(write=False)
        return self.known[index, turns]

    def _positions(self, index: str, axes: tuple[tuple[str, int], ...]) -> Array:
        """The same, of axes that each have a turn."""
        if not axes:
            every = np.arange(self.sizes[index])
            return np.broadcast_to(every, (self.cluster.devices, len(every)))
        every = np.arange(prod(self.counts(index)) * self.chunk(index))
        own = np.ones((self.cluster.devices, len(every)), bool)
        for name, turn in axes:
            axis = self.rings.get(name, name)
            owner = (self.cluster.coordinates[axis] - turn) % self.cluster.sizes[axis]
            own &= self.owner(index, axis, every) == owner[:, None]
        return np.broadcast_to(every, own.shape)[own].reshape(len(own), -1)

    def where(
        self, indices: Iterable[str], lies: Lies, turn: Mapping[str, int] = ONCE
    ) -> dict[str, Array]:
        """The positions of a value that lies so."""
        return {
            index: self.positions(
                index, [axis for axis, lie in lies.items() if lie.index == index], turn
            )
            for index in indices
        }

    def cells(self) -> list[Cell]:
        """The tokens of each cell of slots, in order.

        They meet along axes that cut weights: along those of experts first, then along others. First of
        all do those of one device, of whose tokens something else is cut.
        """
        meet = [axis for axis in self.cuts["c"] if axis in self.weighing or axis not in self.cut_slots]
        meet.sort(key=lambda axis: (axis not in self.cut_slots, axis in self.cuts["e"]))
        found = []
        for cell in np.ndindex(self.counts("c")):
            at, before = dict(zip(self.cuts["c"], cell, strict=True)), 0
            for axis in meet:
                before = before * self.cluster.sizes[axis] + at[axis]
            found.append(Cell(self._of(at, "b"), self._of(at, "s"), before))
        return found

    def _of(self, at: Mapping[str, int], index: str) -> Array:
        every = np.arange(self.sizes[index])
        own = np.ones(len(every), bool)
        for axis in (axis for axis in self.cuts[index] if axis in at):
            own &= self.owner(index, axis, every) == at[axis]
        return every[own]
