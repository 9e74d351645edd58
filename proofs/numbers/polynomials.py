"""T3: numbers of sizes in general are what they are of each size, and roots are all that there are.

Polynomials are worked out of numbers, and compared, size by size; they are read as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

from proofs.trusted.kernel import Kernel, KernelError
from spec.numbers.any_size import Comparison, Polynomial, Undecided, any_size
from spec.numbers.roots import divisors, whole_roots

N, M = any_size("n"), any_size("m")
SIZES = range(1, 7)
POINTS = ((2, 3), (5, 1), (3, 4))  # n and m
EXPRESSIONS: tuple[Callable[[Any, Any], Any], ...] = (  # each is compared with the next
    lambda n, _: n,
    lambda n, _: n - n,
    lambda n, _: (n - 2) * (n - 5) * (n - 5),
    lambda n, _: 7 - 2 * n,
    lambda n, m: n + m + n * m,
    lambda n, m: m * n * n + 3 * m - n,
    lambda n, m: m + n * (n * m - 1) - m + m * 3,
    lambda n, m: (n - m) * (n + m),
    lambda n, m: n * n - m**2,
    lambda n, m: (2 * n * m) ** -2 * n - m**-1,
    lambda n, m: Fraction(5, 3) * n * m**-3 - Fraction(1, 2) * n - 1,
    lambda n, m: n**0 + (n + 1) ** 0 + 0 * m,
    lambda _, m: Fraction(1, 2) * m - 1,
    lambda n, m: 1 - n * m**-1 * m * n**-1,
    lambda n, m: 12 - n * m,
    lambda n, m: (n + m) * 0,
    lambda n, m: m**-1 + n + 1,
    lambda n, m: n * m**-2,
    lambda _, m: 5 * m**-2,
    lambda n, _: n + 2,
    lambda n, m: n * m,
    lambda _, m: m + 2,
)
LARGE = (1, 2, 9, 40, 10**6 + 3)  # roots
CLOSE = (-9, -4, 5, 6, 11, 13, 24, 26, 32)  # to turns, in threes


def numbers_are_their_values(k: Kernel) -> None:
    """Raise KernelError unless numbers of sizes in general are what they are of each size."""
    grid = [*product(SIZES, SIZES)]
    values = [{(n, m): of(Fraction(n), Fraction(m)) for n, m in grid} for of in EXPRESSIONS]
    found = [(of(N, M), at) for of, at in zip(EXPRESSIONS, values, strict=True)]
    for number, at in found:
        _require(k, isinstance(number, Polynomial), len({*at.values()}) > 1, number)
        for n, m in POINTS:
            value = number.at({"n": n, "m": m}) if isinstance(number, Polynomial) else number
            _require(k, (value, _read(str(number), {"n": n, "m": m})), (at[n, m],) * 2, number)
    for (number, at), (other, beside) in pairwise(found):
        _require_compared(k, number, other, {sizes for sizes in grid if at[sizes] == beside[sizes]})
    with suppress(Undecided):
        raise KernelError(f"{k.claim}: {(N + 1) ** -1} is a sum")
    never = Comparison()
    _require(k, (never.same(N + M, 1), never.conditions()), (False, []), "1 from 2 on")
    for size, number in product((N, 5), (3, 4)):
        never.set_apart(size, (number,))
    _require(k, never.exempt, {"n": {3, 4}}, "set apart")
    square = Comparison()
    _require(k, (square.same(N * N, 49), square.exceptions()), (False, {"n": {7}}), "a square")
    of_three = Comparison()
    of_three.same(N * M, any_size("l") + 5)
    _require(k, [each.names for each in of_three.conditions()], [["l", "m", "n"]], "sizes")
    _require_roots(k)


def _require_compared(k: Kernel, a: Any, b: Any, equal: set[tuple[int, int]]) -> None:
    """Where two numbers are equal, of all sizes or some: of two sizes together, from 2 on."""
    comparison = Comparison()
    same = comparison.same(a, b)
    _require(k, same, len(equal) == len(SIZES) ** 2, a, b)
    few, conditions = comparison.exceptions(), comparison.conditions()
    for difference in comparison.differences:
        above, below = difference.sides
        _require(k, isinstance(above, Polynomial) and "-" not in f"{above} {below}", True, difference)
        _require(k, above - below in (difference, -1 * difference), True, difference)
    for each in conditions:
        whole = all(int(times) == times and all(e > 0 for _, e in of) for of, times in each.terms)
        _require(k, (whole, each.names), (True, ["m", "n"]), each, "is whole, of sizes")
    for n, m in product(SIZES[1 if conditions else 0 :], repeat=2):
        found = n in few.get("n", ()) or m in few.get("m", ())
        some = found or any(each.at({"n": n, "m": m}) == 0 for each in conditions)
        _require(k, same or some, (n, m) in equal, a, b, n, m)


def _read(text: str, sizes: Mapping[str, int]) -> Fraction:
    """What is written, of some sizes."""
    total = Fraction(0)
    for term in text.replace("- ", "+ -1*").split(" + "):
        product_ = Fraction(re.match(r"-?\w", term) is not None)
        for sign, word, power in re.findall(r"([*/]?)(-?\w+)\^?(\d*)", term):
            factor = Fraction(sizes.get(word) or word) ** int(power or 1)
            product_ = product_ / factor if sign == "/" else product_ * factor
        total += product_
    return total


def _require_roots(k: Kernel) -> None:
    """Small roots, tried one by one; of products, large ones, and some close to turns; divisors."""
    for coefficients in product(range(-3, 4), repeat=3):
        if coefficients[-1]:
            zeros = [x for x in range(1, 5) if sum(c * x**i for i, c in enumerate(coefficients)) == 0]
            _require(k, whole_roots(coefficients), zeros, coefficients)
    several = *combinations(LARGE, 3), *combinations(LARGE, 1), *combinations(CLOSE, 3)
    for some, times in product((*several, (9, 9), (40, 9, 9, 40)), (3, -1)):
        zeros = sorted({x for x in some if x > 0})
        _require(k, whole_roots(_product(some, times)), zeros, times, some)
    for number in range(1, 40):
        small = [d for d in range(1, number + 1) if number % d == 0]
        _require(k, (divisors(number), divisors(-number)), (small, small), number)


def _product(roots: Sequence[int], times: int) -> list[int]:
    """The coefficients of so many times x minus each root."""
    found = [times]
    for root in roots:
        found = [a - root * b for a, b in zip([0, *found], [*found, 0], strict=True)]
    return found


def _require(k: Kernel, said: object, expected: object, *of: object) -> None:
    if said != expected:
        raise KernelError(f"{k.claim}: {', '.join(map(str, of))}: {said}, and not {expected}")
