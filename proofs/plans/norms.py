"""Which squares a step's norms add up: their lines, run on devices that count slices.

It is another definition than `spec.checking.norms`: of how a norm lies nothing is said. And which rules
of programs these lines keep to, along the axes that states' schedules are not about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

from proofs.language.program_lines import ADD
from proofs.language.program_rules import NO, Rule, rules_of
from proofs.trusted.kernel import KernelError
from spec.devices.layouts import PARTIAL, WHOLE, Lie
from spec.devices.mesh import ALL_WEIGHTS, Axes, along_devices
from spec.language.programs import result
from spec.language.schedule import Buffer, Kind, Op, Phase, Schedule
from spec.language.steps import Group, Step
from spec.models.transformer import EMBEDDING, HEAD, is_layer
from spec.models.values import Does, Operation, Value

DEVICES = 2  # along each axis but that of stages
STAGES = 3  # of which one has neither the embedding nor the head
Device = Mapping[str, int]  # its number along each axis
Slice = tuple[str, tuple[tuple[str, int], ...]]  # of a weight, and whose it is along what cuts it
Norm = tuple[Fraction | int, ...]  # how often the square of each slice is in it


def axes_of(step: Step) -> Axes:
    """All axes of a step's mesh."""
    of_programs = (axis.name for program in step.programs for axis in program.axes)
    of_groups = (axis for group in step.groups for axis in group.schedule.axes)
    return tuple(dict.fromkeys((*of_programs, *([step.pipe] if step.pipe else ()), *of_groups)))


def every_slice_counts_once(step: Step) -> bool:
    """Whether each weight is clipped once, on each device by the norm of all slices, each once."""
    axes = axes_of(step)
    along = [range(STAGES if axis == step.pipe else DEVICES) for axis in axes]
    devices = [dict(zip(axes, at, strict=True)) for at in product(*along)]
    left = [[op for op in group.schedule.finish if _is_of_norm(op)] for group in step.groups]
    squared = [_slices(step, group, _within(group.schedule), devices) for group in step.groups]
    every = dict.fromkeys(slice for each in squared for own in each for slice in own)
    starts = [[tuple(map(own.__contains__, every)) for own in each] for each in squared]
    once = (1,) * len(every)
    clips = [sum(op.kind is Kind.CLIP for op in ops) for ops in left]
    norms: list[Sequence[Norm]] = [[(0,) * len(every)] * len(devices) for _ in left]
    while any(left):
        for number, ops in enumerate(left):
            while ops and ALL_WEIGHTS not in ops[0].axes:
                op = ops.pop(0)
                if op.kind is Kind.SQUARE_NORM:
                    norms[number] = starts[number]
                elif op.kind is Kind.CLIP and any(norm != once for norm in norms[number]):
                    return False
                else:
                    norms[number] = _moved(op, norms[number], devices)
        if any(left) and not all(left):  # some wait for others, who do not come
            return False
        if any(left):  # a line's axes, in their order
            over = [ops.pop(0) for ops in left]
            at = [op.axes.index(ALL_WEIGHTS) for op in over]
            before = [replace(op, axes=op.axes[:i]) for op, i in zip(over, at, strict=True)]
            after = [replace(op, axes=op.axes[i + 1 :]) for op, i in zip(over, at, strict=True)]
            own = [_moved(op, norm, devices) for op, norm in zip(before, norms, strict=True)]
            total = [_sum(of_groups) for of_groups in zip(*own, strict=True)]
            norms = [_moved(op, total, devices) for op in after]
    return {*clips} == {1}


def rules_of_norms(step: Step) -> set[Rule]:
    """Those of squares and sums along axes that a schedule is not about: of programs, stages, groups.

    A square is a product of a gradient with itself, summed over all of its indices; what several stages
    or groups add is in terms. Raises KernelError unless a clip is by what is whole. What is done along
    a schedule's own axes, such as to the stages from the first, the verdict decides.
    """
    adding = {*((step.pipe,) if step.pipe else ()), *((ALL_WEIGHTS,) if len(step.groups) > 1 else ())}
    found = set[Rule]()
    for group in step.groups:
        over, lies = adding - {*group.schedule.axes}, dict[str, Lie]()
        for op in filter(_is_of_norm, group.schedule.finish):
            if op.kind is Kind.SQUARE_NORM:
                lies = dict.fromkeys(over, PARTIAL)
                found |= _rules_of_squares(step, group, lies)
            for axis in (a for a in op.axes if a in lies and op.kind is Kind.ALL_REDUCE):
                found.add(Rule(op.kind.value, NO, (lies[axis].layout,), WHOLE.layout))
                lies[axis] = WHOLE
            if {*lies.values()} - {WHOLE} and (op.kind is Kind.CLIP or ALL_WEIGHTS in op.axes):
                raise KernelError(f"{op}: of a norm that is not whole")
    return found


