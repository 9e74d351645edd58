"""Theorems behind a table: what claims state, as formulas in the symbols of tables."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy

from proofs.registry import select
from proofs.trusted.theorem import Theorem
from psem_model.check.claims import results, total, uncollected
from psem_model.tables.table import NotAsExpected

PROVED: dict[str, tuple[Theorem, ...]] = {}  # by claim
OPERATORS = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
}


def theorems(
    claims: Sequence[str], tell: Callable[[float], None] = lambda _: None
) -> dict[str, tuple[Theorem, ...]]:
    """Those that claims state, by claim, each proved once. Raises NotAsExpected if one does not hold.

    `tell`: told which share of them is proved.
    """
    selected = [claim for claim in select(claims) if claim.id not in PROVED]
    whole = total(selected)
    with uncollected():
        for result in results(selected, lambda done: tell(done / whole)):
            id, expected = result.claim.id, result.claim.expected
            if not result.as_expected:
                wrong = f"{result.verdict}, expected {expected}: {result.failure}"
                raise NotAsExpected(f"claim {id}: {wrong}")
            PROVED[id] = result.theorems
    return {claim: PROVED[claim] for claim in claims}


def equations(statement: Any, names: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Both sides of each equation that a statement ends in, of terms in no other symbols than these."""
    if statement.op == "=>":
        yield from equations(statement.args[-1], names)
    elif statement.op == "and":
        for part in statement.args:
            yield from equations(part, names)
    elif statement.op == "=" and statement.args[0].sort.kind in ("Int", "Real"):
        try:
            one, other = (formula(side, names) for side in statement.args)
        except KeyError:  # of other symbols, or with another operator
            return
        yield one, other


def formula(term: Any, names: Mapping[str, Any]) -> Any:
    """A term of sums, products and quotients as a SymPy expression. Raises KeyError for others."""
    if term.op == "number":
        return sympy.Rational(Fraction(term.of))
    if term.op == "apply" and not term.args:
        return names[str(term)]
    first, *others = (formula(child, names) for child in term.args)
    if not others:
        return {"-": -first, "to_real": first}[term.op]
    for other in others:
        first = OPERATORS[term.op](first, other)
    return first
