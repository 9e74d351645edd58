"""Formulas as products: what SymPy's search for factors finds."""

import operator
from functools import reduce

import sympy
from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.factors import factored

SYMBOLS = [sympy.Symbol(name, positive=True) for name in ("b", "h", "t", "d_v")]
ONES = st.sampled_from([sympy.Integer(1), *SYMBOLS])
TERMS = st.builds(lambda number, a, b: number * a * b, st.integers(-3, 3).filter(bool), ONES, ONES)
SUMS = st.lists(TERMS, min_size=1, max_size=3).map(sum)
FRACTIONS = st.builds(
    lambda a, b, c: a / (b * c), st.integers(1, 6).map(sympy.Integer), ONES, st.integers(1, 4)
)


def sums_of(formula):
    """The sums that are multiplied, each as often as it is, whatever their signs."""
    powers = (f.as_base_exp() for f in sympy.Mul.make_args(formula))
    found = [base for base, power in powers if base.is_Add for _ in range(abs(power))]
    return sorted(min(str(f), str(sympy.expand(-f))) for f in found)


@given(st.lists(SUMS, min_size=1, max_size=3), FRACTIONS)
def test_a_product_of_sums_is_found_again(sums, fraction):
    whole = sympy.expand(reduce(operator.mul, sums) * fraction)
    found = factored(whole)
    assert sympy.expand(found - whole) == 0
    assert sums_of(found) == sums_of(sympy.factor(whole))


def test_a_formula_that_is_linear_in_no_symbol_is_searched():
    b, h, t, _ = SYMBOLS
    whole = sympy.expand((h**2 - 1) * (t - 1) ** 2 * (b**2 + h**2) / b**2)
    assert str(factored(whole)) == "(b**2 + h**2)*(h - 1)*(h + 1)*(t - 1)**2/b**2"


def test_what_is_rounded_is_left_to_the_search():
    h, t = SYMBOLS[1:3]
    rounded = sympy.ceiling(h / t)
    assert factored(3 * rounded + h * rounded) == (h + 3) * rounded
