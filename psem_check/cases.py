"""Whether formulas are impossible together: case by case, with equals in place of equals.

Of a conjunction that does not hold, a case is that one of its parts does not. Where nothing else is
left to be done, whether the condition of a conditional term holds is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from psem_check.equals import Equals
from psem_check.forms import FALSE, TRUE, Form, Forms
from psem_check.polynomials import ONE, Monomial, Number, Polynomial, constant, plus
from psem_check.terms import Rejected


@dataclass
class Case:
    """What holds, of which conjunctions not all parts do, and what comparisons and equations say.

    `bounds`: by a polynomial without its number, the least number with which it is not negative, and
    whether it is positive then. `equations`: polynomials that are zero; `solved`: the same by monomial.
    """

    so: set[Form] = field(default_factory=lambda: {TRUE})
    clauses: list[frozenset[Form]] = field(default_factory=list)
    bounds: dict[frozenset[tuple[Monomial, Number]], tuple[Number, bool]] = field(default_factory=dict)
    equations: list[Polynomial] = field(default_factory=list)
    solved: dict[Monomial, Polynomial] = field(default_factory=dict)

    def copy(self) -> Case:
        return Case({*self.so}, [*self.clauses], {**self.bounds}, [*self.equations], {**self.solved})


class Cases:
    """Cases of formulas that are made of forms."""

    def __init__(self, forms: Forms, work: int) -> None:
        self.forms = forms
        self.work = work

    def impossible(self, formulas: Iterable[Form]) -> bool:
        """Whether not all formulas can hold. Raises Rejected if that takes too many cases."""
        return self._impossible(Case(), list(formulas))

    def _impossible(self, here: Case, new: list[Form]) -> bool:
        while True:
            if self._contradicts(here, new):
                return True
            new = []
            if self._units(here, new):
                return True
            if new:
                continue
            if self._equals(here, new):
                return True
            if new:
                continue
            clause = self.next(here)
            if clause is None:
                return False
            here.clauses = [other for other in here.clauses if other is not clause]
            *others, last = sorted(clause, key=abs)
            for i, part in enumerate(others):
                if not self._impossible(here.copy(), [-part, *others[:i]]):
                    return False
            new = [-last, *others]

    def next(self, here: Case) -> frozenset[Form] | None:
        """The conjunction of which each part is a case; None if nothing is left to be done."""
        return min(here.clauses, key=len, default=None) or self._condition(here)

    def _spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise Rejected("it has too many cases")

    # ------------------------------------------------------------------ connectives and bounds
    def _contradicts(self, here: Case, new: list[Form]) -> bool:
        """Add what holds; whether it cannot, besides what held."""
        while new:
            form = new.pop()
            if -form in here.so or form == FALSE:
                return True
            if form in here.so:
                continue
            here.so.add(form)
            key = self.forms.keys[abs(form)]
            if isinstance(key, frozenset):
                if form > 0:
                    new.extend(key)
                else:
                    here.clauses.append(key)
            elif key[0] == ">=" and self._bounds(here, form, new):
                return True
            elif key[0] == "=" and form > 0:
                here.equations.append(dict(key[1]))
        return False

    def _bounds(self, here: Case, form: Form, new: list[Form]) -> bool:
        """Whether a comparison contradicts the opposite one; the two may be an equation."""
        made, strict = self.forms.least(form)
        number = made.get(ONE, 0)
        rest = plus(made, constant(number), -1)
        same, opposite = frozenset(rest.items()), frozenset(plus({}, rest, -1).items())
        known = here.bounds.get(same)
        if known is None or (number, not strict) < (known[0], not known[1]):
            here.bounds[same] = number, strict
        against = here.bounds.get(opposite)
        if against is None:
            return False
        room = number + against[0]
        if room == 0 and not strict and not against[1]:
            new.append(self.forms.zero(made))
        return room < 0 or (room == 0 and (strict or against[1]))

    def _units(self, here: Case, new: list[Form]) -> bool:
        """Of clauses that something has to be done for, the parts that do not hold yet."""
        self._spend(1 + sum(map(len, here.clauses)))
        left = []
        for clause in here.clauses:
            if any(-part in here.so for part in clause):
                continue
            still = clause - here.so
            if not still:
                return True
            if len(still) == 1:
                new.extend(-part for part in still)
            left.append(still)
        here.clauses = left
        return False

    # ------------------------------------------------------------------ equals
    def _equals(self, here: Case, new: list[Form]) -> bool:
        """Add what holds with equals in place of equals; whether something is impossible by that."""
        equals = Equals(self.forms, here.so, here.equations, here.solved, self._spend)
        here.equations, here.solved = equals.equations, equals.solved
        if equals.contradict:
            return True
        for form in self._literals(here):
            made = equals.inside(form)
            if made != form:
                here.so.discard(form)
                new.append(made)
        clauses, here.clauses = here.clauses, []
        for clause in clauses:
            parts = frozenset(map(equals.inside, clause))
            if parts == clause:
                here.clauses.append(clause)
            else:
                new.append(-self.forms.both(parts))
        return False

    def _literals(self, here: Case) -> list[Form]:
        return [form for form in here.so if type(self.forms.keys[abs(form)]) is tuple]

    def _condition(self, here: Case) -> frozenset[Form] | None:
        """The condition of a conditional term, of which it is not known whether it holds."""
        found = 0
        for literal in self._literals(here):
            found |= self.forms.inside[abs(literal)]
        for atom in {atom for equation in here.equations for m in equation for atom in m}:
            found |= 1 << atom | self.forms.inside[atom]
        found &= self.forms.conditional
        if not found:
            return None
        condition = self.forms.keys[(found & -found).bit_length() - 1][3]
        return frozenset([condition, -condition])
