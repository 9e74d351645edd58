"""Sums of products as products: what SymPy's `factor` finds, where it need not search.

A sum that is linear in a symbol, a*x + b, has the factors of the greatest common divisor of a and b,
and one more, what this divisor leaves of it. Almost every formula of what is held and sent is one.
"""

from __future__ import annotations

from math import lcm
from typing import Any

import sympy
from sympy.polys.rings import PolyElement, PolyRing

Powers = tuple[int, ...]  # of each symbol
Terms = dict[Powers, Any]  # the coefficient of each product of powers


def factored(expanded: Any) -> Any:
    """An expanded formula as a product of sums, as `sympy.factor` has it."""
    symbols = sorted(expanded.free_symbols, key=str)
    terms = _terms(expanded, symbols)
    if terms is None:
        return sympy.factor(expanded)
    if len(terms) < 2:
        return expanded
    least = tuple(map(min, zip(*terms, strict=True)))
    below = lcm(*(coefficient.q for coefficient in terms.values()))
    ring = PolyRing(symbols, sympy.ZZ)
    whole = ring.from_dict(
        {
            tuple(power - low for power, low in zip(powers, least, strict=True)): int(each * below)
            for powers, each in terms.items()
        }
    )
    content, whole = whole.primitive()
    sign = -1 if whole.LC < 0 else 1
    powers = (symbol**low for symbol, low in zip(symbols, least, strict=True))
    product = sympy.Mul(*powers, *(of.as_expr() for of in _factors(whole * sign)))
    outside = sympy.Rational(sign * int(content), below)
    return sympy.Mul(outside, product, evaluate=abs(outside) == 1 or not product.is_Add)


def _terms(expanded: Any, symbols: list[Any]) -> Terms | None:
    """The coefficients of a sum of products of powers of symbols; None of any other formula."""
    found: Terms = {}
    for term in sympy.Add.make_args(expanded):
        coefficient, product = term.as_coeff_Mul()
        powers = product.as_powers_dict() if product != 1 else {}
        known = all(base.is_Symbol and power.is_Integer for base, power in powers.items())
        if not known or not coefficient.is_Rational:
            return None
        found[tuple(int(powers.get(symbol, 0)) for symbol in symbols)] = coefficient
    return found


def _factors(whole: PolyElement[Any]) -> list[PolyElement[Any]]:
    """The factors of a polynomial, each as often as it is one; none is a monomial or a number."""
    if whole.is_ground:
        return []
    linear = [i for i in range(whole.ring.ngens) if whole.degree(i) == 1]
    if not linear:
        return [factor for factor, times in whole.factor_list()[1] for _ in range(times)]
    apart = ([term for term in whole.terms() if term[0][i]] for i in linear)
    times = whole.ring.from_terms(min(apart, key=len))
    divisor = times.gcd(whole - times)
    return [*_factors(divisor), whole.quo(divisor)]
