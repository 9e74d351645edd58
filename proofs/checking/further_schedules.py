"""Schedules whose verdict is compared with runs: what strategies do not have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from proofs.checking.clipped_by_parts import clipped_by_parts
from proofs.checking.matching_schedules import along, tied_parameters
from proofs.checking.witnesses import Ops, around, meant, operation
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import Axes
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, Monomial, Op, Rest, Schedule, Span
from spec.models.states import State
from spec.models.training import Loss, Statistics
from spec.plans.modes import R, S
from spec.plans.placement import BATCH, Placement, on_batch, place_states
from spec.plans.strategies import STRATEGIES

FRESH, GRADIENTS, VIEW, NORM = Buffer.FRESH, Buffer.GRADIENTS, Buffer.VIEW, Buffer.NORM
PARAMETERS, ACTIVATIONS, TOTAL = Buffer.PARAMETERS, Buffer.ACTIVATIONS, Buffer.TOTAL_TOKENS
EVERYONE = (BATCH,)
DP = dict(zip(State, (R, R, R, S), strict=True))
ADD = operation(Kind.ACCUMULATE, FRESH, GRADIENTS)
RELEASE = operation(Kind.RELEASE, FRESH)


@dataclass(frozen=True)
class Further:
    """A schedule of which nothing is said beforehand, but that some are `right`."""

    name: str
    schedule: Schedule
    right: bool = False


def further_schedules() -> tuple[Further, ...]:
    """Of several micro-steps, of slices, of numbers of tokens and norms, and of two axes."""
    found = (*_of_micro_steps(), *_of_slices(), *_of_others(), *_of_groups(), *_of_numbers())
    found += (*_of_sizes(), *_of_the_first(), *_of_statistics())
    right = ((name, schedule) for name, schedule, right in clipped_by_parts() if right)
    derived = (Further(name, schedule, right=True) for name, schedule in (*right, *_of_placements()))
    grows = Further("what_grows_elsewhere_is_gathered_from_owners", _of_growing_views(), right=True)
    return (*(Further(name, schedule) for name, schedule in found), *derived, grows)


def scaled(buffer: Buffer, times: int, **sizes: int) -> Op:
    return operation(Kind.SCALE, buffer, by=Monomial(Fraction(times), tuple(sizes.items())))


def _with(schedule: Schedule, micro_step: Ops, *finish: Op) -> Schedule:
    """Other operations of each micro-step, and before those that finish the step."""
    return replace(schedule, micro_step=micro_step, finish=(*finish, *schedule.finish))


def _of_micro_steps() -> Iterator[tuple[str, Schedule]]:
    """What each micro-step adds, keeps, or takes from the one before."""
    dp = schedule_of(STRATEGIES["dp"])
    forward, backward = dp.micro_step
    fresh = replace(backward, into=FRESH, span=Span.UNIT)
    again = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS)
    times = scaled(FRESH, 1, **{MICRO_STEPS: 1}), ADD, scaled(FRESH, -2, **{MICRO_STEPS: -1}), ADD
    late = _with(dp, (ADD, forward, fresh), ADD)
    reduced, update, zero = dp.finish
    off = scaled(FRESH, -1, **{MICRO_STEPS: 1})
    all_off = scaled(FRESH, -2, **{MICRO_STEPS: 1})
    only = operation(Kind.KEEP, FRESH, GRADIENTS)
    yield "the_last_micro_steps_gradient_alone", _with(dp, (forward, fresh), only)
    yield "gradients_one_micro_step_later", replace(late, finish=(*late.finish, _reset(FRESH)))
    yield "the_last_gradient_is_forgotten", replace(late, finish=(*late.finish[1:], _reset(FRESH)))
    yield "right_for_two_micro_steps", _with(dp, (forward, fresh, ADD, *times, RELEASE))
    finish = (all_off, ADD, reduced, RELEASE, again, update, zero)
    before = replace(dp, micro_step=(ADD, ADD, forward, backward), finish=finish)
    yield "the_step_befores_gradients_are_added_twice_and_taken_off", before
    yield "backward_is_done_once", _with(dp, (forward,), backward)
    summed = operation(Kind.ALL_REDUCE, PARAMETERS, VIEW, axes=EVERYONE, span=Span.UNIT)
    wrong = summed, replace(forward, source=VIEW), replace(fresh, source=VIEW)
    each = _with(dp, (forward, backward, *wrong, ADD), off, ADD)
    yield "gradients_at_sums_are_added_and_the_last_taken_off_as_often", each
    yield "the_view_of_the_micro_step_before_is_kept", _of_the_view_before(dp)
    twice = replace(dp, micro_step=(forward, fresh, ADD, ADD, RELEASE))
    yield "one_gradient_for_both_uses_of_a_weight", meant(twice, tied=True)


def _of_the_view_before(dp: Schedule) -> Schedule:
    """Micro-steps hand on the view that the one before read, and the step's last goes to parameters."""
    before = Buffer.OPTIMIZER_VIEW
    hand_on = operation(Kind.KEEP, VIEW, before, span=Span.ALL_UNITS)
    see = operation(Kind.KEEP, PARAMETERS, VIEW, span=Span.ALL_UNITS)
    back = operation(Kind.KEEP, before, PARAMETERS)
    gone = (operation(Kind.RELEASE, view) for view in (VIEW, before))
    micro_step = (hand_on, see, *(replace(op, source=VIEW) for op in dp.micro_step))
    return replace(dp, micro_step=micro_step, finish=(back, *dp.finish, *gone))


