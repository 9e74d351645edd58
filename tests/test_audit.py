"""The audit finds what is wrong: a wrong answer, idle or impossible facts, a solver that hangs."""

import copy
import json
import re
import shlex
import subprocess
import sys
import time
from fractions import Fraction
from functools import cache

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from proofs.kernel import Kernel
from proofs.registry import ROOT, Claim, select
from psem_model import audit_cvc5, audit_questions, proving
from psem_model.audit import closest, judged, refutations
from psem_model.audit_cvc5 import Answer, answer, decide
from psem_model.audit_evaluate import CannotEvaluate, holds
from psem_model.audit_run import entry, twice

PAGE = (ROOT / "docs" / "AUDIT.md").read_text()
EASY = "(set-logic QF_LIA)(declare-fun x () Int)(assert (< x x))(check-sat)"


def claim_of(function):
    """A claim that a function of this module proves."""
    return Claim("A1", "Attacked", "here", f"{__name__}.{function.__name__}", "proved", ())


def with_an_idle_fact(k: Kernel):
    x, y = k.integers("x y")
    return (k.prove("less", x < 6, given=[x < 5, y < 5]),)


def with_impossible_facts(k: Kernel):
    x = k.integers("x")
    return (k.prove("anything", x == 7, given=[x < 5, x > 5]),)


def as_it_should(k: Kernel):
    x = k.integers("x")
    return (k.prove("less", x < 6, given=[x < 5]),)


@cache
def made(claim):
    return entry(claim, asks=True)


def audited(claim, change=lambda run: None, answers=None, runs_of=None):
    """The findings about a claim, the second of whose two runs is changed."""
    first = made(claim)
    second = copy.deepcopy(first)
    change(second)
    right = {o["file"]: Answer(o["expected"]) for o in first["obligations"]}
    right |= {o["file"].replace(".", "-facts."): Answer("sat") for o in first["obligations"]}
    ran = dict.fromkeys(refutations(claim, [first]), True) if runs_of is None else runs_of
    return judged(claim, (first, second), right | (answers or {}), ran)["findings"]


def test_nothing_is_found_where_nothing_is_wrong():
    assert audited(claim_of(as_it_should)) == []


def test_an_unused_fact_is_found():
    (found,) = audited(claim_of(with_an_idle_fact), lambda run: run.update(unused=[]))
    assert found == "unused: less given[1]: y < 5"


def test_facts_that_contradict_each_other_are_found():
    found = audited(claim_of(with_impossible_facts))
    assert any(each.startswith("vacuous: the facts of anything: z3 not sat") for each in found)


@pytest.mark.parametrize("said", ["sat", "unknown (INCOMPLETE)", "error: not parsed"])
def test_an_answer_of_the_second_solver_that_is_not_the_expected_one_is_found(said):
    (found,) = audited(claim_of(as_it_should), answers={"A1/1.smt2": Answer(said)})
    assert found == f"cvc5: less (A1/1.smt2): expected unsat: {said}"


def test_facts_that_the_second_solver_cannot_satisfy_are_found():
    (found,) = audited(claim_of(as_it_should), answers={"A1/1-facts.smt2": Answer("unsat")})
    assert found == "vacuous: the facts of less: z3 sat, cvc5 unsat"


@pytest.mark.parametrize(
    ("key", "value"), [("expected", "sat"), ("resources", -1), ("text", ""), ("name", "more")]
)
def test_two_runs_that_differ_are_found(key, value):
    found = audited(claim_of(as_it_should), lambda run: run["obligations"][0].update({key: value}))
    assert f"not reproducible: {key} of less" in found


def test_a_verdict_that_is_not_the_expected_one_is_found():
    claim = Claim("A1", "Attacked", "here", claim_of(as_it_should).theorem, "refuted", ())
    assert "proved, expected refuted: " in audited(claim)


def test_a_claim_without_a_theorem_is_found():
    claim = Claim("A1", "Attacked", "here", f"{__name__}.no_theorem", "proved", ())
    assert audited(claim)[0] == "failed, expected proved: A1: no theorem"


def no_theorem(k: Kernel):
    return ()


def test_a_claim_function_that_is_not_registered_is_found(monkeypatch):
    some = select(["C1", "C2"])
    monkeypatch.setattr(audit_questions.registry, "claims", lambda: [some[0], some[0]])
    found = audit_questions.registration()
    assert f"{some[1].theorem} is registered under no claim" in found
    assert f"{some[0].theorem} is registered under several claims" in found


def test_a_refutation_whose_run_does_not_diverge_or_is_missing_is_found():
    (claim,) = select(["M8"])
    name = "M8-not_eight_times_less"
    assert audited(claim) == []
    assert audited(claim, runs_of={}) == [f"simulator: the run of {name} is executed by no test"]
    (found,) = audited(claim, runs_of={name: False})
    assert found == f"simulator: the run of {name} does not do what is said of it"


