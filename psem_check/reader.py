"""A certificate's file: JSON, plain or compressed; and its lists of sorts, symbols and terms.

A sort is ["Int"] or the like, ["Array", index, element], ["Sort", name] or ["Values", name, [names]].
A symbol is [name, [sorts of its arguments], its sort]. A term is [operator, arguments...],
["apply", symbol, arguments...], ["int", n], ["real", n, d], ["value", sort, which], ["float", bits],
["true"] or ["false"]. Numbers refer to what stands before in the same list. Whatever is wrong is a
rejection.
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

from psem_check.terms import BOOL, FLOAT, INT, REAL, Rejected, Sort, Symbol, Term, Terms

VERSION = 6
LARGEST = 1 << 30  # bytes, decompressed
LISTS = ("certificate", "sorts", "symbols", "terms", "claims")
MOST = 100  # sorts in a sort
PLAIN = (BOOL, INT, REAL, FLOAT)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
RESERVED_WORDS = """
    and or not distinct ite if then else true false div mod neg to_real select store given where for by
    nan inf
"""
RESERVED = frozenset(RESERVED_WORDS.split())
Kind = TypeVar("Kind")


def read(path: Path) -> dict[str, Any]:
    """The document in a file. Raises OSError, and Rejected for what is no certificate."""
    data = path.read_bytes()
    try:
        if path.suffix == ".xz":
            reader = lzma.LZMADecompressor()
            data = reader.decompress(data, LARGEST)
            if not reader.eof or reader.unused_data:
                raise Rejected("it is cut off, or larger than a certificate can be")
        document = json.loads(
            data, object_pairs_hook=_distinct, parse_float=_no_number, parse_constant=_no_number
        )
    except lzma.LZMAError as error:
        raise Rejected(f"it cannot be decompressed: {error}") from error
    except (ValueError, RecursionError) as error:
        raise Rejected(f"it is not JSON: {type(error).__name__}: {str(error)[:80]}") from error
    if type(document) is not dict or document.keys() != {*LISTS}:
        raise Rejected(f"a certificate has {', '.join(LISTS)}, and nothing else")
    if document["certificate"] != VERSION or type(document["certificate"]) is not int:
        raise Rejected(f"this checker reads certificates of version {VERSION}")
    return document


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Rejected("a key stands twice")
    return found


def _no_number(text: str) -> Any:
    raise Rejected(f"{text[:40]} is not a number of certificates")


@dataclass
class Graph:
    """Lists that are read, as terms: what a number of a list means."""

    terms: Terms = field(default_factory=Terms)
    sorts: list[Sort] = field(default_factory=list)
    numbers: list[Term] = field(default_factory=list)
    values: set[str] = field(default_factory=set)  # of all sorts
    _named: set[str] = field(default_factory=lambda: {*PLAIN, "Array"})
    _sizes: list[int] = field(default_factory=list)

    def read(self, sorts: Any, symbols: Any, nodes: Any) -> None:
        """Add the lists of a file. Raises Rejected for what they cannot be."""
        for entry in listed(sorts):
            self.sorts.append(self._sort(*listed(entry)))
        for entry in listed(symbols):
            name, arguments, sort = listed(entry, 3)
            made = Symbol(plain(name), tuple(map(self.sort, listed(arguments))), self.sort(sort))
            self.terms.symbols.append(made)
        for entry in listed(nodes):
            self.numbers.append(self._node(*listed(entry)))

    def term(self, number: Any) -> Term:
        """What a number of the list of terms refers to."""
        return member(number, self.numbers)

    def sort(self, number: Any) -> Sort:
        return member(number, self.sorts)

    def symbol(self, number: Any) -> int:
        return member(number, range(len(self.terms.symbols)))

    def _sort(self, kind: Any = "", *parts: Any) -> Sort:
        size = 1
        if kind in PLAIN and not parts:
            made: Sort = kind
        elif kind == "Array":
            index, element = listed([*parts], 2)
            made = ("Array", self.sort(index), self.sort(element))
            size += self._sizes[index] + self._sizes[element]
        elif kind == "Sort":
            made = ("Sort", self._name(*listed([*parts], 1)))
        elif kind == "Values":
            name, names = listed([*parts], 2)
            values = tuple(map(plain, listed(names)))
            if not values or len({*values}) != len(values):
                raise Rejected(f"the values of {name} are not distinct")
            self.values.update(values)
            made = ("Values", self._name(name), values)
        else:
            raise Rejected(f"{kind} is not a sort")
        if size > MOST:
            raise Rejected("a sort is too large")
        self._sizes.append(size)
        return made

    def _name(self, given: Any) -> str:
        """The name of a new sort."""
        if plain(given) in self._named:
            raise Rejected(f"two sorts have the name {given}")
        self._named.add(given)
        return str(given)

    def _node(self, kind: Any = "", *rest: Any) -> Term:
        make = self.terms.make
        match kind, *rest:
            case "apply", symbol, *arguments:
                return self.terms.apply(self.symbol(symbol), *map(self.term, arguments))
            case "int", number:
                return make(("int", _is(int, number, "an integer")))
            case "real", numerator, denominator:
                if _is(int, denominator, "an integer") <= 0:
                    raise Rejected("a denominator is not positive")
                return make(("real", Fraction(_is(int, numerator, "an integer"), denominator)))
            case "value", sort, which:
                return make(("value", self.sort(sort), _is(int, which, "an integer")))
            case "float", bits:
                if not 0 <= _is(int, bits, "an integer") < 1 << 64:
                    raise Rejected("not 64 bits")
                return make(("float", bits))
            case ["true" | "false"]:
                return make(("bool", kind == "true"))
        return make(_is(str, kind, "a name"), *map(self.term, rest))


def _is(kind: type[Kind], given: Any, words: str) -> Kind:
    if type(given) is not kind:
        raise Rejected(f"{str(given)[:40]} is not {words}")
    return given


def listed(given: Any, length: int | None = None) -> list[Any]:
    """The same list, if it is one, of this length."""
    if length not in (None, len(_is(list, given, "a list"))):
        raise Rejected(f"{str(given)[:40]} has not {length} members")
    return list(given)


def member(number: Any, known: Sequence[Kind]) -> Kind:
    """What stands there in a list, so far."""
    place: int = _is(int, number, "an integer")
    if not 0 <= place < len(known):
        raise Rejected(f"{str(number)[:40]} is none of the {len(known)} that are there so far")
    return known[place]


def plain(given: Any) -> str:
    """A name that cannot be taken for anything else where it is printed."""
    if not NAME.fullmatch(_is(str, given, "a name")) or given in RESERVED:
        raise Rejected(f"{given[:40]!r} is not a plain name")
    return str(given)
