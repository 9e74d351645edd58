"""psem space: the frontier, classes and reasons, plots, and what is wrong in one line."""

import builtins
import json
import subprocess
import sys

import pytest

from proofs.registry import ROOT
from spec.choosing.regimes import REGIMES
from spec.choosing.space import ACTIVATION_MODES, frontier
from tests.support.examples import few


def test_a_strategy_outside_of_the_625_is_named_where_it_is_better(psem):
    code, out, _ = psem("space")
    assert code == 0
    for line in ("\n  R S M ", "\n  R O M "):
        assert "none of the 625 is better; fsdp-hold is" in out.partition(line)[2].partition("\n")[0]


def test_the_command_prints_the_frontier_and_the_strategies(psem):
    code, out, err = psem("space")
    assert (code, err) == (0, "")
    assert "625 placements, 210 realisable" in out
    for name in frontier(REGIMES[0]):
        assert f"\n  {name} " in out
    assert "zero3" in out


def test_the_command_shows_every_class_and_every_reason_as_numbers(psem):
    code, out, _ = psem("space", "--json", "--all", "--reasons", "--devices", 4)
    found = json.loads(out)
    assert code == 0
    assert sum(len(c["placements"]) for c in found["classes"]) * len(ACTIVATION_MODES) == 210
    assert sum(why["placements"] for why in found["reasons"]) == 415
    assert found["counts"] == {"placements": 625, "realisable": 210, "classes": len(found["classes"])}
    on = {c["name"] for c in found["classes"] if c["on_the_frontier"]}
    assert on == {c["name"] for c in found["frontier"] if c["on_the_frontier"]}


def test_the_command_explains_each_reason_with_a_run(psem):
    code, out, _ = psem("space", "--reasons", "--accumulate", 2, "--bytes", "fp32-sgd")
    assert code == 0
    assert out.count("a run on 2 devices, of ") == out.count("placements: ") > 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--devices", 1], "at least 2"),
        (["--devices", "two"], "expected a number"),
        (["--accumulate", 0], "at least 1"),
        (["--bytes", "mixed"], "nearest: mixed-adam"),
        (["--plot", "space.jpeg"], "nearest: space.png"),
        (["--plot", "space"], "expected a file that ends in .svg, .png, .pdf"),
        (["--plot", "/nowhere/space.svg"], "cannot write /nowhere/space.svg"),
        (["--al"], "nearest: --all"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(args, words, psem):
    code, out, err = psem("space", *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.parametrize(
    ("suffix", "start"),
    few([("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")]),
)
def test_a_plot_is_drawn_and_is_the_same_each_time(suffix, start, psem, tmp_path):
    file = tmp_path / f"space.{suffix}"
    drawn = []
    for _ in range(2):
        assert psem("space", "--plot", file)[0] == 0
        drawn.append(file.read_bytes())
    assert drawn[0].startswith(start)
    assert drawn[0] == drawn[1]
    assert [f.name for f in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("policy", few(["mixed-adam", "fp32-adam", "fp32-sgd"]))
@pytest.mark.parametrize("accumulate", [1, 4])
def test_every_regime_has_a_plot(policy, accumulate, psem, tmp_path):
    file = tmp_path / "space.svg"
    assert psem("space", "--plot", file, "--bytes", policy, "--accumulate", accumulate)[0] == 0
    assert file.stat().st_size > 1000


def test_a_file_that_cannot_be_written_is_left_as_it_was(psem, tmp_path):
    (tmp_path / "space.svg").mkdir()
    code, out, err = psem("space", "--plot", tmp_path / "space.svg")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot write" in err
    assert [f.name for f in tmp_path.iterdir()] == ["space.svg"]


def test_a_missing_matplotlib_is_named(psem, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    code, out, err = psem("space", "--plot", tmp_path / "space.svg")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "matplotlib" in err
    assert not list(tmp_path.iterdir())


def test_the_command_imports_neither_solver_nor_sympy_nor_matplotlib():
    code = (
        "import sys; from psem_model.space.placements import Space; "
        "from spec.models.states import MIXED_ADAM; "
        "Space(8, MIXED_ADAM, 1).report(True); "
        "print([m for m in ('z3', 'sympy', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr


# ----------------------------------------------------------------------- mutants