def _of_growing_views() -> Schedule:
    """Views of the step before, which devices sum and then make their own slices of anew, are gathered:
    what is not one's own grows in every step, and is not read.
    """
    dp, kept = schedule_of(STRATEGIES["dp"]), Buffer.OPTIMIZER_VIEW
    gather = operation(Kind.ALL_GATHER, kept, VIEW, axes=EVERYONE, span=Span.UNIT)
    reads = (replace(op, source=VIEW) for op in dp.micro_step)
    summed = operation(Kind.ALL_REDUCE, kept, axes=EVERYONE)
    own = operation(Kind.KEEP, PARAMETERS, kept, within=EVERYONE, span=Span.ALL_UNITS)
    micro_step, finish = (gather, *reads), (*dp.finish, summed, own)
    return replace(dp, micro_step=micro_step, finish=finish, start=(kept,))


def _reset(buffer: Buffer) -> Op:
    return operation(Kind.RESET, buffer)


def _of_slices() -> Iterator[tuple[str, Schedule]]:
    """Slices that are summed: among zeros, or over what others hold."""
    zero3 = schedule_of(STRATEGIES["zero3"])
    own = operation(Kind.KEEP, PARAMETERS, VIEW, within=EVERYONE, span=Span.UNIT)
    summed = operation(Kind.ALL_REDUCE, VIEW, axes=EVERYONE)
    zeros = operation(Kind.ZERO, VIEW, span=Span.UNIT)

    def fetched(*ops: Op) -> Schedule:
        each = ((ops if op.kind is Kind.ALL_GATHER else (op,)) for op in zero3.micro_step)
        return replace(zero3, micro_step=tuple(op for some in each for op in some))

    yield "its_own_slice_among_zeros_is_summed", fetched(zeros, own, summed)
    yield "its_own_slice_is_summed", fetched(own, summed)
    yield "slices_are_summed_once_more", around(zero3, before=(_all_reduce(GRADIENTS),))


def _all_reduce(buffer: Buffer) -> Op:
    return operation(Kind.ALL_REDUCE, buffer, axes=EVERYONE)


def _of_others() -> Iterator[tuple[str, Schedule]]:
    """What other devices' slices are."""
    dp, zero2 = schedule_of(STRATEGIES["dp"]), schedule_of(STRATEGIES["zero2"])
    reads, backward = dp.micro_step
    fresh = reads, replace(backward, into=FRESH, span=Span.UNIT)
    scattered = tuple(
        replace(op, shift=1) if op.kind is Kind.REDUCE_SCATTER else op for op in zero2.micro_step
    )
    yield "slices_are_scattered_to_the_device_before", replace(zero2, micro_step=scattered)
    owners = operation(Kind.ALL_GATHER, FRESH, axes=EVERYONE, span=Span.UNIT)
    both = (*fresh, owners, ADD, *fresh, replace(owners, shift=1), ADD, RELEASE)
    broadcast = operation(Kind.BROADCAST, PARAMETERS, axes=EVERYONE)
    yield (
        "two_devices_gradients_are_a_sum_of_two",
        replace(dp, micro_step=both, finish=(*dp.finish[1:], broadcast)),
    )


