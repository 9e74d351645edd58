"""Terms as lists of a file; an obligation as such lists of its own: a question, whose proof is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psem_check.proofs import check_proof
from psem_check.reader import Graph
from psem_check.terms import BOOL, INT, REAL, Sort, Term, Terms


@dataclass
class Lists:
    """The lists of some terms of a graph, with numbers in place of names if `plain`."""

    terms: Terms
    plain: bool = False
    sorts: list[Any] = field(default_factory=list)
    symbols: list[Any] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    sort_numbers: dict[Sort, int] = field(default_factory=dict)
    symbol_numbers: dict[int, int] = field(default_factory=dict)
    numbers: dict[Term, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for sort in (BOOL, INT, REAL):  # a proof may need numerals of which there is none so far
            self.sort(sort)

    def number(self, term: Term) -> int:
        """The number of a term in the list, to which it is added with all it is made of."""
        pending = [term]
        while pending:
            here = pending[-1]
            missing = [a for a in self.terms.arguments[here] if a not in self.numbers]
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if here not in self.numbers:
                node = self._node(here)
                self.numbers[here] = len(self.nodes)
                self.nodes.append(node)
        return self.numbers[term]

    def _node(self, term: Term) -> list[Any]:
        head = self.terms.heads[term]
        arguments = [self.numbers[a] for a in self.terms.arguments[term]]
        if isinstance(head, str):
            return [head, *arguments]
        if isinstance(head, int):
            return ["apply", self.symbol(head), *arguments]
        sort, what = head
        said = [what.numerator, what.denominator] if sort == REAL else [what]
        return ["constant", self.sort(sort), *said]

    def symbol(self, symbol: int) -> int:
        if symbol not in self.symbol_numbers:
            said = self.terms.symbols[symbol]
            arguments, sort = [self.sort(a) for a in said.arguments], self.sort(said.sort)
            self.symbol_numbers[symbol] = len(self.symbols)
            name = f"s{len(self.symbols)}" if self.plain else said.name
            self.symbols.append([name, arguments, sort])
        return self.symbol_numbers[symbol]

    def sort(self, sort: Sort) -> int:
        if sort not in self.sort_numbers:
            entry = self._entry(sort)
            self.sort_numbers[sort] = len(self.sorts)
            self.sorts.append(entry)
        return self.sort_numbers[sort]

    def _entry(self, sort: Sort) -> list[Any]:
        if isinstance(sort, str):
            return [sort]
        kind, *parts = sort
        if kind == "Array":
            return ["Array", *map(self.sort, parts)]
        name = f"S{len(self.sorts)}" if self.plain else parts[0]
        if kind == "Sort":
            return ["Sort", name]
        values = [f"v{i}" for i in range(len(parts[1]))] if self.plain else list(parts[1])
        return ["Values", name, values]


def question(terms: Terms, facts: Sequence[Term]) -> str:
    """An obligation by itself, whatever its symbols and sorts are called: what a proof is of."""
    lists = Lists(terms, plain=True)
    numbers = [lists.number(fact) for fact in facts]
    document = [lists.sorts, lists.symbols, lists.nodes, numbers]
    return json.dumps(document, separators=(",", ":"))


def key_of(text: str) -> str:
    """By which the proof of a question is kept."""
    return hashlib.sha256(text.encode()).hexdigest()


class Reader(Graph):
    """The lists of a question, read as terms of the graph that it was asked in."""

    def __init__(self, terms: Terms, facts: Sequence[Term]) -> None:
        lists = Lists(terms, plain=True)
        for fact in facts:
            lists.number(fact)
        super().__init__(terms, [*lists.sort_numbers], [*lists.numbers])
        self._symbols = [*lists.symbol_numbers]

    def symbol(self, number: int) -> int:
        return self._symbols[number]


def asked(text: str) -> tuple[Graph, list[Term]]:
    """The graph of an obligation, and its facts."""
    sorts, symbols, nodes, facts = json.loads(text)
    graph = Graph()
    graph.read(sorts, symbols, nodes)
    return graph, [graph.term(fact) for fact in facts]


def check(text: str, proof: Mapping[str, Any]) -> None:
    """Raise Rejected unless a proof is one of a question."""
    graph, facts = asked(text)
    graph.read([], [], proof["terms"])
    check_proof(graph, facts, proof["steps"])
