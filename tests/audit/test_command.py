"""The audit as a command: what it writes and prints, how it ends, and the page that says so."""

import json
import os
import re
import signal
import subprocess
import sys
from types import ModuleType

import pytest

from proofs.registry import ROOT, claims
from psem_model.audit.audit import closest
from psem_model.audit.cvc5_solver import Answer, decide
from psem_model.audit.run import twice
from psem_model.tables import theorems as table_theorems
from psem_model.text import places
from psem_model.text.files import write_atomically
from tests.support.solvers import EASY

PAGE = (ROOT / "docs" / "AUDIT.md").read_text()


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "BUILD", tmp_path / "build")
    return tmp_path / "build"


@pytest.mark.slow
def test_the_runs_have_the_hash_seeds_and_orders_that_are_said():
    runs = twice(["C1", "S1"], lambda done: None)
    assert list(runs) == ["C1", "S1"]
    assert all(run["verdict"] == "proved" for pair in runs.values() for run in pair)
    asked = {name: ["witness" in run["obligations"][0] for run in pair] for name, pair in runs.items()}
    assert asked == {"C1": [True, False], "S1": [False, True]}


@pytest.mark.slow
def test_one_claims_obligations_have_both_solvers_answers(psem, build):
    code, out, err = psem("audit", "m8")
    assert (code, err) == (0, "")
    assert re.search(r"M8/1\.smt2 +z3 sat +[\d.]+ ms +cvc5 sat +[\d.]+ ms", out)
    assert "the runs of 1 refutations executed in the simulator" in out
    assert out.endswith("nothing found\n")


@pytest.mark.slow
def test_each_file_says_what_it_asks_and_older_ones_are_removed(psem, build):
    old, gone = build / "smt2" / "C2" / "999.smt2", build / "smt2" / "Z99" / "1.smt2"
    parts = build / "smt2" / "C2" / "1.smt2ab.part", build / "smt2" / "Z99" / "1.smt2ab.part"
    for file in (old, gone, *parts):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    code, out, _ = psem("audit", "C2", "S1", "--json")
    report = json.loads(out)
    assert code == 0
    assert not old.exists()
    assert not gone.parent.exists()
    assert not list(build.rglob("*.part"))
    for found in report["claims"]:
        for row in found["obligations"]:
            text = (build / "smt2" / row["file"]).read_text()
            assert text.startswith(f"; claim      {found['claim']}\n")
            assert f"; expected   {row['expected']}\n" in text
            assert row["cvc5"]["answer"] == row["z3"]["answer"] == row["expected"]
        for premises in found["premises"]:
            text = (build / "smt2" / premises["file"]).read_text()
            (named,) = [line for line in text.splitlines() if line.startswith("; premises of ")]
            assert premises["name"] in named.removeprefix("; premises of ").split(", ")
            assert premises["z3"] == premises["cvc5"] == "sat"
    assert set(report["closest"]) == {"z3", "cvc5"} == {*report["solvers"]} - {"python"}
    assert report["closest"] == closest(report["claims"])
    kernel = {path.relative_to(ROOT).as_posix() for path in (ROOT / "proofs" / "trusted").glob("*.py")}
    assert kernel == {*report["trusted"]["lines"], "proofs/trusted/__init__.py"}
    assert all(axiom["reason"] for axiom in report["trusted"]["axioms"])
    assert not (build / "audit.json").exists()  # it is of all claims


def test_a_run_that_ends_early_is_found(psem, build, monkeypatch):
    from psem_model.audit import audit

    monkeypatch.setattr(audit, "twice", lambda ids, _: {name: [{}, {}] for name in ids})
    code, out, _ = psem("audit", "S1")
    assert code == 1
    assert "S1: a run ended before it" in out


def test_a_disagreement_ends_with_exit_code_1(psem, build, monkeypatch):
    from psem_model.audit import audit

    def wrong(paths):
        return ((path, Answer("unknown (INCOMPLETE)")) for path in paths)

    monkeypatch.setattr(audit, "decide", wrong)
    code, out, _ = psem("audit", "S1")
    assert code == 1
    assert "NOT AGREED" in out
    assert "cvc5: " in out


