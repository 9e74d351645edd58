"""Why a plan is rejected: a written step is judged as `psem check` does, at its own sizes."""

from __future__ import annotations

from psem_model.check.placements import NotRealisable, refused
from psem_model.check.products import checked_step
from psem_model.check.schedules import Checked, check_schedule
from psem_model.predict.plan import Plan
from spec.checking.verdict import Verdict
from spec.language.schedule import MICRO_STEPS, Schedule

MANY_STEPS = 100  # above, a step that is written is checked for any number of micro-steps


def refused_plan(plan: Plan) -> NotRealisable | None:
    """Why its step is rejected, if it is; the first reason."""
    steps = int(plan.micro_steps)
    if plan.written is None:
        schedules = (group.schedule for group in plan.step.groups)
        each = (refused(schedule, plan.mesh, steps, plan.policy) for schedule in schedules)
        return next(filter(None, each), None)
    known = {MICRO_STEPS: steps} if steps <= MANY_STEPS else {}

    def checked(_: int, schedule: Schedule) -> Checked:
        given = {axis: int(plan.mesh[axis]) for axis in schedule.axes} | known
        return check_schedule(plan.text, schedule, given, plan.policy)

    if plan.opaque:
        found = [checked(n, group.schedule) for n, group in enumerate(plan.written.groups)]
    else:
        of_step = checked_step(plan.text, plan.written, checked)
        if of_step.wrong:
            wrong = Verdict(False, "whole", why=(of_step.wrong, "what a single device computes"))
            return NotRealisable(wrong, None, False, written=True)
        found = [weights.checked for weights in of_step.weights]
    for no in found:
        if not no.accepted:
            run = no.run.divergence if no.run else None
            return NotRealisable(no.verdict, run, no.for_want_of_a_copy, written=True)
    return None
