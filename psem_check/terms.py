"""Sorts and terms: a numbered graph in which equal terms have equal numbers.

A term is its number. Its arguments have smaller numbers, so nothing here is recursive, however deep a
term is. Operators mean what SMT-LIB says: by zero, `/`, `div` and `mod` are any function of the
dividend.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

Term: TypeAlias = int
Sort: TypeAlias = Any  # a name, or ("Array", index, element), ("Sort", name), ("Values", name, names)
Head: TypeAlias = Any  # an operator's name, or (kind, what it is) of a constant or an application

BOOL, INT, REAL, FLOAT = "Bool", "Int", "Real", "Float64"
NUMBERS = (INT, REAL)
ORDER = ("<", "<=", ">", ">=")
FLOAT_ORDER = ("fp.eq", "fp.lt", "fp.gt", "fp.leq", "fp.geq")


class Rejected(Exception):
    """The certificate is not what it says it is."""


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
        kind, what = head[0], head[1]
        if kind == "symbol":
            symbol = self.symbols[what]
            return symbol.sort if tuple(sorts) == symbol.arguments else None
        if sorts:
            return None
        if kind == "value":
            return what if _is_enumeration(what) and 0 <= head[2] < len(what[2]) else None
        return {"bool": BOOL, "int": INT, "real": REAL, "float": FLOAT}.get(kind)


def _is_enumeration(sort: Sort) -> bool:
    return isinstance(sort, tuple) and sort[0] == "Values"


def _of_operator(head: str, sorts: list[Sort]) -> Sort | None:
    """The sort of an application of an operator; None if there is no such application."""
    count = len(sorts)
    alike = count > 0 and all(sort == sorts[0] for sort in sorts)
    first = sorts[0] if sorts else None
    numbers = alike and first in NUMBERS
    if head in ("and", "or"):
        return BOOL if alike and first == BOOL and count >= 2 else None
    if head in ("not", "=>", "xor"):
        return BOOL if alike and first == BOOL and count == (1 if head == "not" else 2) else None
    if head == "=":
        return BOOL if alike and count == 2 and first != FLOAT else None
    if head == "distinct":
        return BOOL if alike and count >= 2 and first != FLOAT else None
    if head == "ite":
        return sorts[1] if count == 3 and first == BOOL and sorts[1] == sorts[2] else None
    if head in ORDER:
        return BOOL if numbers and count == 2 else None
    if head in ("+", "*"):
        return first if numbers and count >= 2 else None
    if head == "-":
        return first if numbers and count == 2 else None
    if head in ("neg", "abs"):
        return first if numbers and count == 1 else None
    return _of_other_operator(head, sorts)


def _of_other_operator(head: str, sorts: list[Sort]) -> Sort | None:
    signatures: dict[str, tuple[list[Sort], Sort]] = {
        "to_real": ([INT], REAL),
        "to_int": ([REAL], INT),
        "is_int": ([REAL], BOOL),
        "/": ([REAL, REAL], REAL),
        **{name: ([INT, INT], INT) for name in ("div", "mod")},
        "fp.add": ([FLOAT, FLOAT], FLOAT),  # rounded to nearest, ties to even
        **{name: ([FLOAT, FLOAT], BOOL) for name in FLOAT_ORDER},
    }
    if head in signatures:
        arguments, sort = signatures[head]
        return sort if sorts == arguments else None
    if head in ("select", "store") and sorts and isinstance(sorts[0], tuple) and sorts[0][0] == "Array":
        _, index, element = sorts[0]
        if head == "select":
            return element if sorts[1:] == [index] else None
        return sorts[0] if sorts[1:] == [index, element] else None
    return None
