"""Schedules by hand: the usual operations, and what makes a schedule of them."""

from __future__ import annotations

from spec.language.schedule import Buffer, Kind, Op, Phase, Rest, Schedule, Span
from spec.models.states import State
from spec.models.training import PLAIN

B, K = Buffer, Kind


def op(kind, source, into=None, axes=(), within=(), **fields):
    return Op(kind, Phase.FORWARD, source, into, axes, within, **fields)


def written(micro_step, finish, training=PLAIN, axes=("d",), **rests):
    """A schedule by hand; everything rests whole on every device unless given."""
    given_ = {state: rests.get(state.value, Rest()) for state in State}
    return Schedule(axes, tuple(given_.items()), tuple(micro_step), tuple(finish), training)


FORWARD = op(K.FORWARD, B.PARAMETERS, B.ACTIVATIONS)
BACKWARD = op(K.BACKWARD, B.PARAMETERS, B.FRESH, span=Span.UNIT)
ACCUMULATE = op(K.ACCUMULATE, B.FRESH, B.GRADIENTS)
DROP = op(K.RELEASE, B.FRESH)
SUM = op(K.ALL_REDUCE, B.GRADIENTS, axes=("d",))
UPDATE = op(K.UPDATE, B.GRADIENTS, B.OPTIMIZER)
RESET = op(K.RESET, B.GRADIENTS)
MICRO = (FORWARD, BACKWARD, ACCUMULATE, DROP)
