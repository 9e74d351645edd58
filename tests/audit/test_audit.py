"""The audit finds what is wrong: a wrong answer, idle or impossible facts, a run that shows nothing."""

import copy
from dataclasses import replace
from functools import cache

import pytest

from proofs.registry import Claim, prove, select
from proofs.trusted.kernel import Kernel
from proofs.trusted.terms import TRUE, And, Implies, IntSort, IntVal
from psem_model.audit.audit import execute, facts_of, judged, refutations
from psem_model.audit.cvc5_solver import Answer, digest_of
from psem_model.audit.questions import unused
from psem_model.audit.refutations import REGISTERED
from psem_model.audit.run import entry
from tests.support.solvers import EASY

ATTACKS = {}


def claim_of(function, expected="proved"):
    """A claim that a function of this module proves."""
    ATTACKS[function.__name__] = function
    return Claim("A1", "attacks", function.__name__, "", "", (), (), (), "here", expected)


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
    return entry(prove(claim, ATTACKS.get(claim.statement)), asks=True)


def heard(said, text):
    return Answer(said, digest=digest_of((text or "").encode()))


def audited(claim, change=lambda run: None, answers=None, runs_of=None):
    """The findings about a claim, the second of whose two runs is changed."""
    first = made(claim)
    second = copy.deepcopy(first) | {"premises": []}
    change(second)
    right = {o["file"]: heard(o["expected"], o["text"]) for o in first["obligations"]}
    for o in first["obligations"]:
        right[facts_of(o["file"])] = heard("sat", o.get("witness"))
    right |= {p["file"]: heard("sat", p["witness"]) for p in first["premises"]}
    ran = dict.fromkeys(refutations(claim, [first]), ()) if runs_of is None else runs_of
    return judged(claim, (first, second), right | (answers or {}), ran)["findings"]


def test_nothing_is_found_where_nothing_is_wrong():
    assert audited(claim_of(as_it_should)) == []


# ---------------------------------------------------------------------------- premises of a goal
def with_an_impossible_premise(k: Kernel):
    x, y = k.integers("x y")
    return (k.prove("void", Implies(And(x >= 1, x <= 0), x == y)),)


def with_an_idle_premise(k: Kernel):
    x, y = k.integers("x y")
    return (k.prove("less", Implies(y >= 7, Implies(And(x < 5, y < 9), x < 6))),)


def with_an_idle_premise_by_induction(k: Kernel):
    i, y = k.integers("i y")
    _, start, following = k.recursion("count", [], i, IntVal(0), lambda before: before() + 1)
    count = k._symbols["count"]
    claim = Implies(y >= 7, count(i) == i)
    return (k.induct("counts", i, claim, base=[start], step=[following]),)


def with_a_premise_that_is_needed(k: Kernel):
    x, y = k.integers("x y")
    first = k.prove("first", Implies(x < 5, Implies(y < 5, x + y < 9)))
    return (first, k.prove("second", Implies(x < 4, x < 5)))


def test_premises_of_a_goal_that_cannot_hold_are_found():
    found = audited(claim_of(with_an_impossible_premise))
    assert any(each.startswith("vacuous: the facts of void: z3 not sat") for each in found)
    assert any(each.startswith("vacuous: all that void is proved from: z3 not sat") for each in found)


@pytest.mark.parametrize("function", [with_an_idle_premise, with_an_idle_premise_by_induction])
def test_premises_of_a_goal_that_nothing_needs_are_found(function):
    found = audited(claim_of(function), lambda run: run.update(unused=[]))
    said = {each.partition(": ")[2] for each in found}
    expected = {
        with_an_idle_premise: {"less premise[0]: y >= 7", "less premise[2]: y < 9"},
        with_an_idle_premise_by_induction: {"counts_step premise[0]: y >= 7"},
    }
    assert said == expected[function]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_each_condition_of_an_induction_that_nothing_needs_is_found(index):
    """Also one that says nothing, and one that says several things."""
    k = Kernel("idle")
    i, y = k.integers("i y")
    _, start, following = k.recursion("count", [], i, IntVal(0), lambda before: before() + 1)
    given = [TRUE, y >= 7, And(y >= 1, y < 9)]
    claim = k._symbols["count"](i) == i
    theorem = k.induct("counts", i, claim, given[: index + 1], base=[start], step=[following])
    said = [f"counts_step given[{n}]: {condition}" for n, condition in enumerate(given[: index + 1])]
    assert list(unused(theorem)) == said


def test_a_condition_that_an_induction_needs_is_not_found():
    k = Kernel("needed")
    i, y = k.integers("i y")
    _, start, following = k.recursion("count", [i], y, IntVal(0), lambda before: before(i) + i)
    claim = k._symbols["count"](i, y) >= 0
    given = [And(i >= 0, i < 9)]
    assert list(unused(k.induct("counts", y, claim, given, base=[start], step=[following]))) == []


