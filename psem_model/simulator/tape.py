"""Reverse-mode differentiation on one device: operations write a tape, which is read backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.functions import BY_RESULT, Functions


@dataclass(eq=False)
class Node:
    """An array and, once the tape is read, the gradient by it; a fixed one has none."""

    value: Array
    fixed: bool = False
    gradient: Array | None = None


class Tape:
    """Makes nodes of nodes, and remembers how each passes on its gradient."""

    def __init__(self, numbers: Functions) -> None:
        self.numbers = numbers
        self._steps: list[tuple[Node, Callable[[Array], None]]] = []

    def backward(self, node: Node, cotangent: Array) -> None:
        """Give every node that `node` is made of its gradient."""
        self._receive(node, cotangent)
        for made, pull in reversed(self._steps):
            if made.gradient is not None:
                pull(made.gradient)

    def _receive(self, node: Node, gradient: Array) -> None:
        if not node.fixed:
            had = node.gradient
            node.gradient = gradient if had is None else self.numbers.add(had, gradient)

    def _made(self, value: Array, pull: Callable[[Array], None]) -> Node:
        node = Node(value)
        self._steps.append((node, pull))
        return node

    def einsum(self, subscripts: str, left: Node, right: Node) -> Node:
        """A sum of products; each index is in two of left, right and result."""
        operands, out = subscripts.split("->")
        a, b = operands.split(",")

        def pull(g: Array) -> None:
            if not left.fixed:
                self._receive(left, self.numbers.einsum(f"{out},{b}->{a}", g, right.value))
            if not right.fixed:
                self._receive(right, self.numbers.einsum(f"{a},{out}->{b}", left.value, g))

        return self._made(self.numbers.einsum(subscripts, left.value, right.value), pull)

    def add(self, left: Node, right: Node) -> Node:
        """The sum, broadcast as NumPy does."""

        def pull(g: Array) -> None:
            self._receive(left, self._fitted(g, left.value))
            self._receive(right, self._fitted(g, right.value))

        return self._made(self.numbers.add(left.value, right.value), pull)

    def multiply(self, left: Node, right: Node) -> Node:
        """The product of each two elements, broadcast as NumPy does."""

        def pull(g: Array) -> None:
            self._receive(left, self._fitted(self.numbers.mul(g, right.value), left.value))
            self._receive(right, self._fitted(self.numbers.mul(g, left.value), right.value))

        return self._made(self.numbers.mul(left.value, right.value), pull)

    def _fitted(self, gradient: Array, value: Array) -> Array:
        """Summed over what was broadcast."""
        missing = gradient.ndim - value.ndim
        stretched = [i + missing for i, n in enumerate(value.shape) if n != gradient.shape[i + missing]]
        axes = (*range(missing), *stretched)
        return self.numbers.total(gradient, axes).reshape(value.shape) if axes else gradient

    def pick(self, node: Node, places: Array, axis: int = 0) -> Node:
        """What is at some places along an axis: an array of places, for that axis."""

        def pull(g: Array) -> None:
            found = np.moveaxis(np.zeros_like(node.value), axis, 0)
            picked = tuple(range(axis, axis + places.ndim))
            np.add.at(found, places, np.moveaxis(g, picked, tuple(range(places.ndim))))
            self._receive(node, self.numbers.reduce(np.moveaxis(found, 0, axis)))

        return self._made(np.take(node.value, places, axis), pull)

    def join(self, left: Node, right: Node) -> Node:
        """Both, one after the other along the last axis."""
        size = left.value.shape[-1]

        def pull(g: Array) -> None:
            self._receive(left, g[..., :size])
            self._receive(right, g[..., size:])

        return self._made(np.concatenate((left.value, right.value), -1), pull)

    def transpose(self, node: Node, axes: Sequence[int]) -> Node:
        """The same elements, with the axes in another order."""
        back = np.argsort(axes)
        return self._made(
            np.transpose(node.value, axes), lambda g: self._receive(node, np.transpose(g, back))
        )

    def linear(
        self, node: Node, there: Callable[[Array], Array], back: Callable[[Array], Array]
    ) -> Node:
        """A linear map, and its transpose."""
        return self._made(there(node.value), lambda g: self._receive(node, back(g)))

    def apply(self, function: str, node: Node) -> Node:
        """A function of each element."""
        value = self.numbers.apply(function, node.value)
        known = value if function in BY_RESULT else node.value
        return self._made(
            value, lambda g: self._receive(node, self.numbers.apply_backward(function, g, known))
        )

    def log_total(self, node: Node) -> Node:
        """The log-sum-exp along the last axis: its derivative is the softmax."""
        numbers = self.numbers

        def pull(g: Array) -> None:
            self._receive(node, numbers.mul(g[..., None], numbers.softmax(node.value, -1)))

        return self._made(numbers.log_total(node.value, -1), pull)

    def normalise(self, function: str, node: Node) -> Node:
        """A function of all elements along the last axis."""
        value = self.numbers.normalise(function, node.value, -1)
        known = value if function in BY_RESULT else node.value
        return self._made(
            value,
            lambda g: self._receive(node, self.numbers.normalise_backward(function, g, known, -1)),
        )
