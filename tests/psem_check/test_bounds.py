"""Comparisons of whole numbers are rounded: what the checker takes for equal, a solver does too."""

from hypothesis import given
from hypothesis import strategies as st

from psem_check.arithmetic import whole_bounds
from psem_check.polynomials import Polynomials
from psem_check.terms import INT, REAL, Symbol, Terms
from tests.support.certificates import Solver

few = st.integers(-6, 6)
sides = st.tuples(few, few, st.integers(-12, 12), st.sampled_from([">=", ">=", ">=", "<=", ">"]))


def taken_for_equal(one, other, sort=INT):
    """Whether the checker takes two comparisons for equal, and whether a solver does."""
    terms = Terms()
    terms.symbols = [Symbol("x", (), sort), Symbol("y", (), sort)]

    def comparison(x, y, bound, relation):
        products = [
            terms.make("*", terms.number(factor, sort), terms.apply(i))
            for i, factor in enumerate((x, y))
        ]
        return terms.make(relation, terms.make("+", *products), terms.number(bound, sort))

    said = terms.equal(comparison(*one), comparison(*other))
    return whole_bounds(Polynomials(terms), [], said, []), Solver(terms).follows([], said)


@given(sides, sides)
def test_comparisons_that_are_taken_for_equal_are(one, other):
    taken, equal = taken_for_equal(one, other)
    assert equal or not taken


@given(few, few, st.integers(-12, 12), st.integers(1, 5))
def test_a_common_factor_is_divided_out_and_the_bound_rounded_up(x, y, bound, factor):
    scaled = (factor * x, factor * y, factor * bound - (factor - 1), ">=")
    taken, equal = taken_for_equal(scaled, (x, y, bound, ">="))
    assert equal and taken == ((x, y) != (0, 0))


@given(few, st.integers(-12, 12), st.integers(2, 5))
def test_a_bound_that_is_rounded_down_is_another(y, bound, factor):
    scaled = (factor, factor * y, factor * bound + 1, ">=")
    assert taken_for_equal(scaled, (1, y, bound, ">=")) == (False, False)


def test_real_numbers_are_not_rounded():
    assert not taken_for_equal((2, 0, 1, ">="), (1, 0, 1, ">="), REAL)[0]
    assert not taken_for_equal((2, 0, 2, ">="), (1, 0, 1, ">="), REAL)[0]
