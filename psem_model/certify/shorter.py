"""A proof with fewer steps. Not trusted: the checker reads what comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from psem_check.equalities import RULES
from psem_check.graphs import Graph
from psem_check.logic import Logic
from psem_check.proofs import Steps
from psem_check.terms import Rejected, Term

WORK = 2000  # of the checker's logic, for a step that was several
MOST = 30  # premises of it
EQUALITIES = ("cong", "trans", "logic")


class Shorter:
    """The steps of a proof, changed in place: [rule, conclusion, premises, more]."""

    def __init__(self, graph: Graph, steps: Sequence[Sequence[Any]]) -> None:
        self.graph = graph
        self.logic = Logic(graph.terms, WORK)
        self.steps = [[*step[:2], [*premises_of(step)], *step[3:]] for step in steps]

    def made(self) -> list[list[Any]]:
        """All steps that the last one rests on."""
        turned: dict[int, int] = {}  # by an equation, what says it the other way round
        for number, (rule, _, premises, *_) in enumerate(self.steps):
            if rule in EQUALITIES:
                known = [turned.get(p, p) for p in premises if not self._sides(p, same=True)]
                premises[:] = known if rule == "trans" else dict.fromkeys(known)
                if rule == "logic" and len(premises) == 1 and self._turns(number, premises[0]):
                    turned[number] = premises[0]
        return self._renumbered()

    def joined(self) -> list[list[Any]] | None:
        """Likewise, where steps by the same rule are one; none if the checker takes too long for it."""
        used = Counter(p for number in self._needed() for p in self.steps[number][2])
        for number in sorted(self._needed()):
            self._join(number, used)
        steps, made = Steps(self.graph), self._renumbered()
        try:
            for step in made:
                steps.take(*step)
        except Rejected:
            return None
        return made

    def _conclusion(self, number: int) -> Term:
        return self.graph.term(self.steps[number][1])

    def _sides(self, number: int, same: bool = False) -> tuple[Term, ...]:
        """Of an equation; `same`: only if they are."""
        terms, said = self.graph.terms, self._conclusion(number)
        sides = terms.arguments[said] if terms.heads[said] == "=" else ()
        return sides if not same or (sides and sides[0] == sides[1]) else ()

    def _turns(self, number: int, premise: int) -> bool:
        return bool(self._sides(number)) and self._sides(number) == self._sides(premise)[::-1]

    def _join(self, number: int, used: Counter[int]) -> None:
        """A step takes the premises of those by the same rule that only it uses."""
        rule, _, premises, *_ = self.steps[number]
        if rule not in EQUALITIES:
            return
        joined: list[int] = []
        for p in premises:
            alone = self.steps[p][0] == rule and used[p] == 1
            joined += self.steps[p][2] if alone else [p]
        if rule != "trans":
            joined = [*dict.fromkeys(joined)]
        if joined != premises and len(joined) <= MOST and self._follows(rule, joined, number):
            used.subtract(premises)
            used.update(joined)
            premises[:] = joined

    def _follows(self, rule: str, premises: Sequence[int], number: int) -> bool:
        known, said = [self._conclusion(p) for p in premises], self._conclusion(number)
        try:
            if rule == "logic":
                return self.logic.follows(known, said)
            return RULES[rule](self.graph.terms, known, said, [])
        except Rejected:
            return False

    def _needed(self) -> set[int]:
        needed: set[int] = set()
        pending = [len(self.steps) - 1]
        while pending:
            here = pending.pop()
            if here not in needed:
                needed.add(here)
                pending += self.steps[here][2]
        return needed

    def _renumbered(self) -> list[list[Any]]:
        order = {old: new for new, old in enumerate(sorted(self._needed()))}
        made = []
        for old in order:
            rule, said, premises, *more = self.steps[old]
            of = [order[p] for p in premises]
            made.append([rule, said, of, *more] if of or more else [rule, said])
        return made


def premises_of(step: Sequence[Any]) -> Sequence[int]:
    return step[2] if len(step) > 2 else []


def numbers_in(step: Sequence[Any]) -> list[list[Any]]:
    """Where a step has numbers of terms: [list, position]."""
    places = [[step, 1]]
    if step[0] == "scope":
        places += [[step[3], i] for i in range(len(step[3]))]
    elif step[0] == "products":
        places += [[pair, 1] for pair in (step[4] if len(step) > 4 else [])]
    elif len(step) > 3:
        places += [[pair, 1] for pair in step[3]]
    return places


def shorter(graph: Graph, known: int, proof: dict[str, Any]) -> dict[str, Any]:
    """The proof of a question; its terms come after so many that are known in the graph."""
    graph.more(proof["terms"])
    of = Shorter(graph, proof["steps"])
    steps = of.made()
    steps = of.joined() or steps
    nodes, needed = proof["terms"], set[int]()
    pending = [at[i] for step in steps for at, i in numbers_in(step)]
    while pending:
        here = pending.pop()
        if here >= known and here not in needed:
            needed.add(here)
            pending += _below(nodes[here - known])
    order = {old: known + new for new, old in enumerate(sorted(needed))}
    for step in steps:
        for at, i in numbers_in(step):
            at[i] = order.get(at[i], at[i])
    terms = []
    for old in sorted(needed):
        node = nodes[old - known]
        parts = [order.get(n, n) for n in _below(node)]
        terms.append([*node[: len(node) - len(parts)], *parts])
    return {"terms": terms, "steps": steps}


def _below(node: Sequence[Any]) -> list[int]:
    """The terms that a term of a list is made of."""
    if node[0] in ("int", "real", "value", "float", "true", "false"):
        return []
    return list(node[2 if node[0] == "apply" else 1 :])
