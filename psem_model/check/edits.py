"""Every schedule that is one edit of a line away from another: what a wrong line may have been."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from psem_model.reading.schedule_keys import default_span
from spec.devices.mesh import Axes
from spec.language.schedule import (
    BY,
    COLLECTIVE_KINDS,
    GRADIENT_BUFFERS,
    HOST_TRANSFERS,
    MICRO_STEPS,
    PASSING,
    REDUCTIONS,
    RESTING,
    STATE_OF,
    TAKES,
    WEIGHT_BUFFERS,
    Buffer,
    Kind,
    MisfitError,
    Monomial,
    Op,
    Phase,
    Schedule,
    Span,
)
from spec.models.states import State
from spec.models.training import Loss

B = Buffer
SAMPLES = (Kind.BACKWARD, Kind.COUNT)  # their axes are those of whose samples they are


class How(Enum):
    """How an edit changes a schedule."""

    CHANGED = "changed"
    REMOVED = "removed"
    MOVED = "moved"
    ADDED = "added"


@dataclass(frozen=True, order=True)
class Spot:
    """A place among the operations: in micro_step (0) or finish (1), from 0 on."""

    part: int
    index: int


@dataclass(frozen=True)
class Edit:
    """One line edited, and the schedule that it makes.

    `at`: the line as given; of a line that is added, the one before which it is.
    """

    how: How
    at: Spot
    op: Op  # as it was, where it is removed; else as it is after the edit
    schedule: Schedule
    to: Spot | None = None  # of a line that is moved, the line as given before which it is then
    fields: tuple[str, ...] = ()  # that are changed; beside a line that is added, of the next one
    along: int = 0  # lines just before it that are moved along


def edits(schedule: Schedule) -> Iterator[Edit]:
    """Every edit of one line, but for those that do what another one does."""
    yield from removals(schedule)
    for part, ops in enumerate(schedule.bodies):
        for index, op in enumerate(ops):
            at = Spot(part, index)
            for fields, new in _changed(op, schedule):
                made = _with(schedule, part, (*ops[:index], new, *ops[index + 1 :]))
                yield Edit(How.CHANGED, at, new, made, fields=fields)
            without = _with(schedule, part, (*ops[:index], *ops[index + 1 :]))
            for to in _places(op, without):
                if to != at:
                    made = _inserted(without, to, op)
                    given = (
                        Spot(part, to.index + 1) if (to.part, to.index >= index) == (part, True) else to
                    )
                    yield Edit(How.MOVED, at, op, made, given)
    yield from _done_once(schedule)
    yield from _gathered_for_use(schedule)
    for new in dict.fromkeys(repertoire(schedule)):
        for at in _places(new, schedule):
            yield Edit(How.ADDED, at, new, _inserted(schedule, at, new))


def _done_once(schedule: Schedule) -> Iterator[Edit]:
    """What is done to each micro-step's gradients is done to their sum, perhaps with a new number."""
    each, once = schedule.bodies
    for index, op in enumerate(each):
        if op.kind not in BY:
            continue
        first = index  # of the lines before it that make its number
        while first and each[first - 1].target is op.by:
            first -= 1
        for start in {first, index}:
            sums = [_of_the_sum(each[i], schedule) for i in range(start, index + 1)]
            for at in range(len(once) + 1):
                finish = (*once[:at], *sums, *once[at:])
                made = replace(schedule, micro_step=each[:start] + each[index + 1 :], finish=finish)
                new, to = sums[-1], Spot(1, at)
                fields = tuple(f for f in ("source", "by") if getattr(new, f) is not getattr(op, f))
                if fields or start < index:
                    yield Edit(How.MOVED, Spot(0, index), new, made, to, fields, index - start)


