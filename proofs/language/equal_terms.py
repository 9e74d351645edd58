"""E10: lines have one term if what they make of any numbers is the same, and if they have it, it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from math import exp
from typing import Any

from proofs.models.executed import Executed, number
from proofs.trusted.kernel import KernelError
from spec.meaning.terms import Terms
from spec.models.values import LOG_TOTAL, Does, Operation, Value

SIZES = dict.fromkeys("abd", 2)
GIVEN = "x ab", "y ab", "g ab", "r a", "v bd", "of_made ad", "w ad", "of_more abd"
OF_X = ("ab ba", "ab"), ("ad", "bd"), ("bd", "ad"), ("ad bd", "d"), ("ab", "b")
RENAMED = (
    *(("x", *each) for each in OF_X),
    *(("of_more", pairs, "abd") for pairs in ("ab ba", "bd db", "ab bd da")),
)
OF_ROWS = "softmax", "rms_norm", LOG_TOTAL


class _Lines:
    """What lines make: each value's term, and its elements; and all of these by the other."""

    def __init__(self) -> None:
        self.terms, self.executed = Terms(), Executed(SIZES, ())
        self.made: dict[Value, tuple[int, Sequence[float]]] = {}
        self.found: set[tuple[int, tuple[object, ...]]] = set()

    def given(self, name: str, indices: str) -> Value:
        value = Value(name, tuple(indices))
        every = product(range(2), repeat=len(indices))
        return self._has(value, self.terms.given(value), [number(name, at) for at in every])

    def run(self, does: Does, reads: tuple[Value, ...], indices: Sequence[str], *how: Any) -> Value:
        """What a line makes of others' values."""
        line = Operation(does, reads, Value(f"value {len(self.made)}", tuple(indices)), *how)
        numbers, values = zip(*(self.made[value] for value in reads), strict=True)
        return self._has(line.makes, self.terms.made(line, numbers), self._elements(line, *values))

    def product(self, one: Value, other: Value, indices: Sequence[str]) -> Value:
        return self.run(Does.CONTRACT, (one, other), indices)

    def _has(self, value: Value, term: int, elements: Sequence[float]) -> Value:
        self.made[value] = term, elements
        order = self.executed._places(value.indices, tuple(sorted(value.indices)))
        self.found.add((term, (*sorted(value.indices), *(round(elements[at], 9) for at in order))))
        return value

    def _elements(self, line: Operation, first: list[float], *others: list[float]) -> list[float]:
        """Of a softmax the log-sum-exp may be told, and backward the sum of products; row by row."""
        plain = getattr(self.executed, f"_{line.does.value}")
        if line.does is not Does.NORMALISE or not others:
            return [*plain(line, first, *others)]
        rows = [row for row in others[-1] for _ in range(2)]
        if not line.backward:
            if line.function == "softmax":
                return [exp(x - total) for x, total in zip(first, rows, strict=True)]
            return [x + total for x, total in zip(plain(line, first), rows, strict=True)]
        known = others[0]
        if len(others) == 1:
            sums = [first[at] * known[at] + first[at + 1] * known[at + 1] for at in (0, 2)]
            rows = [total for total in sums for _ in range(2)]
        return [y * (x - total) for x, y, total in zip(first, known, rows, strict=True)]


def require_equal_terms() -> None:
    """Raise KernelError unless lines have one term just where they make the same of any numbers.

    Products and sums of two values, with each choice of indices; functions of rows, by names, along
    each index; changes of indices. A softmax may be told its log-sum-exp, or another number of each
    row; and backward the sum of products of its cotangent and what it gave, or of what made the one and
    is made of the other, or of what is not.
    """
    lines = _Lines()
    given = {name: lines.given(name, indices) for name, indices in map(str.split, GIVEN)}
    x, y, g, *_ = given.values()
    lines.given("v", "db")  # which is another
    for one, other in combinations_with_replacement([*given.values()][:6], 2):
        for indices, _ in product(_indices(one, other), range(2)):
            lines.product(one, other, indices)
            one, other = other, one
    sums = [lines.run(Does.ADD, reads, "ab") for reads in product((x, y, g), repeat=2)]
    for one, other in product(sums, (x, y, sums[1])):
        lines.run(Does.ADD, (one, other), "ab")
        lines.run(Does.ADD, (other, one), "ab")
        lines.product(one, g, "a")
    for name, renamed, made in RENAMED:
        pairs = tuple((pair[0], pair[1]) for pair in renamed.split())
        for backward in (False, True):  # it is a rename, too
            lines.run(Does.RENAME, (given[name],), made, "", "", pairs, backward)
    of_rows = {}
    for value, function, over in product((x, y, sums[1]), OF_ROWS, "ab"):
        rest = "ab".replace(over, "") if function == LOG_TOTAL else "ab"
        of_rows[value, function, over] = lines.run(Does.NORMALISE, (value,), rest, function, over)
    totals = [found for found in of_rows.values() if found.indices == ("a",)]
    for value, total, function in product((x, y), (given["r"], *totals), OF_ROWS[:2]):
        lines.run(Does.NORMALISE, (value, total), "ab", function, "b")
    _run_derivatives(lines, given, of_rows[x, "softmax", "b"])
    by_term, by_elements = (len({found[side] for found in lines.found}) for side in (0, 1))
    if not by_term == by_elements == len(lines.found):
        raise KernelError(
            f"{len(lines.found)} values of lines: {by_term} terms, {by_elements} of other numbers"
        )


def _run_derivatives(lines: _Lines, given: Mapping[str, Value], shares: Value) -> None:
    """Those of a softmax, of several cotangents, with each of several numbers of rows."""
    x, y, g, r, v, of_made, w, of_more = given.values()
    made, of_y = lines.product(shares, v, "ad"), lines.product(v, y, "ad")
    mixed = lines.product(y, lines.product(shares, w, "bd"), "ad")  # of other rows, too
    pulled = lines.product(lines.product(of_made, y, "bd"), w, "ab")
    cotangents = g, y, pulled, lines.product(of_made, v, "ab"), lines.product(of_more, v, "ab")
    pairs = [(g, shares), (x, shares), (shares, shares), (g, y), (y, y), (w, made), (of_more, made)]
    pairs += [(of_made, made), (made, of_made), (of_made, mixed), (of_made, of_y)]
    rows = [r, *(lines.product(*pair, "a") for pair in pairs)]
    for cotangent, known in product(cotangents, (shares, y)):
        for row in ((), *((row,) for row in rows)):
            reads = (cotangent, known, *row)
            lines.run(Does.NORMALISE, reads, "ab", "softmax", "b", (), True)


def _indices(one: Value, other: Value) -> Iterator[tuple[str, ...]]:
    """Those that a product of two may have: all of one alone, and any of both."""
    both = [index for index in one.indices if index in other.indices]
    alone = [index for index in (*one.indices, *other.indices) if index not in both]
    for chosen in product((False, True), repeat=len(both)):
        yield *alone, *(index for index, kept in zip(both, chosen, strict=True) if kept)
