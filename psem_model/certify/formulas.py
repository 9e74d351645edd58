"""The checker's normal forms as terms again. Not trusted: the checker reads what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from psem_check.forms import TRUE, Form, Forms
from psem_check.polynomials import ONE, Polynomial
from psem_check.terms import BOOL, INT, NUMBERS, REAL, Sort, Term


class Unwritten(Exception):
    """A step that the checker's rules do not show."""


class Formulas:
    """Terms whose normal forms are given ones; those of a question, where it has them."""

    def __init__(self, forms: Forms, facts: Sequence[Term]) -> None:
        self.forms = forms
        self.terms = forms.terms
        self._known: dict[tuple[Form, Sort], Term] = {}
        for fact in facts:
            forms.of(fact)
        for term in self.terms.below(facts):
            self._known.setdefault((forms.of(term), self.terms.sorts[term]), term)

    def of(self, form: Form) -> Term:
        """The formula of a form."""
        if form == TRUE:
            return self.terms.true
        key = self.forms.keys[abs(form)]
        if self.is_comparison(form):
            return self._compared(*self.forms.compared(form))
        if form < 0:
            return self.terms.negation(self.of(-form))
        if key[0] == "and":
            return self.terms.conjunction([self.of(part) for part in sorted(key[1], key=abs)])
        if key[0] == "=":
            return self._compared("=", dict(key[1]))
        return self._atom(form, BOOL)

    def is_comparison(self, form: Form) -> bool:
        return bool(self.forms.keys[abs(form)][0] == ">=")

    def sort_of(self, made: Polynomial) -> Sort:
        """That of a polynomial: of its atoms, if it is none of numbers."""
        sorts = {self.forms.keys[atom][1] for monomial in made for atom in monomial}
        if sorts <= {INT} and all(type(factor) is int for factor in made.values()):
            return INT
        return REAL if sorts <= {*NUMBERS} else min(sorts, key=str)

    def _compared(self, relation: str, made: Polynomial) -> Term:
        """Both sides without a minus."""
        sort = self.sort_of(made)
        left = {m: factor for m, factor in made.items() if factor > 0}
        right = {m: -factor for m, factor in made.items() if factor < 0}
        if sort not in NUMBERS and len(left) != 1:
            left, right = right, left
        sides = self.number(left, sort), self.number(right, sort)
        return self.terms.make(relation, *sides)

    def number(self, made: Polynomial, sort: Sort) -> Term:
        """The term of a polynomial."""
        terms = self.terms
        if sort not in NUMBERS:
            return self._value(made, sort)
        parts = []
        for monomial, factor in sorted(made.items()):
            factors = [self._atom(atom, sort) for atom in monomial]
            if factor != 1 or not monomial:
                factors = [terms.number(Fraction(factor), sort), *factors]
            parts.append(terms.make("*", *factors) if len(factors) > 1 else factors[0])
        return terms.make("+", *parts) if len(parts) > 1 else (*parts, terms.number(0, sort))[0]

    def _value(self, made: Polynomial, sort: Sort) -> Term:
        """An atom, or a value of an enumeration, by its number."""
        if set(made) <= {ONE}:
            return self.terms.make((sort, int(made.get(ONE, 0))))
        if len(made) > 1 or [*made.values()] != [1]:
            raise Unwritten("a sum of values")
        ((monomial, _),) = made.items()
        return self._atom(monomial[0], sort)

    def _any(self, form: Form, sort: Sort) -> Term:
        if (form, sort) in self._known:
            return self._known[form, sort]
        return self.of(form) if sort == BOOL else self.number(self.forms.polynomial(form), sort)

    def _atom(self, atom: Form, sort: Sort) -> Term:
        terms = self.terms
        if (atom, sort) not in self._known:
            head, own, of, *parts = self.forms.keys[atom]
            if own != sort:
                return terms.make("to_real", self._atom(atom, own))
            sorts = self._takes(head, own, of, len(parts))
            made = [self._any(part, of) for part, of in zip(parts, sorts, strict=True)]
            self._known[atom, sort] = terms.make(head, *made)
        return self._known[atom, sort]

    def _takes(self, head: object, sort: Sort, of: Sort, count: int) -> tuple[Sort, ...]:
        """The sorts of an operator's arguments, or a symbol's."""
        if isinstance(head, int):
            return self.terms.symbols[head].arguments
        if head == "ite":
            return (BOOL, sort, sort)
        return (of, *of[1:])[:count] if head in ("select", "store") else (of,) * count
