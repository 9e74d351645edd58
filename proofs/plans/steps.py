"""K5: steps of products that clip are accepted, and with a fault of a norm they are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

from proofs.derivation.two_axes import on_axis
from proofs.language.program_rules import accepted_rules
from proofs.plans.as_profiles_say import require_as_profiles_say
from proofs.plans.joints import require_along_all, require_shared_lie_alike, wrong
from proofs.plans.norms import (
    DEVICES,
    axes_of,
    every_slice_counts_once,
    lines_beside,
    rules_of_norms,
)
from proofs.tools.encoding import realisable_placements
from proofs.trusted.kernel import KernelError
from spec.checking.steps import check_parts, check_step
from spec.checking.verdict import check
from spec.derivation.norms import clipped
from spec.derivation.programs import EVERYTHING
from spec.derivation.schedules import schedule_of
from spec.derivation.steps import derive, step_of
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError
from spec.devices.mesh import ALL_WEIGHTS, Axes, along_devices
from spec.language.programs import Program
from spec.language.schedule import Buffer, Kind, Op, Phase, Rest, Schedule, Span
from spec.language.steps import Group, Step
from spec.models.layers import EVERY_LAYER, ROOT, HeldUnits, Layers
from spec.models.opaque import opaque
from spec.models.profiles import TEXTBOOK, Units
from spec.models.states import State
from spec.models.training import PLAIN
from spec.models.transformer import is_layer
from spec.models.values import Part
from spec.plans.compose import PIPELINE, Product, combined, factor, restricted
from spec.plans.model_strategies import MODEL_AXES
from spec.plans.modes import Mode
from spec.plans.placement import gradients_whole, on_batch, place_states
from spec.plans.strategies import STRATEGIES

Programs = Sequence[Program]
MICRO_STEPS = 2
# of two axes: gradients that are gathered along both; updated in slices, or applied as they rest
OF_TWO = (
    (("R", "R", "S*"), ("R", "R", "S*")),
    (("R", "R", "S*"), ("R", "R", "R")),
    (("R", "S", "S"), ("S*", "S*", "S")),
    (("R", "S*", "S"), ("M", "R", "S*")),
)
_VERDICT = {True: "accepted", False: "rejected, and is right"}


def require_accepted(names: tuple[str, ...], parts: Sequence[Part]) -> None:
    """Raise KernelError unless a product's step that clips is right, and with a fault is not.

    `names`: of the strategies that are its factors.
    """
    plan, product = " * ".join(names), Product(tuple(map(factor, names)))
    step = derive(product, parts, clip=True)
    try:
        step = check_step(step)
        accepted = _is_accepted(step, step.groups)
    except LayoutError as error:
        raise KernelError(f"{plan}: {error}") from None
    if not accepted or not every_slice_counts_once(step):
        raise KernelError(f"{plan}: a step that clips is not accepted")
    ends = {weight.name for part in parts if not is_layer(part.name) for weight in part.weights}
    first, *others = step.groups
    unclipped = replace(first, schedule=replace(first.schedule, training=PLAIN))
    clips = [replace(step, groups=(unclipped, *some)).clips for some in ((), others)]
    thrice = replace(step, programs=(*step.programs, *step.programs[:1] * 2), pipe=PIPELINE)
    if not {weight.name for weight in parts[0].weights} <= {*thrice.shared_weights}:
        raise KernelError(f"{plan}: a weight of three parts is on one stage alone")
    layers = replace(step, programs=tuple(p for p in step.programs if is_layer(p.part.name)))
    if step.root != ends or layers.root or clips != [False, bool(others)]:
        raise KernelError(f"{plan}: its root is {step.root}, or it is not said to clip")
    require_as_profiles_say(plan, product, parts)
    _require_placed(plan, product, parts, step)
    named = (*parts[:-1], replace(parts[-1], name="last"))
    _require_layers_made_again(plan, step.programs, derive(product, named, again=EVERYTHING).programs)
    _require_faults_are_found(plan, step)
    _require_told_of_norms(plan, step)
    _require_groups_are_apart(plan, step)
    require_shared_lie_alike(plan, step)
    _require_lines_are_told(plan, step)
    _require_gradients_alike(plan, step.programs[0])


def require_norms(names: tuple[str, ...], parts: Sequence[Part]) -> None:
    """Raise KernelError unless a product's step clips each weight once, by the norm of all slices.

    That is so of few devices, as its lines are run; and of any number, as squares and sums are by rules
    that are proved. `names`: of the strategies that are its factors.
    """
    product = Product(tuple(map(factor, names)))
    step = derive(product, parts, clip=True)
    require_along_all(product, step)
    if not every_slice_counts_once(step):
        raise KernelError(f"{' * '.join(names)}: it is not clipped by the norm of all slices")
    found = step.gradient_norms()
    for program, weight in ((each, w) for each in step.programs for w in each.part.weights):
        for axis in (axis.name for axis in program.axes):
            if found[weight.name].get(axis) != (PARTIAL, WHOLE)[program.lies[weight][axis] == WHOLE]:
                raise KernelError(f"{' * '.join(names)}: along {axis} the norm of {weight} is another")
    sent = [op for g in step.groups for op in g.schedule.finish if op.kind is Kind.BROADCAST]
    if any(op.axes != (step.pipe,) for op in sent if op.target is Buffer.NORM):
        raise KernelError(f"{' * '.join(names)}: a norm is sent to devices that have it: {sent}")
    if unproved := rules_of_norms(step) - accepted_rules():
        raise KernelError(f"{' * '.join(names)}: a norm's line does {', '.join(map(str, unproved))}")


def require_told_as_found(placed: Product, parts: Sequence[Part]) -> None:
    """Raise KernelError unless a step is rejected in which backward tells otherwise than the programs
    along which axes gradients are whole. `placed` along such an axis.
    """
    step = check_step(derive(placed, parts))
    require_along_all(placed, step)
    cut, whole = sorted(step.groups, key=lambda group: group.schedule.samples_of_all)
    backward = next(op for op in whole.schedule.micro_step if op.kind is Kind.BACKWARD)
    less, more = (replace(backward, axes=axes) for axes in ((), whole.schedule.axes))
    told = ((less,), (more,), (backward, less), (less, backward))
    others = [(_with_backward(whole, some), cut) for some in told]
    moved = replace(whole, weights=(*whole.weights, cut.weights[0]))
    others.append((moved, replace(cut, weights=cut.weights[1:])))
    for groups in others:
        if wrong(replace(step, groups=groups)) is None:
            raise KernelError(f"accepted: {[group.schedule.micro_step for group in groups]}")


def require_said_by_schedules() -> None:
    """Raise KernelError unless a step's schedule alone says all of a model of which nothing is known,
    just where no axis beside that of its samples cuts weights or layers.
    """
    cutting = {name for name, axis in MODEL_AXES.items() if axis.weight_indices} | {PIPELINE}
    for name in {*MODEL_AXES, PIPELINE} - STRATEGIES.keys():
        step = check_step(derive(factor("zero1") * factor(name), (opaque(),)))
        if step.is_opaque is (name in cutting):
            raise KernelError(f"{name}: of a model of which nothing is known its schedule says all")
    named_alike = replace(opaque(), reads_first=True)
    if check_step(step_of(schedule_of(STRATEGIES["dp"]), (named_alike,))).is_opaque:
        raise KernelError(f"of {named_alike} its schedule says all")
    for activations in "M", "S*", "O":
        check_step(step_of(schedule_of(on_batch("R", "R", "R", activations)), (opaque(),)))


def require_restricted() -> None:
    """Raise KernelError unless strategies, with copies along one axis more, are on their own what they
    were, on the host too; and unless gradients that wait whole rest on the device.
    """
    for name, placed in STRATEGIES.items():
        modes = {state: {**dict(found), "copies": Mode.REPLICATED} for state, found in placed.modes}
        for axes in ((*placed.axes, "copies"), ("copies", *placed.axes)):
            if restricted(place_states(axes, modes, placed.hold), placed.axes) != placed:
                raise KernelError(f"{name}: with copies along one axis more it is another on its own")
        waits = gradients_whole(replace(placed, whole=placed.axes))
        if (waits.rest(State.GRADIENTS), waits.hold, waits.whole) != (Rest(), placed.hold, placed.axes):
            raise KernelError(f"{name}: gradients that wait whole are as {waits}")


def require_clipped() -> None:
    """Raise KernelError unless what rests or is applied in any way of a realisable placement is clipped
    by the norm of all gradients, before anything of the update.
    """
    found: dict[tuple[object, ...], Schedule] = {}
    of_two = (combined(map(on_axis, "ab", (on_batch(*modes) for modes in two))) for two in OF_TWO)
    on_the_host = on_batch("S*", "S*", "S+O", "S")
    for schedule in map(schedule_of, (*realisable_placements().values(), *of_two, on_the_host)):
        for op in (op for op in schedule.finish if op.kind is Kind.UPDATE):
            found[op, schedule.rest(State.GRADIENTS)] = schedule
    for schedule in map(clipped, found.values()):
        reduces = [op.phase is Phase.REDUCE for op in schedule.finish]
        accepted = check(schedule, dict.fromkeys(schedule.axes, DEVICES), MICRO_STEPS).accepted
        if not accepted or reduces != sorted(reduces, reverse=True):
            raise KernelError(f"clipped too late, or by another norm: {schedule.finish}")
    try:
        clipped(schedule_of(STRATEGIES["fused-update"]))
    except ValueError:
        return
    raise KernelError("no gradient of the whole step is kept, and it is clipped")


def require_one_schedule(name: str, parts: Sequence[Part]) -> None:
    """Raise KernelError unless the step of one schedule is that of the strategy that has it."""
    for units in (Units.LARGEST, Units.LAYER):
        profile = replace(TEXTBOOK, units=units, again=frozenset())
        step = derive(Product((factor(name),)), parts, profile=profile)
        if step_of(schedule_of(STRATEGIES[name]), parts, profile) != step:
            raise KernelError(f"{name}: with units {units.value} its schedule has another step")


def _with_backward(group: Group, backward: Sequence[Op]) -> Group:
    """The group, with other lines in place of backward's."""
    lines: list[Op] = []
    for op in group.schedule.micro_step:
        lines += backward if op.kind is Kind.BACKWARD else [op]
    return replace(group, schedule=replace(group.schedule, micro_step=tuple(lines)))


