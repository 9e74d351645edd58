"""Normal forms: terms that mean the same, as far as is easily seen, have the same number.

A formula is an atom or a conjunction, and its negation is the negative number. Any other term is a
polynomial of atoms, a single atom if it is no number. The values of an enumeration are numbered from 0,
and an integer and the same as a real number are one. A comparison says of a polynomial that it is not
negative: one of integers has whole factors without a common divisor, and the bound is rounded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from psem_check.polynomials import (
    ONE,
    Monomial,
    Polynomial,
    constant,
    exact,
    inverse,
    plus,
    product,
    value_of,
)
from psem_check.terms import BOOL, FLOAT, INT, ORDER, Rejected, Sort, Term, Terms

TRUE = 1
FALSE = -TRUE
MOST = 40_000  # forms
FLOATS = {
    "fp.add": operator.add,
    "fp.eq": operator.eq,
    "fp.lt": operator.lt,
    "fp.gt": operator.gt,
}
Form = int


class Forms:
    """The normal forms of the terms of a graph."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.keys: list[Any] = [None, ("true",)]  # by number: what it is, and what of
        self.inside: list[int] = [0, 0]  # by number: what it is made of, as bits
        self.conditional = 0  # terms that are one of two, as bits
        self._numbers: dict[Any, Form] = {}
        self._polynomials: dict[Form, Polynomial] = {}
        self._whole: set[Form] = set()
        self._made: dict[Term, Form] = {}

    def of(self, term: Term) -> Form:
        """The normal form of a term."""
        terms, made = self.terms, self._made
        for here in terms.below([term], made):
            arguments = terms.arguments[here]
            of = terms.sorts[arguments[0]] if arguments else None
            forms = [made[a] for a in arguments]
            made[here] = self.make(terms.heads[here], terms.sorts[here], of, forms)
        return made[term]

    def make(self, head: Any, sort: Sort, of: Sort, forms: Sequence[Form]) -> Form:
        """That of an operator or a symbol, of this sort, with arguments, the first of a sort `of`."""
        found = self._formula(head, of, forms) if sort == BOOL else self._value(head, sort, forms)
        if found is None:
            found = self._worth(head, forms)
        if found is None:
            found = self._named((head, sort, of, *forms), map(abs, forms))
            if sort == INT:
                self._whole.add(found)
        return found

    # ------------------------------------------------------------------ formulas
    def _formula(self, head: Any, of: Sort, forms: Sequence[Form]) -> Form | None:
        if isinstance(head, tuple):
            return TRUE if head[1] else FALSE
        if head == "not":
            return -forms[0]
        if head == "and":
            return self.both(forms)
        if head == "or":
            return -self.both(-form for form in forms)
        if head == "=>":
            return self.either(-forms[0], forms[1])
        if head == "=":
            return self.same(forms[0], forms[1], of)
        if head == "ite":
            condition, then, otherwise = forms
            return self.both([self.either(-condition, then), self.either(condition, otherwise)])
        if head in ORDER:
            left, right = map(self.polynomial, forms)
            said = plus(left, right, -1) if head in (">=", "<") else plus(right, left, -1)
            return self.at_least(said) if head in (">=", "<=") else -self.at_least(said)
        return None

    def both(self, formulas: Iterable[Form]) -> Form:
        """That all of them hold; where one is a conjunction itself, its parts."""
        found: set[Form] = set()
        for form in formulas:
            key = self.keys[abs(form)]
            found |= key[1] if form > 0 and key[0] == "and" else {form}
        found -= {TRUE}
        if FALSE in found or any(-form in found for form in found):
            return FALSE
        if len(found) < 2:
            return (*found, TRUE)[0]
        return self._named(("and", frozenset(found)), map(abs, found))

    def either(self, one: Form, other: Form) -> Form:
        return -self.both([-one, -other])

    def same(self, one: Form, other: Form, sort: Sort) -> Form:
        """That two terms of a sort are equal."""
        if one == other:
            return TRUE
        if sort == BOOL:
            return self.both([self.either(-one, other), self.either(one, -other)])
        return self.zero(plus(self.polynomial(one), self.polynomial(other), -1))

    def zero(self, made: Polynomial) -> Form:
        """That a polynomial is zero."""
        if value_of(made) is not None:
            return FALSE if made else TRUE
        return self._sum("=", plus({}, made, inverse(made[max(made)])))

    def at_least(self, made: Polynomial) -> Form:
        """That a polynomial is not negative."""
        others = {monomial: factor for monomial, factor in made.items() if monomial != ONE}
        number = made.get(ONE, 0)
        if not others:
            return TRUE if number >= 0 else FALSE
        numerator, denominator = 0, 1
        for factor in others.values():
            numerator = math.gcd(numerator, factor.numerator)
            denominator = math.lcm(denominator, factor.denominator)
            scale = exact(Fraction(denominator, numerator))
        whole = self._is_whole(others)
        said = plus(constant(math.floor(number * scale) if whole else number * scale), others, scale)
        if whole and said[min(others)] < 0:
            return -self._sum(">=", plus(constant(-1), said, -1))
        return self._sum(">=", said)

    def _is_whole(self, made: Polynomial) -> bool:
        return self._whole.issuperset(atom for monomial in made for atom in monomial)

    def compared(self, form: Form) -> tuple[str, Polynomial]:
        """What a comparison says of a polynomial: that it is `>` or `>=` zero."""
        key = self.keys[abs(form)]
        if key[0] != ">=":
            raise Rejected("not a comparison")
        made = dict(key[1])
        if form > 0:
            return ">=", made
        whole = self._is_whole(made)
        return (">=" if whole else ">"), plus(constant(-1 if whole else 0), made, -1)

    # ------------------------------------------------------------------ other terms
    def _value(self, head: Any, sort: Sort, forms: Sequence[Form]) -> Form | None:
        if isinstance(head, tuple) and sort != FLOAT:
            return self.number(constant(head[1]))
        if head in ("+", "*", "-", "neg", "to_real"):
            first, *others = map(self.polynomial, forms)
            if head == "neg":
                return self.number(plus({}, first, -1))
            for other in others:
                times = -1 if head == "-" else 1
                first = product(first, other) if head == "*" else plus(first, other, times)
            return self.number(first)
        if head == "ite":
            condition, then, otherwise = forms
            if condition in (TRUE, FALSE) or then == otherwise:
                return otherwise if condition == FALSE else then
            if condition < 0:
                return self.make(head, sort, BOOL, [-condition, otherwise, then])
        divisor = value_of(self.polynomial(forms[1])) if head == "/" else None
        if divisor:
            return self.number(plus({}, self.polynomial(forms[0]), inverse(divisor)))
        return None

    def polynomial(self, form: Form) -> Polynomial:
        """The polynomial that a term is which is no formula."""
        return self._polynomials.get(form, {(form,): 1})

    def number(self, made: Polynomial) -> Form:
        """The form of a polynomial."""
        if len(made) == 1:
            ((monomial, factor),) = made.items()
            if len(monomial) == 1 and factor == 1:
                return monomial[0]
        found = self._sum("+", made)
        self._polynomials[found] = made
        return found

    def _sum(self, kind: str, made: Polynomial) -> Form:
        """What is said of a polynomial, or itself: it is made of its atoms, and products of them."""
        atoms = {atom for monomial in made for atom in monomial}
        products = {self.monomial(monomial) for monomial in made if len(monomial) > 1}
        return self._named((kind, frozenset(made.items())), atoms | products)

    def monomial(self, monomial: Monomial) -> Form:
        """The number of a single atom, and of a product."""
        return monomial[0] if len(monomial) == 1 else self._named(("*", monomial), monomial)

    def _worth(self, head: Any, forms: Sequence[Form]) -> Form | None:
        """What an operator makes of numerals: SMT-LIB's division, by zero of any value; floats by the
        machine's own.
        """
        if head in ("div", "mod"):
            m, n = (value_of(self.polynomial(form)) for form in forms)
            if m is None or not n:
                return None
            quotient = m // n if n > 0 else -(m // -n)
            return self.number(constant(quotient if head == "div" else m - n * quotient))
        if head in FLOATS:
            numerals = [self.keys[form][0] for form in forms]
            if all(isinstance(numeral, tuple) for numeral in numerals):
                found = FLOATS[head](*(float.fromhex(text) for _, text in numerals))
                if head == "fp.add":
                    return self.make((FLOAT, found.hex()), FLOAT, None, [])
                return TRUE if found else FALSE
        return None

    # ------------------------------------------------------------------ numbers
    def _named(self, key: tuple[Any, ...], parts: Iterable[Form]) -> Form:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.keys)
            if found > MOST:
                raise Rejected("it has too many terms")
            self.keys.append(key)
            below = 0
            for part in parts:
                below |= 1 << part | self.inside[part]
            self.inside.append(below)
            if key[0] == "ite":
                self.conditional |= 1 << found
        return found
