"""`psem predict`: the report on a plan of either kind."""

from __future__ import annotations

from functools import singledispatch

from psem_model.predict.models import ModelPlan
from psem_model.predict.plans import Plan, StatesPlan
from psem_model.text.report import Report


@singledispatch
def predicted(plan: Plan) -> Report:
    """What a plan holds and sends, with formulas. Raises NotRealisable."""
    raise TypeError(f"not a plan: {type(plan).__name__}")


@predicted.register
def _(plan: StatesPlan) -> Report:
    from psem_model.predict.states_report import report

    return report(plan)


@predicted.register
def _(plan: ModelPlan) -> Report:
    from psem_model.predict.models_report import report

    return report(plan)
