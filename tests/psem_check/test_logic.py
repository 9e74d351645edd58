"""What follows by propositional logic: what a table of truth says, no more and no less."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_check.logic import Logic
from psem_check.terms import BOOL, INT, Rejected, Symbol, Terms
from psem_check.values import value_of

ATOMS = 4
CONNECTIVES = ("not", "and", "or", "=>", "xor", "=", "ite", "distinct")


@st.composite
def formulas(draw, count):
    """A graph, and formulas of a few atoms in it."""
    terms = Terms()
    terms.symbols = [Symbol(f"p{i}", (), BOOL) for i in range(ATOMS)]
    atoms = [terms.apply(i) for i in range(ATOMS)]

    def made(depth):
        if not depth or draw(st.integers(0, 4)) == 0:
            return draw(st.sampled_from([*atoms, *atoms, terms.true, terms.false]))
        head = draw(st.sampled_from(CONNECTIVES))
        size = {"not": 1, "ite": 3}.get(head, 2)
        many = draw(st.integers(2, 3)) if head in ("and", "or", "distinct") else size
        return terms.make(head, *(made(depth - 1) for _ in range(many)))

    return terms, atoms, [made(3) for _ in range(count)]


@given(formulas(3))
def test_what_follows_is_what_a_table_of_truth_says(drawn):
    terms, atoms, (*premises, conclusion) = drawn
    truth = [
        dict(zip(atoms, row, strict=True))
        for row in product([terms.true, terms.false], repeat=len(atoms))
    ]

    def holds(formula, row):
        return value_of(terms, terms.substitute(formula, row))

    expected = all(holds(conclusion, row) for row in truth if all(holds(p, row) for p in premises))
    assert Logic(terms).follows(premises, conclusion) == expected


@pytest.fixture
def numbers():
    terms = Terms()
    terms.symbols = [Symbol(name, (), INT) for name in "xyz"]
    return terms, *(terms.apply(i) for i in range(3))


def test_an_equation_of_terms_is_one_atom_either_way_round(numbers):
    terms, x, y, z = numbers
    assert Logic(terms).follows([terms.equal(x, y)], terms.equal(y, x))
    assert Logic(terms).follows([], terms.equal(x, x))
    assert not Logic(terms).follows([terms.equal(x, y)], terms.equal(x, z))
    assert not Logic(terms).follows([terms.equal(x, y), terms.equal(y, z)], terms.equal(x, z))


def test_of_terms_that_are_distinct_every_two_are(numbers):
    terms, x, y, z = numbers
    said = terms.make("distinct", x, y, z)
    assert Logic(terms).follows([said], terms.negation(terms.equal(z, x)))
    assert not Logic(terms).follows([terms.negation(terms.equal(x, y))], said)


def test_a_conditional_term_is_an_atom_of_its_equation(numbers):
    terms, x, y, z = numbers
    chosen = terms.make("ite", terms.equal(x, y), x, z)
    assert not Logic(terms).follows([terms.equal(x, y)], terms.equal(chosen, x))


def test_too_many_cases_are_rejected():
    terms = Terms()
    terms.symbols = [Symbol(f"p{i}", (), BOOL) for i in range(56)]
    atoms = [terms.apply(i) for i in range(56)]
    # no row of a table of eight pigeons and seven holes
    rows = [atoms[7 * i : 7 * i + 7] for i in range(8)]
    clauses = [terms.make("or", *row) for row in rows]
    for hole in range(7):
        pairs = [(rows[i][hole], rows[j][hole]) for i in range(8) for j in range(i)]
        clauses += [terms.negation(terms.make("and", *pair)) for pair in pairs]
    with pytest.raises(Rejected, match="too many cases"):
        Logic(terms, 1000).follows(clauses, terms.false)
