"""A theorem that rests on what cannot hold says nothing: it is not proved."""

import json
from dataclasses import replace

import pytest

from proofs.claim import PROOFS
from proofs.registry import prove, select
from proofs.trusted.oracle import SEED, SOON, ask
from proofs.trusted.terms import And, Implies, IntSort, IntVal

INT = IntSort()


def two_hypotheses(k):
    """(Claim S1)"""
    a, x = k.fixed("a", INT), k.integers("x")
    large, small = k.suppose("large", [], a > 5), k.suppose("small", [], a < 3)
    return (k.prove("anything", x == 7, uses=[large, small]),)


def in_different_lemmas(k):
    a, x = k.fixed("a", INT), k.integers("x")
    large, small = k.suppose("large", [], a > 5), k.suppose("small", [], a < 3)
    above = k.prove("above", x > 5, given=[x >= a], uses=[large])
    below = k.prove("below", x < 3, given=[x <= a], uses=[small])
    return (k.prove("both", And(x > 5, x < 3), given=[x == a], uses=[above, below]),)


def for_all_values(k):
    f = k.function("f", INT, INT)
    x, y = k.integers("x y")
    large, small = k.suppose("large", [x], f(x) > 5), k.suppose("small", [x], f(x) < 3)
    return (k.prove("rises", f(y) < f(y + 1), uses=[large.at(x=y + 1), small.at(x=y)]),)


def one_false_for_all_values(k):
    x = k.integers("x")
    below = k.suppose("every_integer_is_below_2", [x], x < 2)
    return (k.prove("small", x < 3, uses=[below]),)


def of_a_symbol_called_as_any_value(k):
    f, x, any_x = k.function("f", INT, INT), k.integers("x"), k.fixed("any_x", INT)
    large, small = k.suppose("large", [x], f(x) > 5), k.suppose("small", [], f(any_x) < 3)
    return (k.prove("less", f(x) > 2, uses=[large, small]),)


def one_that_contradicts_itself(k):
    a, x = k.fixed("a", INT), k.integers("x")
    strange = k.suppose("strange", [], And(a > 5, a < 3))
    return (k.prove("anything", x == 7, uses=[strange]),)


def a_hypothesis_and_a_given(k):
    a, x = k.fixed("a", INT), k.integers("x")
    large = k.suppose("large", [], a > 5)
    return (k.prove("anything", x == 7, given=[a < 3], uses=[large]),)


def a_hypothesis_and_a_definition(k):
    x = k.integers("x")
    double, defined = k.define("double", [x], 2 * x)
    odd = k.suppose("odd", [], double(IntVal(4)) == 9)
    return (k.prove("anything", x == 7, uses=[odd, defined.at(x=4)]),)


def givens(k):
    x = k.integers("x")
    return (k.prove("anything", x == 7, given=[x < 5, x > 5]),)


def premises_of_the_goal(k):
    x, y = k.integers("x y")
    return (k.prove("void", Implies(And(x >= 1, x <= 0), x == y)),)


def the_second_of_two(k):
    x = k.integers("x")
    less = k.prove("less", x < 6, given=[x < 5])
    return less, k.prove("anything", x == 7, given=[x < 5, x > 5])


def one_given_that_contradicts_itself(k):
    x = k.integers("x")
    return (k.prove("anything", x == 7, given=[And(x > 0, x < 0)]),)


def one_given_that_no_number_fulfils(k):
    x = k.integers("x")
    return (k.prove("anything", x == 7, given=[x * x < 0]),)


def one_impossible_premise_of_the_goal(k):
    x = k.integers("x")
    return (k.prove("anything", Implies(x != x, x == 7)),)


def a_given_and_a_definition(k):
    x = k.integers("x")
    double, defined = k.define("double", [x], 2 * x)
    odd = double(IntVal(4)) == 9
    return (k.prove("anything", x == 7, given=[odd], uses=[defined.at(x=4)]),)


def a_given_and_a_lemma(k):
    x = k.integers("x")
    square = k.prove("square", x * x >= 0)
    return (k.prove("anything", x == 7, given=[x * x == -1], uses=[square]),)


IMPOSSIBLE = [
    one_given_that_contradicts_itself,
    one_given_that_no_number_fulfils,
    one_impossible_premise_of_the_goal,
    a_given_and_a_definition,
    a_given_and_a_lemma,
    two_hypotheses,
    in_different_lemmas,
    for_all_values,
    one_false_for_all_values,
    of_a_symbol_called_as_any_value,
    one_that_contradicts_itself,
    a_hypothesis_and_a_given,
    a_hypothesis_and_a_definition,
    givens,
    premises_of_the_goal,
    the_second_of_two,
]


@pytest.mark.parametrize("proof", IMPOSSIBLE, ids=lambda proof: proof.__name__)
def test_what_rests_on_the_impossible_is_not_proved(proof):
    result = prove(select(["S1"])[0], proof)
    assert result.verdict == "failed"
    assert "says nothing" in result.failure
    assert all(name in result.failure for name in result.theorems[-1].hypotheses)


def cases(k):
    """Theorems of which each can hold, and not all at once."""
    a, x = k.fixed("a", INT), k.integers("x")
    positive = k.suppose("positive", [], a > 0)
    negative = k.suppose("negative", [], a < 0)
    one = k.prove("one", x + a > 0, given=[x > 0], uses=[positive])
    return one, k.prove("other", x + a < 0, given=[x < 0], uses=[negative])


def an_axiom_free_identity(k):
    x = k.integers("x")
    return (k.prove("same", x + 0 == x),)


def hard_to_satisfy(k):
    """x^3 + y^3 + z^3 = 42, of which the smallest solution has 17 digits."""
    x, y, z = k.integers("x y z")
    cubes = x * x * x + y * y * y + z * z * z
    return (k.prove("cubes", cubes > 41, given=[cubes == 42, x > 0]),)


@pytest.mark.parametrize("proof", [cases, an_axiom_free_identity])
def test_what_can_hold_is_proved_one_theorem_at_a_time(proof):
    assert prove(select(["S1"])[0], proof).verdict == "proved"


def test_what_is_not_seen_to_be_possible_is_not_proved(monkeypatch):
    def asked(formulas, limit=SOON, seed=SEED, **more):
        return ask(formulas, min(limit, SOON), seed, **more)

    monkeypatch.setattr("proofs.premises.ask", asked)
    result = prove(select(["S1"])[0], hard_to_satisfy)
    assert result.verdict == "failed"
    assert "not seen to hold together" in result.failure


def test_a_refuted_claim_needs_no_premises():
    def refuted(k):
        x = k.integers("x")
        return (k.refute("small", x < 5, [x], lambda x: x < 5, given=[x > 3]),)

    assert prove(replace(select(["S1"])[0], expected="refuted"), refuted).as_expected


def test_a_claim_on_impossible_hypotheses_is_printed_as_failed(psem, monkeypatch):
    select(["S1"])[0].function()
    monkeypatch.setitem(PROOFS, "S1", [two_hypotheses])
    code, out, err = psem("prove", "S1")
    assert (code, err) == (1, "")
    assert "S1  FAILED!" in out
    said = "S1: anything says nothing: its hypotheses (large, small) and conditions are not seen to"
    assert said in " ".join(out.split())
    assert "NOT as expected: S1" in out
    code, out, _ = psem("prove", "S1", "--json")
    (found,) = json.loads(out)["claims"]
    assert (code, found["verdict"], found["hypotheses"]) == (1, "failed", ["large", "small"])
    code, out, _ = psem("explain", "S1")
    assert code == 1
    assert out.index("says nothing") < out.index("a > 5")
