"""Sums over index ranges, and products: the few facts that theorems need, each proved where used.

A sum is a function by recursion: total(params, 0) = 0, total(params, i + 1) = total(params, i) +
term(params, i). The lemmas are schemas: each call proves one instance, by induction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from proofs.trusted.kernel import Bool, Kernel, Term, Theorem
from proofs.trusted.terms import If, IntVal, RealSort, RealVal


@dataclass(frozen=True)
class Sum:
    """The sum of `term` over `index` from 0 to a bound, as a function of its parameters."""

    symbol: Any
    params: tuple[Any, ...]
    index: Any
    term: Any
    start: Theorem
    next: Theorem

    def __call__(self, *args: Any) -> Any:
        """The sum at these parameters; the last argument is the bound."""
        return self.symbol(*args)

    def upto(self, bound: Any) -> Any:
        """The sum with its parameters as they are."""
        return self.symbol(*self.params, bound)


def total(k: Kernel, name: str, params: Sequence[Term], index: Term, term: Term) -> Sum:
    """Declare the sum of `term` over `index`."""
    zero = RealVal(0) if term.sort == RealSort() else IntVal(0)
    symbol, start, then = k.recursion(
        name, params, index, zero, lambda previous: previous(*params) + term
    )
    return Sum(symbol, tuple(params), index, term, start, then)


def equal_terms(
    k: Kernel,
    name: str,
    left: Sum,
    right: Any,
    pointwise: Theorem | None = None,
    given: Sequence[Bool] = (),
    uses: Sequence[Theorem] = (),
) -> Theorem:
    """Sums of equal terms are equal: `right` is a Sum, or a term that stands for a sum's value.

    `pointwise` says, for the shared index in range, that the terms are equal.
    """
    i = left.index
    terms = [pointwise] if pointwise is not None else []
    start, then = right.start, right.next.at(**named(right.index, i))
    return k.induct(
        name,
        i,
        left.upto(i) == right.upto(i),
        given=given,
        base=[left.start, start],
        step=[left.next, then, *terms, *uses],
    )


def closed_form(
    k: Kernel,
    name: str,
    s: Sum,
    value: Any,
    given: Sequence[Bool] = (),
    uses: Sequence[Theorem] = (),
    base: Sequence[Theorem] = (),
) -> Theorem:
    """The sum up to its index equals `value`, an expression in the index."""
    return k.induct(name, s.index, s.upto(s.index) == value, given, [s.start, *base], [s.next, *uses])


def by_rows(
    k: Kernel, name: str, outer: Term, inner: Term, term: Term, params: Sequence[Term]
) -> tuple[Sum, Sum]:
    """rows(outer; inner bound), and their total(inner bound; outer bound)."""
    row = total(k, f"{name}_rows", [*params, outer], inner, term)
    return row, total(k, f"{name}_rows_total", [*params, inner], outer, row.upto(inner))


def of_sums(
    k: Kernel, name: str, outer: Term, inner: Term, term: Term, params: Sequence[Term]
) -> tuple[Sum, Sum, Sum, Sum, Theorem]:
    """Exchange: summing over `inner` and then `outer` equals summing over outer and then inner.

    Declares rows and their total (`by_rows`), columns(inner; outer bound) and their total(outer
    bound; inner bound); returns them, and the theorem that the totals are equal, for arbitrary
    bounds named by the two indices.
    """
    by_inner, rows = by_rows(k, name, outer, inner, term, params)
    by_outer = total(k, f"{name}_columns", [*params, inner], outer, term)
    columns = total(k, f"{name}_columns_total", [*params, outer], inner, by_outer.upto(outer))
    # rows(inner bound; outer bound) and columns(outer bound; inner bound)
    one_more = k.induct(
        f"{name}_one_more_row",
        inner,
        columns(*params, outer + 1, inner)
        == columns(*params, outer, inner) + by_inner(*params, outer, inner),
        given=[outer >= 0],
        base=[columns.start, columns.start.at(**{str(outer): outer + 1}), by_inner.start],
        step=[
            columns.next,
            columns.next.at(**{str(outer): outer + 1}),
            by_inner.next,
            by_outer.next,
        ],
    )
    empty = k.induct(
        f"{name}_no_rows",
        inner,
        columns(*params, 0, inner) == 0,
        base=[columns.start.at(**{str(outer): 0})],
        step=[columns.next.at(**{str(outer): 0}), by_outer.start],
    )
    exchanged = k.induct(
        f"{name}_exchanged",
        outer,
        rows(*params, inner, outer) == columns(*params, outer, inner),
        given=[inner >= 0],
        base=[rows.start, empty],
        step=[rows.next, one_more],
    )
    return by_inner, rows, by_outer, columns, exchanged


def partition(
    k: Kernel,
    name: str,
    part: Term,
    item: Term,
    place: Any,
    placed: Theorem,
    parts: Any,
    term: Term,
    params: Sequence[Term] = (),
) -> tuple[Sum, Sum, Sum, Theorem]:
    """Items, each placed in one of `parts` parts: the sum of the parts' sums is the sum of all.

    `placed`: 0 <= place(item) < parts. Declares share(part; items), their total(items; parts), and
    whole(items); returns them with the theorem total(items; parts) = whole(items).
    """
    mine = If(place(item) == part, term, RealVal(0))
    share, total_of, column, columns, exchanged = of_sums(k, name, part, item, mine, params)
    whole = total(k, f"{name}_whole", params, item, term)
    once = k.induct(
        f"{name}_each_item_once",
        part,
        column.upto(part) == If(place(item) < part, term, RealVal(0)),
        base=[column.start, placed],
        step=[column.next],
    )
    same = k.induct(
        f"{name}_columns_are_items",
        item,
        columns(*params, parts, item) == whole.upto(item),
        base=[columns.start.at(**{str(part): parts}), whole.start],
        step=[
            columns.next.at(**{str(part): parts}),
            whole.next,
            once.at(**{str(part): parts}),
            placed,
        ],
    )
    done = k.prove(
        f"{name}_parts_make_the_whole",
        total_of(*params, item, parts) == whole.upto(item),
        given=[item >= 0],
        uses=[exchanged.at(**{str(part): parts}), same, placed],
    )
    return share, total_of, whole, done


@dataclass(frozen=True)
class Products:
    """x y of whole numbers as a function, for proofs that need no more of it than these laws.

    sums: (x + z) y = x y + z y. none: 0 y = 0. next: (x + 1) y = x y + y. in_order: for x < z and
    y >= 0, x y + y <= z y. Their variables are multiple (x), larger (z) and unit (y).
    """

    k: Kernel
    times: Any
    rule: Theorem
    sums: Theorem
    next: Theorem
    in_order: Theorem
    unit: Term

    @cached_property
    def none(self) -> Theorem:
        goal = self.times(0, self.unit) == 0
        return self.k.prove("no_unit", goal, uses=[self.rule.at(multiple=0)])


def products(k: Kernel) -> Products:
    """Declare the function, and prove its laws."""
    x, z, y, more = k.integers("multiple larger unit further")
    times, rule = k.define("times", [x, y], x * y)
    sums = k.prove(
        "multiples_add_up",
        times(x + z, y) == times(x, y) + times(z, y),
        uses=[rule, rule.at(multiple=z), rule.at(multiple=x + z)],
    )
    one = k.prove("once_a_unit", times(1, y) == y, uses=[rule.at(multiple=1)])
    following = k.prove(
        "one_more_is_a_unit_more",
        times(x + 1, y) == times(x, y) + y,
        uses=[sums.at(larger=1), one],
    )
    farther = k.induct(
        "multiples_grow",
        more,
        times(x, y) + y <= times(x + more + 1, y),
        given=[y >= 0],
        base=[following],
        step=[following.at(multiple=x + more + 1)],
    )
    in_order = k.prove(
        "multiples_are_in_order",
        times(x, y) + y <= times(z, y),
        given=[y >= 0, x < z],
        uses=[farther.at(further=z - x - 1)],
    )
    return Products(k, times, rule, sums, following, in_order, y)


def named(variable: Term, term: Any) -> dict[str, Any]:
    """A substitution for one variable."""
    return {str(variable): term}
