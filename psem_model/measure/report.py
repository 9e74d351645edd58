"""`psem simulate`: a plan, run on simulated devices."""

from __future__ import annotations

from collections.abc import Callable

from psem_model.measure import opaque, transformers
from psem_model.measure.measured import Measured, Run
from psem_model.predict.plan import Plan
from psem_model.predict.refused import refused_plan
from psem_model.reading.words import count
from psem_model.text.errors import BadInput, quoted

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
    if plan.profile.owners:
        raise BadInput(
            f"--profile: given {quoted(plan.profile.name)}, where each weight has one owner; expected "
            "another one to simulate, such as ddp"
        )
    simulator = opaque if plan.opaque else transformers
    simulator.require_room(plan, run)
    passes: int = simulator.works(plan, run)
    if passes > LONGEST:
        raise BadInput(
            f"--steps, --accumulate: given {passes:,} passes in all; expected at most {LONGEST:,}"
        )
    return passes


def measured(plan: Plan, run: Run, progress: Callable[[int], None] | None = None) -> Measured:
    """A plan's run beside its prediction. Raises BadInput."""
    simulator = opaque if plan.opaque else transformers
    simulator.require_room(plan, run)
    return Measured(plan, run, simulator.ran(plan, run, progress), refused_plan(plan))
