"""What a closed term is worth: numbers as fractions, floats as the machine's own, truth values."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from psem_check.terms import Head, Term, Terms

LARGEST = 1 << 16  # bits of a number


class NoValue(Exception):
    """The term has a symbol, divides by zero, or is too large: it is worth nothing in particular."""


def value_of(terms: Terms, term: Term) -> Any:
    """The value of a closed term. Raises NoValue.

    An `ite` is worth what the branch that is taken is worth. The sort of a number is not part of it.
    """
    done: dict[Term, Any] = {}
    pending = [term]
    while pending:
        here = pending[-1]
        needed = _needed(terms, here, done)
        missing = [n for n in needed if n not in done]
        if missing:
            pending += missing
            continue
        pending.pop()
        head = terms.heads[here]
        worth = [done[n] for n in needed]
        done[here] = worth[-1] if head == "ite" else applied(head, worth)
    return done[term]


def _needed(terms: Terms, term: Term, done: dict[Term, Any]) -> tuple[Term, ...]:
    arguments = terms.arguments[term]
    if terms.heads[term] != "ite":
        return arguments
    condition, then, otherwise = arguments
    if condition not in done:
        return (condition,)
    return (condition, then if done[condition] else otherwise)


def applied(head: Head, worth: list[Any]) -> Any:
    """What an operator or a constant makes of values. Raises NoValue."""
    if isinstance(head, tuple):
        if head[0] == "symbol":
            raise NoValue
        if head[0] == "float":
            return struct.unpack(">d", head[1].to_bytes(8, "big"))[0]
        return (
            Fraction(head[1]) if head[0] in ("int", "real") else head[1] if head[0] == "bool" else head
        )
    if head not in _OPERATORS:
        raise NoValue
    found = _OPERATORS[head](*worth)
    if (
        isinstance(found, Fraction)
        and max(found.numerator.bit_length(), found.denominator.bit_length()) > LARGEST
    ):
        raise NoValue
    return found


def _divided(a: Fraction, b: Fraction) -> Fraction:
    if b == 0:
        raise NoValue
    return a / b


def _div(a: Fraction, b: Fraction) -> Fraction:
    """SMT-LIB's: the remainder is not negative."""
    if b == 0:
        raise NoValue
    return Fraction(math.floor(a / b) if b > 0 else math.ceil(a / b))


def _mod(a: Fraction, b: Fraction) -> Fraction:
    return a - b * _div(a, b)


def _product(*factors: Fraction) -> Fraction:
    return math.prod(factors, start=Fraction(1))


def _all_differ(*worth: Any) -> bool:
    return len(set(worth)) == len(worth)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "not": operator.not_,
    "and": lambda *w: all(w),
    "or": lambda *w: any(w),
    "=>": lambda a, b: not a or b,
    "xor": operator.ne,
    "=": operator.eq,
    "distinct": _all_differ,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": lambda *w: sum(w, Fraction(0)),
    "*": _product,
    "-": operator.sub,
    "neg": operator.neg,
    "abs": abs,
    "/": _divided,
    "div": _div,
    "mod": _mod,
    "to_real": lambda a: a,
    "to_int": lambda a: Fraction(math.floor(a)),
    "is_int": lambda a: a.denominator == 1,
    "fp.add": operator.add,
    "fp.eq": operator.eq,
    "fp.lt": operator.lt,
    "fp.gt": operator.gt,
    "fp.leq": operator.le,
    "fp.geq": operator.ge,
}
