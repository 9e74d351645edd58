"""`psem predict`: the report on a plan, or why there is none."""

from __future__ import annotations

from psem_model.predict.fits import Room
from psem_model.predict.model_report import OfModel
from psem_model.predict.opaque_report import OfStates
from psem_model.predict.plan import Plan
from psem_model.predict.refused import refused_plan
from psem_model.text.report import Report


def predicted(plan: Plan, room: Room | None = None) -> Report:
    """The plan's prediction, and what it leaves of a device's memory. Raises NotRealisable.

    `memory` is that of the stage that needs most, `communication` that of the one that sends most.
    `stages`: the first of each kind, and how many are alike; idle time is as if all took equally long.
    """
    no = refused_plan(plan)
    if no:
        raise no
    return (OfStates if plan.opaque else OfModel)(plan, room).report()