def _of_sizes() -> Iterator[tuple[str, Schedule]]:
    """Gradients that are right for some sizes: on two devices, or on as many along either axis."""
    dp, both = schedule_of(STRATEGIES["dp"]), schedule_of(along(("outer", "inner"), "dp"))
    half = Monomial(Fraction(1, 2), ((BATCH, 1),))
    yield "right_on_two_devices", around(dp, before=(operation(Kind.SCALE, GRADIENTS, by=half),))
    yield "right_on_three_devices_and_more", of_two_neighbours(dp)
    for name, sizes in (
        ("as_many_along_either_axis", {"outer": 1, "inner": -1}),
        ("one_over_another_along_two_axes", {"outer": 2, "inner": -1}),
        ("four_devices", {"outer": 1, "inner": 1}),
    ):
        times = Fraction(1, 4) if name == "four_devices" else Fraction(1)
        scaled = operation(Kind.SCALE, GRADIENTS, by=Monomial(times, tuple(sizes.items())))
        yield f"right_on_{name}", around(both, before=(scaled,))


def of_two_neighbours(schedule: Schedule, places: int = 1) -> Schedule:
    """Both neighbours' slices, some places on and back along the last axis, are doubled, and then less
    by what they were: of one device or two these are one slice, which is there twice in the end.
    """
    reduction, *rest = schedule.finish
    keep = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS)
    twice = operation(Kind.SCALE, GRADIENTS, by=Monomial(Fraction(2)))
    shifts, within = (places, -places), schedule.axes[-1:]
    ops = (replace(op, within=within, shift=n) for op in (twice, ADD) for n in shifts)
    return replace(schedule, finish=(reduction, keep, scaled(FRESH, -1), *ops, RELEASE, *rest))


def _of_the_first() -> Iterator[tuple[str, Schedule]]:
    """What is right of elements that the first device owns, and is used of these alone."""
    dp = schedule_of(STRATEGIES["dp"])
    reads, backward = dp.micro_step
    fresh, total = replace(backward, into=FRESH, span=Span.UNIT), _all_reduce(FRESH)

    def of_the_first(source: Buffer, into: Buffer) -> Ops:
        own = operation(Kind.KEEP, source, into, within=EVERYONE, span=Span.UNIT)
        zeros = operation(Kind.ZERO, into, span=Span.UNIT)
        return zeros, own, operation(Kind.BROADCAST, into, axes=EVERYONE)

    tied = Buffer.TIED
    at_a_view = replace(reads, source=VIEW), replace(fresh, source=VIEW)
    wrong = (*of_the_first(PARAMETERS, VIEW), *at_a_view, operation(Kind.RELEASE, VIEW), total)
    aside = operation(Kind.KEEP, FRESH, tied, span=Span.UNIT)
    used = of_the_first(tied, FRESH)[1:]
    both = (*wrong, aside, reads, fresh, total, *used, ADD)
    yield "a_view_of_the_first_devices_elements", replace(dp, micro_step=both, finish=dp.finish[1:])
    sums = Buffer.OPTIMIZER_VIEW
    added = (
        operation(Kind.ALL_REDUCE, PARAMETERS, sums, axes=EVERYONE, span=Span.UNIT),
        *(operation(Kind.KEEP, sums, VIEW, span=Span.UNIT), *at_a_view, aside),
        *(*of_the_first(sums, VIEW), *at_a_view, scaled(FRESH, -1)),
        *(replace(ADD, source=tied, into=FRESH), *of_the_first(FRESH, tied), replace(ADD, source=tied)),
    )
    apart = replace(dp, micro_step=(*dp.micro_step, *added))
    yield "gradients_at_sums_less_those_at_the_first_devices_elements", apart
    square, clip = operation(Kind.SQUARE_NORM, FRESH, NORM), operation(Kind.CLIP, tied, by=NORM)
    gone = operation(Kind.RELEASE, NORM)
    of_these = (*of_the_first(GRADIENTS, FRESH), square, RELEASE)
    these = (replace(aside, source=GRADIENTS), clip, gone, *of_the_first(tied, FRESH))
    whole = replace(square, source=GRADIENTS), replace(clip, source=GRADIENTS), gone
    less = (*of_the_first(GRADIENTS, tied), scaled(tied, -1), replace(ADD, source=tied))
    clipped_by = (*of_these, *these, *whole, *less, ADD, RELEASE)
    reduced, *rest = dp.finish
    yield (
        "a_norm_of_the_first_devices_elements",
        replace(meant(dp, clip=True), finish=(reduced, *clipped_by, *rest)),
    )


