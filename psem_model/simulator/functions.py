"""The functions of a transformer, with their derivatives: real ones, and stand-ins in residues.

The layout rule holds for every function, so exact runs use rational functions of the same kind: what is
applied to each element is nonlinear, what normalises needs all elements along an index, and backward
reads what the real ones read: the result of those whose derivative is known from it, of the others
the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import ClassVar

import numpy as np

from psem_model.simulator.arithmetic import PRIME, Arithmetic, Array, Floating, Modular
from spec.models.values import LOG_TOTAL

Elementwise = Callable[[Array], Array]
# functions whose derivatives are, here, functions of their results; of others, of their arguments
BY_RESULT = frozenset({"exp", "inverse_root", "relu", "sigmoid", "softmax", "tanh"})
ZERO_OF_ZERO = ("relu", "tanh")  # of these, those that are zero of zero


class Functions(Arithmetic):
    """Sums of products, functions of each element, and functions of all elements along an index.

    `elementwise[name]`: the function and its derivative, of its result or of its argument. If no more
    is said, quotients of polynomials stand in for what is not rational.
    """

    elementwise: ClassVar[dict[str, tuple[Elementwise, Elementwise]]]

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the functions of each element."""
        return (*self.elementwise,)

    def einsum(self, subscripts: str, left: Array, right: Array) -> Array:
        """The sum of products over the indices that the result lacks."""
        return np.asarray(np.einsum(subscripts, left, right))

    def centred(self, x: Array, axis: int) -> Array:
        """A linear map that is its own transpose."""
        return self.reduce(x - x.sum(axis, keepdims=True))

    def scale(self, square: Array, size: int) -> tuple[Array, Array]:
        """What a norm multiplies by, given a sum of `size` squares, and its derivative."""
        inverse = self.reciprocal(self.reduce(square + 1))
        return inverse, self.reduce(-self.mul(inverse, inverse))

    def log_total(self, x: Array, axis: int) -> Array:
        """The log-sum-exp of all elements along an axis; of one, what it is alone is `alone`."""
        return self.total(self.alone(x), axis)

    def alone(self, x: Array) -> Array:
        """The log-sum-exp of each element alone.

        In place of exp any function: that it is its own derivative, no step of residues denies.
        """
        return self.reduce(self.reduce(x * x) + x + 1)

    def together(self, one: Array, other: Array) -> Array:
        """The log-sum-exp of what has these two."""
        return self.add(one, other)

    def share(self, part: Array, whole: Array) -> Array:
        """The share of a part in a whole, of their log-sum-exps."""
        return self.mul(part, self.reciprocal(whole))

    def softmax(self, x: Array, axis: int, total: Array | None = None) -> Array:
        """Of all elements along an axis, or with that log-sum-exp: its result tells its derivative."""
        whole = self.log_total(x, axis) if total is None else total
        return self.share(self.alone(x), np.expand_dims(whole, axis))

    def softmax_backward(
        self, cotangent: Array, y: Array, axis: int, product: Array | None = None
    ) -> Array:
        """The cotangent of its argument, from that of its result y; `product`: what both sum to."""
        found = self.total(self.mul(cotangent, y), axis) if product is None else product
        return self.mul(y, self.reduce(cotangent - np.expand_dims(found, axis)))

    def apply(self, name: str, x: Array) -> Array:
        """A function of each element."""
        return self.reduce(self._of(name)[0](x))

    def apply_backward(self, name: str, cotangent: Array, known: Array) -> Array:
        """`known`: the result of what tells its derivative by it, the argument of the others."""
        return self.mul(cotangent, self.reduce(self._of(name)[1](known)))

    def _of(self, name: str) -> tuple[Elementwise, Elementwise]:
        """A function of each element, and its derivative. Raises ValueError for an unknown one."""
        if name not in self.elementwise:
            raise ValueError(f"apply by {name}: expected one of {', '.join(self.names)}")
        return self.elementwise[name]

    def normalise(self, name: str, x: Array, axis: int, total: Array | None = None) -> Array:
        """softmax, its log-sum-exp, or a norm along an axis; norms without scale and offset."""
        if name == LOG_TOTAL:
            return self.log_total(x, axis)
        if name == "softmax":
            return self.softmax(x, axis, total)
        z = self.centred(x, axis) if name == "layer_norm" else x
        square = self.total(self.mul(z, z), axis, keepdims=True)
        return self.mul(z, self.scale(square, x.shape[axis])[0])

    def normalise_backward(
        self, name: str, cotangent: Array, known: Array, axis: int, product: Array | None = None
    ) -> Array:
        """`known`: the result of softmax, the argument of a norm."""
        if name == "softmax":
            return self.softmax_backward(cotangent, known, axis, product)
        z = self.centred(known, axis) if name == "layer_norm" else known
        square = self.total(self.mul(z, z), axis, keepdims=True)
        scale, slope = self.scale(square, z.shape[axis])
        along = self.total(self.mul(cotangent, z), axis, keepdims=True)
        by_scale = self.mul(self.mul(self.add(z, z), slope), along)
        found = self.add(self.mul(cotangent, scale), by_scale)
        return self.centred(found, axis) if name == "layer_norm" else found


@cache
def _summed(subscripts: str) -> tuple[tuple[int, ...], ...]:
    """Of two factors, the axes of the indices that the result lacks; one of both is the first's."""
    factors, out = subscripts.split("->")
    left, right = factors.split(",")
    of_left = tuple(axis for axis, letter in enumerate(left) if letter not in out)
    return of_left, tuple(axis for axis, letter in enumerate(right) if letter not in left + out)


