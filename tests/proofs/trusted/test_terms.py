"""Terms: what is constant is worked out rightly, and what is written says the same everywhere."""

import ast
import operator
from fractions import Fraction
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from proofs.trusted import terms as constructors
from proofs.trusted.folding import exact
from proofs.trusted.infix import beginning
from proofs.trusted.infix import text as infix
from proofs.trusted.oracle import ask, reading
from proofs.trusted.parts import below, substitute
from proofs.trusted.smtlib import ForAll, Question
from proofs.trusted.terms import FALSE, TRUE, And, FPBits, FPVal, Int, IntVal, Not, Real, RealVal, fp
from psem_model.audit.smtlib import text
from tests.support import random_terms as made
from tests.support.by_z3 import built
from tests.support.examples import examples
from tests.support.random_terms import ALL, BOOL, INT, REAL, TABLE, VARIABLES, terms

WORK = 400_000
drawn = settings(examples(120), suppress_health_check=list(HealthCheck))


def answer(*formulas):
    solver = z3.Solver()
    solver.set(rlimit=WORK)
    solver.add(*formulas)
    return str(solver.check())


def same(*answers):
    """No two of them contradict each other."""
    return len({*answers} - {"unknown"}) <= 1


# ------------------------------------------------------------------ what is constant
def euclidean(left, right):
    """SMT-LIB's division: the rest is never negative."""
    rest = left % abs(right)
    return (left - rest) // right, rest


OPERATIONS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right,
    "div": lambda left, right: euclidean(left, right)[0],
    "mod": lambda left, right: euclidean(left, right)[1],
    "neg": operator.neg,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "distinct": lambda *of: len({*of}) == len(of),
    "and": lambda *of: all(of),
    "or": lambda *of: any(of),
    "not": operator.not_,
    "=>": lambda premise, conclusion: not premise or conclusion,
    "ite": lambda condition, then, otherwise: then if condition else otherwise,
    "to_real": Fraction,
}


def value(term, values):
    """A term's value, by plain numbers of Python."""
    if term.op == "apply":
        return values[term]
    if not term.args:
        return exact(term)
    return OPERATIONS[term.op](*[value(arg, values) for arg in term.args])


def constant(sort, number):
    if sort == BOOL:
        return TRUE if number % 2 else FALSE
    return IntVal(number) if sort == INT else RealVal(Fraction(number, 3))


UNKNOWN = [v for sort in (BOOL, INT, REAL) for v in VARIABLES[sort]]


@given(
    terms(BOOL, (BOOL, INT, REAL), 20, [made.f, made.g])
    | terms(REAL, (BOOL, INT, REAL), 20, [made.g, made.f]),
    st.lists(st.integers(-5, 5), min_size=len(UNKNOWN), max_size=len(UNKNOWN)),
)
@drawn
def test_with_constants_in_place_of_variables_a_term_is_its_value(term, numbers):
    values = [constant(v.sort, n) for v, n in zip(UNKNOWN, numbers, strict=True)]
    found = substitute(term, *zip(UNKNOWN, values, strict=True))
    expected = value(term, dict(zip(UNKNOWN, map(exact, values), strict=True)))
    assert found.op in ("bool", "number")
    assert exact(found) == expected


@given(st.integers(-20, 20), st.integers(-5, 5))
def test_integers_are_divided_as_smt_lib_says(left, right):
    quotient, rest = IntVal(left) / IntVal(right), IntVal(left) % IntVal(right)
    if not right:
        assert (quotient.op, rest.op) == ("div", "mod")
        return
    q, r = quotient.of, rest.of
    assert left == right * q + r
    assert 0 <= r < abs(right)
    assert z3.simplify(z3.IntVal(left) / z3.IntVal(right)).as_long() == q
    assert z3.simplify(z3.IntVal(left) % z3.IntVal(right)).as_long() == r


