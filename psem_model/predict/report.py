"""`psem predict`: the report on a plan of either kind."""

from __future__ import annotations

from psem_model.check.products import refused_step
from psem_model.predict import models_report, states_report
from psem_model.predict.models import ModelPlan
from psem_model.predict.plans import Plan
from psem_model.text.report import Report


def predicted(plan: Plan) -> Report:
    """What a plan holds and sends, with formulas. Raises NotRealisable."""
    if isinstance(plan, ModelPlan):
        steps = int(plan.micro_steps)
        no = plan.written and refused_step(plan.written, plan.mesh, steps, plan.policy)
        if no:
            raise no
        return models_report.report(plan)
    return states_report.report(plan)
