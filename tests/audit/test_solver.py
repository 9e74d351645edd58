"""The audit's second solver and its evaluation without one: bounded, ended when they hang, exact."""

import subprocess
import sys
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.trusted.parts import substitute
from proofs.trusted.terms import TRUE, Const, Float64, FPVal, If, Not, Or, Real, RealVal, fp
from psem_model.audit import cvc5_solver as audit_cvc5
from psem_model.audit import smtlib
from psem_model.audit.cvc5_solver import answer, decide, digest_of
from psem_model.audit.evaluate import CannotEvaluate, holds
from psem_model.audit.processes import program
from tests.support.solvers import EASY


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return str(path)


def pigeons(n):
    """n + 1 pigeons in n holes: as a formula this is hard for every solver of this kind."""
    there = [[f"p{i}_{j}" for j in range(n)] for i in range(n + 1)]
    lines = [f"(declare-fun {p} () Bool)" for row in there for p in row]
    lines += [f"(assert (or {' '.join(row)}))" for row in there]
    for i in range(n + 1):
        for k in range(i):
            lines += [f"(assert (not (and {there[i][j]} {there[k][j]})))" for j in range(n)]
    return "\n".join(["(set-logic QF_UF)", *lines, "(check-sat)"])


@pytest.mark.slow
def test_a_solver_at_its_limit_of_processor_time_is_killed_and_another_goes_on(tmp_path):
    hard = written(tmp_path, "hard.smt2", pigeons(18))
    paths = [hard, *(written(tmp_path, f"{i}.smt2", EASY) for i in range(3))]
    found = dict(decide(paths, resources=0, seconds=1, cores=1))
    assert not found[hard].is_known
    assert "killed" in found[hard].answer
    assert [found[path].answer for path in paths[1:]] == ["unsat"] * 3


def test_a_solver_that_waits_forever_is_killed(tmp_path, monkeypatch):
    sleeper = written(tmp_path, "sleeper.py", "import time; time.sleep(600)")
    monkeypatch.setattr(audit_cvc5, "program", lambda *_: [sys.executable, sleeper])
    start = time.monotonic()
    found = list(decide(["one", "other"], patience=0.5))
    assert [(path, a.is_known) for path, a in sorted(found)] == [("one", False), ("other", False)]
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("ends", "said"),
    [("os.kill(os.getpid(), signal.SIGSEGV)", "ended by signal 11"), ("sys.exit(3)", "exit 3")],
)
def test_how_a_solver_ended_is_said(tmp_path, monkeypatch, ends, said):
    ender = written(tmp_path, "ender.py", f"import os, signal, sys; sys.stdin.readline(); {ends}")
    monkeypatch.setattr(audit_cvc5, "program", lambda *_: [sys.executable, ender])
    assert [a.answer for _, a in decide(["one", "other"])] == [f"unknown ({said})"] * 2


def test_a_process_of_the_audit_imports_what_this_one_does_wherever_it_is_run(tmp_path):
    for package in ("spec", "proofs", "psem_model"):
        written(tmp_path, f"{package}.py", "raise ImportError('another one')")
    for module, arguments in (("audit.run", ()), ("audit.cvc5_solver", ("9", "9"))):
        command = program(f"psem_model.{module}", *arguments)
        asked = '{"claims": [], "asked": []}' if module == "audit.run" else ""
        done = subprocess.run(command, cwd=tmp_path, input=asked, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_answer_says_which_text_was_read(tmp_path):
    said = answer(written(tmp_path, "easy.smt2", EASY))
    assert (said.answer, said.digest) == ("unsat", digest_of(EASY.encode()))
    assert not answer(str(tmp_path / "absent.smt2")).is_known


def test_the_second_solvers_resources_are_bounded(tmp_path):
    said = answer(written(tmp_path, "hard.smt2", pigeons(18)), resources=1000)
    assert said.answer == "unknown (RESOURCEOUT)"


@pytest.mark.parametrize("text", ["(assert", "(set-logic QF_LIA)(assert (< x 1))(check-sat)", ""])
def test_a_text_that_is_no_obligation_is_no_answer(tmp_path, text):
    assert not answer(written(tmp_path, "broken.smt2", text)).is_known


# ---------------------------------------------------------------------------------- evaluation
A, B = Real("a"), Real("b")
NUMBERS = st.fractions(max_denominator=50)
TERMS = st.recursive(
    st.sampled_from([A, B]) | NUMBERS.map(lambda x: RealVal(str(x))),
    lambda terms: st.one_of(
        st.tuples(terms, terms).map(lambda t: t[0] + t[1]),
        st.tuples(terms, terms).map(lambda t: t[0] - t[1]),
        st.tuples(terms, terms).map(lambda t: t[0] * t[1]),
        st.tuples(terms, terms, terms).map(lambda t: If(t[0] < t[1], t[1], t[2])),
    ),
    max_leaves=8,
)


@given(left=TERMS, right=TERMS, a=NUMBERS, b=NUMBERS)
def test_evaluation_without_a_solver_agrees_with_substitution_in_one(left, right, a, b):
    values = [(A, RealVal(str(a))), (B, RealVal(str(b)))]
    for formula in (left == right, left < right, Or(left >= right, Not(left == A))):
        text = smtlib.text([formula])
        said = substitute(formula, *values) is TRUE
        assert holds(text, {"a": str(a), "b": str(b)}) == said


# zeros and infinities are operators of their own, which obligations do not have
LITERALS = st.floats(allow_nan=False, allow_infinity=False).filter(bool)


@given(a=LITERALS, b=st.floats(allow_nan=False))
def test_floating_point_literals_are_read_bit_for_bit(a, b):
    g = Const("g", Float64())
    formula = fp("fp.eq", fp("fp.add", FPVal(a), g), g)
    text = smtlib.text([formula])
    assert holds(text, {"g": repr(b)}) == (a + b == b)
    assert holds(smtlib.text([fp("fp.gt", FPVal(a), g)]), {"g": repr(b)}) == (a > b)


@pytest.mark.parametrize(
    "asserted", ["(< x y)", "(= x (/ 1 0))", "(bvult x x)", "(forall ((z Int)) true)", "(= f f)"]
)
def test_what_cannot_be_evaluated_is_said_so(asserted):
    with pytest.raises(CannotEvaluate):
        declared = "(declare-fun x () Int)(declare-fun f () Float64)"
        holds(f"{declared}(assert {asserted})", {"x": "1", "f": "1"})


def test_fractions_of_values_are_exact():
    text = "(declare-fun x () Real)(assert (= (* 3 x) 1.0))"
    assert holds(text, {"x": str(Fraction(1, 3))})
    assert not holds(text, {"x": "0.3333333333333333"})