def _products_summed(subscripts: str, left: Array, right: Array) -> int:
    """How many products each element of the result is the sum of."""
    of_left, of_right = _summed(subscripts)
    sizes = (*(left.shape[axis] for axis in of_left), *(right.shape[axis] for axis in of_right))
    return prod(sizes)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gelu_inner(x: Array) -> Array:
    return np.asarray(np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _gelu_slope(x: Array) -> Array:
    t, inner = _gelu_inner(x), np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x * x)
    return np.asarray((1 + t) / 2 + x * (1 - t * t) * inner / 2)


GELUS = ("gelu", "gelu_fast", "gelu_new", "gelu_python")
BOUND = 3.0  # of what is capped
MOST = 7.0  # the bound of what is clamped (gpt-oss: swiglu_limit)


def _open(x: Array) -> Array:
    """A gate's clamped argument times the sigmoid of 1.702 of it (transformers, GptOssExperts)."""
    x = np.minimum(x, MOST)
    return np.asarray(x * _sigmoid(1.702 * x))


def _open_slope(x: Array) -> Array:
    low, gate = np.minimum(x, MOST), _sigmoid(1.702 * np.minimum(x, MOST))
    return np.asarray((x < MOST) * gate * (1 + 1.702 * low * (1 - gate)))


class Real(Functions, Floating):
    """Double precision. gelu by tanh (arXiv 1606.08415, section 2)."""

    epsilon_of_norms = 1e-5
    elementwise: ClassVar[dict[str, tuple[Elementwise, Elementwise]]] = {
        **dict.fromkeys(GELUS, (lambda x: x * (1 + _gelu_inner(x)) / 2, _gelu_slope)),
        "silu": (lambda x: x * _sigmoid(x), lambda x: _sigmoid(x) * (1 + x * (1 - _sigmoid(x)))),
        "relu": (lambda x: np.maximum(x, 0), lambda y: (y > 0) * 1.0),
        "clamped_silu": (_open, _open_slope),
        "clamp": (lambda x: np.clip(x, -MOST, MOST) + 1, lambda x: (np.abs(x) < MOST) * 1.0),
        "sigmoid": (_sigmoid, lambda y: y * (1 - y)),
        "exp": (np.exp, lambda y: y),
        "log": (np.log, np.reciprocal),
        "tanh": (np.tanh, lambda y: 1 - y * y),
        "cap": (lambda x: BOUND * np.tanh(x / BOUND), lambda x: 1 - np.tanh(x / BOUND) ** 2),
        "square": (lambda x: x * x, lambda x: 2 * x),
        "inverse_root": (
            lambda x: (x + Real.epsilon_of_norms) ** -0.5,
            lambda y: -0.5 * y**3,
        ),
    }

    def centred(self, x: Array, axis: int) -> Array:
        return np.asarray(x - x.mean(axis, keepdims=True))

    def scale(self, square: Array, size: int) -> tuple[Array, Array]:
        variance = square / size + self.epsilon_of_norms
        return variance**-0.5, -0.5 * variance**-1.5 / size

    def log_total(self, x: Array, axis: int) -> Array:
        largest = x.max(axis, keepdims=True)
        return np.asarray(np.log(np.exp(x - largest).sum(axis)) + largest.squeeze(axis))

    def alone(self, x: Array) -> Array:
        return x

    def together(self, one: Array, other: Array) -> Array:
        return np.logaddexp(one, other)

    def share(self, part: Array, whole: Array) -> Array:
        return np.asarray(np.exp(part - whole))


class Residues(Functions, Modular):
    """Residues modulo a prime: all functions are polynomials and quotients of them.

    `rates[name]`: of a function whose result tells its derivative. No polynomial's does, but that of a
    line: in its place 1 / (1 - rate x), whose derivative is rate times its square; less 1 where the
    function is zero of zero, as features that fill slices are.
    """

    rates: ClassVar[dict[str, int]] = {
        **{"relu": 2, "sigmoid": 3, "tanh": 5, "inverse_root": 7, "exp": 11},
    }
    elementwise: ClassVar[dict[str, tuple[Elementwise, Elementwise]]] = {
        **dict.fromkeys(GELUS, (lambda x: x * x % PRIME * x + x, lambda x: x * x % PRIME * 3 + 1)),
        "silu": (lambda x: x * x + 3 * x, lambda x: 2 * x + 3),
        "clamped_silu": (lambda x: x * x + 11 * x, lambda x: 2 * x + 11),
        "clamp": (lambda x: x * x + 13 * x, lambda x: 2 * x + 13),
        "log": (lambda x: x * x % PRIME * x, lambda x: x * x % PRIME * 3),
        "cap": (lambda x: x * x + 5 * x, lambda x: 2 * x + 5),
        "square": (lambda x: x * x, lambda x: 2 * x),
    }

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.elementwise, *self.rates)

    def _of(self, name: str) -> tuple[Elementwise, Elementwise]:
        if name not in self.rates:
            return super()._of(name)
        rate, less = self.rates[name], int(name in ZERO_OF_ZERO)

        def squared(y: Array) -> Array:
            whole = self.reduce(y + less)
            return whole * whole % PRIME * rate

        return lambda x: self.reciprocal(self.reduce(1 - rate * x)) - less, squared

    def einsum(self, subscripts: str, left: Array, right: Array) -> Array:
        if _products_summed(subscripts, left, right) <= 2:  # less than 2^63
            return self.reduce(np.einsum(subscripts, left, right))
        # halves of 16 bits, so that 2^16 products can be summed in 64
        high = self.reduce(np.einsum(subscripts, left >> 16, right))
        low = np.einsum(subscripts, left & 0xFFFF, right)
        return self.reduce((high << 16) + low)
