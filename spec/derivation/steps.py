"""From a plan to its step: programs of the parts, and a schedule for each group of weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spec.derivation.nesting import axis_orders, in_orders
from spec.derivation.norms import clipped
from spec.derivation.programs import NOTHING, program_of
from spec.derivation.schedules import schedule_of
from spec.devices.layouts import PARTIAL
from spec.devices.mesh import ALL_WEIGHTS
from spec.language.moves import Axis
from spec.language.schedule import Schedule
from spec.language.steps import Group, Step
from spec.models.layers import EVERY_LAYER, HeldUnits, Layers
from spec.models.profiles import TEXTBOOK, Profile, Units
from spec.models.transformer import is_layer
from spec.models.values import Part
from spec.plans.compose import Product
from spec.plans.model_strategies import SAMPLES
from spec.plans.placement import Placement, gradients_whole


def derive(
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
        replace(
            axis,
            held=axis.held or profile.holds,
            at_once=bool(axis.ring) and profile.at_once,
            in_full=bool(axis.ring) and profile.rings_in_full,
        )
        for axis in product.cuts
    )
    programs = tuple(
        program_of(
            part,
            (*samples, *cuts),
            again if is_layer(part.name) else NOTHING,
            profile.again,
        )
        for part in parts
    )
    orders = axis_orders(programs)
    step = Step(tuple(in_orders(program, orders) for program in programs), (), product.pipe, orders)
    groups: dict[Schedule, list[str]] = {}
    layers: dict[Schedule, Layers] = {}
    norms = step.gradient_norms() if clip else {}
    gradients, uses, of_several = step.gradients_over(), step.uses, _of_several(step, profile)
    placed = {
        (over, holds): schedule_of(_placed(states, profile, holds, product.cuts_weights))
        for over, states in ((over, product.states_of(*over)) for over in {*gradients.values()})
        for holds in (True, False)
    }
    for weight, over in gradients.items():
        held, other = (placed[over, holds] for holds in (True, False))
        if weight in of_several:
            held, other = held.held_whole, other.held_whole
        for schedule, some in _of_units(uses[weight], profile.held_units, held, other).items():
            if clip:
                of_norm = (axis for axis, lie in norms[weight].items() if lie == PARTIAL)
                cut = tuple(axis for axis in of_norm if axis not in (*schedule.axes, ALL_WEIGHTS))
                stages = tuple(axis for axis in schedule.axes if axis == product.pipe)
                schedule = clipped(schedule, cut, stages, (ALL_WEIGHTS,))
            groups.setdefault(schedule, []).append(weight)
            if is_layer(uses[weight][0]):
                layers[schedule] = some
    found = (Group(tuple(of), s, layers.get(s, EVERY_LAYER)) for s, of in groups.items())
    return replace(step, groups=tuple(found))


def _of_several(step: Step, profile: Profile) -> frozenset[str]:
    """The weights of units that several parts use: of the root; or those that these share.

    What passes of such a unit is held whole, beside the turns of others. Weights that are one vector,
    or have owners, are not told apart.
    """
    if profile.units is Units.ROOT and not profile.owners:
        return step.root
    is_one = profile.units in (Units.LAYER, Units.PARAMETER) and not profile.owners and not step.pipe
    return frozenset(weight for weight, parts in step.uses.items() if is_one and len(parts) > 1)


def _of_units(
    uses: Iterable[str], units: HeldUnits, held: Schedule, other: Schedule
) -> dict[Schedule, Layers]:
    """The schedules of a weight that some parts use, and of which layers: held ones, and others."""
    if not any(map(is_layer, uses)):
        return {held if any(map(units.has, uses)) else other: EVERY_LAYER}
    if held == other:
        return {other: EVERY_LAYER}
    found = {held: units.layers, other: units.layers.rest}
    return {schedule: some for schedule, some in found.items() if some != EVERY_LAYER.rest}


def _placed(states: Placement, profile: Profile, holds: bool, cuts: tuple[str, ...]) -> Placement:
    """How states of some weights are placed as the profile says.

    `holds`: whether they are held, once gathered. `cuts`: the axes that cut weights.
    """
    over = tuple(axis for axis in states.axes if axis in cuts)
    first, again = over * profile.sums_first, over * (profile.uses > 1)
    if profile.waits_whole:
        states = gradients_whole(states)
    return replace(
        states,
        hold=states.hold or holds,
        each=profile.each,
        summed_first=first,
        summed_again=again,
        uses=profile.uses,
        waits=profile.waits_whole,
        sums_whole=profile.sums_whole,
        stays=profile.stays,
    )


def step_of(schedule: Schedule, parts: Iterable[Part], profile: Profile = TEXTBOOK) -> Step:
    """The step of a model whose weights all have one schedule, along axes that cut samples.

    That of units that several parts use is held whole.
    """
    axes = tuple(Axis(name, stream=SAMPLES) for name in schedule.axes)
    programs = tuple(program_of(part, axes, names=profile.again) for part in parts)
    step = Step(programs, (), orders=axis_orders(programs))
    groups: dict[Schedule, list[str]] = {}
    of_several = _of_several(step, profile)
    for weight in step.uses:
        groups.setdefault(schedule.held_whole if weight in of_several else schedule, []).append(weight)
    return replace(step, groups=tuple(Group(tuple(of), s) for s, of in groups.items()))
