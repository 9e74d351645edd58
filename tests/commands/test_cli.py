"""The command line: what it prints, and one clear line for what it cannot use."""

import json
import subprocess
import sys

import pytest

from psem_model.text.report import VERSION
from tests.support.command import exact

OK = ["--psi", "1e9", "--devices", "4"]
PLACED = "parameters={},optimizer=S,gradients=S,activations=S"


@pytest.mark.parametrize(
    ("args", "given", "nearest"),
    [
        (["predict", "zero4", *OK], "'zero4'", "zero3"),
        (["predict", "", *OK], "the end", "expected one of dp"),
        (["predict", "zero3", "--psi", "-5", "--devices", "4"], "'-5'", "at least 1"),
        (["predict", "zero3", "--psi", "0", "--devices", "4"], "'0'", "at least 1"),
        (["predict", "zero3", "--psi", "1.5", "--devices", "4"], "'1.5'", "whole number"),
        (["predict", "zero3", "--psi", "nan", "--devices", "4"], "'nan'", "7.5e9"),
        (["predict", "zero3", "--psi", "1e99999999", "--devices", "4"], "1e99999999", "7.5e9"),
        (["predict", "zero3", "--psi", "lots", "--devices", "4"], "'lots'", "7.5e9"),
        (["predict", "zero3", "--psi", "1e9", "--devices", "0"], "'0'", "at least 1"),
        (["predict", "zero3", "--psi", "1e9", "--devices", "8x8"], "'8x8'", "batch"),
        (["predict", "hsdp", "--psi", "1e9", "--devices", "64"], "'64'", "8x8"),
        (["predict", "zero3", *OK, "--bytes", "mixed-adm"], "'mixed-adm'", "mixed-adam"),
        (["predict", "zero3", *OK, "--bytes", "2,2"], "'2,2'", "2,2,12"),
        (["predict", "zero3", *OK, "--bytes", "2,2,-1"], "'2,2,-1'", "K >= 0"),
        (["predict", "zero3", *OK, "--bytes", "0,2,12"], "'0,2,12'", "w > 0"),
        (["predict", "zero3", *OK, "--accumulate", "0"], "'0'", "at least 1"),
        (["predict", "zero3", *OK, "--unit", "x"], "'x'", "7.5e9"),
        (["predict", *OK], "expected", "predict zero3"),
        (["predict", "zero3", *OK, "--placement", PLACED.format("S*")], "one of the two", "'zero3'"),
        (["predict", *OK, "--placement", PLACED.format("Q")], "'Q'", "expected one of R, S"),
        (["predict", *OK, "--placement", PLACED.format("S*+S")], "'S'", "expected O"),
        (["predict", *OK, "--placement", "parameters"], "'parameters'", "state=mode"),
        (["predict", *OK, "--placement", "params=R"], "'params'", "parameters"),
        (["predict", *OK, "--placement", "parameters=R,parameters=R"], "twice", "once"),
        (["predict", *OK, "--placement", "parameters=R,optimizer=R"], "gradients", "missing"),
        (["predict", *OK, "--placement", PLACED.format("shard:R")], "optimizer", "shard"),
        (["predict", "zero3", *OK, "--hold"], "--hold", "fsdp-hold"),
        (["predict", "zero3", "--psi", "1e9"], "--devices", "missing"),
        (["predict", "zero3", *OK, "--jsn"], "--jsn", "nearest: --json"),
        (["predict", "zero3", *OK, "--micro-steps"], "--micro-steps", "nearest: --accumulate"),
        (
            ["predict", "zero3", *OK, "--bogus"],
            "'--bogus'",
            "expected one that psem predict --help lists",
        ),
        (["predict", "zero3", "--psi", "1e400", "--devices", "4"], "'1e400'", "below 1e30"),
        (["predict", "zero3", "--psi", "1e-9999999999", "--devices", "4"], "1e-99", "7.5e9"),
        (["predict", "zero3", "--psi", "7_500", "--devices", "4"], "'7_500'", "7.5e9"),
        (["prove", "E22"], "'E22'", "E2"),
        (["explain", "m10"], "'m10'", "M1"),
        (["explain", "C1", "--smt", "nothing"], "'nothing'", "explain C1 --tree` lists"),
        (["prdict"], "'prdict'", "predict"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(psem, args, given, nearest):
    code, out, err = psem(*args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert given in err
    assert nearest in err


@pytest.mark.parametrize(
    "args",
    [
        ["predict", "", *OK],
        ["predict", "-", *OK],
        ["check", "tp(8)*"],
        ["check", "tp(8) * -"],
        ["predict", "zero3", *OK, "--bytes", ""],
        ["predict", "zero3", *OK, "--placement", PLACED.format("S*")],
        [""],
    ],
)
def test_nothing_is_nearest_where_nothing_is_near(args, psem):
    code, out, err = psem(*args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "nearest" not in err


@pytest.mark.parametrize(
    ("args", "option"),
    [
        (["predict", "zero3", *OK, "--devices", 8], "--devices: given twice"),
        (["predict", "zero3", *OK, "--psi=1", "--psi=2"], "--psi: given 3 times"),
        (["predict", "zero3", *OK, "--exact", "--divisible"], "--exact/--divisible: given twice"),
        (
            ["compare", "zero1", "zero3", *OK, "--bytes", "2,2,12", "--bytes", "2,2,12"],
            "--bytes: given",
        ),
        (["check", "tp", "--block", "gpt", "--block", "llama"], "--block: given twice"),
        (["derive", "tp", "--part", "head", "--part", "layer"], "--part: given twice"),
        (["simulate", "zero3", *OK, "--seed", 1, "--seed", 2], "--seed: given twice"),
        (["space", "--devices", 4, "--devices", 8], "--devices: given twice"),
        (["tables", "--format", "csv", "--format", "csv"], "--format: given twice"),
        (["explain", "C1", "--smt", "a", "--smt", "b"], "--smt: given twice"),
    ],
)
def test_an_option_is_given_once(args, option, psem):
    code, out, err = psem(*args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"psem: {option}")


def test_a_flag_may_be_repeated(psem):
    assert psem("predict", "zero3", *OK, "--json", "--json")[0] == 0


def test_a_placement_that_cannot_be_right_is_refused_with_a_run(psem):
    code, out, err = psem("predict", *OK, "--placement", PLACED.format("S"))
    assert (code, out) == (1, "")
    assert "not realisable" in err
    assert "outside a device's own slice along batch, the parameters it reads are not known" in err
    assert "a run that diverges: all that is known is 0; the loss of device (" in err
    assert "; after step 1, " in err


@pytest.mark.parametrize("policy", ["fp32-adam", "fp32-sgd", "4,4,0"])
def test_a_policy_without_a_master_copy_says_so_where_that_is_why(policy, psem):
    copy = "the byte policy's optimizer state has no copy of the weights to update from"
    of_policy = ["--bytes", policy]
    code, _, err = psem("predict", "zero-offload", *OK, *of_policy)
    assert code == 1
    assert f"psem: {copy}\n" in err
    for args in (["check", "zero-offload"], ["compare", "zero-offload", "dp", *OK]):
        code, out, _ = psem(*args, *of_policy)
        assert (code, out.count(copy)) == (1, 1)
    code, out, _ = psem("simulate", "zero-offload", "--psi", 9, "--devices", 2, *of_policy)
    assert (code, out.count(copy)) == (1, 1)


def test_a_copy_is_not_missed_where_something_else_is_wrong(psem):
    _, out, _ = psem("check", "fused-update", "--bytes", "fp32-adam")
    assert "rejected" in out
    assert "no copy of the weights" not in out


def test_json_says_whether_a_copy_of_the_weights_is_missed(psem):
    for policy, missed in (("fp32-sgd", True), ("mixed-adam", False)):
        of_policy = ["--bytes", policy, "--accumulate", 2, "--json"]
        name = "zero-offload" if missed else "fused-update"
        refusal = json.loads(psem("predict", name, *OK, *of_policy)[1])
        assert refusal["for_want_of_a_copy"] is missed
        (weights,) = json.loads(psem("check", name, *of_policy)[1])["weights"]
        assert weights["schedule"]["rejection"]["for_want_of_a_copy"] is missed
        plan, right = json.loads(psem("compare", name, "dp", *OK, *of_policy)[1])["plans"]
        assert (plan["for_want_of_a_copy"], right["for_want_of_a_copy"]) == (missed, False)


def test_the_json_of_a_refusal_names_the_rule_and_the_run(psem):
    code, out, _ = psem("predict", *OK, "--json", "--placement", PLACED.format("S"))
    refusal = json.loads(out)
    assert (code, refusal["realisable"], refusal["rule"]) == (1, False, "fresh")
    assert refusal["divergence"]["has"] != refusal["divergence"]["single_device"]


def test_a_placement_that_keeps_no_parameters_is_said_to_keep_none(psem):
    kept_nowhere = "parameters=M,optimizer=M,gradients=M,activations=M"
    code, _, err = psem("predict", *OK, "--placement", kept_nowhere)
    assert code == 1
    assert "a run that diverges: after step 1, no copy of the parameters is kept" in err


def test_a_placement_and_its_name_predict_the_same(psem, predicted):
    named = predicted("zero3", psi="7.5e9", devices=64)
    _, out, _ = psem(
        "predict", "--psi", "7.5e9", "--devices", "64", "--json", "--placement", PLACED.format("S*")
    )
    given = json.loads(out)
    assert {**given, "strategy": "zero3"} == named


def test_predictions_as_json_have_the_documented_shape(predicted):
    found = predicted("zero3", psi="7.5e9", devices=64, unit="1e8", accumulate=2)
    assert set(found) == {
        "strategy",
        "facts",
        "inputs",
        "placement",
        "schedule",
        "memory",
        "communication",
        "parameters",
        "formulas",
        "profile",
        "report",
        "version",
    }
    assert (found["report"], found["version"]) == ("predict", VERSION)
    assert found["inputs"]["psi"] == 7_500_000_000
    assert found["placement"]["parameters"] == "S*"
    assert set(found["memory"]["resting"]) == {"parameters", "optimizer", "gradients", "total"}
    resting = found["memory"]["resting"]
    parts = sum(exact(resting[s]) for s in ("parameters", "optimizer", "gradients"))
    assert parts == exact(resting["total"])
    sent = [o for o in found["communication"]["operations"] if o["axes"] != ["host"]]
    assert sum(exact(o["elements"]) for o in sent) == exact(found["communication"]["elements"])
    assert found["formulas"]["resting.total"]


def test_text_predictions_show_formulas_units_and_where_coefficients_come_from(psem):
    code, out, _ = psem("predict", "zero1", "--psi", "7.5e9", "--devices", "64")
    assert code == 0
    for words in ("31.4062 GB", "GiB", "K*ceil(Psi/N)", "2 = bf16 weight", "fp32 master weight"):
        assert words in out


def test_divisible_predictions_are_the_closed_forms(predicted):
    found = predicted("zero1", psi=1001, devices=64)
    code_exact = exact(found["memory"]["resting"]["total"])
    assert code_exact == 4 * 1001 + 12 * 16


@pytest.mark.slow
def test_psem_alone_prints_its_help_and_three_things_to_try_which_work(psem):
    code, out, _ = psem()
    assert code == 0
    assert "predict" in out
    tried = [line.split()[1:] for line in out.partition("To try:")[2].splitlines() if line]
    assert len(tried) == 3
    for args in tried:
        code, out, err = psem(*args)
        assert (code, err) == (0, "")
        assert out


def test_held_parameters_are_shown(psem, predicted):
    assert predicted("fsdp-hold", psi=100, devices=4)["inputs"]["hold"] is True
    _, out, _ = psem("predict", "fsdp-hold", *OK)
    assert "held from forward to backward" in out


def test_what_activations_move_is_not_given_as_zero(psem):
    placed = "parameters=R,optimizer=R,gradients=R,activations=O"
    _, out, _ = psem("predict", *OK, "--placement", placed)
    assert "not counted" in out
    _, out, _ = psem("predict", *OK, "--placement", placed, "--json")
    moved = json.loads(out)["communication"]["operations"]
    assert [operation["value"] for operation in moved] == ["gradients"]


def test_help_needs_neither_solver_nor_sympy():
    script = (
        "import sys, psem_model.commands.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'z3', 'sympy', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_predictions_need_no_solver():
    script = (
        "import sys, psem_model.commands.cli as c\n"
        "try: c.main(['predict', 'zero3', '--psi', '1e9', '--devices', '8'])\n"
        "except SystemExit: pass\n"
        "assert 'z3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


NOT_DERIVED = ["--placement", "parameters=O, optimizer=R, gradients=S, activations=S"]


@pytest.mark.parametrize(
    "args",
    [
        ["compare", "dp(2)", "zero1(2)", "--psi", "9"],
        ["check", "zero1(2) * tp(2)"],
        ["predict", "zero3(8)", "--model", "no-such-model"],
        ["predict", "tp(2) * pp(2)", "--model", "gpt2", "--sequence", "8", "--stage", "2"],
        [*("predict", "--psi", "9", "--devices", "2"), *NOT_DERIVED],
    ],
)
def test_what_prints_no_formula_needs_neither_solver_nor_sympy(args):
    script = (
        "import sys, psem_model.commands.cli as c\n"
        f"try: c.main({args})\n"
        "except SystemExit: pass\n"
        "assert not {'z3', 'sympy', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
