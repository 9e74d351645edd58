"""The checker's cases, with lemmas by which a case is soon seen to be impossible. Not trusted.

Where the checker would not go on, or not soon, z3 says which comparisons of the case cannot hold
together, and a lemma says why: products of them add up to a negative number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from psem_check.cases import Case, Cases
from psem_check.forms import FALSE, TRUE, Form
from psem_check.polynomials import Polynomial, constant, plus
from psem_check.terms import NUMBERS
from psem_model.certify.cores import Cores, is_formula
from psem_model.certify.written import UNKNOWN, Written

WORK = 250_000  # of the checker's for a step: a little less than it allows
SUM = (1, 0)  # factors of a product, degree of a multiple: a sum of comparisons


@dataclass(frozen=True)
class Effort:
    """How far products are looked for: of how many comparisons and degrees, and by how many signs.

    `unknown`: numbers to be found at once. `rounds`: how often lemmas are looked for that the checker
    needs besides; if that is once, it is not asked.
    """

    degrees: tuple[tuple[int, int], ...]
    comparisons: int
    unknown: int
    splits: int
    rounds: int


LITTLE = Effort(((2, 1), (3, 2), (3, 3)), comparisons=12, unknown=UNKNOWN, splits=1, rounds=1)
MUCH = Effort((*LITTLE.degrees, (4, 3), (4, 4)), comparisons=100, unknown=4000, splits=2, rounds=3)
Clause = frozenset[Form]


class Search(Cases):
    """Cases with lemmas, by the conjunctions that they say not to hold."""

    def __init__(self, written: Written, lemmas: dict[Clause, int], effort: Effort) -> None:
        super().__init__(written.checker.forms, WORK)
        self.effort = effort
        self.written = written
        self.formulas = written.formulas
        self.lemmas = lemmas
        self.used: set[Clause] = set()
        self.open: Case | None = None  # of which nothing is known
        self._linear = Cores(self.forms)
        self._possible: set[Clause] = set()

    def next(self, here: Case) -> Clause | None:
        """What is soon impossible comes first."""
        clause = self._lemma(here) or self._impossible_sum(self._comparisons(here))
        if clause is None and (clauses := self.clauses(here)):
            shortest = min(clauses, key=len)
            clause = self._decided(here, shortest) or shortest
        for way in (self._condition, self._apart, self._one_of, self._alike, self._products):
            clause = clause or way(here)
        if clause is None:
            self.open = here
        self.used |= {clause} & self.lemmas.keys() if clause else set()
        return clause

    def _lemma(self, here: Case) -> Clause | None:
        """One of which at most one part does not hold yet."""
        for clause in self.lemmas:
            left = clause - here.so
            held = len(left) <= 1 and not any(-part in here.so for part in clause)
            if held and not any(self.equal(here, part) == FALSE for part in left):
                return clause
        return None

    def _shown(self, clause: Iterable[Form], step: int) -> Clause:
        made = frozenset(clause)
        self.lemmas[made] = step
        return made

    # ------------------------------------------------------------------ sums and products
    def _comparisons(self, here: Case) -> list[Form]:
        return [form for form in here.so if self.formulas.is_comparison(form)]

    def _impossible_sum(self, compared: Sequence[Form]) -> Clause | None:
        """Comparisons that cannot hold together, by a sum of them."""
        key = frozenset(compared)
        if len(key) < 2 or key in self._possible:
            return None
        core = self._linear.core(compared)
        if core is None:
            self._possible.add(key)
            return None
        return self._multiplied(core, [SUM])

    def _decided(self, here: Case, clause: Clause) -> Clause | None:
        """A lemma by which a comparison in a conjunction, or its opposite, follows."""
        known = self._comparisons(here)
        for part in sorted(clause, key=abs):
            if self.formulas.is_comparison(part):
                for form in (part, -part):
                    if found := self._impossible_sum([*known, form]):
                        return found
        return None

    def _products(self, here: Case) -> Clause | None:
        """Comparisons and equations that cannot hold together, by products of them."""
        equations = [made for made in self._equations(here) if self._is_of_numbers(made)]
        forms = [*self._comparisons(here), *map(self.forms.zero, equations)]
        core = Cores(self.forms, products=True).core(forms)
        few = core and len(core) <= self.effort.comparisons
        return self._multiplied(core, self.effort.degrees) if core and few else None

    def _multiplied(self, core: Sequence[Form], degrees: Sequence[tuple[int, int]]) -> Clause | None:
        step = self.written.products(list(map(self.formulas.of, core)), degrees, self.effort.unknown)
        return None if step is None else self._shown(core, step)

    def _is_of_numbers(self, made: Polynomial) -> bool:
        return self.formulas.sort_of(made) in NUMBERS

    # ------------------------------------------------------------------ cases
    def _apart(self, here: Case) -> Clause | None:
        """Of numbers that differ one is less."""
        for form, made in self._unequal(here):
            if self._is_of_numbers(made):
                sides = self.forms.at_least(made), self.forms.at_least(plus({}, made, -1))
                if not {TRUE, FALSE} & {*sides} and not {-side for side in sides} & here.so:
                    formulas = [self.formulas.of(part) for part in (form, *sides)]
                    said = self.written.implied(formulas, self.written.terms.false)
                    return self._shown([form, *sides], self.written.step("follows", said, ()))
        return None

    def _one_of(self, here: Case) -> Clause | None:
        """A term of an enumeration that is not one of its values is another one."""
        atoms = {a for _, made in self._unequal(here) for m in made for a in m}
        for atom in sorted(atoms):
            sort = self.forms.keys[atom][1]
            if isinstance(sort, tuple) and sort[0] == "Values":
                term = self.formulas.number({(atom,): 1}, sort)
                values = [plus({(atom,): 1}, constant(i), -1) for i in range(len(sort[2]))]
                clause = [-self.forms.zero(value) for value in values]
                if not {-part for part in clause} & here.so:
                    return self._shown(clause, self.written.law("value", term))
        return None

    def _unequal(self, here: Case) -> Iterator[tuple[Form, Polynomial]]:
        for form in sorted(here.so):
            key = self.forms.keys[abs(form)]
            if form < 0 and key[0] == "=":
                yield form, dict(key[1])

    def _alike(self, here: Case) -> Clause | None:
        """Of two terms with the same operator a lemma by which numbers that they are of are equal."""
        groups = defaultdict(list)
        for atom in self._atoms(here):
            if self.forms.keys[atom][3:]:
                groups[self.forms.keys[atom][:3]].append(self.forms.keys[atom][3:])
        known = self._comparisons(here)
        for several in groups.values():
            for one, other in combinations(several, 2):
                if found := self._alike_in(known, here, one, other):
                    return found
        return None

    def _alike_in(
        self, known: Sequence[Form], here: Case, one: Sequence[Form], other: Sequence[Form]
    ) -> Clause | None:
        """A lemma for one of the bounds by which arguments are equal, if these follow for all."""
        found = []
        for left, right in zip(one, other, strict=True):
            if left != right and is_formula(self.forms, left):
                return None
            differ = plus(self.forms.polynomial(left), self.forms.polynomial(right), -1)
            if differ and not self._is_of_numbers(differ):
                return None
            for made in (differ, plus({}, differ, -1)) if differ else ():
                bound = self.forms.at_least(made)
                if bound != TRUE and bound not in here.so:
                    clause = None if bound == FALSE else self._impossible_sum([*known, -bound])
                    if clause is None:
                        return None
                    found.append(clause)
        return found[0] if found else None

    def _equations(self, here: Case) -> list[Polynomial]:
        return [dict(self.forms.keys[form][1]) for form in sorted(here.so) if self.is_equation(form)]

    def _atoms(self, here: Case) -> Iterator[Form]:
        """Terms with an operator or a symbol, in anything that holds."""
        bits = 0
        for form in map(abs, here.so):
            bits |= 1 << form | self.forms.inside[form]
        while bits:
            atom = (bits & -bits).bit_length() - 1
            bits ^= 1 << atom
            key = self.forms.keys[atom]
            if key[0] not in ("true", "and", "+", "*", ">=", "="):
                yield atom


class Start(Search):
    """What holds before there are cases."""

    def next(self, here: Case) -> Clause | None:
        self.open = here
        return None