def _of_the_sum(op: Op, schedule: Schedule) -> Op:
    """The operation on what is added up over the micro-steps."""
    sums: dict[Any, Any] = {B.FRESH: B.GRADIENTS, B.TOKENS: B.TOTAL_TOKENS}
    fields = {name: sums.get(getattr(op, name), getattr(op, name)) for name in ("source", "into", "by")}
    within = schedule.slices(fields["source"]) if op.source in STATE_OF else op.within
    return replace(op, **fields, within=within, shift=op.shift if within or op.axes else 0)


def _gathered_for_use(schedule: Schedule) -> Iterator[Edit]:
    """The parameters are gathered for an operation that reads what rests of them."""
    sharded = schedule.rest(State.PARAMETERS).sharded
    for part, ops in enumerate(schedule.bodies):
        for i, op in enumerate(ops):
            if sharded and op.source is B.PARAMETERS and op.kind in (Kind.FORWARD, Kind.BACKWARD):
                gather = Op(Kind.ALL_GATHER, op.phase, op.source, B.VIEW, sharded, span=Span.UNIT)
                reading = replace(op, source=B.VIEW)
                made = _with(schedule, part, (*ops[:i], gather, reading, *ops[i + 1 :]))
                yield Edit(How.ADDED, Spot(part, i), gather, made, fields=("source",))


def _with(schedule: Schedule, part: int, ops: tuple[Op, ...]) -> Schedule:
    return replace(schedule, finish=ops) if part else replace(schedule, micro_step=ops)


def _inserted(schedule: Schedule, at: Spot, op: Op) -> Schedule:
    ops = schedule.finish if at.part else schedule.micro_step
    return _with(schedule, at.part, (*ops[: at.index], op, *ops[at.index :]))


BESIDE = {  # what is written beside the target
    Kind.FORWARD: (B.STATISTICS,),
    Kind.BACKWARD: (B.TIED,),
    Kind.UPDATE: (B.PARAMETERS,),
}


def touched(op: Op) -> frozenset[Buffer]:
    """Every buffer that an operation reads or writes."""
    return reads(op) | writes(op) | {op.source}


def writes(op: Op) -> frozenset[Buffer]:
    """Every buffer that an operation writes."""
    return frozenset((op.target, *BESIDE.get(op.kind, ())))


def reads(op: Op) -> frozenset[Buffer]:
    """Every buffer that an operation makes something of."""
    if op.kind in (Kind.RESET, Kind.RELEASE, Kind.COUNT):
        return frozenset()
    also = {Kind.BACKWARD: (B.ACTIVATIONS,)}
    by = (op.by,) if isinstance(op.by, Buffer) else ()
    return frozenset((op.source, *by, *also.get(op.kind, ())))


def removals(schedule: Schedule) -> Iterator[Edit]:
    """The schedule without each of its lines."""
    for part, ops in enumerate(schedule.bodies):
        for index, op in enumerate(ops):
            without = _with(schedule, part, (*ops[:index], *ops[index + 1 :]))
            if not beside(op, schedule):
                yield Edit(How.REMOVED, Spot(part, index), op, without)


def _places(op: Op, schedule: Schedule) -> Iterator[Spot]:
    """Where an operation may be put in: past another one only if they touch the same buffer."""
    for part, ops in enumerate(schedule.bodies):
        for index in range(len(ops) + 1):
            if index == 0 or touched(op) & touched(ops[index - 1]):
                yield Spot(part, index)


# ---------------------------------------------------------------- another field
def _changed(op: Op, schedule: Schedule) -> Iterator[tuple[tuple[str, ...], Op]]:
    """The operation with another value in one field, or with other axes and slices."""
    for fields in _fields(op, schedule):
        new = _fitting(op, fields)
        if new is not None and new != op:
            names = tuple(name for name in fields if getattr(new, name) != getattr(op, name))
            yield names, new


def _fitting(op: Op, fields: Mapping[str, Any]) -> Op | None:
    """The operation with other fields, if they fit; with the span that is usual if its own does not."""
    try:
        return replace(op, **fields)
    except MisfitError as error:
        if error.field != "span":
            return None
    kind, source, into = (fields.get(name, getattr(op, name)) for name in ("kind", "source", "into"))
    try:
        return replace(op, **fields, span=default_span(kind, source, into))
    except MisfitError:
        return None


