"""What derive, check and simulate say to bad input, and what their help says."""

import subprocess
import sys

import pytest

from psem_model.reading.schedule_keys import KEYS
from spec.language.schedule import Buffer, Kind
from tests.support.command import PLACED, SIZE, without


# --------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("args", "given", "words"),
    [
        (["derive", "zero4"], "'zero4'", "nearest: zero3"),
        (["derive"], "a strategy or --placement", "derive zero3"),
        (["derive", "zero3", "--placement", PLACED.format("S*")], "one of the two", "given 'zero3'"),
        (["derive", "--placement", PLACED.format("Q")], "'Q'", "expected one of R, S"),
        (["derive", "zero3", "--hold"], "--hold", "fsdp-hold"),
        (["derive", "zero3", "--hld"], "'--hld'", "nearest: --hold"),
        (["check"], "FILE", "missing; expected: A strategy, such as zero1, or a schedule in TOML"),
        (["derive", "zero3", "--language"], "--language", "alone"),
        (["check", "none.toml"], "none.toml", "No such file"),
        (["check", "FILE", "--devices", "0"], "'0'", "at least 1"),
        (
            ["check", "FILE", "--devices", "2x2"],
            "'2x2'",
            "a whole number for batch, at least 1, such as 8",
        ),
        (["check", "FILE", "--bytes", "1/0,2,2"], "'1/0'", "without division by 0"),
        (["check", "FILE", "--bytes", "1/,2,2"], "'1/'", "a number such as"),
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
        (["simulate", "dp", "--psi", "9e29", "--devices", 4], "about 3e+14 EiB", "at most 16 GiB to"),
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
        assert err.startswith(f"psem: {path}, line 23, micro_step 3, op: given 'reduce_scater'; ")
        assert err.count("\n") == 1


# ------------------------------------------------------------------------- help
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "derive",
            ["psem derive zero2 > my.toml", "--language", "`psem derive --language`"],
        ),
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
        "import sys, psem_model.commands.cli as c\n"
        "try: c.main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "assert not {'z3', 'sympy', 'numpy'} & set(sys.modules)"
    )
    for args in (["derive", "zero2"], ["check", str(written("zero2"))]):
        command = [sys.executable, "-c", script, *args]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
