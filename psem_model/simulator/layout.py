"""Where elements are: the devices and their groups, and how a unit is cut into slices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from psem_model.simulator.arithmetic import Arithmetic, Array, Poison

# A slice: for each axis it is cut along, how far it is from the device's own. () is everything.
Slice = tuple[tuple[str, int], ...]


def meet(a: Slice, b: Slice) -> Slice | None:
    """What is in both slices; None if nothing is."""
    both = {**dict(a), **dict(b)}
    if any(both[axis] != shift for axis, shift in a):
        return None
    return a if len(both) == len(a) else tuple(sorted(both.items()))


def covers(a: Slice, b: Slice) -> bool:
    """Whether all of `b` is in `a`."""
    return not a or a == b or set(a) <= set(b)


def common(a: Slice, b: Slice) -> Slice:
    """The smallest slice that both are in."""
    return tuple(part for part in a if part in b)


@dataclass(frozen=True)
class Group:
    """For each device, the devices that differ from it along some axes only.

    `position` (devices,): its place among them; `members` (devices, size): who they are, in order.
    """

    size: int
    position: Array
    members: Array

    @cached_property
    def devices(self) -> Array:
        return np.arange(len(self.position))

    def other(self, places: int) -> Array:
        """For each device, the member that many places further on."""
        return np.asarray(self.members[self.devices, (self.position + places) % self.size])

    @cached_property
    def previous(self) -> Array:
        return self.other(-1)


class Cluster:
    """A mesh of devices, numbered in row-major order over its axes."""

    def __init__(self, mesh: tuple[tuple[str, int], ...]) -> None:
        self.sizes = dict(mesh)
        self.names, self.shape = tuple(self.sizes), tuple(self.sizes.values())
        self.devices = prod(self.shape)
        grid = np.indices(self.shape).reshape(len(self.shape), self.devices)
        self.coordinates: dict[str, Array] = dict(zip(self.names, grid, strict=True))
        self._groups: dict[tuple[str, ...], Group] = {}

    def coordinate(self, device: int) -> tuple[int, ...]:
        """Where the device of a number is, along each axis."""
        return tuple(int(n) for n in np.unravel_index(device, self.shape))

    def along(self, axes: Iterable[str]) -> tuple[str, ...]:
        """The axes of more than one device, in the mesh's order."""
        return tuple(a for a in self.names if a in axes and self.sizes[a] > 1)

    def group(self, axes: Iterable[str]) -> Group:
        """The groups along some axes."""
        key = self.along(axes)
        if key not in self._groups:
            sizes = tuple(self.sizes[a] for a in key)
            strides = [prod(self.shape[self.names.index(a) + 1 :]) for a in key]
            position, base = np.zeros(self.devices, np.int64), np.arange(self.devices)
            for axis, stride in zip(key, strides, strict=True):
                position = position * self.sizes[axis] + self.coordinates[axis]
                base = base - self.coordinates[axis] * stride
            places = np.indices(sizes).reshape(len(key), prod(sizes))
            offsets = sum((s * p for s, p in zip(strides, places, strict=True)), np.zeros(1, np.int64))
            self._groups[key] = Group(prod(sizes), position, base[:, None] + offsets)
        return self._groups[key]

    def total(self, values: Array, axes: Iterable[str], arithmetic: Arithmetic) -> Array:
        """The sums of `values` (devices, ...) over the groups along some axes, on each device."""
        where = tuple(self.names.index(a) for a in self.along(axes))
        if not where:
            return values
        grid = values.reshape(*self.shape, *values.shape[1:])
        sums = np.broadcast_to(arithmetic.total(grid, where, keepdims=True), grid.shape)
        return sums.reshape(values.shape)


@dataclass(frozen=True)
class _Places:
    """Where the elements of one slice are in the rows that hold another."""

    rows: Array
    columns: Array
    valid: Array | None  # None: all of them are held
    known: bool  # whether what is not held is padding


Vector = tuple[int, int]  # elements, in rows of so many


