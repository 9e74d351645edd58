"""The commands for schedules: derive writes one, check judges one, simulate runs one."""

import json
import subprocess
import sys

import pytest

from psem_model.schedules import line_of, loads
from spec.derive import derive
from spec.placement import on_batch
from spec.strategies import STRATEGIES

PLACED = "parameters={},optimizer=S,gradients=S,activations=S"


@pytest.fixture
def written(psem, tmp_path):
    """written("zero2", lambda text: ...) -> the path of a strategy's schedule, perhaps changed."""

    def write(strategy, change=lambda text: text):
        code, out, err = psem("derive", strategy)
        assert (code, err) == (0, "")
        path = tmp_path / f"{strategy}.toml"
        path.write_text(change(out))
        return path

    return write


def without(words, nth=0):
    """Drops the nth line that contains some words."""

    def change(text):
        lines = text.split("\n")
        found = [i for i, line in enumerate(lines) if words in line]
        del lines[found[nth]]
        return "\n".join(lines)

    return change


# ---------------------------------------------------------------------- derive
@pytest.mark.parametrize("name", STRATEGIES)
def test_derive_prints_the_schedule_of_a_strategy(name, psem):
    code, out, err = psem("derive", name)
    assert (code, err) == (0, "")
    assert out.startswith(f"# {name}: ")
    assert loads(out, "x") == derive(STRATEGIES[name])


def test_derive_prints_the_schedule_of_a_placement(psem):
    code, out, _ = psem("derive", "--hold", "--placement", PLACED.format("S*"))
    assert code == 0
    assert out.startswith(f"# placement {PLACED.format('S*')} --hold\n")
    assert loads(out, "x") == derive(on_batch("S*", "S", "S", "S", hold=True))


def test_schedules_that_cannot_be_right_are_derived_too_to_look_at(psem):
    code, out, _ = psem("derive", "--placement", PLACED.format("S"))
    assert code == 0
    assert loads(out, "x") == derive(on_batch("S", "S", "S", "S"))


# ----------------------------------------------------------------------- check
@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "fused-update"])
def test_check_accepts_what_is_derived_from_a_strategy(name, psem, written):
    code, out, err = psem("check", written(name))
    assert (code, err) == (0, "")
    assert "accepted" in out
    assert "1, 2, 3 and 1,000,003; micro-steps 1, 2 and 3" in out


def test_check_accepts_fused_updates_with_one_micro_step_only(psem, written):
    path = written("fused-update")
    assert psem("check", path, "--accumulate", 1)[0] == 0
    code, out, _ = psem("check", path)
    assert code == 1
    assert "batch 1, 2 micro-steps" in out


@pytest.mark.parametrize("name", ["zero2", "zero3", "hsdp"])
def test_check_rejects_a_schedule_without_its_reduction_with_rule_line_and_run(name, psem, written):
    path = written(name, without('"reduce_scatter"'))
    text = path.read_text()
    code, out, err = psem("check", path)
    assert (code, err) == (1, "")
    line = line_of(text, "finish", 1 if name == "hsdp" else 0)
    assert 'op = "update"' in text.split("\n")[line - 1]
    assert out.startswith(f"{path}, line {line}: rejected: finish ")
    assert "update gradients -> optimizer" in out
    assert "rule   whole" in out
    assert "has    the gradient it applies is " in out
    assert "a run that diverges, on 2 devices, 2 parameters, 1 micro-step: after step 1, " in out
    assert "simulated on 2 devices, 2 parameters, 1 micro-step: after step 1, element " in out
    assert "; on a single device it is " in out.split("simulated on")[1]


def test_a_rejection_as_json_names_the_operation_and_the_runs(psem, written):
    path = written("zero2", without('"reduce_scatter"'))
    code, out, _ = psem("check", path, "--json")
    found = json.loads(out)
    assert code == 1
    assert set(found) == {"file", "accepted", "cases", "rejection", "divergence", "simulated"}
    assert found["accepted"] is False
    rejection = found["rejection"]
    assert rejection["operation"].startswith("update gradients -> optimizer")
    assert (rejection["rule"], rejection["part"], rejection["index"]) == ("whole", "finish", 0)
    assert rejection["line"] == line_of(path.read_text(), "finish", 0)
    assert (rejection["step"], rejection["mesh"], rejection["micro_steps"]) == (1, {"batch": 2}, 1)
    assert rejection["has"] != rejection["needs"]
    assert found["cases"][-1] == {"mesh": {"batch": 2}, "micro_steps": 1}
    for run in (found["divergence"], found["simulated"]):
        assert run["step"] == 1
        assert run["has"] != run["single_device"]


