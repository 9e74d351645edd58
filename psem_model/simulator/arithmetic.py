"""The numbers of a simulated run: modulo a prime, fractions, floating point; and what is not known."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np

from spec.meaning.match import Copies

Array = np.ndarray[Any, Any]
Number = Any  # int or Fraction
PRIME = 2**31 - 1  # products of two residues fit in 64 bits
FEW = 1024  # integers of one seed that are kept


def integers(seed: tuple[int, ...], shape: tuple[int, ...], first: int, end: int) -> Array:
    """Random integers from `first` to before `end`, which depend on nothing else: not to be written."""
    return (_kept if prod(shape) <= FEW else _drawn)(seed, shape, first, end)


def _drawn(seed: tuple[int, ...], shape: tuple[int, ...], first: int, end: int) -> Array:
    found = np.random.default_rng(seed).integers(first, end, size=shape)
    found.setflags(write=False)
    return found


_kept = lru_cache(maxsize=4096)(_drawn)


class Arithmetic:
    """Arrays of exact fractions, and what the other arithmetics have in common.

    Optimizers: gradient descent, or momentum, both with weight decay: no gradient is not no update.
    """

    dtype: Any = object
    moments = 1
    starts_at_zero = False  # whether the first moments are zero
    rate, friction, decay = Fraction(7), Fraction(3), Fraction(5)

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape, self.dtype)

    def of(self, integers: Array) -> Array:
        """Values made of random integers from 1 to PRIME - 1."""
        return self.count(integers)

    def count(self, integers: Array) -> Array:
        """Integers as they are."""
        return integers.astype(object)

    def number(self, value: Number) -> Any:
        """One number, as a value to multiply by."""
        return Fraction(value)

    def reduce(self, values: Array) -> Array:
        """The values in their canonical form."""
        return values

    def add(self, a: Array, b: Array) -> Array:
        return self.reduce(a + b)

    def mul(self, a: Array, b: Any) -> Array:
        return self.reduce(a * b)

    def total(self, values: Array, axis: int | tuple[int, ...], keepdims: bool = False) -> Array:
        """The sum over one or several axes."""
        return self.reduce(values.sum(axis, keepdims=keepdims))

    def matmul(self, a: Array, b: Array) -> Array:
        """The matrix product over the last axis of `a` and the last but one of `b`."""
        return np.asarray(a @ b)

    def reciprocal(self, values: Array) -> Array:
        """1 / value; 0 for 0."""
        return np.asarray(np.frompyfunc(lambda v: Fraction(1) / v if v else Fraction(0), 1, 1)(values))

    def clip_factor(self, square: Array) -> Array:
        """What to multiply by for a square norm: a rational stand-in, which is as far from linear."""
        return self.reciprocal(self.reduce(square + 1))

    def differs(self, has: Array, expected: Array, largest: Number) -> Array:
        """Where two arrays differ, as booleans; with a tolerance, it is relative to `largest`."""
        return np.asarray(has != expected)

    def unequal(self, copies: Copies) -> Iterator[tuple[int, ...]]:
        """Where copies (devices, ...) are not the single device's, device by device."""
        wrong = self.differs(copies.has, copies.single, copies.largest)
        for device, row in enumerate(wrong) if wrong.any() else ():
            yield from ((device, *map(int, place)) for place in np.argwhere(row))

    def activation(self, z: Array) -> tuple[Array, Array]:
        """A layer's nonlinear function, and its derivative."""
        return self.mul(z, z), self.reduce(z + z)

    def decayed(self, weight: Array, gradient: Array) -> Array:
        """The gradient with weight decay."""
        return self.add(gradient, self.mul(weight, self.number(self.decay)))

    def descend(self, weight: Array, gradient: Array) -> Array:
        """The next weight by gradient descent, without optimizer state."""
        change = self.mul(self.decayed(weight, gradient), self.number(self.rate))
        return self.reduce(weight - change)

    def next(self, weight: Array, moments: Array, gradient: Array, step: int) -> tuple[Array, Array]:
        """The next weight and moments (number of moments, *weight.shape); of none, by descent."""
        if not len(moments):
            return self.descend(weight, gradient), moments
        kept = self.mul(moments[0], self.number(self.friction))
        moment = self.add(kept, self.decayed(weight, gradient))
        return self.reduce(weight - self.mul(moment, self.number(self.rate))), moment[None]


