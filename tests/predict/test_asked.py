"""What is asked of a plan: equal batches, units, shapes; and what is said where no step is derived."""

import json
import re
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.report import predicted as reported
from tests.support.command import exact, predicted
from tests.support.examples import examples

SHAPE = ["--layers", 8, "--hidden", 64, "--heads", 8, "--sequence", 32]
PSI = ["--psi", "1e9"]
# parameters and optimizer state on the host, and no copy of the weights: a step exists, none is derived
ON_HOST = "parameters=R,optimizer=S+O,gradients=S+O,activations=S"
ALL_ON_HOST = "parameters=S*+O,optimizer=S+O,gradients=S+O,activations=S"


def shard(elements, unit, devices):
    """Elements on a device, of all of them in units, each padded on its own."""
    return elements // unit * ceil(unit / devices) + ceil((elements % unit) / devices)


def samples(out):
    return [plan["samples"] for plan in json.loads(out)["plans"]]


@pytest.mark.parametrize("sizes", [PSI, SHAPE])
def test_a_global_batch_gives_every_plan_as_many_samples(sizes, psem):
    code, out, err = psem("compare", "zero1(8)", "zero3(2)", *sizes, "--global-batch", 32, "--json")
    assert (code, err, samples(out)) == (0, "", [32, 32])
    assert "(!)" not in psem("compare", "zero1(8)", "zero3(2)", *sizes, "--global-batch", 32)[1]


@pytest.mark.parametrize("plan", ["zero1(4)", "zero1(2) * tp(2)", "dp(2) * pp(2)"])
def test_predict_takes_as_many_micro_steps_as_a_global_batch_needs(plan, psem):
    at_once = 3 * int(plan[plan.index("(") + 1])
    batch = ["--micro-batch", 3]
    by_batch = psem("predict", plan, *SHAPE, *batch, "--global-batch", 5 * at_once, "--json")
    by_steps = psem("predict", plan, *SHAPE, *batch, "--accumulate", 5, "--json")
    assert by_batch == by_steps
    assert by_batch[0] == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--global-batch", 7], "given 7; expected a multiple of 4"),
        (["--global-batch", 8, "--accumulate", 2], "--accumulate: given with --global-batch"),
    ],
)
def test_a_global_batch_that_does_not_fit_is_told(more, said, psem):
    code, out, err = psem("predict", "zero1(4)", *SHAPE, *more)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_what_attention_alone_makes_again_is_nothing_where_it_is_a_kernel(psem):
    for profile, is_kernel in (("common", True), ("textbook", False)):
        more = ["--recompute", "attention", "--profile", profile]
        _, out, _ = psem("predict", "tp(2)", *SHAPE, *more)
        assert ("attention is a kernel, which keeps no pairs" in out) is is_kernel


def test_plans_by_unequal_profiles_are_marked(psem, tmp_path):
    (tmp_path / "my.toml").write_text(psem("derive", "zero1 * tp")[1])
    shape = [*SHAPE, "--vocabulary", 64, "--devices", "2x2"]
    for more, marked in (([], True), (["--profile", "textbook"], False)):
        code, out, err = psem("compare", tmp_path / "my.toml", "zero1(2) * tp(2)", *shape, *more)
        assert (code, err) == (0, "")
        assert ("of unequal profiles" in out) is marked


def test_interleaved_stages_need_chunks(psem):
    code, out, err = psem("predict", "pp(2)", *SHAPE, "--accumulate", 2, "--order", "interleaved")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "expected --chunks too" in err


def test_a_global_batch_counts_samples_of_a_micro_batch_and_axes_that_cut_samples(psem):
    plans = ["zero1(dp=4) * tp(2)", "dp(2) * pp(4)"]
    args = [*SHAPE, "--micro-batch", 2, "--global-batch", 48, "--json"]
    assert samples(psem("compare", *plans, *args)[1]) == [48, 48]


def test_unequal_samples_are_marked_and_say_how_to_make_them_equal(psem):
    _, out, _ = psem("compare", "zero1(8)", "zero3(2)", *PSI)
    assert re.search(r"samples of a step \(!\) +8 +2\n", out)
    assert "--global-batch makes them equal" in out


