"""Derived schedules: phases, and what profiles change of when gradients are summed."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spec.checking.verdict import check
from spec.costs.communication import transfers
from spec.costs.memory import Sizes
from spec.derivation.schedules import schedule_of
from spec.language.schedule import (
    COLLECTIVE_KINDS,
    GRADIENT_BUFFERS,
    REDUCTIONS,
    Buffer,
    Kind,
    Phase,
    Span,
)
from spec.models.states import POLICIES, State
from spec.plans.modes import Mode
from spec.plans.placement import on_batch, place_states
from spec.plans.strategies import STRATEGIES
from tests.support.schedules import AXES, placements

SOME = [*chain.from_iterable(combinations(AXES, n) for n in range(len(AXES) + 1))]
AT_WORK = {Kind.FORWARD: Phase.FORWARD, Kind.BACKWARD: Phase.BACKWARD, Kind.UPDATE: Phase.UPDATE}
IN_A_MICRO_STEP = {Phase.FORWARD, Phase.BACKWARD}


def right(placement):
    return check(schedule_of(placement), dict(zip(placement.axes, (2, 3), strict=False))).accepted


@given(placements() | placements(2), st.booleans(), st.sampled_from(SOME))
def test_an_operation_is_of_the_phase_that_it_serves(placement, each, first):
    first = tuple(axis for axis in first if axis in placement.axes)
    schedule = schedule_of(replace(placement, each=each, summed_first=first))
    for op in schedule.ops:
        assert op.phase is AT_WORK.get(op.kind, op.phase)
    if schedule.finish:
        assert {op.phase for op in schedule.micro_step} <= IN_A_MICRO_STEP
        assert not {op.phase for op in schedule.finish} & IN_A_MICRO_STEP
    else:
        made = [op.kind for op in schedule.micro_step].index(Kind.UPDATE)
        before = {op.phase for op in schedule.micro_step[:made]}
        assert before <= IN_A_MICRO_STEP | {Phase.UPDATE}  # a state that is gathered to be updated


@given(st.sampled_from(Mode), st.booleans())
def test_on_one_device_there_is_nothing_to_sum_in_every_micro_step(mode, hold):
    alone = place_states((), {state: {} for state in State}, hold)
    assert schedule_of(replace(alone, each=True)) == schedule_of(alone)


@given(placements(2), st.sampled_from(SOME[1:]), st.integers(2, 3))
def test_gradients_may_be_summed_first_or_with_each_use_along_axes_that_cut_no_state(
    placement, axes, uses
):
    schedule = schedule_of(placement)
    (update,) = (op for op in schedule.ops if op.kind is Kind.UPDATE)
    free = tuple(axis for axis in axes if axis not in update.within)
    first = replace(placement, summed_first=axes)
    again = replace(placement, summed_again=axes, uses=uses)
    assert right(first) == right(placement)
    sums = {
        op for op in schedule_of(first).micro_step if op.kind in REDUCTIONS and {*op.axes} & {*free}
    }
    assert bool(free) <= bool(sums)
    if not free:
        assert schedule_of(first).ops == schedule.ops
        assert schedule_of(again).ops == schedule.ops
    left = [axis for axis in free if axis not in placement.rest(State.GRADIENTS).sharded]
    if left and schedule.finish:
        of_uses = [op for op in schedule_of(again).finish if op.source is Buffer.GRADIENTS and op.into]
        assert len([op for op in of_uses if {*left} == {*op.axes}]) == uses


@given(placements(2), st.sampled_from(SOME[1:]))
def test_where_gradients_wait_what_is_summed_first_is_so_once_before_all_else(placement, axes):
    waiting = replace(placement, summed_first=axes, waits=True)
    schedule = schedule_of(waiting)
    assert right(waiting) == right(placement)
    assert schedule.micro_step == schedule_of(placement).micro_step
    sums = [op for op in schedule.finish if op.kind in REDUCTIONS]
    first = [bool({*op.axes} & {*axes} - {*schedule.cut}) for op in sums]
    assert first == sorted(first, reverse=True)


@given(placements() | placements(2), st.booleans(), st.integers(1, 4))
def test_a_view_that_stays_is_made_once_and_once_more_for_each_forward_that_releases_it(
    placement, hold, micro_steps
):
    schedule = schedule_of(replace(placement, hold=hold, stays=True))
    mesh = dict(zip(placement.axes, (2, 3), strict=False))
    assert check(schedule, mesh).accepted == right(replace(placement, hold=hold))
    sizes = Sizes(24, mesh, POLICIES["mixed-adam"])
    moves = [m for m in transfers(schedule, sizes, micro_steps) if m.op.target is Buffer.VIEW]
    gathers = {m.op.phase: m.times for m in moves if m.op.phase in IN_A_MICRO_STEP}
    if schedule.stays and gathers:
        assert sum(gathers.values()) == 1 + (not hold) * micro_steps
        views = [op for op in schedule.finish if op.target is Buffer.VIEW]
        assert views[0].kind is Kind.RELEASE  # an update may have one of its own, after it


@given(placements(2))
def test_gradients_that_are_summed_whole_are_so_along_all_axes(placement):
    whole = replace(placement, sums_whole=True)
    assert right(whole) == right(placement)
    schedule = schedule_of(whole)
    if schedule.rest(State.GRADIENTS).stored and not schedule.rest(State.PARAMETERS).sharded:
        sums = [op for op in schedule.ops if op.kind in REDUCTIONS]
        assert all(op.kind is Kind.ALL_REDUCE for op in sums)


@pytest.mark.parametrize("name", ["zero2", "zero-offload", "zero3"])
def test_of_gradients_that_are_summed_whole_slices_are_kept_but_those_of_sliced_weights_are(name):
    kinds = [
        [op.kind for op in schedule_of(replace(STRATEGIES[name], sums_whole=whole)).micro_step]
        for whole in (False, True)
    ]
    same = {Kind.REDUCE_SCATTER: Kind.ALL_REDUCE} if name != "zero3" else {}
    assert kinds[1] == [same.get(kind, kind) for kind in kinds[0]]


@given(placements())
def test_gradients_on_the_host_are_fetched_into_room_of_their_own(placement):
    for op in schedule_of(on_batch("R", "R", "O", "S")).finish:
        assert (op.span is Span.NONE) is not op.takes_room
    for op in schedule_of(placement).ops:
        assert op.takes_room or op.span is Span.NONE


GATHERED_ALONG_ONE = {
    **dict.fromkeys(State, dict.fromkeys(AXES, Mode.REPLICATED)),
    State.GRADIENTS: {"a": Mode.GATHERED, "b": Mode.REPLICATED},
}


@given(placements(2), st.booleans(), st.sampled_from(SOME), st.sampled_from(SOME))
@example(place_states(AXES, GATHERED_ALONG_ONE), False, (), ("b",))
def test_collectives_act_on_slices_wherever_their_operand_lies_in_slices(placement, each, first, again):
    """And nothing is moved of what an update of slices leaves out."""
    first, again = (tuple(a for a in axes if a in placement.axes) for axes in (first, again))
    schedule = schedule_of(
        replace(placement, each=each, summed_first=first, summed_again=again, uses=2)
    )
    cut = {Buffer.GRADIENTS: {*schedule.rest(State.GRADIENTS).sharded}}
    updated = {axis for op in schedule.finish if op.kind is Kind.UPDATE for axis in op.within}
    for op in schedule.finish:
        if op.kind in COLLECTIVE_KINDS and op.source in GRADIENT_BUFFERS and op.source in cut:
            assert cut[op.source] - {*op.axes} <= {*op.within} <= cut[op.source] | updated
            lies = {*op.within} if op.kind is Kind.ALL_GATHER else cut[op.source] | {*op.within}
            cut[op.target] = lies | ({*op.axes} if op.kind is Kind.REDUCE_SCATTER else set())
        elif op.kind is Kind.FETCH and op.source is Buffer.GRADIENTS:
            cut[op.target] = {*op.within}


def test_parameters_that_go_to_the_host_after_an_update_are_no_gradients():
    assert schedule_of(on_batch("O", "O", "S", "S")).hosts_updates
    for grads in "RSO":
        assert not schedule_of(on_batch("O", "S", grads, "S")).hosts_updates