class Modular(Arithmetic):
    """Residues modulo a prime: as exact as fractions, as fast as integers."""

    dtype = np.int64

    def count(self, integers: Array) -> Array:
        return integers.astype(np.int64) % PRIME

    def number(self, value: Number) -> int:
        fraction = Fraction(value)
        return int(fraction.numerator * pow(fraction.denominator, -1, PRIME) % PRIME)

    def reduce(self, values: Array) -> Array:
        return values % PRIME

    def matmul(self, a: Array, b: Array) -> Array:
        terms = (self.mul(a[..., k, None], b[..., k, :][..., None, :]) for k in range(a.shape[-1]))
        return self.reduce(sum(terms, start=np.zeros((), np.int64)))

    def reciprocal(self, values: Array) -> Array:
        """Those of two values follow from that of their product (Montgomery's trick)."""
        padded = np.ones(1 << (max(values.size, 1) - 1).bit_length(), np.int64)
        padded[: values.size] = np.where(values, values, 1).ravel()
        products = [padded]
        while products[-1].size > 8:  # as many are found one by one as soon
            products.append(self.mul(*products[-1].reshape(2, -1)))
        found = np.array([pow(product, -1, PRIME) for product in products[-1].tolist()], np.int64)
        for pairs in products[-2::-1]:
            found = self.mul(pairs.reshape(2, -1)[::-1], found).ravel()
        return np.where(values, found[: values.size].reshape(values.shape), 0)


class Floating(Arithmetic):
    """Double precision. The optimizer is Adam, or momentum."""

    dtype = np.float64
    starts_at_zero = True
    rate, friction, decay = Fraction(1, 1000), Fraction(9, 10), Fraction(1, 100)
    betas, epsilon, tolerance = (0.9, 0.999), 1e-6, 1e-9

    def __init__(self, adam: bool = True) -> None:
        self.moments = 2 if adam else 1

    def of(self, integers: Array) -> Array:
        return integers / 2**30 - 1.0

    def count(self, integers: Array) -> Array:
        return integers.astype(np.float64)

    def number(self, value: Number) -> float:
        return float(value)

    def matmul(self, a: Array, b: Array) -> Array:
        # without threads, which only wait for one another on products as thin as these
        return np.asarray(np.einsum("...ik,...kj->...ij", a, b))

    def reciprocal(self, values: Array) -> Array:
        return np.divide(1.0, values, out=np.zeros_like(values), where=values != 0)

    def clip_factor(self, square: Array) -> Array:
        return np.minimum(
            1.0, np.divide(1.0, np.sqrt(square), out=np.ones_like(square), where=square > 0)
        )

    def differs(self, has: Array, expected: Array, largest: Number) -> Array:
        return np.asarray(~(np.abs(has - expected) <= self.tolerance * largest))

    def activation(self, z: Array) -> tuple[Array, Array]:
        h = np.tanh(z)
        return h, 1 - h * h

    def next(self, weight: Array, moments: Array, gradient: Array, step: int) -> tuple[Array, Array]:
        if len(moments) < 2:
            return super().next(weight, moments, gradient, step)
        (b1, b2), t = self.betas, step + 1
        first = b1 * moments[0] + (1 - b1) * gradient
        second = b2 * moments[1] + (1 - b2) * gradient * gradient
        root = np.sqrt(second / (1 - b2**t))
        change = float(self.rate) * (first / (1 - b1**t)) / (root + self.epsilon)
        return weight - change, np.stack((first, second))


ARITHMETICS: dict[str, type[Arithmetic]] = {
    "modular": Modular,
    "exact": Arithmetic,
    "float64": Floating,
}


class Poison:
    """What a memory holds where nothing is known of it: random numbers, others at each read.

    `drawn`: how many numbers a run has read of it. What never reads any is right whatever the memory
    holds; another seed is another memory.
    """

    def __init__(self, seed: int, arithmetic: Arithmetic) -> None:
        self.seed, self.arithmetic, self.drawn = seed, arithmetic, 0

    @cached_property
    def _random(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def __call__(self, *shape: int) -> Array:
        """Numbers of which nothing is known."""
        found = self._random.integers(1, PRIME, shape).astype(self.arithmetic.dtype)
        self.drawn += found.size
        return found