def test_each_plan_may_have_its_own_accumulation(psem):
    args = ["zero1(8)", "zero3(2)", *PSI, "--accumulate"]
    assert samples(psem("compare", *args, "1,4", "--json")[1]) == [8, 8]
    assert samples(psem("compare", *args, "3", "--json")[1]) == [24, 6]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--global-batch", 12], "expected a multiple of 8, the samples of a micro-step of 'zero1(8)'"),
        (["--global-batch", 16, "--accumulate", 2], "--global-batch: given with --accumulate"),
        (["--accumulate", "1,2,3"], "expected one number, or 2, one a plan"),
        (["--global-batch", 0], "at least 1"),
    ],
)
def test_batches_that_cannot_be_are_refused_in_one_line(args, words, psem):
    code, out, err = psem("compare", "zero1(8)", "zero3(2)", *PSI, *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


@examples(15)
@given(st.sampled_from(["dp", "zero1", "zero2", "zero3", "fsdp-hold"]), st.integers(1, 64), st.data())
def test_the_peak_is_said_as_a_function_of_the_unit(strategy, devices, data):
    psi = data.draw(st.integers(1, 10**6))
    unit = data.draw(st.integers(1, psi))
    asked = Asked("predict", strategy, psi=str(psi), devices=str(devices))
    (memory,) = (s for s in reported(read(asked)).sections if s.key == "memory")
    found = predicted(strategy, psi=psi, devices=devices, unit=unit)["memory"]
    said = [note for note in memory.notes if note.startswith("peak, by units of U elements: ")]
    if not said:  # nothing passes, whatever the unit
        assert exact(found["peak"]) == exact(found["resting"]["total"])
        return
    formula = said[0].rpartition(": ")[2]
    numbers = {"U": Fraction(unit), "N": Fraction(devices), "Psi": Fraction(psi), "K": 12}
    assert eval(formula, {"Max": max, "ceil": ceil, "shard": shard}, numbers) == exact(found["peak"])


def test_a_shift_that_is_a_multiple_of_few_sizes_is_rejected_with_others(psem):
    file = "tests/regressions/bigshift.toml"  # shifted by 6,000,018, a multiple of 3
    code, _, err = psem("predict", "--schedule", file, *PSI, "--devices", 8)
    assert code == 1
    assert "slice of the device 6,000,018 places on" in err
    assert psem("predict", "--schedule", file, *PSI, "--devices", 3)[0] == 0


@pytest.mark.parametrize("devices", [1, 4])
def test_a_broadcast_in_a_schedule_sends_what_the_simulator_counts(psem, tmp_path, devices):
    file, written = tmp_path / "published.toml", psem("derive", "dp")[1]
    published = '{ op = "broadcast", source = "parameters", axes = ["batch"] },'
    file.write_text(written.replace('{ op = "reset"', published + '\n  { op = "reset"'))
    asked = ["--schedule", file, "--devices", devices, "--psi", 1000]
    assert (psem("predict", *asked)[0], psem("simulate", *asked)[0]) == (0, 0)


def test_the_unit_of_a_models_shape_is_its_largest_part(predicted):
    """Whether a sample has a length or not: a layer of 202,383,360; 32,000 x 4,096 words are fewer."""
    shape = {"devices": 8, "config": "examples/configurations/llama-2-7b.json"}
    found = [predicted("zero3", **shape)["memory"], predicted("zero3", **shape, sequence=128)["memory"]]
    for memory in found:
        assert exact(memory["transient"]["states"]) == (2 + 2) * 202_383_360
    one, other = (exact(memory["resting"]["total"]) for memory in found)
    assert one == other


def test_a_placement_and_a_states_schedule_of_a_model_are_the_strategys_plan(psem, tmp_path):
    shape = ["--layers", 2, "--hidden", 16, "--heads", 4, "--vocabulary", 8, "--sequence", 8]
    file = tmp_path / "zero3.toml"
    file.write_text(psem("derive", "zero3")[1])
    placed = "parameters=S*,optimizer=S,gradients=S,activations=S"
    asked = (["zero3"], ["--schedule", file], ["--placement", placed])
    for command, keys in (("predict", ("memory", "communication")), ("simulate", ("stages",))):
        told = [psem(command, *each, *shape, "--devices", 4, "--json") for each in asked]
        assert [code for code, _, _ in told] == [0, 0, 0]
        one, *others = ({key: json.loads(out)[key] for key in keys} for _, out, _ in told)
        for other in others:
            assert other == one


def test_activations_of_a_model_are_placed_by_their_own_options(psem):
    shape = ["--layers", 2, "--hidden", 16, "--heads", 4, "--sequence", 8, "--devices", 4]
    placed = "parameters=S*,optimizer=S,gradients=S,activations=M"
    code, _, err = psem("predict", "--placement", placed, *shape)
    assert code == 2
    assert "--recompute" in err


def test_the_default_unit_is_named(psem):
    _, out, _ = psem("predict", "zero3", *PSI, "--devices", 8)
    assert "parameters or gradients, all at once; --unit says how many" in out


@pytest.mark.parametrize("shape", [["--layers", 8, "--hidden", 64, "--heads", 8], SHAPE[:6]])
def test_a_product_is_checked_for_a_models_shape(shape, psem):
    code, out, err = psem("check", "zero1(2) * tp(4)", *shape)
    assert (code, err) == (0, "")
    assert out.startswith("zero1(2) * tp(4): accepted\n")
    code, _, err = psem("check", "zero1(2) * tp(16)", *shape)
    assert code == 2
    assert "expected a divisor of 8, the key-value heads" in err


def test_where_no_right_step_is_derived_it_is_not_called_impossible(psem):
    args = ["predict", "--placement", ON_HOST, "--bytes", "fp32-adam", *PSI, "--devices", 2]
    code, out, err = psem(*args)
    assert (code, out) == (1, "")
    assert err.startswith("psem: not derived: ")
    assert "not realisable" not in err
    assert "a run that diverges" not in err  # nobody executes it
    assert "`psem check FILE`" in err
    _, out, _ = psem(*args, "--json")
    found = json.loads(out)
    assert (found["derived"], found["divergence"]) == (False, None)


def test_a_plan_that_is_given_twice_is_refused(psem):
    code, _, err = psem("compare", "zero1(4)", "zero1(batch=4)", *PSI)
    assert (code, err.count("\n")) == (2, 1)
    assert "twice" in err


def test_where_parameters_rest_beside_the_optimizer_no_copy_of_them_is_needed(psem, tmp_path):
    _, text, _ = psem("derive", "--placement", ALL_ON_HOST)
    path = tmp_path / "derived.toml"
    path.write_text(text)
    code, out, _ = psem("check", path, "--bytes", "fp32-adam")
    assert (code, out.startswith(f"{path}: accepted")) == (0, True)


def test_a_comparison_says_what_is_not_derived_and_how_many_micro_steps_each_plan_takes(psem):
    args = ["compare", "zero-offload(8)", "zero1(4)", "--psi", "7B", "--bytes", "fp32-adam"]
    code, out, _ = psem(*args, "--global-batch", 32)
    assert code == 1
    assert re.search(r"verdict +not derived +accepted\n", out)
    assert re.search(r"micro-steps of a step +4 +8\n", out)
    assert "not derived, zero-offload(8): " in out
    plans = json.loads(psem(*args, "--global-batch", 32, "--json")[1])["plans"]
    assert [(p["accumulate"], p["psi"]) for p in plans] == [(4, 7 * 10**9), (8, 7 * 10**9)]


def test_plans_that_differ_in_the_names_of_axes_only_are_one(psem):
    code, _, err = psem("compare", "zero1(16)", "zero1(dp=16)", *PSI)
    assert (code, err.count("\n")) == (2, 1)


def test_simulations_and_the_space_say_that_a_step_may_be_written_by_hand(psem):
    _, out, _ = psem(
        *["simulate", "--placement", ON_HOST, "--bytes", "fp32-adam", "--psi", 70, "--devices", 8]
    )
    assert "no right step is derived of this placement" in out
    assert "no step is derived that updates on the host" in psem("space", "--bytes", "fp32-adam")[1]
    assert "no step is derived" not in psem("space")[1]


def test_what_check_takes_for_a_file_predict_and_compare_do_too(psem, tmp_path):
    file = tmp_path / "no_ending"
    file.write_text(psem("derive", "zero2")[1])
    for args in (["check", file], ["predict", file, *PSI, "--devices", 2]):
        assert psem(*args)[0] == 0
    assert psem("compare", "zero1", file, *PSI, "--devices", 2)[0] == 0


@pytest.mark.parametrize("command", ["predict", "simulate"])
@pytest.mark.parametrize("size", [["--psi", 100], ["--layers", 1, "--hidden", 2, "--heads", 1]])
def test_a_unit_of_more_elements_than_there_are_is_refused(command, size, psem):
    code, out, err = psem(command, "zero3", *size, "--devices", 2, "--unit", 1000)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--unit: given 1,000 elements; expected at most " in err
