"""Bytes of what operations make and move, and rows that a device has: as each is told by its rule."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

from hypothesis import example, given
from hypothesis import strategies as st

from spec.costs.communication import elements_sent, transfers
from spec.costs.memory import (
    MODEL_STATES,
    Sizes,
    Unit,
    Vector,
    at_the_start,
    live_results,
    peak,
    room,
    room_ahead,
    total_resting,
    transient,
)
from spec.costs.owners import AlikeOwners, Owners
from spec.derivation.schedules import schedule_of
from spec.language.schedule import (
    HOST_TRANSFERS,
    PASSING,
    REDUCTIONS,
    SCALARS,
    Buffer,
    Kind,
    Op,
    Phase,
    Rest,
    Schedule,
    Span,
)
from spec.meaning.reference import Reference, primes
from spec.meaning.semantics import execute, initial
from spec.models.states import BytePolicy, State
from spec.numbers.arithmetic import ceil_div
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES
from tests.support.damage import operations
from tests.support.schedules import (
    placements,
    with_loss_scale,
    with_tied_parameters,
    without_releases,
)

AXES = ("a", "b")
# of weights at rest, of gradients at rest, of states, gathered, and of gradients while they are summed
POLICY = BytePolicy(3, 5, 7, gathered=11, reduced=13)
MESH = {"a": 2, "b": 3}
SIZES = Sizes(60, MESH, POLICY, cut=AXES)


@given(operations(AXES))
def test_in_the_type_of_sums_gradients_pass_while_they_are_summed_and_nothing_else(op):
    of_a_sum = op.kind in REDUCTIONS and op.state is State.GRADIENTS
    assert (SIZES.width_sent(op) == POLICY.reduced) is of_a_sum
    if op.kind in HOST_TRANSFERS and op.state in MODEL_STATES:
        assert SIZES.width_sent(op) == POLICY.of(op.state)
    assert (SIZES.width_sent(op) == 4) is (op.target in SCALARS)


@given(st.integers(1, 40), st.sampled_from([(), ("a",), ("b",), AXES]))
def test_every_row_is_some_devices_own_and_along_the_axes_that_cut_it_no_others(rows, axes):
    places = [dict(zip(AXES, at, strict=True)) for at in product(range(2), range(3))]
    own = {}
    for place in places:
        sizes = Sizes(
            rows,
            MESH,
            POLICY,
            cut=AXES,
            units=(Unit((Vector(rows),)),),
            unpadded=frozenset(State),
            device=place,
        )
        own[tuple(place[axis] for axis in axes)] = sizes.at_rest(State.OPTIMIZER, axes)
    assert sum(own.values()) == rows
    assert max(own.values()) <= ceil_div(rows, 6) * (6 // len(own))


@given(st.sampled_from([(), ("a",), AXES]), st.sampled_from([(), ("b",), AXES]))
def test_a_host_transfer_is_of_what_there_is_room_for_on_both_sides(source, target):
    rests = {state: Rest() for state in State}
    rests[State.PARAMETERS], rests[State.OPTIMIZER] = Rest(source), Rest(target)
    schedule = Schedule(AXES, tuple(rests.items()), (), ())
    op = Op(Kind.FETCH, Phase.UPDATE, Buffer.PARAMETERS, Buffer.OPTIMIZER)
    cells = 1
    for axis in {*source, *target}:
        cells *= MESH[axis]
    assert elements_sent(op, schedule, SIZES) == SIZES.psi // cells


def test_only_updated_weights_come_from_their_owners():
    owners = Owners({BATCH: 4}, (AlikeOwners({4: 1}, 3), AlikeOwners({})))
    sizes = Sizes(12, {BATCH: 4}, POLICY, cut=(BATCH,), owners=owners)
    by_owners = {}
    for omega in ("S", "S*"):
        found = transfers(schedule_of(on_batch("R", omega, "R", "S")), sizes)
        by_owners[omega] = {m.op.state for m in found if m.collective == "broadcast"}
    assert by_owners == {"S": {State.PARAMETERS}, "S*": set()}


def test_each_cell_of_a_unit_is_cut_again_along_axes_that_it_only_passes_along():
    """Of 50 elements, in two cells of 25, each of which two copies sum in halves."""
    mesh, units = {"copies": 2, "shard": 1, "other": 2}, (Unit((Vector(50),)),)
    sizes = Sizes(50, mesh, POLICY, cut=("shard", "other"), units=units)
    assert sizes.slice(("copies", "shard")) == 2 * 13


def test_what_no_owner_cuts_is_there_unit_by_unit():
    owners = Owners({BATCH: 4}, (AlikeOwners({4: 1}, 3), AlikeOwners({})))
    sizes = Sizes(12, {BATCH: 4}, POLICY, 3, cut=(BATCH,), owners=owners)
    assert sizes.slice((), Span.UNIT) == 3
    assert sizes.slice((BATCH,), Span.UNIT) == 4


@given(st.integers(1, 4))
def test_a_gathered_buffer_has_room_for_the_slices_of_all(devices):
    zero3 = schedule_of(STRATEGIES["zero3"])
    sizes = Sizes(12, {BATCH: devices}, POLICY, cut=(BATCH,))
    for op in zero3.ops:
        if op.kind is Kind.ALL_GATHER:
            assert room(op, sizes) == 12 * POLICY.computed
        elif op.target is Buffer.FRESH and op.span is not Span.NONE and not op.within:
            assert room(op, sizes) == 12 * (POLICY.fresh + POLICY.bytes_summed)
    assert at_the_start(zero3) == []


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 3), st.integers(1, 4))
def test_backward_has_its_unit_with_its_gradient_and_those_before_that_are_gathered(of, ahead, devices):
    """Each of its own size: 12 elements, times so many."""
    lengths, zero3 = [12 * n for n in of], schedule_of(STRATEGIES["zero3"])
    units = tuple(Unit((Vector(length),)) for length in lengths)
    sizes = Sizes(sum(lengths), {BATCH: devices}, POLICY, cut=(BATCH,), units=units, ahead=ahead)
    fresh = POLICY.fresh + POLICY.bytes_summed
    there = (sum(lengths[max(i - ahead, 0) : i + 1]) for i in range(len(lengths)))
    most = max(POLICY.computed * n + fresh * own for n, own in zip(there, lengths, strict=True))
    assert transient(zero3, sizes) == most
    assert peak(zero3, sizes) == total_resting(zero3, sizes) + most


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 3))
def test_forward_has_its_unit_and_those_after_that_are_gathered(of, ahead):
    units = tuple(Unit((Vector(12 * n),)) for n in of)
    sizes = Sizes(12 * sum(of), {BATCH: 2}, POLICY, cut=(BATCH,), units=units, ahead=ahead)
    gather = next(op for op in schedule_of(STRATEGIES["zero3"]).ops if op.kind is Kind.ALL_GATHER)
    there = {room(gather, each) + room_ahead(gather, each) for each in sizes.by_turn}
    of_turns = {12 * sum(of[i : i + 1 + ahead]) for i in range(len(of))}
    filling = {12 * sum(of[:few]) for few in range(1, ahead + 1)}
    assert {POLICY.computed * n for n in of_turns} <= there
    assert max(there) == POLICY.computed * max(of_turns | filling)


def test_units_that_are_alike_have_the_same_turns_as_if_each_was_listed():
    one, other = Unit((Vector(12),)), Unit((Vector(24),))
    listed = Sizes(0, {}, POLICY, units=(other, *[one] * 9, other), ahead=2)
    short = replace(listed, units=(other, replace(one, times=9), other))
    for side in ("after", "before"):
        turns = [
            {(each.turn.unit, getattr(each.turn, side)) for each in sizes.by_turn}
            for sizes in (listed, short)
        ]
        assert turns[0] == turns[1]
    assert short.slice(()) == listed.slice(()) == 9 * 12 + 2 * 24


@given(placements() | placements(2))
def test_what_takes_room_is_used_or_is_held_whole_until_others_had_theirs(placement):
    schedule = schedule_of(placement)
    sizes = dict.fromkeys(schedule.axes, 2)
    world = Reference(schedule, sizes, 1, 4, primes, True, True)
    store = initial(schedule, world, world.constant(lambda j: j), world.constant(lambda j: j))

    def there():
        held = {buffer for (buffer, _), (on_host, _) in store.items() if not on_host}
        return held & {*PASSING}

    for (m, op), moment in zip(schedule.flat(1), live_results(schedule), strict=True):
        before = there()
        execute(op, schedule, world, store, m)
        taking = {result.target for result in moment}
        waiting = {result.target for result in moment if result.span is Span.ALL_UNITS}
        named = {op.source, op.target} if op.kind is not Kind.RELEASE else set()
        assert (before | there()) & named <= taking
        assert taking - waiting <= before | there()


@given(placements() | placements(2))
@example(on_batch("M", "O", "R", "S"))
def test_what_takes_room_is_on_the_device_also_where_all_is_held_whole(placement):
    schedule = schedule_of(placement).held_whole
    world = Reference(schedule, dict.fromkeys(schedule.axes, 2), 1, 4, primes, True, True)
    store = initial(schedule, world, world.constant(lambda j: j), world.constant(lambda j: j))
    for m, op in schedule.flat(1):
        execute(op, schedule, world, store, m)
        if op.span is not Span.NONE:
            on_host, _ = store[op.target, "content"]
            assert not on_host, op


@given(placements() | st.sampled_from([*STRATEGIES.values()]), st.booleans())
def test_releases_decide_no_room(placement, tied):
    schedule = with_tied_parameters(schedule_of(placement)) if tied else schedule_of(placement)
    sizes = Sizes(60, dict.fromkeys(schedule.axes, 2), POLICY, 20, cut=schedule.cut)
    assert peak(without_releases(schedule), sizes) == peak(schedule, sizes)


@given(placements() | placements(2))
def test_tied_gradients_take_room_until_they_are_added_whatever_is_done_between(placement):
    """Backward makes them beside the others, which may be scaled before these are added."""
    schedule = with_loss_scale(with_tied_parameters(schedule_of(placement)), Fraction(2))
    there = False
    for op, moment in zip(schedule.micro_step, live_results(schedule), strict=False):
        there = there or op.kind is Kind.BACKWARD
        if op.kind is not Kind.RELEASE:
            assert (Buffer.TIED in {result.target for result in moment}) is there
        there = there and op.source is not Buffer.TIED


@given(placements() | placements(2))
def test_what_is_held_whole_goes_when_no_unit_waits_for_its_turn(placement):
    found = live_results(schedule_of(placement))
    for before, after in pairwise(found):
        gone = [result for result in before if result not in after]
        in_turns = [result for result in before if result in after and result.span is Span.UNIT]
        assert not (in_turns and any(result.span is Span.ALL_UNITS for result in gone))
