"""T3: what a step may do that strategies do not: on the host, slice by slice, of groups of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from proofs.checking.clipped_by_parts import clipped_by_parts
from proofs.checking.matching_schedules import along, tied_parameters
from proofs.checking.witnesses import Ops, around, broken_schedules, meant, operation
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, Monomial, Op, Rest, Schedule, Span
from spec.models.states import MIXED_ADAM, POLICIES, BytePolicy, State
from spec.models.training import Loss, Statistics
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

FRESH, GRADIENTS, TOTAL, VIEW = Buffer.FRESH, Buffer.GRADIENTS, Buffer.TOTAL_TOKENS, Buffer.VIEW
PARAMETERS, STATES = Buffer.PARAMETERS, Buffer.OPTIMIZER_VIEW
NORM, TOKENS, TIED = Buffer.NORM, Buffer.TOKENS, Buffer.TIED
EVERYONE, BOTH = (BATCH,), ("outer", "inner")
ADD = operation(Kind.ACCUMULATE, FRESH, GRADIENTS)
OFF = operation(Kind.SCALE, FRESH, by=Monomial(Fraction(-1)))
COUNT = operation(Kind.COUNT, TOKENS)
COPY = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS)
OVER = operation(Kind.DIVIDE, FRESH, by=TOKENS)
GONE = operation(Kind.RELEASE, FRESH)
ZEROS = operation(Kind.ZERO, VIEW, span=Span.UNIT)
CLIP = {"clip": True}


def corners() -> Iterator[tuple[Schedule, BytePolicy, str]]:
    """Schedules, each with a policy, and the rule by which it is rejected; none if it is right."""
    for schedule in (*_on_the_host(), *_by_slices(), *_of_groups(), *_taken_off(), *_of_means()):
        yield schedule, MIXED_ADAM, ""
    yield _of_two_devices(), MIXED_ADAM, ""
    others = _of_the_first(), _of_the_nexts_parts(), *_of_the_nexts_room()
    for schedule in (*_of_sliced_terms(), *_of_other_quotients(), *others):
        yield schedule, MIXED_ADAM, "whole"
    for schedule in (_of_both_uses(), _of_two_groups()):
        yield schedule, MIXED_ADAM, "fresh"
    dp = schedule_of(STRATEGIES["dp"])
    yield dp.with_rest(State.GRADIENTS, Rest(stored=False)), MIXED_ADAM, "whole"
    nowhere = Rest(dp.axes, stored=False, host=True)
    yield dp.with_rest(State.ACTIVATIONS, nowhere), MIXED_ADAM, "fresh"
    stays, away = (schedule_of(on_batch(*modes)) for modes in ("RRO", "ORR"))
    thrice = _changed(stays, Kind.OFFLOAD, lambda op: (op,) * 3)
    yield thrice, MIXED_ADAM, "whole"  # the device has nothing left to send
    from_itself = _changed(away, Kind.OFFLOAD, lambda op: (replace(op, source=PARAMETERS),))
    yield from_itself, MIXED_ADAM, "agreed"  # an update on the device changes none on the host
    kept = _changed(away, Kind.OFFLOAD, lambda op: (replace(op, kind=Kind.KEEP),))
    yield kept, MIXED_ADAM, "agreed"  # what is kept on the device is not on the host
    made = operation(Kind.RECOMPUTE, PARAMETERS, STATES, span=Span.UNIT)
    seen = operation(Kind.RECOMPUTE, STATES, VIEW, span=Span.UNIT)
    reads = tuple(replace(op, source=VIEW) for op in dp.micro_step)
    by_states = replace(dp, micro_step=(made, seen, *reads))
    by_another_norm = next(b.schedule for b in broken_schedules() if "norm_is_of" in b.name)
    summed = replace(dp.finish[0], source=FRESH)
    of_sums = _changed(by_another_norm, Kind.SQUARE_NORM, lambda op: (summed, op))
    yield of_sums, MIXED_ADAM, "fresh"  # which is told, where a norm is of what was read wrong
    yield _of_two_views(dp), MIXED_ADAM, "fresh"
    resting = replace(dp, micro_step=(replace(seen, source=Buffer.OPTIMIZER), *reads))
    for schedule in (by_states, resting):  # what is made anew, and what rests, has weights or none
        yield schedule, MIXED_ADAM, ""
        yield schedule, POLICIES["fp32-adam"], "fresh"


def _changed(schedule: Schedule, kind: Kind, change: Callable[[Op], Ops]) -> Schedule:
    """The schedule, with others in place of each operation of a kind."""

    def changed(ops: Ops) -> Ops:
        return tuple(new for op in ops for new in (change(op) if op.kind is kind else (op,)))

    return replace(schedule, micro_step=changed(schedule.micro_step), finish=changed(schedule.finish))


def _before_the_update(schedule: Schedule, *ops: Op) -> Schedule:
    """The schedule, with operations before its update."""
    return _changed(schedule, Kind.UPDATE, lambda op: (*ops, op))


def _in_turn(schedule: Schedule, kind: Kind) -> Schedule:
    """On two devices, each works on its own slices, and then on the other one's."""
    turns = (0, 1)
    return _changed(
        schedule, kind, lambda op: tuple(replace(op, within=EVERYONE, shift=n) for n in turns)
    )