def test_nothing_is_divided_by_zero():
    zero, x = RealVal(0), Real("r0")
    for quotient in (RealVal(1) / zero, zero / zero, x / 0, x / zero):
        assert quotient.op == "/"
        assert ask([quotient == 5]).said == ask([quotient != 5]).said == "sat"
    assert (Int("n0") % 0).op == "mod"


BITS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1 << 63, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48])


@given(BITS, BITS, st.sampled_from(["fp.add", "fp.eq", "fp.lt", "fp.gt"]))
@drawn
def test_numbers_of_binary64_are_worked_out_as_z3_does(left, right, op):
    found = fp(op, FPBits(left), FPBits(right))
    numbers = [z3.fpBVToFP(z3.BitVecVal(bits, 64), z3.Float64()) for bits in (left, right)]
    of = {"fp.eq": z3.fpEQ, "fp.lt": z3.fpLT, "fp.gt": z3.fpGT}.get(op)
    expected = of(*numbers) if of else z3.fpAdd(z3.RNE(), *numbers)
    assert z3.is_true(z3.simplify(built(found) == expected))


@given(terms(sorts=ALL, steps=15))
@drawn
def test_a_formula_that_was_worked_out_is_true_or_false_as_the_solver_says(formula):
    for literal, denied in ((TRUE, z3.Not(built(formula))), (FALSE, built(formula))):
        if formula is literal:
            assert answer(denied) == "unsat"


# ------------------------------------------------------------------ what is written
@given(terms(steps=20), terms(steps=20))
@drawn
def test_the_text_for_readers_says_what_the_formulas_say(fact, goal):
    read = z3.And(*z3.parse_smt2_string(text([fact, goal])))
    assert answer(read != z3.And(built(fact), built(goal))) != "sat"


@given(terms(sorts=ALL, steps=20), terms(sorts=ALL, steps=20))
@drawn
def test_both_texts_have_the_answer_of_the_formulas(fact, goal):
    asked = [fact, Not(goal)]
    assert same(ask(asked, WORK).said, reading(text(asked)), answer(*map(built, asked)))


@given(terms(steps=25))
@settings(examples(30), suppress_health_check=list(HealthCheck))
def test_what_is_written_once_means_what_is_written_again(formula):
    numbers = [part for part in below([formula]) if part.sort == INT and part.args]
    assume(numbers)
    deep = max(numbers, key=lambda part: len(below([part])))
    twice = And(formula, deep * 2 == deep + deep, deep + 1 > deep)
    assert same(ask([twice], WORK).said, ask([formula], WORK).said)
    read = z3.And(*z3.parse_smt2_string(text([twice])))
    assert answer(read != built(twice)) != "sat"


def test_something_is_shared_in_both_texts():
    long = made.f(made.f(Int("n0") + 1) + made.f(Int("n1") + 1) + made.f(Int("n0") - Int("n1")))
    formulas = [long * 2 == long + long]
    assert all("define-fun" in written for written in (Question(formulas).text, text(formulas)))


@given(terms(steps=15), st.data())
@drawn
def test_terms_take_the_place_of_parts_as_in_z3(formula, data):
    parts = data.draw(st.lists(st.sampled_from(below([formula])), unique_by=id, max_size=3))
    parts = [part for part in parts if part.op == "apply"]  # of others, those within are left open
    pairs = [(part, data.draw(terms(part.sort, steps=4))) for part in parts]
    outermost = [part for part in parts if sum(part in below([other]) for other in parts) == 1]
    pairs = [pair for pair in pairs if any(pair[0] is part for part in outermost)]
    expected = z3.substitute(built(formula), *[(built(part), built(other)) for part, other in pairs])
    assert answer(built(substitute(formula, *pairs)) != expected) != "sat"


@given(
    terms(steps=8),
    terms(steps=8),
    st.sets(st.sampled_from(VARIABLES[INT] + VARIABLES[BOOL]), min_size=1),
)
@drawn
def test_a_hypothesis_for_all_values_is_that_of_z3(body, free, variables):
    bound = {v: constructors.Const(f"any_{v}", v.sort) for v in variables}
    said = substitute(body, *bound.items())
    expected = z3.ForAll([built(v) for v in bound.values()], built(said))
    asked = [ForAll(tuple(bound.values()), said), free]
    assert same(
        ask(asked, WORK).said, ask(asked, WORK, simple=True).said, answer(expected, built(free))
    )


