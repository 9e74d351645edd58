"""Profiles: kernels, what is made again, types and units; and the simulator beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.transformers import ran
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.samples import numbers_of
from psem_model.reading.profiles import read as profile
from psem_model.reading.shapes import small
from psem_model.text.errors import BadInput
from spec.derivation.steps import check_step
from spec.models.parts import parts
from spec.models.profiles import rows_of
from tests.support.products import plans
from tests.support.profiles import profiles


@st.composite
def profiled(draw):
    plan, profile = draw(plans()), draw(profiles())
    return replace(plan, profile=profile, policy=profile.types(plan.policy))


@given(profiled())
def test_what_a_profile_changes_is_still_what_one_device_does(plan):
    check_step(plan.step)


@settings(max_examples=25)
@given(profiled())
def test_the_simulator_counts_the_bytes_that_are_predicted_of_any_profile(plan):
    found = ran(plan, Run())
    assert found.divergence is None
    assert [(k, f) for k, stage in enumerate(found.stages) for f in stage if not f.equal] == []


def kept(shape, profile):
    """The bytes that a layer keeps, and its widest moment."""
    asked = Asked("predict", "tp(1)", model={k: str(v) for k, v in shape.items()}, profile=profile)
    costs = read(asked).costs["layer"]
    return costs.activations, costs.computing


SHAPE = {"layers": 1, "hidden": 64, "heads": 4, "block": "llama", "feed_forward": 128}


def test_fused_attention_keeps_and_needs_what_is_linear_in_the_sequence():
    (one, moment), (two, later) = (kept({**SHAPE, "sequence": s}, "common") for s in (256, 512))
    assert two == 2 * one
    assert later == 2 * moment


def test_fused_attention_keeps_a_number_of_four_bytes_for_each_row_instead_of_pairs():
    textbook, _ = kept({**SHAPE, "sequence": 256}, "textbook")
    common, _ = kept({**SHAPE, "sequence": 256}, "common")
    assert textbook - common == 4 * 256 * (2 * 256 - 4)


def test_sixteen_bytes_a_parameter_rest_with_fully_shard():
    asked = Asked("predict", "fsdp", psi="1000", devices="1", profile="fsdp2")
    stage = read(asked).fullest
    assert sum(stage.resting.values()) == 16 * 1000
    moved = read(replace(asked, devices="2")).fullest.moved
    widths = {m.collective: m.bytes / m.elements for m in moved}
    assert widths == {"all_gather": 2, "reduce_scatter": 4}


def test_a_value_inside_a_kernel_is_not_sent(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "t"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\ninside = ["output"]\n'
    )
    with pytest.raises(BadInput, match="output is inside a kernel, and would be sent"):
        model = {k: str(v) for k, v in {**SHAPE, "sequence": 4}.items()}
        read(Asked("predict", "tp(2)", model=model, profile=str(file)))


def profiled_as(text, tmp_path, strategy, **options):
    file = tmp_path / "mine.toml"
    file.write_text(f'title = "t"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\n{text}\n')
    model = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}
    return read(Asked("predict", strategy, model=model, profile=str(file), **options))


def test_what_a_kernel_with_a_softmax_gives_is_in_memory(tmp_path):
    inside = 'inside = ["scores", "seen", "shares", "context"]'
    with pytest.raises(BadInput, match="context is inside a kernel, and its backward reads it"):
        profiled_as(inside, tmp_path, "dp(2)")


def test_gradients_are_summed_in_every_micro_step_if_a_profile_says_so(tmp_path):
    def sent(text):
        moved = profiled_as(text, tmp_path, "dp(2)", accumulate="3").fullest.moved
        return sum(m.elements for m in moved if m.collective == "all_reduce")

    assert sent("each = true") == 3 * sent("prefetch = 1")


def test_weights_with_one_owner_are_whole_on_each_device(tmp_path):
    plan = profiled_as('owners = true\nunits = "layer"', tmp_path, "zero1(2)")
    moved = {m.collective: m.elements for m in plan.fullest.moved}
    assert moved["broadcast"] == plan.psi
    with pytest.raises(BadInput, match="cuts the optimizer state alone"):
        profiled_as("owners = true", tmp_path, "zero2(2)")


def test_numbers_of_a_step_are_kept_for_all_its_micro_batches(tmp_path):
    def kept(samples):
        text = f'samples = "{samples}"'
        return profiled_as(text, tmp_path, "dp(1)", accumulate="3").fullest.activations

    assert kept("step") - kept("micro-batch") == 2 * 2 * 8 * 4  # of tokens and of next words


@pytest.mark.parametrize(("name", "has"), [("dense_layer", 2 * 2 * 8 * 4), ("straight_layer", 0)])
def test_cosines_and_sines_are_kept_where_layers_of_any_kind_are_turned(name, has):
    model = replace(small("llama", True), head_dim=4)
    assert numbers_of(Counter([name]), model, {name: None}, 8, 2).places == has


def test_norms_whose_tokens_are_cut_are_summed_by_each_use_or_first(tmp_path):
    def sent(text, strategy="tp+sp(2)", what="all_reduce"):
        moved = profiled_as(text, tmp_path, strategy, accumulate="3").fullest.moved
        of = (m for m in moved if m.what == "gradients" and m.axes == ("tensor",))
        return sum(m.elements for m in of if m.collective == what)

    assert sent("uses = 3") == 3 * sent("prefetch = 1") > 0
    assert sent("sums_first = true") == 3 * sent("prefetch = 1")
    sharded = "zero3(3) * tp+sp(2)"
    assert sent("sums_first = true", sharded) == sent("sums_first = true")
    assert sent("prefetch = 1", sharded) < sent("prefetch = 1")


def test_differences_that_are_overridden_are_not_listed():
    def listed(**options):
        from psem_model.predict.model_report import OfModel

        model = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}
        plan = read(Asked("predict", "fsdp(2)", model=model, profile="fsdp2", **options))
        found = next(s for s in OfModel(plan).report().sections if s.key == "profile.differs")
        return len(found.rows)

    assert listed() == len(profile("fsdp2").differs)
    assert listed(policy="mixed-adam") == listed() - 1
    assert listed(unit="100") == listed() - 3


def test_rows_are_the_features_that_a_product_makes_or_the_entries_of_a_table():
    found = {}
    for part in parts(small("gpt", False)):
        found |= {weight.name: rows_of(weight, part) for weight in part.weights}
    assert found["query_weight"] == found["query_bias"] == ("g", "r", "d")
    assert found["output_weight"] == found["down_weight"] == ("h",)
    assert found["place_weight"] == ("w",)
    assert found["mlp_norm_scale"] == ("h",)