def of_the_firsts_slices() -> tuple[Schedule, Schedule]:
    """The slice of the next device goes from the first to all, and is added; and all slices are twice
    but for the first device's, and those of the next.
    """
    dp, tied = schedule_of(STRATEGIES["dp"]), Buffer.TIED
    keep = operation(Kind.KEEP, GRADIENTS, FRESH, within=EVERYONE, span=Span.ALL_UNITS)
    zeros, to_all = operation(Kind.ZERO, FRESH, span=Span.ALL_UNITS), _all_reduce(FRESH)
    own, next_ones = (
        (zeros, replace(keep, shift=n), replace(to_all, kind=Kind.BROADCAST)) for n in (0, 1)
    )
    aside = operation(Kind.KEEP, GRADIENTS, tied, span=Span.ALL_UNITS)
    less = scaled(FRESH, -1), replace(ADD, into=tied)
    all_but_two = aside, *own, *less, *next_ones, *less, replace(ADD, source=tied), RELEASE
    reduced, *rest = dp.finish
    one, others = (
        replace(dp, finish=(reduced, *ops, *rest)) for ops in ((*next_ones, ADD, RELEASE), all_but_two)
    )
    return one, others


def _of_groups() -> Iterator[tuple[str, Schedule]]:
    """A backward of a group's samples, whose activations are gathered, made again, or lacking."""
    dp = schedule_of(STRATEGIES["dp"])
    forward, backward = dp.micro_step
    of_all = replace(backward, axes=EVERYONE)
    _, *finish = dp.finish
    whole = replace(dp, finish=tuple(finish))
    lost = whole.with_rest(State.ACTIVATIONS, Rest(stored=False))
    gather = operation(Kind.ALL_GATHER, ACTIVATIONS, axes=EVERYONE)
    again = operation(Kind.RECOMPUTE, PARAMETERS, ACTIVATIONS)
    yield "activations_of_a_group_are_gathered", replace(whole, micro_step=(forward, gather, of_all))
    yield "activations_of_a_group_are_lost", replace(lost, micro_step=(forward, of_all))
    axes = ("outer", "inner")
    _, *last = schedule_of(along(axes, "dp")).finish
    half = replace(gather, axes=axes[:1]), replace(of_all, axes=axes)
    of_half = replace(schedule_of(along(axes, "dp")), micro_step=(forward, *half), finish=tuple(last))
    yield "activations_of_a_group_along_one_of_two_axes", of_half
    both = forward, replace(gather, axes=axes), half[1]
    yield "activations_of_a_group_along_two_axes", replace(of_half, micro_step=both)
    there = of_half.with_rest(State.ACTIVATIONS, Rest(axes[:1]))
    yield "activations_of_a_group_along_one_axis_and_there_along_the_other", there
    never = replace(backward, source=VIEW, into=FRESH, span=Span.UNIT)
    taken_off = (never, ADD, scaled(FRESH, -1), ADD, RELEASE)
    yield "gradients_at_no_view_taken_off", _with(dp, (forward, *taken_off, forward, backward))
    yield "activations_of_a_group_are_made_again", replace(lost, micro_step=(forward, again, of_all))


