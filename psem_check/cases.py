"""Whether formulas are impossible together: case by case, with equals in place of equals.

What holds says what other terms are: a formula that holds is true, its negation is false, and an
equation is solved for its last monomial. All that one of these is in is written anew, until none is.
Of a conjunction that does not hold, a case is that one of its parts does not. Where nothing else is
left to be done, whether the condition of a conditional term holds is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from psem_check.forms import FALSE, TRUE, Form, Forms
from psem_check.polynomials import (
    ONE,
    Monomial,
    Number,
    Polynomial,
    constant,
    plus,
    with_atoms,
)
from psem_check.terms import Rejected


@dataclass
class Case:
    """What holds, and what it says that terms are.

    `bounds`: by a polynomial without its number, the least number with which it is not negative, and
    whether it may be zero then. `solved`: what monomials are equal to, by the equations that hold.
    `known`: what is true, false or solved for, as bits.
    """

    so: set[Form] = field(default_factory=lambda: {TRUE})
    bounds: dict[frozenset[tuple[Monomial, Number]], tuple[Number, bool]] = field(default_factory=dict)
    solved: dict[Monomial, Polynomial] = field(default_factory=dict)
    known: int = 0

    def copy(self) -> Case:
        return Case({*self.so}, {**self.bounds}, {**self.solved}, self.known)


class Cases:
    """Cases of formulas that are made of forms."""

    def __init__(self, forms: Forms, work: int) -> None:
        self.forms = forms
        self.work = work

    def impossible(self, formulas: Iterable[Form]) -> bool:
        """Whether not all formulas can hold. Raises Rejected if that takes too many cases."""
        return self._impossible(Case(), list(formulas))

    def _impossible(self, here: Case, new: list[Form]) -> bool:
        while not self._contradicts(here, new):
            clause = self.next(here)
            if clause is None:
                return False
            *others, last = sorted(clause, key=abs)
            for i, part in enumerate(others):
                if not self._impossible(here.copy(), [-part, *others[:i]]):
                    return False
            new = [-last, *others]
        return True

    def next(self, here: Case) -> frozenset[Form] | None:
        """The conjunction of which each part is a case; None if nothing is left to be done."""
        return min(self.clauses(here), key=len, default=None) or self._condition(here)

    def clauses(self, here: Case) -> list[frozenset[Form]]:
        """The conjunctions that do not hold."""
        keys = [self.forms.keys[-form] for form in sorted(here.so, reverse=True) if form < 0]
        return [key[1] for key in keys if key[0] == "and"]

    def _condition(self, here: Case) -> frozenset[Form] | None:
        """The condition of a conditional term, of which it is not known whether it holds."""
        found = 0
        for form in here.so:
            found |= 1 << abs(form) | self.forms.inside[abs(form)]
        found &= self.forms.conditional
        if not found:
            return None
        condition = self.forms.keys[(found & -found).bit_length() - 1][3]
        return frozenset([condition, -condition])

    # ------------------------------------------------------------------ what holds
    def _contradicts(self, here: Case, new: list[Form]) -> bool:
        """Add what holds, with all that follows by equals; whether it cannot, besides what held."""
        while new:
            form = new.pop()
            key = self.forms.keys[abs(form)]
            if form > 0 and key[0] == "and":
                new.extend(key[1])
                continue
            self._spend(len(here.so))
            made = self.equal(here, form)
            if made == FALSE:
                return True
            if made != form:
                new.append(made)
            elif form != TRUE:
                here.so.add(form)
                known = 1 << abs(form)
                if self.is_equation(form):
                    last, rest = self._solved(form)
                    here.solved[last] = rest
                    known |= 1 << self.forms.monomial(last)
                elif key[0] == ">=" and self._bounds(here, form, new):
                    return True
                here.known |= known
                self._renew(here, form, known, new)
        return False

    def _renew(self, here: Case, form: Form, known: int, new: list[Form]) -> None:
        """Take out what has in it what is known now."""
        for other in [o for o in here.so if self.forms.inside[abs(o)] & known and o != form]:
            here.so.remove(other)
            new.insert(0, other)
            if self.is_equation(other):
                del here.solved[self._solved(other)[0]]

    def is_equation(self, form: Form) -> bool:
        return form > 0 and self.forms.keys[form][0] == "="

    def _solved(self, equation: Form) -> tuple[Monomial, Polynomial]:
        """The last monomial, whose factor is one, and what it equals: nothing that it is in."""
        made = dict(self.forms.keys[equation][1])
        last = max(made)
        return last, plus({last: 1}, made, -1)

    def _bounds(self, here: Case, form: Form, new: list[Form]) -> bool:
        """Whether a comparison contradicts the opposite one; the two may be an equation."""
        relation, made = self.forms.compared(form)
        number = made.get(ONE, 0)
        bound = number, relation == ">="
        rest = plus(made, constant(number), -1)
        same, opposite = frozenset(rest.items()), frozenset(plus({}, rest, -1).items())
        here.bounds[same] = min(bound, here.bounds.get(same, bound))
        if opposite not in here.bounds:
            return False
        against, may_be_zero = here.bounds[opposite]
        room = number + against
        if room == 0 and relation == ">=" and may_be_zero:
            new.append(self.forms.zero(made))
            return False
        return room <= 0

    def _spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise Rejected("it has too many cases")

    # ------------------------------------------------------------------ equals
    def equal(self, here: Case, form: Form) -> Form:
        """What a form is, with equals in place of all that it is made of."""
        self._made: dict[Form, Form] = {}
        return self._equal(here, form)

    def _equal(self, here: Case, form: Form) -> Form:
        if form < 0:
            return -self._equal(here, -form)
        if form in here.so or -form in here.so:
            return TRUE if form in here.so else FALSE
        if not (1 << form | self.forms.inside[form]) & here.known:
            return form
        if form not in self._made:
            self._spend(1)
            made = self._changed(here, form)
            self._made[form] = made if made == form else self._equal(here, made)
        return self._made[form]

    def _changed(self, here: Case, form: Form) -> Form:
        forms, key = self.forms, self.forms.keys[form]
        if key[0] == "and":
            return forms.both(self._equal(here, part) for part in key[1])
        if key[0] in ("+", ">=", "="):
            made = self._with(here, dict(key[1]))
            return {"+": forms.number, ">=": forms.at_least, "=": forms.zero}[key[0]](made)
        if (form,) in here.solved:
            return forms.number(here.solved[form,])
        head, sort, of, *arguments = key
        return forms.make(head, sort, of, [self._equal(here, argument) for argument in arguments])

    def _with(self, here: Case, made: Polynomial) -> Polynomial:
        """A polynomial with atoms replaced wherever they are, and products as they are."""
        atoms = {atom: self._equal(here, atom) for monomial in made for atom in monomial}
        if any(atom != same for atom, same in atoms.items()):
            made = with_atoms(made, lambda atom: self.forms.polynomial(atoms[atom]))
        for monomial in [m for m in made if len(m) > 1 and m in here.solved]:
            made = plus(made, plus(here.solved[monomial], {monomial: -1}), made[monomial])
        return made
