"""Random profiles: what the simulator counts is what is predicted."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import Phase, given, settings

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from spec.checking.steps import check_step
from spec.models.profiles import TEXTBOOK, Profile, Units
from tests.support.examples import examples, slow_but
from tests.support.profiled_plans import (
    MODEL,
    OF_ONE_VECTOR,
    OPAQUE_OF_ONE_VECTOR,
    OPAQUE_WITH_OWNERS,
    WITH_OWNERS,
    gathered_ahead,
    held,
    opaque,
    profiled,
    profiled_as,
)
from tests.support.profiles import profiles

# words, where a system has states, and a policy that plans have drawn
SAID = {"name", "title", "names", "like", "differs", "places", "policy"}


def is_as_predicted(plan):
    """A run trains as one device, and all that it counts is as predicted."""
    found = measured(plan, Run())
    assert found.divergence is None
    assert not found.unequal


@given(profiled())
def test_what_a_profile_changes_is_still_what_one_device_does(plan):
    check_step(plan.step)


@examples(25)
@given(profiled())
def test_the_simulator_counts_the_bytes_that_are_predicted_of_any_profile(plan):
    is_as_predicted(plan)


@pytest.mark.parametrize("function", ["gelu", "gelu_new", "silu", "relu"])
@pytest.mark.parametrize("gated", [False, True])
def test_features_that_tensor_parallelism_cuts_unevenly_train_as_one_device(function, gated):
    model = {**MODEL, "feed_forward": "10"}
    plan = read(Asked("predict", "tp(4)", model=model, profile="parallelize"))
    plan = replace(plan, model=replace(plan.model, function=function, gated=gated))
    is_as_predicted(plan)


@examples(25)
@given(gathered_ahead())
def test_the_simulator_gathers_units_before_their_turn_and_counts_what_is_predicted(plan):
    is_as_predicted(plan)


@examples(25)
@given(held())
def test_the_simulator_holds_the_units_that_are_said_and_counts_what_is_predicted(plan):
    is_as_predicted(plan)


@examples(60)
@given(opaque())
def test_the_simulator_counts_the_bytes_that_are_predicted_of_any_profile_of_an_opaque_model(plan):
    found = measured(plan, Run(2))
    assert found.divergence is None
    assert not found.unequal


@examples(25)
@given(profiled() | opaque() | WITH_OWNERS)
def test_the_simulator_copies_gradients_into_buckets_and_counts_what_is_predicted(plan):
    profile = replace(plan.profile, units=Units.BUCKET, copies=True)
    found = measured(replace(plan, profile=profile, unit=None), Run())
    assert found.divergence is None
    assert not found.unequal


@examples(25)
@given(WITH_OWNERS | OPAQUE_WITH_OWNERS)
def test_the_simulator_deals_whole_weights_to_owners_and_counts_what_is_predicted(plan):
    is_as_predicted(plan)


@examples(25)
@given(OF_ONE_VECTOR | OPAQUE_OF_ONE_VECTOR)
def test_the_simulator_cuts_all_units_as_one_vector_and_counts_what_is_predicted(plan):
    found = measured(plan, Run(2))
    assert found.divergence is None
    assert not found.unequal


@pytest.mark.parametrize("strategy", ["zero1(1)", "zero1(2)", "zero2(3)"])
def test_gradients_that_leave_slices_are_made_anew_in_the_next_step_when_those_have_gone(strategy):
    plan = read(Asked("predict", strategy, psi="12"))
    plan = replace(plan, profile=replace(plan.profile, waits_whole=True))
    assert [measured(plan, Run(steps)).unequal for steps in (1, 2, 3)] == [[], [], []]


@pytest.mark.parametrize(
    ("order", "micro_batches"),
    slow_but(
        [("interleaved", 2)],
        [("gpipe", 4), ("1f1b", 4), ("interleaved", 4), ("interleaved", 2), ("zb-h1", 4)],
    ),
)
@pytest.mark.parametrize(
    "strategy", ["fsdp(2) * pp(2)", "fsdp-hold(2) * pp(2)", "fsdp-offload(2) * pp(2)"]
)
@pytest.mark.parametrize("added", ["", "+reshard"])
def test_the_simulator_keeps_what_a_pipeline_gathers_and_counts_what_is_predicted(
    order, micro_batches, strategy, added
):
    """In whatever order a stage goes forward and backward, a view is gathered as often."""
    model = {**MODEL, "layers": "4", "hidden": "16", "feed_forward": "24", "order": order}
    model |= {"chunks": "2"} if order == "interleaved" else {}
    profile = f"fully-shard{'-offload' * ('offload' in strategy)}{added}"
    asked = Asked("predict", strategy, model=model, profile=profile, accumulate=str(micro_batches))
    plan = read(asked)
    found = measured(plan, Run(2))
    assert found.divergence is None
    assert not found.unequal
    gathers = {
        m.times for m in plan.fullest.moved if m.collective == "all_gather" and m.when == "forward"
    }
    assert gathers == {1}


@pytest.mark.parametrize(
    ("strategy", "profile"),
    [
        ("zero1(2)", "zero-redundancy+no-sync"),
        ("zero1(2) * pp(2)", "zero-redundancy"),
        ("fsdp-offload(2)", "fully-shard-offload+no-sync"),
        ("fsdp(2) * tp+sp(2)", "fsdp2+no-sync+loss-parallel"),
    ],
)
def test_the_simulator_leaves_gradients_that_waited_where_pytorch_does(strategy, profile):
    model = {**MODEL, "layers": "4", "hidden": "16", "feed_forward": "24"}
    plan = read(Asked("predict", strategy, model=model, profile=profile, accumulate="3"))
    found = measured(plan, Run(2))
    assert found.divergence is None
    assert not found.unequal


@pytest.mark.slow
def test_random_profiles_have_every_field_otherwise_than_the_textbook():
    otherwise = set()

    @settings(max_examples=100, phases=[Phase.generate])
    @given(profiles())
    def draw(drawn):
        names = [field.name for field in fields(Profile)]
        otherwise.update(name for name in names if getattr(drawn, name) != getattr(TEXTBOOK, name))

    draw()
    assert otherwise | SAID == {field.name for field in fields(Profile)}


@pytest.mark.parametrize("owners", ["", '\npadding = "weight"'])
def test_what_is_copied_into_buckets_is_the_slice_that_is_summed(owners, tmp_path):
    text = f"buckets = [64, 64]\ncopies = true{owners}"
    plan = profiled_as(text, tmp_path, "zero1(3) * tp(2) * zero1(tensor)")
    assert not measured(plan, Run()).unequal
