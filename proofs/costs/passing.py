"""M9: what passes through a device in steps that no named strategy has, worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from proofs.checking.matching_schedules import after, tied_parameters
from proofs.checking.witnesses import operation, without
from proofs.tools.encoding import Symbolic
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, RealVal
from spec.costs.memory import Sizes, transient
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Schedule, Span
from spec.models.states import BytePolicy, State
from spec.plans.placement import BATCH, on_batch, place_states
from spec.plans.strategies import STRATEGIES

EVERYONE = (BATCH,)


def others_hold_by_hand(k: Kernel) -> Theorem:
    """The most that passes: of views that are kept, of what is held whole after units, of tied ones."""
    psi, unit, n, w, g, opt = k.reals("psi unit n w g opt")
    sizes = Sizes(psi, {BATCH: n}, BytePolicy(w, g, opt), unit, Symbolic())
    claims = [
        transient(schedule, sizes) == Symbolic().maximum(RealVal(0), *passing)
        for schedule, *passing in _schedules(psi, unit, w, g, opt)
    ]
    # gradients that are summed in another type are there in both
    summed = k.reals("summed")
    in_both = replace(sizes, policy=BytePolicy(w, g, opt, reduced=summed))
    zero2 = schedule_of(STRATEGIES["zero2"])
    claims += [
        transient(schedule, in_both) == times * (g + summed) * unit
        for times, schedule in ((1, zero2), (2, tied_parameters(zero2)))
    ]
    cast = schedule_of(on_batch("M", "S", "R", "S"))
    for schedule in (*map(schedule_of, STRATEGIES.values()), cast, tied_parameters(cast)):
        # what is not used is gone, released or not
        of_axes = replace(sizes, mesh=dict.fromkeys(schedule.axes, n))
        kept = without(schedule, Kind.RELEASE)
        claims.append(transient(kept, of_axes) == transient(schedule, of_axes))
    positive = [psi >= unit, unit > 0, n >= 1, w > 0, g > 0, opt > 0, summed > 0]
    return k.prove("so_much_passes_in_other_steps", And(*claims), given=positive)


def _schedules(psi: Any, unit: Any, w: Any, g: Any, opt: Any) -> Iterator[tuple[Any, ...]]:
    """Schedules, and what passes at some moments, one of which is the fullest."""
    dp, zero2, zero3 = (schedule_of(STRATEGIES[name]) for name in ("dp", "zero2", "zero3"))
    # of tied parameters there are two gradients at once, until one is added to the other: of all of
    # them, where backward adds in place
    yield tied_parameters(dp), g * psi
    # on one device there is nothing to sum, in each micro-step or later: gradients are added in place
    alone = place_states((), {state: {} for state in State})
    yield schedule_of(replace(alone, each=True)), 0 * psi
    yield tied_parameters(zero2), 2 * g * unit
    yield tied_parameters(zero3), (w + 2 * g) * unit
    # they are there until they are added, and gone when the optimizer's state passes after that
    yield with_moments(tied_parameters(zero2)), (2 * g + opt) * unit
    yield tied_parameters(schedule_of(on_batch("R", "S*", "R", "S"))), g * psi, opt * unit
    yield view_of_the_step_before(zero3), w * psi + g * unit
    # parameters are there until the last unit of gradients is gathered
    yield gathered_whole(zero3), (w + g) * psi + g * unit, (g + opt) * psi


def with_moments(schedule: Schedule) -> Schedule:
    """After backward the optimizer's state is gathered, unit by unit, and released."""
    gather = operation(
        Kind.ALL_GATHER, Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW, axes=EVERYONE, span=Span.UNIT
    )
    more = gather, operation(Kind.RELEASE, Buffer.OPTIMIZER_VIEW)
    return after(schedule, Kind.BACKWARD, lambda _: more)


def view_of_the_step_before(schedule: Schedule) -> Schedule:
    """Parameters are gathered when they are updated, and there for the next step, all of them."""
    gather = operation(Kind.ALL_GATHER, Buffer.PARAMETERS, Buffer.VIEW, axes=EVERYONE, span=Span.UNIT)
    kept = [op for op in schedule.micro_step if Buffer.VIEW not in (op.into, op.source)]
    reads = [op for op in schedule.micro_step if op.kind in (Kind.FORWARD, Kind.BACKWARD)]
    micro_step = (*reads, *(op for op in kept if op not in reads))
    finish = (*schedule.finish, gather)
    return replace(schedule, micro_step=micro_step, finish=finish, start=(Buffer.VIEW,))


def gathered_whole(schedule: Schedule) -> Schedule:
    """Each state is gathered whole, and released: what passed unit by unit has had its turns."""

    def gathered(source: Buffer, into: Buffer) -> tuple[Any, Any]:
        gather = operation(Kind.ALL_GATHER, source, into, axes=EVERYONE, span=Span.ALL_UNITS)
        return gather, operation(Kind.RELEASE, into)

    forward, backward, reduce, add = (
        next(op for op in schedule.micro_step if op.kind is kind)
        for kind in (Kind.FORWARD, Kind.BACKWARD, Kind.REDUCE_SCATTER, Kind.ACCUMULATE)
    )
    view, without_view = gathered(Buffer.PARAMETERS, Buffer.VIEW)
    fresh, without_fresh = gathered(Buffer.FRESH, Buffer.FRESH)
    moments = gathered(Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW)
    first = view, forward, backward, without_view, reduce
    return replace(schedule, micro_step=(*first, fresh, *moments, add, without_fresh))