def _require_layers_made_again(plan: str, plain: Programs, again: Programs) -> None:
    """Raise KernelError unless of what is made again layers alone keep what they take, and no more."""
    for program, recomputed in zip(plain, again, strict=True):
        part = program.part
        if recomputed.kept != ((part.takes,) if is_layer(part.name) else program.kept):
            raise KernelError(f"{plan}: {part.name} keeps {recomputed.kept}, made again")


def _require_lines_are_told(plan: str, step: Step) -> None:
    """Raise KernelError unless of a part without a move one of its lines is said to be wrong.

    And unless the states' schedule of a group neither counts tokens nor divides by their number, and
    neither makes activations again nor moves them; and unless of several groups the one is told that
    has no norm.
    """
    for number, group in enumerate(step.groups if len(step.groups) > 1 else ()):
        groups = (*step.groups[:number], _unclipped(group), *step.groups[number + 1 :])
        if wrong(replace(step, groups=groups)) != (number, "weights"):
            raise KernelError(f"{plan}: {group.weights} have no norm, and that is not told")
    at = max(range(len(step.programs)), key=lambda number: len(step.programs[number].moves))
    program = step.programs[at]
    damaged = program.without(program.moves[0])
    others = (*step.programs[:at], damaged, *step.programs[at + 1 :])
    told = wrong(replace(step, programs=others), check_step)
    if told not in [(program.part.name, line) for line in damaged.lines]:
        raise KernelError(f"{plan}: without {program.moves[0]}, {told} is said to be wrong")
    *rest, last = step.groups
    gathered = tuple(axis.name for axis in step.programs[0].axes)
    for op in (
        Op(Kind.RELEASE, Phase.REDUCE, Buffer.ACTIVATIONS),
        Op(Kind.ALL_GATHER, Phase.REDUCE, Buffer.ACTIVATIONS, axes=gathered),
        Op(Kind.COUNT, Phase.REDUCE, Buffer.TOKENS),
        Op(Kind.DIVIDE, Phase.REDUCE, Buffer.GRADIENTS, by=Buffer.TOTAL_TOKENS),
        Op(Kind.RECOMPUTE, Phase.REDUCE, Buffer.PARAMETERS, Buffer.ACTIVATIONS),
        Op(Kind.OFFLOAD, Phase.REDUCE, Buffer.ACTIVATIONS, Buffer.ACTIVATIONS),
    ):
        counted = replace(last.schedule, finish=(op, *last.schedule.finish))
        if wrong(replace(step, groups=(*rest, replace(last, schedule=counted)))) != last.weights[0]:
            raise KernelError(f"{plan}: {op} is a line of the states' schedule")


