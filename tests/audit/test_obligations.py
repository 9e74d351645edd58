"""Obligations for readers: what is known, by name, at which instances; and they are the kernel's."""

import re

import pytest
import z3

from proofs.registry import prove, select
from proofs.trusted.kernel import Kernel
from proofs.trusted.oracle import reading
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, IntSort, IntVal, Not, RealSort, RealVal, Sum
from proofs.trusted.theorem import implies
from psem_model.audit.obligations import ASKED, exported, goals, use_of, uses_in
from psem_model.audit.smtlib import text
from tests.support.examples import few

SOME = ("C1", "S1", "M8", "E2", "E8", "K3", "T1")


@pytest.fixture(scope="module", params=few(SOME))
def asked(request):
    """The obligations of a claim, with their theorems."""
    (result,) = map(prove, select([request.param]))
    return [(theorem, o) for theorem in result.listed for o in theorem.obligations]


def at(use):
    """What a statement says at an instance, by substitution."""
    pairs = [(use.of.variables[n], term) for n, term in use.terms.items() if n in use.of.variables]
    return substitute(use.of.formula, *pairs)


def test_the_instances_that_are_named_are_the_facts_of_the_obligation(asked):
    for theorem, obligation in asked:
        used = uses_in(theorem, obligation)
        assert [*map(at, used)] == [*obligation.facts[: len(used)]]
        *supposed, shown = map(at, goals(theorem, obligation, obligation.facts[len(used) :]))
        rest = obligation.facts[len(used) :]
        if obligation.rule == "induction step":
            _, *rest = rest
            assert rest[: len(supposed)] == supposed
        assert shown is implies(rest[len(supposed) :], obligation.goal)


def test_an_exported_text_is_the_obligation_with_definitions_put_in_their_place(asked):
    for theorem, obligation in asked:
        flat = text([*obligation.facts, Not(obligation.goal)])
        context = z3.Context()
        both = [
            z3.And(*z3.parse_smt2_string(each, ctx=context))
            for each in (exported(theorem, obligation), flat)
        ]
        solver = z3.Solver(ctx=context)
        solver.add(both[0] != both[1])
        assert str(solver.check()) == "unsat"


def test_all_that_is_asserted_but_the_last_is_something_known_or_supposed_by_name(asked):
    for theorem, obligation in asked:
        _, _, own = exported(theorem, obligation).rpartition(ASKED)
        *known, last = asserted(own)
        assert last.startswith(("(not ", "(and "))
        assert "(not " in last
        named = [each for each in known if re.match(r"\(?((thm|hyp|def|axiom)\.|goal\b)", each)]
        assert len(known) - len(named) == (obligation.rule == "induction step")


def asserted(text):
    """What a text asserts; of what it asserts together, each, which has a line of its own."""
    lines = re.sub(r"^\(assert \(and$", "", text, flags=re.MULTILINE).splitlines()
    return [
        re.sub(r"^\(assert (.*)\)$", r"\1", line).strip()
        for line in lines
        if re.match(r"\(assert|  ", line)
    ]


def test_sums_are_written_as_one_and_what_is_not_so_beside_what_is_given(k):
    a, b, c, d = k.reals("a b c d")
    goal = (a + b + c) * d == a * d + b * d + c * d
    theorem = k.prove("t", goal, given=[And(a > 0, b > 0), c > 0])
    *_, asked, _, _ = exported(theorem, *theorem.obligations).split("\n")
    given = "(> a 0.0) (> b 0.0) (> c 0.0)"
    shown = "(= (* (+ a b c) d) (+ (* a d) (* b d) (* c d)))"
    assert asked == f"(assert (and {given} (not {shown})))"


def test_terms_that_differ_by_a_number_are_written_by_one_function_of_it(k):
    n = k.integers("n")
    f = k.function("f", *[IntSort()] * 8)
    known = k.suppose("known", [n], And(*(f(*[n + 1] * 6, i) >= 0 for i in range(5))))
    theorem = k.prove("t", Sum(*(f(*[n + 1] * 6, i) for i in range(5))) >= 0, uses=[known])
    written = exported(theorem, *theorem.obligations)
    _, _, asked = written.partition(ASKED)
    assert f"(define-fun $f2 (($n Int)) Int (f{' (+ n 1)' * 6} $n))" in asked
    assert "(+ ($f2 0) ($f2 1) ($f2 2) ($f2 3) ($f2 4))" in asked
    assert reading(written) == "unsat"


@pytest.fixture
def k():
    return Kernel("test")


def test_of_an_instance_of_an_instance_the_first_is_what_is_known(k):
    m, n = k.integers("m n")
    f = k.function("f", IntSort(), RealSort())
    known = k.suppose("known", [m, n], f(m) == f(n))
    use = use_of(known.at(m=n + 1).at(n=m * 2))
    assert (use.of.name, str(use.of.formula)) == ("hyp.known", "f(n + 1) == f(n)")
    assert {name: str(term) for name, term in use.terms.items()} == {"n": "m*2"}
    assert not use_of(known.at(m=m)).terms


def test_a_theorem_in_use_as_two_instances_has_two_names(k):
    m, n = k.integers("m n")
    f = k.function("f", IntSort(), IntSort())
    known = k.suppose("known", [m, n], f(m) == f(n))
    both = [known.at(m=n + 1).at(n=IntVal(3)), known.at(m=n + 2).at(n=IntVal(2))]
    theorem = k.prove("t", f(3) == f(2), uses=both)
    written = exported(theorem, *theorem.obligations)
    assert "(assert (and\n  (hyp.known 3)\n  (hyp.known.2 2)))\n(assert (not " in written
    assert reading(written) == "unsat"


def test_what_is_known_at_several_places_is_stated_once(k):
    n = k.integers("n")
    total, start, following = k.recursion("total", [], n, RealVal(0), lambda p: p() + 1)
    k.prove("three", total(3) == 3, uses=[start, *(following.at(n=i) for i in range(3))])
    (theorem,) = (t for t in k.theorems if t.obligations)
    written = exported(theorem, *theorem.obligations)
    assert written.count("(define-fun def.total_next ((n Int)) Bool") == 1
    assert [f"  (def.total_next {i})" in written for i in range(4)] == [True] * 3 + [False]
    assert "declare-fun n " not in written
    assert reading(written) == "unsat"
