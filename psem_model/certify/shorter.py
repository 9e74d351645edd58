"""A solver's proof, in many rules, as one in the few of the checker. Not trusted.

Each step of the solver rests on facts, on what is assumed for a while, and on lemmas: what products of
comparisons add up to, and laws of operators. Where the checker sees at once that a step follows from
these, nothing between is written; otherwise the steps that it comes from are written first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from psem_check.proofs import WORK as ENOUGH
from psem_check.reader import Graph
from psem_check.terms import Rejected, Term
from psem_model.certify.formulas import Unwritten
from psem_model.certify.lemmas import Lemmas, Node
from psem_model.certify.written import SOON, Written

MOST = 40  # steps that one follows from
Step = tuple[str, Term, Sequence[int], Sequence[Any]]  # rule, conclusion, premises by number, more


class Shorter:
    """The steps of a solver so far, and those that are written."""

    def __init__(self, graph: Graph, facts: Sequence[Term]) -> None:
        self.terms = graph.terms
        self.written = Written(graph, facts)
        self.nodes: list[Node] = []
        self.lemmas = Lemmas(self.written, self.nodes, self._concluded)
        self._facts = {fact: number for number, fact in enumerate(facts)}
        self._assumed: dict[Term, int] = {}
        self._tried: set[int] = set()
        self._derived: dict[int, tuple[int, ...]] = {}

    # ------------------------------------------------------------------ the solver's steps
    def take(self, rule: str, said: Term, premises: Sequence[int], more: Sequence[Any] = ()) -> None:
        """A step of the solver: `premises` are numbers of its earlier ones."""
        rests = frozenset[int]().union(*(self.nodes[p].rests for p in premises))
        lemmas = frozenset[int]()
        if rule == "assume":
            rests = frozenset([self._assumption(said)])
        elif rule == "scope":
            rests -= {self._assumption(assumed) for assumed in more[0]}
        else:
            lemmas = frozenset(self.lemmas.of(rule, said, premises))
        self.nodes.append(Node(rule, said, tuple(premises), rests | lemmas, lemmas))

    def _assumption(self, said: Term) -> int:
        """The number of a fact, or of what is assumed for a while."""
        if said in self._facts:
            return self._facts[said]
        return self._assumed.setdefault(said, -1 - len(self._assumed))

    def _concluded(self, number: int) -> Term:
        return self.written.conclusions[number] if number >= 0 else [*self._assumed][-1 - number]

    # ------------------------------------------------------------------ what is written
    def proof(self) -> dict[str, Any]:
        """The steps that the last one rests on, which says that the facts are impossible."""
        (last,) = self._derive(len(self.nodes) - 1)
        if self.written.conclusions[last] != self.terms.false:
            raise Unwritten("no contradiction")
        return self.written.lists(last)

    def _derive(self, number: int) -> tuple[int, ...]:
        """The written steps that say what a step of the solver does: its own, and what is assumed."""
        pending = [number]
        while pending:
            here = pending[-1]
            node = self.nodes[here]
            missing = [p for p in node.premises if p not in self._derived]
            if here in self._derived:
                pending.pop()
            elif node.rule == "assume":
                self._derived[here] = tuple(node.rests)
            elif here not in self._tried and self._follows(node.said, node.rests, SOON):
                self._derived[here] = self._write(node.said, node.rests)
            elif missing:
                self._tried.add(here)
                pending += missing
            else:
                self._derived[here] = self._from_premises(node)
        return self._derived[number]

    def _from_premises(self, node: Node) -> tuple[int, ...]:
        """A step of the solver, by those that say what it comes from."""
        below = {step for premise in node.premises for step in self._derived[premise]}
        if node.rule == "scope":
            below = {step for step in below if step >= 0 or step in node.rests}
        below |= node.lemmas
        if not self._follows(node.said, below, ENOUGH):
            said = [node.said, *(self.nodes[premise].said for premise in node.premises)]
            below |= {lemma for term in self.terms.below(said) for lemma in self.lemmas.laws(term)}
            if not self._follows(node.said, below, ENOUGH):
                raise Unwritten(f"the rule {node.rule}")
        return self._write(node.said, below)

    def _follows(self, said: Term, numbers: Iterable[int], work: int) -> bool:
        known = [self._concluded(number) for number in sorted(numbers)]
        if work < ENOUGH and len(known) > MOST:
            return False
        try:
            return said in known or self.written.follows(known, said, work)
        except (Rejected, RecursionError):
            return False

    def _write(self, said: Term, premises: Iterable[int]) -> tuple[int, ...]:
        """A step; of what holds under assumptions, that these imply it."""
        premises = sorted(premises)
        for p in premises:
            if self._concluded(p) == said:
                return (p,)
        under = [p for p in premises if p < 0]
        implied = self.written.implied([self._concluded(number) for number in under], said)
        known = tuple(p for p in premises if p >= 0)
        return (self.written.step("follows", implied, known), *under)


def shorter(graph: Graph, facts: Sequence[Term], steps: Iterable[Step]) -> dict[str, Any]:
    """The proof that a solver's steps are. Raises Unwritten."""
    made = Shorter(graph, facts)
    for rule, said, premises, more in steps:
        made.take(rule, said, premises, more)
    return made.proof()
