"""Comparisons of polynomials that cannot hold together: products of them add up to a contradiction.

A comparison says that a polynomial is positive, not negative, or zero. So is a product of the first two
kinds, a sum of them with positive numbers before them, and, zero being zero, whatever is added that is
a multiple of the third kind. A negative number is then a contradiction, and zero if it is positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from psem_check.polynomials import ONE, Polynomial, Polynomials, constant, plus, product
from psem_check.terms import NUMBERS, Rejected, Term, Terms

NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
LARGEST = 12  # factors of a product


def products(
    polynomials: Polynomials, premises: Sequence[Term], conclusion: Term, given: Sequence[Any]
) -> bool:
    """Whether the comparisons are impossible together.

    `given`: [numerator, denominator, [premises, by position]] for each product, and
    [premise, term] for each multiple of an equation.
    """
    summands, multiples = given
    known = [compared(polynomials, premise) for premise in premises]
    total: Polynomial = {}
    strict = False
    for numerator, denominator, factors in summands:
        if not (type(numerator) is type(denominator) is int and min(numerator, denominator) > 0):
            return False
        factor = Fraction(numerator, denominator)
        if len(factors) > LARGEST:
            return False
        made, positive = constant(1), True
        for position in factors:
            relation, polynomial = known[_position(position, known)]
            if relation == "=":
                return False
            made = product(made, polynomial)
            positive = positive and relation == ">"
        total = plus(total, made, factor)
        strict = strict or positive
    for position, multiplier in multiples:
        relation, polynomial = known[_position(position, known)]
        if relation != "=":
            return False
        total = plus(total, product(polynomial, polynomials.of(multiplier)))
    left = total.get(ONE, Fraction(0))
    is_number = set(total) <= {ONE}
    return conclusion == polynomials.terms.false and is_number and (left < 0 or (left == 0 and strict))


def compared(polynomials: Polynomials, formula: Term) -> tuple[str, Polynomial]:
    """What a comparison says of a polynomial: that it is `>` zero, `>=` zero or `=` zero."""
    terms: Terms = polynomials.terms
    denied = terms.heads[formula] == "not"
    inner = terms.arguments[formula][0] if denied else formula
    relation = terms.heads[inner]
    if relation not in ("=", *NEGATED) or (denied and relation == "="):
        raise Rejected("not a comparison")
    left, right = terms.arguments[inner]
    if terms.sorts[left] not in NUMBERS:
        raise Rejected("not a comparison of numbers")
    said = NEGATED[relation] if denied else relation
    if said in ("<", "<="):
        return (">" if said == "<" else ">="), polynomials.difference(right, left)
    return said, polynomials.difference(left, right)


def _position(position: Any, known: Sequence[Any]) -> int:
    if type(position) is not int or not 0 <= position < len(known):
        raise Rejected("a premise that is not there")
    return position