def test_an_acceptance_as_json_names_the_cases(psem, written):
    code, out, _ = psem("check", written("hsdp"), "--json", "--devices", "2x4", "--accumulate", 5)
    found = json.loads(out)
    assert (code, found["accepted"]) == (0, True)
    assert found["cases"] == [{"mesh": {"replica": 2, "shard": 4}, "micro_steps": 5}]
    assert found["rejection"] is found["divergence"] is found["simulated"] is None


def test_a_step_that_ends_wrong_is_rejected_at_its_end(psem, written):
    path = written("zero2", without('phase = "publish"'))
    code, out, _ = psem("check", path)
    assert code == 1
    assert out.startswith(f"{path}: rejected: at the end of the step")
    assert "rule   agreed" in out


def test_the_repeated_operation_is_named_where_it_stands(psem, written):
    path = written("zero3", without('phase = "backward"'))
    code, out, _ = psem("check", path, "--accumulate", 3, "--json")
    rejection = json.loads(out)["rejection"]
    assert (code, rejection["part"], rejection["rule"]) == (1, "micro_step", "fresh")
    assert rejection["operation"].startswith("backward")
    assert '"backward"' in path.read_text().split("\n")[rejection["line"] - 1]


def test_what_holds_for_one_number_of_devices_only_is_said_so(psem, written):
    scaled = '{ op = "scale", source = "gradients", by = "1/4" },\n  { op = "update"'

    def mean(text):
        return text.replace('loss = "sum"', 'loss = "mean"').replace('{ op = "update"', scaled)

    path = written("dp", mean)
    assert psem("check", path, "--devices", 4, "--accumulate", 1)[0] == 0
    code, out, _ = psem("check", path)
    assert code == 1
    assert "batch 1, 1 micro-step" in out
    path.write_text(path.read_text().replace('"1/4"', '"1/batch/micro_steps"'))
    assert psem("check", path)[0] == 0


def test_the_byte_policy_says_whether_there_is_a_master_copy(psem, written):
    path = written("zero-offload")
    assert psem("check", path)[0] == 0
    assert psem("check", path, "--bytes", "fp32-adam")[0] == 1


# --------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("args", "given", "words"),
    [
        (["derive", "zero4"], "'zero4'", "nearest: zero3"),
        (["derive"], "a strategy or --placement", "derive zero3"),
        (["derive", "zero3", "--placement", PLACED.format("S*")], "one of the two", "derive zero3"),
        (["derive", "--placement", PLACED.format("Q")], "'Q'", "nearest"),
        (["derive", "zero3", "--hold"], "--hold", "fsdp-hold"),
        (["derive", "zero3", "--hld"], "'--hld'", "nearest: --hold"),
        (["check"], "file", "missing"),
        (["check", "none.toml"], "none.toml", "No such file"),
        (["check", "FILE", "--devices", "0"], "'0'", "at least 1"),
        (["check", "FILE", "--devices", "2x2"], "'2x2'", "batch"),
        (["check", "FILE", "--accumulate", "x"], "'x'", "7.5e9"),
        (["check", "FILE", "--accumulate", "1e9"], "1,000,000,000", "at most"),
        (["check", "FILE", "--bytes", "mixed"], "'mixed'", "mixed-adam"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(psem, written, args, given, words):
    code, out, err = psem(*[written("zero2") if arg == "FILE" else arg for arg in args])
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert given in err
    assert words in err


def test_an_error_in_a_file_is_one_line_with_file_and_line(psem, written):
    path = written("zero2", lambda text: text.replace('"reduce_scatter"', '"reduce_scater"'))
    for command in (["check", path], ["simulate", "--schedule", path, "--devices", 2, "--psi", 4]):
        code, out, err = psem(*command)
        assert (code, out) == (2, "")
        assert err.startswith(f"psem: {path}, line 25, micro_step 3, op: given 'reduce_scater'; ")
        assert err.count("\n") == 1


# ------------------------------------------------------------------------- help
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("derive", ["psem derive zero2 > my.toml", "[rest]", "micro_step", "within", "shift"]),
        ("check", ["FILE", "--devices", "--accumulate", "Exit code"]),
        ("simulate", ["--schedule", "--mlp", "--arithmetic", "--seed", "--steps", "Exit code"]),
    ],
)
def test_help_says_what_a_command_takes(command, words, psem):
    code, out, _ = psem(command, "--help")
    assert code == 0
    for word in words:
        assert word in out


def test_derive_and_check_need_neither_solver_nor_sympy_nor_numpy(written):
    script = (
        "import sys, psem_model.cli as c\n"
        "try: c.main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "assert not {'z3', 'sympy', 'numpy'} & set(sys.modules)"
    )
    for args in (["derive", "zero2"], ["check", str(written("zero2"))]):
        command = [sys.executable, "-c", script, *args]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
