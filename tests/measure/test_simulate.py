"""The command simulate: figures beside the predicted ones, runs that diverge, how both are told."""

import json
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.registry import ROOT
from psem_model.measure.simulated import count_of_passes
from psem_model.simulator.passes import passes
from psem_model.text.figures import memory, value_text
from spec.plans.strategies import STRATEGIES
from tests.support.command import PLACED, SIZE, exact, without
from tests.support.examples import examples, few
from tests.support.schedules import schedules

FIGURES = {"parameters", "optimizer", "gradients", "resting", "peak", "host", "elements", "bytes"}
FIGURES |= {"host_bytes"}


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("more", [[], ["--unit", 10, "--bytes", "fp32-momentum"], ["--steps", 3]])
def test_a_simulated_strategy_takes_and_sends_what_is_predicted_and_matches(
    name, more, psem, predicted
):
    if name == "zero-offload" and "--bytes" in more:  # it needs a master copy
        more = [10 if m == 10 else "mixed-adam" if m == "fp32-momentum" else m for m in more]
    devices = "2x3" if name == "hsdp" else "5"
    code, out, err = psem("simulate", name, "--psi", 101, "--devices", devices, "--json", *more)
    assert err == ""  # no progress in a pipe
    found = json.loads(out)
    assert set(found["stages"][0]) == FIGURES
    assert [key for key, figure in found["stages"][0].items() if not figure["equal"]] == []
    assert (code, found["matches"], found["divergence"], found["verdict"]) == (0, True, None, None)
    unit = {"unit": 10} if "--unit" in more else {}
    policy = {"bytes": more[more.index("--bytes") + 1]} if "--bytes" in more else {}
    plan = predicted(name, psi=101, devices=devices, **unit, **policy)
    simulated = {key: exact(figure["simulated"]) for key, figure in found["stages"][0].items()}
    assert simulated["resting"] == exact(plan["memory"]["resting"]["total"])
    assert simulated["peak"] == exact(plan["memory"]["peak"])
    assert simulated["elements"] == exact(plan["communication"]["elements"])
    assert simulated["host_bytes"] == exact(plan["communication"]["host_bytes"])


def test_a_simulation_shows_both_sides_of_every_figure(psem):
    code, out, _ = psem("simulate", "zero3", "--psi", 1000, "--devices", 8, "--steps", 3)
    assert code == 0
    assert out.startswith("zero3\n")
    assert re.search(r"peak, bytes +6,000 +6,000  equal", out)
    assert "every copy of every parameter is that of the single device after each of 3 steps" in out


@pytest.mark.parametrize("arithmetic", ["modular", "exact", "float64"])
def test_a_perceptron_is_simulated_layer_by_layer(arithmetic, psem):
    args = ["--mlp", "3x4", "--devices", "2x2", "--steps", 2, "--accumulate", 2]
    code, out, _ = psem("simulate", "hsdp", *args, "--arithmetic", arithmetic)
    assert code == 0
    assert "60 parameters (a perceptron of 3 layers of 4) in units of 20" in out
    assert ("to a relative 1e-09" in out) == (arithmetic == "float64")


def test_what_cannot_be_right_is_simulated_too_and_diverges_for_the_verdicts_reason(psem):
    size = ["--psi", 10, "--devices", 2]
    for args in (["fused-update", "--accumulate", 2], ["--placement", PLACED.format("S")]):
        code, out, err = psem("simulate", *args, *size)
        assert (code, err) == (1, "")
        assert "the run diverges: after step 1, element " in out
        assert "the verdict: " in out
        code, out, _ = psem("simulate", *args, *size, "--json")
        found = json.loads(out)
        assert (code, found["matches"]) == (1, False)
        assert found["divergence"]["has"] != found["divergence"]["single_device"]
        assert found["verdict"]["rule"] in ("whole", "fresh")


LUCKY = [
    (
        "clip_by_local_norm",
        ["--devices", 2, "--seed", 7, "--arithmetic", "float64"],
        " to a relative 1e-09",
    ),
    ("forgotten_reset", ["--devices", 2], ""),  # which is wrong from the second step on
    ("forgotten_reset", ["--devices", 1, "--arithmetic", "exact"], ""),
]


