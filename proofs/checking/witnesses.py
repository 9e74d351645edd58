"""Schedules that break a rule of the verdict: for each need, one that breaks nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Op, Phase, Rest, Schedule, Span
from spec.models.states import State
from spec.models.training import Loss, Statistics, Training
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

Ops = tuple[Op, ...]


@dataclass(frozen=True)
class Broken:
    """A schedule that breaks a rule of the verdict.

    `ones`: the data that are 1 in a run that diverges, if all others are 0; else any data are tried.
    """

    name: str
    rule: str
    schedule: Schedule
    micro_steps: int = 1
    steps: int = 1  # after which it has diverged
    ones: tuple[str, ...] = ()


def without(schedule: Schedule, *kinds: Kind, phase: Phase | None = None) -> Schedule:
    """The schedule, with the operations of some kinds forgotten: all, or those of a phase."""

    def kept(ops: Ops) -> Ops:
        return tuple(op for op in ops if op.kind not in kinds or phase not in (None, op.phase))

    return replace(schedule, micro_step=kept(schedule.micro_step), finish=kept(schedule.finish))


def twice(schedule: Schedule, kind: Kind) -> Schedule:
    """The schedule, with an operation of its finish repeated."""
    finish = [op for op in schedule.finish for _ in range(2 if op.kind is kind else 1)]
    return replace(schedule, finish=tuple(finish))


def meant(schedule: Schedule, **training: Any) -> Schedule:
    """The schedule, where a single device trains in another way."""
    return replace(schedule, training=Training(**training))


def around(schedule: Schedule, *, first: Ops = (), before: Ops = (), last: Ops = ()) -> Schedule:
    """The schedule, with more operations: first in a micro-step, before those that finish the step, and
    last in it.
    """
    finish = (*before, *schedule.finish, *last)
    return replace(schedule, micro_step=(*first, *schedule.micro_step), finish=finish)


def operation(kind: Kind, source: Buffer, into: Buffer | None = None, **fields: Any) -> Op:
    """An operation, of any phase."""
    return Op(kind, Phase.UPDATE, source, into, **fields)


def broken_schedules() -> tuple[Broken, ...]:
    """For each rule, schedules that break it: real bugs, and modes that leave a need unmet."""
    dp, zero1, zero2, zero3 = (schedule_of(STRATEGIES[s]) for s in ("dp", "zero1", "zero2", "zero3"))
    reduction, *rest = dp.finish
    mixed = replace(reduction, within=reduction.axes)
    gather = operation(Kind.ALL_GATHER, reduction.source, axes=reduction.axes)
    return (
        Broken("parameters_are_used_as_slices", "fresh", schedule_of(on_batch("S", "S", "S", "S"))),
        Broken("slices_are_summed_as_if_others_had_zeros", "whole", _summed_slices(dp, zero2)),
        Broken("parameters_are_not_gathered", "fresh", without(zero3, Kind.ALL_GATHER)),
        Broken(
            "nothing_is_recomputed",
            "fresh",
            without(schedule_of(on_batch("R", "R", "R", "M")), Kind.RECOMPUTE),
        ),
        Broken("gradients_are_not_reduced", "whole", without(dp, Kind.ALL_REDUCE)),
        Broken("gradients_are_reduced_twice", "whole", twice(dp, Kind.ALL_REDUCE)),
        Broken("slices_are_not_summed", "whole", without(zero2, Kind.REDUCE_SCATTER)),
        Broken("gradients_are_not_reset", "whole", without(dp, Kind.RESET), steps=2),
        Broken("every_device_does_all_samples", "whole", schedule_of(on_batch("R", "R", "R", "R"))),
        Broken("a_slice_updates_everything", "whole", schedule_of(on_batch("R", "R", "S", "S"))),
        Broken("each_micro_step_updates", "whole", schedule_of(STRATEGIES["fused-update"]), 2),
        Broken("parameters_are_not_published", "agreed", without(zero1, Kind.ALL_GATHER)),
        Broken("nothing_is_updated", "agreed", without(dp, Kind.UPDATE)),
        Broken("a_sum_is_not_a_mean", "whole", meant(dp, loss=Loss.MEAN)),
        Broken("tokens_are_not_counted", "whole", meant(dp, loss=Loss.TOKEN_MEAN)),
        Broken("gradients_are_divided_by_no_tokens", "whole", _of_no_tokens(dp)),
        Broken("nothing_is_clipped", "whole", meant(dp, clip=True)),
        Broken("tied_gradients_are_not_added", "whole", meant(dp, tied=True)),
        Broken("slices_are_summed_along_their_own_axis", "whole", replace(dp, finish=(mixed, *rest))),
        Broken(
            "sums_of_different_slices_are_gathered", "whole", replace(dp, finish=(mixed, gather, *rest))
        ),
        Broken(
            "only_a_slice_is_reset",
            "whole",
            replace(dp, finish=tuple(map(_within, dp.finish))),
            steps=2,
        ),
        Broken("zeros_are_not_there_in_the_next_step", "whole", _of_released_zeros(), steps=2),
        Broken("a_view_is_kept_before_the_update", "fresh", _of_an_old_view(), steps=2),
        Broken("a_norm_is_of_gradients_at_a_sum", "fresh", _of_another_norm(), ones=("start_0",)),
        *_of_one_need(),
        *_of_places(),
        *_of_multiples(),
    )


def _within(op: Op) -> Op:
    """A reset of a device's own slice only."""
    return replace(op, within=(BATCH,)) if op.kind is Kind.RESET else op


