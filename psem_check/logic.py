"""Propositional logic: whether a conclusion follows from premises by the meaning of connectives.

A formula is a number: of an atom, or of a conjunction of numbers. Its negation is the negative, so
that these two are all there is. What is the same up to the order of a conjunction, or of an equation,
has the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from psem_check.terms import BOOL, Rejected, Term, Terms

TRUE = 1
FALSE = -TRUE
WORK = 100_000  # members of clauses that are looked at in one step
Formula = int


class Logic:
    """The formulas of a graph as numbers."""

    def __init__(self, terms: Terms, work: int = WORK) -> None:
        self.terms = terms
        self._most = work
        self._parts: list[frozenset[Formula]] = [frozenset(), frozenset()]  # of conjunctions, by number
        self._numbers: dict[Any, Formula] = {}
        self._made: dict[Term, Formula] = {}

    def follows(self, premises: Sequence[Term], conclusion: Term) -> bool:
        """Whether premises imply a conclusion. Raises Rejected if that takes too many cases."""
        self._work = self._most
        formulas = [*map(self._of, premises), -self._of(conclusion)]
        return self._impossible(set(), [], formulas)

    # ------------------------------------------------------------------ formulas as numbers
    def _of(self, term: Term) -> Formula:
        pending = [term]
        while pending:
            here = pending[-1]
            missing = [part for part in self._connected(here) if part not in self._made]
            if missing:
                pending += missing
                continue
            pending.pop()
            self._made[here] = self._formula(here)
        return self._made[term]

    def _connected(self, term: Term) -> tuple[Term, ...]:
        """What a connective joins; nothing if the formula is an atom."""
        arguments = self.terms.arguments[term]
        head = self.terms.heads[term]
        boolean = all(self.terms.sorts[a] == BOOL for a in arguments)
        joins = head in ("not", "and", "or", "=>", "xor", "ite", "=", "distinct")
        return arguments if boolean and joins else ()

    def _formula(self, term: Term) -> Formula:
        head, arguments = self.terms.heads[term], self.terms.arguments[term]
        if term in (self.terms.true, self.terms.false):
            return TRUE if term == self.terms.true else FALSE
        if not self._connected(term):
            if head == "=":
                return self._equation(*arguments)
            if head == "distinct":
                return self._both(-self._equation(a, b) for a, b in combinations(arguments, 2))
            return self._number(term)
        parts = [self._made[a] for a in arguments]
        if head == "not":
            return -parts[0]
        if head == "and":
            return self._both(self._joined(term, 1))
        if head == "or":
            return -self._both(self._joined(term, -1))
        if head == "=>":
            return self._either(-parts[0], parts[1])
        if head == "ite":
            condition, then, otherwise = parts
            return self._both([self._either(-condition, then), self._either(condition, otherwise)])
        if head == "distinct":
            return self._both(-self._same(a, b) for a, b in combinations(parts, 2))
        return self._same(*parts) if head == "=" else -self._same(*parts)

    def _joined(self, term: Term, sign: int) -> Iterator[Formula]:
        """What a conjunction joins, however it is nested; of a disjunction, what it denies."""
        for argument in self.terms.arguments[term]:
            part = sign * self._made[argument]
            nested = self.terms.heads[argument] == self.terms.heads[term] and part > 0
            yield from (self._parts[part] or [part]) if nested else [part]

    def _equation(self, left: Term, right: Term) -> Formula:
        """An equation of terms that are no formulas."""
        return TRUE if left == right else self._number(("=", *sorted((left, right))))

    def _both(self, formulas: Iterable[Formula]) -> Formula:
        found = frozenset(formulas) - {TRUE}
        if FALSE in found or any(-part in found for part in found):
            return FALSE
        return self._number(found) if len(found) > 1 else next(iter(found), TRUE)

    def _either(self, one: Formula, other: Formula) -> Formula:
        return -self._both([-one, -other])

    def _same(self, one: Formula, other: Formula) -> Formula:
        if one == other:
            return TRUE
        return self._both([self._either(-one, other), self._either(one, -other)])

    def _number(self, key: Any) -> Formula:
        found = self._numbers.setdefault(key, len(self._parts))
        if found == len(self._parts):
            self._parts.append(key if isinstance(key, frozenset) else frozenset())
        return found

    # ------------------------------------------------------------------ cases
    def _impossible(self, so: set[Formula], clauses: list[list[Formula]], new: list[Formula]) -> bool:
        """Whether formulas are impossible together. `so`: what holds; `clauses`: that not all of these
        do; `new`: what holds besides.
        """
        while True:
            if self._contradicts(so, clauses, new):
                return True
            new, clauses = [], self._open(so, clauses)
            for clause in clauses:
                if not clause:
                    return True
                if len(clause) == 1:
                    new.append(-clause[0])
            if new:
                continue
            if not clauses:
                return False
            shortest = min(clauses, key=len)
            clauses.remove(shortest)
            *others, last = shortest
            for i, part in enumerate(others):
                if not self._impossible({*so}, [*clauses], [-part, *others[:i]]):
                    return False
            new = [-last, *others]

    def _contradicts(self, so: set[Formula], clauses: list[list[Formula]], new: list[Formula]) -> bool:
        """Add what holds; whether it cannot, besides what held."""
        while new:
            formula = new.pop()
            if -formula in so or formula == FALSE:
                return True
            if formula in so or formula == TRUE:
                continue
            so.add(formula)
            parts = self._parts[abs(formula)]
            if formula > 0:
                new.extend(parts)
            elif parts:
                clauses.append([*parts])
        return False

    def _open(self, so: set[Formula], clauses: list[list[Formula]]) -> list[list[Formula]]:
        """Of clauses that something has to be done for, the parts that do not hold yet."""
        self._work -= 1 + sum(map(len, clauses))
        if self._work < 0:
            raise Rejected("it has too many cases")
        left = (clause for clause in clauses if not any(-part in so for part in clause))
        return [[part for part in clause if part not in so] for clause in left]