def lines_beside(schedule: Schedule, pipe: str | None) -> Iterator[tuple[tuple[Op, ...], bool]]:
    """What may end a step that clips, with lines beside it; and whether they are right.

    Of a norm that is gone nothing is summed, or sent; a mean of what is alike, and a second broadcast,
    leave it.
    """
    finish = schedule.finish
    moves = [i for i, op in enumerate(finish) if op.source is Buffer.NORM and op.axes]
    for op in (finish[i] for i in moves if along_devices(finish[i].axes)):
        sums = replace(op, kind=Kind.ALL_REDUCE, axes=along_devices(op.axes))
        for gone in (Kind.RELEASE, Kind.RESET):
            lines = *finish, Op(gone, Phase.REDUCE, Buffer.NORM), sums
            yield lines, True
            yield (*lines, replace(sums, kind=Kind.BROADCAST)), False
    before, after = finish[: moves[-1] + 1], finish[moves[-1] + 1 :]
    for axis in (axis for axis in schedule.axes if axis != pipe):
        mean = Op(Kind.ALL_REDUCE, Phase.REDUCE, Buffer.NORM, axes=(axis,), mean=True)
        yield (*before, mean, *after), True
    for i in (i for i in moves if finish[i].kind is Kind.BROADCAST):
        yield (*finish[:i], finish[i], *finish[i:]), True


def _rules_of_squares(step: Step, group: Group, lies: dict[str, Lie]) -> set[Rule]:
    """Those of a group's squares, and of their sum. `lies`: how that lies, which is written there."""
    found, own = set[Rule](), {*group.schedule.axes}
    for program in step.programs:
        for weight in (weight for weight in program.part.weights if weight.name in group.weights):
            square = Operation(Does.CONTRACT, (weight, weight), Value("square", ()))
            for axis in (axis for axis in program.axes if axis.name not in own):
                lie = program.lies[weight][axis.name]
                made = result(square, axis, lie, lie)
                if lies.setdefault(axis.name, made) != made:
                    raise KernelError(f"{weight.name}: its square is added to what lies otherwise")
                found |= {*rules_of(square, axis, (lie, lie), made)}
                found.add(Rule(ADD, NO, (made.layout, made.layout), made.layout))
    return found


def _is_of_norm(op: Op) -> bool:
    return Buffer.NORM in (op.source, op.target, op.by)


def _within(schedule: Schedule) -> Axes:
    """The axes along which each device squares its own slice, or has no other."""
    squared = (op for op in schedule.finish if op.kind is Kind.SQUARE_NORM)
    return tuple(axis for op in squared for axis in (*op.within, *schedule.slices(op.source)))


def _slices(step: Step, group: Group, within: Axes, devices: Sequence[Device]) -> list[set[Slice]]:
    """What each device has of a group's weights: of layers those of its stage, of all its slices."""
    found: list[set[Slice]] = [set() for _ in devices]
    for part, axes in ((program.part, program.axes) for program in step.programs):
        stage = {EMBEDDING: 0, HEAD: STAGES - 1}.get(part.name) if step.pipe else None
        own = {step.pipe} if step.pipe and is_layer(part.name) else set()
        for weight in (weight for weight in part.weights if weight.name in group.weights):
            cut = {axis.name for axis in axes if axis.rest(weight, part).index} | {*within} | own
            for device, has in zip(devices, found, strict=True):
                if stage is None or device[step.pipe or ""] == stage:
                    at = tuple((axis, at) for axis, at in device.items() if axis in cut)
                    has.add((weight.name, at))
    return found


def _moved(op: Op, norms: Sequence[Norm], devices: Sequence[Device]) -> Sequence[Norm]:
    """What devices have after a line that sums their norms along axes, or takes the first one's."""
    if op.kind not in (Kind.ALL_REDUCE, Kind.BROADCAST):
        return norms
    others = [tuple(at for axis, at in device.items() if axis not in op.axes) for device in devices]
    alike: dict[tuple[int, ...], list[Norm]] = {}
    for other, norm in zip(others, norms, strict=True):
        alike.setdefault(other, []).append(norm)
    total = {
        other: _sum(some if op.kind is Kind.ALL_REDUCE else some[:1]) for other, some in alike.items()
    }
    if op.mean:
        total = {o: tuple(Fraction(n, len(alike[o])) for n in norm) for o, norm in total.items()}
    return [total[other] for other in others]


def _sum(norms: Sequence[Norm]) -> Norm:
    return tuple(map(sum, zip(*norms, strict=True)))
