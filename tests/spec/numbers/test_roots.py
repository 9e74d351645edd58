"""Roots and divisors are all that there are."""

from hypothesis import example, given
from hypothesis import strategies as st

from spec.numbers.roots import divisors, whole_roots
from tests.support.polynomials import product_of

SMALL = st.integers(-9, 9)


def at(coefficients, x):
    return sum(c * x**i for i, c in enumerate(coefficients))


@given(st.lists(SMALL, min_size=1, max_size=6).filter(lambda c: c[-1]))
def test_the_roots_among_small_numbers_are_those_at_which_a_polynomial_is_zero(coefficients):
    assert whole_roots(coefficients) == [x for x in range(1, 20) if at(coefficients, x) == 0]


@given(st.lists(st.integers(-12, 40), min_size=1, max_size=4), st.integers(-2, 2).filter(bool))
@example([5, 6, -4], -1)
@example([7, 24, 26, 36], 1)
def test_roots_are_found_beside_negative_ones_and_close_to_turns(roots, times):
    positive = sorted({root for root in roots if root > 0})
    assert whole_roots([times * c for c in product_of(roots)]) == positive


@given(st.lists(st.integers(1, 10**9) | st.integers(1, 5), max_size=5), st.integers(1, 9))
def test_large_roots_are_found_too(roots, times):
    assert whole_roots([times * c for c in product_of(roots)]) == sorted({*roots})


@given(st.integers(-5000, 5000).filter(bool))
def test_divisors_are_all_that_divide(number):
    assert divisors(number) == [d for d in range(1, abs(number) + 1) if number % d == 0]
