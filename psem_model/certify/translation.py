"""The kernel's terms as terms of a certificate. Not trusted: the checker reads what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from proofs.trusted import terms as trusted
from proofs.trusted.folding import as_float
from proofs.trusted.kernel import Kernel
from proofs.trusted.parts import below
from psem_check.terms import FLOAT, Sort, Symbol, Term, Terms


class Translation:
    """The terms of one kernel, added to a graph that several share."""

    def __init__(self, terms: Terms, kernel: Kernel) -> None:
        self.terms = terms
        self.symbols: dict[str, int] = {}
        self.variables: list[int] = []
        self._done: dict[int, Term] = {}  # by the kernel's term
        for name, symbol in kernel._symbols.items():
            self.symbols[name] = len(terms.symbols)
            takes = tuple(map(sort_of, symbol.takes))
            terms.symbols.append(Symbol(name, takes, sort_of(symbol.gives)))
            if name in kernel._variables:
                self.variables.append(self.symbols[name])

    def symbol(self, declared: trusted.Symbol) -> int:
        return self.symbols[declared.name]

    def several(self, terms: Sequence[Any]) -> list[Term]:
        return [self.term(term) for term in terms]

    def named(self, values: Mapping[str, Any]) -> list[list[Term]]:
        """Variables by name, and the terms in their place."""
        return [
            [
                self.terms.make(self.symbols[name]),
                self.term(trusted.IntVal(v) if type(v) is int else v),
            ]
            for name, v in values.items()
        ]

    def term(self, term: trusted.Term) -> Term:
        """The same term, in the graph."""
        for here in below([term]):
            if id(here) not in self._done:
                self._done[id(here)] = self._made(here, [self._done[id(arg)] for arg in here.args])
        return self._done[id(term)]

    def _made(self, term: trusted.Term, arguments: list[Term]) -> Term:
        terms = self.terms
        if term.op == "apply":
            return terms.make(self.symbol(term.of), *arguments)
        if term.op == "bool":
            return terms.true if term.of else terms.false
        if term.op == "number":
            return terms.number(Fraction(term.of), sort_of(term.sort))
        if term.op == "value":
            return terms.make((sort_of(term.sort), term.of))
        if term.op == "float":
            return terms.make((FLOAT, as_float(term).hex()))
        if term.op == "distinct":  # two by two
            pairs = [terms.negation(terms.equal(*pair)) for pair in combinations(arguments, 2)]
            return terms.conjunction(pairs)
        return terms.make(term.op, *arguments)


def sort_of(sort: trusted.Sort) -> Sort:
    """The same sort, in a certificate."""
    if sort.kind == "Array":
        return ("Array", *map(sort_of, sort.parts))
    if sort.kind == "Sort":
        return ("Sort", sort.name)
    return ("Values", sort.name, sort.parts) if sort.kind == "Values" else sort.kind
