"""The steps of a proof by the checker's rules, while they are written. Not trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psem_check.graphs import Graph
from psem_check.laws import law
from psem_check.proofs import Steps
from psem_check.terms import Rejected, Term
from psem_model.certify.questions import Lists

SOON = 2000  # of the checker's work, for what may not follow


class Unwritten(Exception):
    """A step of the solver that the checker's rules do not show."""


class Written:
    """The steps so far; facts come first. `checker` is asked what follows."""

    def __init__(self, graph: Graph, facts: Sequence[Term]) -> None:
        self.terms = graph.terms
        self.checker = Steps(graph)
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

    def law(self, name: str, *of: Term) -> int:
        return self.step("law", law(self.terms, name, of), name, of)

    def products(
        self, known: Sequence[Term], said: Term, summands: Sequence[Any], multiples: Sequence[Any] = ()
    ) -> int:
        """That comparisons imply another, because products of them, and of what it denies, add up."""
        lemma = self.implied(known, said)
        given = tuple((n, d, tuple(factors)) for n, d, factors in summands), tuple(multiples)
        try:
            shown = self.checker.products([], lemma, *given)
        except Rejected as error:
            raise Unwritten(f"products: {error}") from error
        if not shown:
            raise Unwritten("products")
        return self.step("products", lemma, (), *given)

    def lists(self, last: int) -> dict[str, Any]:
        """The terms and steps of a certificate, but for what the last step does not rest on."""
        count = self._count
        needed, pending = set[int](), [last]
        while pending:
            here = pending.pop()
            if here >= count and here not in needed:
                needed.add(here)
                if self._steps[here - count][0] != "law":
                    pending += self._steps[here - count][2]
        order = {old: new for new, old in enumerate([*range(count), *sorted(needed)])}
        lists = Lists(self.terms, plain=True)
        for fact in self.conclusions[:count]:
            lists.number(fact)
        known, steps = len(lists.nodes), []
        for chosen in sorted(needed):
            rule, said, *given = self._steps[chosen - count]
            if rule == "law":
                name, of = given
                steps.append([rule, name, [lists.number(term) for term in of]])
                continue
            premises, *more = given
            step = [rule, lists.number(said), [order[p] for p in premises]]
            if rule == "products":
                summands, multiples = more
                step += [summands, [[i, lists.number(term)] for i, term in multiples]]
            steps.append(step)
        return {"terms": lists.nodes[known:], "steps": steps}
