"""Normal forms: terms that mean the same, as far as is easily seen, have the same number.

A formula is an atom or a conjunction, and its negation is the negative number. Any other term is a
polynomial of atoms, a single atom if it is no number. The values of an enumeration are numbered from 0,
and an integer and the same as a real number are one. A comparison says of a polynomial that it is not
negative: one of integers has whole factors without a common divisor, and the bound is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from psem_check.polynomials import (
    ONE,
    Monomial,
    Number,
    Polynomial,
    constant,
    inverse,
    plus,
    product,
    value_of,
)
from psem_check.terms import BOOL, FLOAT, INT, ORDER, Rejected, Sort, Term, Terms
from psem_check.values import OPERATORS, bits_of, float_of

TRUE = 1
FALSE = -TRUE
MOST = 40_000  # forms
Form = int


class Forms:
    """The normal forms of the terms of a graph."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.keys: list[Any] = [None, ("true",)]  # by number: a conjunction, or what an atom is of
        self.inside: list[int] = [0, 0]  # by number: what it is made of, as bits
        self.depths = [0, 0]  # by number
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
            return {True: TRUE, False: FALSE}[head[1]] if head[0] == "bool" else None
        if head == "not":
            return -forms[0]
        if head == "and":
            return self.both(forms)
        if head == "or":
            return -self.both(-form for form in forms)
        if head == "=>":
            return self.either(-forms[0], forms[1])
        if head in ("=", "xor"):
            same = self.same(forms[0], forms[1], of)
            return same if head == "=" else -same
        if head == "distinct":
            return self.both(-self.same(a, b, of) for a, b in combinations(forms, 2))
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
            found |= key if form > 0 and isinstance(key, frozenset) else {form}
        found -= {TRUE}
        if FALSE in found or any(-form in found for form in found):
            return FALSE
        return self._named(frozenset(found), map(abs, found)) if len(found) > 1 else (*found, TRUE)[0]

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
        said = plus({}, made, inverse(made[max(made)]))
        return self._named(("=", frozenset(said.items())), self._parts(said))

    def at_least(self, made: Polynomial) -> Form:
        """That a polynomial is not negative."""
        others = {monomial: factor for monomial, factor in made.items() if monomial != ONE}
        number = made.get(ONE, 0)
        if not others:
            return TRUE if number >= 0 else FALSE
        lead: Number = others[min(others)]
        atoms = {atom for monomial in others for atom in monomial}
        if not atoms <= self._whole:
            return self._compared(plus({}, made, inverse(max(lead, -lead))))
        numerators = (factor.numerator for factor in others.values())
        denominators = (factor.denominator for factor in others.values())
        divisor = Fraction(math.gcd(*numerators), math.lcm(*denominators))
        bound = math.floor(number * inverse(divisor))
        said = plus(constant(bound), others, inverse(divisor))
        if lead > 0:
            return self._compared(said)
        return -self._compared(plus(constant(-1), said, -1))

    def _compared(self, made: Polynomial) -> Form:
        return self._named((">=", frozenset(made.items())), self._parts(made))

    def least(self, form: Form) -> tuple[Polynomial, bool]:
        """The polynomial that a comparison says not to be negative, and whether it is positive."""
        made = dict(self.keys[abs(form)][1])
        if form > 0:
            return made, False
        strict = not self._whole.issuperset(atom for monomial in made for atom in monomial)
        return plus(constant(0 if strict else -1), made, -1), strict

    # ------------------------------------------------------------------ other terms
    def _value(self, head: Any, sort: Sort, forms: Sequence[Form]) -> Form | None:
        if isinstance(head, tuple):
            if head[0] == "value":
                return self.number(constant(head[2]))
            return self.number(constant(head[1])) if head[0] in ("int", "real") else None
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
        found = self._named(("+", frozenset(made.items())), self._parts(made))
        self._polynomials[found] = made
        return found

    def monomial(self, monomial: Monomial) -> Form:
        """The number of a single atom, and of a product."""
        return monomial[0] if len(monomial) == 1 else self._named(("*", monomial), monomial)

    def _parts(self, made: Polynomial) -> set[Form]:
        """What a polynomial is made of: its atoms, and products of them."""
        atoms = {atom for monomial in made for atom in monomial}
        return atoms | {self.monomial(monomial) for monomial in made if len(monomial) > 1}

    def _worth(self, head: Any, forms: Sequence[Form]) -> Form | None:
        """What an operator makes of numerals."""
        if head not in OPERATORS:
            return None
        worth = [self._numeral(form) for form in forms]
        if None in worth:
            return None
        try:
            found = OPERATORS[head](*worth)
        except ZeroDivisionError:
            return None
        if isinstance(found, bool):
            return TRUE if found else FALSE
        if isinstance(found, float):
            return self.make(("float", bits_of(found)), FLOAT, None, [])
        return self.number(constant(found))

    def _numeral(self, form: Form) -> Fraction | float | None:
        """The number or the float that a term is, if it is one."""
        head = self.keys[form][0]
        if isinstance(head, tuple) and head[0] == "float":
            return float_of(head[1])
        value = value_of(self.polynomial(form))
        return None if value is None else Fraction(value)

    # ------------------------------------------------------------------ numbers
    def _named(self, key: Any, parts: Iterable[Form]) -> Form:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.keys)
            if found > MOST:
                raise Rejected("it has too many terms")
            self.keys.append(key)
            below = depth = 0
            for part in parts:
                below |= 1 << part | self.inside[part]
                depth = max(depth, self.depths[part])
            self.inside.append(below)
            self.depths.append(depth + 1)
            if type(key) is tuple and key[0] == "ite":
                self.conditional |= 1 << found
        return found
