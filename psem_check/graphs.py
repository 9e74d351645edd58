"""Sorts, symbols and terms as lists of a file.

A sort is ["Int"] or the like, ["Array", index, element], ["Sort", name] or ["Values", name, [names]].
A symbol is [name, [sorts of its arguments], its sort]. A term is [operator, arguments...],
["apply", symbol, arguments...], ["int", n], ["real", n, d], ["value", sort, which], ["float", bits],
["true"] or ["false"]. Numbers refer to what stands before in the same list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from psem_check.terms import BOOL, FLOAT, INT, REAL, Rejected, Sort, Symbol, Term, Terms

Kind = TypeVar("Kind")
LARGEST = 100  # sorts in a sort
PLAIN = (BOOL, INT, REAL, FLOAT)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
RESERVED_WORDS = """
    and or not xor distinct ite if then else true false div mod abs neg to_real to_int is_int select
    store div_total mod_total given where for by nan inf
"""
RESERVED = frozenset(RESERVED_WORDS.split())


@dataclass
class Graph:
    """Lists that are read, as terms: what a number of a list means."""

    terms: Terms = field(default_factory=Terms)
    sorts: list[Sort] = field(default_factory=list)
    numbers: list[Term] = field(default_factory=list)
    values: set[str] = field(default_factory=set)  # of all sorts
    _named: set[str] = field(default_factory=set)
    _sizes: list[int] = field(default_factory=list)

    def read(self, sorts: Any, symbols: Any, nodes: Any) -> None:
        """Add the lists of a file. Raises Rejected for what they cannot be."""
        for entry in listed(sorts):
            self.sorts.append(self._sort(listed(entry)))
        for entry in listed(symbols):
            name, arguments, sort = _of_length(entry, 3)
            made = Symbol(plain(name), tuple(map(self.sort, listed(arguments))), self.sort(sort))
            self.terms.symbols.append(made)
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
        size = 1
        if kind in PLAIN and not parts:
            made: Sort = kind
        elif kind == "Array":
            index, element = _of_length(parts, 2)
            made = ("Array", self.sort(index), self.sort(element))
            size = 1 + self._sizes[index] + self._sizes[element]
        elif kind == "Sort":
            (name,) = _of_length(parts, 1)
            made = ("Sort", _new(name, self._named))
        elif kind == "Values":
            name, names = _of_length(parts, 2)
            values = tuple(map(plain, listed(names)))
            if not values or len({*values}) != len(values):
                raise Rejected(f"the values of {name} are not distinct")
            self.values.update(values)
            made = ("Values", _new(name, self._named), values)
        else:
            raise Rejected(f"{entry} is not a sort")
        if size > LARGEST:
            raise Rejected("a sort is too large")
        self._sizes.append(size)
        return made

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


def _new(given: Any, known: set[str]) -> str:
    """The name of a sort, beside those that are known."""
    name = plain(given)
    if name in known or name in (*PLAIN, "Array"):
        raise Rejected(f"two sorts have the name {name}")
    known.add(name)
    return name


def _integer(given: Any) -> int:
    return _is(int, given, "an integer")


def _index(given: Any, length: int) -> int:
    if not 0 <= _integer(given) < length:
        raise Rejected(f"{str(given)[:40]} is not one of {length}")
    return int(given)
