"""Sorts and terms: a numbered graph in which equal terms have equal numbers.

A term is its number. Its arguments have smaller numbers, so nothing here is recursive, however deep a
term is. Operators mean what SMT-LIB says: by zero, `/`, `div` and `mod` are any function of the
dividend.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

Term: TypeAlias = int
Sort: TypeAlias = Any  # a name, or ("Array", index, element), ("Sort", name), ("Values", name, names)
Head: TypeAlias = Any  # an operator's name, a symbol's number, or (sort, what it is) of a constant

BOOL, INT, REAL, FLOAT = "Bool", "Int", "Real", "Float64"
NUMBERS = (INT, REAL)
ORDER = ("<", "<=", ">", ">=")
MANY = 1 << 30
# Of operators whose arguments are of one sort: how many these are, of which sorts they can be (if none
# is said, of all but floats), and which sort is made of them (if none is said, theirs).
ALIKE: dict[str, tuple[int, int, Sequence[Sort], Sort]] = {
    "not": (1, 1, (BOOL,), BOOL),
    "=>": (2, 2, (BOOL,), BOOL),
    **dict.fromkeys(("and", "or"), (2, MANY, (BOOL,), BOOL)),
    "=": (2, 2, (), BOOL),
    **dict.fromkeys(ORDER, (2, 2, NUMBERS, BOOL)),
    **dict.fromkeys(("+", "*"), (2, MANY, NUMBERS, "")),
    "-": (2, 2, NUMBERS, ""),
    "neg": (1, 1, NUMBERS, ""),
    **dict.fromkeys(("div", "mod"), (2, 2, (INT,), INT)),
    "/": (2, 2, (REAL,), REAL),
    "to_real": (1, 1, (INT,), REAL),
    "fp.add": (2, 2, (FLOAT,), FLOAT),  # rounded to nearest, ties to even
    **dict.fromkeys(("fp.eq", "fp.lt", "fp.gt"), (2, 2, (FLOAT,), BOOL)),
}


class Rejected(Exception):
    """The certificate is not what it says it is."""


@contextmanager
def named(what: str) -> Iterator[None]:
    """Whatever is wrong in it is a rejection that names it."""
    try:
        yield
    except Rejected as error:
        raise Rejected(f"{what}: {error}") from error
    except Exception as error:
        raise Rejected(f"{what} cannot be read: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Symbol:
    """A symbol for any function, or for any value if it has no arguments."""

    name: str
    arguments: tuple[Sort, ...]
    sort: Sort


class Terms:
    """All terms of one graph, and the symbols in them."""

    def __init__(self) -> None:
        self.symbols: list[Symbol] = []
        self.heads: list[Head] = []
        self.arguments: list[tuple[Term, ...]] = []
        self.sorts: list[Sort] = []
        self._numbers: dict[tuple[Head, tuple[Term, ...]], Term] = {}
        self.false = self.make((BOOL, False))
        self.true = self.make((BOOL, True))

    def make(self, head: Head, *arguments: Term) -> Term:
        """The term with this head. Raises Rejected if its arguments are of other sorts."""
        key = (head, arguments)
        known = self._numbers.get(key)
        if known is None:
            sort = self._sort(head, tuple(self.sorts[a] for a in arguments))
            known = self._numbers[key] = len(self.heads)
            self.heads.append(head)
            self.arguments.append(arguments)
            self.sorts.append(sort)
        return known

    def equal(self, left: Term, right: Term) -> Term:
        return self.make("=", left, right)

    def negation(self, formula: Term) -> Term:
        return self.make("not", formula)

    def conjunction(self, formulas: Sequence[Term]) -> Term:
        """All of them: one is itself, none is true."""
        if len(formulas) < 2:
            return formulas[0] if formulas else self.true
        return self.make("and", *formulas)

    def implication(self, given: Sequence[Term], goal: Term) -> Term:
        return self.make("=>", self.conjunction(given), goal) if given else goal

    def number(self, value: Fraction | int, sort: Sort) -> Term:
        """The numeral of a value."""
        return self.make((sort, Fraction(value) if sort == REAL else int(value)))

    def symbol_of(self, term: Term) -> int | None:
        """The symbol that a constant or an application is of."""
        head = self.heads[term]
        return head if isinstance(head, int) else None

    # ------------------------------------------------------------------ traversals
    def below(self, terms: Iterable[Term], known: Container[Term] = ()) -> list[Term]:
        """The terms and all their subterms in order, arguments first, but for those that are known."""
        found: dict[Term, None] = {}
        pending = [*terms][::-1]
        while pending:
            term = pending.pop()
            if term < 0:  # its arguments are there
                found[~term] = None
            elif term not in found and term not in known:
                pending += (~term, *self.arguments[term][::-1])
        return [*found]

    def symbols_in(self, terms: Iterable[Term]) -> set[int]:
        return {s for t in self.below(terms) if (s := self.symbol_of(t)) is not None}

    def substitute(self, term: Term, values: Mapping[Term, Term]) -> Term:
        """The term with values in place of constants, at once. Nothing binds or is captured."""
        for constant, value in values.items():
            if self.arguments[constant] or self.sorts[constant] != self.sorts[value]:
                raise Rejected(f"term {value} cannot stand for term {constant}")
        done = dict(values)
        for here in self.below([term]):
            if here not in done:
                old = self.arguments[here]
                new = tuple(done[a] for a in old)
                done[here] = here if new == old else self.make(self.heads[here], *new)
        return done[term]

    # ------------------------------------------------------------------ sorts
    def _sort(self, head: Head, sorts: tuple[Sort, ...]) -> Sort:
        match head, sorts:
            case int(), _ if self.symbols[head].arguments == sorts:
                return self.symbols[head].sort
            case (sort, _), ():
                return sort
            case "ite", ("Bool", then, other) if then == other:
                return then
            case "select", (("Array", index, element), at) if at == index:
                return element
            case "store", (("Array", *parts), *new) if new == parts:
                return sorts[0]
        least, most, of, gives = ALIKE.get(head, (1, 0, (), BOOL))
        if not least <= len(sorts) <= most or sorts.count(sorts[0]) < len(sorts):
            raise Rejected(f"{head} has no arguments of sorts {sorts}")
        if sorts[0] not in of if of else sorts[0] == FLOAT:
            raise Rejected(f"{head} is not of sort {sorts[0]}")
        return gives or sorts[0]