def of_samples_made_again() -> Schedule:
    """A backward of all samples, where activations are made again of those along one of two axes."""
    both = schedule_of(along(("outer", "inner"), "dp"))
    forward, backward = both.micro_step
    again = operation(Kind.RECOMPUTE, PARAMETERS, ACTIVATIONS)
    micro_step = forward, again, replace(backward, axes=both.axes)
    lost = both.with_rest(State.ACTIVATIONS, Rest(both.axes[:1], stored=False))
    return replace(lost, micro_step=micro_step, finish=both.finish[1:])


def of_activations_not_kept() -> Schedule:
    """Data parallelism whose activations rest nowhere, and are not made again."""
    dp = schedule_of(STRATEGIES["dp"])
    return dp.with_rest(State.ACTIVATIONS, Rest(EVERYONE, stored=False))


def of_weights_in_no_state() -> Schedule:
    """Data parallelism that reads weights from an optimizer state in which nothing rests."""
    dp, optimizer, view = schedule_of(STRATEGIES["dp"]), Buffer.OPTIMIZER, Buffer.VIEW
    made = operation(Kind.RECOMPUTE, optimizer, optimizer)
    seen = operation(Kind.RECOMPUTE, optimizer, view, span=Span.UNIT)
    read = [replace(op, source=view) if op.source is PARAMETERS else op for op in dp.micro_step]
    return replace(dp, micro_step=(made, seen, *read)).with_rest(
        State.OPTIMIZER, Rest((), stored=False)
    )


def of_nothing_times_zero() -> Schedule:
    """Data parallelism that adds zero times a gradient that is not there."""
    fresh = Buffer.FRESH
    none = operation(Kind.RELEASE, fresh), scaled(fresh, 0)
    added = operation(Kind.ACCUMULATE, fresh, GRADIENTS)
    return around(schedule_of(STRATEGIES["dp"]), first=(*none, added))


def of_a_count_that_grows() -> Schedule:
    """Data parallelism that adds up tokens in every step, and divides by them what nothing reads."""
    count = operation(Kind.COUNT, Buffer.TOKENS), operation(Kind.ACCUMULATE, Buffer.TOKENS, TOTAL)
    copy = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS)
    divided = copy, operation(Kind.DIVIDE, FRESH, by=TOTAL), RELEASE
    return around(schedule_of(STRATEGIES["dp"]), first=count, before=divided)


def of_working_copies() -> Schedule:
    """ZeRO-1 that gathers its parameters before they are read: between steps most are old."""
    zero1 = schedule_of(STRATEGIES["zero1"])
    gather = tuple(op for op in zero1.finish if op.kind is Kind.ALL_GATHER)
    others = tuple(op for op in zero1.finish if op not in gather)
    moved = replace(zero1, micro_step=(*gather, *zero1.micro_step), finish=others)
    return moved.with_rest(State.PARAMETERS, Rest((), working=True))