def _require_faults_are_found(plan: str, step: Step) -> None:
    """Raise KernelError unless a step with another norm is rejected just where it is not right."""
    several = len(step.groups) > 1
    for in_micro_step in (False, True) if several else ():
        if _is_accepted_of_its_own(step, in_micro_step):
            raise KernelError(f"{plan}: each group of weights is clipped by its own norm")
    for number, fault in _faults(step):
        other = replace(step, groups=(*step.groups[:number], fault, *step.groups[number + 1 :]))
        right = every_slice_counts_once(other)
        if right and several:  # of several groups some are refused that still do
            continue
        try:
            accepted = _is_accepted(other, (fault,))
        except LayoutError:
            accepted = False
        if accepted is not right:
            lines = " ".join(" ".join(map(str, fault.schedule.finish)).split())
            raise KernelError(f"{plan}: another norm is {_VERDICT[accepted]}: {lines}")


def _require_told_of_norms(plan: str, step: Step) -> None:
    """Raise KernelError unless lines are accepted that leave a norm as it is, or are of none.

    And a broadcast of none is not.
    """
    for number, group in enumerate(step.groups):
        for finish, is_right in lines_beside(group.schedule, step.pipe):
            other = replace(group, schedule=replace(group.schedule, finish=finish))
            groups = (*step.groups[:number], other, *step.groups[number + 1 :])
            if (wrong(replace(step, groups=groups)) is None) is not is_right:
                lines = " ".join(" ".join(map(str, finish)).split())
                raise KernelError(f"{plan}: a norm's lines are {_VERDICT[not is_right]}: {lines}")


