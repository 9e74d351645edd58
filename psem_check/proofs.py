"""A proof that facts are impossible together, gone through step by step.

A step is [rule, conclusion, premises, ...]: premises are numbers of earlier steps, and what follows
depends on the rule. A step holds under assumptions, which `scope` discharges. An unknown rule is a
rejection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psem_check import arithmetic, equalities, schemas
from psem_check.graphs import Graph
from psem_check.logic import Logic
from psem_check.polynomials import Polynomials
from psem_check.products import products
from psem_check.terms import BOOL, Rejected, Term


def check_proof(graph: Graph, facts: Sequence[Term], proof: Mapping[str, Any]) -> None:
    """Raise Rejected unless the last step of the proof is false, under no assumption but facts."""
    if set(proof) != {"terms", "steps"}:
        raise Rejected("a proof has terms and steps")
    graph.more(proof["terms"])
    steps = Steps(graph)
    for number, step in enumerate(proof["steps"]):
        try:
            steps.take(*step)
        except Rejected as error:
            raise Rejected(f"step {number}, {step[0]}: {error}") from error
    if not steps.conclusions or steps.conclusions[-1] != graph.terms.false:
        raise Rejected("it does not end in a contradiction")
    if not steps.assumed(steps.under[-1]) <= set(facts):
        raise Rejected("it rests on more than the facts")


class Steps:
    """The steps so far: what each concludes, and under which assumptions (as bits)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.terms = graph.terms
        self.logic = Logic(graph.terms)
        self.polynomials = Polynomials(graph.terms)
        self.conclusions: list[Term] = []
        self.under: list[int] = []
        self._bits: dict[Term, int] = {}

    def take(self, rule: str, conclusion: int, premises: Sequence[int] = (), *more: Any) -> None:
        """One step further. Raises Rejected unless the conclusion follows from the premises."""
        said = self.graph.term(conclusion)
        if self.terms.sorts[said] != BOOL:
            raise Rejected("its conclusion is no formula")
        if not all(type(p) is int and 0 <= p < len(self.conclusions) for p in premises):
            raise Rejected("a premise that is not there yet")
        known = [self.conclusions[p] for p in premises]
        under = 0
        for p in premises:
            under |= self.under[p]
        if rule == "assume":
            under = self._bit(said)
        elif rule == "scope":
            under &= ~self._scope(known, said, *more)
        elif not self._follows(rule, known, said, more):
            raise Rejected("it does not follow")
        self.conclusions.append(said)
        self.under.append(under)

    def assumed(self, bits: int) -> set[Term]:
        return {term for term, bit in self._bits.items() if bits & bit}

    def _bit(self, assumption: Term) -> int:
        return self._bits.setdefault(assumption, 1 << len(self._bits))

    def _scope(self, known: Sequence[Term], said: Term, discharged: Sequence[int]) -> int:
        """The assumptions imply what holds under them: the bits that are discharged."""
        terms = self.terms
        assumptions = [self.graph.term(number) for number in discharged]
        (goal,) = known
        condition = terms.conjunction(assumptions)
        implied = {terms.make("=>", condition, goal)} if assumptions else {goal}
        if goal == terms.false:
            implied.add(terms.negation(condition))
        if said not in implied:
            raise Rejected("it is not what the scope implies")
        bits = 0
        for assumption in assumptions:
            bits |= self._bit(assumption)
        return bits

    def _follows(self, rule: str, known: list[Term], said: Term, more: Sequence[Any]) -> bool:
        if rule == "logic":
            return self.logic.follows(known, said, *more)
        if rule in schemas.SCHEMAS:
            return schemas.matches(self.terms, rule, known, said)
        if rule == "products":
            summands, multiples = more
            multipliers = [[position, self.graph.term(number)] for position, number in multiples]
            return products(self.polynomials, known, said, (summands, multipliers))
        given = [[flag, self.graph.term(number)] for flag, number in more[0]] if more else []
        if rule in equalities.RULES:
            return equalities.RULES[rule](self.terms, known, said, given)
        if rule in arithmetic.RULES:
            return arithmetic.RULES[rule](self.polynomials, known, said, given)
        raise Rejected("it is not a rule")
