"""`psem simulate`: a plan, run on simulated devices."""

from __future__ import annotations

from collections.abc import Callable

from psem_model.measure import products, states
from psem_model.measure.measured import Measured, Run
from psem_model.predict.plan import Plan
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


def works(plan: Plan, run: Run) -> int:
    """How often a run's progress is told. Raises BadInput for one that would not fit, or not end."""
    if not plan.opaque:
        few = _few(products.works(plan, run))
        products.require_room(plan, run)
        return few
    states.require_room(plan, run)
    return _few(states.works(plan, run))


def _few(passes: int) -> int:
    if passes > LONGEST:
        raise BadInput(
            f"--steps, --accumulate: given {passes:,} passes in all; expected at most {LONGEST:,}"
        )
    return passes


def measured(plan: Plan, run: Run, progress: Callable[[int], None] | None = None) -> Measured:
    """A plan's run beside its prediction. Raises BadInput."""
    if not plan.opaque:
        return products.measured(plan, run, progress)
    return states.measured(plan, run, progress)
