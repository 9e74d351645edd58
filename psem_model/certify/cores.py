"""Which of some formulas cannot hold together, as z3 says: only these are looked at. Not trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from typing import Any

import z3

from psem_check.forms import TRUE, Form, Forms
from psem_check.polynomials import Monomial, Number
from psem_check.terms import BOOL, INT, REAL

RESOURCES = 1_000_000  # z3's own count, for a question


class Cores:
    """Forms as texts for z3. All that is no formula is a real number there.

    `inside`: terms are what their arguments make them, and integers are integers; otherwise each is any
    real number. `products`: a monomial is the product of its atoms; otherwise it is any number.
    """

    def __init__(self, forms: Forms, inside: bool = False, products: bool = False) -> None:
        self.forms = forms
        self.inside = inside
        self.products = products
        self._declared: set[str] = set()  # names
        self._new: list[str] = []  # declarations that are not read yet
        self._atoms: dict[Form, str] = {}
        self._asked: dict[Form, Any] = {}

    @cached_property
    def _solver(self) -> Any:
        """One with a context of its own: what z3 says depends on what else it knows."""
        made = z3.SimpleSolver(z3.Context())
        made.set("core.minimize", True)
        return made

    def core(self, formulas: Sequence[Form]) -> list[Form] | None:
        """Some of the formulas that cannot hold together, as few as z3 finds; None if they can.

        All of them, if it gives up.
        """
        new = [form for form in formulas if form not in self._asked]
        said = {form: self._formula(form) for form in new}
        asserted = []
        for form in said:
            name = f"asked {form}"
            asserted.append(f"(assert (=> {self._declare(name, '() Bool')} {said[form]}))")
            self._asked[form] = z3.Bool(name, self._solver.ctx)
        if asserted:
            self._solver.from_string("\n".join([*self._new, *asserted]))
            self._new.clear()
        self._solver.set("rlimit", RESOURCES)
        answer = self._solver.check([self._asked[form] for form in formulas])
        if answer != z3.unsat:
            return None if answer == z3.sat else [*formulas]
        names = {each.decl().name() for each in self._solver.unsat_core()}
        return sorted((f for f in formulas if f"asked {f}" in names), key=abs)

    def _declare(self, name: str, sorts: str) -> str:
        if name not in self._declared:
            self._declared.add(name)
            self._new.append(f"(declare-fun |{name}| {sorts})")
        return f"|{name}|"

    def _formula(self, form: Form) -> str:
        key = self.forms.keys[abs(form)]
        if key[0] == ">=":
            said = self._sum(key[1])
            if form > 0:
                return f"(>= {said} 0.0)"
            strict = self.forms.compared(form)[0] == ">"
            return f"(< {said} 0.0)" if strict else f"(<= {said} (- 1.0))"
        if form < 0:
            return f"(not {self._formula(-form)})"
        if form == TRUE:
            return "true"
        if key[0] == "and":
            return f"(and {' '.join(map(self._formula, key[1]))})"
        if key[0] == "=":
            return f"(= {self._sum(key[1])} 0.0)"
        return self._atom(form)

    def _sum(self, made: Iterable[tuple[Monomial, Number]]) -> str:
        return total([f"(* {numeral(f)} {self._product(m)})" for m, f in made] or ["0.0"])

    def _product(self, monomial: Monomial) -> str:
        if not monomial:
            return "1.0"
        if len(monomial) > 1 and not self.products:
            return self._declare("*".join(map(str, monomial)), "() Real")
        return reduce(lambda one, other: f"(* {one} {other})", map(self._atom, monomial))

    def _atom(self, atom: Form) -> str:
        if atom not in self._atoms:
            self._atoms[atom] = self._made(atom)
        return self._atoms[atom]

    def _made(self, atom: Form) -> str:
        head, sort, of, *parts = self.forms.keys[atom]
        kind = sort if sort == BOOL or (sort == INT and self.inside) else REAL
        if not self.inside or not parts:
            said = self._declare(str(atom), f"() {kind}")
        else:
            args = " ".join(map(self._any, parts))
            if head == "ite":
                return f"(ite {args})"
            takes = " ".join("Bool" if is_formula(self.forms, part) else "Real" for part in parts)
            name = self._declare(f"{head} {of} {takes} {kind}".replace("|", ""), f"({takes}) {kind}")
            said = f"({name} {args})"
        return f"(to_real {said})" if kind == INT else said

    def _any(self, form: Form) -> str:
        formula = is_formula(self.forms, form)
        return self._formula(form) if formula else self._sum(self.forms.polynomial(form).items())


def is_formula(forms: Forms, form: Form) -> bool:
    key = forms.keys[abs(form)]
    return key[0] in ("true", "and", ">=", "=") or key[1] == BOOL


def total(parts: Sequence[str]) -> str:
    """The text of a sum; of one part it is that."""
    return f"(+ {' '.join(parts)})" if len(parts) > 1 else parts[0]


def numeral(value: Number) -> str:
    """The text of a fraction."""
    said = f"(/ {abs(value.numerator)}.0 {value.denominator}.0)"
    return f"(- {said})" if value < 0 else said
