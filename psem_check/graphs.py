"""Sorts, symbols and terms as lists of a file, and an obligation as such lists of its own.

A sort is ["Int"] or the like, ["Array", index, element], ["Sort", name] or ["Values", name, [names]].
A symbol is [name, [sorts of its arguments], its sort]. A term is [operator, arguments...],
["apply", symbol, arguments...], ["int", n], ["real", n, d], ["value", sort, which], ["float", bits],
["true"] or ["false"]. Numbers refer to what stands before in the same list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from psem_check.terms import BOOL, FLOAT, INT, REAL, Rejected, Sort, Symbol, Term, Terms

Kind = TypeVar("Kind")
DEEPEST = 20  # sorts within sorts
PLAIN = (BOOL, INT, REAL, FLOAT)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
RESERVED_WORDS = """
    and or not xor distinct ite if then else true false div mod abs neg to_real to_int is_int select
    store div_total mod_total given where for by
"""
RESERVED = frozenset(RESERVED_WORDS.split())


@dataclass
class Graph:
    """Lists that are read, as terms: what a number of a list means."""

    terms: Terms = field(default_factory=Terms)
    sorts: list[Sort] = field(default_factory=list)
    numbers: list[Term] = field(default_factory=list)
    _depths: list[int] = field(default_factory=list)
    _named: dict[str, Sort] = field(default_factory=dict)

    def read(self, sorts: Any, symbols: Any, nodes: Any) -> None:
        """Add the lists of a file. Raises Rejected for what they cannot be."""
        for entry in listed(sorts):
            self.sorts.append(self._sort(listed(entry)))
        for entry in listed(symbols):
            name, arguments, sort = _of_length(entry, 3)
            made = Symbol(plain(name), tuple(map(self.sort, listed(arguments))), self.sort(sort))
            self.terms.symbols.append(made)
        self.more(nodes)

    def more(self, nodes: Any) -> None:
        """Add terms to those that are there."""
        for entry in listed(nodes):
            self.numbers.append(self._node(listed(entry)))

    def term(self, number: Any) -> Term:
        """What a number of the list of terms refers to."""
        return self.numbers[_index(number, len(self.numbers))]

    def sort(self, number: Any) -> Sort:
        return self.sorts[_index(number, len(self.sorts))]

    def symbol(self, number: Any) -> int:
        return _index(number, len(self.terms.symbols))

    def _sort(self, entry: list[Any]) -> Sort:
        kind, *parts = entry if entry else [""]
        depth = 0
        if kind in PLAIN and not parts:
            made: Sort = kind
        elif kind == "Array":
            index, element = _of_length(parts, 2)
            made = ("Array", self.sort(index), self.sort(element))
            depth = 1 + max(self._depths[index], self._depths[element])
        elif kind == "Sort":
            (name,) = _of_length(parts, 1)
            made = self._new_name(("Sort", plain(name)))
        elif kind == "Values":
            name, names = _of_length(parts, 2)
            values = tuple(map(plain, listed(names)))
            if not values or len(set(values)) != len(values):
                raise Rejected(f"the values of {name} are not distinct")
            made = self._new_name(("Values", plain(name), values))
        else:
            raise Rejected(f"{entry} is not a sort")
        if depth > DEEPEST:
            raise Rejected("a sort is too deep")
        self._depths.append(depth)
        return made

    def _new_name(self, sort: Sort) -> Sort:
        if sort[1] in self._named or sort[1] in (*PLAIN, "Array"):
            raise Rejected(f"the sort {sort[1]} is declared twice")
        self._named[sort[1]] = sort
        return sort

    def _node(self, entry: list[Any]) -> Term:
        kind, *rest = entry if entry else [""]
        terms = self.terms
        if kind == "apply" and rest:
            return terms.apply(self.symbol(rest[0]), *map(self.term, rest[1:]))
        if kind == "int":
            return terms.make(("int", _integer(*_of_length(rest, 1))))
        if kind == "real":
            numerator, denominator = map(_integer, _of_length(rest, 2))
            if denominator <= 0:
                raise Rejected(f"{entry} is not a number")
            return terms.make(("real", Fraction(numerator, denominator)))
        if kind == "value":
            sort, which = _of_length(rest, 2)
            return terms.make(("value", self.sort(sort), _integer(which)))
        if kind == "float":
            bits = _integer(*_of_length(rest, 1))
            return terms.make(("float", _index(bits, 1 << 64)))
        if kind in ("true", "false") and not rest:
            return terms.true if kind == "true" else terms.false
        return terms.make(_is(str, kind, "a name"), *map(self.term, rest))


def _is(kind: type[Kind], given: Any, words: str) -> Kind:
    if type(given) is not kind:
        raise Rejected(f"{str(given)[:40]} is not {words}")
    return given


def listed(given: Any) -> list[Any]:
    return _is(list, given, "a list")


def _of_length(given: Any, length: int) -> list[Any]:
    if len(listed(given)) != length:
        raise Rejected(f"{str(given)[:40]} has not {length} members")
    return list(given)


def plain(given: Any) -> str:
    """A name that cannot be taken for anything else where it is printed."""
    if not NAME.fullmatch(_is(str, given, "a name")) or given in RESERVED:
        raise Rejected(f"{given[:40]!r} is not a plain name")
    return str(given)


def _integer(given: Any) -> int:
    return _is(int, given, "an integer")


def _index(given: Any, length: int) -> int:
    if not 0 <= _integer(given) < length:
        raise Rejected(f"{str(given)[:40]} is not one of {length}")
    return int(given)


# ---------------------------------------------------------------------------- writing
@dataclass
class Lists:
    """The lists of some terms of a graph, with numbers in place of names if `plain`."""

    terms: Terms
    plain: bool = False
    sorts: list[Any] = field(default_factory=list)
    symbols: list[Any] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    _sorts: dict[Sort, int] = field(default_factory=dict)
    _symbols: dict[int, int] = field(default_factory=dict)
    _numbers: dict[Term, int] = field(default_factory=dict)

    def number(self, term: Term) -> int:
        """The number of a term in the list, to which it is added with all it is made of."""
        pending = [term]
        while pending:
            here = pending[-1]
            missing = [a for a in self.terms.arguments[here] if a not in self._numbers]
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if here not in self._numbers:
                node = self._node(here)
                self._numbers[here] = len(self.nodes)
                self.nodes.append(node)
        return self._numbers[term]

    def _node(self, term: Term) -> list[Any]:
        head = self.terms.heads[term]
        arguments = [self._numbers[a] for a in self.terms.arguments[term]]
        if isinstance(head, str):
            return [head, *arguments]
        kind, what = head[0], head[1]
        if kind == "symbol":
            return ["apply", self.symbol(what), *arguments]
        if kind == "bool":
            return ["true" if what else "false"]
        if kind == "real":
            return ["real", what.numerator, what.denominator]
        return ["value", self.sort(what), head[2]] if kind == "value" else [kind, what]

    def symbol(self, symbol: int) -> int:
        if symbol not in self._symbols:
            said = self.terms.symbols[symbol]
            arguments, sort = [self.sort(a) for a in said.arguments], self.sort(said.sort)
            self._symbols[symbol] = len(self.symbols)
            name = f"s{len(self.symbols)}" if self.plain else said.name
            self.symbols.append([name, arguments, sort])
        return self._symbols[symbol]

    def sort(self, sort: Sort) -> int:
        if sort not in self._sorts:
            entry = self._entry(sort)
            self._sorts[sort] = len(self.sorts)
            self.sorts.append(entry)
        return self._sorts[sort]

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


def asked(text: str) -> tuple[Graph, list[Term]]:
    """The graph of an obligation, and its facts."""
    sorts, symbols, nodes, facts = json.loads(text)
    graph = Graph()
    graph.read(sorts, symbols, nodes)
    return graph, [graph.term(fact) for fact in facts]
