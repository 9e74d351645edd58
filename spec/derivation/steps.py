"""A step of a model: programs say what its parts compute, schedules where its weights' states are.

A program leaves terms of a weight's gradient on the devices of some axes: those that cut samples, and
what else the gradient sums over. The schedule of the weight's states sums over these, and over the
stages that have the weight; and over no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from spec.derivation.derive import derive
from spec.derivation.distribute import NOTHING, distribute
from spec.derivation.nesting import check_orders, orders
from spec.derivation.norms import check_joined, check_norm, clipped, of_gradient
from spec.devices.layouts import PARTIAL, LayoutError, Lie, Lies
from spec.devices.mesh import ALL_WEIGHTS
from spec.language.moves import Axis, Move
from spec.language.programs import Program, check_program
from spec.language.schedule import Buffer, Kind, Schedule
from spec.meaning.terms import check_gradients
from spec.models.profiles import NORM_FUNCTIONS, TEXTBOOK, Profile
from spec.models.transformer import EMBEDDING, HEAD, is_layer
from spec.models.values import Operation, Part, Value
from spec.plans.compose import Product
from spec.plans.model_strategies import SAMPLES
from spec.plans.placement import Placement, gradients_whole


@dataclass(frozen=True)
class Group:
    """Weights, by name, and the one schedule of their states."""

    weights: tuple[str, ...]
    schedule: Schedule


@dataclass(frozen=True)
class Step:
    """Programs in the order of the model; a layer may be there many times.

    `stages`: the axis that cuts the layers, if one does. `orders`: of each index the axes that may cut
    it, the outer one first.
    """

    programs: tuple[Program, ...]
    groups: tuple[Group, ...]
    stages: str | None = None
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def clips(self) -> bool:
        """Whether gradients are clipped by the norm of all of them."""
        return any(group.schedule.training.clip for group in self.groups)

    @property
    def shared(self) -> tuple[str, ...]:
        """Weights that parts on several stages use."""
        names = [weight.name for program in self.programs for weight in program.part.weights]
        return tuple(dict.fromkeys(n for n in names if names.count(n) > 1)) if self.stages else ()

    @property
    def root(self) -> frozenset[str]:
        """The weights of the embedding and of the head."""
        ends = (program.part for program in self.programs if program.part.name in (EMBEDDING, HEAD))
        return frozenset(weight.name for part in ends for weight in part.weights)

    def summed(self) -> dict[str, tuple[str, ...]]:
        """Of each weight, the axes over which its gradient is to be summed.

        Raises LayoutError if two parts that share it have it, or leave its gradient, otherwise.
        """
        found: dict[str, tuple[str, ...]] = {}
        first: dict[str, tuple[Value, Lies]] = {}
        for program in self.programs:
            for weight in program.part.weights:
                axes, has = program.summed(weight), (weight, program.lies[weight])
                if first.setdefault(weight.name, has) != has:
                    raise LayoutError(f"two parts have {weight.name}, not alike", weight.name)
                if found.setdefault(weight.name, axes) != axes:
                    raise LayoutError(
                        f"the gradient of {weight.name}: {program.part.name} leaves terms over "
                        f"{_over(axes)}, another part over {_over(found[weight.name])}",
                        weight.name,
                    )
        pipe = () if self.stages is None else (self.stages,)
        return {name: axes + pipe * (name in self.shared) for name, axes in found.items()}

    def norms(self) -> dict[str, dict[str, Lie]]:
        """Of each weight, how the square of its gradient's norm lies, if the gradient lies as it does.

        Along the axes of its program, over the stages, and over the groups of weights.
        """
        found: dict[str, dict[str, Lie]] = {}
        over = [ALL_WEIGHTS] if self.stages is None else [self.stages, ALL_WEIGHTS]
        for program in self.programs:
            for weight in program.part.weights:
                lies = program.lies[weight]
                along = {axis.name: of_gradient(weight, lies[axis.name]) for axis in program.axes}
                found[weight.name] = along | dict.fromkeys(over, PARTIAL)
        return found


def derive_step(
    product: Product,
    parts: Iterable[Part],
    again: str = NOTHING,
    clip: bool = False,
    profile: Profile = TEXTBOOK,
) -> Step:
    """A step of a product of strategies, of parts that are realised as a profile says.

    `again`: what layers make again for backward. `clip`: gradients are clipped by the norm of all.
    Raises ValueError where none are kept for that.
    """
    samples = tuple(Axis(name, stream=SAMPLES) for name in product.batch_axes)
    cuts = tuple(
        replace(axis, held=axis.held or profile.holds, at_once=bool(axis.ring) and profile.at_once)
        for axis in product.cuts
    )
    programs = tuple(
        distribute(
            part,
            (*samples, *cuts),
            again if is_layer(part.name) else NOTHING,
            profile.again,
        )
        for part in parts
    )
    step = Step(programs, (), product.pipe)
    groups: dict[Schedule, list[str]] = {}
    norms, root = step.norms(), step.root
    terms = tuple(axis.name for axis in cuts)
    for weight, axes in step.summed().items():
        schedule = derive(_placed(product.states_of(axes), profile, weight in root, terms))
        if clip:
            of_norm = (axis for axis, lie in norms[weight].items() if lie == PARTIAL)
            cut = tuple(axis for axis in of_norm if axis not in (*schedule.axes, ALL_WEIGHTS))
            stages = tuple(axis for axis in schedule.axes if axis == product.pipe)
            schedule = clipped(schedule, cut, stages, (ALL_WEIGHTS,))
        groups.setdefault(schedule, []).append(weight)
    found = tuple(Group(tuple(weights), schedule) for schedule, weights in groups.items())
    return replace(step, groups=found, orders=orders(programs))


def _placed(states: Placement, profile: Profile, in_root: bool, cuts: tuple[str, ...]) -> Placement:
    """How states of weights of layers, or of others, are placed as the profile says.

    `cuts`: the axes that cut the model.
    """
    holds = states.hold or (profile.holds_root and in_root)
    over = tuple(axis for axis in states.axes if axis in cuts)
    first, again = over * profile.sums_first, over * (profile.uses > 1)
    if profile.waits_whole:
        states = gradients_whole(states)
    return replace(states, hold=holds, each=profile.each, first=first, again=again, uses=profile.uses)


def step_of(schedule: Schedule, parts: Iterable[Part], names: frozenset[str] = NORM_FUNCTIONS) -> Step:
    """The step of a model whose weights all have one schedule, along axes that cut samples.

    `names`: functions and values that backward makes again.
    """
    axes = tuple(Axis(name, stream=SAMPLES) for name in schedule.axes)
    programs = tuple(distribute(part, axes, names=names) for part in parts)
    weights = dict.fromkeys(weight.name for program in programs for weight in program.part.weights)
    return Step(programs, (Group(tuple(weights), schedule),), orders=orders(programs))


def check_step(step: Step) -> Step:
    """The step, with how all values lie. Whether schedules do what they are to do, the verdict says.

    Raises LayoutError if a part does not do what one device does, or a gradient is summed otherwise
    than it must be.
    """
    step = replace(step, programs=tuple(map(_typed, step.programs)))
    for before, after in pairwise(step.programs):
        takes = after.part.takes
        alike = takes and takes.indices == before.gives.indices
        if not takes or not alike or after.lies[takes] != before.lies[before.gives]:
            names = f"{after.part.name} does not take what {before.part.name} gives"
            raise LayoutError(names, (after.part.name, "takes"))
    check_orders(step.programs, step.orders)
    for group in step.groups:
        for op in group.schedule.ops:
            kept = op.target is Buffer.ACTIVATIONS and op.kind is not Kind.FORWARD
            number = op.of_a_number and not {op.source, op.target, op.by} & {Buffer.NORM}
            if kept or number or (op.kind is Kind.BACKWARD and op.axes):
                what = " ".join(str(op).split())
                raise LayoutError(
                    f"{what}: the states' schedule is of weights and gradients alone; activations and "
                    "samples are as the programs say",
                    group.weights[0] if group.weights else None,
                )
    for weight, axes in step.summed().items():
        over = [group.schedule.axes for group in step.groups if weight in group.weights]
        if len(over) != 1:
            raise LayoutError(f"{weight} is in {len(over)} groups of states; needs one", weight)
        if {*over[0]} != {*axes}:
            raise LayoutError(
                f"the gradient of {weight} is to be summed over {_over(axes)}; its states' schedule is "
                f"over {_over(over[0])}",
                weight,
            )
    _check_norms(step)
    return step


def _check_norms(step: Step) -> None:
    """Raise LayoutError if gradients are clipped by another norm than that of all weights, once."""
    norms, several = step.norms(), len(step.groups) > 1
    for number, group in enumerate(step.groups):
        about = {*group.schedule.axes} - {step.stages} | (set() if several else {ALL_WEIGHTS})
        lies = {
            name: {axis: lie for axis, lie in norms[name].items() if axis not in about}
            for name in group.weights
        }
        check_norm(group.schedule, lies, number)
    check_joined(group.schedule for group in step.groups)


def cut_twice(step: Step) -> dict[str, tuple[str, ...]]:
    """Indices that are cut along several axes at once, and along which, the outer one first.

    A device has one chunk of such an index.
    """
    found: dict[str, set[str]] = {}
    axes = [axis.name for axis in step.programs[0].axes] if step.programs else []
    for program in step.programs:
        for lies in program.lies.values():
            along = [(lies[axis].index, axis) for axis in axes if lies[axis].index]
            indices = [index for index, _ in along]
            for index, axis in along:
                if indices.count(index) > 1:
                    found.setdefault(index, set()).add(axis)
    return {
        index: tuple(axis for axis in step.orders[index] if axis in cut) for index, cut in found.items()
    }


def _typed(program: Program) -> Program:
    """A part that does what one device does, with how its values lie."""
    try:
        lies = {**program.lies, **check_program(program)}
        check_gradients(program)
    except LayoutError as error:
        of_a_line = isinstance(error.at, Operation | Move)
        at = (program.part.name, error.at) if of_a_line else error.at
        raise LayoutError(str(error), at) from None
    return replace(program, lies=lies)


def _over(axes: tuple[str, ...]) -> str:
    return " x ".join(axes) if axes else "no axis"
