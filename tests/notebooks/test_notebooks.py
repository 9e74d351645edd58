"""Notebooks: the commands as functions, reports that show themselves, and an example that was run."""

import json
import re
from typing import Any

import pytest

from proofs.registry import ROOT
from psem_model.notebooks import BadInput, UserError, check, compare, explain, predict, simulate, table
from psem_model.notebooks.executed import executed, written
from tests.support.examples import few
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
    (lambda: predict("zero3", psi="1B", devices=8, bytes="fp32-sgd", divisible=True),
     "predict zero3 --psi 1B --devices 8 --bytes fp32-sgd --divisible"),
    (lambda: predict("zero3(8)", model="llama-3-8b", exact=False),
     "predict zero3(8) --model llama-3-8b --divisible"),
    (lambda: compare("zero1(8)", "zero3(8)", model="llama-3-8b", bytes="fp32-sgd", accumulate="2,4"),
     "compare zero1(8) zero3(8) --model llama-3-8b --bytes fp32-sgd --accumulate 2,4"),
    (lambda: check(STEP, bytes="fp32-sgd"), f"check {STEP} --bytes fp32-sgd"),
    (lambda: check("examples/ddp_mean.toml", prove=True), "check examples/ddp_mean.toml --prove"),
    (lambda: check("zero1(2)*tp(2)", prove=True), "check zero1(2)*tp(2) --prove"),
    (lambda: simulate("zero3", psi=99, devices=4, bytes="fp32-sgd", steps=2),
     "simulate zero3 --psi 99 --devices 4 --bytes fp32-sgd --steps 2"),
    (lambda: simulate("zero3", psi=1000, devices=4), "simulate zero3 --psi 1000 --devices 4"),
    (lambda: table("memory", symbols="psi=M"), "tables memory --symbols psi=M"),
    (lambda: table("memory", bytes="fp32-sgd", rows="dp,zero3", exact=False),
     "tables memory --bytes fp32-sgd --rows dp,zero3 --divisible"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "command"), few(PAIRS), ids=[words for _, words in few(PAIRS)])
def test_a_function_reports_what_its_command_does(function, command, psem, monkeypatch):
    monkeypatch.chdir(ROOT)
    report = function()
    _, out, _ = psem(*command.split(), "--json")
    assert report.document() == json.loads(out)
    _, out, _ = psem(*command.split(), "--format", "text")
    assert str(report) == out


@pytest.mark.parametrize("function", few(function for function, _ in PAIRS))
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
    with pytest.raises(UserError, match="needs the current weights"):
        predict(placement="parameters=S,optimizer=S,gradients=S,activations=R", psi=8, devices=4)


THREE: Any = 3  # no string
PAIR: Any = (2, 4)
NOTHING: Any = None
REFUSED = {
    "check: given 'provee'; .*nearest: prove": lambda: check("zero2", provee=True),
    "check: given 'html'; expected one of devices": lambda: check("zero2", html="page.html"),
    "check: given 'json'": lambda: check("zero2", json=True),
    "file_or_strategy: given 3; expected a string": lambda: check(THREE),
    "file_or_strategy: given None": lambda: check(NOTHING),
    "prove: given 'yes'; expected True or False": lambda: check("zero2", prove="yes"),
    "--config, --model: given with a file": lambda: check(str(ROOT / STEP), model="llama-3-8b"),
    "predict: given 'device'; .*nearest: devices": lambda: predict("zero3", psi=9, device=8),
    "psi: given True; expected a number or a string": lambda: predict("zero3", psi=True, devices=8),
    "devices: given .2, 4.; expected": lambda: predict("hsdp", psi=9, devices=PAIR),
    "exact: given with divisible": lambda: predict("dp", psi=9, devices=2, divisible=True, exact=True),
    "config: given with model": lambda: predict("dp(2)", model="llama-3-8b", config="llama-3-8b"),
    "strategy 2: given 3": lambda: compare("zero1", THREE, psi=9, devices=2),
    "simulate: given 'seeds'; .*nearest: seed": lambda: simulate("dp", psi=9, devices=2, seeds=1),
    "--arithmetic: given 'real'; expected one of modular": lambda: simulate(
        "dp", psi=9, devices=2, arithmetic="real"
    ),
    "table: given 'memry'; .*nearest: memory": lambda: table("memry"),
    "tables: given 'row'; .*nearest: rows": lambda: table("memory", row="dp"),
    "claim: given 3; expected a string": lambda: explain(THREE),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_name_or_a_value_that_is_not_the_command_line_s_is_refused(words):
    with pytest.raises(BadInput, match=words):
        REFUSED[words]()


def test_the_example_is_what_its_cells_show(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = EXAMPLE.read_text()
    assert written(executed(json.loads(text))) == text, "run: make docs"


def test_the_example_is_a_notebook_of_format_4_5():
    notebook = json.loads(EXAMPLE.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len({*ids}) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9-]{1,64}", id) for id in ids)