def _fields(op: Op, schedule: Schedule) -> Iterator[dict[str, Any]]:
    named, slices, others = said(schedule), slices_of(schedule), beside(op, schedule)
    if others:
        yield from ({"axes": (*a, *others)} for a in named)
        return
    if op.kind in (*COLLECTIVE_KINDS, *SAMPLES):
        along = named if op.kind in SAMPLES else named[1:]
        yield from ({"axes": a} for a in (*along, *near(op.axes, schedule.axes)))
        yield from ({"axes": a, "within": within} for a in along for within in slices)
    for within in (*slices, *near(op.within, schedule.axes)):
        yield {"within": within} | ({"shift": 0} if not within and not op.axes else {})
    yield {"shift": 0}
    yield {"mean": not op.mean}
    groups = (COLLECTIVE_KINDS, HOST_TRANSFERS)
    for kind in next((group for group in groups if op.kind in group), ()):
        yield from ({"kind": kind, "mean": m} for m in (op.mean, not op.mean))
    there = used(schedule)
    for source in there:
        if op.kind is not Kind.RELEASE:
            yield {"source": source}
    for into in there:
        yield {"into": None if into is op.source else into}
    if isinstance(op.by, Monomial):
        yield from ({"by": by} for by in factors(schedule, op.by))
    elif op.by is not None:
        yield from ({"by": by} for by in BY[op.kind])


# ------------------------------------------ what another line may say: what is there, or near
def slices_of(schedule: Schedule) -> tuple[Axes, ...]:
    """What a device's slices are along: nothing, or as the schedule says."""
    said = (*(op.within for op in schedule.ops), *(rest.sharded for _, rest in schedule.rests))
    return tuple(dict.fromkeys(((), *said)))


def beside(op: Op, schedule: Schedule) -> Axes:
    """The axes that a schedule is not about, over which a norm is summed."""
    return tuple(a for a in op.axes if a not in schedule.axes)


def said(schedule: Schedule) -> tuple[Axes, ...]:
    """Sets of axes that a schedule is about: none, each, all, and those that it names."""
    named = (*(op.axes for op in schedule.ops if not beside(op, schedule)), *slices_of(schedule))
    return tuple(dict.fromkeys(((), *((a,) for a in schedule.axes), schedule.axes, *named)))


def near(given: Axes, axes: Axes) -> Iterator[Axes]:
    """Sets of axes with one more, or one less."""
    return (tuple(a for a in axes if (a in given) is not (a == other)) for other in axes)


def factors(schedule: Schedule, by: Monomial | None = None) -> Iterator[Monomial]:
    """Numbers that gradients are scaled by: sizes, and what undoes the other scales.

    Of sizes none, all, or those of `by`; of two of them other powers.
    """
    scales = [op.by for op in schedule.ops if isinstance(op.by, Monomial) and op.by.number]
    scales += [by] if by and by.number else []
    numbers = [Fraction(1), *(n for s in scales for n in (s.number, 1 / s.number))]
    names = (*schedule.axes, MICRO_STEPS)
    powers = [{}, dict.fromkeys(names, -1), dict(by.powers) if by else {}]
    found = [
        {**given, **dict(zip(two, exponents, strict=True))}
        for given in powers
        for two in combinations(names, 2)
        for exponents in product((-1, 0, 1), repeat=2)
    ]
    sizes = dict.fromkeys(tuple((n, e[n]) for n in names if e.get(n)) for e in found)
    yield from (Monomial(number, s) for number in dict.fromkeys(numbers) for s in sizes)


