"""Arithmetics of small runs: weights start at a value, and what the devices read and apply is noted."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from proofs.meaning.sharpness import RATE, choose
from psem_model.simulator import Arithmetic, Floating
from psem_model.simulator.arithmetic import Array
from spec.models import training

Rows = list[list[Any]]  # a row of each device, or the single one's


def root(square: Any) -> Fraction:
    """The exact square root of a fraction. Raises ValueError if it has none."""
    exact = Fraction(square)
    found = Fraction(isqrt(exact.numerator), isqrt(exact.denominator))
    if found * found != exact:
        raise ValueError(f"{exact} is not the square of a fraction")
    return found


def descent(weight: Any, gradient: Any) -> Any:
    """Gradient descent at the rate of the proofs."""
    return training.sgd(weight, gradient, RATE)


class Noted(Arithmetic):
    """Exact; weights start at a value, and each moves by a rule.

    `seen`: the weights that the devices' gradients are of. `applied`: the gradients that the devices
    apply; `whole`: those that the single device applies. Each in order, a list of rows for each time.
    """

    def __init__(self, start: Any, devices: int = 2, rule: Callable[[Any, Any], Any] = descent) -> None:
        self.begun, self.devices, self.rule = start, devices, np.frompyfunc(rule, 2, 1)
        self.seen: list[Rows] = []
        self.applied: list[Rows] = []
        self.whole: list[Rows] = []

    def of(self, integers: Array) -> Array:
        return np.full(integers.shape, self.begun, self.dtype)

    def clip_factor(self, square: Array) -> Array:
        return np.asarray(
            np.vectorize(lambda s: training.clip_by_norm(Fraction(1), root(s), 1, choose))(square)
        )

    def descend(self, weight: Array, gradient: Array) -> Array:
        (self.applied if len(gradient) == self.devices else self.whole).append(gradient.tolist())
        return np.asarray(self.rule(weight, gradient), self.dtype)


class BitForBit(Noted, Floating):
    """In double precision, and no difference is forgiven."""

    differs = Arithmetic.differs