def _of_numbers() -> Iterator[tuple[str, Schedule]]:
    """Divisions by counts, and clips by norms: of multiples, of what is not known, of parts."""
    dp, zero3 = schedule_of(STRATEGIES["dp"]), schedule_of(STRATEGIES["zero3"])
    count = operation(Kind.COUNT, Buffer.TOKENS), operation(Kind.ACCUMULATE, Buffer.TOKENS, TOTAL)
    counted = around(meant(dp, loss=Loss.TOKEN_MEAN), first=count)
    reduce, *rest = counted.finish
    divide = operation(Kind.DIVIDE, GRADIENTS, by=TOTAL)
    twice = (_all_reduce(TOTAL), _all_reduce(TOTAL), divide, scaled(GRADIENTS, 1, **{BATCH: 1}))
    yield (
        "tokens_that_are_summed_twice_and_gradients_too",
        replace(counted, finish=(reduce, *twice, *rest, _reset(TOTAL))),
    )
    mean = meant(counted, loss=Loss.TOKEN_MEAN, clip=True)
    keep = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS)
    of_the_mean = keep, replace(divide, source=FRESH), operation(Kind.SQUARE_NORM, FRESH, NORM), RELEASE
    clip_first = operation(Kind.CLIP, GRADIENTS, by=NORM), divide
    both = reduce, _all_reduce(TOTAL)
    yield (
        "means_of_gradients_that_are_clipped_by_the_norm_of_their_mean",
        replace(mean, finish=(*both, *of_the_mean, *clip_first, *rest, _reset(TOTAL))),
    )
    gone = operation(Kind.RELEASE, TOTAL)
    yield "zero_over_a_count_that_is_gone", around(dp, first=(*count, gone), last=(divide,))
    added = keep, replace(divide, source=FRESH), ADD, RELEASE
    yield "gradients_over_no_count_are_added", around(dp, first=(*count, gone), before=added)
    yield "gradients_over_a_count_that_is_gone", around(dp, first=(*count, gone), before=(divide,))
    clip = clipped(meant(zero3, clip=True))
    yield (
        "slices_are_clipped_by_their_own_norms",
        replace(clip, finish=tuple(op for op in clip.finish if op.kind is not Kind.ALL_REDUCE)),
    )
    by_slices = clipped(meant(schedule_of(STRATEGIES["zero2"]), clip=True))
    too_early = next(op for op in by_slices.finish if op.kind is Kind.CLIP)
    absent = around(by_slices, before=(too_early,), last=(operation(Kind.RELEASE, NORM),))
    yield "a_clip_by_a_norm_that_is_not_there", absent
    square = operation(Kind.SQUARE_NORM, GRADIENTS, NORM)
    by_norm = operation(Kind.CLIP, GRADIENTS, by=NORM)
    scatter = replace(dp.finish[0], kind=Kind.REDUCE_SCATTER, shift=1)
    gather = operation(Kind.ALL_GATHER, GRADIENTS, axes=EVERYONE, shift=1)
    part = replace(square, within=EVERYONE, shift=1)
    for name, sums in (("a_norm_of_the_next_devices_slices", [_all_reduce(NORM)]), ("parts_of_it", [])):
        ops = (scatter, part, *sums, replace(by_norm, within=EVERYONE, shift=1), gather)
        yield name, replace(meant(dp, clip=True), finish=(*ops, *dp.finish[1:]))


def _of_the_host() -> Schedule:
    """Gradients that are added up on the host come whole, and start again there."""
    dp = schedule_of(STRATEGIES["dp"]).with_rest(State.GRADIENTS, Rest(host=True))
    forward, backward = dp.micro_step
    fresh = replace(backward, into=FRESH, span=Span.UNIT)
    micro_step = forward, fresh, operation(Kind.OFFLOAD, FRESH), ADD, RELEASE
    return _with(dp, micro_step, operation(Kind.FETCH, GRADIENTS))


def _of_placements() -> Iterator[tuple[str, Schedule]]:
    """What a placement says of when gradients are summed, of its host, and of two axes."""
    tied = tied_parameters(schedule_of(STRATEGIES["zero2"]))
    yield "clip_of_tied_slices", meant(clipped(tied), clip=True, tied=True)
    yield "tied_gradients_on_the_host", tied_parameters(schedule_of(STRATEGIES["zero-offload"]))
    yield "clip_along_two_axes", clipped(meant(schedule_of(along(("outer", "inner"))), clip=True))
    for name in ("dp", "zero1", "zero2"):
        yield f"{name}_each", schedule_of(replace(STRATEGIES[name], each=True))
    hsdp = STRATEGIES["hsdp"]
    for axis in hsdp.axes:
        yield f"hsdp_{axis}_first", schedule_of(replace(hsdp, summed_first=(axis,)))
        yield f"hsdp_{axis}_again", schedule_of(replace(hsdp, summed_again=(axis,), uses=2))
    yield "gradients_of_the_host_are_summed_beside_it", _of_the_host()
    for modes in product(("O", "S*+O"), ("S", "S+O"), ("S", "S+O")):
        yield f"{'_'.join(modes)}_on_the_host", schedule_of(on_batch(*modes, "S"))
    on_the_host = replace(on_batch("R", "R", "O", "S"), summed_again=EVERYONE, uses=2)
    yield "gradients_on_the_host_are_summed_once_for_all_uses", schedule_of(on_the_host)
    yield "states_on_the_host_are_gathered", schedule_of(on_batch("S*", "S*+O", "S*", "S"))
    keep = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS)
    nothing = keep, scaled(FRESH, 0), ADD, RELEASE
    yield "no_times_the_gradients_are_added", around(schedule_of(STRATEGIES["dp"]), before=nothing)
    again = schedule_of(on_batch("R", "R", "R", "M"))
    yield "statistics_where_forward_runs_again", meant(again, statistics=Statistics.COPY)
    dp = meant(schedule_of(STRATEGIES["dp"]), tied=True)
    forward, backward = dp.micro_step
    add = operation(Kind.ACCUMULATE, Buffer.TIED, GRADIENTS)
    late = (forward, add, backward)
    yield (
        "tied_gradients_one_micro_step_later",
        replace(dp, micro_step=late, finish=(add, *dp.finish, _reset(Buffer.TIED))),
    )
    dp = schedule_of(STRATEGIES["dp"])
    anew = replace(backward, into=FRESH, span=Span.ALL_UNITS)
    of_the_last = RELEASE, forward, anew, ADD, *dp.finish, _reset(FRESH)
    yield (
        "gradients_one_micro_step_later_and_the_last_ones_again",
        replace(dp, micro_step=(forward, ADD, RELEASE, anew), finish=of_the_last),
    )


