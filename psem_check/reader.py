"""A certificate's file: compressed JSON; and its lists of sorts, symbols and terms.

A sort is ["Int"] or the like, ["Array", index, element], ["Sort", name] or ["Values", name, [names]].
A symbol is [name, [sorts of its arguments], its sort]. A term is [operator, arguments...],
["apply", symbol, arguments...] or ["constant", sort, what it is]: an integer; a numerator and a
denominator; true or false; the number of a value; or a float's text. Numbers refer to what stands
before in the same list. Whatever is wrong is a rejection.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from psem_check.terms import BOOL, FLOAT, INT, REAL, Rejected, Sort, Symbol, Term, Terms, named

VERSION = 7
LARGEST = 1 << 25  # bytes, as they are in the file and decompressed
PLAIN = (BOOL, INT, REAL, FLOAT)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
RESERVED_WORDS = """
    and or not ite if then else true false div mod neg to_real select store given where for by nan inf
"""
RESERVED = frozenset(RESERVED_WORDS.split())
Kind = TypeVar("Kind")


def read(path: Path) -> Any:
    """The document in a file. Raises Rejected for what is no certificate, or not there."""
    with named("the file"):
        with path.open("rb") as file:
            packed, reader = file.read(LARGEST), lzma.LZMADecompressor()
        text = reader.decompress(packed, LARGEST)
        if not reader.eof or reader.unused_data:
            raise Rejected(f"it is cut, or has more than {LARGEST:,} bytes")
        document = json.loads(text, object_pairs_hook=_distinct)
        if document["certificate"] != VERSION:
            raise Rejected(f"this checker reads certificates of version {VERSION}")
        return document


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Rejected("a key stands twice")
    return found


@dataclass
class Graph:
    """Lists that are read, as terms: what a number of a list means."""

    terms: Terms = field(default_factory=Terms)
    sorts: list[Sort] = field(default_factory=list)
    numbers: list[Term] = field(default_factory=list)
    names: set[str] = field(default_factory=lambda: {*PLAIN, "Array"})  # of sorts
    values: set[str] = field(default_factory=set)  # of all sorts

    def read(self, sorts: Any, symbols: Any, nodes: Any) -> None:
        """Add the lists of a file. Raises Rejected for what they cannot be."""
        for entry in sorts:
            self.sorts.append(self._sort(*entry))
        for name, arguments, sort in symbols:
            made = Symbol(plain(name), tuple(map(self.sort, arguments)), self.sort(sort))
            self.terms.symbols.append(made)
        for entry in nodes:
            self.numbers.append(self._node(*entry))

    def term(self, number: Any) -> Term:
        """What a number of the list of terms refers to."""
        return member(number, self.numbers)

    def sort(self, number: Any) -> Sort:
        return member(number, self.sorts)

    def symbol(self, number: Any) -> int:
        return member(number, range(len(self.terms.symbols)))

    def _sort(self, kind: Any, *parts: Any) -> Sort:
        match kind, parts:
            case (("Bool" | "Int" | "Real" | "Float64"), ()):
                return kind
            case "Array", (index, element):
                of = self.sort(index), self.sort(element)
                if any(sort[0] == "Array" for sort in of):
                    raise Rejected("an array of arrays")
                return ("Array", *of)
            case "Sort", (name,):
                return ("Sort", self._name(name))
            case "Values", (name, names):
                values = tuple(map(plain, names))
                if not values or len({*values}) != len(values):
                    raise Rejected(f"the values of {name} are not distinct")
                self.values.update(values)
                return ("Values", self._name(name), values)
        raise Rejected(f"{kind} is not a sort")

    def _name(self, given: Any) -> str:
        """The name of a new sort."""
        if plain(given) in self.names:
            raise Rejected(f"two sorts have the name {given}")
        self.names.add(given)
        return str(given)

    def _node(self, kind: Any, *rest: Any) -> Term:
        match kind, rest:
            case "apply", (symbol, *arguments):
                return self.terms.make(self.symbol(symbol), *map(self.term, arguments))
            case "constant", (sort, *what):
                return self.terms.make((self.sort(sort), _constant(self.sort(sort), what)))
            case str(), _:
                return self.terms.make(kind, *map(self.term, rest))
        raise Rejected(f"{kind} is not an operator")


def _constant(sort: Sort, what: list[Any]) -> Any:
    """What a constant of a sort is."""
    match sort, what:
        case "Bool", [True | False as truth]:
            return truth
        case "Int", [number]:
            return whole(number)
        case "Real", [numerator, denominator]:
            return Fraction(whole(numerator), whole(denominator))
        case "Float64", [text]:
            return float.fromhex(text).hex()
        case ("Values", _, names), [which]:
            return member(which, range(len(names)))
    raise Rejected(f"{what} is no constant of {sort}")


def whole(given: Any) -> int:
    """The same integer, if it is one."""
    if type(given) is int:
        return given
    raise Rejected(f"{str(given)[:40]} is not an integer")


def member(number: Any, known: Sequence[Kind]) -> Kind:
    """What stands there in a list, so far."""
    place = whole(number)
    if 0 <= place < len(known):
        return known[place]
    raise Rejected(f"{str(number)[:40]} is none of the {len(known)} that are there so far")


def plain(given: Any) -> str:
    """A name that cannot be taken for anything else where it is printed."""
    if not NAME.fullmatch(given) or given in RESERVED:
        raise Rejected(f"{given[:40]!r} is not a plain name")
    return str(given)