def test_a_counterexample_that_is_none_is_found():
    (claim,) = select(["M8"])
    (found,) = audited(claim, lambda run: run["obligations"][0]["values"].update(n="8"))
    assert found == "counterexample: not_eight_times_less: its values do not satisfy M8/1.smt2"


# ------------------------------------------------------------------------------ the second solver
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


def test_a_solver_at_its_limit_of_processor_time_is_killed_and_another_goes_on(tmp_path):
    hard = written(tmp_path, "hard.smt2", pigeons(18))
    paths = [hard, *(written(tmp_path, f"{i}.smt2", EASY) for i in range(3))]
    found = dict(decide(paths, resources=0, seconds=1, cores=1))
    assert not found[hard].is_known
    assert "killed" in found[hard].answer
    assert [found[path].answer for path in paths[1:]] == ["unsat"] * 3


def test_a_solver_that_waits_forever_is_killed(tmp_path, monkeypatch):
    sleeper = written(tmp_path, "sleeper.py", "import time; time.sleep(600)")
    monkeypatch.setattr(audit_cvc5, "COMMAND", [sys.executable, sleeper])
    start = time.monotonic()
    found = list(decide(["one", "other"], patience=0.5))
    assert [(path, a.is_known) for path, a in sorted(found)] == [("one", False), ("other", False)]
    assert time.monotonic() - start < 10


def test_the_second_solvers_resources_are_bounded(tmp_path):
    said = answer(written(tmp_path, "hard.smt2", pigeons(18)), resources=1000)
    assert said.answer == "unknown (RESOURCEOUT)"


@pytest.mark.parametrize("text", ["(assert", "(set-logic QF_LIA)(assert (< x 1))(check-sat)", ""])
def test_a_text_that_is_no_obligation_is_no_answer(tmp_path, text):
    assert not answer(written(tmp_path, "broken.smt2", text)).is_known


# ---------------------------------------------------------------------------------- evaluation
A, B = z3.Reals("a b")
NUMBERS = st.fractions(max_denominator=50)
TERMS = st.recursive(
    st.sampled_from([A, B]) | NUMBERS.map(lambda x: z3.RealVal(str(x))),
    lambda terms: st.one_of(
        st.tuples(terms, terms).map(lambda t: t[0] + t[1]),
        st.tuples(terms, terms).map(lambda t: t[0] - t[1]),
        st.tuples(terms, terms).map(lambda t: t[0] * t[1]),
        st.tuples(terms, terms, terms).map(lambda t: z3.If(t[0] < t[1], t[1], t[2])),
    ),
    max_leaves=8,
)


@given(left=TERMS, right=TERMS, a=NUMBERS, b=NUMBERS)
def test_evaluation_without_a_solver_agrees_with_substitution_in_one(left, right, a, b):
    values = [(A, z3.RealVal(str(a))), (B, z3.RealVal(str(b)))]
    for formula in (left == right, left < right, z3.Or(left >= right, z3.Not(left == A))):
        text = audit_questions.standalone_text([formula])
        said = z3.is_true(z3.simplify(z3.substitute(formula, *values)))
        assert holds(text, {"a": str(a), "b": str(b)}) == said


# zeros and infinities are operators of their own, which obligations do not have
LITERALS = st.floats(allow_nan=False, allow_infinity=False).filter(bool)


@given(a=LITERALS, b=st.floats(allow_nan=False))
def test_floating_point_literals_are_read_bit_for_bit(a, b):
    g = z3.FP("g", z3.Float64())
    formula = z3.fpEQ(z3.fpAdd(z3.RNE(), z3.FPVal(a, z3.Float64()), g), g)
    text = audit_questions.standalone_text([formula])
    assert holds(text, {"g": repr(b)}) == (a + b == b)
    assert holds(audit_questions.standalone_text([z3.FPVal(a, z3.Float64()) > g]), {"g": repr(b)}) == (
        a > b
    )


@pytest.mark.parametrize(
    "asserted", ["(< x y)", "(= x (/ 1 0))", "(bvult x x)", "(forall ((z Int)) true)", "(= f f)"]
)
def test_what_cannot_be_evaluated_is_said_so(asserted):
    with pytest.raises(CannotEvaluate):
        declared = "(declare-fun x () Int)(declare-fun f () (_ FloatingPoint 11 53))"
        holds(f"{declared}(assert {asserted})", {"x": "1", "f": "1"})


# ------------------------------------------------------------------------------------ the command
@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setattr(proving, "BUILD", tmp_path / "build")
    return tmp_path / "build"


