"""What each device of a mesh has of a value: its own array, and its positions of each index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import numpy as np

from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.layout import Cluster
from psem_model.simulator.tables import Cell
from spec.devices.layouts import Layout, Lies
from spec.language.programs import Program

FOLLOWS = {"u": ("s",), "c": ("b", "s")}  # keys are tokens, and so are slots: cut as those are


ONCE: Mapping[str, int] = MappingProxyType({})  # in no loop


@dataclass(frozen=True)
class Slices:
    """`array` (devices, ...) has a dimension for each index; `where[index]` (devices, n): positions.

    A position that the whole value does not have is padding. `width`: bytes that training gives an
    element, whatever the array's numbers are; it goes where the array goes.
    """

    indices: tuple[str, ...]
    array: Array
    where: Mapping[str, Array]
    width: Number = 0

    @property
    def bytes(self) -> Number:
        """On each device, with padding."""
        return self.elements * self.width

    @property
    def elements(self) -> int:
        """How many each device has, with padding."""
        return int(self.array[0].size)

    def axis(self, index: str) -> int:
        """The array's dimension of an index."""
        return 1 + self.indices.index(index)


def take(array: Array, dimension: int, places: Array) -> Array:
    """What each device has at its own places (devices, n) along a dimension."""
    shape = [1] * array.ndim
    shape[0], shape[dimension] = places.shape
    return np.take_along_axis(array, places.reshape(shape), dimension)


def cut(table: Array, indices: Sequence[str], where: Mapping[str, Array]) -> Slices:
    """Each device's slice of a whole value; 0 where it has no such position."""
    found = table[None]
    devices = len(next(iter(where.values())))
    found = np.broadcast_to(found, (devices, *table.shape))
    for dimension, index in enumerate(indices, 1):
        size, places = found.shape[dimension], where[index]
        found = take(found, dimension, np.minimum(places, size - 1))
        if (places >= size).any():
            shape = [1] * found.ndim
            shape[0], shape[dimension] = places.shape
            found = np.where((places < size).reshape(shape), found, 0)
    return Slices(tuple(indices), found, {i: where[i] for i in indices})


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
        programs = tuple(programs)
        names = tuple(axis.name for axis in programs[0].axes)
        self.rings = {axis.turns: axis.name for axis in programs[0].axes if axis.ring}
        self.cluster = Cluster(tuple((name, mesh[name]) for name in names))
        found: dict[str, set[str]] = {index: set() for index in sizes}
        for program in programs:
            for lies in program.lies.values():
                for axis, lie in lies.items():
                    if lie.layout is Layout.SHARDED:
                        found[lie.index].add(self.rings.get(axis, axis))
        for index, others in FOLLOWS.items():
            found[index] = found[index].union(*(found[i] for i in others))
        self.cuts = {
            index: tuple(axis for axis in orders.get(index, names) if axis in axes)
            for index, axes in found.items()
        }

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
        axes = tuple(axes)
        if not axes:
            every = np.arange(self.sizes[index])
            return np.broadcast_to(every, (self.cluster.devices, len(every)))
        every = np.arange(prod(self.counts(index)) * self.chunk(index))
        own = np.ones((self.cluster.devices, len(every)), bool)
        for name in axes:
            axis = self.rings.get(name, name)
            owner = (self.cluster.coordinates[axis] - turn.get(name, 0)) % self.cluster.sizes[axis]
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
        """The tokens of each cell of slots, in order."""
        found = []
        for cell in np.ndindex(self.counts("c")):
            at = dict(zip(self.cuts["c"], cell, strict=True))
            found.append((self._of(at, "b"), self._of(at, "s")))
        return found

    def _of(self, at: Mapping[str, int], index: str) -> Array:
        every = np.arange(self.sizes[index])
        own = np.ones(len(every), bool)
        for axis in self.cuts[index]:
            own &= self.owner(index, axis, every) == at[axis]
        return every[own]
