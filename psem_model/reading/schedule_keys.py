"""The keys of a schedule's TOML form, and what they are where they are left out."""

from __future__ import annotations

from dataclasses import fields

from spec.language.schedule import Buffer, Kind, Phase, Span, takes_room
from spec.models.training import Training

PARTS = ("micro_step", "finish")
FIRST_PHASE = {"micro_step": Phase.FORWARD, "finish": Phase.REDUCE}
KEYS = ("op", "source", "into", "by", "axes", "within", "span", "phase", "mean", "shift")
REST_KEYS = ("sharded", "stored", "host", "working")
START = (Buffer.VIEW,)  # what may be there when a step begins
TRAINING_KEYS = tuple(field.name for field in fields(Training))
_PHASE_OF = {
    Kind.FORWARD: Phase.FORWARD,
    Kind.BACKWARD: Phase.BACKWARD,
    Kind.UPDATE: Phase.UPDATE,
}


def default_phase(kind: Kind, before: Phase) -> Phase:
    """The phase of an operation that names none."""
    return _PHASE_OF.get(kind, before)


def default_span(kind: Kind, source: Buffer, into: Buffer | None) -> Span:
    """The span of an operation that names none."""
    return Span.UNIT if takes_room(kind, source, into or source) else Span.NONE
