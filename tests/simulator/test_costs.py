"""What a schedule by hand holds at its fullest is what its run does."""

from dataclasses import replace

import pytest

from proofs.registry import ROOT
from psem_model.predict.states import predict_schedule
from psem_model.reading.schedules import read
from psem_model.simulator import simulate
from spec.costs.memory import Sizes
from spec.derivation.derive import derive
from spec.language.schedule import Span
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES
from tests.support.schedules import without_releases

FILE = ROOT / "tests" / "regressions" / "right_view_of_the_step_before.toml"


def test_a_view_that_is_kept_from_the_step_before_is_held_whole():
    schedule, mesh = read(str(FILE)), {"dp": 2}
    *before, gather = schedule.finish
    schedule = replace(schedule, finish=(*before, replace(gather, span=Span.WHOLE)))
    run = simulate(schedule, mesh, 12, unit=4, policy=MIXED_ADAM, steps=2)
    costs = predict_schedule(schedule, Sizes(12, mesh, MIXED_ADAM, 4), 1)
    assert run.peak == costs.peak


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_run_holds_what_is_used_later_whether_it_says_release_or_not(name):
    schedule = derive(STRATEGIES[name])
    mesh = dict(zip(schedule.axes, (3, 2), strict=False))
    micro_steps = 2 if schedule.finish else 1
    costs = predict_schedule(schedule, Sizes(24, mesh, MIXED_ADAM, 6), micro_steps)
    for same in (schedule, without_releases(schedule)):
        run = simulate(same, mesh, 24, unit=6, policy=MIXED_ADAM, micro_steps=micro_steps, steps=2)
        assert run.matches
        assert run.peak == costs.peak