def _on_the_host() -> Iterator[Schedule]:
    """Gradients that are divided, clipped, added or reset on the host; slices that leave it."""
    offload, stays = schedule_of(STRATEGIES["zero-offload"]), schedule_of(on_batch(*"RRO"))
    over = Monomial(powers=((BATCH, -1), (MICRO_STEPS, -1)))
    mean = operation(Kind.SCALE, GRADIENTS, by=over)
    yield _before_the_update(meant(offload, loss=Loss.MEAN), mean)
    count = operation(Kind.COUNT, TOKENS), operation(Kind.ACCUMULATE, TOKENS, TOTAL)
    summed = operation(Kind.ALL_REDUCE, TOTAL, axes=EVERYONE)
    divide = operation(Kind.DIVIDE, GRADIENTS, by=TOTAL)
    counted = around(meant(offload, loss=Loss.TOKEN_MEAN), first=count)
    yield _before_the_update(counted, summed, divide, operation(Kind.RESET, TOTAL))
    yield clipped(offload)
    for kind in (Kind.ACCUMULATE, Kind.RESET):
        yield _in_turn(stays, kind)
    gathered = schedule_of(on_batch("S*", "S*+O", "S*"))
    _, fetch, _, _, *finish, _, reset = gathered.finish  # without gathers, and the gathered gradients
    update = operation(Kind.UPDATE, GRADIENTS, STATES, within=EVERYONE)
    yield replace(gathered, finish=(fetch, update, *finish, reset))
    away, states = schedule_of(on_batch(*"ORR")), Buffer.OPTIMIZER
    aside = operation(Kind.KEEP, states, STATES, span=Span.ALL_UNITS)  # while its place has weights
    read = _changed(away, Kind.FETCH, lambda op: (replace(op, source=states),)).micro_step
    back = replace(aside, source=STATES, into=states, span=Span.NONE)
    ops = (aside, operation(Kind.RECOMPUTE, states), *read, back, operation(Kind.RELEASE, STATES))
    yield replace(away, micro_step=ops)


def _by_slices() -> Iterator[Schedule]:
    """An update of slices in turn, one that leaves the state old elsewhere, and one of slices beside
    which moments are not known; norms of slices along two axes, and means of them.
    """
    dp, kinds = schedule_of(along(BOTH, "dp")), (Kind.REDUCE_SCATTER, Kind.ALL_GATHER)
    reduce, *rest = dp.finish
    yield replace(dp, finish=(*(replace(reduce, kind=kind, shift=1) for kind in kinds), *rest))
    yield _in_turn(schedule_of(STRATEGIES["dp"]), Kind.UPDATE)
    yield schedule_of(STRATEGIES["zero1"]).with_rest(State.OPTIMIZER, Rest(working=True))
    gathered = schedule_of(on_batch("R", "S*", "R", "S"))
    nexts = operation(Kind.RECOMPUTE, PARAMETERS, STATES, within=EVERYONE, shift=1)
    whole = operation(Kind.ALL_GATHER, PARAMETERS, axes=EVERYONE)
    yield _changed(gathered, Kind.UPDATE, lambda op: (nexts, replace(op, within=EVERYONE), whole))
    clip = clipped(schedule_of(along(BOTH)))
    along_one, along_none = (replace(op, within=BOTH[:n]) for op in clip.finish[:1] for n in (1, 0))
    for square in (along_one, along_none):  # the gradients have room for slices along both
        yield replace(clip, finish=(square, *clip.finish[1:]))
    on_shards = schedule_of(STRATEGIES["hsdp"])  # that these are slices need not be said
    yield _changed(on_shards, Kind.ACCUMULATE, lambda op: (replace(op, within=()),))
    scattered = schedule_of(along(BOTH, "zero2"))
    mean = _changed(scattered, Kind.REDUCE_SCATTER, lambda op: (replace(op, mean=True),))
    by = operation(Kind.SCALE, GRADIENTS, by=Monomial(powers=((MICRO_STEPS, -1),)))
    yield _before_the_update(meant(mean, loss=Loss.MEAN), by)


