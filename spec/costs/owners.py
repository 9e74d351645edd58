"""Whole weights with one owner each, in place of equal slices: what devices hold of them, and send.

Each weight is updated by its owner, which sends it to the others. Along a ring every chunk passes all
devices but one: a sum ends at its owner, and what is gathered ends before the device that it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise, product
from math import prod

from spec.devices.mesh import Axes, Device
from spec.numbers.arithmetic import Number, quotient


@dataclass(frozen=True)
class AlikeOwners:
    """So many devices in a row, each of which owns as many weights of each size."""

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
    one that is asked about; none: who has, or sends, most.
    """

    mesh: Mapping[str, int]
    rows: tuple[AlikeOwners, ...]
    fills: bool = False
    device: Device = field(default_factory=dict)

    def has_slices_along(self, axes: Axes) -> bool:
        """Whether what lies in slices along some axes is weights of owners."""
        return not self.mesh.keys().isdisjoint(axes)

    @property
    def count(self) -> int:
        """How many weights a device owns: the first of those that have most elements."""
        if not self.device:
            return max(self.rows, key=lambda row: row.elements).count
        return int(self._of_slice(self.device, tuple(self.mesh), lambda row: row.count))

    def slice_elements(self, axes: Axes) -> Number:
        """Elements of a slice along some axes."""
        return self._most(lambda at: self._elements(at, axes))

    def sent_to_scatter(self, axes: Axes, within: Axes) -> Number:
        """Elements sent while slices are summed, each to those who own it along some axes."""
        return self._most(lambda at: self._elements(at, within) - self._elements(at, within + axes))

    def sent_to_gather(self, axes: Axes, within: Axes) -> Number:
        """Elements sent while each slice goes from those who own it along some axes to the others."""
        along = {axis: n for axis, n in self.mesh.items() if axis in axes}
        in_all: dict[tuple[int, ...], Number] = {}

        def sent_of(at: Device) -> Number:
            return max(self._elements(at, within + axes), int(self.fills))

        def sent(at: Device) -> Number:
            group = tuple(n for axis, n in at.items() if axis in within)
            if group not in in_all:
                each = self._alike(tuple(along))
                in_all[group] = sum(times * sent_of({**at, **there}) for there, times in each)
            return in_all[group] - sent_of({**at, **_next(at, along)})

        return self._most(sent)

    def sent_to_sum(self, devices: Number, within: Axes) -> Number:
        """Elements sent while a slice is summed over devices that all have it, weight by weight."""

        def sent(row: AlikeOwners) -> Number:
            each = row.weight_sizes.items()
            return sum(times * 2 * (devices - 1) * quotient(size, devices) for size, times in each)

        return self._most(lambda at: self._of_slice(at, within, sent))

    def _most(self, of: Callable[[Device], Number]) -> Number:
        if self.device:
            return of(self.device)
        return max(of(place) for place, _ in self._alike(tuple(self.mesh)))

    def _elements(self, at: Device, axes: Axes) -> Number:
        """Elements of the slice that a device has along some axes."""
        return self._of_slice(at, axes, lambda row: row.elements)

    def _of_slice(self, at: Device, axes: Axes, of: Callable[[AlikeOwners], Number]) -> Number:
        """The sum over the owners of the slice that a device has along some axes."""
        where = tuple((axis, at[axis]) for axis in self.mesh if axis in axes)
        if where not in self._known:
            before = [self._owners_before(end, at, axes) for end in (0, *self._ends)]
            owners = zip(self.rows, pairwise(before), strict=True)
            self._known[where] = [(row, ends) for row, ends in owners if ends[0] < ends[1]]
        return sum((there - others) * of(row) for row, (others, there) in self._known[where])

    @cached_property
    def _known(self) -> dict[tuple[tuple[str, int], ...], list[tuple[AlikeOwners, tuple[int, int]]]]:
        """Where slices are along axes: rows with owners of it, how many up to a row and to its end."""
        return {}

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """How many devices there are up to the end of each row."""
        return tuple(accumulate(row.devices for row in self.rows))

    def _owners_before(self, end: int, at: Device, axes: Axes) -> int:
        """How many of the first devices are where one is along some axes."""
        found, left, inner = 0, end, prod(self.mesh.values())
        alike = prod(size for axis, size in self.mesh.items() if axis not in axes)
        for axis, size in self.mesh.items():
            inner //= size
            place, left = divmod(left, inner)
            if axis not in axes:
                alike //= size
                found += place * alike
            elif at[axis] != place:
                return found + (alike if at[axis] < place else 0)
        return found

    def _alike(self, axes: Axes) -> Iterator[tuple[dict[str, int], int]]:
        """Places along some axes, and how many from each on are alike: they have, and send, as much."""
        here = [axis for axis in self.mesh if axis in axes]
        for each in product(*map(self._places, here)):
            yield {a: place for a, (place, _) in zip(here, each, strict=True)}, prod(n for _, n in each)

    def _places(self, axis: str) -> list[tuple[int, int]]:
        """The same along one axis: a row's end has a place of its own, and so have those beside it."""
        size, every = self.mesh[axis], [*self.mesh]
        inner = prod(self.mesh[other] for other in every[every.index(axis) + 1 :])
        firsts = {(end // inner + beside) % size for end in self._ends for beside in (-1, 0, 1)}
        return [(first, after - first) for first, after in pairwise((*sorted(firsts), size))]


def _next(at: Device, along: Mapping[str, int]) -> dict[str, int]:
    """The device after one, of a group along some axes; after the last the first."""
    found, carried = dict[str, int](), 1
    for axis, size in reversed([*along.items()]):
        carried, found[axis] = divmod(at[axis] + carried, size)
    return found
