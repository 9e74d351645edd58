"""A small run of a model's step that is rejected, in the simulator beside a single device.

A schedule alone has a run of its own. A whole step may be wrong by its programs, or by the norm that
its groups of weights are clipped by: its lines run as they are written, on few devices, and the single
device computes what the parts say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from psem_model.check.runs import Case
from psem_model.text.figures import counted, divergence_json, divergence_text
from spec.derivation.nesting import families
from spec.devices.layouts import WHOLE, LayoutError, Lie, Lies, along
from spec.language.moves import Axis, Move
from spec.language.programs import Line, Program, of_cotangent, result
from spec.language.steps import Step
from spec.meaning.match import Divergence
from spec.meaning.terms import given_to
from spec.models.custom import Custom
from spec.models.states import MIXED_ADAM
from spec.models.transformer import is_layer
from spec.models.values import Value
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.stages import pieces
from spec.plans.model_strategies import POSITIONS, SAMPLES

if TYPE_CHECKING:
    from psem_model.simulator.placed import Placing

DEVICES = 2  # along each axis but that of stages
STAGES = 3  # of which one has neither the embedding nor the head
LAYERS, MICRO_STEPS = 3, 2
LEAST = 2  # values of an index that nothing cuts
MATCHES = "matches a single device: not all that is rejected diverges (claim T4)"


@dataclass(frozen=True)
class StepRun:
    """A small run: where it first diverges, if it does. `why_not`: why there is none."""

    case: Case
    divergence: Divergence | None = None
    why_not: str = ""
    has_stages: bool = False

    @property
    def words(self) -> str:
        """In one line."""
        if self.why_not:
            return f"no run, as {self.why_not}"
        on = f"on {counted(self.case.devices, 'device')}, {self.case}"
        if self.divergence is None:
            return f"a run {on}, in the simulator {MATCHES}"
        place = self.divergence.place if self.has_stages else replace(self.divergence.place, stage=None)
        where = divergence_text(replace(self.divergence, place=place))
        return f"a run that diverges, {on}, in the simulator, modulo a prime: {where}"

    def data(self) -> dict[str, Any]:
        """For a program."""
        found = self.divergence and divergence_json(self.divergence) | self.case.json()
        return {"divergence": found, "no_run": None if self.divergence else self.words}


def small_step_run(step: Step) -> StepRun:
    """One step of two micro-batches, on two devices along each axis, of three stages."""
    from psem_model.simulator.distributed import DistributedModel
    from psem_model.simulator.functions import Residues

    axes = step.programs[0].axes
    mesh = {axis.name: DEVICES for axis in axes}
    pipe = Pipeline(Order.ONE_F_ONE_B, STAGES if step.pipe else 1, MICRO_STEPS)
    case = Case(mesh | ({step.pipe: STAGES} if step.pipe else {}), MICRO_STEPS)
    try:
        step = replace(step, programs=tuple(map(_lying, step.programs)))
        kinds = sum(is_layer(program.part.name) for program in step.programs)
        if kinds > 1:
            return StepRun(
                case, why_not=f"the file does not say which layers are of which of {kinds} kinds"
            )
        model = _model(step, mesh)
        sizes = model.sizes(1, 1)
        found = DistributedModel(
            model,
            step.programs,
            mesh,
            sizes[SAMPLES],
            sizes[POSITIONS],
            Residues(),
            _placings(step, model, pipe),
            MIXED_ADAM,
            pipe,
            axis=step.pipe or "",
            orders=step.orders,
        )
        return StepRun(case, found.run(1).divergence, has_stages=bool(step.pipe))
    except ValueError as error:
        return StepRun(case, why_not=f"devices cannot execute it: {error}")


# ---------------------------------------------------------------------------- how values lie
def _lying(program: Program) -> Program:
    """The program, with how its values lie: where the layout rule has no answer, as what is read first.

    Devices compute on what they have, right or not.
    """
    part = program.part
    whole = {axis.name: WHOLE for axis in program.every_axis}
    has: dict[Value, Lies] = {value: {**whole, **lies} for value, lies in program.lies.items()}
    for value in given_to(part):
        has[value] = {axis.name: axis.rest(value, part) for axis in program.every_axis}
    home = {axis.name: axis.home(part.gives, part) for axis in program.every_axis}
    has[program.seed] = of_cotangent(home)
    for line in program.lines:
        reads = [has.setdefault(value, whole) for value in line.reads]
        if isinstance(line, Move):
            if line.in_turns and line.turns not in program.turns:
                raise LayoutError(f"{line.value.name} cannot go round a ring over {line.axis}")
            has[line.makes] = {**reads[0], line.axis: line.after, **_in_turns(program, line)}
        else:
            has[line.makes] = {a.name: _made(line, a, reads) for a in program.every_axis}
    return replace(program, lies=has)


def _made(line: Line, axis: Axis, reads: list[Lies]) -> Lie:
    """How a result lies along an axis, as far as the layout rule says it."""
    lies = [of[axis.name] for of in reads]
    try:
        return result(line, axis, *lies) if not isinstance(line, Move) else lies[0]
    except LayoutError:
        return next((lie for lie in lies if lie.index in line.makes.indices), WHOLE)


def _in_turns(program: Program, line: Move) -> Lies:
    """How a value lies along the turns of its ring after a move."""
    index = line.before.index or line.after.index
    if not (line.in_turns and index):
        return {}
    turns = [axis.turns for axis in program.axes if axis.ring and axis.name == line.axis]
    return dict.fromkeys(turns, along(index) if line.after == WHOLE else WHOLE)


# ------------------------------------------------------------------------ the model and its weights
def _model(step: Step, mesh: Mapping[str, int]) -> Custom:
    """The model that the parts are of: of each index as many values as its axes cut evenly."""
    family = families(step.programs)
    cut: dict[str, set[str]] = {SAMPLES: set(), POSITIONS: set()}
    cut |= {root: set() for root in family.values()}
    for program in step.programs:
        for lies in program.lies.values():
            for name, lie in lies.items():
                axis = next((a.name for a in program.axes if name in (a.name, a.turns)), name)
                if lie.index:
                    cut.setdefault(family.get(lie.index, lie.index), set()).add(axis)
    sizes = {root: max(LEAST, prod(mesh[axis] for axis in axes)) for root, axes in cut.items()}
    lengths = {index: sizes[root] for index, root in family.items()}
    if "c" in lengths and "e" in lengths:  # slots of experts: as many as there are tokens for each
        lengths |= {"j": lengths["e"], "c": lengths["b"] * lengths["s"] // lengths["e"]}
    parts = tuple(program.part for program in step.programs)
    layers = LAYERS * any(is_layer(part.name) for part in parts)
    return Custom(parts, layers, tuple((sizes | lengths).items()))


def _placings(step: Step, model: Custom, pipe: Pipeline) -> Iterator[Placing]:
    """Each group's weights, by the stages that have them."""
    from psem_model.simulator.placed import Placing

    stages: dict[tuple[int, str], dict[int, None]] = {}
    for piece in pieces(model, pipe):
        for weight in piece.part.weights:
            stages.setdefault((piece.layer, weight.name), {})[piece.stage] = None
    for number, group in enumerate(step.groups):
        axis = step.pipe if step.pipe in group.schedule.axes else None
        placed: dict[tuple[int, ...], list[tuple[int, str]]] = {}
        for (layer, name), on in stages.items():
            here = layer < 0 or group.layers.has(layer, model.layers)
            for some in [tuple(on)] if axis else [(stage,) for stage in on]:
                if here and name in group.weights:
                    placed.setdefault(some, []).append((layer, name))
        for some, keys in placed.items():
            yield Placing(group.schedule, tuple(keys), (), some, axis or "", number)
