"""Proving claims from the command line: what is printed, how wide, and when."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from proofs.registry import areas, claims, prove, select
from psem_model.text import places


def test_proofs_print_a_line_a_claim_and_exit_0(psem):
    code, out, err = psem("prove", "M1", "M8")
    assert code == 0
    assert "refuted as expected" in out
    assert "every verdict is the expected one" in out
    assert out.startswith(f"memory: {areas()['memory']}\nM1  proved ")
    assert err == ""  # no progress in a pipe


def test_proofs_as_json_have_the_documented_shape(psem):
    code, out, _ = psem("prove", "C1", "M8", "--json")
    report = json.loads(out)
    assert code == 0
    assert set(report) == {
        "report",
        "version",
        "claims",
        "remembered",
        "answers_remembered",
        "solver",
        "seconds",
    }
    c1, m8 = report["claims"]
    keys = {"id", "statement", "expected", "verdict", "obligations", "seconds", "axioms"}
    keys |= {"hypotheses", "area", "formula", "caveat", "scope", "decided", "watched"}
    assert set(c1) == keys
    assert set(m8) == keys | {"counterexample"}


def test_a_verdict_that_is_not_expected_fails(psem, monkeypatch):
    from proofs import registry

    claim = next(c for c in claims() if c.id == "M8")
    wrong = type(claim)(**{**claim.__dict__, "expected": "proved"})
    monkeypatch.setattr(registry, "claims", lambda: [wrong])
    code, out, _ = psem("prove", "M8")
    assert code == 1
    assert "NOT as expected: M8" in out


def test_an_interrupt_between_claims_stops_without_a_report(psem, monkeypatch, tmp_path):
    def interrupted(claim, proof, prove=prove):
        signal.raise_signal(signal.SIGINT)
        return prove(claim, proof)

    monkeypatch.setattr("psem_model.check.claims.prove", interrupted)
    monkeypatch.setattr(places, "BUILD", tmp_path)
    code, _, err = psem("prove")
    assert (code, err.strip()) == (130, "psem: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_build_folder_is_one_line_before_any_proof(psem, monkeypatch, tmp_path):
    (tmp_path / "build").write_text("a file in the way")
    monkeypatch.setattr(places, "BUILD", tmp_path / "build")
    code, out, err = psem("prove")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_claims_may_be_named_in_lower_case(psem):
    code, out, _ = psem("prove", "m1")
    assert code == 0
    assert "\nM1  proved" in out


def test_claims_are_printed_by_area_in_the_order_of_the_registry(psem):
    code, out, _ = psem("prove", "T1", "S1", "M8", "S2")
    assert code == 0
    begins = [line.split(":")[0].split()[0] for line in out.splitlines() if line[:1].strip()]
    assert begins[:-2] == ["sharding", "S1", "S2", "memory", "M8", "verdicts", "T1"]


@pytest.mark.usefixtures("proved_once")
@pytest.mark.parametrize("columns", [40, 60, 70, 80, 100])
def test_no_line_of_a_proof_is_wider_than_the_terminal_and_no_word_is_cut(psem, wide, columns):
    wide(columns)
    _, out, _ = psem("prove", "C6", "S2", "E2", "K1")
    assert max(map(len, out.splitlines())) <= columns
    words = " ".join(out.split())
    for claim in select(["C6", "S2", "E2", "K1"]):
        assert all(said in words for said in (claim.statement, claim.formula, claim.caveat))


def test_a_heading_is_in_one_piece_and_a_blank_line_only_before_it(psem, wide):
    wide(40)
    _, out, _ = psem("prove", "S2", "K1")
    before, after = out.split("\n\n")[:2]
    assert "composition: several axes at once" in " ".join(after.split())
    assert before.startswith("sharding")


def test_a_line_says_how_many_hypotheses_a_claims_theorems_carry(psem):
    _, out, _ = psem("prove", "E2", "M6", "--json")
    carried = {found["id"]: len(found["hypotheses"]) for found in json.loads(out)["claims"]}
    assert carried == {"E2": 9, "M6": 0}
    _, out, _ = psem("prove", "E2", "M6")
    for name, count in carried.items():
        assert re.search(rf"^{name} .* {count} hypotheses$", out, re.M)


def test_every_claim_is_printed_when_it_is_proved(psem, monkeypatch):
    def interrupted(claim, proof, prove=prove):
        if claim.id == "S2":
            signal.raise_signal(signal.SIGINT)
        return prove(claim, proof)

    monkeypatch.setattr("psem_model.check.claims.prove", interrupted)
    code, out, _ = psem("prove", "S1", "S2", "S3")
    assert code == 130
    assert "S1  proved" in out
    assert "S2" not in out


def on_a_terminal(columns, *args):
    """The lines that a command shows on a terminal so wide, with what moves the cursor."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "psem_model", *args]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        said += more
    os.close(ours)
    assert process.wait() == 0
    return said.decode().replace("\r\n", "\n").split("\n")


@pytest.mark.parametrize(
    ("columns", "args"),
    [
        (30, "prove S1 T1"),
        (50, "explain S1 E2"),
        (30, "explain S1 --tree"),
        (30, "explain E2 --outline"),
    ],
)
def test_no_line_is_wider_than_the_terminal(columns, args):
    lines = on_a_terminal(columns, *args.split())
    shown = [re.sub(r"\x1b\[[?\d]*\w", "", part) for line in lines for part in line.split("\r")]
    assert len(shown) > 9
    assert [line for line in shown if len(line) > columns] == []


def test_on_a_terminal_a_bar_is_below_the_lines():
    lines = on_a_terminal(70, "prove", "S1", "S2")
    assert any("proving" in line for line in lines)
    seen = [re.sub(r"\x1b\[[?\d]*\w", "", line.split("\r")[-1]) for line in lines]
    assert [line[:2] for line in seen if "obligations " in line] == ["S1", "S2", "2 "]