def _of_groups() -> Iterator[Schedule]:
    """Backwards of a group's samples, also along two axes, and of two uses; activations made again."""
    again = operation(Kind.RECOMPUTE, PARAMETERS, Buffer.ACTIVATIONS)
    for axes in (EVERYONE, BOTH):
        dp = schedule_of(along(axes, "dp"))
        forward, backward = dp.micro_step
        gather = operation(Kind.ALL_GATHER, Buffer.ACTIVATIONS, axes=axes)
        of_all = replace(backward, axes=axes)
        whole = replace(dp, micro_step=(forward, gather, of_all), finish=dp.finish[1:])
        yield from (whole, tied_parameters(whole))
        lost = whole.with_rest(State.ACTIVATIONS, Rest(stored=False))
        yield replace(lost, micro_step=(forward, again, of_all))


def _of_two_views(dp: Schedule) -> Schedule:
    """Gradients at sums of parameters are added, and those at sums of these taken off."""
    forward, backward = dp.micro_step
    summed = operation(Kind.ALL_REDUCE, PARAMETERS, VIEW, axes=EVERYONE, span=Span.UNIT)
    at_view = replace(forward, source=VIEW), replace(backward, source=VIEW, into=FRESH, span=Span.UNIT)
    again = replace(summed, source=VIEW, span=Span.NONE)
    return around(dp, first=(summed, *at_view, ADD, again, *at_view, OFF, ADD, GONE))


def _of_means() -> Iterator[Schedule]:
    """Statistics that are means along two axes; means of gradients of two uses."""
    both = schedule_of(along(BOTH, "dp"))
    mean = operation(Kind.ALL_REDUCE, Buffer.STATISTICS, axes=BOTH, mean=True)
    yield meant(around(both, before=(mean,)), statistics=Statistics.ALL)
    over = Monomial(powers=((BATCH, -1), (MICRO_STEPS, -1)))
    tied = tied_parameters(schedule_of(STRATEGIES["dp"]))
    means = _before_the_update(tied, operation(Kind.SCALE, GRADIENTS, by=over))
    yield replace(means, training=replace(tied.training, loss=Loss.MEAN))


def _of_the_first() -> Schedule:
    """Along two axes the first device's slices along the last one go to all, and are added: elements
    are right that it does not own along that one.
    """
    own = operation(Kind.KEEP, GRADIENTS, FRESH, within=BOTH[1:], span=Span.ALL_UNITS)
    zeros = operation(Kind.ZERO, FRESH, span=Span.ALL_UNITS)
    reduce, *rest = schedule_of(along(BOTH, "dp")).finish
    to_all = operation(Kind.BROADCAST, FRESH, axes=BOTH)
    finish = (reduce, zeros, own, to_all, ADD, GONE, *rest)
    return replace(schedule_of(along(BOTH, "dp")), finish=finish)


def _of_the_nexts_parts() -> Schedule:
    """Slices of the next device, each clipped by its own part of a norm, are gathered and added."""
    dp = schedule_of(STRATEGIES["dp"])
    reduce, *rest = dp.finish
    scatter = replace(reduce, source=FRESH, kind=Kind.REDUCE_SCATTER, shift=1)
    part = operation(Kind.SQUARE_NORM, FRESH, NORM, within=EVERYONE, shift=1)
    gather = replace(scatter, kind=Kind.ALL_GATHER, span=Span.ALL_UNITS)
    clip = operation(Kind.CLIP, FRESH, by=NORM)
    return replace(dp, finish=(COPY, scatter, part, clip, gather, reduce, ADD, GONE, *rest))


def _of_both_uses() -> Schedule:
    """Gradients of one use of a weight, at a view of zeros, less those of its other use."""
    dp = tied_parameters(schedule_of(STRATEGIES["dp"]))
    forward, backward, _ = dp.micro_step
    at_zeros = replace(forward, source=VIEW), replace(backward, source=VIEW, into=FRESH, span=Span.UNIT)
    minus, add = replace(OFF, source=TIED), replace(ADD, source=TIED, into=FRESH)
    return around(dp, first=(ZEROS, *at_zeros, minus, add, ADD, GONE))


