"""Devices: a mesh of named axes, the groups along them, and which device owns which element.

A mesh maps each axis name to its size, at least 1. A device is one coordinate on each axis. The
group of some axes, at a device, is all devices that differ from it on those axes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from spec.numbers.arithmetic import Number

Mesh = Mapping[str, Number]
Axes = tuple[str, ...]
Device = Mapping[str, Any]  # axis -> coordinate
HOST = "host"  # the pseudo-axis from a device to its host's memory
ALL_WEIGHTS = "weights"  # the pseudo-axis over a model's groups of weights: every device has them all


def along_devices(axes: Iterable[str]) -> Axes:
    """The axes along which there are devices: not that over a model's weights."""
    return tuple(axis for axis in axes if axis != ALL_WEIGHTS)


def group_size(mesh: Mesh, axes: Iterable[str]) -> Number:
    """Number of devices in a group along `axes`: the product of their sizes."""
    size: Number = 1
    for axis in along_devices(axes):
        size = size * mesh[axis]
    return size


@lru_cache(maxsize=256)
def numbers_at(sizes: tuple[int, ...], places: tuple[int | None, ...]) -> tuple[int, ...]:
    """The numbers of those at a place along each axis, the last one innermost; None: at every place."""
    found = [0]
    for size, place in zip(sizes, places, strict=True):
        along = range(size) if place is None else (place,)
        found = [number * size + at for number in found for at in along]
    return tuple(found)


def first_element(device: Number, chunk: Number) -> Number:
    """The first element of a device's shard: shards are consecutive chunks of `chunk` elements."""
    return device * chunk


def shard_contains(device: Number, element: Number, chunk: Number) -> tuple[Any, Any]:
    """The two bounds that say device `device` owns `element` (both must hold)."""
    start = first_element(device, chunk)
    return start <= element, element < start + chunk


def padding(elements: Number, chunk: Number, devices: Number) -> Number:
    """Elements of padding when `devices` chunks hold `elements`."""
    return chunk * devices - elements
