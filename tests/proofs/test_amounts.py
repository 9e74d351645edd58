"""T2 in numbers: on any mesh the verdict is what comparisons of amounts say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.checking.operation_lines import NotCovered
from spec.derivation.derive import derive
from spec.models.states import MIXED_ADAM, POLICIES
from spec.plans.strategies import STRATEGIES
from tests.support.amount_runs import agree_on_amounts
from tests.support.damage import damaged, with_one_fault
from tests.support.line_runs import PLAIN_PIECES
from tests.support.schedules import PIECES, cancelled, made_up, placements, training


@pytest.mark.parametrize("name", ["dp", "zero1", "zero2", "zero3", "fsdp", "hsdp", "zero-offload"])
def test_named_strategies_compare_equal_in_amounts(name):
    schedule = derive(STRATEGIES[name])
    for piece in PLAIN_PIECES:
        mesh = dict(zip(schedule.axes, (2, 3), strict=False))
        assert agree_on_amounts(PIECES[piece](schedule), mesh, 2, MIXED_ADAM, 2).accepted, piece


def test_single_faults_on_two_axes_are_judged_by_amounts():
    schedule, judged = derive(STRATEGIES["hsdp"]), 0
    for faulty in with_one_fault(schedule):
        try:
            agree_on_amounts(faulty, dict.fromkeys(faulty.axes, 2), 1, MIXED_ADAM, 3)
        except NotCovered:
            continue
        judged += 1
    assert judged > 20


@st.composite
def on_meshes(draw):
    """A schedule along one axis or two, perhaps damaged, mostly of what T2 covers."""
    policy = POLICIES[draw(st.sampled_from(["mixed-adam", "fp32-adam"]))]
    source = draw(st.sampled_from(["derived", "derived", "made up", "cancelled"]))
    if source == "derived":
        schedule = derive(draw(placements(axes=draw(st.sampled_from([1, 2, 2])))))
        schedule = PIECES[draw(st.sampled_from(PLAIN_PIECES))](schedule)
        schedule = draw(damaged(schedule)) if draw(st.integers(0, 3)) else schedule
    else:
        schedule = draw(made_up() if source == "made up" else cancelled())
        schedule = training(schedule, clip=False, statistics=None)
    mesh = {axis: draw(st.integers(1, 3)) for axis in schedule.axes}
    return schedule, mesh, draw(st.integers(1, 2)), policy


@settings(max_examples=60)
@given(on_meshes())
def test_verdicts_are_those_of_amounts(case):
    try:
        agree_on_amounts(*case)
    except NotCovered:
        return


@pytest.mark.slow
@settings(max_examples=600)
@given(on_meshes())
def test_verdicts_of_many_schedules_are_those_of_amounts(case):
    try:
        agree_on_amounts(*case)
    except NotCovered:
        return
