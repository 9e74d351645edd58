"""Any number of micro-steps: what each adds, what it keeps, and what is not decided."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.registry import ROOT
from psem_model.reading.schedules import loads, read
from spec.checking.everywhere import everywhere
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, Monomial, Op, Phase, Span
from spec.meaning.reference import first_divergence
from spec.numbers.any_size import Comparison, Undecided, any_size
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES

DP = schedule_of(STRATEGIES["dp"])
MESH, ANY = {BATCH: any_size(BATCH)}, any_size(MICRO_STEPS)
G, FRESH, P = Buffer.GRADIENTS, Buffer.FRESH, Phase.BACKWARD


def scaled(buffer, number, **sizes):
    return Op(Kind.SCALE, P, buffer, by=Monomial(Fraction(number), tuple(sizes.items())))


def backward(*after):
    """A micro-step whose gradients go to the fresh ones first."""
    forward = Op(Kind.FORWARD, Phase.FORWARD, Buffer.PARAMETERS, Buffer.ACTIVATIONS)
    fresh = Op(Kind.BACKWARD, P, Buffer.PARAMETERS, FRESH, span=Span.UNIT)
    return (forward, *after[:0], fresh, *after)


ADD = Op(Kind.ACCUMULATE, P, FRESH, G)
RELEASE = Op(Kind.RELEASE, P, FRESH)


def verdicts(schedule):
    """For every number from 1 on: accepted, and the numbers of which nothing is said."""
    comparison = Comparison()
    found = check(schedule, MESH, ANY, comparison=comparison)
    return found.accepted, sorted(comparison.exempt.get(MICRO_STEPS, ()))


def test_gradients_that_are_added_are_those_of_every_micro_step():
    assert verdicts(replace(DP, micro_step=backward(ADD, RELEASE))) == (True, [])


def test_a_buffer_that_is_left_is_that_of_the_last_micro_step():
    assert verdicts(replace(DP, micro_step=backward(ADD)))[0]
    only_last = Op(Kind.KEEP, Phase.REDUCE, FRESH, G)
    wrong = replace(DP, micro_step=backward(), finish=(only_last, *DP.finish))
    assert [dict(one.sizes) for one in everywhere(wrong, {}).right_for] == [{MICRO_STEPS: 1}]


def test_gradients_may_be_added_one_micro_step_later():
    forward, fresh = backward()
    late = replace(DP, micro_step=(ADD, forward, fresh), finish=(ADD, *DP.finish, reset(FRESH)))
    accepted, apart = verdicts(late)
    assert accepted and apart
    assert everywhere(late, {}).accepted
    missing = replace(late, finish=late.finish[1:])
    assert not everywhere(missing, {}).right_for


def reset(buffer):
    return Op(Kind.RESET, P, buffer)


def test_gradients_that_are_averaged_again_stay_as_they_are():
    schedule = read(str(ROOT / "examples" / "accumulate_after_mean.toml"))
    assert verdicts(schedule) == (True, [])


def test_a_token_mean_of_each_micro_step_is_not_that_of_all():
    local = read(str(ROOT / "examples" / "token_mean_local_counts.toml"))
    assert [dict(one.sizes) for one in everywhere(local, {}).right_for] == [{BATCH: 1, MICRO_STEPS: 1}]
    whole = read(str(ROOT / "examples" / "token_mean.toml"))
    assert everywhere(whole, {}).accepted


@pytest.mark.parametrize("by", [2, -1, Fraction(1, 2)])
def test_what_is_scaled_in_every_micro_step_is_not_decided_but_looked_at(by):
    schedule = replace(DP, micro_step=(scaled(G, by), *DP.micro_step))
    with pytest.raises(Undecided, match="each micro-step changes what earlier ones left"):
        check(schedule, MESH, ANY)
    found = everywhere(schedule, {})
    assert found.undecided == (MICRO_STEPS,) and not found.accepted
    assert [dict(one.sizes) for one in found.right_for] == [{MICRO_STEPS: 1}]


def test_scaled_and_scaled_back_it_is_decided():
    ops = (scaled(G, 2), scaled(G, Fraction(1, 2)), *DP.micro_step)
    assert verdicts(replace(DP, micro_step=ops)) == (True, [])


@given(st.integers(1, 5), st.integers(1, 3), st.data())
def test_errors_in_the_body_that_are_polynomials_in_micro_steps_are_found(root, devices, data):
    """What a micro-step adds, times (m - root) more."""
    ops = [scaled(FRESH, 1, **{MICRO_STEPS: 1}), ADD, scaled(FRESH, -root, **{MICRO_STEPS: -1}), ADD]
    wrong = replace(DP, micro_step=backward(ADD, *ops, RELEASE))
    assert [dict(one.sizes) for one in everywhere(wrong, {}).right_for] == [{MICRO_STEPS: root}]
    m = data.draw(st.integers(1, 6))
    run = first_divergence(wrong, {BATCH: devices}, micro_steps=m)
    assert (run is None) == (m == root)


def test_an_update_in_every_micro_step_is_right_for_one():
    found = everywhere(schedule_of(STRATEGIES["fused-update"]), {})
    assert [dict(one.sizes) for one in found.right_for] == [{MICRO_STEPS: 1}]


def test_a_large_number_of_micro_steps_is_checked_as_fast_as_any():
    for text in ("ddp_mean", "loss_scale"):
        source = (ROOT / "examples" / f"{text}.toml").read_text()
        assert check(loads(source, text), {BATCH: 2}, ANY).accepted


def test_what_every_micro_step_adds_alike_is_added_as_often_as_there_are_micro_steps():
    """The step before's gradients, which are taken off as often before the update."""
    forward, kept = (op for op in DP.micro_step)
    reduced, update, zero = DP.finish
    again = Op(Kind.KEEP, Phase.REDUCE, G, FRESH, span=Span.ALL_UNITS)
    off = (scaled(FRESH, -1, **{MICRO_STEPS: 1}), ADD)
    late = replace(
        DP, micro_step=(ADD, forward, kept), finish=(*off, reduced, RELEASE, again, update, zero)
    )
    assert verdicts(late) == (True, [])
    assert not verdicts(replace(late, finish=late.finish[1:]))[0]


