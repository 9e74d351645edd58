"""Notebooks: the commands as functions, reports that show themselves, and an example that was run."""

import json
import re

import pytest

from proofs.registry import ROOT
from psem_model.check.placements import NotRealisable
from psem_model.notebooks import check, compare, explain, predict, simulate, table
from psem_model.notebooks.executed import executed, written
from psem_model.text.errors import BadInput
from tests.support.html import read

EXAMPLE = ROOT / "docs" / "example.ipynb"
STEP = "examples/mean_twice.toml"
PAIRS = [
    (lambda: predict("zero3", psi="70B", devices=64), "predict zero3 --psi 70B --devices 64"),
    (lambda: predict("zero1(2)*tp(2)", config="llama-2-7b", sequence=512, offload_activations=True),
     "predict zero1(2)*tp(2) --config llama-2-7b --sequence 512 --offload-activations"),
    (lambda: compare("zero1", "zero3", psi=7e9, devices=8), "compare zero1 zero3 --psi 7B --devices 8"),
    (lambda: check(STEP), f"check {STEP}"),
    (lambda: check("zero2", devices=4, accumulate=2), "check zero2 --devices 4 --accumulate 2"),
    (lambda: simulate("zero3", psi=1000, devices=4), "simulate zero3 --psi 1000 --devices 4"),
    (lambda: table("memory", symbols="psi=M"), "tables memory --symbols psi=M"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "command"), PAIRS, ids=[command for _, command in PAIRS])
def test_a_function_reports_what_its_command_does(function, command, psem, monkeypatch):
    monkeypatch.chdir(ROOT)
    report = function()
    _, out, _ = psem(*command.split(), "--json")
    assert report.document() == json.loads(out)
    _, out, _ = psem(*command.split(), "--format", "text")
    assert str(report) == out


@pytest.mark.parametrize("function", [function for function, _ in PAIRS])
def test_a_report_shows_itself_as_tables(function, monkeypatch):
    monkeypatch.chdir(ROOT)
    report = function()
    shown = read(report._repr_html_())
    assert report.title in shown.text
    assert len([*shown.all("table")]) == len(report.sections)


def test_a_claim_is_explained_by_its_theorems_and_their_counterexamples():
    proved, refuted = explain("M6"), explain("m8")
    assert "the_ratio_is_n" in proved._repr_html_()
    assert "psi = 1, n = 3, k = 12" in refuted._repr_html_()


def test_what_the_command_line_refuses_is_an_error():
    with pytest.raises(BadInput, match="nearest: zero3"):
        predict("zerro3", psi=1, devices=1)
    with pytest.raises(NotRealisable):
        predict(placement="parameters=S,optimizer=S,gradients=S,activations=R", psi=8, devices=4)


def test_the_example_is_what_its_cells_show(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = EXAMPLE.read_text()
    assert written(executed(json.loads(text))) == text, "run: make docs"


def test_the_example_is_a_notebook_of_format_4_5():
    notebook = json.loads(EXAMPLE.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len({*ids}) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", id) for id in ids)