def test_premises_of_a_goal_that_are_needed_are_facts():
    made_ = made(claim_of(with_a_premise_that_is_needed))
    assert [o["facts"] for o in made_["obligations"]] == [2, 1]
    assert audited(claim_of(with_a_premise_that_is_needed)) == []


# ------------------------------------------------------------------- theorems that nothing rests on
def with_an_idle_theorem(k: Kernel):
    a = k.fixed("a", IntSort())
    large = k.suppose("large", [], a > 5)
    part = k.prove("part", a > 4, uses=[large])
    k.prove("idle", a > 3, uses=[large])
    return (k.prove("whole", a > 2, uses=[part]),)


def test_a_theorem_that_is_neither_returned_nor_used_is_found():
    (found,) = audited(claim_of(with_an_idle_theorem), lambda run: run.update(unused=[]))
    assert found == "unused: theorem idle: no theorem of the claim rests on it"


def test_an_unused_fact_is_found():
    (found,) = audited(claim_of(with_an_idle_fact), lambda run: run.update(unused=[]))
    assert found == "unused: less given[1]: y < 5"


def with_a_lemma_of_numbers(k: Kernel):
    x, y = k.reals("x y")
    product = k.prove("positive", x * y >= 0, given=[x >= 0, y >= 0])
    return (k.prove("grows", y * y >= y, given=[y >= 1], uses=[product.at(x=y - 1)]),)


def with_a_lemma_of_a_definition(k: Kernel):
    x, y = k.reals("x y")
    square, is_ = k.define("square", [x], x * x)
    product = k.prove("positive", square(x) >= 0, uses=[is_])
    return (k.prove("grows", y * y >= y, given=[y >= 1], uses=[product.at(x=y - 1)]),)


def test_a_lemma_of_numbers_alone_may_say_which_products_to_take():
    assert audited(claim_of(with_a_lemma_of_numbers)) == []


def test_a_lemma_of_a_definition_that_nothing_needs_is_found():
    (found,) = audited(claim_of(with_a_lemma_of_a_definition), lambda run: run.update(unused=[]))
    assert found.startswith("unused: grows uses[0]")


def with_a_hypothesis_that_another_implies(k: Kernel):
    n, x, y = k.fixed("n", IntSort()), k.integers("x"), k.integers("y")
    place = k.function("place", IntSort(), IntSort())
    placed = k.suppose("placed", [x], And(place(x) >= 0, place(x) < n))
    some = k.suppose("some", [], n >= 1)
    own = k.prove("own", place(y) < n, uses=[placed.at(x=y)])
    return (k.prove("both", And(place(y) < n, n >= 1), uses=[own, some]),)


def test_a_hypothesis_that_the_others_imply_is_found():
    claim = claim_of(with_a_hypothesis_that_another_implies)
    found = audited(claim, lambda run: run.update(unused=[]))
    assert "unused: hypothesis some: the others of both imply it" in found


def test_facts_that_contradict_each_other_are_found():
    found = audited(claim_of(with_impossible_facts))
    assert any(each.startswith("vacuous: the facts of anything: z3 not sat") for each in found)


@pytest.mark.parametrize("said", ["sat", "unknown (INCOMPLETE)", "error: not parsed"])
def test_an_answer_of_the_second_solver_that_is_not_the_expected_one_is_found(said):
    text = made(claim_of(as_it_should))["obligations"][0]["text"]
    (found,) = audited(claim_of(as_it_should), answers={"A1/1.smt2": heard(said, text)})
    assert found == f"cvc5: less (A1/1.smt2): expected unsat: {said}"


def test_facts_that_the_second_solver_cannot_satisfy_are_found():
    text = made(claim_of(as_it_should))["obligations"][0]["witness"]
    (found,) = audited(claim_of(as_it_should), answers={"A1/1-facts.smt2": heard("unsat", text)})
    assert found == "vacuous: the facts of less: z3 sat, cvc5 unsat"


def test_an_answer_to_another_text_than_was_written_is_found():
    (found,) = audited(claim_of(as_it_should), answers={"A1/1.smt2": heard("unsat", EASY)})
    assert found == ("cvc5: less (A1/1.smt2): expected unsat: another text was read than was written")


def test_an_answer_of_the_first_solver_that_is_not_the_expected_one_is_found():
    (found,) = audited(claim_of(as_it_should), lambda run: run["obligations"][0].update(z3="unknown"))
    assert found == "z3: less (A1/1.smt2): expected unsat: unknown"


@pytest.mark.parametrize(("key", "value"), [("expected", "sat"), ("text", ""), ("name", "more")])
def test_two_runs_that_differ_are_found(key, value):
    found = audited(claim_of(as_it_should), lambda run: run["obligations"][0].update({key: value}))
    assert f"not reproducible: {key} of less" in found