@pytest.mark.parametrize("micro_steps", [1, 2, 3])
def test_a_backward_in_finish_is_of_the_last_micro_step(micro_steps):
    forward, backward_ = DP.micro_step
    at_last = replace(DP, micro_step=(forward,), finish=(backward_, *DP.finish))
    run = first_divergence(at_last, {BATCH: 2}, micro_steps=micro_steps)
    assert check(at_last, {BATCH: 2}, micro_steps).accepted == (run is None) == (micro_steps == 1)


def test_of_what_a_micro_step_makes_of_what_earlier_ones_left_nothing_is_said_in_general():
    view = Buffer.VIEW
    grows = Op(Kind.ALL_REDUCE, P, view, axes=(BATCH,))
    start = Op(Kind.KEEP, P, Buffer.PARAMETERS, view, span=Span.ALL_UNITS)
    forward = Op(Kind.FORWARD, Phase.FORWARD, view, Buffer.ACTIVATIONS)
    fresh = Op(Kind.BACKWARD, P, view, FRESH, span=Span.UNIT)
    wrong = replace(DP, micro_step=(grows, forward, fresh, ADD, RELEASE), start=(view,))
    wrong = replace(wrong, finish=(*DP.finish, start))
    with pytest.raises(Undecided, match="what a micro-step makes of what earlier ones left"):
        check(wrong, MESH, ANY)
    assert not check(wrong, {BATCH: 2}, 3).accepted


def test_a_gradient_that_goes_from_device_to_device_is_whole_for_few_micro_steps_only():
    """Tied gradients pass by the first three devices, one in each micro-step: a delay of two."""
    tied = Buffer.TIED

    def own(source, into, shift):
        return Op(Kind.KEEP, Phase.UPDATE, source, into, within=DP.axes, shift=shift)

    def fetched(place):
        zeros = Op(Kind.ZERO, Phase.UPDATE, FRESH, span=Span.UNIT)
        sum_ = Op(Kind.ALL_REDUCE, Phase.UPDATE, FRESH, axes=DP.axes)
        return zeros, own(tied, FRESH, -place), sum_

    delayed = (
        *(*fetched(1), own(FRESH, tied, -2)),
        *(*fetched(0), own(FRESH, tied, -1)),
        *(own(G, tied, 0), *fetched(2)),
    )
    added = Op(Kind.ACCUMULATE, Phase.UPDATE, FRESH, G)
    forgotten = Op(Kind.ZERO, Phase.UPDATE, tied, span=Span.UNIT)
    schedule = replace(DP, micro_step=(*DP.micro_step, *delayed), finish=(added, *DP.finish, forgotten))
    for micro_steps in (3, 12, 50):
        assert check(schedule, {BATCH: 5}, micro_steps).rule == "whole"
    for micro_steps in (3, 12):
        assert first_divergence(schedule, {BATCH: 5}, micro_steps=micro_steps, steps=2) is not None
