"""An opaque model of a plan, simulated."""

from __future__ import annotations

from collections.abc import Callable

from psem_model.measure.measured import EXACT, LARGEST, PER_ELEMENT, Figure, Ran, Run
from psem_model.predict.plan import Plan
from psem_model.simulator import Mlp, simulate
from psem_model.simulator import Run as Simulated
from psem_model.simulator.passes import passes
from psem_model.text.errors import BadInput
from psem_model.text.figures import counted, memory
from spec.costs.memory import MODEL_STATES
from spec.language.schedule import Schedule
from spec.numbers.arithmetic import ceil_div

PER_FRACTION, GROWTH = 150, 2.5  # bytes at the fullest moment, per step, of fractions
PER_UNIT, PER_LINK, PER_OPERATION, PER_BATCH = 5000, 32, 500, 400  # bytes beside them
FEW = 4  # micro-steps, from which on all have as many passes
NOT_COUNTED = "not counted: activations, statistics and samples, whose size is the model's"
LIKELY = "likely a buffer of which slices are made again, or a span that is not what its operation does"


def schedule_of(plan: Plan) -> Schedule:
    """Of all parameters."""
    (group,) = plan.step.groups
    return group.schedule


def works(plan: Plan, run: Run) -> int:
    """How often a run's progress is told."""
    return run.steps * count_of_passes(schedule_of(plan), plan.micro_steps)


def count_of_passes(schedule: Schedule, micro_steps: int) -> int:
    """The passes of a step: each micro-step has as many more, from a few on."""
    few = min(micro_steps, FEW)
    found = len(passes(schedule, few))
    return found + (micro_steps - few) * (len(passes(schedule, few + 1)) - found)


def require_room(plan: Plan, run: Run) -> None:
    """Raise BadInput if what the devices hold would not fit in memory."""
    of_a_number = PER_ELEMENT
    if run.arithmetic == EXACT:
        of_a_number = int(PER_FRACTION * GROWTH ** min(run.steps, 50))
    operations = len(schedule_of(plan).micro_step) + len(schedule_of(plan).finish)
    size = "--psi" if plan.perceptron is None else "--mlp"
    parts = {
        f"--devices, {size}": plan.devices * plan.psi * of_a_number,
        f"{size}, --unit": ceil_div(plan.psi, plan.unit or plan.psi) * PER_UNIT,
        "--devices": plan.devices**2 * PER_LINK,
        "--accumulate": plan.micro_steps * (operations * PER_OPERATION + plan.devices * PER_BATCH),
    }
    takes = sum(parts.values())
    if takes > LARGEST:
        most = max(parts, key=lambda options: parts[options])
        raise BadInput(
            f"{most}: given {counted(plan.devices, 'device')} with {counted(plan.psi, 'parameter')} "
            f"each, {counted(run.steps, 'step')} of {counted(plan.micro_steps, 'micro-step')} in "
            f"{run.arithmetic} arithmetic, which take about {memory(takes)}; expected at most "
            f"{memory(LARGEST)} to simulate"
        )


def ran(plan: Plan, run: Run, progress: Callable[[int], None] | None = None) -> Ran:
    """Simulate a plan. Raises BadInput if its schedule is not one for the model."""
    try:
        found = simulate(
            schedule_of(plan),
            plan.mesh,
            plan.psi,
            steps=run.steps,
            micro_steps=plan.micro_steps,
            unit=plan.unit,
            policy=plan.policy,
            arithmetic=run.arithmetic,
            model=None if plan.perceptron is None else Mlp(plan.perceptron[1]),
            seed=run.seed,
            progress=progress,
        )
    except ValueError as error:
        if plan.perceptron is None:
            raise
        raise BadInput(f"--mlp: this schedule is not for a perceptron: {error}") from None
    return Ran((tuple(figures(plan, found)),), found.divergence, NOT_COUNTED, (LIKELY,))


def figures(plan: Plan, run: Simulated) -> list[Figure]:
    """What is counted, per device, and what is predicted for it."""
    (group,) = plan.stage(0).groups
    costs = group.costs
    at_rest = [
        Figure(s.value, f"{s.value} at rest, bytes", run.resting[s], costs.resting[s])
        for s in MODEL_STATES
    ]
    return [
        *at_rest,
        Figure("resting", "all at rest, bytes", sum(run.resting.values()), costs.total),
        Figure("peak", "peak, bytes", run.peak, costs.peak),
        Figure("host", "on the host, bytes", run.host, costs.host),
        Figure("elements", "sent per step, elements", run.sent_elements, costs.elements),
        Figure("bytes", "sent per step, bytes", run.sent, costs.bytes),
        Figure("host_bytes", "over the host link, bytes", run.host_link, costs.host_bytes),
    ]
