"""What terms are equal to, by equations: in functions, sums and products, until nothing new follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from psem_check.forms import FALSE, TRUE, Form, Forms
from psem_check.polynomials import ONE, Monomial, Polynomial, inverse, plus, with_atoms


class Equals:
    """What terms are equal to, by what holds in a case."""

    def __init__(
        self,
        forms: Forms,
        so: Set[Form],
        equations: Sequence[Polynomial],
        solved: Mapping[Monomial, Polynomial],
        spend: Callable[[int], None],
    ) -> None:
        self.forms = forms
        self.equations = list(equations)
        self.solved = dict(solved)
        self.contradict = False
        self._so = frozenset(so)
        self._known = bits(abs(form) for form in so if form != TRUE)
        self._solve(spend)

    def _solve(self, spend: Callable[[int], None]) -> None:
        """Replace equals in the equations, until these stay as they are."""
        while not self.contradict:
            spend(len(self.equations) + len(self._so))
            self._replaced = self._known | bits(atom for monomial in self.solved for atom in monomial)
            self._made: dict[Form, Form] = {}
            made = [self._with(equation, self.inside) for equation in self.equations]
            if made == [plus(row, {m: -1}) for m, row in self.solved.items()]:
                return
            rows = Echelon(self.forms.depths)
            for equation in made:
                rows.add(equation)
            self.equations = [plus(row, {m: -1}) for m, row in rows.solved.items()]
            self.contradict, self.solved = rows.contradict, rows.solved

    def inside(self, form: Form) -> Form:
        """A form with equals in place of all that it is made of."""
        if form < 0:
            return -self.inside(-form)
        if not self.forms.inside[form] & self._replaced:
            return form
        if form not in self._made:
            self._made[form] = self._changed(form)
        return self._made[form]

    def _changed(self, form: Form) -> Form:
        forms, key = self.forms, self.forms.keys[form]
        if isinstance(key, frozenset):
            return forms.both(map(self._equal, key))
        if key[0] in ("+", ">=", "="):
            made = reduced(self.solved, self._with(dict(key[1]), self._equal))
            return {"+": forms.number, ">=": forms.at_least, "=": forms.zero}[key[0]](made)
        head, sort, of, *arguments = key
        return forms.make(head, sort, of, [*map(self._equal, arguments)])

    def _equal(self, form: Form) -> Form:
        """What a form is equal to."""
        if form < 0:
            return -self._equal(-form)
        if form in self._so or -form in self._so:
            return TRUE if form in self._so else FALSE
        made = self.inside(form)
        if abs(made) in self._so or -abs(made) in self._so:
            return TRUE if made in self._so else FALSE
        if made < 0:
            return made
        polynomial = self.forms.polynomial(made)
        changed = reduced(self.solved, polynomial)
        return made if changed == polynomial else self.forms.number(changed)

    def _with(self, made: Polynomial, of: Callable[[Form], Form]) -> Polynomial:
        """A polynomial with others in place of its atoms."""
        if all(of(atom) == atom for monomial in made for atom in monomial):
            return made
        return with_atoms(made, lambda atom: self.forms.polynomial(of(atom)))


class Echelon:
    """Equations, each solved for its last monomial, which is in no other.

    That is the one of the deepest atoms, so that no term becomes deeper.
    """

    def __init__(self, depths: Sequence[int]) -> None:
        self.depths = depths
        self.solved: dict[Monomial, Polynomial] = {}
        self.contradict = False
        self._met: set[Monomial] = set()  # products, and single atoms

    def add(self, zero: Polynomial) -> None:
        """One more polynomial that is zero."""
        pending = [zero]
        while pending:
            made = reduced(self.solved, pending.pop())
            if set(made) <= {ONE}:
                self.contradict = self.contradict or bool(made)
                continue
            last = max(made, key=lambda m: (sorted((self.depths[a] for a in m), reverse=True), m))
            rest = plus({}, {m: f for m, f in made.items() if m != last}, -inverse(made[last]))
            if last in self._met:
                for monomial in [m for m, row in self.solved.items() if _has(last, [m, *row])]:
                    pending.append(plus(self.solved.pop(monomial), {monomial: -1}))
            self._met |= {*made} | {(atom,) for monomial in made for atom in monomial}
            self.solved[last] = rest


def bits(forms: Iterable[Form]) -> int:
    """Some forms, as bits."""
    found = 0
    for form in forms:
        found |= 1 << form
    return found


def _has(pivot: Monomial, monomials: Iterable[Monomial]) -> bool:
    if len(pivot) == 1:
        return any(pivot[0] in monomial for monomial in monomials)
    return pivot in monomials


def reduced(solved: Mapping[Monomial, Polynomial], made: Polynomial) -> Polynomial:
    """A polynomial with what is solved for replaced: atoms wherever they are, products as they are."""
    if not any(monomial in solved or any((a,) in solved for a in monomial) for monomial in made):
        return made
    total = with_atoms(made, lambda atom: solved.get((atom,), {(atom,): 1}))
    for monomial in [m for m in total if len(m) > 1 and m in solved]:
        total = plus(total, plus(solved[monomial], {monomial: -1}), total[monomial])
    return total