def _of_two_groups() -> Schedule:
    """Gradients at a view of zeros, of the samples along one axis, less those where activations were
    gathered along the other one.
    """
    dp, ops = schedule_of(along(BOTH, "dp")), []
    forward, backward = dp.micro_step
    fresh = replace(backward, source=VIEW, into=FRESH, span=Span.UNIT, axes=BOTH[:1])
    for axis, sums in zip(BOTH, ((ADD,), (OFF, ADD)), strict=True):
        gather = operation(Kind.ALL_GATHER, Buffer.ACTIVATIONS, axes=(axis,))
        ops += [ZEROS, replace(forward, source=VIEW), gather, fresh, *sums, GONE]
    return around(dp, first=tuple(ops))


def _of_two_devices() -> Schedule:
    """Of two devices each has its own slice, and zeros in the other one's: it is clipped by the norm of
    these, which is found of halves, and summed as often as halves are less, and then they are summed.
    """
    dp = meant(schedule_of(STRATEGIES["dp"]), **CLIP)
    reduce, *rest = dp.finish
    own = operation(Kind.KEEP, GRADIENTS, FRESH, within=EVERYONE, span=Span.ALL_UNITS)
    zeros = operation(Kind.ZERO, FRESH, within=EVERYONE, shift=1, span=Span.ALL_UNITS)
    half, twice = (operation(Kind.SCALE, FRESH, by=Monomial(n)) for n in (Fraction(1, 2), Fraction(2)))
    norm = operation(Kind.SQUARE_NORM, FRESH, NORM), *[replace(reduce, source=NORM)] * 3
    clip = operation(Kind.CLIP, FRESH, by=NORM)
    whole = replace(reduce, source=FRESH), operation(Kind.KEEP, FRESH, GRADIENTS)
    return replace(dp, finish=(reduce, GONE, own, zeros, half, *norm, twice, clip, *whole, *rest))


def _of_the_nexts_room() -> Iterator[Schedule]:
    """Devices clip their slices by the norm of the next one's; and reset that, and sum all."""
    zero2 = schedule_of(STRATEGIES["zero2"])
    part = operation(Kind.SQUARE_NORM, GRADIENTS, NORM, within=EVERYONE, shift=1)
    yield _before_the_update(zero2, part, operation(Kind.CLIP, GRADIENTS, by=NORM))
    none = operation(Kind.RESET, GRADIENTS, within=EVERYONE, shift=1)
    summed = operation(Kind.ALL_REDUCE, FRESH, axes=EVERYONE)
    back = operation(Kind.KEEP, FRESH, GRADIENTS)
    yield _before_the_update(zero2, none, COPY, summed, back, GONE)


def _own(source: Buffer) -> Ops:
    """Own slices among zeros, as fresh gradients."""
    zeros = operation(Kind.ZERO, FRESH, span=Span.ALL_UNITS)
    return zeros, operation(Kind.KEEP, source, FRESH, within=EVERYONE, span=Span.ALL_UNITS)


def _with_more(*ops: Op) -> Schedule:
    """Data parallelism that counts tokens, with more operations before gradients are summed."""
    return around(schedule_of(STRATEGIES["dp"]), first=(COUNT,), before=ops)


def _taken_off() -> Iterator[Schedule]:
    """Slices that are added, after they are divided, and taken off, before; clips by no norm, or that
    of zeros; what is clipped by norms of slices, and divided by all tokens; gradients at zeros, of two
    backwards; the first device's, of which there is a norm.
    """
    aside = replace(COPY, into=TIED), replace(OVER, source=TIED)
    yield _with_more(*aside, *_own(GRADIENTS), OVER, ADD, *_own(TIED), OFF, ADD, GONE)
    none = operation(Kind.RESET, NORM), operation(Kind.CLIP, GRADIENTS, by=NORM)
    away = COPY, operation(Kind.OFFLOAD, FRESH)  # zeros are on the device
    of_zeros = _own(GRADIENTS)[0], operation(Kind.SQUARE_NORM, FRESH, NORM)
    yield _with_more(*none, *away, *of_zeros, none[-1], ADD, GONE)
    dp = schedule_of(STRATEGIES["dp"])
    firsts = COPY, operation(Kind.BROADCAST, FRESH, axes=EVERYONE)
    yield around(clipped(meant(dp, **CLIP)), before=(*firsts, ADD, OFF, ADD, GONE))
    forward, backward = (replace(op, source=VIEW) for op in dp.micro_step)
    fresh = forward, replace(backward, into=FRESH, span=Span.UNIT)
    yield around(dp, first=(ZEROS, *fresh, ADD, *fresh, OFF, ADD, GONE))
    _, by_others, _ = next(clipped_by_parts())
    counted = around(by_others, first=(replace(COUNT, axes=by_others.axes),))
    yield _changed(counted, Kind.CLIP, lambda op: (op, replace(OVER, source=op.source)))