@pytest.mark.parametrize(("name", "args", "nearly"), LUCKY)
def test_a_run_that_matches_by_luck_is_not_taken_for_right(name, args, nearly, psem):
    path = ROOT / "examples" / f"{name}.toml"
    code, out, err = psem("simulate", "--schedule", path, "--psi", 10, *args)
    assert (code, err) == (1, "")
    said = (
        f"the run matches{nearly}, but the verdict rejects: update gradients: the gradients it applies"
    )
    assert out.splitlines()[-1].strip().startswith(said)
    code, out, _ = psem("simulate", "--schedule", path, "--psi", 10, *args, "--json")
    found = json.loads(out)
    assert (code, found["matches"], found["divergence"]) == (1, True, None)
    assert found["verdict"]["rule"] == "whole"


MODEL = ["--layers", 2, "--hidden", 8, "--heads", 2, "--sequence", 4, "--vocabulary", 11]
PRODUCTS = [  # and what a plan, and what a run alone, is given
    ("tp", ["--devices", 2], []),
    ("zero3(2)", [], ["--arithmetic", "float64"]),
    ("zero1(2) * tp(2) * pp(2)", ["--accumulate", 2], ["--steps", 2]),
    ("hsdp * tp+sp", ["--devices", "2x1x2", "--block", "llama", "--recompute", "full"], []),
    ("cp(2) * pp(2)", ["--order", "gpipe", "--accumulate", 3], []),
    ("ep(2) * dp(2)", ["--experts", 2, "--chosen", 1], ["--seed", 7]),
    ("zero1+all(2) * cp(2)", ["--accumulate", 2], ["--steps", 2]),
    ("zero1+all(1) * tp+sp(2) * cp(2) * pp(2)", ["--unit", 30], []),
    ("hsdp+all(2, 1) * cp(2)", [], ["--arithmetic", "float64"]),
    ("zero1(2) * cp(2) * zero3(context)", [], ["--steps", 2]),
    ("zero2(2) * tp(2) * zero3(tensor)", ["--accumulate", 2], ["--steps", 2]),
    ("zero3+all(2) * ep(2)", ["--experts", 4, "--chosen", 2], ["--steps", 2]),
]


@pytest.mark.parametrize(("product", "of_plan", "of_run"), few(PRODUCTS), ids=str)
def test_a_product_is_simulated_on_a_model_as_it_is_predicted(product, of_plan, of_run, psem):
    code, out, err = psem("simulate", product, *MODEL, *of_plan, *of_run, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["matches"], found["divergence"]) == (True, None)
    assert all(figure["equal"] for stage in found["stages"] for figure in stage.values())
    plan = json.loads(psem("predict", product, *MODEL, *of_plan, "--json")[1])
    fullest = found["stages"][plan["memory"]["stage"]]
    for state, size in plan["memory"]["resting"].items():
        assert state == "total" or exact(fullest[state]["simulated"]) == exact(size)
    assert exact(fullest["activations"]["simulated"]) == exact(plan["memory"]["activations"])
    busiest = found["stages"][plan["communication"]["stage"]]
    assert exact(busiest["elements"]["simulated"]) == exact(plan["communication"]["elements"])


def test_a_run_of_a_product_shows_both_sides_of_every_figure(psem):
    code, out, _ = psem("simulate", "zero1(2) * pp(2)", *MODEL, "--accumulate", 2, "--steps", 3)
    assert code == 0
    assert "per device of stage 1" in out
    assert re.search(r"activations at their fullest, bytes +[0-9,]+ +[0-9,]+  equal", out)
    assert "every copy of every parameter is that of the single device after each of 3 steps" in out


def test_a_product_that_cannot_be_right_diverges_on_a_model_too(psem):
    code, out, err = psem("simulate", "fused-update(2)", *MODEL, "--accumulate", 2)
    assert (code, err) == (1, "")
    assert "the run diverges: " in out
    assert "the verdict: " in out
    code, out, err = psem("simulate", "fused-update(2)", *MODEL, "--accumulate", 2, "--json")
    assert json.loads(out)["verdict"]["rule"] == "whole"


def test_a_product_of_training_states_is_simulated_without_a_model(psem):
    code, out, _ = psem("simulate", "zero1(2) * hsdp(r=2, s=2)", "--psi", 100)
    assert code == 0
    assert "batch 2 x r 2 x s 2" in out
    assert psem("simulate", "zero1 * dp(replica)", "--psi", 100, "--devices", "2x3")[0] == 0