def _of_one_need() -> tuple[Broken, ...]:
    """For each need a schedule that would be accepted without it."""
    dp, zero3 = schedule_of(STRATEGIES["dp"]), schedule_of(STRATEGIES["zero3"])
    parameters, optimizer, everyone = Buffer.PARAMETERS, Buffer.OPTIMIZER, (BATCH,)
    summed = operation(Kind.ALL_REDUCE, parameters, optimizer, axes=everyone)
    whole = operation(Kind.KEEP, parameters, optimizer)
    owners = operation(Kind.ALL_GATHER, optimizer, axes=everyone)
    emptied = operation(Kind.RECOMPUTE, optimizer, within=everyone, shift=1)
    unread = schedule_of(on_batch("M", "R", "R", "S")).with_rest(State.PARAMETERS, Rest())
    in_place = operation(Kind.ALL_REDUCE, parameters, axes=everyone)
    forward, backward = dp.micro_step
    of_all = replace(backward, axes=everyone)
    lacking = replace(without(dp, Kind.ALL_REDUCE), micro_step=(forward, of_all))
    return (
        Broken("backward_reads_slices", "fresh", without(zero3, Kind.ALL_GATHER, phase=Phase.BACKWARD)),
        Broken("forward_reads_slices", "fresh", without(zero3, Kind.ALL_GATHER, phase=Phase.FORWARD)),
        Broken("others_activations_are_taken_for_ones_own", "fresh", _of_other_activations()),
        Broken("a_group_lacks_the_samples_of_others", "fresh", lacking),
        Broken("an_update_starts_from_a_sum", "current", around(dp, before=(summed,))),
        Broken(
            "optimizer_state_is_not_kept", "current", schedule_of(on_batch("R", "M", "R", "S")), steps=2
        ),
        Broken("a_gradient_is_one_devices_own", "whole", without(dp, Kind.ALL_REDUCE)),
        Broken("parameters_that_nothing_reads_are_summed", "agreed", around(unread, last=(in_place,))),
        Broken(
            "master_weights_are_wrong_between_steps",
            "agreed",
            around(dp, first=(whole,), last=(summed,)),
        ),
        Broken(
            "moments_are_wrong_between_steps", "agreed", around(dp, first=(owners,), last=(emptied,))
        ),
        Broken("no_parameters_are_kept", "agreed", schedule_of(on_batch("M", "M", "R", "S"))),
        Broken("statistics_are_each_devices_own", "agreed", meant(dp, statistics=Statistics.ALL)),
    )