def _of_sliced_terms() -> Iterator[Schedule]:
    """Slices that are summed as if others had zeros, after they are scaled, divided or clipped; a norm
    of two devices' slices, each of the gradient or of half of it.
    """
    dp = schedule_of(STRATEGIES["dp"])
    reduce, *rest = dp.finish
    scatter, square = (
        replace(reduce, kind=Kind.REDUCE_SCATTER),
        operation(Kind.SQUARE_NORM, FRESH, NORM),
    )
    same = operation(Kind.SCALE, GRADIENTS, by=Monomial(powers=((BATCH, 0),)))
    every = replace(COUNT, axes=EVERYONE), replace(OVER, source=GRADIENTS)
    of_slices = replace(square, source=GRADIENTS, within=EVERYONE)
    clip = replace(reduce, source=NORM), operation(Kind.CLIP, GRADIENTS, by=NORM)
    for training, ops in (({}, [same]), ({"loss": Loss.TOKEN_MEAN}, every), (CLIP, (of_slices, *clip))):
        yield replace(meant(dp, **training), finish=(scatter, *ops, reduce, *rest))
    both = *_own(GRADIENTS), replace(_own(GRADIENTS)[-1], shift=1)
    half = operation(Kind.SCALE, FRESH, by=Monomial(Fraction(1, 2)))
    for halves in ([half], []):
        clipping = *both, *halves, square, *clip, GONE
        yield replace(meant(dp, **CLIP), finish=(reduce, *clipping, *rest))


def _of_other_quotients() -> Iterator[Schedule]:
    """Gradients that are divided twice, or over other tokens than those that are taken off, also those
    of the device before; and over all tokens and one's own, before they are summed and after.
    """
    counted = (replace(COUNT, axes=EVERYONE), operation(Kind.ACCUMULATE, TOKENS, TOTAL))
    over = [operation(Kind.DIVIDE, GRADIENTS, by=TOTAL)] * 2
    dp = meant(schedule_of(STRATEGIES["dp"]), loss=Loss.TOKEN_MEAN)
    reset = operation(Kind.RESET, TOTAL)
    yield _before_the_update(around(dp, first=counted), *over, reset)
    gather = operation(Kind.ALL_GATHER, FRESH, axes=EVERYONE, span=Span.ALL_UNITS)
    mean = operation(Kind.ALL_REDUCE, FRESH, axes=EVERYONE, mean=True)
    reduce, *rest = _with_more().finish
    yield replace(_with_more(), finish=(COPY, gather, OVER, reduce, ADD, mean, OFF, ADD, GONE, *rest))
    others = replace(gather, source=TIED, shift=1)
    own = *_own(TIED), OVER
    yield _with_more(replace(COPY, into=TIED), *own, OFF, ADD, others, *own, ADD, GONE)
    both = COUNT, counted[-1], *counted
    total = operation(Kind.ALL_REDUCE, FRESH, axes=EVERYONE)
    each = replace(over[0], source=FRESH)
    aside = COPY, replace(COPY, into=TIED), each, total
    later = replace(total, source=TIED), replace(each, source=TIED), OFF
    taken = replace(ADD, source=TIED, into=FRESH), reduce, ADD, GONE, reset
    scatter = replace(total, kind=Kind.REDUCE_SCATTER, shift=1)
    before = *aside[:2], scatter, OVER, replace(gather, shift=1), OFF, ADD, later[0]
    owners = replace(OVER, source=TIED), replace(gather, source=TIED), replace(ADD, source=TIED)
    yield _with_more(*before, *owners, GONE)
    sums = around(schedule_of(STRATEGIES["dp"]), first=both)
    yield replace(sums, finish=(*aside, *later, *taken, *rest))
