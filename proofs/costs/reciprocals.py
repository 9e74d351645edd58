"""Numbers to divide by: x / n is x times the reciprocal of n, which is a variable of its own.

What is shown for any value of that variable holds for 1/n: an identity of quotients becomes one of
polynomials, which every solver decides at once.
"""

from __future__ import annotations

from typing import Any

import z3

from proofs.trusted.kernel import Kernel


class Divisor(z3.ArithRef):
    """A real number and its reciprocal; products of divisors are divisors."""

    def __init__(self, number: Any, reciprocal: Any) -> None:
        super().__init__(number.as_ast(), number.ctx)
        self.reciprocal = reciprocal

    def __truediv__(self, other: Any) -> Any:
        return self * other.reciprocal if isinstance(other, Divisor) else super().__truediv__(other)

    def __rtruediv__(self, other: Any) -> Any:
        return other * self.reciprocal

    def __mul__(self, other: Any) -> Any:
        product = super().__mul__(other)
        both = isinstance(other, Divisor)
        return Divisor(product, self.reciprocal * other.reciprocal) if both else product

    def __rmul__(self, other: Any) -> Any:
        return self if isinstance(other, int) and other == 1 else super().__rmul__(other)


def divisor(k: Kernel, name: str) -> Divisor:
    """A variable to divide by."""
    return Divisor(*k.reals(f"{name} {name}_th"))
