"""Closed terms are worth what a solver says; substitution and questions are what they are called."""

from fractions import Fraction

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from psem_check.forms import Forms
from psem_check.terms import BOOL, FLOAT, INT, REAL, Rejected, Symbol, Terms
from psem_model.certify.questions import asked, question
from tests.support.certificates import Solver, worth

WHOLE = ("+", "*", "-", "div", "mod", "neg")
EXACT = ("+", "*", "-", "/", "neg")
RELATIONS = ("<", "<=", ">", ">=", "=")


@st.composite
def closed(draw, sort=None, depth=4, symbols=()):
    """A graph and a term in it; without symbols, unless some are given."""
    terms = Terms()
    terms.symbols = [Symbol(name, (), of) for name, of in symbols]

    def made(sort, depth):
        known = [terms.make(i) for i, (_, of) in enumerate(symbols) if of == sort]
        if sort == BOOL:
            if not depth:
                return draw(st.sampled_from([terms.true, terms.false]))
            of = draw(st.sampled_from([INT, REAL]))
            sides = made(of, depth - 1), made(of, depth - 1)
            return terms.make(draw(st.sampled_from(RELATIONS)), *sides)
        if not depth:
            number = draw(st.integers(-4, 4))
            value = number if sort == INT else Fraction(number, draw(st.integers(1, 3)))
            return draw(st.sampled_from([terms.number(value, sort), *known]))
        kinds = (*(WHOLE if sort == INT else (*EXACT, "to_real")), "ite")
        kind = draw(st.sampled_from(kinds))
        if kind == "ite":
            return terms.make(kind, made(BOOL, depth - 1), made(sort, depth - 1), made(sort, depth - 1))
        if kind == "to_real":
            return terms.make(kind, made(INT, depth - 1))
        count = 1 if kind == "neg" else 2
        return terms.make(kind, *(made(sort, depth - 1) for _ in range(count)))

    return terms, made(sort or draw(st.sampled_from([BOOL, INT, REAL])), depth)


@given(closed())
def test_a_closed_term_is_worth_what_a_solver_says(drawn):
    terms, term = drawn
    found = worth(terms, term)
    if found is None:
        assert divides_by_zero(terms, term)
        return
    solved = z3.simplify(Solver(terms).of(term))
    said = z3.is_true(solved) if z3.is_bool(solved) else Fraction(solved.as_string())
    assert found == said
    assert isinstance(found, bool) == z3.is_bool(solved)


def divides_by_zero(terms, term):
    divisions = [t for t in terms.below([term]) if terms.heads[t] in ("/", "div", "mod")]
    return any(worth(terms, terms.arguments[t][1]) in (0, None) for t in divisions)


@given(st.floats(), st.floats(), st.floats())
def test_floats_are_added_and_compared_as_the_machine_does(a, b, c):
    terms = Terms()
    literals = [terms.make((FLOAT, number.hex())) for number in (a, b, c)]
    total = terms.make("fp.add", *literals[:2])
    compared = {"fp.eq": a + b == c, "fp.lt": a + b < c, "fp.gt": a + b > c}
    for relation, holds in compared.items():
        assert worth(terms, terms.make(relation, total, literals[2])) == holds


SYMBOLS = (("n", INT), ("m", INT), ("x", REAL))


@given(
    closed(sort=REAL, depth=3, symbols=SYMBOLS), st.lists(st.integers(-3, 3), min_size=3, max_size=3)
)
def test_a_polynomial_is_worth_what_its_term_is(drawn, numbers):
    terms, term = drawn
    forms = Forms(terms)
    terms_of = {forms.of(here): here for here in reversed(terms.below([term]))}
    values = {
        terms.make(i): terms.number(number, sort)
        for i, (number, (_, sort)) in enumerate(zip(numbers, SYMBOLS, strict=True))
    }

    def at(here):
        return worth(terms, terms.substitute(here, values))

    expected = at(term)
    parts = [
        [factor, *(at(terms_of[atom]) for atom in monomial)]
        for monomial, factor in forms.polynomial(forms.of(term)).items()
    ]
    if expected is not None and all(None not in part for part in parts):
        assert sum(map(_product, parts)) == expected


def _product(factors):
    made = Fraction(1)
    for factor in factors:
        made *= factor
    return made


@given(closed(sort=BOOL, depth=3, symbols=SYMBOLS))
def test_a_question_is_the_same_whatever_its_symbols_are_called(drawn):
    terms, term = drawn
    text = question(terms, [term])
    terms.symbols = [Symbol(f"{s.name}_", s.arguments, s.sort) for s in terms.symbols]
    assert question(terms, [term]) == text
    graph, facts = asked(text)
    assert question(graph.terms, facts) == text


@given(closed(sort=BOOL, depth=3, symbols=SYMBOLS))
def test_a_question_means_what_the_formula_means(drawn):
    terms, term = drawn
    graph, (fact,) = asked(question(terms, [term]))
    used = sorted(terms.symbols_in([term]), key=lambda s: terms.symbols[s].name)
    assert len(graph.terms.symbols) == len(used)
    assert len(graph.terms.below([fact])) == len(terms.below([term]))


def test_substitution_is_at_once_and_keeps_sorts():
    terms = Terms()
    terms.symbols = [Symbol(name, (), sort) for name, sort in SYMBOLS]
    n, m, x = (terms.make(i) for i in range(3))
    assert terms.substitute(terms.make("-", n, m), {n: m, m: n}) == terms.make("-", m, n)
    with pytest.raises(Rejected):
        terms.substitute(n, {n: x})
    with pytest.raises(Rejected):
        terms.substitute(n, {terms.make("-", n, m): n})
