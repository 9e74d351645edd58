"""What axes cut whether it divides or not: words and, by some profiles, features inside MLPs."""

from __future__ import annotations

from psem_model.predict.plan import Plan
from spec.devices.mesh import group_size
from spec.numbers.arithmetic import Number, quotient
from spec.plans.model_strategies import INSIDE_MLPS


def evened(plan: Plan, index: str) -> Number:
    """How many values of an index there would be, were there on each device as many as on the first."""
    devices = group_size(plan.mesh, [axis.name for axis in plan.axes if index in axis.weights])
    return devices * quotient(plan.indices.get(index, 0), devices)


def uneven(plan: Plan) -> tuple[str, ...]:
    """The indices of features inside MLPs of which not all devices have as many."""
    return tuple(index for index in INSIDE_MLPS if evened(plan, index) != plan.indices.get(index, 0))