# ------------------------------------------------------------------ one line more
def used(schedule: Schedule) -> tuple[Buffer, ...]:
    """The buffers that a schedule speaks of, or has because of what is trained."""
    ops, training = schedule.ops, schedule.training
    found = {b for op in ops for b in (op.source, op.target, op.by) if isinstance(b, Buffer)}
    found |= {B.OPTIMIZER, B.ACTIVATIONS}
    found |= {B.PARAMETERS} if schedule.rest(State.PARAMETERS).stored else set()
    found |= {B.GRADIENTS} if schedule.rest(State.GRADIENTS).stored else set()
    found |= {B.TIED} if training.tied else set()
    found |= {B.STATISTICS} if training.statistics else set()
    found |= {B.NORM} if training.clip else set()
    found |= {B.TOKENS, B.TOTAL_TOKENS} if training.loss is Loss.TOKEN_MEAN else set()
    return tuple(b for b in Buffer if b in found)


def repertoire(schedule: Schedule) -> Iterator[Op]:
    """The operations that may be missing: on the schedule's own buffers, slices and axes."""
    there, training = used(schedule), schedule.training
    slices, along = slices_of(schedule), said(schedule)[1:]
    means = (False, True) if training.loss is Loss.MEAN or training.statistics else (False,)
    scales = [f for f in factors(schedule) if f != Monomial() and _small(f)]
    scales = [f for f in scales if training.loss is Loss.MEAN or not f.powers]
    kinds = _missing(schedule)
    for kind, source, into in _moves(there, kinds):
        if kind is Kind.SCALE:
            choices: Iterable[dict[str, Any]] = ({"by": by} for by in scales)
        elif kind in BY:
            choices = ({"by": by} for by in BY[kind] if by in there)
        elif kind in COLLECTIVE_KINDS:
            choices = ({"axes": a, "mean": m} for a in along for m in means[: 1 + (kind in REDUCTIONS)])
        else:
            choices = ({},)
        for choice, within in product(list(choices), slices):
            try:
                span = default_span(kind, source, into)
                yield Op(kind, Phase.FORWARD, source, into, within=within, span=span, **choice)
            except MisfitError:
                continue


def _small(factor: Monomial) -> bool:
    """Whether it is one number or one size, or all sizes below a line."""
    if factor.number != 1:
        return not factor.powers
    return len(factor.powers) == 1 or {exponent for _, exponent in factor.powers} == {-1}


def _missing(schedule: Schedule) -> tuple[Kind, ...]:
    """The kinds of operation that may be missing."""
    ops, rests = schedule.ops, dict(schedule.rests)
    there = {op.kind for op in ops}
    never = {Kind.RELEASE, Kind.ZERO}
    never |= {kind for kind in (Kind.FORWARD, Kind.BACKWARD, Kind.UPDATE) if kind in there}
    if not any(rest.host for rest in rests.values()):
        never |= {*HOST_TRANSFERS}
        if rests[State.PARAMETERS].stored and rests[State.ACTIVATIONS].stored:
            never |= {Kind.RECOMPUTE}
    return tuple(kind for kind in Kind if kind not in never)


def _moves(
    there: tuple[Buffer, ...], kinds: tuple[Kind, ...]
) -> Iterator[tuple[Kind, Buffer, Buffer | None]]:
    """Operations of some kinds, from where and to where."""
    for kind in kinds:
        sums = kind in REDUCTIONS or kind is Kind.BROADCAST
        for source, into in _pairs(kind):
            in_place = into is source
            weights = sums and source in WEIGHT_BUFFERS
            between = (sums or kind in BY) and source in GRADIENT_BUFFERS and not in_place
            numbers = kind is Kind.BROADCAST and source is not B.STATISTICS
            not_back = kind is Kind.KEEP and not (source in PASSING and into in RESTING)
            to_itself = kind in (Kind.ACCUMULATE, Kind.RECOMPUTE) and in_place
            if {source, into} <= {*there} and not (
                weights or between or numbers or not_back or to_itself
            ):
                yield kind, source, None if in_place else into


def _pairs(kind: Kind) -> Iterator[tuple[Buffer, Buffer]]:
    """From where and to where a kind of operation fits."""
    for sources, targets in TAKES[kind]:
        yield from ((source, into) for source in sources for into in targets or (source,))