# --------------------------------------------------------------------------- theorems as a whole
def with_contradictory_lemmas(k: Kernel):
    a, (x, y) = k.fixed("a", IntSort()), k.integers("x y")
    large, small = k.suppose("large", [], a > 5), k.suppose("small", [], a < 3)
    above = k.prove("above", x > 5, given=[x >= a], uses=[large])
    below = k.prove("below", x < 3, given=[x <= a], uses=[small])
    return (k.prove("both", And(y > 5, y < 3), given=[y == a], uses=[above.at(x=y), below.at(x=y)]),)


def with_contradictory_hypotheses_for_all_values(k: Kernel):
    f = k.function("f", IntSort(), IntSort())
    x, y = k.integers("x y")
    large, small = k.suppose("large", [x], f(x) > 5), k.suppose("small", [x], f(x) < 3)
    above = k.prove("above", f(y + 1) > 4, uses=[large.at(x=y + 1)])
    below = k.prove("below", f(y) < 4, uses=[small.at(x=y)])
    return (k.prove("rises", f(y) < f(y + 1), uses=[above, below.at(y=y + 1), below]),)


def with_a_false_hypothesis_for_all_values(k: Kernel):
    x = k.integers("x")
    below = k.suppose("every_integer_is_below_2", [x], x < 2)
    return (k.prove("rises", x < 3, uses=[below]),)


@pytest.mark.parametrize(
    "function",
    [
        with_contradictory_lemmas,
        with_contradictory_hypotheses_for_all_values,
        with_a_false_hypothesis_for_all_values,
    ],
)
def test_hypotheses_that_contradict_each_other_in_different_lemmas_are_found(function):
    found = [each for each in audited(claim_of(function)) if not each.startswith("unused: ")]
    name = "both" if function is with_contradictory_lemmas else "rises"
    assert f"vacuous: all that {name} is proved from: z3 not sat, cvc5 sat" in found


def test_hypotheses_for_all_values_are_listed():
    listed = {
        function: made(claim_of(function))["premises"][0]["for_all_values"]
        for function in (with_contradictory_lemmas, with_contradictory_hypotheses_for_all_values)
    }
    assert list(listed.values()) == [[], ["large", "small"]]


def with_parts_of_facts(k: Kernel):
    (x, y), n = k.integers("x y"), k.fixed("n", IntSort())
    sizes = k.suppose("sizes", [], And(n >= 1, n < 9))
    first = k.prove("first", x < 6, given=[And(x < 5, y < 5)])
    second = k.prove("second", n >= 0, uses=[sizes])
    third = k.prove("third", n < 10, uses=[sizes])
    return first, second, third


def test_parts_of_conjunctions_that_nothing_needs_are_found():
    (found,) = audited(claim_of(with_parts_of_facts), lambda run: run.update(unused=[]))
    assert found == "unused: part of first given[0]: y < 5"


def refuted_without_unknowns(k: Kernel):
    return (k.refute("two_and_two_is_five", IntVal(2) + 2 == 5, [], lambda: False),)


def nothing_refuted(k: Kernel):
    return ()


def test_a_refutation_without_unknowns_is_evaluated_and_is_to_be_run():
    claim = replace(claim_of(refuted_without_unknowns), expected="refuted")
    (name,) = refutations(claim, [made(claim)])
    assert name == "A1-two_and_two_is_five"
    assert audited(claim) == []
    missing = execute([claim], {"A1": [made(claim)]})
    assert audited(claim, runs_of=missing) == [f"simulator: the run of {name} is not registered"]


def test_a_refuted_claim_with_nothing_to_run_is_found():
    claim = replace(claim_of(nothing_refuted), expected="refuted")
    assert "simulator: nothing is run, since no counterexample refutes it" in audited(claim)


def test_a_verdict_that_is_not_the_expected_one_is_found():
    assert "proved, expected refuted: " in audited(claim_of(as_it_should, "refuted"))


def test_a_claim_without_a_theorem_is_found():
    assert audited(claim_of(no_theorem))[0] == "failed, expected proved: A1: no theorem"


def no_theorem(k: Kernel):
    return ()


def test_a_refutation_whose_run_does_not_diverge_or_is_missing_is_found(monkeypatch):
    (claim,) = select(["M8"])
    name, ran = "M8-not_eight_times_less", {"M8": [made(claim)]}
    assert execute([claim], ran) == {name: []}
    found = audited(claim, runs_of={name: ["sends nothing"]})
    assert found == [f"simulator: the run of {name} sends nothing"]
    monkeypatch.delitem(REGISTERED, name)
    found = audited(claim, runs_of=execute([claim], ran))
    assert found == [f"simulator: the run of {name} is not registered"]


def test_a_counterexample_that_is_none_is_found():
    (claim,) = select(["M8"])
    (found,) = audited(claim, lambda run: run["obligations"][0]["values"].update(n="8"))
    assert found == "counterexample: not_eight_times_less: its values do not satisfy M8/1.smt2"
