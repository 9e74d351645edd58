"""The steps of a proof by the checker's rules, while they are written. Not trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from psem_check.cases import Cases
from psem_check.proofs import LAWS, WORK, Steps
from psem_check.reader import Graph
from psem_check.terms import REAL, Term
from psem_model.certify.formulas import Formulas
from psem_model.certify.products import combined
from psem_model.certify.questions import Lists

SOON = 2000  # of the checker's work, for what may not follow
UNKNOWN = 600  # numbers to be found at once


class Written:
    """The steps so far; facts come first. `checker` is asked what follows."""

    def __init__(self, graph: Graph, facts: Sequence[Term]) -> None:
        self.terms = graph.terms
        self.checker = Steps(graph)
        self.formulas = Formulas(self.checker.forms, facts)
        self.conclusions = list(facts)
        self._count = len(facts)
        self._steps: list[tuple[Any, ...]] = []  # rule, conclusion, and what else is given
        self._known: dict[Any, int] = {}

    def step(self, rule: str, said: Term, *given: Any) -> int:
        key = (rule, said, *given)
        if key not in self._known:
            self._known[key] = len(self.conclusions)
            self._steps.append(key)
            self.conclusions.append(said)
        return self._known[key]

    def implied(self, given: Sequence[Term], said: Term) -> Term:
        if given and said == self.terms.false:
            return self.terms.negation(self.terms.conjunction(given))
        return self.terms.implication(given, said)

    def follows(self, known: Sequence[Term], said: Term, work: int = WORK) -> bool:
        """Whether the checker sees that premises imply a conclusion."""
        forms = self.checker.forms
        formulas = [*map(forms.of, known), -forms.of(said)]
        return Cases(forms, work).impossible(formulas)

    def law(self, name: str, *of: Term) -> int:
        return self.step("law", LAWS[name](self.terms, *of), name, of)

    def products(
        self, of: Sequence[Term], degrees: Iterable[tuple[int, int]], most: int = UNKNOWN
    ) -> int | None:
        """That comparisons do not hold together, by products of them, if some are found to show it.

        `degrees`: of how many comparisons products are, and of which degree multiples of equations.
        `most`: numbers to be found at once.
        """
        compared = [self.checker.compared(formula) for formula in of]
        for factors, degree in degrees:
            if found := combined(compared, factors, degree, most):
                summands = tuple((self.formulas.number(made, REAL), by) for made, by in found)
                said = self.terms.negation(self.terms.conjunction(of))
                return self.step("products", said, tuple(of), summands)
        return None

    def lists(self, last: int) -> dict[str, Any]:
        """The terms and steps of a certificate, but for what the last step does not rest on."""
        count = self._count
        needed, pending = set[int](), [last]
        while pending:
            here = pending.pop()
            if here >= count and here not in needed:
                needed.add(here)
                rule, _, *given = self._steps[here - count]
                if rule == "follows":
                    pending += given[0]
        order = {old: new for new, old in enumerate([*range(count), *sorted(needed)])}
        lists = Lists(self.terms, plain=True)
        for fact in self.conclusions[:count]:
            lists.number(fact)
        known = len(lists.nodes)
        steps: list[list[Any]] = []
        for chosen in sorted(needed):
            rule, said, *given = self._steps[chosen - count]
            if rule == "law":
                steps.append([rule, given[0], [lists.number(term) for term in given[1]]])
            elif rule == "products":
                of, summands = given
                made = [[lists.number(term), by] for term, by in summands]
                steps.append([rule, [lists.number(term) for term in of], made])
            else:
                steps.append([rule, lists.number(said), [order[p] for p in given[0]]])
        return {"terms": lists.nodes[known:], "steps": steps}
