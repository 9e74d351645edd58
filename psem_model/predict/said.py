"""What a plan of a transformer is of, in sentences that reports share."""

from __future__ import annotations

from dataclasses import replace

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

KERNEL = "for backward, nothing more is made again: attention is a kernel, which keeps no pairs"


def made_again(plan: Plan) -> str:
    """What backward makes or gathers again."""
    rings = {axis.name for axis in plan.axes if axis.ring}
    sent = [t for costs in plan.costs.values() for t in costs.traffic if t.phase == AGAIN]
    attention = ", but attention, in each turn of the ring" if rings and plan.again == NOTHING else ""
    gathered = any(t.move.axis not in rings for t in sent) and plan.again in (NOTHING, PAIRS)
    kernel = plan.again == PAIRS and not _keeps_less(plan)
    made = KERNEL if kernel else MADE_AGAIN[plan.again]
    return made + attention + "; what is gathered is gathered again" * gathered


def _keeps_less(plan: Plan) -> bool:
    """Whether less is kept than if nothing were made again."""
    usual = replace(plan, again=NOTHING).costs
    return any(costs.program.kept != usual[name].program.kept for name, costs in plan.costs.items())


def shape_said(plan: Plan) -> str:
    """The model, by its sizes."""
    model = plan.transformer
    shape = f"{counted(model.layers, 'layer')} of {counted(model.hidden, 'feature')}"
    return f"Psi = {plan.psi:,} parameters: {shape}, {counted(model.heads, 'head')}"
