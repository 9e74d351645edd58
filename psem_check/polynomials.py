"""Arithmetic terms as polynomials over fractions.

A monomial is a sorted tuple of terms that are neither sums, products nor numerals. An integer and the
same as a real number are one: the reals contain the integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from psem_check.terms import NUMBERS, Rejected, Term, Terms

Polynomial: TypeAlias = Mapping[tuple[Term, ...], Fraction]

ONE: tuple[Term, ...] = ()
LARGEST = 20_000  # monomials
DIGITS = 1 << 16  # bits of a factor


def plus(left: Polynomial, right: Polynomial, times: Fraction | int = 1) -> Polynomial:
    """left + times * right."""
    made = dict(left)
    for monomial, factor in right.items():
        value = made.get(monomial, Fraction(0)) + times * factor
        if value:
            made[monomial] = value
        else:
            made.pop(monomial, None)
    return made


def product(left: Polynomial, right: Polynomial) -> Polynomial:
    if len(left) * len(right) > LARGEST:
        raise Rejected("a polynomial is too large")
    made: Polynomial = {}
    for monomial, factor in left.items():
        shifted = {tuple(sorted(monomial + other)): value for other, value in right.items()}
        made = plus(made, shifted, factor)
    if any(value.numerator.bit_length() > DIGITS for value in made.values()):
        raise Rejected("a number is too large")
    return made


def constant(value: Fraction | int) -> Polynomial:
    return {ONE: Fraction(value)} if value else {}


def ratio(left: Polynomial, right: Polynomial) -> Fraction | None:
    """The number by which right is to be multiplied to be left: not zero; None if there is none."""
    if not left and not right:
        return Fraction(1)
    if set(left) != set(right):
        return None
    monomial = next(iter(left))
    found = left[monomial] / right[monomial]
    return found if all(left[m] == found * right[m] for m in left) else None


class Polynomials:
    """The polynomials of the terms of a graph, each made once."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._made: dict[Term, Polynomial] = {}

    def of(self, term: Term) -> Polynomial:
        if self.terms.sorts[term] not in NUMBERS:
            raise Rejected("not a number")
        pending = [term]
        while pending:
            here = pending[-1]
            missing = [a for a in self._parts(here) if a not in self._made]
            if missing:
                pending += missing
                continue
            pending.pop()
            if here not in self._made:
                self._made[here] = self._make(here)
        return self._made[term]

    def difference(self, left: Term, right: Term) -> Polynomial:
        return plus(self.of(left), self.of(right), -1)

    def _parts(self, term: Term) -> tuple[Term, ...]:
        head, arguments = self.terms.heads[term], self.terms.arguments[term]
        if head in ("+", "*", "-", "neg", "to_real"):
            return arguments
        if head in ("/", "/_total") and self._divisor(term):
            return arguments[:1]
        return ()

    def _divisor(self, quotient: Term) -> Fraction:
        """That of a division by a number; zero for any other division."""
        head = self.terms.heads[self.terms.arguments[quotient][1]]
        return head[1] if isinstance(head, tuple) and head[0] == "real" else Fraction(0)

    def _make(self, term: Term) -> Polynomial:
        head = self.terms.heads[term]
        if isinstance(head, tuple) and head[0] in ("int", "real"):
            return constant(head[1])
        parts = [self._made[a] for a in self._parts(term)]
        if not parts:
            return {(term,): Fraction(1)}
        made = parts[0]
        if head in ("/", "/_total"):
            return plus({}, made, 1 / self._divisor(term))
        if head == "neg":
            return plus({}, made, -1)
        for part in parts[1:]:
            made = product(made, part) if head == "*" else plus(made, part, -1 if head == "-" else 1)
        return made
