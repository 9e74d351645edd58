"""`psem simulate`: a plan, run on simulated devices beside a single one."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from psem_model.measure import figures
from psem_model.measure.measured import EXACT, MODULAR, Figure, Measured, Run
from psem_model.measure.placings import FUNCTIONS, cuts_of_opaque, devices_of, rests_of, with_parts
from psem_model.predict.model_plans import require_places
from psem_model.predict.plan import Plan
from psem_model.predict.refusals import refused_plan
from psem_model.reading import words
from psem_model.simulator import Mlp, simulate
from psem_model.simulator.custom import require_known
from psem_model.simulator.passes import passes
from psem_model.simulator.run import Progress
from psem_model.text.errors import BadInput, choose
from psem_model.text.figures import counted, memory
from psem_model.text.files import named
from spec.devices.layouts import LayoutError
from spec.language.schedule import Schedule
from spec.meaning.match import Divergence
from spec.meaning.terms import Terms, differentiated
from spec.models.custom import Custom
from spec.models.values import Operation, Part
from spec.numbers.arithmetic import ceil_div

LONGEST = 1_000_000  # passes of a run, of which each takes about a millisecond or more
LARGEST = 16 * 2**30  # bytes of all devices' arrays
PER_ELEMENT = 100  # bytes for each element of the states, at the fullest moment
PER_FRACTION, GROWTH = 150, 2.5  # bytes at the fullest moment, per step, of fractions
PER_UNIT, PER_LINK, PER_OPERATION, PER_BATCH = 5000, 32, 500, 400  # bytes beside them
PER_ACTIVATION = 20  # bytes at the fullest moment for each byte that is kept
PER_PAIR = 64  # of devices, for each group of weights
MOST_STAGES = 512  # which take a minute
FEW = 4  # micro-steps, from which on all have as many passes


def run_of(steps: str, arithmetic: str, seed: str) -> Run:
    """How a plan is to be run, as it was typed. Raises BadInput."""
    return Run(
        words.count("--steps", steps, "steps"),
        arithmetic,
        words.count("--seed", seed, "", least=0),
    )


def works(plan: Plan, run: Run) -> int:
    """How often a run's progress is told. Raises BadInput for one that would not fit, or not end."""
    require_room(plan, run)
    if plan.opaque:
        of_step = count_of_passes(whole_schedule(plan), plan.micro_steps)
    else:
        of_step = int(plan.pipe.works * plan.pipe.stages)  # each work of each stage
    if run.steps * of_step > LONGEST:
        raise BadInput(
            f"--steps, --accumulate: given {run.steps * of_step:,} passes in all; expected at most "
            f"{LONGEST:,}"
        )
    return run.steps * of_step


def whole_schedule(plan: Plan) -> Schedule:
    """Of all parameters of an opaque model."""
    (group,) = plan.step.groups
    return group.schedule


def count_of_passes(schedule: Schedule, micro_steps: int) -> int:
    """The passes of a step: each micro-step has as many more, from a few on."""
    few = min(micro_steps, FEW)
    found = len(passes(schedule, few))
    return found + (micro_steps - few) * (len(passes(schedule, few + 1)) - found)


# ------------------------------------------------------------------------------------- room
def require_room(plan: Plan, run: Run) -> None:
    """Raise BadInput if what the devices hold would not fit in memory, or a model cannot be run."""
    if not plan.opaque:
        _require_model(plan, run)
    parts = _of_schedule(plan, run) if plan.opaque else _of_stages(plan)
    takes = sum(parts.values())
    if takes > LARGEST:
        most = max(parts, key=lambda options: parts[options])
        raise BadInput(
            f"{most}: given {counted(plan.devices, 'device')} with {counted(plan.psi, 'parameter')} "
            f"{'each' if plan.opaque else 'in all'}, {counted(run.steps, 'step')} of "
            f"{counted(plan.micro_steps, 'micro-step')} in {run.arithmetic} arithmetic, which take "
            f"about {memory(takes)}; expected at most {memory(LARGEST)} to simulate"
        )


def _require_model(plan: Plan, run: Run) -> None:
    """Raise BadInput for a model that cannot be trained, and for too many stages."""
    model = with_parts(plan)
    choose("--arithmetic", run.arithmetic, FUNCTIONS)
    require_places(plan)
    _require_own_functions(plan)
    if isinstance(model, Custom):
        _require_known(model, run)
    elif not model.vocabulary:
        raise BadInput("--vocabulary: missing; expected how many words there are, to train on them")
    elif model.turned and model.turned_features % 2:
        raise BadInput(
            f"these sizes cannot be simulated: given {model.head_dim} features of a head; expected an "
            "even number, as positions by angles turn them in pairs"
        )
    if plan.pipe.stages > MOST_STAGES:
        stages = counted(plan.pipe.stages, "stage")
        raise BadInput(f"--devices: given {stages}; expected at most {MOST_STAGES} to simulate")


