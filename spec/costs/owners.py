"""Whole weights with one owner each, in place of equal slices: what devices hold of them, and send.

Each weight is updated by its owner, which sends it to the others. Along a ring every chunk passes all
devices but one: a sum ends at its owner, and what is gathered ends before the device that it is from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from spec.devices.mesh import Axes, Device
from spec.numbers.arithmetic import Number, quotient

_Slice = tuple[int, ...]  # where its owners are, along some axes


@dataclass(frozen=True)
class Owners:
    """`mesh`: the axes along which owners are, the outer one first.

    `weight_sizes`: device by device, how many weights of each size it owns. `fills`: who has none sends
    an element in their place. `device`: the one that is asked about; none: who has, or sends, most.
    """

    mesh: Mapping[str, int]
    weight_sizes: tuple[Mapping[Number, int], ...]
    fills: bool = False
    device: Device = field(default_factory=dict)

    def has_slices_along(self, axes: Axes) -> bool:
        """Whether what lies in slices along some axes is weights of owners."""
        return not self.mesh.keys().isdisjoint(axes)

    @property
    def count(self) -> int:
        """How many weights a device owns: the first of those that have most elements."""
        every = tuple(self.mesh)
        own, here = self._slices(every), self._slice_of(self.device, every)
        return (own[here] if self.device else max(own.values(), key=_elements)).total()

    def slice_elements(self, axes: Axes) -> Number:
        """Elements of a slice along some axes."""
        slices = self._slices(axes)
        return self._most(lambda at: _elements(slices[self._slice_of(at, axes)]))

    def sent_to_scatter(self, axes: Axes, within: Axes) -> Number:
        """Elements sent while slices are summed, each to those who own it along some axes."""
        before, after = self._slices(within), self._slices(within + axes)
        return self._most(
            lambda at: (
                _elements(before[self._slice_of(at, within)])
                - _elements(after[self._slice_of(at, within + axes)])
            )
        )

    def sent_to_gather(self, axes: Axes, within: Axes) -> Number:
        """Elements sent while each slice goes from those who own it along some axes to the others."""
        along = {axis: n for axis, n in self.mesh.items() if axis in axes}
        sizes = {
            s: max(_elements(of), int(self.fills)) for s, of in self._slices(within + axes).items()
        }
        in_all: dict[_Slice, Number] = {}
        beside = [axis for axis in self.mesh if axis not in within + axes]
        for at in self._devices():
            if not any(at[axis] for axis in beside):  # one device of each slice
                group = self._slice_of(at, within)
                in_all[group] = in_all.get(group, 0) + sizes[self._slice_of(at, within + axes)]

        def sent(at: Device) -> Number:
            after = {**at, **_next(at, along)}
            return in_all[self._slice_of(at, within)] - sizes[self._slice_of(after, within + axes)]

        return self._most(sent)

    def sent_to_sum(self, devices: Number, within: Axes) -> Number:
        """Elements sent while a slice is summed over devices that all have it, weight by weight."""
        slices = self._slices(within)
        return self._most(
            lambda at: sum(
                times * 2 * (devices - 1) * quotient(size, devices)
                for size, times in slices[self._slice_of(at, within)].items()
            )
        )

    def _devices(self) -> Iterator[dict[str, int]]:
        places = product(*(range(size) for size in self.mesh.values()))
        return (dict(zip(self.mesh, at, strict=True)) for at in places)

    def _most(self, of: Callable[[Device], Number]) -> Number:
        return of(self.device) if self.device else max(map(of, self._devices()))

    def _slice_of(self, at: Device, axes: Axes) -> _Slice:
        """Where a device is along some axes: there are the owners of its slice."""
        return tuple(n for axis, n in at.items() if axis in axes)

    def _slices(self, axes: Axes) -> dict[_Slice, Counter[Number]]:
        """How many weights of each size there are in each slice along some axes."""
        found: dict[_Slice, Counter[Number]] = {}
        for at, sizes in zip(self._devices(), self.weight_sizes, strict=True):
            found.setdefault(self._slice_of(at, axes), Counter()).update(sizes)
        return found


def _elements(sizes: Mapping[Number, int]) -> Number:
    return sum(size * times for size, times in sizes.items())


def _next(at: Device, along: Mapping[str, int]) -> dict[str, int]:
    """The device after one, of a group along some axes; after the last the first."""
    found, carried = dict[str, int](), 1
    for axis, size in reversed([*along.items()]):
        carried, found[axis] = divmod(at[axis] + carried, size)
    return found
