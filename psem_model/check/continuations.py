"""The earliest line after which no continuation is right, where more than one line is wrong.

What comes after a line is replaced: gradients are summed or gathered along each axis or left alone,
scaled, divided by a new count and clipped as the training says, applied, and the parameters gathered.
Where none of these is right after a line, but one is after the line before, that line spoils it. Where
one is right after the last line, no line is wrong: the step ends too early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

from psem_model.check.edits import Spot, reads, used
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, Monomial, Op, Phase, Schedule, Span
from spec.models.states import State
from spec.models.training import Loss

B, PHASE = Buffer, Phase.UPDATE
MOST_AXES = 4  # along each of which gradients are summed, gathered or left alone


def spoiling(schedule: Schedule, right: Callable[[Schedule], bool]) -> Spot | None:
    """The first line from backward on after which no continuation is right; None if that is not known.

    `right`: whether a schedule is accepted, in a case of one micro-step.
    """
    ops, tails = schedule.ops, _known(schedule)
    if not tails:
        return None
    backward = [i for i, op in enumerate(ops) if op.kind is Kind.BACKWARD]

    def continues(count: int) -> bool:
        begun = replace(schedule, micro_step=ops[:count], finish=())
        return any(right(replace(begun, finish=tail)) for tail in tails)

    low, high = backward[-1] + 1, len(ops)  # after `low` lines it goes on, after `high` it does not
    if not continues(low) or continues(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if continues(middle) else (low, middle)
    last = ops[low]
    if last.kind is Kind.RELEASE:  # it is meant; what was made of the buffer before is not enough
        low = max((i for i in range(low) if last.source in reads(ops[i])), default=low)
    each = len(schedule.micro_step)
    return Spot(0, low) if low < each else Spot(1, low - each)


def missing(schedule: Schedule, right: Callable[[Schedule], bool]) -> tuple[Op, ...]:
    """The fewest lines with which, at its end, a schedule is right; none if no usual ones make it so.

    `right`: whether a schedule is accepted.
    """
    tails = sorted(_known(schedule), key=len)
    return next((t for t in tails if right(replace(schedule, finish=(*schedule.finish, *t)))), ())


def _known(schedule: Schedule) -> list[tuple[Op, ...]]:
    """What may come after a line; nothing where that is not known."""
    backward = any(op.kind is Kind.BACKWARD for op in schedule.ops)
    if len(schedule.axes) > MOST_AXES or not backward or any(rest.host for _, rest in schedule.rests):
        return []
    return list(dict.fromkeys(_tails(schedule)))


def _tails(schedule: Schedule) -> Iterator[tuple[Op, ...]]:
    """What may come after a line."""
    training, there = schedule.training, used(schedule)
    optimizer, parameters = (schedule.rest(s).sharded for s in (State.OPTIMIZER, State.PARAMETERS))
    missing = tuple(a for a in optimizer if a not in parameters)
    publish = [Op(Kind.ALL_GATHER, PHASE, B.PARAMETERS, None, missing, parameters)] if missing else []
    resets = [Op(Kind.RESET, PHASE, b) for b in (B.GRADIENTS, B.TOTAL_TOKENS) if b in there]
    yield tuple(resets)
    yield (*publish, *resets)
    for gradient in (b for b in (B.GRADIENTS, B.FRESH) if b in there):
        update = Op(Kind.UPDATE, PHASE, gradient, B.OPTIMIZER, within=optimizer)
        for adds, sums, means, last in product(
            _tied(gradient, training.tied),
            product((None, Kind.ALL_REDUCE, Kind.ALL_GATHER), repeat=len(schedule.axes)),
            _scales(schedule, gradient),
            _finishing(schedule, gradient),
        ):
            collected = [
                Op(kind, PHASE, gradient, None, (axis,), span=_span(kind, gradient))
                for axis, kind in zip(schedule.axes, sums, strict=True)
                if kind
            ]
            yield (*adds, *collected, *means, *last, update, *publish, *resets)


def _span(kind: Kind, buffer: Buffer) -> Span:
    return Span.UNIT if kind is Kind.ALL_GATHER and buffer is B.FRESH else Span.NONE


def _tied(gradient: Buffer, tied: bool) -> list[list[Op]]:
    added = Op(Kind.ACCUMULATE, PHASE, B.TIED, gradient)
    return [[], [added]] if tied else [[]]


def _scales(schedule: Schedule, gradient: Buffer) -> Iterator[list[Op]]:
    """Nothing, or what undoes a scale, or makes a mean of a sum."""
    ops, mean = schedule.ops, schedule.training.loss is Loss.MEAN
    numbers = [1 / op.by.number for op in ops if isinstance(op.by, Monomial) and op.by.number]
    names = (*schedule.axes, MICRO_STEPS) if mean else ()
    for number in dict.fromkeys((Fraction(1), *numbers)):
        for chosen in product((False, True), repeat=len(names)):
            sizes = tuple((n, -1) for n, is_one in zip(names, chosen, strict=True) if is_one)
            factor = Monomial(number, sizes)
            yield [] if factor == Monomial() else [Op(Kind.SCALE, PHASE, gradient, by=factor)]


def _finishing(schedule: Schedule, gradient: Buffer) -> Iterator[list[Op]]:
    """Nothing, or the division by a new count, and the clip by a new norm, as the training says."""
    training = schedule.training
    divide, clip = list[Op](), list[Op]()
    if training.loss is Loss.TOKEN_MEAN:
        count = Op(Kind.COUNT, PHASE, B.TOKENS)
        together = Op(Kind.ALL_REDUCE, PHASE, B.TOKENS, axes=schedule.axes)
        divide = [count, together, Op(Kind.DIVIDE, PHASE, gradient, by=B.TOKENS)]
    if training.clip:
        slices = schedule.rest(State.OPTIMIZER).sharded
        norm = Op(Kind.SQUARE_NORM, PHASE, gradient, B.NORM, within=slices)
        together = Op(Kind.ALL_REDUCE, PHASE, B.NORM, axes=slices)
        by_norm = Op(Kind.CLIP, PHASE, gradient, within=slices, by=B.NORM)
        clip = [norm, *([together] if slices else []), by_norm]
    yield []
    if divide:
        yield divide
    if clip:
        yield divide + clip