def placements_by_order() -> Iterator[tuple[Placement, list[tuple[Kind, Buffer, Axes]]]]:
    """Placements of whole gradients, updated in slices along one axis, each with its sums in order."""
    axes = "outer", "inner"
    modes = {state: dict.fromkeys(axes, mode) for state, mode in DP.items()}
    placed = place_states(axes, modes | {State.OPTIMIZER: {"outer": R, "inner": S}})
    scatter = Kind.REDUCE_SCATTER, GRADIENTS, axes[1:]
    yield placed, [scatter, (Kind.ALL_REDUCE, GRADIENTS, axes[:1])]
    for waits, kept in ((False, FRESH), (True, GRADIENTS)):
        first = replace(placed, summed_first=axes[:1], waits=waits)
        yield first, [(Kind.ALL_REDUCE, kept, axes[:1]), scatter]
        yield replace(placed, sums_whole=True, waits=waits), [(Kind.ALL_REDUCE, GRADIENTS, axes)]
    in_slices = replace(placed, summed_first=axes[1:])  # slices are updated: there is no whole sum
    yield in_slices, [scatter, (Kind.ALL_REDUCE, GRADIENTS, axes[:1])]
    three, total = ("outer", "middle", "inner"), Kind.ALL_REDUCE
    of_all = along(three, "dp")
    yield replace(of_all, summed_first=three), [(total, FRESH, three)]
    again = replace(of_all, summed_again=three, uses=2)
    yield again, [(total, GRADIENTS, three)] * 2
    yield replace(again, summed_first=three, waits=True), [(total, GRADIENTS, three)]
    for gradients, kept in (("R", GRADIENTS), ("M", FRESH)):  # weights are updated in their slices
        yield on_batch("S*", "M", gradients, "S"), [(Kind.REDUCE_SCATTER, kept, EVERYONE)]
    yield replace(along(axes), sums_whole=True), [(Kind.REDUCE_SCATTER, FRESH, axes)]


def _of_statistics() -> Iterator[tuple[str, Schedule]]:
    """Statistics that are the first device's along one of two axes, or begin as a mean of all."""
    both = schedule_of(along(("outer", "inner"), "dp"))
    forward, backward = both.micro_step
    same = operation(Kind.BROADCAST, Buffer.STATISTICS, axes=both.axes[:1])
    along_one = replace(both, micro_step=(forward, same, backward))
    for whose in (Statistics.FIRST, Statistics.COPY):
        yield f"statistics_of_{whose.name.lower()}_along_one_axis", meant(along_one, statistics=whose)
    mean = operation(Kind.ALL_REDUCE, Buffer.STATISTICS, axes=EVERYONE, mean=True)
    first = around(schedule_of(STRATEGIES["dp"]), first=(mean,))
    yield "statistics_of_copy_that_begin_as_a_mean", meant(first, statistics=Statistics.COPY)
