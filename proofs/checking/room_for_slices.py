"""T3: values that go where there is room for slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

from proofs.checking.further_schedules import EVERYONE, FRESH, GRADIENTS, PARAMETERS, scaled
from proofs.checking.matching_schedules import along
from proofs.checking.witnesses import around, operation
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import Axes
from spec.language.schedule import Buffer, Kind, Op, Rest, Schedule, Span
from spec.models.states import State
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES


def values_for_slices() -> Iterator[tuple[Schedule, bool]]:
    """Summed gradients that go where there is room for slices; whether they are slices, or are cut.

    And what is changed there: slices that are made zero before the others are added.
    """
    zero2 = schedule_of(STRATEGIES["zero2"])
    yield around(zero2, first=(scaled(GRADIENTS, 0),)), True
    for kind, within in product((Kind.ALL_REDUCE, Kind.REDUCE_SCATTER), (EVERYONE, ())):

        def other(op: Op, kind: Kind = kind, within: Axes = within) -> Op:
            of_kind = replace(op, kind=kind) if op.kind is Kind.REDUCE_SCATTER else op
            return replace(op, within=within) if op.kind is Kind.ACCUMULATE else of_kind

        micro_step = tuple(map(other, zero2.micro_step))
        yield replace(zero2, micro_step=micro_step), bool(within) or kind is Kind.REDUCE_SCATTER
    of_two = schedule_of(along(("outer", "inner"), "zero2"))
    forward, backward, scatter, keep, *rest = of_two.micro_step
    for one, second in permutations(scatter.axes):
        along_one = replace(scatter, axes=(one,))
        others = replace(scatter, kind=Kind.ALL_REDUCE, axes=(second,), within=(one,))
        cut_once = forward, backward, along_one, others, replace(keep, within=()), *rest
        yield replace(of_two, micro_step=cut_once), False
    once = tuple(op for op in zero2.micro_step if op.kind in (Kind.FORWARD, Kind.BACKWARD))
    for kind in (Kind.ALL_REDUCE, Kind.REDUCE_SCATTER):
        summed = operation(kind, FRESH, GRADIENTS, axes=EVERYONE)
        yield replace(zero2, micro_step=(*once, summed)), kind is Kind.REDUCE_SCATTER
    shifted = operation(Kind.REDUCE_SCATTER, FRESH, GRADIENTS, axes=EVERYONE, shift=1)
    whole = operation(Kind.ALL_REDUCE, FRESH, GRADIENTS, axes=EVERYONE)
    yield replace(zero2, micro_step=(*once, whole, shifted)), False
    summed = operation(Kind.ALL_REDUCE, FRESH, axes=EVERYONE)
    by_host = zero2.with_rest(State.GRADIENTS, Rest(EVERYONE, host=True))
    for kind, axes in ((Kind.ALL_GATHER, EVERYONE), (Kind.BROADCAST, EVERYONE), (Kind.FETCH, ())):
        moved = operation(kind, FRESH, GRADIENTS, axes=axes)
        there = (operation(Kind.OFFLOAD, FRESH),) if kind is Kind.FETCH else ()
        yield replace(zero2, micro_step=(*once, summed, *there, moved)), False
    away = operation(Kind.OFFLOAD, FRESH, GRADIENTS)
    yield replace(by_host, micro_step=(*once, summed, away)), False
    yield replace(zero2, micro_step=(once[0], replace(once[1], into=GRADIENTS, span=Span.NONE))), False
    cast = operation(Kind.RECOMPUTE, Buffer.OPTIMIZER, PARAMETERS)
    yield around(schedule_of(on_batch("S*", "R", "R", "S")), last=(cast,)), False
