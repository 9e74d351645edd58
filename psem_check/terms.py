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
Head: TypeAlias = Any  # an operator's name, or (kind, what it is) of a constant or an application

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
    **dict.fromkeys(("=", "distinct"), (2, 2, (), BOOL)),
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
        self.false = self.make(("bool", False))
        self.true = self.make(("bool", True))

    def make(self, head: Head, *arguments: Term) -> Term:
        """The term with this head. Raises Rejected if its arguments are of other sorts."""
        key = (head, arguments)
        known = self._numbers.get(key)
        if known is None:
            sort = self._sort(head, [self.sorts[a] for a in arguments])
            known = self._numbers[key] = len(self.heads)
            self.heads.append(head)
            self.arguments.append(arguments)
            self.sorts.append(sort)
        return known

    def apply(self, symbol: int, *arguments: Term) -> Term:
        return self.make(("symbol", symbol), *arguments)

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
        if sort == INT and value == int(value):
            return self.make(("int", int(value)))
        if sort == REAL:
            return self.make(("real", Fraction(value)))
        raise Rejected(f"{value} is not of sort {sort}")

    def symbol_of(self, term: Term) -> int | None:
        """The symbol that a constant or an application is of."""
        head = self.heads[term]
        return head[1] if isinstance(head, tuple) and head[0] == "symbol" else None

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
    def _sort(self, head: Head, sorts: list[Sort]) -> Sort:
        found = self._of_constant(head, sorts) if isinstance(head, tuple) else _of_operator(head, sorts)
        if found is None:
            raise Rejected(f"{head} has no arguments of sorts {sorts}")
        return found

    def _of_constant(self, head: tuple[Any, ...], sorts: list[Sort]) -> Sort | None:
        match head:
            case "symbol", number:
                symbol = self.symbols[number]
                return symbol.sort if tuple(sorts) == symbol.arguments else None
            case "value", ("Values", _, names) as sort, which if not sorts and 0 <= which < len(names):
                return sort
        plain = {"bool": BOOL, "int": INT, "real": REAL, "float": FLOAT}
        return None if sorts else plain.get(head[0])


def _of_operator(head: str, sorts: list[Sort]) -> Sort | None:
    """The sort of an application of an operator; None if there is no such application."""
    match head, sorts:
        case "ite", ["Bool", then, other] if then == other:
            return then
        case "select", [("Array", index, element), at] if at == index:
            return element
        case "store", [("Array", index, element), at, new] if (at, new) == (index, element):
            return sorts[0]
    least, most, of, gives = ALIKE.get(head, (1, 0, (), BOOL))
    if not least <= len(sorts) <= most or sorts.count(sorts[0]) < len(sorts):
        return None
    return (gives or sorts[0]) if (sorts[0] in of if of else sorts[0] != FLOAT) else None
