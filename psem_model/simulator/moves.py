"""Moves of a value along one axis: its slices as messages round the axis's rings."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from psem_model.simulator import network as ring
from psem_model.simulator.arithmetic import Array
from psem_model.simulator.functions import Functions
from psem_model.simulator.network import Network
from psem_model.simulator.slices import Grid, Slices, take
from spec.language.moves import Move


def move(
    line: Move, over: tuple[str, ...], value: Slices, grid: Grid, numbers: Functions, network: Network
) -> Slices:
    """What each device has after a move. Raises ValueError where slices do not meet.

    `over`: the axes of a sum; of none, the value is left in terms, which the next one sums.
    """
    axis, before, after = line.axis, line.before.index, line.after.index
    match line.collective:
        case "all_gather":
            return _all_gather(value, axis, before, grid, network)
        case "reduce_scatter":
            return _reduce_scatter(value, axis, after, grid, numbers, network)
        case "all_reduce":
            group = grid.cluster.group(over)
            sizes = -(-value.filled // group.size) if value.slots else None
            found = ring.summed(value.array[None], group, numbers.add, network, sizes)[0]
            return replace(value, array=found)
        case "all_to_all":
            return _all_to_all(value, axis, before, after, grid, network)
    return _slice(value, axis, after, grid)


def _parts(value: Slices, axis: str, index: str, grid: Grid) -> Array:
    """Where, along an index, each device has what each member of its group will own.

    (devices, members, n): places in the device's own array.
    """
    owners = grid.owner(index, axis, value.where[index])
    n = grid.cluster.sizes[axis]
    if any((np.bincount(row, minlength=n) * n != len(row)).any() for row in owners):
        raise ValueError(f"{index} is not whole along {axis}")
    return np.argsort(owners, axis=1, kind="stable").reshape(len(owners), n, -1)


def _chunks(value: Slices, index: str, parts: Array) -> Array:
    """Each device's array in parts (1, devices, members, ...)."""
    return np.stack(
        [take(value.array, value.axis(index), parts[:, i]) for i in range(parts.shape[1])], 1
    )[None]


def _own(value: Slices, axis: str, index: str, parts: Array, grid: Grid) -> dict[str, Array]:
    """The positions, with those along an index that are the device's own."""
    mine = parts[np.arange(len(parts)), grid.cluster.coordinates[axis]]
    return {**value.where, index: np.take_along_axis(value.where[index], mine, 1)}


def _merged(chunks: Array, value: Slices, index: str, places: Array) -> Slices:
    """Chunks (devices, members, ...) side by side along an index, in order of position.

    `places` (devices, members, n): their positions.
    """
    dimension = value.axis(index)
    side = np.moveaxis(chunks, 1, dimension)
    shape = side.shape
    side = side.reshape(*shape[:dimension], -1, *shape[dimension + 2 :])
    positions = places.reshape(len(places), -1)
    order = np.argsort(positions, axis=1, kind="stable")
    where = {**value.where, index: np.take_along_axis(positions, order, 1)}
    return replace(value, array=take(side, dimension, order), where=where)


def _all_gather(value: Slices, axis: str, index: str, grid: Grid, network: Network) -> Slices:
    group = grid.cluster.group((axis,))
    chunks = ring.all_gather(value.array[None], group, network, _sizes(value))[0]
    return _unpadded(_merged(chunks, value, index, value.where[index][group.members]), index, grid)


def _unpadded(value: Slices, index: str, grid: Grid) -> Slices:
    """Without padding, if it is all there."""
    if value.where[index].shape[1] <= grid.sizes[index]:
        return value
    return _first(value, index, grid.sizes[index])


def _padded(value: Slices, index: str, grid: Grid) -> Slices:
    """With padding, if it is all there: zeros after its last position."""
    missing = grid.chunk(index) * prod(grid.counts(index)) - grid.sizes[index]
    if not missing or value.where[index].shape[1] != grid.sizes[index]:
        return value
    room = [(0, missing if axis == value.axis(index) else 0) for axis in range(value.array.ndim)]
    more = np.arange(missing) + grid.sizes[index]
    places = np.concatenate([value.where[index], np.broadcast_to(more, (len(value.array), missing))], 1)
    return replace(value, array=np.pad(value.array, room), where={**value.where, index: places})


def _first(value: Slices, index: str, count: int) -> Slices:
    """The first places along an index."""
    where = {**value.where, index: value.where[index][:, :count]}
    places = np.broadcast_to(np.arange(count), where[index].shape)
    return replace(value, array=take(value.array, value.axis(index), places), where=where)


def _reduce_scatter(
    value: Slices, axis: str, index: str, grid: Grid, numbers: Functions, network: Network
) -> Slices:
    parts = _parts(value, axis, index, grid)
    group, chunks = grid.cluster.group((axis,)), _chunks(value, index, parts)
    own = replace(value, array=chunks[0, :, 0], where=_own(value, axis, index, parts, grid))
    sent = ring.reduce_scatter(chunks, group, numbers.add, network, _sizes(own))[0]
    return replace(own, array=sent)


def _sizes(value: Slices) -> Array | None:
    """Elements of each device's slices, if those of empty slots are not sent."""
    return value.filled if value.slots else None


def _all_to_all(
    value: Slices, axis: str, before: str, after: str, grid: Grid, network: Network
) -> Slices:
    parts = _parts(value, axis, after, grid)
    group, chunks = grid.cluster.group((axis,)), _chunks(value, after, parts)
    sizes = None
    if value.slots:
        sizes = np.stack([_part(value, after, at).filled for at in np.moveaxis(parts, 1, 0)], 1)
    received = ring.all_to_all(chunks, group, network, sizes)[0]
    own = replace(value, where=_own(value, axis, after, parts, grid))
    return _merged(received, own, before, value.where[before][group.members])


def _part(value: Slices, index: str, at: Array) -> Slices:
    """Some places of each device along an index."""
    where = {**value.where, index: np.take_along_axis(value.where[index], at, 1)}
    return replace(value, array=take(value.array, value.axis(index), at), where=where)


def _slice(value: Slices, axis: str, index: str, grid: Grid) -> Slices:
    value = _padded(value, index, grid)
    parts = _parts(value, axis, index, grid)
    mine = parts[np.arange(len(parts)), grid.cluster.coordinates[axis]]
    found = take(value.array, value.axis(index), mine)
    return replace(value, array=found, where=_own(value, axis, index, parts, grid))