def test_a_model_is_trained_on_words(psem):
    code, out, err = psem("simulate", "tp(2)", *MODEL[:-2])
    assert (code, out) == (2, "")
    assert err.startswith("psem: --vocabulary: missing")


def test_what_is_not_counted_is_said(psem):
    out = psem("simulate", "dp", *SIZE)[1]
    assert "  not counted: activations, statistics and samples, whose size is the model's\n" in out
    assert "but not as predicted" not in out


def test_a_schedule_in_a_file_is_simulated(psem, written):
    path = written("hsdp")
    args = ["simulate", "--schedule", path, "--psi", 100, "--devices", "2x2"]
    code, out, _ = psem(*args)
    assert code == 0
    assert out.startswith(f"{path}\n")
    path.write_text(without('"reduce_scatter"')(path.read_text()))
    assert psem(*args)[0] == 1
    path = written("zero3", without('op = "release", source = "view"', nth=1))
    code, out, _ = psem("simulate", "--schedule", path, "--psi", 100, "--devices", 4)
    assert code == 0  # the gathered parameters take no room after their last use
    assert "differs" not in out


def test_where_not_all_is_as_predicted_the_last_lines_say_what_is_not(psem, written):
    lines = [  # a sum of whole views, in room for slices of them
        '{ op = "keep", source = "parameters", into = "view", within = ["batch"] },',
        '{ op = "all_reduce", source = "view", axes = ["batch"] },',
    ]
    path = written("dp", lambda text: text.replace("finish = [", "\n".join(["finish = [", *lines])))
    code, out, _ = psem("simulate", "--schedule", path, "--psi", 100, "--devices", 4)
    assert code == 1
    assert "differs" in out
    same, but = out.splitlines()[-2:]
    assert same.startswith("  every copy of every parameter is that of the single device")
    assert but.startswith("  but not as predicted: parameters at rest, bytes; all at rest, by")


def test_an_interrupted_simulation_is_one_line(psem, monkeypatch):
    from psem_model.measure import simulated as simulation

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "simulate", interrupted)
    code, out, err = psem("simulate", "zero3", "--psi", 100, "--devices", 4)
    assert (code, out, err.strip()) == (130, "", "psem: interrupted")


def test_memory_is_told_in_units_of_its_size():
    told = {1: "1.0 bytes", 1023: "1,023 bytes", 3 * 2**29: "1.5 GiB", 2**44: "16 TiB"}
    assert {size: memory(size) for size in told} == told


def test_bytes_may_be_ratios(psem, written):
    assert psem("check", written("zero2"), "--bytes", "1/2,0.5,12")[0] == 0


def test_long_values_are_shortened():
    assert value_text(Fraction(3, 7)) == "3/7"
    assert value_text(10**100) == f"1{'0' * 23}...{'0' * 12} (101 characters)"
    assert value_text(10**9000) == "a number of about 8,969 digits"
    assert value_text(Fraction(1, 10**9000)).startswith("a number of about")


def test_a_run_of_many_micro_steps_is_judged_for_any_number_of_them(psem):
    args = ["simulate", "--schedule", ROOT / "examples" / "token_mean.toml", "--psi", 4, "--devices", 2]
    assert psem(*args, "--accumulate", 101)[0] == 0
    args[2] = ROOT / "tests" / "regressions" / "bigshift.toml"
    assert psem(*args, "--accumulate", 101)[0] == 0  # 2 divides its shift
    code, out, _ = psem(*args[:-1], 4, "--accumulate", 101)
    assert code == 1
    assert "the verdict: " in out


def test_a_product_without_a_copy_of_the_weights_is_told_so(psem):
    shape = ["--layers", 2, "--hidden", 8, "--heads", 2, "--sequence", 4, "--vocabulary", 12]
    code, out, _ = psem("simulate", "zero-offload(2)*tp(2)", *shape, "--bytes", "fp32-adam")
    assert code == 1
    assert "no copy of the weights to update from" in out


@examples(60)
@given(schedules(), st.integers(1, 12))
def test_passes_are_counted_without_going_through_every_micro_step(drawn, micro_steps):
    schedule, *_ = drawn
    assert count_of_passes(schedule, micro_steps) == len(passes(schedule, micro_steps))


def test_a_run_of_too_many_passes_is_refused_before_it_is_laid_out(psem):
    code, out, err = psem("simulate", "zero2", *SIZE, "--accumulate", 10**6)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "passes in all" in err or "--accumulate" in err
