"""The commands for schedules: derive writes one, check judges one, simulate runs one."""

import json
import re
import subprocess
import sys
from fractions import Fraction

import pytest

from proofs.registry import ROOT
from psem_model import options
from psem_model.figures import memory, value_text
from psem_model.replay import replay
from psem_model.schedule_keys import KEYS
from psem_model.schedules import line_of, loads, read
from spec.derive import derive
from spec.placement import on_batch
from spec.reference import first_divergence
from spec.schedule import Buffer, Kind
from spec.states import POLICIES
from spec.strategies import STRATEGIES
from tests.conftest import exact
from tests.schedules import PIECES, with_one_fault

SIZE = ["--psi", 9, "--devices", 2]
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


ONE_AXIS = [p for p in sorted((ROOT / "examples").glob("*.toml")) if len(read(str(p)).axes) == 1]
ONE_AXIS = [p.name for p in ONE_AXIS if p.read_text().startswith("# expected: rejected")]


@pytest.mark.parametrize("name", ONE_AXIS)
def test_the_simulator_replays_the_same_run_with_the_same_numbers(name, psem):
    path = ROOT / "examples" / name
    found = json.loads(psem("check", path, "--json")[1])
    shown = {key: found["divergence"][key] for key in found["simulated"]}
    assert found["simulated"] == shown
    *_, reference, simulated = psem("check", path)[1].splitlines()
    assert reference.removeprefix("a run that diverges, ") == simulated.removeprefix("simulated ")


@pytest.mark.parametrize("policy", ["mixed-adam", "fp32-adam", "fp32-sgd"])
@pytest.mark.parametrize("name", ["dp", "zero3", "zero-offload", "hsdp"])
def test_any_fault_is_replayed_and_on_one_axis_with_the_same_numbers(name, policy):
    bytes_ = POLICIES[policy]
    for add in PIECES.values():
        for faulty in with_one_fault(add(derive(STRATEGIES[name]))):
            mesh = dict.fromkeys(faulty.axes, 2)
            elements, steps = 2 ** len(mesh), 2
            kept = {"stateful": bytes_.k > 0, "master": bytes_.master}
            has = first_divergence(faulty, mesh, steps=steps, micro_steps=2, **kept)
            if has is not None:
                again = replay(faulty, mesh, 2, elements, bytes_, steps, has)
                assert again is not None
                assert len(mesh) > 1 or vars(again) == vars(has)


def test_a_run_that_is_right_is_not_replayed_as_one_that_diverges():
    right, wrong = (read(str(ROOT / "examples" / f"{n}.toml")) for n in ("ddp_mean", "mean_twice"))
    has = first_divergence(wrong, {"batch": 2})
    assert replay(right, {"batch": 2}, 1, 2, POLICIES["mixed-adam"], 3, has) is None


def test_a_shift_by_a_multiple_of_every_usual_size_is_rejected(psem, tmp_path):
    path, shift = tmp_path / "my.toml", 6 * 1_000_003
    text = (ROOT / "examples" / "shard_offset.toml").read_text()
    assert "shift = 1" in text
    path.write_text(text.replace("shift = 1", f"shift = {shift}"))
    code, out, _ = psem("check", path)
    assert code == 1
    assert f"batch {2 * shift + 3:,}, 1 micro-step" in out


def test_on_many_axes_sizes_must_be_given(psem, written):
    names = [f"a{i}" for i in range(12)]
    axes = ", ".join(f'"{name}"' for name in names)
    path = written("dp", lambda text: text.replace('"batch"', axes))
    code, out, err = psem("check", path)
    assert (code, out) == (2, "")
    assert "given nothing for 12 axes; expected sizes such as 2x2x" in err
    assert psem("check", path, "--devices", "x".join("1" for _ in names))[0] == 0
    path.write_text(without('op = "all_reduce"')(path.read_text()))
    assert psem("check", path, "--devices", "x".join(["2", *("1" for _ in names[1:])]))[0] == 1


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


# -------------------------------------------------------------------- simulate
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
    assert set(found["figures"]) == FIGURES
    assert [key for key, figure in found["figures"].items() if not figure["equal"]] == []
    assert (code, found["matches"], found["divergence"], found["verdict"]) == (0, True, None, None)
    unit = {"unit": 10} if "--unit" in more else {}
    policy = {"bytes": more[more.index("--bytes") + 1]} if "--bytes" in more else {}
    plan = predicted(name, psi=101, devices=devices, **unit, **policy)
    simulated = {key: exact(figure["simulated"]) for key, figure in found["figures"].items()}
    assert simulated["resting"] == exact(plan["memory"]["resting"]["total"])
    assert simulated["peak"] == exact(plan["memory"]["peak"])
    assert simulated["elements"] == exact(plan["communication"]["elements"])
    assert simulated["host_bytes"] == exact(plan["communication"]["host_bytes"])


def test_a_simulation_shows_both_sides_of_every_figure(psem):
    code, out, _ = psem("simulate", "zero3", "--psi", 1000, "--devices", 8, "--steps", 3)
    assert code == 0
    assert out.startswith("zero3: ZeRO stage 3")
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
    assert code == 1  # it is right, but never gives the gathered parameters back
    assert "differs" in out
    same, but = out.splitlines()[-2:]
    assert same.startswith("every copy of every parameter is that of the single device")
    assert but.startswith("but not as predicted: parameters at rest, bytes; all at rest, by")


def test_an_interrupted_simulation_is_one_line(psem, monkeypatch):
    from psem_model import simulation

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "simulate", interrupted)
    code, out, err = psem("simulate", "zero3", "--psi", 100, "--devices", 4)
    assert (code, out, err.strip()) == (130, "", "psem: interrupted")


