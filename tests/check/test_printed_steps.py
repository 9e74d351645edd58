"""Derived steps as files: printed, read again, and accepted as they were derived."""

from __future__ import annotations

import json
import tomllib
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings

from psem_model.predict.parts import PartCosts
from psem_model.reading.products import parse
from psem_model.reading.schedule_reader import Reader
from psem_model.reading.shapes import small
from psem_model.reading.step_reader import read_step
from psem_model.reading.steps import dumps
from spec.checking.programs import check_program
from spec.checking.steps import check_step
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS
from spec.derivation.steps import derive
from spec.devices.layouts import LayoutError
from spec.models.parts import parts
from tests.support.examples import few
from tests.support.own_models import own_plans
from tests.support.steps import text_of

STATES = ["", "dp", "zero1", "zero3", "zero1+all", "fsdp-hold"]
CUTS = [
    "tp",
    "tp+sp",
    "cp",
    "cp-all-gather",
    "cp-all-to-all",
    "tp+sp * cp",
    "tp * ep",
    "tp+sp * pp",
    "cp * tp * ep * pp",
    "cp * cp(context2)",
]


@pytest.mark.parametrize(("states", "cuts"), few(product(STATES, CUTS)))
def test_a_derived_step_is_accepted_as_a_file(states, cuts, checked):
    text = text_of(" * ".join(filter(None, [states, cuts])), "gpt" if "ep" in cuts else "llama")
    assert checked(text).accepted, checked(text).wrong


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(own_plans())
def test_the_step_of_a_random_model_is_as_a_file_what_it_is(plan):
    text = dumps(plan.step, plan.text)
    read, _ = read_step(Reader("my.toml", text, tomllib.loads(text)))
    assert is_right(read) == is_right(plan.step)


def is_right(step):
    try:
        check_step(step)
    except LayoutError:
        return False
    return True


@pytest.mark.parametrize("strategy", ["tp", "tp+sp", "cp", "cp-all-gather", "cp-all-to-all", "ep"])
def test_what_reads_a_log_sum_exp_is_accepted_as_a_file(strategy, psem, tmp_path):
    code, text, err = psem("derive", strategy, "--model", "gpt-oss-20b")
    assert (code, err) == (0, "")
    (tmp_path / "my.toml").write_text(text)
    assert psem("check", tmp_path / "my.toml")[0] == 0


def test_a_step_with_copies_of_heads_is_as_a_file_what_its_plan_is(psem, tmp_path):
    model = ("--model", "llama-3-8b")
    (tmp_path / "my.toml").write_text(psem("derive", "zero1(2) * tp(16)", *model)[1])
    code, out, _ = psem("check", tmp_path / "my.toml")
    assert (code, "v is cut along tensor x tensor_copies" in out) == (0, True)
    of_file, planned = (
        json.loads(psem("predict", *args, *model, "--sequence", "4096", "--json")[1])
        for args in (
            ("--schedule", tmp_path / "my.toml", "--devices", "2x8x2"),
            ("zero1(2) * tp(16)", "--profile", "textbook"),
        )
    )
    assert of_file["memory"] == planned["memory"]


@pytest.mark.parametrize("recompute", ["attention", "all", "sliced"])
@pytest.mark.parametrize("hold", [False, True])
def test_what_is_made_again_or_held_is_accepted(recompute, hold, checked):
    assert checked(text_of("zero1 * tp+sp", recompute=recompute, hold=hold)).accepted


@pytest.mark.parametrize("block", ["gpt", "llama"])
@pytest.mark.parametrize("again", [NOTHING, PAIRS, EVERYTHING, FROM_SLICES])
@pytest.mark.parametrize(
    "strategy", few(["fsdp * tp+sp * cp", "zero1 * tp+sp", "cp", "cp-all-to-all", "ep * tp"])
)
def test_what_is_read_keeps_holds_and_sends_what_was_written(strategy, again, block):
    model = small(block, "ep" in strategy)
    step = derive(parse(strategy).product, parts(model), again)
    text = dumps(step, strategy)
    found, _ = read_step(Reader("step.toml", text, tomllib.loads(text)))
    assert found.groups == step.groups
    sizes = model.sizes(16, 16), {axis.name: 2 for axis in step.programs[0].axes}
    for before, after in zip(step.programs, found.programs, strict=True):
        typed = check_program(after)
        one, other = PartCosts(before, *sizes), PartCosts(typed, *sizes)
        assert (one.activations, one.computing) == (other.activations, other.computing)
        assert [(t.phase, t.elements, t.bytes) for t in one.traffic] == [
            (t.phase, t.elements, t.bytes) for t in other.traffic
        ]