@pytest.mark.slow
def test_a_file_that_is_changed_after_its_export_is_found(psem, build, monkeypatch):
    from psem_model.audit import audit

    def changed(paths, decide=decide):
        (build / "smt2" / "S2" / "1.smt2").write_text(EASY)
        return decide(paths)

    monkeypatch.setattr(audit, "decide", changed)
    code, out, _ = psem("audit", "S2", "S2")
    assert code == 1
    assert "(S2/1.smt2): expected unsat: another text was read than was written" in out
    assert out.startswith("S2  ") and "by smt" in out  # the obligations of the one claim


def test_bad_input_is_one_line(psem, build, monkeypatch):
    code, out, err = psem("audit", "C77")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith("; nearest: C7\n")
    for module, said in ((None, "is not installed"), (ModuleType("cvc5"), "cannot be used: ")):
        monkeypatch.setitem(sys.modules, "cvc5", module)
        code, out, err = psem("audit", "S1")
        assert (code, out) == (2, "")
        assert re.fullmatch(rf"psem: .*cvc5 {said}.*pip install .*cvc5\n", err)


def test_an_unwritable_build_folder_is_one_line_before_anything_is_proved(psem, build):
    build.write_text("a file, not a folder")
    code, out, err = psem("audit", "S1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot write" in err


def test_a_folder_in_the_place_of_the_report_is_one_line_before_anything_is_proved(
    psem, build, monkeypatch
):
    from psem_model.audit import audit

    monkeypatch.setattr(audit, "audit", lambda *_: pytest.fail("something is proved"))
    (build / "audit.json").mkdir(parents=True)
    code, out, err = psem("audit")
    assert (code, out) == (2, "")
    assert err == f"psem: cannot write {build / 'audit.json'}: Is a directory\n"


def test_an_interrupt_after_a_file_is_in_its_place_is_an_interrupt(tmp_path, monkeypatch):
    def replaced(name, path, replace=os.replace):
        replace(name, path)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replaced)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "1.smt2", EASY)
    assert [path.name for path in tmp_path.iterdir()] == ["1.smt2"]


@pytest.mark.parametrize("command", [("explain", "S2"), ("tables", "collectives")])
def test_ctrl_c_while_a_claim_is_proved_is_one_line(psem, build, monkeypatch, command):
    from proofs.registry import prove

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        return prove(*given)

    monkeypatch.setattr("psem_model.check.claims.prove", interrupted)
    monkeypatch.setattr(table_theorems, "PROVED", {})
    code, out, err = psem(*command)
    assert (code, out, err.strip()) == (130, "", "psem: interrupted")


def test_ctrl_c_ends_every_process_and_leaves_nothing_half_written(psem, build, monkeypatch):
    from psem_model.audit import audit

    started = []

    def noted(*args, popen=subprocess.Popen, **options):
        started.append(popen(*args, **options))
        return started[-1]

    def interrupted(paths, decide=decide):
        for found in decide(paths):
            yield found
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", noted)
    monkeypatch.setattr(audit, "decide", interrupted)
    code, _, err = psem("audit", "S1")
    assert (code, err.strip()) == (130, "psem: interrupted")
    assert len(started) == 4
    assert all(process.poll() is not None for process in started)
    assert not list(build.rglob("*.part"))


# --------------------------------------------------------------------------------------- the page
def test_the_page_says_what_each_finding_means():
    source = (ROOT / "psem_model" / "audit" / "audit.py").read_text()
    kinds = set(re.findall(r'"(z3|cvc5|vacuous|unused|counterexample|simulator|not \w+): ', source))
    assert len(kinds) == 7
    assert {kind for kind in kinds if f"`{kind}:`" not in PAGE} == set()


def test_the_page_names_the_claims_of_which_python_decides_a_part():
    _, _, section = PAGE.partition("## Decided by Python\n")
    rows = [row.split("|")[2] for row in section.splitlines() if row.startswith("| ")]
    named = {name for row in rows[1:] for name in row.strip().split(", ")}
    assert named == {claim.id for claim in claims() if claim.decided}
