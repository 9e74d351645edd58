"""Models of given parts: any of them trains as one device does, and is as predicted."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.text.places import EXAMPLES
from spec.checking.steps import check_step
from spec.devices.layouts import LayoutError
from spec.models.transformer import Transformer
from tests.support.examples import examples, few
from tests.support.own_models import PLANS, as_custom, own_plans

GPT = Transformer(2, 8, 4, 4, 2, 8, 6, positions=8)
LLAMA = Transformer(
    *(2, 8, 4, 4, 2, 8, 6),
    gated=True,
    function="silu",
    norm="rms_norm",
    biases=frozenset(),
)
MODELS = sorted((EXAMPLES / "models").glob("*.toml"))
# of two axes that cut positions, or of several rings, no right order may be derived
MAY_BE_REFUSED = ("fsdp(2) * cp(2)", "zero1+all(2) * tp+sp(2) * cp(2)")
REFUSALS = re.compile("is not there in these context turns|is outside context in the order of")

OF_SLOPES = """
layers = 2
parts = ["first", "layer", "last"]

[sizes]
h = 8
n = 3

[first]
constants = ["inputs[b s n]"]
weights = ["first_weight[n h]"]
forward = [
  { op = "contract", source = ["inputs", "first_weight"], into = "first_out[b s h]" },
]
gives = "first_out"

[layer]
takes = "layer_in[b s h]"
constants = ["places[s]", "samples[b]"]
weights = ["slope[h]"]
forward = [
  { op = "contract", source = ["slope", "places"], into = "by_place[s h]" },
  { op = "contract", source = ["by_place", "samples"], into = "spread[b s h]" },
  { op = "add", source = ["layer_in", "spread"], into = "layer_out[b s h]" },
]
gives = "layer_out"

[last]
takes = "last_in[b s h]"
weights = ["last_weight[h]"]
forward = [
  { op = "contract", source = ["last_in", "last_weight"], into = "loss[b s]" },
]
gives = "loss"
"""


@settings(examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(own_plans())
def test_a_random_model_trains_as_one_device_and_is_as_predicted(plan):
    try:
        check_step(plan.step)
    except LayoutError as error:
        may_be_refused = plan.text in MAY_BE_REFUSED and REFUSALS.search(str(error))
        assume(not may_be_refused)
        raise
    run = measured(plan, Run(2, "modular", 0))
    assert run.divergence is None
    assert run.unequal == []
    assert run.as_predicted


@settings(examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([GPT, LLAMA]), st.data())
def test_a_transformer_written_out_is_predicted_and_trains_as_one_that_is_known(model, data):
    plan = data.draw(own_plans(st.just(as_custom(model))))
    known = replace(plan, model=model)
    for one, other in zip(plan.stages, known.stages, strict=True):
        assert one.resting == other.resting
        assert one.peak == other.peak
        assert one.moved == other.moved
    assert measured(plan, Run(1, "modular", 0)).as_predicted


def test_a_run_in_which_a_sum_is_forgotten_diverges(psem, tmp_path):
    mlp = EXAMPLES / "models" / "mlp.toml"
    step = psem("derive", "zero1 * tp", "--model", mlp)[1]
    whole, forgotten = tmp_path / "whole.toml", tmp_path / "forgotten.toml"
    whole.write_text(step)
    lines = [line for line in step.splitlines() if '"all_reduce", source = "d unit 1"' not in line]
    forgotten.write_text("\n".join(lines).replace("d unit 2", "d unit 1"))
    run = ("--model", mlp, "--devices", "2x2", "--sequence", "1", "--micro-batch", "2")
    assert psem("simulate", whole, *run)[0] == 0
    assert psem("check", forgotten)[0] == 1
    assert psem("predict", forgotten, *run)[0] == 2


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
@pytest.mark.parametrize("strategy", few(["fsdp(2) * tp(2) * pp(2)", "zero1(2) * tp(2)"]))
def test_an_example_is_accepted_and_is_as_predicted(strategy, model, psem):
    run = ("--sequence", "1" if model.stem == "mlp" else "4", "--micro-batch", "2", "--accumulate", "2")
    assert psem("check", strategy, "--model", model)[0] == 0
    assert psem("simulate", strategy, "--model", model, *run)[0] == 0


def test_a_weight_that_each_turn_of_a_ring_reads_has_the_sum_of_all_turns(psem):
    model = ("--model", EXAMPLES / "models" / "talking_heads.toml")
    plan = "zero1(2) * tp(2) * cp(2)"
    assert psem("check", plan, *model)[0] == 0
    assert psem("simulate", plan, *model, "--sequence", "4", "--micro-batch", "2")[0] == 0


def test_a_step_of_a_file_is_predicted_as_the_strategy_that_it_is_derived_from(psem, tmp_path):
    model, file = EXAMPLES / "models" / "mixer.toml", tmp_path / "step.toml"
    file.write_text(psem("derive", "zero1 * tp+sp", "--model", model)[1])
    run = ("--model", model, "--devices", "2x2", "--sequence", "8", "--json")
    derived = json.loads(psem("predict", "zero1 * tp+sp", *run)[1])
    written = json.loads(psem("predict", file, *run)[1])
    assert derived["memory"] == written["memory"]
    for key in ("elements", "bytes"):
        assert derived["communication"][key] == written["communication"][key]


def test_a_step_whose_part_moves_what_it_takes_is_simulated(psem, tmp_path):
    model, file = EXAMPLES / "models" / "mixer.toml", tmp_path / "step.toml"
    text = model.read_text()
    moved = tmp_path / "model.toml"
    moved.write_text(text.replace('source = "unit", names', 'source = "layer_in", names'))
    file.write_text(psem("derive", "fsdp * cp", "--model", moved)[1])
    assert psem("check", file)[0] == 0
    run = ("--model", moved, "--devices", "2x2", "--sequence", "4")
    assert psem("simulate", file, *run)[0] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [line for line in lines if 'op = "forward"' not in line], "no forward"),
        (
            lambda lines: [
                line.replace('"gelu", source = ["d', '"softmax", source = ["d') for line in lines
            ],
            "apply by softmax",
        ),
    ],
)
def test_a_rejected_step_that_cannot_run_is_told_in_a_line(change, said, psem, tmp_path):
    model, file = EXAMPLES / "models" / "mlp.toml", tmp_path / "step.toml"
    text = psem("derive", "zero1", "--model", model)[1]
    file.write_text("\n".join(change(text.splitlines())))
    code, _, error = psem("simulate", file, "--model", model, "--devices", "2")
    assert code == 2
    assert said in error
    assert error.count("\n") == 1


def test_own_models_train_in_floating_point(psem):
    run = ("--model", EXAMPLES / "models" / "mixer.toml", "--sequence", "4", "--arithmetic", "float64")
    assert psem("simulate", "zero1(2) * tp(2)", *run, "--steps", "3")[0] == 0


def test_all_plans_of_the_random_models_are_of_several_axes():
    assert {*MAY_BE_REFUSED} < {*PLANS}


def test_layers_that_keep_nothing_have_no_best_number_of_checkpoints(psem, tmp_path):
    path = tmp_path / "slopes.toml"
    path.write_text(OF_SLOPES)
    code, out, _ = psem("predict", "dp(4)", "--model", path, "--sequence", 16, "--json")
    assert (code, json.loads(out)["checkpoints"]) == (0, None)