def _of_places() -> tuple[Broken, ...]:
    """Operations that reach what is not there: another side of the host link, or another's slice."""
    zero3, offload = schedule_of(STRATEGIES["zero3"]), schedule_of(STRATEGIES["zero-offload"])
    parameters, view, optimizer = Buffer.PARAMETERS, Buffer.VIEW, Buffer.OPTIMIZER
    everyone, slices = (BATCH,), Rest((BATCH,))
    in_place = schedule_of(STRATEGIES["dp"]).with_rest(State.PARAMETERS, slices)
    gather = operation(Kind.ALL_GATHER, parameters, view, axes=everyone, span=Span.UNIT)
    keep = operation(Kind.KEEP, view, parameters)
    cast = operation(Kind.RECOMPUTE, optimizer, view, within=everyone, span=Span.UNIT)
    store = operation(Kind.OFFLOAD, view, parameters, within=everyone)
    on_host = zero3.with_rest(State.PARAMETERS, replace(slices, host=True))
    unread = schedule_of(on_batch("M", "R", "R", "S")).with_rest(State.PARAMETERS, Rest())
    away = operation(Kind.OFFLOAD, parameters)
    of_no_weights = replace(
        offload,
        finish=tuple(
            replace(op, source=op.target) if op.kind is Kind.FETCH else op for op in offload.finish
        ),
    )
    shifted = replace(keep, within=everyone, shift=1)
    stays = schedule_of(on_batch("R", "R", "O", "S"))
    fetch, back = (operation(kind, Buffer.GRADIENTS) for kind in (Kind.FETCH, Kind.OFFLOAD))
    without_copy = [op for op in stays.micro_step if op.kind is not Kind.OFFLOAD]
    on_device = replace(stays, micro_step=(fetch, *without_copy, back))
    fresh = operation(Kind.FETCH, Buffer.FRESH, span=Span.UNIT)
    fetched = tuple(fresh if op.kind is Kind.OFFLOAD else op for op in stays.micro_step)
    return (
        Broken("a_slices_room_keeps_the_whole", "fresh", around(in_place, first=(gather, keep))),
        Broken("a_slices_room_keeps_anothers", "fresh", around(in_place, first=(gather, shifted))),
        Broken("a_collective_reads_the_host", "fresh", around(on_host, last=(cast, store))),
        Broken("gradients_of_the_host_are_added_to_on_the_device", "whole", on_device),
        Broken("what_is_on_the_device_is_fetched", "whole", replace(stays, micro_step=fetched)),
        Broken("an_update_crosses_the_host_link", "agreed", without(offload, Kind.FETCH)),
        Broken("weights_are_fetched_from_where_none_are", "agreed", of_no_weights),
        Broken("weights_are_made_anew_without_moments", "current", _of_no_moments()),
        Broken("what_is_not_known_is_read_twice", "whole", _of_two_reads()),
        Broken("a_copy_is_on_the_other_side", "agreed", around(unread, last=(away,))),
    )


def _of_multiples() -> tuple[Broken, ...]:
    """Divisions by a multiple of the count, and clips by the norm of a multiple of the gradient."""
    dp, everyone = schedule_of(STRATEGIES["dp"]), (BATCH,)
    gradients, tokens, norm = Buffer.GRADIENTS, Buffer.TOTAL_TOKENS, Buffer.NORM
    count = (
        operation(Kind.COUNT, Buffer.TOKENS),
        operation(Kind.ACCUMULATE, Buffer.TOKENS, tokens),
    )
    counted = around(meant(dp, loss=Loss.TOKEN_MEAN), first=count)
    summed = operation(Kind.ALL_REDUCE, tokens, axes=everyone)
    divide = operation(Kind.DIVIDE, gradients, by=tokens)
    reset = operation(Kind.RESET, tokens)
    half, double = (
        operation(Kind.SCALE, gradients, by=Monomial(n)) for n in (Fraction(1, 2), Fraction(2))
    )
    of_half = (
        half,
        operation(Kind.SQUARE_NORM, gradients, norm),
        operation(Kind.ALL_REDUCE, norm, axes=everyone),
        double,
        operation(Kind.CLIP, gradients, by=norm),
    )

    def before_the_update(schedule: Schedule, *ops: Op) -> Schedule:
        reduce, *rest = schedule.finish
        return replace(schedule, finish=(reduce, *ops, *rest))

    return (
        Broken(
            "tokens_are_counted_twice",
            "whole",
            before_the_update(counted, summed, summed, divide, reset),
        ),
        Broken(
            "tokens_that_are_counted_twice_multiply",
            "whole",
            before_the_update(counted, summed, summed, divide, half, reset),
        ),
        Broken(
            "a_halved_gradients_square_norm_is_half",
            "whole",
            before_the_update(meant(dp, clip=True), *of_half),
        ),
    )


def _of_an_old_view() -> Schedule:
    """Data parallelism that keeps the next step's view before the weights are updated."""
    dp, view = schedule_of(STRATEGIES["dp"]), Buffer.VIEW
    reads = tuple(replace(op, source=view) for op in dp.micro_step)
    keep = operation(Kind.KEEP, Buffer.PARAMETERS, view, span=Span.ALL_UNITS)
    return replace(around(dp, before=(keep,)), micro_step=reads, start=(view,))


def _of_another_norm() -> Schedule:
    """Data parallelism that clips by the norm of a gradient at summed parameters, and drops that."""
    dropped, norm = with_a_dropped_gradient(), Buffer.NORM
    *ops, release = dropped.micro_step
    wrong = (*ops, operation(Kind.SQUARE_NORM, release.source, norm), release)
    reduced, *rest = dropped.finish
    clips = (reduced, operation(Kind.CLIP, Buffer.GRADIENTS, by=norm), *rest)
    return replace(meant(dropped, clip=True), micro_step=wrong, finish=clips)


def with_a_dropped_gradient() -> Schedule:
    """Data parallelism that makes a gradient at summed parameters, too, and drops it."""
    dp, view, fresh = schedule_of(STRATEGIES["dp"]), Buffer.VIEW, Buffer.FRESH
    forward, backward = (replace(op, source=view) for op in dp.micro_step)
    wrong = (
        operation(Kind.ALL_REDUCE, Buffer.PARAMETERS, view, axes=(BATCH,), span=Span.UNIT),
        *(forward, replace(backward, into=fresh, span=Span.UNIT)),
        operation(Kind.RELEASE, fresh),
    )
    return replace(dp, micro_step=(*dp.micro_step, *wrong))


