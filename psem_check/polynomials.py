"""Polynomials over fractions: numbers by monomial, which is what it multiplies, the largest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product as each
from typing import TypeAlias

from psem_check.terms import Rejected

Monomial: TypeAlias = tuple[int, ...]
Number: TypeAlias = int | Fraction  # whole numbers are integers, which is quicker
Polynomial: TypeAlias = Mapping[Monomial, Number]

ONE: Monomial = ()
LARGEST = 20_000  # monomials
DEGREE = 100  # factors of one
DIGITS = 1 << 16  # bits of a factor, above or below its line


def exact(value: Number) -> Number:
    """The same number, an integer if it is whole. Raises Rejected if it is too large."""
    if type(value) is int and value.bit_length() <= DIGITS:
        return value
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > DIGITS:
        raise Rejected("a number is too large")
    return value.numerator if value.denominator == 1 else value


def inverse(value: Number) -> Number:
    return value if value in (1, -1) else exact(1 / Fraction(value))


def plus(left: Polynomial, right: Polynomial, times: Number = 1) -> Polynomial:
    """left + times * right."""
    made = dict(left)
    for monomial, factor in right.items():
        value = made.get(monomial, 0) + times * factor
        if value:
            made[monomial] = exact(value)
        else:
            made.pop(monomial, None)
    return made


def product(left: Polynomial, right: Polynomial) -> Polynomial:
    degree = max(map(len, left), default=0) + max(map(len, right), default=0)
    if len(left) * len(right) > LARGEST or degree > DEGREE:
        raise Rejected("a polynomial is too large")
    made: dict[Monomial, Number] = {}
    for (monomial, factor), (other, value) in each(left.items(), right.items()):
        both = tuple(sorted(monomial + other)[::-1])
        made[both] = exact(made.get(both, 0) + factor * value)
    return {monomial: factor for monomial, factor in made.items() if factor}


def with_atoms(made: Polynomial, of: Callable[[int], Polynomial]) -> Polynomial:
    """A polynomial with others in place of its atoms."""
    total: Polynomial = {}
    for monomial, factor in made.items():
        part = constant(factor)
        for atom in monomial:
            part = product(part, of(atom))
        total = plus(total, part)
    return total


def constant(value: Number) -> Polynomial:
    return {ONE: exact(value)} if value else {}


def value_of(polynomial: Polynomial) -> Number | None:
    """The number that a polynomial is, if it is one."""
    return polynomial.get(ONE, 0) if set(polynomial) <= {ONE} else None
