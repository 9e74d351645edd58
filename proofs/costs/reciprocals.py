"""Numbers to divide by: x / n is x times the reciprocal of n, which is a variable of its own.

What is shown for any value of that variable holds for 1/n: an identity of quotients becomes one of
polynomials, which every solver decides at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofs.trusted.kernel import Kernel


@dataclass(frozen=True, eq=False)
class Divisor:
    """A real number and its reciprocal; products of divisors are divisors."""

    number: Any
    reciprocal: Any

    def __truediv__(self, other: Any) -> Any:
        return self.number * (other.reciprocal if isinstance(other, Divisor) else 1 / other)

    def __rtruediv__(self, other: Any) -> Any:
        return other * self.reciprocal

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Divisor):
            return Divisor(self.number * other.number, self.reciprocal * other.reciprocal)
        return self.number * other

    def __rmul__(self, other: Any) -> Any:
        return self if type(other) is int and other == 1 else other * self.number

    def __add__(self, other: Any) -> Any:
        return self.number + other

    def __sub__(self, other: Any) -> Any:
        return self.number - other

    __radd__ = __add__


def divisor(k: Kernel, name: str) -> Divisor:
    """A variable to divide by."""
    return Divisor(*k.reals(f"{name} {name}_th"))
