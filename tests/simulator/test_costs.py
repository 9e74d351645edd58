"""What a schedule by hand holds at its fullest is what its run does."""

from dataclasses import replace

import pytest

from proofs.costs.passing import gathered_whole
from proofs.registry import ROOT
from psem_model.predict.states import predict_schedule
from psem_model.reading.schedules import read
from psem_model.simulator import simulate
from psem_model.simulator.rests import flat
from spec.costs.memory import Sizes
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Span
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES
from tests.support.schedules import with_clipping, with_tied_parameters, without_releases

FILE = ROOT / "tests" / "regressions" / "right_view_of_the_step_before.toml"


def test_a_view_that_is_kept_from_the_step_before_is_held_whole():
    schedule, mesh = read(str(FILE)), {"dp": 2}
    *before, gather = schedule.finish
    schedule = replace(schedule, finish=(*before, replace(gather, span=Span.ALL_UNITS)))
    run = simulate(schedule, mesh, 12, unit=4, policy=MIXED_ADAM, steps=2)
    costs = predict_schedule(schedule, Sizes(12, mesh, MIXED_ADAM, 4), 1)
    assert run.peak == costs.peak


def test_units_that_are_replaced_by_the_whole_have_had_their_turns():
    """So what was held whole for them goes: here parameters, before the optimizer's are gathered."""
    schedule = gathered_whole(schedule_of(STRATEGIES["zero3"]))
    costs = predict_schedule(schedule, Sizes(48, {"batch": 4}, MIXED_ADAM, 12), 2)
    run = simulate(schedule, {"batch": 4}, 48, unit=12, policy=MIXED_ADAM, micro_steps=2, steps=2)
    assert run.matches
    at_rest, whole_gradients, whole_optimizer = 12 * (2 + 2 + 12), 48 * 2, 48 * 12
    assert run.peak == costs.peak == at_rest + whole_gradients + whole_optimizer


def test_a_smaller_unit_has_its_turn_before_a_full_one_in_backward_too():
    """So that a full one passes when all that is held whole is there: here gradients, to be clipped."""
    schedule = with_clipping(with_tied_parameters(schedule_of(STRATEGIES["fused-update"])))
    costs = predict_schedule(schedule, Sizes(3, {"batch": 1}, MIXED_ADAM, 2), 1)
    run = simulate(schedule, {"batch": 1}, 3, unit=2, policy=MIXED_ADAM)
    at_rest, whole_gradients, tied_gradients = 3 * (2 + 12), 3 * 2, 2 * 2
    assert run.peak == costs.peak == at_rest + whole_gradients + tied_gradients


@pytest.mark.parametrize("lengths", [(1, 2), (2, 1)])
def test_backward_goes_from_the_last_of_units_in_layers_to_the_first(lengths):
    schedule = with_clipping(with_tied_parameters(schedule_of(STRATEGIES["fused-update"])))
    cuts = [flat(length) for length in lengths]
    run = simulate(schedule, {"batch": 1}, 3, policy=MIXED_ADAM, cuts=cuts)
    first, last = lengths
    beside = max(last + last, last + first + first)  # gradients so far, and the unit's own tied ones
    assert run.peak == 3 * (2 + 12) + 2 * beside


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_run_holds_what_is_used_later_whether_it_says_release_or_not(name):
    schedule = schedule_of(STRATEGIES[name])
    mesh = dict(zip(schedule.axes, (3, 2), strict=False))
    micro_steps = 2 if schedule.finish else 1
    costs = predict_schedule(schedule, Sizes(24, mesh, MIXED_ADAM, 6), micro_steps)
    for same in (schedule, without_releases(schedule)):
        run = simulate(same, mesh, 24, unit=6, policy=MIXED_ADAM, micro_steps=micro_steps, steps=2)
        assert run.matches
        assert run.peak == costs.peak