# ------------------------------------------------------------------ text to read
def literal(value):
    """A constant as a term; with one of Python's at the left, Python mirrors a comparison."""
    made = {bool: constructors.BoolVal, int: IntVal, Fraction: RealVal}
    return made[type(value)](value) if type(value) in made else value


class Literals(ast.NodeTransformer):
    """Of two constants a quotient is a fraction; at the left of a comparison one is a term."""

    def visit_Compare(self, node):
        self.generic_visit(node)
        left = ast.Call(ast.Name("literal", ast.Load()), [node.left], [])
        return ast.Compare(left, node.ops, node.comparators)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        sides = [node.left.operand if isinstance(node.left, ast.UnaryOp) else node.left, node.right]
        if isinstance(node.op, ast.Div) and all(isinstance(side, ast.Constant) for side in sides):
            return ast.Call(ast.Name("Fraction", ast.Load()), [node.left, node.right], [])
        return node


NAMES = {str(v): v for found in VARIABLES.values() for v in found}
NAMES |= {str(c): c for c in made.COLOURS} | {"f": made.f, "g": made.g, "p": made.p}
NAMES |= {"Fraction": Fraction, "float": FPBits, "literal": literal}
NAMES |= {name: getattr(constructors, name) for name in constructors.__all__}
NAMES["Distinct"] = lambda *of: constructors.Distinct(*map(literal, of))


def evaluated(said):
    tree = ast.fix_missing_locations(Literals().visit(ast.parse(said, mode="eval")))
    return eval(compile(tree, "infix", "eval"), dict(NAMES))


def both_literal(term):
    """A choice or an equation of literals alone: their sort is not in the text."""
    return term.op == "ite" and all(arg.op == "number" for arg in term.args[1:])


@given(terms(sorts=(*made.ARITHMETIC, made.COLOUR, made.THING), steps=20))
@settings(examples(300), suppress_health_check=list(HealthCheck))
def test_what_is_read_by_python_is_the_same_term(formula):
    assume(not any(both_literal(part) for part in below([formula])))
    found = evaluated(infix(formula))
    assert found is formula or (type(found) is bool and constructors.BoolVal(found) is formula)
    folded = " ".join(line.strip() for line in infix(formula, 30).splitlines())
    again = evaluated(f"({folded})")
    assert again is formula or (type(again) is bool and constructors.BoolVal(again) is formula)


@pytest.mark.parametrize(
    "term",
    [
        Int("n0") - (Int("n1") - 1),
        -(Int("n0") + 1) * 2,
        constructors.applied("neg", (-Int("n0"),)),
        Int("n0") - IntVal(-1),
        Int("n0") / 2 * 3 % 5,
        Int("n0") * (Int("n1") / 2),
        Real("r0") * RealVal(Fraction(1, 2)) / RealVal(Fraction(-1, 3)),
        RealVal(Fraction(1, 2)) / Real("r0"),
        (Int("n0") < 1) == (Int("n1") < (2)),
        constructors.If(Int("n0") < 1, VARIABLES[TABLE][0], VARIABLES[TABLE][1])[Int("n0") + 1],
    ],
    ids=str,
)
def test_brackets_are_where_they_are_needed(term):
    assert evaluated(infix(term)) is term


def test_a_number_of_binary64_is_read_from_its_bits():
    assert evaluated(infix(FPVal(0.1))) is FPVal(0.1)


def test_of_a_term_whose_parts_are_shared_many_times_over_the_beginning_is_said_at_once():
    term = Int("x")
    for _ in range(200):
        term = term * (term + 1)
    assert len(beginning(term, 80)) > 80
    assert beginning(Int("x") - (Int("y") - 1), 80) == infix(Int("x") - (Int("y") - 1)) == "x - (y - 1)"
