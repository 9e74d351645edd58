"""What follows by connectives and equality: what a table of truth and a solver say, and no more."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_check.cases import Cases
from psem_check.forms import Forms
from psem_check.proofs import LAWS
from psem_check.terms import BOOL, INT, REAL, Rejected, Symbol, Terms
from tests.support.certificates import Solver, follows, worth
from tests.support.drawn import MODE, SYMBOLS, THING, drawn_formulas

ATOMS = 4
CONNECTIVES = ("not", "and", "or", "=>", "=", "ite")


@st.composite
def connected(draw, count):
    """A graph, and formulas of a few atoms in it."""
    terms = Terms()
    terms.symbols = [Symbol(f"p{i}", (), BOOL) for i in range(ATOMS)]
    atoms = [terms.make(i) for i in range(ATOMS)]

    def made(depth):
        if not depth or draw(st.integers(0, 4)) == 0:
            return draw(st.sampled_from([*atoms, *atoms, terms.true, terms.false]))
        head = draw(st.sampled_from(CONNECTIVES))
        size = {"not": 1, "ite": 3}.get(head, 2)
        many = draw(st.integers(2, 3)) if head in ("and", "or") else size
        return terms.make(head, *(made(depth - 1) for _ in range(many)))

    return terms, atoms, [made(3) for _ in range(count)]


@given(connected(3))
def test_what_follows_is_what_a_table_of_truth_says(drawn):
    terms, atoms, (*premises, conclusion) = drawn
    truth = [
        dict(zip(atoms, row, strict=True))
        for row in product([terms.true, terms.false], repeat=len(atoms))
    ]

    def holds(formula, row):
        return worth(terms, terms.substitute(formula, row))

    expected = all(holds(conclusion, row) for row in truth if all(holds(p, row) for p in premises))
    assert follows(terms, premises, conclusion) == expected


@given(drawn_formulas(2, 5))
def test_what_follows_is_valid(drawn):
    terms, (*premises, conclusion) = drawn
    if follows(terms, premises, conclusion):
        assert Solver(terms).follows(premises, conclusion) is not False


@given(drawn_formulas(2, 5, sorts=(THING,)))
def test_of_functions_and_equality_all_that_is_valid_follows(drawn):
    terms, (*premises, conclusion) = drawn
    assert follows(terms, premises, conclusion) == Solver(terms).follows(premises, conclusion)


# ---------------------------------------------------------------------------- numbers
few = st.integers(-6, 6)
sides = st.tuples(few, few, st.integers(-12, 12), st.sampled_from([">=", ">=", "<=", ">", "="]))


def taken_for_equal(one, other, sort=INT):
    """Whether the checker takes two comparisons for equal, and whether a solver does."""
    terms = Terms()
    terms.symbols = [Symbol("x", (), sort), Symbol("y", (), sort)]

    def comparison(x, y, bound, relation):
        products = [
            terms.make("*", terms.number(factor, sort), terms.make(i))
            for i, factor in enumerate((x, y))
        ]
        return terms.make(relation, terms.make("+", *products), terms.number(bound, sort))

    said = terms.equal(comparison(*one), comparison(*other))
    return follows(terms, [], said), Solver(terms).follows([], said)


@given(sides, sides, st.sampled_from([INT, REAL]))
def test_comparisons_that_are_taken_for_equal_are(one, other, sort):
    taken, equal = taken_for_equal(one, other, sort)
    assert equal or not taken


@given(few, few, st.integers(-12, 12), st.integers(1, 5))
def test_a_common_factor_is_divided_out_and_the_bound_rounded_up(x, y, bound, factor):
    scaled = (factor * x, factor * y, factor * bound - (factor - 1), ">=")
    assert taken_for_equal(scaled, (x, y, bound, ">=")) == (True, True)


@given(few, st.integers(-12, 12), st.integers(2, 5))
def test_a_bound_that_is_rounded_down_is_another(y, bound, factor):
    scaled = (factor, factor * y, factor * bound + 1, ">=")
    assert taken_for_equal(scaled, (1, y, bound, ">=")) == (False, False)


def test_real_numbers_are_not_rounded():
    assert not taken_for_equal((2, 0, 1, ">="), (1, 0, 1, ">="), REAL)[0]
    assert taken_for_equal((2, 0, 2, ">="), (1, 0, 1, ">="), REAL) == (True, True)


@pytest.fixture
def named():
    terms = Terms()
    terms.symbols = [*SYMBOLS, Symbol("k", (INT,), INT)]
    by_name = {s.name: i for i, s in enumerate(terms.symbols)}
    return terms, lambda name, *of: terms.make(by_name[name], *of)


def test_equals_are_replaced_inside_of_functions_and_sums(named):
    terms, of = named
    m, n, one = of("m"), of("n"), terms.number(1, INT)
    following = terms.equal(m, terms.make("+", n, one))
    same = terms.equal(of("k", terms.make("-", m, one)), of("k", n))
    assert follows(terms, [following], same)
    assert not follows(terms, [following], terms.equal(of("k", m), of("k", n)))


def test_an_equation_of_a_term_with_one_that_it_is_in_comes_to_an_end(named):
    terms, of = named
    once, m, n = of("k", of("m")), of("m"), of("n")
    twice = of("k", once)
    assert follows(terms, [terms.equal(twice, m), terms.equal(of("k", twice), m)], terms.equal(once, m))
    assert not follows(terms, [terms.equal(twice, m), terms.equal(m, n)], terms.equal(once, m))


def test_values_of_an_enumeration_differ_and_a_law_says_that_there_are_no_others(named):
    terms, of = named
    s = of("s")
    values = [terms.make((MODE, i)) for i in range(3)]
    others = [terms.negation(terms.equal(s, value)) for value in values[:2]]
    assert follows(terms, [terms.equal(s, values[0])], others[1])
    assert not follows(terms, others, terms.equal(s, values[2]))
    law = LAWS["value"](terms, s)
    assert follows(terms, [*others, law], terms.equal(s, values[2]))


def test_division_by_zero_is_nothing_in_particular(named):
    terms, of = named
    zero = terms.number(0, REAL)
    quotient = terms.make("/", of("x"), zero)
    assert not follows(terms, [], terms.equal(quotient, zero))
    assert follows(
        terms, [terms.equal(of("y"), of("x"))], terms.equal(quotient, terms.make("/", of("y"), zero))
    )


def test_too_many_cases_are_rejected():
    terms = Terms()
    terms.symbols = [Symbol(f"p{i}", (), BOOL) for i in range(56)]
    atoms = [terms.make(i) for i in range(56)]
    # no row of a table of eight pigeons and seven holes
    rows = [atoms[7 * i : 7 * i + 7] for i in range(8)]
    clauses = [terms.make("or", *row) for row in rows]
    for hole in range(7):
        pairs = [(rows[i][hole], rows[j][hole]) for i in range(8) for j in range(i)]
        clauses += [terms.negation(terms.make("and", *pair)) for pair in pairs]
    forms = Forms(terms)
    with pytest.raises(Rejected, match="too many cases"):
        Cases(forms, 1000).impossible(map(forms.of, clauses))
