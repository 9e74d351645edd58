"""What a plan's types round on the way."""

from __future__ import annotations

from psem_model.predict.plan import Plan
from spec.language.schedule import REDUCTIONS, Buffer, Kind
from spec.models.states import WHILE_GATHERED, WHILE_SUMMED, State
from spec.numbers.arithmetic import Number


def rounded(plan: Plan) -> dict[str, tuple[Number, Number]]:
    """What the policy rounds, and from how many bytes to how many, of what the step passes."""
    ops = [op for group in plan.step.groups for op in group.schedule.ops]
    gathers = any(op.kind is Kind.ALL_GATHER and op.target is Buffer.VIEW for op in ops)
    sums = any(op.kind in REDUCTIONS and op.state is State.GRADIENTS for op in ops)
    passes = {WHILE_GATHERED: gathers, WHILE_SUMMED: sums}
    return {what: of for what, of in plan.policy.rounded.items() if passes.get(what, True)}