def _of_released_zeros() -> Schedule:
    """Data parallelism that adds a sum of which nothing was added, and releases it."""
    add = operation(Kind.ACCUMULATE, Buffer.FRESH, Buffer.GRADIENTS)
    gone = operation(Kind.RELEASE, Buffer.FRESH)
    return around(schedule_of(STRATEGIES["dp"]), first=(add,), last=(gone,))


def _of_no_tokens(dp: Schedule) -> Schedule:
    """Data parallelism that divides by a count of tokens that was reset."""
    reduction, *rest = dp.finish
    reset = operation(Kind.RESET, Buffer.TOKENS)
    divide = operation(Kind.DIVIDE, reduction.source, by=Buffer.TOKENS)
    of_tokens = meant(dp, loss=Loss.TOKEN_MEAN)
    counted = around(of_tokens, first=(operation(Kind.COUNT, Buffer.TOKENS),))
    return replace(counted, finish=(reduction, reset, divide, *rest))


def _of_no_moments() -> Schedule:
    """Whole optimizer state is gathered, and the weights of slices are made from parameters again."""
    gathered = schedule_of(on_batch("R", "S*", "R", "S"))
    made = operation(Kind.RECOMPUTE, Buffer.PARAMETERS, Buffer.OPTIMIZER_VIEW, within=(BATCH,))
    sum_, gather, *others = gathered.finish
    return replace(gathered, finish=(sum_, gather, made, *others))


def of_zeros() -> Schedule:
    """Whole optimizer state is gathered, and made zero: of moments alone nothing is left."""
    gathered = schedule_of(on_batch("R", "S*", "R", "S"))
    sum_, gather, *others = gathered.finish
    zero = operation(Kind.ZERO, Buffer.OPTIMIZER_VIEW, span=Span.UNIT)
    return replace(gathered, finish=(sum_, gather, zero, *others))


def _of_two_reads() -> Schedule:
    """Data parallelism that adds what is not known, and takes off what it reads there once more."""
    fresh = Buffer.FRESH
    add = operation(Kind.ACCUMULATE, fresh, Buffer.GRADIENTS)
    off = operation(Kind.SCALE, fresh, by=Monomial(Fraction(-1)))
    return around(schedule_of(STRATEGIES["dp"]), first=(operation(Kind.RELEASE, fresh), add, off, add))


def _of_other_activations() -> Schedule:
    """Data parallelism that adds the gradient of a group's activations and takes another's off again.

    Forward reads parameters that are twice as large in each device's own slice, on everyone's samples.
    The one gradient is of the activations that each device has of its own samples, the other of those
    that one device has of everyone's.
    """
    view, double = Buffer.VIEW, Buffer.OPTIMIZER_VIEW
    parameters, activations, fresh = Buffer.PARAMETERS, Buffer.ACTIVATIONS, Buffer.FRESH
    everyone, unit = (BATCH,), Span.UNIT
    forward = operation(Kind.FORWARD, view, activations)
    backward = operation(Kind.BACKWARD, parameters, fresh, axes=everyone, span=unit)
    add = operation(Kind.ACCUMULATE, fresh, Buffer.GRADIENTS)
    added = (
        operation(Kind.KEEP, parameters, view, span=unit),
        operation(Kind.ALL_REDUCE, parameters, double, axes=everyone, span=unit),
        operation(Kind.KEEP, double, view, within=everyone, span=unit),
        *(forward, operation(Kind.ALL_GATHER, activations, axes=everyone), backward, add),
        *(forward, backward, operation(Kind.SCALE, fresh, by=Monomial(Fraction(-1))), add),
    )
    return around(schedule_of(STRATEGIES["dp"]).with_rest(State.ACTIVATIONS, Rest()), first=added)


def _summed_slices(dp: Schedule, zero2: Schedule) -> Schedule:
    """Slices of gradients that start from zero, and are summed over the devices that have them."""
    forward, backward, scatter, keep, *_ = zero2.micro_step
    everyone = scatter.axes
    reset = operation(Kind.RESET, keep.target)
    total = operation(Kind.ALL_REDUCE, keep.target, keep.source, axes=everyone, span=Span.UNIT)
    update = operation(Kind.UPDATE, keep.source, Buffer.OPTIMIZER)
    whole = dp.with_rest(State.GRADIENTS, Rest(everyone))
    return replace(whole, micro_step=(forward, backward), finish=(reset, scatter, keep, total, update))
