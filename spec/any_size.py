"""Numbers of devices of which nothing is said, but that there are a few: polynomials in such sizes.

A verdict with such sizes (`spec.verdict.check`) compares for all of them at once, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from spec.arithmetic import Number, power

LEAST = 3  # the owner of an element, another device that looks, and one of the rest
Factors = tuple[tuple[str, int], ...]  # sizes and their exponents, sorted


@dataclass(frozen=True)
class Polynomial:
    """A sum of products of powers of sizes, each taken a number of times that is not 0.

    What is no more than a number becomes one.
    """

    terms: tuple[tuple[Factors, Number], ...]

    def __add__(self, other: Number) -> Number:
        total = dict(self.terms)
        for factors, times in _polynomial(other).terms:
            total[factors] = total.get(factors, 0) + times
        return _of(total)

    def __mul__(self, other: Number) -> Number:
        total: dict[Factors, Number] = {}
        for left, a in self.terms:
            for right, b in _polynomial(other).terms:
                exponents = Counter(dict(left))
                for name, exponent in right:
                    exponents[name] += exponent
                factors = tuple(sorted((name, e) for name, e in exponents.items() if e))
                total[factors] = total.get(factors, 0) + a * b
        return _of(total)

    def __sub__(self, other: Number) -> Number:
        return self + -1 * other

    def __pow__(self, exponent: int) -> Number:
        """Of one product any power; of sums none below 0: ValueError."""
        if exponent < 0 and len(self.terms) != 1:
            raise ValueError(f"1 / ({self}) is no sum of products of sizes")
        result: Number = 1
        for _ in range(abs(exponent)):
            result = result * (self if exponent > 0 else _inverse(*self.terms[0]))
        return result

    __radd__, __rmul__ = __add__, __mul__

    def __str__(self) -> str:
        return " + ".join(_written(*term) for term in self.terms) or "0"


def any_size(name: str) -> Polynomial:
    """Any number of devices from LEAST on."""
    return Polynomial(((((name, 1),), 1),))


def same(a: Number, b: Number) -> bool:
    """Whether two numbers are equal, for all sizes or for none. Raises ValueError if that depends.

    If each size is written as LEAST and some more, a sum of terms of one sign, one of which is a
    number, is 0 for none.
    """
    return a == b if isinstance(a, int) and isinstance(b, int) else _same(a, b)


@lru_cache(maxsize=4096)
def _same(a: Number, b: Number) -> bool:
    difference = _polynomial(a) - b
    for factors, _ in _polynomial(difference).terms:  # no size is 0
        for name, exponent in factors:
            difference = difference * any_size(name) ** max(0, -exponent)
    beyond: Number = 0
    for factors, times in _polynomial(difference).terms:
        term = times
        for name, exponent in factors:
            term = term * (any_size(name) + LEAST) ** exponent
        beyond = beyond + term
    terms = dict(_polynomial(beyond).terms)
    signs = {times > 0 for times in terms.values()}
    if signs and (len(signs) > 1 or () not in terms):
        raise ValueError(f"whether {a} is {b} depends on the sizes")
    return not signs


def _polynomial(number: Number) -> Polynomial:
    if isinstance(number, Polynomial):
        return number
    return Polynomial((((), number),) if number else ())


def _of(terms: Mapping[Factors, Number]) -> Number:
    found = tuple(sorted((f, times) for f, times in terms.items() if times))
    is_number = not found or (len(found) == 1 and not found[0][0])
    return sum(times for _, times in found) if is_number else Polynomial(found)


def _inverse(factors: Factors, times: Number) -> Polynomial:
    return Polynomial(((tuple((name, -e) for name, e in factors), power(times, -1)),))


def _written(factors: Factors, times: Number) -> str:
    powers = [name if e == 1 else f"{name}^{e}" for name, e in factors]
    return "*".join(powers if factors and times == 1 else [str(times), *powers])
