"""What a plan of a transformer is of, in sentences that reports share."""

from __future__ import annotations

from psem_model.predict.parts import AGAIN
from psem_model.predict.plan import Plan
from psem_model.text.figures import counted
from spec.derivation.distribute import EVERYTHING, FROM_SLICES, NOTHING, PAIRS

MADE_AGAIN = {
    NOTHING: "nothing is made again for backward",
    PAIRS: "for backward, what attention has for each pair of tokens is made again",
    EVERYTHING: "for backward, layers are made again from what they take",
    FROM_SLICES: "for backward, layers are made again from what they take, kept in slices",
}


def made_again(plan: Plan) -> str:
    """What backward makes or gathers again."""
    rings = {axis.name for axis in plan.axes if axis.ring}
    sent = [t for costs in plan.costs.values() for t in costs.traffic if t.phase == AGAIN]
    attention = ", but attention, in each turn of the ring" if rings and plan.again == NOTHING else ""
    gathered = any(t.move.axis not in rings for t in sent) and plan.again in (NOTHING, PAIRS)
    return MADE_AGAIN[plan.again] + attention + "; what is gathered is gathered again" * gathered


def shape_said(plan: Plan) -> str:
    """The model, by its sizes."""
    model = plan.transformer
    shape = f"{counted(model.layers, 'layer')} of {counted(model.hidden, 'feature')}"
    return f"Psi = {plan.psi:,} parameters: {shape}, {counted(model.heads, 'head')}"
