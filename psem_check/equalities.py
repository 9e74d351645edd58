"""Proof rules of equality, of values, and of enumerations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

from psem_check.terms import Term, Terms
from psem_check.values import NoValue, value_of


def _sides(terms: Terms, formula: Term) -> tuple[Term, ...]:
    """Those of an equation; none of anything else."""
    return terms.arguments[formula] if terms.heads[formula] == "=" else ()


def trans(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """a = b, b = c, and so on: the first is equal to the last."""
    sides = [_sides(terms, premise) for premise in premises]
    if not sides or not all(sides):
        return False
    joined = all(a[1] == b[0] for a, b in pairwise(sides))
    return joined and _sides(terms, conclusion) == (sides[0][0], sides[-1][1])


def cong(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """Applications of the same to arguments that are equal one by one."""
    sides = _sides(terms, conclusion)
    if not sides or terms.heads[sides[0]] != terms.heads[sides[1]]:
        return False
    left, right = (terms.arguments[s] for s in sides)
    known = {_sides(terms, premise) for premise in premises}
    return len(left) == len(right) and all(
        a == b or (a, b) in known for a, b in zip(left, right, strict=True)
    )


def evaluate(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """A closed term is equal to what it is worth."""
    sides = _sides(terms, conclusion)
    return bool(sides) and _worth(terms, sides[0]) == _worth(terms, sides[1]) != ()


def distinct_values(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """Two values that differ are not equal."""
    if terms.heads[conclusion] != "not":
        return False
    sides = _sides(terms, terms.arguments[conclusion][0])
    worth = [_worth(terms, side) for side in sides]
    return bool(sides) and () not in worth and worth[0] != worth[1]


def _worth(terms: Terms, term: Term) -> tuple[Any, ...]:
    """The value of a term, or nothing."""
    try:
        return (value_of(terms, term),)
    except NoValue:
        return ()


def distinct_elim(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """`distinct` says of every two that they are not equal."""
    sides = _sides(terms, conclusion)
    if not sides or terms.heads[sides[0]] != "distinct":
        return False
    pairs = combinations(terms.arguments[sides[0]], 2)
    differ = [terms.negation(terms.equal(a, b)) for a, b in pairs]
    return sides[1] == terms.conjunction(differ)


def dt_split(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """A term of an enumeration is one of its values."""
    heads, arguments = terms.heads, terms.arguments
    cases = arguments[conclusion] if heads[conclusion] == "or" else (conclusion,)
    sides = [_sides(terms, case) for case in cases]
    if not all(sides) or len({left for left, _ in sides}) != 1:
        return False
    values = {heads[right] for _, right in sides}
    sort = terms.sorts[sides[0][0]]
    if not isinstance(sort, tuple) or sort[0] != "Values":
        return False
    return {("value", sort, i) for i in range(len(sort[2]))} <= values


RULES = {
    "trans": trans,
    "cong": cong,
    "evaluate": evaluate,
    "distinct_values": distinct_values,
    "distinct_elim": distinct_elim,
    "dt_split": dt_split,
}