def _require_gradients_alike(plan: str, program: Program) -> None:
    """Raise KernelError unless a weight's gradient is to be summed over the axes along which a part
    leaves terms, and a step is refused of which two parts leave them along others.
    """
    weight, axes = program.part.weights[0], [axis.name for axis in program.axes]
    for lies in product((WHOLE, PARTIAL), repeat=len(axes)):
        along = {**program.lies, program.gradients[weight]: dict(zip(axes, lies, strict=True))}
        other = replace(program, lies=along)
        over, whole = (
            tuple(a for a, has in zip(axes, lies, strict=True) if has == lie)
            for lie in (PARTIAL, WHOLE)
        )
        if Step((other,), ()).gradients_over()[weight.name] != (over, whole):
            raise KernelError(f"{plan}: a gradient that is in terms along {over} is not summed there")
        for programs in ((program, other), (other, program)):
            is_right = wrong(Step(programs, ()), Step.summed_over) is None
            if is_right is not (over == program.summed_over(weight)):
                raise KernelError(
                    f"{plan}: accepted, with terms along {over} of one part alone, or not"
                )


def _require_groups_are_apart(plan: str, step: Step) -> None:
    """Raise KernelError unless a step is rejected with a weight in two groups, or with two as one."""
    for one, other in permutations(step.groups, 2):
        twice = replace(one, weights=(*one.weights, other.weights[0]))
        both = replace(one, weights=(*one.weights, *other.weights))
        turned = replace(one, weights=(*other.weights, *one.weights))
        rest = tuple(group for group in step.groups if group not in (one, other))
        for groups in ((twice, other, *rest), (both, *rest), (turned, *rest)):
            if wrong(replace(step, groups=groups)) is None:
                raise KernelError(f"{plan}: accepted, with {other.weights[0]} as {one.weights[0]}, too")
    for group in step.groups:
        for name in (name for name in group.weights if name in step.root):
            if wrong(replace(step, groups=(*step.groups, replace(group, weights=(name,))))) is None:
                raise KernelError(f"{plan}: accepted, with {name} in two groups that are alike")


