"""A step of a model: programs say what its parts compute, schedules where its weights' states are.

A program leaves terms of a weight's gradient on the devices of some axes: those that cut samples, and
what else the gradient sums over. The schedule of the weight's states sums over these, and over the
stages that have the weight; and over no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from spec.derivation.derive import derive
from spec.derivation.distribute import NOTHING, distribute
from spec.derivation.nesting import orders
from spec.derivation.norms import clipped, of_gradient
from spec.devices.layouts import PARTIAL, LayoutError, Lie, Lies
from spec.devices.mesh import ALL_WEIGHTS
from spec.language.moves import Axis
from spec.language.programs import Program
from spec.language.schedule import Schedule
from spec.models.profiles import NORM_FUNCTIONS, TEXTBOOK, Profile
from spec.models.transformer import EMBEDDING, HEAD, is_layer
from spec.models.values import Part, Value
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
                        f"{in_words(axes)}, another part over {in_words(found[weight.name])}",
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


def in_words(axes: tuple[str, ...]) -> str:
    """Axes that something is summed over."""
    return " x ".join(axes) if axes else "no axis"