def _require_known(model: Custom, run: Run) -> None:
    """Raise BadInput for a model of one's own that has not what a run needs."""
    try:
        require_known(model, FUNCTIONS[run.arithmetic]())
    except ValueError as error:
        raise BadInput(f"--model: given {error}, to simulate") from None


def _require_own_functions(plan: Plan) -> None:
    """Raise BadInput for a file whose parts compute something else than the model of a run does."""
    written = plan.written.programs if plan.written else ()
    for program, part in zip(written, plan.parts, strict=bool(written)):
        terms = Terms()
        try:
            same = differentiated(_plain(program.part), terms) == differentiated(part, terms)
        except LayoutError:  # nothing depends on a weight
            same = False
        if not same:
            raise BadInput(
                f"{named(plan.text)}: given a forward of {part.name} that computes something else than "
                "the model does; expected its functions, which the single device computes with"
            )


def _plain(part: Part) -> Part:
    """A part of a file, that takes what it takes by its plain name: it may be moved, and numbered."""
    if part.takes is None:
        return part
    takes = replace(part.takes, name=part.takes.plain_name, form_of="")

    def named(operation: Operation) -> Operation:
        reads = (takes if value == part.takes else value for value in operation.reads)
        return replace(operation, reads=tuple(reads))

    return replace(part, operations=tuple(map(named, part.operations)), takes=takes)


def _of_schedule(plan: Plan, run: Run) -> dict[str, int]:
    """Bytes that the run of a schedule takes, by the options that say how many."""
    of_a_number = PER_ELEMENT
    if run.arithmetic == EXACT:
        of_a_number = int(PER_FRACTION * GROWTH ** min(run.steps, 50))
    operations = len(whole_schedule(plan).ops)
    size = "--psi" if plan.perceptron is None else "--mlp"
    return {
        f"--devices, {size}": plan.devices * plan.psi * of_a_number,
        f"{size}, --unit": ceil_div(plan.psi, plan.unit or plan.psi) * PER_UNIT,
        "--devices": plan.devices**2 * PER_LINK,
        "--accumulate": plan.micro_steps * (operations * PER_OPERATION + plan.devices * PER_BATCH),
    }


def _of_stages(plan: Plan) -> dict[str, int]:
    """The same of a model: of its stages, those between the first and the last alike."""
    inner, last = prod(plan.mesh.values()) // plan.pipe.stages, plan.pipe.stages - 1
    takes = PER_ELEMENT * plan.psi
    for number, alike in {0: 1, last: 1, **({1: last - 1} if last > 1 else {})}.items():
        stage = plan.stage(number)
        each = int(PER_ELEMENT * stage.parameters + PER_ACTIVATION * stage.held.kept())
        takes += alike * (inner * each + inner**2 * PER_PAIR * len(stage.groups))
    return {"--devices": takes}


# -------------------------------------------------------------------------------------- run
def measured(plan: Plan, run: Run, progress: Progress | None = None) -> Measured:
    """A plan's run beside its prediction. `progress` is called with the number of works done.

    Raises BadInput for a model that cannot be simulated, or not at these sizes.
    """
    require_room(plan, run)
    simulated = _schedule if plan.opaque else _model
    try:
        stages, divergence = simulated(plan, run, progress)
    except ValueError as error:  # slices that do not meet, tokens that do not spread evenly
        what = "these sizes cannot be simulated"
        if plan.perceptron is not None:
            what = "--mlp: this schedule is not for a perceptron"
        raise BadInput(f"{what}: {error}") from None
    return Measured(plan, run, stages, divergence, refused_plan(plan))


Found = tuple[tuple[tuple[Figure, ...], ...], Divergence | None]


def _schedule(plan: Plan, run: Run, progress: Progress | None) -> Found:
    """A schedule of an opaque model's parameters."""
    stage = plan.stage(0)
    (group,) = stage.groups
    found = simulate(
        whole_schedule(plan),
        plan.mesh,
        plan.psi,
        steps=run.steps,
        micro_steps=plan.micro_steps,
        unit=plan.unit,
        policy=plan.policy,
        cuts=cuts_of_opaque(plan, group) if group.costs.sizes.units else (),
        rests=rests_of(plan),
        arithmetic=run.arithmetic,
        model=None if plan.perceptron is None else Mlp(plan.perceptron[1]),
        seed=run.seed,
        progress=progress,
    )
    return (tuple(figures.of_schedule(found, stage)),), found.divergence


def _model(plan: Plan, run: Run, progress: Progress | None) -> Found:
    """A model on a product of strategies, stage by stage."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            found = devices_of(plan, run.arithmetic, run.seed).run(run.steps, progress)
    except FloatingPointError as error:
        raise BadInput(f"--arithmetic: given {run.arithmetic}: {error}; expected {MODULAR}") from None
    each = range(plan.pipe.stages)
    return tuple(tuple(figures.of_stage(found, plan.stage(k))) for k in each), found.divergence
