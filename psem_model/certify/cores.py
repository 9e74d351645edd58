"""Which of some formulas cannot hold together, as z3 says: only these are looked at. Not trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import mul
from typing import Any

import z3

from psem_check.forms import TRUE, Form, Forms
from psem_check.polynomials import Monomial, Number
from psem_check.terms import BOOL, INT

RESOURCES = 1_000_000  # z3's own count, for a question


class Cores:
    """z3's terms of forms. All that is no formula is a number there.

    `inside`: terms are what their arguments make them, and integers are integers; otherwise each is any
    real number. `products`: a monomial is the product of its atoms; otherwise it is any number.
    """

    def __init__(self, forms: Forms, inside: bool = False, products: bool = False) -> None:
        self.forms = forms
        self.inside = inside
        self.products = products
        self._known: dict[Any, Any] = {}
        self._asked: dict[Form, Any] = {}
        self._context = z3.Context()  # what z3 says depends on what else it knows
        self._solver = z3.SimpleSolver(self._context)
        self._solver.set("core.minimize", True)

    def core(self, formulas: Sequence[Form]) -> list[Form] | None:
        """Some of the formulas that cannot hold together, as few as z3 finds; None if they can.

        All of them, if it gives up.
        """
        for form in formulas:
            if form not in self._asked:
                self._asked[form] = z3.Bool(f"asked {form}", self._context)
                self._solver.add(z3.Implies(self._asked[form], self._formula(form)))
        self._solver.set("rlimit", RESOURCES)
        said = self._solver.check([self._asked[form] for form in formulas])
        if said != z3.unsat:
            return None if said == z3.sat else [*formulas]
        names = {each.decl().name() for each in self._solver.unsat_core()}
        return sorted((f for f in formulas if f"asked {f}" in names), key=abs)

    def _formula(self, form: Form) -> Any:
        key = self.forms.keys[abs(form)]
        if key[0] == ">=":
            said = self._sum(key[1])
            if form > 0:
                return said >= 0
            return said < 0 if self.forms.compared(form)[0] == ">" else said <= -1
        if form < 0:
            return z3.Not(self._formula(-form))
        if form == TRUE:
            return z3.BoolVal(True, self._context)
        if key[0] == "and":
            return z3.And(*map(self._formula, key[1]))
        if key[0] == "=":
            return self._sum(key[1]) == 0
        return self._atom(form)

    def _sum(self, made: Iterable[tuple[Monomial, Number]]) -> Any:
        return z3.Sum([self._number(f) * self._product(m) for m, f in made] or [self._number(0)])

    def _product(self, monomial: Monomial) -> Any:
        if self.products or len(monomial) < 2:
            return reduce(mul, map(self._atom, monomial), self._number(1))
        return z3.Real("*".join(map(str, monomial)), self._context)

    def _atom(self, atom: Form) -> Any:
        if atom not in self._known:
            self._known[atom] = self._made(atom)
        return self._known[atom]

    def _made(self, atom: Form) -> Any:
        head, sort, of, *parts = self.forms.keys[atom]
        plain = {BOOL: z3.BoolSort, INT: z3.IntSort if self.inside else z3.RealSort}
        gives = plain.get(sort, z3.RealSort)(self._context)
        if not self.inside or not parts:
            return z3.Const(str(atom), gives)
        made = [self._any(part) for part in parts]
        if head == "ite":
            return z3.If(*made)
        return z3.Function(f"{head} {of}", *(each.sort() for each in made), gives)(*made)

    def _number(self, value: Number) -> Any:
        return number(value, self._context)

    def _any(self, form: Form) -> Any:
        formula = is_formula(self.forms, form)
        return self._formula(form) if formula else self._sum(self.forms.polynomial(form).items())


def is_formula(forms: Forms, form: Form) -> bool:
    key = forms.keys[abs(form)]
    return key[0] in ("true", "and", ">=", "=") or key[1] == BOOL


def number(value: Number, context: z3.Context) -> Any:
    """A fraction as z3's."""
    return z3.RealVal(f"{value.numerator}/{value.denominator}", context)