def test_a_bar_is_shown_at_a_terminal_only_and_only_if_it_takes_long(monkeypatch, capsys):
    monkeypatch.setattr(options, "PATIENCE", 0.0)
    for terminal, shown in ((False, False), (True, True)):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
        with options.ticker("simulating", 3) as progress:
            for done in (1, 2, 3):
                progress(done)
        assert ("simulating" in capsys.readouterr().err) is shown
        assert list(options.bar("checking")(range(options.LONG))) == list(range(options.LONG))
        assert ("checking" in capsys.readouterr().err) is shown


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
        (["check"], "FILE", "missing; expected: a schedule in TOML, as `psem derive zero2` prints"),
        (["derive", "zero3", "--language"], "--language", "alone"),
        (["check", "none.toml"], "none.toml", "No such file"),
        (["check", "FILE", "--devices", "0"], "'0'", "at least 1"),
        (["check", "FILE", "--devices", "2x2"], "'2x2'", "expected 1 size, for batch, such as 8"),
        (["check", "FILE", "--bytes", "1/0,2,2"], "'1/0'", "without division by 0"),
        (["check", "FILE", "--bytes", "1/,2,2"], "''", "a number such as"),
        (["check", "FILE", "--accumulate", "x"], "'x'", "7.5e9"),
        (["check", "FILE", "--accumulate", "1e9"], "1,000,000,000", "at most"),
        (["check", "FILE", "--bytes", "mixed"], "'mixed'", "mixed-adam"),
        (["simulate", "zero4", *SIZE], "'zero4'", "nearest: zero3"),
        (["simulate", *SIZE], "--schedule", "nearest: simulate zero3"),
        (["simulate", "zero3", "--schedule", "FILE", *SIZE], "one of the three", "--schedule alone"),
        (["simulate", "--schedule", "FILE", "--hold", *SIZE], "one of the three", "--schedule alone"),
        (["simulate", "--schedule", "FILE", "--psi", 9, "--devices", "2x2"], "'2x2'", "batch"),
        (["simulate", "--schedule", "none.toml", *SIZE], "none.toml", "No such file"),
        (["simulate", "zero3", "--psi", 9], "--devices", "missing"),
        (["simulate", "zero3", "--devices", 2], "--psi or --mlp", "--psi 1000"),
        (["simulate", "zero3", *SIZE, "--mlp", "2x2"], "--psi or --mlp", "--psi 1000"),
        (["simulate", "zero3", "--mlp", "2", "--devices", 2], "'2'", "such as 4x16"),
        (["simulate", "zero3", "--mlp", "0x2", "--devices", 2], "'0x2'", "such as 4x16"),
        (["simulate", "zero3", "--mlp", "2x2", "--unit", 3, "--devices", 2], "--unit", "a layer"),
        (["simulate", "--schedule", "BACKWARD", "--mlp", "2x2", "--devices", 2], "--mlp", "perceptron"),
        (["simulate", "zero3", *SIZE, "--steps", 0], "'0'", "steps, at least 1"),
        (["simulate", "zero3", *SIZE, "--seed", -1], "'-1'", "at least 0"),
        (["simulate", "zero3", *SIZE, "--arithmetic", "float"], "'float'", "nearest: float64"),
        (["simulate", "dp", "--psi", "1e9", "--devices", 64], "1,000,000,000", "at most 16 GiB to"),
        (["simulate", "dp", "--psi", "1e30", "--devices", 4], "about 3e+14 EiB", "at most 16 GiB to"),
        (["simulate", "dp", "--psi", 9, "--devices", "1e6"], "1,000,000", "at most 16 GiB to"),
        (["simulate", "dp", *SIZE, "--accumulate", "1e12"], "1,000,000,000,000", "at most 16 GiB to"),
        (
            ["simulate", "dp", *SIZE, "--arithmetic", "exact", "--steps", 40],
            "40 steps",
            "at most 16 GiB to",
        ),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(psem, written, args, given, words):
    files = {
        "FILE": lambda: written("zero2"),
        "BACKWARD": lambda: written("dp", without('op = "forward"')),
    }
    code, out, err = psem(*[files[arg]() if arg in files else arg for arg in args])
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
        ("derive", ["psem derive zero2 > my.toml", "[rest]", "micro_step", "within", "--language"]),
        ("check", ["FILE", "--devices", "--accumulate", "Exit code"]),
        ("simulate", ["--schedule", "--mlp", "--arithmetic", "--seed", "--steps", "Exit code"]),
    ],
)
def test_help_says_what_a_command_takes(command, words, psem):
    code, out, _ = psem(command, "--help")
    assert code == 0
    for word in words:
        assert word in out


def test_the_language_names_every_table_key_buffer_operation_and_what_they_take(psem):
    code, out, err = psem("derive", "--language")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    lines = [line.strip() for line in out.splitlines()]
    for name in (*KEYS, "axes", "[training]", "[rest]", "[step]"):
        assert [line for line in lines if line.startswith(f"{name} ")], name
    operations = out.split("Operations:")[1]
    for thing in (*Buffer, *Kind):
        text = operations if isinstance(thing, Kind) else out.split("Buffers")[1]
        assert f"\n  {thing.value} " in text, thing
    assert "gradients, fresh gradients or tied gradients -> norm" in out
    for words in ("May be left out", "1/(1 + norm^2)", "min(1, 1/norm)", "negative", "whole group"):
        assert words in out


def test_a_reader_that_has_enough_ends_a_command_silently(written):
    script = (
        f"{sys.executable} -m psem_model check {written('zero2')} | head -n 0; exit ${{PIPESTATUS[0]}}"
    )
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode in (0, 141), ended.stdout, ended.stderr) == (True, "", "")


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