def test_the_runs_have_the_hash_seeds_and_orders_that_are_said():
    runs = twice(["C1", "S1"], lambda done: None)
    assert list(runs) == ["C1", "S1"]
    assert all(run["verdict"] == "proved" for pair in runs.values() for run in pair)
    asked = {name: ["witness" in run["obligations"][0] for run in pair] for name, pair in runs.items()}
    assert asked == {"C1": [True, False], "S1": [False, True]}


def test_one_claims_tree_shows_both_solvers_answers(psem, build):
    code, out, err = psem("audit", "m8")
    assert (code, err) == (0, "")
    assert re.search(r"M8/1\.smt2, z3 sat [\d.]+ ms, cvc5 sat [\d.]+ ms", out)
    assert "the runs of 1 refutations diverge" in out
    assert out.endswith("nothing found\n")


def test_each_file_says_what_it_asks_and_older_ones_are_removed(psem, build):
    old = build / "smt2" / "C2" / "999.smt2"
    old.parent.mkdir(parents=True)
    old.write_text("")
    code, out, _ = psem("audit", "C2", "S1", "--json")
    report = json.loads(out)
    assert code == 0
    assert not old.exists()
    assert not list(build.rglob("*.part"))
    for found in report["claims"]:
        for row in found["obligations"]:
            text = (build / "smt2" / row["file"]).read_text()
            assert text.startswith(f"; claim      {found['claim']}\n")
            assert f"; expected   {row['expected']}\n" in text
            assert row["cvc5"]["answer"] == row["expected"]
    assert set(report["closest"]) == {"z3", "cvc5"} == {*report["solvers"]} - {"python"}
    assert report["closest"] == closest(report["claims"])
    assert report["trusted"]["lines"]["proofs/kernel.py"] > 100
    assert all(axiom["reason"] for axiom in report["trusted"]["axioms"])
    assert not (build / "audit.json").exists()  # it is of all claims


def test_a_disagreement_ends_with_exit_code_1(psem, build, monkeypatch):
    from psem_model import audit

    def wrong(paths):
        return ((path, Answer("unknown (INCOMPLETE)")) for path in paths)

    monkeypatch.setattr(audit, "decide", wrong)
    code, out, _ = psem("audit", "S1")
    assert code == 1
    assert "NOT AGREED" in out
    assert "cvc5: " in out


def test_bad_input_is_one_line(psem, build, monkeypatch):
    from psem_model import audit

    code, out, err = psem("audit", "C99")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "nearest: C9" not in err
    assert "nearest: " in err
    monkeypatch.setattr(audit.util, "find_spec", lambda name: None)
    code, out, err = psem("audit", "S1")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"psem: .*cvc5 is not installed.*pip install .*cvc5\n", err)


def test_an_unwritable_build_folder_is_one_line_before_anything_is_proved(psem, build):
    build.write_text("a file, not a folder")
    code, out, err = psem("audit", "S1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot write" in err


def test_ctrl_c_ends_every_process_and_leaves_nothing_half_written(psem, build, monkeypatch):
    from psem_model import audit

    started = []

    def noted(*args, popen=subprocess.Popen, **options):
        started.append(popen(*args, **options))
        return started[-1]

    def interrupted(paths, decide=audit.decide):
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
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
BY_HAND = [block for block in BLOCKS if ".venv/bin/psem" not in block and "make" not in block]


def timeless(text):
    return re.sub(r" +[\d.]+ ms", " ms", text)


def test_the_pages_commands_print_what_is_shown(psem):
    assert len(BY_HAND) == 2
    code, out, _ = psem("audit", "S1")
    assert code == 0
    (shown,) = re.findall(r"```text\n(S1.*?)```", PAGE, re.DOTALL)
    assert all(timeless(part) in timeless(out) for part in shown.split("...\n"))
    for block in BY_HAND:
        command, _, shown = block.removeprefix("$ ").rpartition("\n\n")
        run = subprocess.run(shlex.split(command), cwd=ROOT, capture_output=True, text=True)
        assert run.stdout + run.stderr == shown


def test_the_page_says_what_each_finding_means():
    source = (ROOT / "psem_model" / "audit.py").read_text()
    kinds = set(re.findall(r'"(cvc5|vacuous|unused|counterexample|simulator|not \w+): ', source))
    assert len(kinds) == 6
    assert {kind for kind in kinds if f"`{kind}:`" not in PAGE} == set()


def test_fractions_of_values_are_exact():
    text = "(declare-fun x () Real)(assert (= (* 3 x) 1.0))"
    assert holds(text, {"x": str(Fraction(1, 3))})
    assert not holds(text, {"x": "0.3333333333333333"})
