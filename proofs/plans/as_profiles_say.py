"""K5: what products derive is placed, summed and held as a profile says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proofs.trusted.kernel import KernelError
from spec.derivation.schedules import schedule_of
from spec.derivation.steps import derive
from spec.language.schedule import Buffer, Schedule, Span
from spec.language.steps import Step
from spec.models.layers import NONE_HELD, ROOT, HeldUnits, Layers
from spec.models.profiles import TEXTBOOK, Padding, Units
from spec.models.states import State
from spec.models.transformer import EMBEDDING, HEAD
from spec.models.values import Part
from spec.plans.compose import Product
from spec.plans.placement import gradients_whole

SAID = "uses", "each", "stays", "sums_whole"
LAST = Layers(frozenset((-1,)), others=False)
HELD = HeldUnits(frozenset((ROOT,)), LAST)
ONE_END = HeldUnits(frozenset((EMBEDDING,)), LAST)  # so the last schedule is that of a norm at the end
WORDS = (  # what profiles say of states, and of sums
    replace(TEXTBOOK, uses=2, stays=True, held_units=HELD),
    replace(TEXTBOOK, each=True, sums_first=True, held_units=HELD),
    replace(TEXTBOOK, sums_first=True, waits_whole=True, held_units=HELD),
    replace(TEXTBOOK, sums_whole=True),
)


def require_as_profiles_say(plan: str, product: Product, parts: Sequence[Part]) -> None:
    """Raise KernelError unless states, axes and units are as profiles say."""
    _require_states(plan, product, parts)
    _require_axes(plan, product, parts)
    _require_units(plan, product, (*parts, replace(parts[-1], name="last")))  # which shares weights
    _require_head_held(plan, product, parts)


def _require_states(plan: str, product: Product, parts: Sequence[Part]) -> None:
    """Raise KernelError unless states are where the product says, and summed as a profile says along
    axes that cut weights; and gradients that rest in slices leave none.
    """
    step = derive(product, parts)
    lies = [program.lies[w] for program in step.programs for w in program.part.weights]
    cut_along = {axis for each in lies for axis, lie in each.items() if lie.index}
    if {*product.cuts_weights} != cut_along:
        raise KernelError(f"{plan}: weights are cut along {cut_along}, not {product.cuts_weights}")
    along = step.gradients_over()
    over_cuts = any({*summed} & {*product.cuts_weights} for summed, _ in along.values())
    for profile in (*WORDS, TEXTBOOK) if over_cuts else (WORDS[-1], TEXTBOOK):
        step = derive(product, parts, profile=profile)
        held = step.root if profile.held_units is HELD else ()
        for name, over in along.items():
            placed = product.states_of(*over)
            cut = tuple(axis for axis in placed.axes if axis in product.cuts_weights)
            first, again = (cut if says else () for says in (profile.sums_first, profile.uses == 2))
            placed = gradients_whole(placed) if profile.waits_whole else placed
            says_of_all = {word: getattr(profile, word) for word in SAID}
            says_of_all["waits"] = profile.waits_whole
            summed = replace(placed, summed_first=first, summed_again=again, **says_of_all)
            for group in (group for group in step.groups if name in group.weights):
                holds = name in held or group.layers == LAST
                if group.schedule != schedule_of(replace(summed, hold=holds)):
                    raise KernelError(f"{plan}: {name} is placed, or summed, otherwise than is said")
    for group in step.groups:
        if group.schedule.rest(State.GRADIENTS).sharded and group.schedule.sliced_by_update:
            raise KernelError(f"{plan}: gradients of {group.weights} rest in slices, and leave others")


def _require_axes(plan: str, product: Product, parts: Sequence[Part]) -> None:
    """Raise KernelError unless what is gathered is held, and rings bring all at once and sum in fp32,
    just where a profile says so; or the product says that it is held.
    """
    given = (replace(f, cuts=replace(f.cuts, held=True)) if f.cuts else f for f in product.factors)
    holding = Product(tuple(given))
    for plan_holds, says in ((False, False), (False, True), (True, False)):
        profile = replace(TEXTBOOK, holds=says, rings_in_full=says, at_once=says or plan_holds)
        derived = derive(holding if plan_holds else product, parts[:1], profile=profile)
        for axis in derived.programs[0].axes:
            held = (says or plan_holds) and axis.name not in product.batch_axes
            in_full, at_once = (bool(axis.ring) and is_so for is_so in (says, profile.at_once))
            if (axis.held, axis.in_full, axis.at_once) != (held, in_full, at_once):
                raise KernelError(f"{plan}: along {axis.name} it is otherwise than the profile says")


def _require_units(plan: str, product: Product, parts: Sequence[Part]) -> None:
    """Raise KernelError unless of units that several parts of a stage use what passes is held whole.

    And of no others; weights that are one vector, or have owners, have no units. And unless the layers
    that are held, if anything is gathered, are those that have a schedule of their own.
    """
    plain = derive(product, parts)
    ops = [op for group in plain.groups for op in group.schedule.micro_step]
    gathers = any(op.target is Buffer.VIEW and op.axes for op in ops)
    several = {name for name, of in plain.uses.items() if len(of) > 1}
    if {*plain.shared_weights} != (several if product.pipe else set()):
        raise KernelError(f"{plan}: {plain.shared_weights} are said to be on several stages")
    several = set() if product.pipe else several
    for units, padding, whole in (
        (Units.LAYER, Padding.ELEMENT, several),
        (Units.PARAMETER, Padding.ROW, several),
        (Units.ROOT, Padding.ELEMENT, plain.root),
        (Units.ROOT, Padding.VECTOR, set[str]()),
        (Units.LAYER, Padding.VECTOR, set[str]()),
        (Units.PARAMETER, Padding.WEIGHT, set[str]()),
        (Units.LARGEST, Padding.ELEMENT, set[str]()),
    ):
        held = ONE_END if (units, padding) == (Units.ROOT, Padding.ELEMENT) else NONE_HELD
        profile = replace(TEXTBOOK, units=units, padding=padding, held_units=held)
        step = derive(product, parts, profile=profile)
        some = (held if gathers else NONE_HELD).layers
        if step.held_layers not in {some, some.rest} - {NONE_HELD.layers}:
            raise KernelError(f"{plan}: layers {step.held_layers} are said to have their own schedule")
        schedules = _by_weight(step)
        if whole and units is Units.LAYER:
            clips = _by_weight(derive(product, parts, clip=True, profile=profile))
            if any(clips[name].micro_step != schedules[name].micro_step for name in whole):
                raise KernelError(f"{plan}: with units {units.value} it clips in other micro-steps")
        alike = derive(product, parts, profile=replace(TEXTBOOK, held_units=held))
        for name, schedule in _by_weight(alike).items():
            if schedules[name] != (_held_whole(schedule) if name in whole else schedule):
                raise KernelError(f"{plan}: with units {units.value} {name} passes otherwise")


def _require_head_held(plan: str, product: Product, parts: Sequence[Part]) -> None:
    """Raise KernelError unless of an embedding, or a head, that is held all weights are, also those
    that others use.
    """
    for unit in (EMBEDDING, HEAD):
        profile = replace(TEXTBOOK, held_units=HeldUnits(frozenset((unit,))))
        step = derive(product, parts, profile=profile)
        for group in step.groups:
            gathers = [op for op in group.schedule.micro_step if op.target is Buffer.VIEW and op.axes]
            held = {op.span is Span.ALL_UNITS for op in gathers}
            if held and held != {unit in step.uses[name] for name in group.weights}:
                raise KernelError(f"{plan}: {group.weights} are held otherwise than the {unit}")


def _held_whole(schedule: Schedule) -> Schedule:
    """The schedule, if all that takes room on a device in a micro-step did so whole."""
    spans = [op.span if op.span is Span.NONE else Span.ALL_UNITS for op in schedule.micro_step]
    ops = [replace(op, span=span) for op, span in zip(schedule.micro_step, spans, strict=True)]
    return replace(schedule, micro_step=tuple(ops))


def _by_weight(step: Step) -> dict[str, Schedule]:
    """The schedule of each weight."""
    return {name: group.schedule for group in step.groups for name in group.weights}
