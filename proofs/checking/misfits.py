"""T3: operations that say what their kind does not do are none."""

from __future__ import annotations

from typing import Any

from proofs.checking.witnesses import operation
from proofs.trusted.kernel import Kernel, KernelError
from spec.language.schedule import Buffer, Kind, MisfitError, Monomial, Span

_AXIS, _TWICE = ("batch",), Monomial()
_PARAMETERS, _VIEW, _GRADIENTS = Buffer.PARAMETERS, Buffer.VIEW, Buffer.GRADIENTS
# by the field that does not fit: the kind, what it reads, what it writes, and what else it says
MISFITS: tuple[tuple[str, Kind, Buffer, Buffer | None, dict[str, Any]], ...] = (
    ("source", Kind.FORWARD, _GRADIENTS, None, {}),
    ("source", Kind.COUNT, Buffer.NORM, None, {}),
    ("into", Kind.FORWARD, _PARAMETERS, _GRADIENTS, {}),
    ("into", Kind.KEEP, _GRADIENTS, _VIEW, {"span": Span.UNIT}),
    ("into", Kind.SCALE, _GRADIENTS, Buffer.FRESH, {"by": _TWICE}),
    ("axes", Kind.SCALE, _GRADIENTS, None, {"axes": _AXIS, "by": _TWICE}),
    ("within", Kind.ALL_GATHER, _GRADIENTS, None, {"axes": _AXIS, "within": _AXIS}),
    ("within", Kind.BROADCAST, _GRADIENTS, None, {"axes": _AXIS, "within": _AXIS}),
    ("within", Kind.ALL_REDUCE, Buffer.NORM, None, {"within": _AXIS}),
    ("within", Kind.FORWARD, _PARAMETERS, Buffer.ACTIVATIONS, {"within": _AXIS}),
    ("within", Kind.RELEASE, Buffer.FRESH, None, {"within": _AXIS}),
    ("shift", Kind.SCALE, _GRADIENTS, None, {"shift": 1, "by": _TWICE}),
    ("shift", Kind.ALL_REDUCE, _GRADIENTS, None, {"axes": _AXIS, "shift": 1}),
    ("span", Kind.SCALE, _GRADIENTS, None, {"span": Span.UNIT, "by": _TWICE}),
    ("span", Kind.ALL_GATHER, _PARAMETERS, _VIEW, {"axes": _AXIS}),
    ("mean", Kind.ALL_GATHER, _GRADIENTS, None, {"axes": _AXIS, "mean": True}),
    ("mean", Kind.BROADCAST, _GRADIENTS, None, {"axes": _AXIS, "mean": True}),
    ("by", Kind.SCALE, _GRADIENTS, None, {}),
    ("by", Kind.DIVIDE, _GRADIENTS, None, {"by": Buffer.NORM}),
    ("by", Kind.CLIP, _GRADIENTS, None, {"by": _TWICE}),
    ("by", Kind.ALL_REDUCE, _GRADIENTS, None, {"axes": _AXIS, "by": _TWICE}),
)


def misfits_are_refused(k: Kernel) -> None:
    """Raise KernelError unless each is refused, by the field that does not fit."""
    for field, kind, source, into, others in MISFITS:
        try:
            made = operation(kind, source, into, **others)
        except MisfitError as refused:
            if refused.field != field:
                raise KernelError(f"{k.claim}: refused by {refused.field}: {refused}") from None
        else:
            raise KernelError(f"{k.claim}: an operation is {made}, and its {field} does not fit")
