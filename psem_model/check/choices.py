"""What another line of a schedule may say: its own buffers, axes, slices and factors, or those near."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from psem_model.reading.schedule_keys import default_span
from spec.devices.mesh import Axes
from spec.language.schedule import (
    BY,
    COLLECTIVE_KINDS,
    GRADIENTS,
    HOST_TRANSFERS,
    MICRO_STEPS,
    PASSING,
    REDUCTIONS,
    RESTING,
    TAKES,
    WEIGHTS,
    Buffer,
    Kind,
    MisfitError,
    Monomial,
    Op,
    Phase,
    Schedule,
)
from spec.models.states import State
from spec.models.training import Loss

B = Buffer


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
    powers = [{}, dict.fromkeys(names, -1), dict(by.sizes) if by else {}]
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
    scales = [f for f in scales if training.loss is Loss.MEAN or not f.sizes]
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
        return not factor.sizes
    return len(factor.sizes) == 1 or {exponent for _, exponent in factor.sizes} == {-1}


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
            weights = sums and source in WEIGHTS
            between = (sums or kind in BY) and source in GRADIENTS and not in_place
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