def _is_accepted_of_its_own(step: Step, in_micro_step: bool) -> bool:
    """Whether a step is accepted, or right, whose groups add their norms to no others'.

    Of one micro-step all lines before the clip may be in it.
    """

    def own(op: Op) -> Op:
        return replace(op, axes=along_devices(op.axes))

    def alone(schedule: Schedule) -> Schedule:
        lines = [own(op) for op in schedule.finish if op.axes != (ALL_WEIGHTS,)]
        at = [op.kind for op in lines].index(Kind.CLIP) if in_micro_step else 0
        micro_step = (*schedule.micro_step, *lines[:at])
        return replace(schedule, micro_step=micro_step, finish=tuple(lines[at:]))

    groups = tuple(replace(group, schedule=alone(group.schedule)) for group in step.groups)
    other = replace(step, groups=groups)
    try:
        accepted = _is_accepted(other, groups, 1 if in_micro_step else MICRO_STEPS)
    except LayoutError:
        accepted = False
    return accepted or (not in_micro_step and every_slice_counts_once(other))


def _require_placed(plan: str, product: Product, parts: Sequence[Part], typed: Step) -> None:
    """Raise KernelError unless a profile's states are where it says, and such a step is accepted.

    Gradients wait whole, and leave the slices that are updated; of the embedding and the head, and of
    the last layer, parameters that are gathered are held. `typed`: a step with how values lie.
    """
    units = HeldUnits(frozenset((ROOT,)), Layers(frozenset((-1,)), others=False))
    profile = replace(TEXTBOOK, waits_whole=True, held_units=units)
    step = replace(typed, groups=derive(product, parts, profile=profile).groups)
    if not _is_accepted(step, step.groups):
        raise KernelError(f"{plan}: with units that are held it is not accepted")
    for group in step.groups:
        gathers = [op for op in group.schedule.micro_step if op.target is Buffer.VIEW and op.axes]
        held = {op.span is Span.ALL_UNITS for op in gathers}
        is_last = group.layers == units.layers
        says = {name in step.root or is_last for name in group.weights}
        waits = not group.schedule.rest(State.GRADIENTS).sharded
        leaves = group.schedule.sliced_by_update == group.schedule.rest(State.OPTIMIZER).sharded
        of_all = group.layers == EVERY_LAYER and not {*group.weights} <= step.root
        if not (waits and leaves) or (held and (held != says or of_all)):
            raise KernelError(f"{plan}: {group.weights} are placed otherwise than the profile says")
    _require_each_layer_once(plan, step)


def _require_each_layer_once(plan: str, step: Step) -> None:
    """Raise KernelError unless a step is rejected where a layer has no schedule of weights, or two."""
    for number, group in enumerate(step.groups):
        others = [replace(group, layers=layers) for layers in (group.layers.rest, EVERY_LAYER)]
        of_fewer = replace(group.schedule, axes=group.schedule.axes[1:])
        others.append(replace(group, schedule=of_fewer))  # it sums along fewer axes
        for other in others if group.layers != EVERY_LAYER else ():
            groups = (*step.groups[:number], other, *step.groups[number + 1 :])
            if wrong(replace(step, groups=groups)) not in group.weights:
                raise KernelError(f"{plan}: accepted, with a schedule of layers {other.layers}")


