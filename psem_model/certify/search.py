"""A proof found by the checker's own cases, and by what lemmas and laws of operators add to them.

Of the facts only what a contradiction needs is gone through, as z3 says; the sign of a number is a case
if nothing else is left. Not trusted: the checker goes through what is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from psem_check.cases import Case
from psem_check.terms import Rejected, Term
from psem_model.certify.cases import LITTLE, Clause, Effort, Search, Start
from psem_model.certify.cores import Cores
from psem_model.certify.formulas import Unwritten
from psem_model.certify.laws import all_laws
from psem_model.certify.questions import asked
from psem_model.certify.written import SOON, Written

FEW = 3  # conjunctions of which a part does not hold


class Proof:
    """The steps of a proof while it is found."""

    def __init__(self, text: str, effort: Effort) -> None:
        graph, self.facts = asked(text)
        self.effort = effort
        self.written = Written(graph, self.facts)
        self.terms = graph.terms
        self.formulas = self.written.formulas
        self.lemmas: dict[Clause, int] = {}

    def found(self) -> dict[str, Any]:
        """The proof. Raises Unwritten or Rejected."""
        facts = tuple(range(len(self.facts)))
        if self._at_once():
            return self.written.lists(self.written.step("follows", self.terms.false, facts))
        # forms are numbered as the checker meets them: so it goes through cases in the same order
        known = [self.written.step("follows", self.terms.true, facts), *facts]
        shown = [self.written.law(name, *of) for name, of in all_laws(self.terms, self.facts)]
        known += shown
        start = self._run(Start, known)
        if start.open and len(start.clauses(start.open)) >= FEW:
            known = [*self._needed(start.open, known), *shown]
        return self.written.lists(self._refuted(known, []))

    def _at_once(self) -> bool:
        try:
            return self.written.follows(self.facts, self.terms.false, SOON)
        except Rejected:
            return False

    def _run(self, kind: type[Search], known: Sequence[int], assumed: Sequence[Term] = ()) -> Search:
        search = kind(self.written, self.lemmas, self.effort)
        formulas = [*(self.written.conclusions[step] for step in known), *assumed]
        if search.impossible(map(search.forms.of, formulas)):
            search.open = None
        return search

    def _needed(self, here: Case, known: Sequence[int]) -> Sequence[int]:
        """A step that says of what holds only what cannot hold together."""
        forms = self.formulas.forms
        formulas = sorted(here.so, key=abs)
        core = Cores(forms, inside=True).core(formulas)
        if core is None or len(core) == len(formulas):
            return known
        said = self.terms.conjunction([self.formulas.of(form) for form in core])
        return [self.written.step("follows", said, tuple(known))]

    def _refuted(self, known: Sequence[int], assumed: list[Term]) -> int:
        """A step that says that what is assumed cannot hold, by cases of signs if need be."""
        false = self.written.implied(assumed, self.terms.false)
        for _ in range(self.effort.rounds):
            search = self._run(Search, known, assumed)
            cases = self._by_sign(known, assumed, search.open) if search.open else []
            known = [*known, *(self.lemmas[clause] for clause in search.used), *cases]
            if self.effort.rounds == 1 or self._follows(known, false):
                return self.written.step("follows", false, tuple(known))
        raise Unwritten("the checker does not see it")

    def _follows(self, known: Sequence[int], said: Term) -> bool:
        return self.written.follows([self.written.conclusions[k] for k in known], said)

    def _by_sign(self, known: Sequence[int], assumed: list[Term], here: Case) -> list[int]:
        """Steps that refute that a number is positive, and that it is not."""
        for positive in self._signs(here) if len(assumed) < self.effort.splits else ():
            cases = (positive, self.terms.negation(positive))
            if not {*cases} & {*assumed}:
                with suppress(Unwritten, Rejected):
                    return [self._refuted(known, [*assumed, case]) for case in cases]
        raise Unwritten("an open case")

    def _signs(self, here: Case) -> Iterator[Term]:
        """That a number is positive, of those that are multiplied."""
        forms = self.formulas.forms
        keys = [forms.keys[abs(form)] for form in here.so]
        polynomials = [dict(key[1]) for key in keys if key[0] in ("=", ">=")]
        for atom in sorted({a for made in polynomials for m in made if len(m) > 1 for a in m}):
            sort = forms.keys[atom][1]
            term = self.formulas.number({(atom,): 1}, sort)
            yield self.terms.make(">", term, self.terms.number(0, sort))


def search(text: str, effort: Effort = LITTLE) -> dict[str, Any]:
    """A proof of a question, or `missing` with the reason."""
    try:
        return Proof(text, effort).found()
    except (Unwritten, Rejected, RecursionError) as error:
        return {"missing": str(error)}
