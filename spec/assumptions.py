"""Every assumption the theorems rest on, each with its reason. There are no others.

Two are about arithmetic and come with the proof rules; two are about training, and one about the
softmax, and are stated as formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, eq=False)
class Assumption:
    """A named assumption; `formula` builds its statement about given symbols, if it has one."""

    name: str
    reason: str
    formula: Callable[..., Any] | None = None


INDUCTION = Assumption(
    "induction",
    "what holds at 0, and at n + 1 whenever it holds at n, holds for every natural number; "
    "functions may be defined by recursion on it",
)
REAL_ARITHMETIC = Assumption(
    "real-arithmetic",
    "values are real numbers: sums are exact and may be taken in any order (floats may not: E8)",
)
LINEARITY = Assumption(
    "linearity",
    "the loss of a batch is the weighted sum of its samples' losses, so its gradient is the "
    "weighted sum of theirs",
    # of a point, a step and an element; before these, of a run where there are many
    lambda gradient, weighted_sum, samples, *of: (
        gradient(*of[:-1])[of[-1]] == weighted_sum(*of, samples(of[-2]))
    ),
)
DETERMINISM = Assumption(
    "determinism",
    "a sample's gradient and an element's update depend on their arguments alone, not on the "
    "device that computes them",
    lambda on_device, function, device, *arguments: (
        on_device(device, *arguments) == function(*arguments)
    ),
)
EXPONENTIAL = Assumption(
    "exponential",
    "exp turns sums into products and is positive; nothing else is known of it, so that what is "
    "proved holds for every base of the softmax",
    lambda exp, a, b: (exp(a + b) == exp(a) * exp(b)) & (exp(a) > 0),
)

ASSUMPTIONS = MappingProxyType(
    {a.name: a for a in (INDUCTION, REAL_ARITHMETIC, LINEARITY, DETERMINISM, EXPONENTIAL)}
)
