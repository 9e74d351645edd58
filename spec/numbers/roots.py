"""The whole numbers that are roots of a polynomial with whole coefficients, however large they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isqrt


def whole_roots(coefficients: Sequence[int]) -> list[int]:
    """The roots among 1, 2, 3, ... of a polynomial that is not 0, its constant coefficient first."""
    found = {x for turn in _turns(coefficients) for x in (turn, turn + 1)}
    return sorted(x for x in found if x > 0 and _at(coefficients, x) == 0)


def divisors(number: int) -> list[int]:
    """The whole numbers that divide a number other than 0."""
    number = abs(number)
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def _turns(coefficients: Sequence[int]) -> list[int]:
    """Whole numbers from 0 on: between x + 1 and the next of them a polynomial is monotone, and not 0.

    They are those of its derivative, with 0 and a bound on the roots, and where it changes sign between
    two of them, which bisection finds.
    """
    degree = len(coefficients) - 1
    if degree < 1:
        return [0]
    bound = max(abs(c) for c in coefficients) // abs(coefficients[-1]) + 1
    inner = _turns([i * c for i, c in enumerate(coefficients)][1:])
    ends = sorted({*inner, bound})
    found = set(ends)
    for low, high in pairwise(ends):
        low += 1
        sign = _at(coefficients, low) > 0
        if (_at(coefficients, high) > 0) == sign:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if (_at(coefficients, middle) > 0) == sign else (low, middle)
        found.add(low)
    return sorted(found)


def _at(coefficients: Sequence[int], x: int) -> int:
    value = 0
    for c in reversed(coefficients):
        value = value * x + c
    return value
