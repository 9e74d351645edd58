"""Why a plan is rejected, if it is."""

from __future__ import annotations

from psem_model.check.placements import NotRealisable, refused
from psem_model.predict.plan import Plan
from spec.checking.verdict import Verdict
from spec.language.schedule import MICRO_STEPS, Schedule
from spec.language.steps import Step

MANY_STEPS = 100  # above, a step that is written is checked for any number of micro-steps


def refused_plan(plan: Plan) -> NotRealisable | None:
    """Why its step is rejected, if it is; the first reason."""
    if plan.written is not None:
        return _refused_written(plan, plan.written)
    schedules = (group.schedule for group in plan.step.groups)
    steps = int(plan.micro_steps)
    each = (refused(schedule, plan.mesh, steps, plan.policy) for schedule in schedules)
    return next(filter(None, each), None)


def _refused_written(plan: Plan, step: Step) -> NotRealisable | None:
    """The same of a step that is written: it may be anything, at these sizes."""
    from psem_model.check.schedules import CheckedGroup, check_schedule
    from psem_model.check.steps import checked_step

    known = {MICRO_STEPS: int(plan.micro_steps)} if plan.micro_steps <= MANY_STEPS else {}

    def checked(_: int, schedule: Schedule) -> CheckedGroup:
        given = {axis: int(plan.mesh[axis]) for axis in schedule.axes} | known
        return check_schedule(schedule, given, plan.policy)

    found = checked_step(plan.text, step, checked)
    if found.wrong:
        wrong = Verdict(False, "whole", why=(found.wrong, "what a single device computes"))
        return NotRealisable(wrong, None, False, written=True, of_step=found.run)
    for no in found.groups:
        if not no.accepted:
            run = no.run.found if no.run else None
            return NotRealisable(no.verdict, run, no.for_want_of_a_copy, written=True)
    return None
