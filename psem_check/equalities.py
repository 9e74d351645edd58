"""Proof rules of equality, of values, and of enumerations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psem_check.terms import Term, Terms
from psem_check.values import NoValue, value_of


def _sides(terms: Terms, formula: Term) -> tuple[Term, ...]:
    """Those of an equation; none of anything else."""
    return terms.arguments[formula] if terms.heads[formula] == "=" else ()


def trans(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """a = b, b = c, and so on, each of them either way round: the first is equal to the last."""
    sides = _sides(terms, conclusion)
    if not sides:
        return False
    here, last = sides
    for premise in premises:
        if here not in _sides(terms, premise):
            return False
        left, right = _sides(terms, premise)
        here = right if here == left else left
    return here == last


def cong(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """Two terms that are the same but for parts that are equal one by one."""
    known = {_sides(terms, premise) for premise in premises}
    pending, seen = [_sides(terms, conclusion)], set[tuple[Term, ...]]()
    while pending:
        here = pending.pop()
        if not here:
            return False
        left, right = here
        if left == right or here in known or (right, left) in known or here in seen:
            continue
        seen.add(here)
        below = [terms.arguments[side] for side in here]
        if terms.heads[left] != terms.heads[right] or len(below[0]) != len(below[1]):
            return False
        pending.extend(zip(*below, strict=True))
    return True


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
    "dt_split": dt_split,
}