def _is_accepted(step: Step, groups: Sequence[Group], micro_steps: int = MICRO_STEPS) -> bool:
    """Whether some groups' schedules are right, of programs that are. Raises LayoutError if the rest of
    a step is not.
    """
    check_parts(step)
    schedules = (group.schedule for group in groups)
    return all(check(s, dict.fromkeys(s.axes, DEVICES), micro_steps).accepted for s in schedules)


def _faults(step: Step) -> Iterator[tuple[int, Group]]:
    """Groups whose norm is another; of several, those that clip nothing, and have none."""
    for number, group in enumerate(step.groups):
        for finish in _other_norms(group.schedule, axes_of(step)):
            yield number, replace(group, schedule=replace(group.schedule, finish=finish))
        if len(step.groups) > 1:
            for finish in _weights_first(group.schedule.finish):
                yield number, replace(group, schedule=replace(group.schedule, finish=finish))
            yield number, _unclipped(group)


def _unclipped(group: Group) -> Group:
    """The group, that clips nothing and has no norm."""
    others = (op for op in group.schedule.finish if not {op.target, op.by} & {Buffer.NORM})
    return replace(group, schedule=replace(group.schedule, finish=tuple(others), training=PLAIN))


def _other_norms(schedule: Schedule, every: Axes) -> Iterator[tuple[Op, ...]]:
    """What may end a step: a norm twice, or a line of it more, left out, on other axes, too early."""
    before = schedule.finish
    yield Op(Kind.RELEASE, Phase.REDUCE, Buffer.NORM), *before  # of which nothing is there
    norm = [i for i, op in enumerate(before) if op.target is Buffer.NORM]
    yield *before[: norm[-1] + 1], *before[norm[0] :]
    for i, op in enumerate(before):
        for instead in (
            _other_lines(op, schedule.axes, every) if Buffer.NORM in (op.target, op.by) else ()
        ):
            yield *before[:i], *instead, *before[i + 1 :]
        if i and Buffer.NORM is op.target is before[i - 1].target:
            yield *before[: i - 1], op, before[i - 1], *before[i + 1 :]


def _weights_first(finish: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """With the sum over groups of weights before those over devices, or in one line with them."""
    for i, op in enumerate(finish):
        if ALL_WEIGHTS in op.axes[1:]:
            devices = along_devices(op.axes)
            over = replace(op, axes=(ALL_WEIGHTS,)), replace(op, axes=devices)
            yield (*finish[:i], *over, *finish[i + 1 :])
            for at in range(len(devices)):
                axes = *devices[:at], ALL_WEIGHTS, *devices[at:]
                yield *finish[:i], replace(op, axes=axes), *finish[i + 1 :]


def _other_lines(op: Op, own: Axes, every: Axes) -> Iterator[tuple[Op, ...]]:
    """What may stand for a line of a norm. `own`: the axes that its schedule is about."""
    yield ()
    if op.kind is Kind.SQUARE_NORM:
        yield from ((replace(op, within=within),) for within in _others(op.within, own))
    if op.kind in (Kind.ALL_REDUCE, Kind.BROADCAST):
        yield op, op
        yield from ((replace(op, axes=axes),) for axes in _others(op.axes, every) if axes)
    if op.kind is Kind.ALL_REDUCE:
        yield (replace(op, mean=True),)
        for axis in (axis for axis in along_devices(op.axes) if axis not in own):
            rest = tuple(other for other in op.axes if other != axis)
            first = replace(op, kind=Kind.BROADCAST, axes=(axis,))
            yield (first, *([replace(op, axes=rest)] if rest else []))


def _others(axes: Axes, every: Axes) -> Iterator[Axes]:
    """One axis fewer, or one more."""
    yield from (tuple(other for other in axes if other != axis) for axis in axes)
    yield from ((axis, *axes) for axis in every if axis not in axes)
