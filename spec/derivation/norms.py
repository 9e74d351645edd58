"""The norm of all of a model's gradients, by which each of them is clipped.

The square of a weight's norm is its gradient times itself, summed over every index: a contraction, so
the layout rule says how it lies. Along an axis that cuts the weight it is in terms, each of a device's
own part; where devices have the same gradient they have the same norm, and a sum counts it once for
each device. It is in terms over the groups of a model's weights, too, and over stages, each of which
has some of the weights. Along the axes that a group's schedule is about, the verdict decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spec.devices.layouts import Lie
from spec.devices.mesh import Axes
from spec.language.schedule import GRADIENT_BUFFERS, Buffer, Kind, Op, Phase, Schedule
from spec.models.states import State
from spec.models.training import Training

_Lies = Mapping[str, Lie]


def clipped(schedule: Schedule, cut: Axes = (), from_first: Axes = (), of_all: Axes = ()) -> Schedule:
    """A derived schedule whose gradients, once they are reduced, are clipped by their norm.

    The norm is summed along `cut` as well, and over `of_all`, the groups of a model's weights. Along
    `from_first` others than the first may have none of the weights, and get the norm from it. Raises
    ValueError where no gradient of the whole step is kept.
    """
    update = next((op for op in schedule.finish if op.kind is Kind.UPDATE), None)
    if update is None:
        raise ValueError("each micro-step applies its own gradient: none of the whole step is kept")
    gradient, within = update.source, (*update.within, *_in_place(schedule, update))
    over = (*within, *cut)
    sums = [(Kind.ALL_REDUCE, (*over, *of_all))]
    if from_first:
        sums = [(Kind.ALL_REDUCE, over), (Kind.BROADCAST, from_first), (Kind.ALL_REDUCE, of_all)]
    lines = (
        Op(Kind.SQUARE_NORM, Phase.REDUCE, gradient, Buffer.NORM, within=within),
        *(Op(kind, Phase.REDUCE, Buffer.NORM, axes=axes) for kind, axes in sums if axes),
        Op(Kind.CLIP, Phase.REDUCE, gradient, within=within, by=Buffer.NORM),
    )
    at = next(i for i, op in enumerate(schedule.finish) if op.target not in GRADIENT_BUFFERS)
    finish = (*schedule.finish[:at], *lines, *schedule.finish[at:])
    return replace(schedule, finish=finish, training=Training(clip=True))


def _in_place(schedule: Schedule, update: Op) -> Axes:
    """The axes along which a device has a slice of a gradient that is applied as if it were whole."""
    ops, slices = schedule.finish, schedule.rest(State.GRADIENTS).sharded
    gathered = {
        a for op in ops if op.kind is Kind.ALL_GATHER and op.target is update.source for a in op.axes
    }
    return tuple(axis for axis in slices if axis not in (*update.within, *gathered))
