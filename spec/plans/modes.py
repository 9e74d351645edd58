"""The five modes: how one state rests along one axis, and what happens before it is used."""

from __future__ import annotations

from enum import Enum

from spec.models.states import State


class Mode(Enum):
    """The symbols of a placement."""

    __hash__ = object.__hash__  # quicker than by name, and it is looked up often

    REPLICATED = "R"
    SHARDED = "S"
    GATHERED = "S*"
    MATERIALIZED = "M"
    OFFLOADED = "O"


R, S, GATHERED, M, O = Mode


def is_sharded(mode: Mode) -> bool:
    """Whether a device keeps only its own slice along the axis."""
    return mode in (S, GATHERED)


MODE_MEANING: dict[Mode, str] = {
    R: "a full copy on each device",
    S: "a slice on each device, used in place: the consumer is partitioned the same way",
    GATHERED: "a slice on each device, all-gathered for the use, then released",
    M: "nothing kept: produced again for the use, then released",
    O: "nothing on the device, a copy on the host, moved over the host link for each use on a device",
}

MATERIALIZED_FROM: dict[State, str] = {
    State.PARAMETERS: "cast from the optimizer's master copy",
    State.OPTIMIZER: "a function of nothing stored: only an optimizer without state (K = 0)",
    State.GRADIENTS: "consumed as it is produced: the update is fused into the backward pass",
    State.ACTIVATIONS: "recomputed from stored inputs",
}
