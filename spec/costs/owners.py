"""What has one owner, in place of equal slices of each unit: what devices hold of it, and send.

Whole weights, or slices of all units as one vector: each is updated by its owner, which sends it to
the others. Along a ring every chunk passes all devices but one: a sum ends at its owner, and what is
gathered ends before the device that it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import prod
from operator import add, sub

from spec.devices.mesh import Axes, Device
from spec.numbers.arithmetic import Number, quotient

# A number of each device: along the outermost axis, so many in a row that are alike; of each of them
# the same along the axes that are left; where none is, the number.
Grid = Number | tuple[tuple[int, "Grid"], ...]


@dataclass(frozen=True)
class AlikeOwners:
    """So many devices in a row, each of which owns as many weights, or parts of units, of each size."""

    weight_sizes: Mapping[Number, int]
    devices: int = 1

    @cached_property
    def elements(self) -> Number:
        """Elements that each owns."""
        return sum(size * times for size, times in self.weight_sizes.items())

    @property
    def count(self) -> int:
        """How many weights each owns."""
        return sum(self.weight_sizes.values())


@dataclass(frozen=True)
class Owners:
    """`mesh`: the axes along which owners are, the outer one first.

    `rows`: all devices, in order. `fills`: who has none sends an element in their place. `device`: the
    one that is asked about; none: who has, or sends, most. `slice`: of one vector, the elements of a
    slice, with padding, which rests, and is gathered.
    """

    mesh: Mapping[str, int]
    rows: tuple[AlikeOwners, ...]
    fills: bool = False
    device: Device = field(default_factory=dict)
    slice: Number | None = None

    def has_slices_along(self, axes: Axes) -> bool:
        """Whether what lies in slices along some axes is weights of owners."""
        return not self.mesh.keys().isdisjoint(axes)

    @property
    def count(self) -> int:
        """How many weights a device owns, a slice as one: the first of those with most elements."""
        if self.slice is not None:
            return 1
        if not self.device:
            return max(self.rows, key=lambda row: row.elements).count
        return int(self._most(self._of_slices(tuple(self.mesh), lambda row: row.count)))

    def padding_of(self, psi: Number) -> Number:
        """Elements of padding of all slices of one vector of so many."""
        return 0 if self.slice is None else prod(self.mesh.values()) * self.slice - psi

    def slice_elements(self, axes: Axes) -> Number:
        """Elements of a slice along some axes, with padding."""
        return self._most(self._of_slices(axes, self._padded))

    def sent_to_scatter(self, axes: Axes, within: Axes) -> Number:
        """Elements sent while slices are summed, each to those who own it along some axes."""
        return self._most(_each(sub, self._elements(within), self._elements(within + axes)))

    def sent_to_gather(self, axes: Axes, within: Axes) -> Number:
        """Elements sent while each slice goes from those who own it along some axes to the others."""
        own = _each(max, self._of_slices(within + axes, self._padded), int(self.fills))
        in_all = self._summed(own, tuple(axis for axis in self.mesh if axis not in axes))
        if not self.device:
            return self._most(_each(sub, in_all, own))
        along = {axis: size for axis, size in self.mesh.items() if axis in axes}
        after = {**self.device, **_next(self.device, along)}
        return self._at(in_all, self.device) - self._at(own, after)

    def sent_to_sum(self, devices: Number, within: Axes) -> Number:
        """Elements sent while a slice is summed over devices that all have it, weight by weight."""

        def sent(row: AlikeOwners) -> Number:
            each = row.weight_sizes.items()
            return sum(times * 2 * (devices - 1) * quotient(size, devices) for size, times in each)

        return self._most(self._of_slices(within, sent))

    def _most(self, grid: Grid) -> Number:
        return self._at(grid, self.device) if self.device else _largest(grid)

    def _at(self, grid: Grid, device: Device) -> Number:
        """The number of one device."""
        for axis in self.mesh:
            assert isinstance(grid, tuple)
            place = device[axis]
            for times, each in grid:
                if place < times:
                    grid = each
                    break
                place -= times
        assert not isinstance(grid, tuple)
        return grid

    def _padded(self, row: AlikeOwners) -> Number:
        return row.elements if self.slice is None else self.slice

    def _elements(self, axes: Axes) -> Grid:
        """Elements of the slice that each device has along some axes."""
        return self._of_slices(axes, lambda row: row.elements)

    def _of_slices(self, axes: Axes, of: Callable[[AlikeOwners], Number]) -> Grid:
        """The sums over the owners of the slice that each device has along some axes."""
        grid: Grid = tuple((row.devices, of(row)) for row in self.rows)
        for size in [*self.mesh.values()][:0:-1]:
            grid = _lines(grid, size)
        return self._summed(grid, axes)

    def _summed(self, grid: Grid, apart: Axes) -> Grid:
        """On each device the sum over those that are where it is along some axes."""
        return _summed(grid, [(size, axis in apart) for axis, size in self.mesh.items()])


def _lines(runs: Iterable[tuple[int, Grid]], size: int) -> tuple[tuple[int, Grid], ...]:
    """What devices have in a row, as lines of so many: those in a row that are alike, as one."""
    found, line, left = list[tuple[int, Grid]](), list[tuple[int, Grid]](), size
    for devices, each in runs:
        while devices:
            alike = devices // size if left == size else 0
            if alike:
                found.append((alike, ((size, each),)))
                devices -= alike * size
                continue
            first = min(devices, left)
            line.append((first, each))
            devices, left = devices - first, left - first
            if not left:
                found.append((1, tuple(line)))
                line, left = [], size
    return tuple(found)


def _each(of: Callable[[Number, Number], Number], one: Grid, other: Grid) -> Grid:
    """A function of two numbers of each device; one number may be all devices'."""
    if not isinstance(one, tuple):
        assert not isinstance(other, tuple)
        return of(one, other)
    if not isinstance(other, tuple):
        return tuple((times, _each(of, each, other)) for times, each in one)
    found, others, left, beside = list[tuple[int, Grid]](), iter(other), 0, other[0][1]
    for times, each in one:
        while times:
            if not left:
                left, beside = next(others)
            both = min(times, left)
            found.append((both, _each(of, each, beside)))
            times, left = times - both, left - both
    return tuple(found)


def _times(grid: Grid, count: int) -> Grid:
    if isinstance(grid, tuple):
        return tuple((times, _times(each, count)) for times, each in grid)
    return count * grid


def _summed(grid: Grid, axes: Sequence[tuple[int, bool]]) -> Grid:
    """Along each axis, of so many devices, the numbers as they are, or of each device their sum."""
    if not isinstance(grid, tuple):
        return grid
    (size, is_apart), *others = axes
    lines = tuple((times, _summed(each, others)) for times, each in grid)
    if is_apart:
        return lines
    total = reduce(lambda one, other: _each(add, one, other), (_times(each, n) for n, each in lines))
    return ((size, total),)


def _largest(grid: Grid) -> Number:
    return max(_largest(each) for _, each in grid) if isinstance(grid, tuple) else grid


def _next(at: Device, along: Mapping[str, int]) -> dict[str, int]:
    """The device after one, of a group along some axes; after the last the first."""
    found, carried = dict[str, int](), 1
    for axis, size in reversed([*along.items()]):
        carried, found[axis] = divmod(at[axis] + carried, size)
    return found