class Layout:
    """A unit of `length` elements, cut on a grid of cells along the axes in `cut`.

    Rows that hold a slice have its cells in row-major order, each padded to `chunk` elements. Rows
    that hold everything have `length` elements in order, and padding after them if they were gathered.
    A unit is a vector, or several, each with rows of its own: a cell has whole rows of each. Or it has
    whole vectors: `owners`, the cell that each is in; then `chunk` is that of the longest cell, or of
    a `room` that each has. `padding`: elements that cells have beside, of this unit and others.
    """

    def __init__(
        self,
        cluster: Cluster,
        cut: tuple[str, ...],
        *vectors: Vector,
        owners: tuple[int, ...] = (),
        room: int | None = None,
        padding: tuple[int, ...] = (),
    ) -> None:
        self.cluster, self.length = cluster, sum(length for length, _ in vectors)
        self.vectors, self.owners, self.room = vectors, owners, room
        self.cut = tuple(a for a in cluster.names if a in cut)
        self.sizes = tuple(cluster.sizes[a] for a in self.cut)
        cells = prod(self.sizes)
        if owners:
            lengths = [length for length, _ in vectors]
            longest = int(np.bincount(owners, weights=lengths, minlength=cells).max())
            self.chunk = longest if room is None else min(room, self.length)
            self.slots = _slots_of_owners(vectors, owners, cells, self.chunk)
        else:
            chunks = [-(-length // (cells * row)) * row for length, row in vectors]
            self.chunk = sum(chunks)
            self.slots = _slots(vectors, chunks, cells)
        self.padding = np.array(padding or [0] * cells)
        self.padded = cells * self.chunk
        self.slot_of = np.argsort(self.slots)
        self._places: dict[tuple[Slice, Slice, int], _Places] = {}
        self._elements: dict[Slice, Array] = {}
        self._slices: dict[tuple[tuple[str, ...], int], Slice] = {}

    def slice(self, axes: tuple[str, ...], shift: int = 0) -> Slice:
        """Each device's slice along some axes, or of the device `shift` places further on."""
        key = (axes, shift)
        if key not in self._slices:
            found = ((a, shift % self.cluster.sizes[a]) for a in self.cut if a in axes)
            self._slices[key] = tuple(sorted(found))
        return self._slices[key]

    def size(self, held: Slice) -> int:
        """Elements in a row that holds a slice."""
        if not held:
            return self.length
        return self.padded // prod(self.cluster.sizes[a] for a, _ in held)

    def most(self, held: Slice) -> int | None:
        """Elements that there is room for in slices of all units, if these are one vector."""
        cells = prod(self.cluster.sizes[a] for a in self.cut if a not in dict(held))
        return None if self.room is None or not held else cells * self.room

    def known(self, held: Slice) -> Array:
        """How many elements a slice has on each device (devices,), without padding."""
        return np.asarray((self.elements(held) < self.length).sum(1))

    def rests(self, held: Slice) -> Array:
        """The same, with the padding that rests there, and is gathered from there."""
        return np.asarray(self.known(held) + self.padding[self._cells(held)].sum(1))

    def in_parts(self, held: Slice, parts: int) -> Array:
        """Elements of one of so many parts of each vector that is in a slice (devices,)."""
        ends = np.cumsum([length for length, _ in self.vectors])
        first = ends - [length for length, _ in self.vectors]  # of each vector, its first element
        here = (self.elements(held)[:, :, None] == first).any(1)
        return np.asarray(here @ [-(-length // parts) for length, _ in self.vectors])

    def elements(self, held: Slice) -> Array:
        """Which elements a slice has on each device (devices, size); padding is `length` or more."""
        if not held:
            return np.broadcast_to(np.arange(self.length), (self.cluster.devices, self.length))
        if held not in self._elements:
            places = self._cells(held)[:, :, None] * self.chunk + np.arange(self.chunk)
            self._elements[held] = self.slots[places.reshape(len(places), -1)]
        return self._elements[held]

    def _cells(self, held: Slice) -> Array:
        """The cells of a slice on each device (devices, cells)."""
        shifts, d = dict(held), self.cluster.devices
        free = [a for a in self.cut if a not in shifts]
        cell = np.zeros((d, *(1 for _ in free)), np.int64)
        for axis, n in zip(self.cut, self.sizes, strict=True):
            shape = [1] * (1 + len(free))
            if axis in shifts:
                shape[0] = d
                coordinate = (self.cluster.coordinates[axis] + shifts[axis]) % n
            else:
                shape[1 + free.index(axis)] = n
                coordinate = np.arange(n)
            cell = cell * n + coordinate.reshape(shape)
        return cell.reshape(d, -1)

    def _find(self, held: Slice, wanted: Slice, room: int) -> _Places:
        """Where rows of `room` elements, which hold one slice, have those of another."""
        key = (held, wanted, room)
        if key not in self._places:
            shifts = dict(held)
            element = self.elements(wanted)
            slot, valid = self.slot_of[element], element < self.length
            cell, place = np.divmod(slot, self.chunk)
            padding = ~valid
            rank, stride = np.zeros_like(cell), 1
            for axis, n in zip(reversed(self.cut), reversed(self.sizes), strict=True):
                cell, coordinate = np.divmod(cell, n)
                if axis in shifts:
                    own = (self.cluster.coordinates[axis] + shifts[axis]) % n
                    valid = valid & (coordinate == own[:, None])
                else:
                    rank, stride = rank + coordinate * stride, stride * n
            columns = rank * self.chunk + place if held else element
            rows = np.arange(self.cluster.devices)[:, None]
            if valid.all():
                self._places[key] = _Places(rows, columns, None, True)
            else:
                rows = np.broadcast_to(rows, valid.shape)[valid]
                known = bool((valid | padding).all())
                self._places[key] = _Places(rows, columns[valid], valid, known)
        return self._places[key]

    def unknown(self, parts: int, held: Slice, poison: Poison) -> Array:
        """A slice (parts, devices, size) of which nothing is known, but that padding is zero."""
        real = self.elements(held) < self.length
        rows = poison.arithmetic.zeros((parts, *real.shape))
        rows[:, real] = poison(parts, int(real.sum()))
        return rows

    def take(self, array: Array, held: Slice, wanted: Slice, poison: Poison) -> Array:
        """The elements of one slice from rows (parts, devices, room) that hold another.

        What they do not hold is not known. A view where both are the same.
        """
        if held == wanted:
            return array[..., : self.size(wanted)]
        found = self._find(held, wanted, array.shape[-1])
        if found.valid is None:
            return np.asarray(array[:, found.rows, found.columns])
        if found.known:
            taken = np.zeros((len(array), *found.valid.shape), array.dtype)
        else:
            taken = self.unknown(len(array), wanted, poison)
        taken[:, found.valid] = array[:, found.rows, found.columns]
        return taken

    def put(self, array: Array, held: Slice, part: Slice, values: Array) -> None:
        """Write the elements of a slice into rows that hold it, and maybe more."""
        if held == part:
            room = min(array.shape[-1], values.shape[-1])
            array[..., :room] = values[..., :room]
            return
        found = self._find(held, part, array.shape[-1])
        array[:, found.rows, found.columns] = values if found.valid is None else values[:, found.valid]

    def forget(self, array: Array, held: Slice, part: Slice, poison: Poison) -> None:
        """Nothing is known of a slice any more, as far as the rows hold it."""
        both = meet(held, part)
        if both is not None:
            self.put(array, held, both, self.unknown(len(array), both, poison))

    def split(self, rows: Array, held: Slice, axes: Iterable[str], shift: int = 0) -> Array:
        """Rows (parts, devices, room) as chunks (parts, devices, n, size), by cells along `axes`.

        Chunk i is what the i-th device of a group along `axes` owns, `shift` places further on.
        Raises ValueError if a row is longer than its cells.
        """
        room = self.padded if not held else self.size(held)
        if rows.shape[-1] < room:
            padded = np.zeros((*rows.shape[:-1], room), rows.dtype)
            padded[..., : rows.shape[-1]] = rows
            rows = padded
        rows = rows if held else rows[..., self.slots]
        free, first = self._free(held, axes)
        grid = rows.reshape(*rows.shape[:2], *(self.cluster.sizes[a] for a in free), self.chunk)
        if shift:
            grid = np.roll(grid, [-shift] * len(first), [2 + i for i in first])
        if first != [*range(len(first))]:
            grid = np.moveaxis(grid, [2 + i for i in first], range(2, 2 + len(first)))
        n = prod(self.cluster.sizes[free[i]] for i in first)
        return grid.reshape(*rows.shape[:2], n, room // n)

    def join(self, chunks: Array, held: Slice, axes: Iterable[str], shift: int = 0) -> Array:
        """The rows that `split` gives such chunks of."""
        free, first = self._free(held, axes)
        order = first + [i for i in range(len(free)) if i not in first]
        sizes = [self.cluster.sizes[free[i]] for i in order]
        grid = chunks.reshape(*chunks.shape[:2], *sizes, self.chunk)
        if order != sorted(order):
            grid = np.moveaxis(grid, range(2, 2 + len(first)), [2 + i for i in first])
        if shift:
            grid = np.roll(grid, [shift] * len(first), [2 + i for i in first])
        rows = grid.reshape(*chunks.shape[:2], -1)
        return rows if held else rows[..., self.slot_of]

    def cut_cells(self, chunks: Array, pieces: int) -> Array:
        """Chunks (parts, devices, n, size) with every cell cut in padded pieces, each in its chunk.

        Returns (parts, devices, n * pieces, size).
        """
        size = -(-self.chunk // pieces)
        cells = chunks.reshape(*chunks.shape[:3], -1, self.chunk)
        padded = np.zeros((*cells.shape[:4], pieces * size), chunks.dtype)
        padded[..., : self.chunk] = cells
        grid = np.moveaxis(padded.reshape(*cells.shape[:4], pieces, size), 4, 3)
        return grid.reshape(*chunks.shape[:2], chunks.shape[2] * pieces, -1)

    def join_cells(self, pieces: Array, shape: tuple[int, ...]) -> Array:
        """The chunks, of some shape, that `cut_cells` makes such pieces of."""
        many = pieces.shape[2] // shape[2]
        size = -(-self.chunk // many)
        grid = np.moveaxis(pieces.reshape(*shape[:3], many, -1, size), 3, 4)
        return grid.reshape(*shape[:3], -1, many * size)[..., : self.chunk].reshape(shape)

    def _free(self, held: Slice, axes: Iterable[str]) -> tuple[list[str], list[int]]:
        """The axes that a slice is not cut along, and which of them are in `axes`."""
        fixed = dict(held)
        free = [a for a in self.cut if a not in fixed]
        return free, [i for i, a in enumerate(free) if a in axes]


@lru_cache(maxsize=32)
def cluster_of(mesh: tuple[tuple[str, int], ...]) -> Cluster:
    """The devices of a mesh, with the tables made for it before."""
    return Cluster(mesh)


@lru_cache(maxsize=64)
def layout_of(
    cluster: Cluster,
    cut: tuple[str, ...],
    *vectors: Vector,
    owners: tuple[int, ...] = (),
    room: int | None = None,
    padding: tuple[int, ...] = (),
) -> Layout:
    """How a unit is cut, with the tables made for it before."""
    return Layout(cluster, cut, *vectors, owners=owners, room=room, padding=padding)


def _slots(vectors: Iterable[Vector], chunks: Iterable[int], cells: int) -> Array:
    """The element in each place of all cells, one after the other; padding has the last numbers."""
    found, start = [], 0
    for (length, _), chunk in zip(vectors, chunks, strict=True):
        places = np.arange(cells * chunk).reshape(cells, chunk)
        found.append(np.where(places < length, start + places, -1))
        start += length
    return _with_padding(np.concatenate(found, 1).reshape(-1), start)


def _slots_of_owners(vectors: Iterable[Vector], owners: Iterable[int], cells: int, chunk: int) -> Array:
    """The same, if each vector is in one cell."""
    found, ends, start = np.full((cells, chunk), -1), [0] * cells, 0
    for (length, _), cell in zip(vectors, owners, strict=True):
        found[cell, ends[cell] : ends[cell] + length] = start + np.arange(length)
        ends[cell] += length
        start += length
    return _with_padding(found.reshape(-1), start)


def _with_padding(slots: Array, first: int) -> Array:
    """Places without an element, numbered from the first number that no element has."""
    padding = slots < 0
    slots[padding] = first + np.arange(int(padding.sum()))
    return slots
