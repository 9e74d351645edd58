"""Tokens into the slots of their experts, and back: each device's own."""

from __future__ import annotations

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.functions import Functions
from psem_model.simulator.slices import Slices
from psem_model.simulator.tables import Slots


def to_slots(value: Slices, indices: tuple[str, ...], slots: Slots) -> Slices:
    """Tokens (b, s, h) into slots (e, c, h); (b, s, j) into (e, c), each slot's own expert of j.

    A device fills the slots of the tokens that it has.
    """
    if not {"b", "s"} <= {*value.where}:
        raise ValueError("what is sent to experts is not of tokens")
    experts = np.arange(len(slots.sample))
    arrays, numbers = [], []
    for array, b, s in zip(value.array, value.where["b"], value.where["s"], strict=True):
        here = np.isin(slots.sample, b) & np.isin(slots.position, s)
        if (here.any(0) != here.all(0)).any():
            raise ValueError("a device's tokens do not fill the same slots of every expert")
        c = np.flatnonzero(here.all(0))
        found = array[np.searchsorted(b, slots.sample[:, c]), np.searchsorted(s, slots.position[:, c])]
        found = found[experts, :, experts] if value.indices[-1] == "j" else found
        arrays.append(_filled(found, slots.filled[:, c]))
        numbers.append(c)
    _require_alike(arrays)
    devices = len(arrays)
    where = {"e": np.broadcast_to(experts, (devices, len(experts))), "c": np.stack(numbers)}
    rest = {i: value.where[i] for i in indices if i not in where}
    return Slices(indices, np.stack(arrays), {**where, **rest})


def to_tokens(value: Slices, indices: tuple[str, ...], slots: Slots, functions: Functions) -> Slices:
    """Slots (e, c, h) back to tokens (b, s, h), each token's slots summed; (e, c) to (b, s, j)."""
    if not {"e", "c"} <= {*value.where}:
        raise ValueError("what comes back from experts is not in their slots")
    arrays: list[Array] = []
    samples, positions = [], []
    for array, e, c in zip(value.array, value.where["e"], value.where["c"], strict=True):
        sample, position = slots.sample[e][:, c], slots.position[e][:, c]
        b, s = np.unique(sample), np.unique(position)
        places = np.searchsorted(b, sample), np.searchsorted(s, position)
        array = _filled(array, slots.filled[e][:, c])
        last = len(slots.sample) if indices[-1] == "j" else array.shape[-1]
        found = functions.zeros((len(b), len(s), last))
        np.add.at(found, (*places, e[:, None]) if indices[-1] == "j" else places, array)
        arrays.append(functions.reduce(found))
        samples.append(b)
        positions.append(s)
    _require_alike(arrays)
    where = {"b": np.stack(samples), "s": np.stack(positions)}
    experts = np.broadcast_to(np.arange(len(slots.sample)), (len(arrays), len(slots.sample)))
    rest = {i: experts if i == "j" else value.where[i] for i in indices if i not in where}
    return Slices(indices, np.stack(arrays), {**where, **rest})


def _require_alike(arrays: list[Array]) -> None:
    """Raise ValueError unless all devices have as much."""
    if len({array.shape for array in arrays}) > 1:
        raise ValueError("devices have not as many tokens, or slots, as one another")


def _filled(array: Array, filled: Array) -> Array:
    """Slots (e, c, ...), with 0 in empty ones."""
    return np.where(filled.reshape(*filled.shape, *(1,) * (array.ndim - 2)), array, 0)
