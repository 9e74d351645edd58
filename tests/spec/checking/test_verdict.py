"""The verdict against the reference run: what is accepted matches, what is rejected diverges."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings

from psem_model.check.words import has, needs, reason
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Op, Phase, Rest, Span
from spec.meaning.reference import first_divergence
from spec.models.states import POLICIES, State
from spec.models.training import Training
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES
from tests.support.examples import slow_but
from tests.support.schedules import PLACEMENTS, schedules


def agree(schedule, sizes, micro_steps, policy=POLICIES["mixed-adam"]):
    """The verdict and the reference run say the same; returns whether it is accepted."""
    verdict = check(schedule, sizes, micro_steps, policy)
    if verdict.rule == "room":  # refused, whatever its run
        return False
    divergence = first_divergence(
        schedule,
        sizes,
        steps=4,
        micro_steps=micro_steps,
        stateful=policy.k > 0,
        master=policy.master,
    )
    assert verdict.accepted == (divergence is None), f"{reason(verdict)} / {divergence}"
    return verdict.accepted


@pytest.mark.parametrize("devices", slow_but([2], [1, 2, 3]))
def test_every_placement_of_an_axis_is_accepted_exactly_when_it_matches(devices):
    accepted = [q for q in PLACEMENTS if agree(schedule_of(on_batch(*q)), {"batch": devices}, 1)]
    # on several devices: parameters R, S*, M or O; activations S, M or O; optimizer R, S, S* or O
    # with gradients R, S*, M or O, or gradients S with optimizer S; and, where parameters keep no
    # whole copy (S*, M), a whole update from a gradient slice, of which only the slice is kept
    assert devices == 1 or len(accepted) == (4 * (4 * 4 + 1) + 2) * 3


def test_an_optimizer_without_state_may_be_materialized():
    stateless = POLICIES["fp32-sgd"]
    accepted = [
        q
        for q in PLACEMENTS
        if q[1] == "M" and agree(schedule_of(on_batch(*q)), {"batch": 3}, 1, stateless)
    ]
    assert ("R", "M", "R", "S") in accepted
    assert all(q[0] != "M" for q in accepted)  # nothing would be left to start from


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("micro_steps", [1, 3])
def test_named_strategies_match_but_for_accumulating_fused_updates(name, micro_steps):
    schedule = schedule_of(STRATEGIES[name])
    for sizes in product([1, 2, 3], repeat=len(schedule.axes)):
        accepted = agree(schedule, dict(zip(schedule.axes, sizes, strict=True)), micro_steps)
        assert accepted == (name != "fused-update" or micro_steps == 1)


@pytest.mark.slow
@settings(max_examples=800)
@given(schedules())
def test_any_schedule_is_rejected_exactly_when_it_diverges(case):
    agree(*case)


@pytest.mark.parametrize("devices", slow_but([3], [1, 3]))
def test_without_a_master_copy_parameters_cannot_be_materialized_from_it(devices):
    no_copy = POLICIES["fp32-adam"]
    accepted = [
        q for q in PLACEMENTS if agree(schedule_of(on_batch(*q)), {"batch": devices}, 1, no_copy)
    ]
    assert ("R", "S", "S", "S") in accepted
    assert all(q[0] != "M" for q in accepted)


def test_a_host_update_of_device_parameters_needs_a_master_copy():
    offload = schedule_of(STRATEGIES["zero-offload"])
    assert agree(offload, {"batch": 3}, 2, POLICIES["mixed-adam"])
    assert not agree(offload, {"batch": 3}, 2, POLICIES["fp32-adam"])


def test_a_rejection_says_what_there_is_and_what_is_needed():
    verdict = check(schedule_of(on_batch("S", "S", "S", "S")), {"batch": 8})
    assert verdict.rule == "fresh"
    assert "each device has its own slice only" in has(verdict)
    assert needs(verdict) == "the current weights"


@pytest.mark.parametrize("mesh", [{}, {"batch": 0}, {"batch": 2.0}, {"other": 2}])
def test_a_mesh_that_is_none_is_refused(mesh):
    with pytest.raises(ValueError, match="batch: given"):
        check(schedule_of(STRATEGIES["dp"]), mesh)


def test_each_backward_overwrites_the_tied_gradients():
    tied, phase = Buffer.TIED, Phase.REDUCE
    dp = replace(schedule_of(STRATEGIES["dp"]), training=Training(tied=True))
    at_last = Op(Kind.ACCUMULATE, phase, tied, Buffer.GRADIENTS), Op(Kind.RELEASE, phase, tied)
    once = replace(dp, finish=(*at_last, *dp.finish))
    each_time = replace(dp, micro_step=(*dp.micro_step, *at_last))
    assert [agree(once, {"batch": 2}, m) for m in (1, 2)] == [True, False]
    assert [agree(each_time, {"batch": 2}, m) for m in (1, 2)] == [True, True]


def test_useless_but_harmless_work_is_accepted():
    # a whole update from a gradient slice is wrong on the other devices, which then drop it
    assert agree(schedule_of(on_batch("S*", "S*", "S", "S")), {"batch": 3}, 1)


def test_a_copy_that_rests_on_the_other_side_of_the_host_link_is_none():
    # all is read from the optimizer's copy, so nothing else than where the parameters are is wrong
    derived = schedule_of(on_batch("M", "R", "R", "S"))
    kept = derived.with_rest(State.PARAMETERS, Rest())
    assert agree(kept, {"batch": 2}, 1)
    away = Op(Kind.OFFLOAD, Phase.PUBLISH, Buffer.PARAMETERS)
    assert not agree(replace(kept, finish=(*kept.finish, away)), {"batch": 2}, 1)
    assert check(replace(kept, finish=(*kept.finish, away)), {"batch": 2}).rule == "agreed"


def test_what_is_stale_from_the_third_step_on_is_found():
    # fresh and tied gradients are kept: together nothing after a step, then the gradient before it
    gradients, fresh, tied = Buffer.GRADIENTS, Buffer.FRESH, Buffer.TIED

    def op(kind, source, into=None, **options):
        return Op(kind, Phase.REDUCE, source, into, **options)

    late = (
        op(Kind.ALL_REDUCE, gradients, axes=("batch",)),
        op(Kind.ACCUMULATE, tied, fresh),
        op(Kind.ACCUMULATE, gradients, fresh),
        Op(Kind.UPDATE, Phase.UPDATE, fresh, Buffer.OPTIMIZER),
        op(Kind.KEEP, tied, fresh),
        op(Kind.ACCUMULATE, gradients, fresh),
        op(Kind.SCALE, gradients, by=Monomial(Fraction(-1))),
        op(Kind.KEEP, gradients, tied),
        Op(Kind.RESET, Phase.UPDATE, gradients),
    )
    schedule = replace(schedule_of(STRATEGIES["dp"]), finish=late)
    assert not agree(schedule, {"batch": 2}, 1)
    verdict = check(schedule, {"batch": 2})
    assert (verdict.rule, verdict.step) == ("whole", 2)


@pytest.mark.parametrize("optimizer", ["O", "R+O", "R"])
def test_slices_of_gradients_on_the_host_are_fetched_to_be_gathered(optimizer):
    assert agree(schedule_of(on_batch("R", optimizer, "S*+O", "S")), {"batch": 3}, 1)


def beside(*finish, view=Buffer.VIEW, **training):
    """Data parallelism, and a gradient of parameters that were summed: nothing should be made of it."""
    dp, phase = schedule_of(STRATEGIES["dp"]), Phase.BACKWARD
    wrong = (
        Op(Kind.ALL_REDUCE, phase, Buffer.PARAMETERS, view, ("batch",), span=Span.UNIT),
        Op(Kind.FORWARD, phase, view, Buffer.ACTIVATIONS),
        Op(Kind.BACKWARD, phase, view, Buffer.FRESH, span=Span.UNIT),
        Op(Kind.RELEASE, phase, view),
    )
    reduced, *rest = dp.finish
    micro_step = (*dp.micro_step, *wrong)
    return replace(
        dp, micro_step=micro_step, finish=(reduced, *finish, *rest), training=Training(**training)
    )


def test_what_is_wrong_does_no_harm_if_it_is_dropped_wherever_the_first_device_is():
    dropped = Op(Kind.RELEASE, Phase.REDUCE, Buffer.FRESH)
    same = Op(Kind.BROADCAST, Phase.PUBLISH, Buffer.PARAMETERS, axes=("batch",))
    for schedule in (beside(dropped), beside(dropped, same)):
        assert agree(schedule, {"batch": 3}, 1)


def test_what_first_went_wrong_is_told_also_of_a_norm():
    clip = (
        Op(Kind.SQUARE_NORM, Phase.REDUCE, Buffer.FRESH, Buffer.NORM),
        Op(Kind.RELEASE, Phase.REDUCE, Buffer.FRESH),
        Op(Kind.CLIP, Phase.REDUCE, Buffer.GRADIENTS, by=Buffer.NORM),
    )
    schedule = beside(*clip, clip=True)
    assert not agree(schedule, {"batch": 3}, 1)
    verdict = check(schedule, {"batch": 3})
    assert (verdict.rule, verdict.op.kind) == ("fresh", Kind.BACKWARD)


def test_a_rejection_begins_with_the_operation_or_with_the_end_of_the_step():
    for modes in PLACEMENTS:
        verdict = check(schedule_of(on_batch(*modes)), {"batch": 2})
        if not verdict.accepted and verdict.op:
            where = f"{verdict.op.kind.value} {verdict.op.source.value}"
            assert reason(verdict).startswith(f"{where}: ")
        elif not verdict.accepted:
            assert reason(verdict).startswith("at the end of the step: ")
