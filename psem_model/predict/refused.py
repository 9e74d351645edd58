"""Why a plan is rejected."""

from __future__ import annotations

from psem_model.check.placements import NotRealisable, refused, refused_schedule
from psem_model.check.products import refused_step
from psem_model.predict.plan import Plan


def refused_plan(plan: Plan) -> NotRealisable | None:
    """Why its step is rejected, if it is."""
    steps = int(plan.micro_steps)
    if plan.written is None:
        return refused(plan.product.states, plan.mesh, steps, plan.policy)
    if plan.opaque:
        (group,) = plan.written.groups
        return refused_schedule(group.schedule, plan.mesh, steps, plan.policy)
    return refused_step(plan.written, plan.mesh, steps, plan.policy)
