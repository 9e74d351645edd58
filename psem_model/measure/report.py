"""`psem simulate`: a plan of either kind, run on simulated devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

from psem_model.measure.measured import Measured, Run
from psem_model.predict.models import ModelPlan
from psem_model.predict.plans import Plan, StatesPlan
from psem_model.reading.words import count
from psem_model.text.errors import BadInput

LONGEST = 1_000_000  # passes of a run, of which each takes about a millisecond or more


def run_of(steps: str, arithmetic: str, seed: str) -> Run:
    """How a plan is to be run, as it was typed. Raises BadInput."""
    return Run(
        count("--steps", steps, "steps"),
        arithmetic,
        count("--seed", seed, "", least=0),
    )


@singledispatch
def works(plan: Plan, run: Run) -> int:
    """How often a run's progress is told. Raises BadInput for one that would not fit, or not end."""
    raise TypeError(f"not a plan: {type(plan).__name__}")


@works.register
def _(plan: StatesPlan, run: Run) -> int:
    from psem_model.measure import states

    states.require_room(plan, run)
    return _few(states.works(plan, run))


@works.register
def _(plan: ModelPlan, run: Run) -> int:
    from psem_model.measure import products

    few = _few(products.works(plan, run))
    products.require_room(plan, run)
    return few


def _few(passes: int) -> int:
    if passes > LONGEST:
        raise BadInput(
            f"--steps, --accumulate: given {passes:,} passes in all; expected at most {LONGEST:,}"
        )
    return passes


@singledispatch
def measured(plan: Plan, run: Run, progress: Callable[[int], None] | None = None) -> Measured:
    """A plan's run beside its prediction. Raises BadInput."""
    raise TypeError(f"not a plan: {type(plan).__name__}")


@measured.register
def _(plan: StatesPlan, run: Run, progress: Callable[[int], None] | None = None) -> Measured:
    from psem_model.measure import states

    return states.measured(plan, run, progress)


@measured.register
def _(plan: ModelPlan, run: Run, progress: Callable[[int], None] | None = None) -> Measured:
    from psem_model.measure import products

    return products.measured(plan, run, progress)
