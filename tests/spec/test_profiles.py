"""Profiles: kernels, what is made again, types and units; and the simulator beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.transformers import ran
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
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


def test_rows_are_the_features_that_a_product_makes_or_the_entries_of_a_table():
    found = {}
    for part in parts(small("gpt", False)):
        found |= {weight.name: rows_of(weight, part) for weight in part.weights}
    assert found["query_weight"] == found["query_bias"] == ("g", "r", "d")
    assert found["output_weight"] == found["down_weight"] == ("h",)
    assert found["place_weight"] == ("w",)
    assert found["mlp_norm_scale"] == ("h",)
