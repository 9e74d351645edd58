"""For which sizes a schedule is right: as checks with numbers, and runs, find."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from spec.checking.everywhere import complete, everywhere
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, Monomial, Op, Phase, Span
from spec.meaning.reference import first_divergence
from spec.models.states import POLICIES
from spec.models.training import Loss, Training
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES
from tests.support.polynomials import with_error, with_roots
from tests.support.schedules import schedules

DP, ZERO2, ZERO3, HSDP = (schedule_of(STRATEGIES[name]) for name in ("dp", "zero2", "zero3", "hsdp"))
VERY_MANY = 1_000_003


def right(schedule):
    """The sizes for which it is right, and no others."""
    found = everywhere(schedule, {})
    assert not found.accepted and not found.undecided
    return [dict(one.sizes) for one in found.right_for]


def rejected(schedule, point):
    axes = {axis: point[axis] for axis in schedule.axes}
    return not check(schedule, axes, point[MICRO_STEPS]).accepted


@pytest.mark.parametrize("schedule", [DP, ZERO2, ZERO3])
@pytest.mark.parametrize("roots", [[1, 2, 3, VERY_MANY], [4], [7, 7], [1, 2, 3]])
@pytest.mark.parametrize("name", [BATCH, MICRO_STEPS])
def test_an_error_that_vanishes_for_a_few_numbers_is_found_and_so_are_they(schedule, roots, name):
    wrong = with_roots(schedule, name, roots)
    assert right(wrong) == [{name: root} for root in sorted({*roots})]
    assert rejected(wrong, next(everywhere(wrong, {}).points()))


def test_an_error_that_vanishes_for_a_few_numbers_along_one_axis_is_found_on_two():
    wrong = with_roots(HSDP, "shard", [1, 2, 3, VERY_MANY])
    assert right(wrong) == [{"shard": root} for root in (1, 2, 3, VERY_MANY)]


@given(st.sets(st.integers(1, 6), max_size=3), st.sampled_from([DP, ZERO2]), st.data())
def test_a_schedule_with_an_error_diverges_but_where_the_error_vanishes(roots, schedule, data):
    name = data.draw(st.sampled_from([BATCH, MICRO_STEPS]))
    devices, micro_steps = (data.draw(st.integers(1, 4)) for _ in range(2))
    wrong = with_roots(schedule, name, roots)
    run = first_divergence(wrong, {BATCH: devices}, micro_steps=micro_steps)
    there = {BATCH: devices, MICRO_STEPS: micro_steps}
    assert (run is None) == (there[name] in roots)
    (said, *more) = [one.accepted for one in everywhere(wrong, {}).found if one.says(there)]
    assert said == (run is None) and all(other == said for other in more)


def test_where_an_error_in_two_sizes_vanishes_is_said_as_a_condition():
    wrong = with_error(DP, [(1, {BATCH: 1}), (-1, {MICRO_STEPS: 1})])
    found = everywhere(wrong, {})
    assert not found.accepted
    assert "batch - micro_steps" in map(str, found.found[0].conditions)
    assert {BATCH: 3, MICRO_STEPS: 3} in [dict(one.sizes) for one in found.right_for]


def test_a_number_of_devices_that_is_right_is_found_where_the_error_is_of_micro_steps_too():
    fifth = Monomial(Fraction(1, 5), ((MICRO_STEPS, -1),))
    scale = Op(Kind.SCALE, Phase.REDUCE, Buffer.GRADIENTS, by=fifth)
    mean = replace(DP, training=Training(Loss.MEAN), finish=(scale, *DP.finish))
    assert right(mean) == [{BATCH: 5}]


def test_what_is_rejected_in_general_is_right_where_no_one_else_is():
    without = replace(DP, finish=tuple(op for op in DP.finish if op.kind is not Kind.ALL_REDUCE))
    assert right(without) == [{BATCH: 1}]


@pytest.mark.parametrize(("shift", "sizes"), [(1, [1]), (6, [1, 2, 3, 6]), (-4, [1, 2, 4])])
def test_a_shift_is_right_for_the_sizes_of_which_it_is_a_multiple(shift, sizes):
    ops = [replace(op, shift=shift) if op.kind is Kind.ALL_GATHER else op for op in ZERO2.finish]
    assert right(replace(ZERO2, finish=tuple(ops))) == [{BATCH: n} for n in sizes]


def test_two_shifts_by_as_much_are_right_for_every_size_if_one_takes_the_other_back():
    found = everywhere(ZERO2, {})
    assert found.accepted and len(found.found) == 1


@given(schedules(), st.data())
def test_the_verdict_in_general_is_that_for_numbers(drawn, data):
    schedule, _, _, policy = drawn
    found = everywhere(schedule, {}, policy)
    event(f"accepted: {found.accepted}, undecided: {found.undecided}")
    sizes = {name: data.draw(st.sampled_from([1, 1, 2, 3, 4, 5, 7])) for name in found.names}
    said = {one.accepted for one in found.found if one.says(sizes)}
    axes = {axis: sizes[axis] for axis in schedule.axes}
    assert said <= {check(schedule, axes, sizes[MICRO_STEPS], policy).accepted}
    event(f"said: {bool(said)}")


@given(schedules(), st.data())
def test_what_is_accepted_for_every_size_does_not_diverge(drawn, data):
    schedule, _, _, policy = drawn
    found = everywhere(schedule, {}, policy, exceptions=False)
    assume(found.accepted and not found.undecided)
    most = 2 if len(schedule.axes) > 1 else 4
    sizes = {axis: data.draw(st.integers(1, most)) for axis in schedule.axes}
    options = {"stateful": policy.k > 0, "master": policy.master}
    micro_steps = data.draw(st.integers(1, 4))
    assert first_divergence(schedule, sizes, micro_steps=micro_steps, **options) is None


@pytest.mark.parametrize("policy", ["mixed-adam", "fp32-adam", "fp32-sgd"])
@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "fused-update"])
def test_sizes_that_are_given_stay_as_they_are(name, policy):
    schedule = schedule_of(STRATEGIES[name])
    given_ = dict.fromkeys(schedule.axes, 2)
    found = everywhere(schedule, given_, POLICIES[policy])
    assert all(one.sizes.items() >= given_.items() for one in found.found)
    assert found.accepted == check(schedule, given_, 3, POLICIES[policy]).accepted


BOTH = [(1, {BATCH: 1}), (-1, {MICRO_STEPS: 1})]
TWELVE = [(1, {BATCH: 1, MICRO_STEPS: 1}), (-12, {})]


@pytest.mark.parametrize("terms", [BOTH, TWELVE])
def test_of_sizes_that_a_condition_is_on_one_verdict_says_which_it_is(terms):
    found = everywhere(with_error(DP, terms), {})
    special = found.found[0].conditions
    for n, m in product(range(1, 13), repeat=2):
        there = {BATCH: n, MICRO_STEPS: m}
        said = {one.accepted for one in found.found if one.says(there)}
        assert said <= {n == m if terms is BOTH else n * m == 12}
        assert said or any(condition.at(there) == 0 for condition in special)
    assert {one.accepted for one in found.right_for} == {True}
    assert {one.accepted for one in found.wrong_for} == {False}


def test_all_sizes_that_meet_a_condition_are_found_if_they_are_few():
    found = everywhere(with_error(DP, TWELVE), {})
    assert all(map(complete, found.found[0].conditions))
    sizes = {(one.sizes[BATCH], one.sizes[MICRO_STEPS]) for one in found.right_for}
    assert sizes == {(n, 12 // n) for n in (1, 2, 3, 4, 6, 12)}
    assert not any(map(complete, everywhere(with_error(DP, BOTH), {}).found[0].conditions))


@pytest.mark.parametrize("terms", [BOTH, TWELVE])
def test_points_at_which_it_is_wrong_have_few_devices_first_and_then_few_micro_steps(terms):
    points = [*everywhere(with_error(DP, terms), {}).points()]
    few = [point[BATCH] <= 3 for point in points]
    assert few == sorted(few, reverse=True) and any(few)
    of_few = [point[MICRO_STEPS] for point, is_few in zip(points, few, strict=True) if is_few]
    assert of_few == sorted(of_few)
    assert all(rejected(with_error(DP, terms), point) for point in points)


def test_of_what_is_not_decided_the_smallest_numbers_are_looked_at():
    twice = Op(Kind.SCALE, Phase.BACKWARD, Buffer.GRADIENTS, by=Monomial(Fraction(2)))
    found = everywhere(replace(DP, micro_step=(twice, *DP.micro_step)), {})
    assert found.undecided == (MICRO_STEPS,)
    looked = {one.sizes[MICRO_STEPS] for one in found.found if MICRO_STEPS in one.sizes}
    assert looked == {*range(1, len(looked) + 1)} and len(looked) > 2


def test_a_norm_of_other_terms_is_right_for_the_sizes_at_which_they_are_as_many():
    """Clipped by the norm of the gradient whose second use counts a third for each device."""
    gradients, fresh, tied, phase = Buffer.GRADIENTS, Buffer.FRESH, Buffer.TIED, Phase.REDUCE
    third = Monomial(Fraction(1, 3), ((BATCH, 1),))
    axes = (BATCH,)
    finish = (
        Op(Kind.KEEP, phase, gradients, fresh, span=Span.ALL_UNITS),
        Op(Kind.ACCUMULATE, phase, tied, gradients),
        Op(Kind.SCALE, phase, tied, by=third),
        Op(Kind.ACCUMULATE, phase, tied, fresh),
        Op(Kind.RELEASE, phase, tied),
        Op(Kind.ALL_REDUCE, phase, gradients, axes=axes),
        Op(Kind.ALL_REDUCE, phase, fresh, axes=axes),
        Op(Kind.SQUARE_NORM, phase, fresh, Buffer.NORM),
        Op(Kind.RELEASE, phase, fresh),
        Op(Kind.CLIP, phase, gradients, by=Buffer.NORM),
    )
    clipped = replace(DP, finish=(*finish, *DP.finish[1:]), training=Training(clip=True, tied=True))
    found = everywhere(clipped, {MICRO_STEPS: 1})
    assert [dict(one.sizes) for one in found.right_for] == [{MICRO_STEPS: 1, BATCH: 3}]
