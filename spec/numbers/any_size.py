"""Numbers of devices, and of micro-steps, of which nothing is said: polynomials in such sizes.

A verdict with such sizes (`spec.checking.verdict.check`) compares polynomials. Those that are the
same are so for all sizes; those that are not are, along one axis, the same for a few sizes, which
are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import lcm, prod

from spec.numbers.arithmetic import Number, power
from spec.numbers.roots import whole_roots

_Factors = tuple[tuple[str, int], ...]  # sizes and their exponents, sorted


class Undecided(ValueError):
    """What is not the same, or not known, for sizes in general."""


@dataclass(frozen=True)
class Polynomial:
    """A sum of products of powers of sizes, each taken a number of times that is not 0.

    What is no more than a number becomes one.
    """

    terms: tuple[tuple[_Factors, Number], ...]

    def __add__(self, other: Number) -> Number:
        total = dict(self.terms)
        for factors, times in _polynomial(other).terms:
            total[factors] = total.get(factors, 0) + times
        return _of(total)

    def __mul__(self, other: Number) -> Number:
        if not isinstance(other, Polynomial):
            return Polynomial(tuple((f, times * other) for f, times in self.terms)) if other else 0
        total: dict[_Factors, Number] = {}
        for (left, a), (right, b) in product(self.terms, other.terms):
            exponents = dict(left)
            for name, exponent in right:
                exponents[name] = exponents.get(name, 0) + exponent
            factors = tuple(sorted(item for item in exponents.items() if item[1]))
            total[factors] = total.get(factors, 0) + a * b
        return _of(total)

    def __sub__(self, other: Number) -> Number:
        return self + -1 * other

    def __rsub__(self, other: Number) -> Number:
        return other + -1 * self

    def __pow__(self, exponent: int) -> Number:
        """Of one product any power; of sums none below 0: Undecided."""
        if exponent < 0 and len(self.terms) != 1:
            raise Undecided(f"1 / ({self}) is no sum of products of sizes")
        result: Number = 1
        for _ in range(abs(exponent)):
            result = result * (self if exponent > 0 else _inverse(*self.terms[0]))
        return result

    __radd__, __rmul__ = __add__, __mul__

    @property
    def names(self) -> list[str]:
        """The sizes in it."""
        return sorted({name for factors, _ in self.terms for name, _ in factors})

    @property
    def sides(self) -> tuple[Number, Number]:
        """What is equal where it is 0: two sums without a minus, the first not a mere number."""
        above, below = (
            _of({factors: abs(times) for factors, times in self.terms if (times > 0) is positive})
            for positive in (True, False)
        )
        return (above, below) if isinstance(above, Polynomial) else (below, above)

    def __str__(self) -> str:
        terms = sorted(self.terms, key=lambda term: term[1] < 0)
        words = " + ".join(_written(*term) for term in terms) or "0"
        return words.replace("+ -1*", "- ").replace("+ -", "- ")

    def at(self, sizes: Mapping[str, int]) -> Number:
        """What it is for some sizes."""
        return sum(
            times * prod(Fraction(sizes[name]) ** exponent for name, exponent in factors)
            for factors, times in self.terms
        )


def any_size(name: str) -> Polynomial:
    """A size of which nothing is said."""
    return Polynomial(((((name, 1),), 1),))


class Comparison:
    """Whether numbers are equal for sizes in general, and for which sizes that may be otherwise."""

    def __init__(self) -> None:
        self.differences: set[Polynomial] = set()  # that are not 0 in general
        self.exempt: dict[str, set[int]] = {}  # sizes for which nothing was found

    def same(self, a: Number, b: Number) -> bool:
        """Whether two numbers are equal as polynomials."""
        if a == b:
            return True
        difference = a - b
        if isinstance(difference, Polynomial):
            self.differences.add(difference)
        return False

    def set_apart(self, size: Number, numbers: Iterable[int]) -> None:
        """Say nothing of a size that is one of some numbers."""
        if isinstance(size, Polynomial):
            self.exempt.setdefault(str(size), set()).update(numbers)

    def exceptions(self) -> dict[str, set[int]]:
        """The numbers for which numbers that differ are equal all the same, of each size."""
        found: dict[str, set[int]] = {}
        for difference in map(_whole, self.differences):
            names = difference.names
            if len(names) == 1:
                found.setdefault(names[0], set()).update(_roots(difference))
        return found

    def conditions(self) -> list[Polynomial]:
        """The same of several sizes together, all from 2 on: what would have to be 0."""
        whole = map(_whole, self.differences)
        several = {d for d in whole if len(d.names) > 1 and _may_vanish(d)}
        return sorted(several, key=str)


def _whole(number: Polynomial) -> Polynomial:
    """Times whatever makes its exponents whole numbers from 0 on, and its coefficients whole."""
    least: dict[str, int] = {}
    for name in number.names:
        least[name] = min(dict(factors).get(name, 0) for factors, _ in number.terms)
    scale = lcm(*(Fraction(times).denominator for _, times in number.terms))
    times: Number = Polynomial(((tuple((n, -e) for n, e in least.items() if e), scale),))
    return _polynomial(times * number)


def _may_vanish(number: Polynomial) -> bool:
    """False if it is 0 for no sizes from 2 on: with 1 taken off each, all terms are of one sign."""
    more: Number = 0
    for factors, times in number.terms:
        term: Number = times
        for name, exponent in factors:
            term = term * (any_size(name) + 1) ** exponent
        more = more + term
    return len({times > 0 for _, times in _polynomial(more).terms}) > 1


@lru_cache(maxsize=4096)
def _roots(number: Polynomial) -> list[int]:
    """The whole numbers from 1 on for which a polynomial in one size is 0, of whole coefficients."""
    terms = {sum(e for _, e in factors): int(times) for factors, times in number.terms}
    return whole_roots([terms.get(e, 0) for e in range(max(terms) + 1)])


def _polynomial(number: Number) -> Polynomial:
    if isinstance(number, Polynomial):
        return number
    return Polynomial((((), number),) if number else ())


def _of(terms: Mapping[_Factors, Number]) -> Number:
    found = tuple(sorted((f, times) for f, times in terms.items() if times))
    is_number = not found or (len(found) == 1 and not found[0][0])
    return sum(times for _, times in found) if is_number else Polynomial(found)


def _inverse(factors: _Factors, times: Number) -> Polynomial:
    return Polynomial(((tuple((name, -e) for name, e in factors), power(times, -1)),))


def _written(factors: _Factors, times: Number) -> str:
    above = [name if e == 1 else f"{name}^{e}" for name, e in factors if e > 0]
    below = "".join(f"/{name}" * -e for name, e in factors if e < 0)
    return "*".join(above if above and times == 1 else [str(times), *above]) + below
