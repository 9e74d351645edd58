"""What a schedule by hand holds at its fullest is what its run does."""

from dataclasses import replace

import pytest

from proofs.registry import ROOT
from psem_model.predict.states import predict_schedule
from psem_model.reading.schedules import read
from psem_model.simulator import simulate
from spec.costs.memory import Sizes
from spec.derivation.derive import derive
from spec.language.schedule import Buffer, Kind, Op, Phase, Span
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


def test_units_that_are_replaced_by_the_whole_have_had_their_turns():
    """So what was held whole for them goes: here parameters, before the optimizer's are gathered."""

    def gathered(source, into):
        op = Op(Kind.ALL_GATHER, Phase.REDUCE, source, into, axes=("batch",), span=Span.WHOLE)
        return op, Op(Kind.RELEASE, Phase.REDUCE, into)

    zero3 = derive(STRATEGIES["zero3"])
    forward, backward, reduce, add = (
        next(op for op in zero3.micro_step if op.kind is kind)
        for kind in (Kind.FORWARD, Kind.BACKWARD, Kind.REDUCE_SCATTER, Kind.ACCUMULATE)
    )
    view, release_view = gathered(Buffer.PARAMETERS, Buffer.VIEW)
    fresh, release_fresh = gathered(Buffer.FRESH, Buffer.FRESH)
    moments = gathered(Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW)
    first = (view, forward, backward, release_view, reduce)
    schedule = replace(zero3, micro_step=(*first, fresh, *moments, add, release_fresh))
    costs = predict_schedule(schedule, Sizes(48, {"batch": 4}, MIXED_ADAM, 12), 2)
    run = simulate(schedule, {"batch": 4}, 48, unit=12, policy=MIXED_ADAM, micro_steps=2, steps=2)
    assert run.matches
    at_rest, whole_gradients, whole_optimizer = 12 * (2 + 2 + 12), 48 * 2, 48 * 12
    assert run.peak == costs.peak == at_rest + whole_gradients + whole_optimizer


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
