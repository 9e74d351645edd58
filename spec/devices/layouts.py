"""How a value lies across the devices of an axis, and the one rule by which operations pass that on.

An axis partitions one index of the computation: each device has its slice of it. In a contraction
whose index i is partitioned, the result is sharded along i if i is kept, and partial if i is summed
over. That is all: the gradient of a weight sums over the samples, so it is partial along a batch axis;
a row-parallel product sums over features, so it is partial along a feature axis.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import NamedTuple


class Layout(Enum):
    """Every device has all of it, or its own slice, or a term of a sum."""

    __hash__ = object.__hash__  # quicker than by name, and it is looked up often

    REPLICATED = "R"
    SHARDED = "S"
    PARTIAL = "P"


class Lie(NamedTuple):
    """How a value lies along one axis; a sharded one along which of its indices.

    `shares_of`: along the turns of a ring, the scores whose softmax is made of each turn's keys alone:
    what is linear in it is right up to a factor. `log_total`: it is their log-sum-exp itself.
    """

    layout: Layout
    index: str = ""  # type: ignore[assignment]  # a tuple's own `index` is not used
    shares_of: str = ""
    log_total: bool = False

    def __str__(self) -> str:
        lies = f"S({self.index})" if self.index else self.layout.value
        return f"{lies}~" if self.shares_of else lies

    @property
    def plain(self) -> Lie:
        """How what is whole in its place would lie."""
        return Lie(self.layout, self.index)

    @property
    def words(self) -> str:
        """What a value is that lies so."""
        return f"cut along {self.index}" if self.index else _WORDS[self.layout]


_WORDS = {Layout.REPLICATED: "whole", Layout.SHARDED: "cut", Layout.PARTIAL: "in terms"}

Lies = dict[str, Lie]  # how a value lies along each axis
WHOLE, PARTIAL = Lie(Layout.REPLICATED), Lie(Layout.PARTIAL)


@cache
def along(index: str) -> Lie:
    """Sharded along an index."""
    return Lie(Layout.SHARDED, index)


class LayoutError(ValueError):
    """An operation that does not do what it says on values that lie so.

    `at`: a line of a program; or a part and what of it is wrong; or a weight, whose states are.
    """

    def __init__(self, message: str, at: object = None) -> None:
        super().__init__(message)
        self.at = at


class Contraction(NamedTuple):
    """out[...] = the sum, over the indices that it does not have, of left[...] * right[...]."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    out: tuple[str, ...]

    def __str__(self) -> str:
        return f"{' '.join(self.left)}, {' '.join(self.right)} -> {' '.join(self.out)}"


def contract(contraction: Contraction, left: Lie, right: Lie) -> Lie:
    """The layout rule. Raises LayoutError where slices do not meet, or a product is not linear."""
    lies = ((contraction.left, left), (contraction.right, right))
    if PARTIAL in (left, right):
        if WHOLE not in (left, right):
            raise LayoutError(f"a product of what is {left.words} and what is {right.words}")
        return PARTIAL
    cut = {lie.index for lie in (left, right) if lie != WHOLE}
    if len(cut) > 1:
        raise LayoutError(f"one axis cuts {' and '.join(sorted(cut))}")
    for index in cut:
        for indices, lie in lies:
            if index in indices and lie == WHOLE:
                raise LayoutError(f"{index} is cut in one operand only")
        return along(index) if index in contraction.out else PARTIAL
    return WHOLE


def linear(*lies: Lie) -> Lie:
    """An elementwise linear operation: sums, multiples, masks. It keeps every layout."""
    if len(set(lies)) > 1:
        raise LayoutError(f"a sum of {' and '.join(f'what is {lie.words}' for lie in lies)}")
    return lies[0]


def nonlinear(*lies: Lie) -> Lie:
    """Any elementwise operation. A function of a term is not a term of the function."""
    if PARTIAL in lies:
        raise LayoutError("a function that is not linear, of what is in terms")
    return linear(*lies)


def normalised(lie: Lie, index: str) -> Lie:
    """An operation that needs all of an index at once: softmax, a norm."""
    if lie == along(index):
        raise LayoutError(f"{index} is needed whole, and is cut")
    return nonlinear(lie)


def cotangent(lie: Lie) -> Lie:
    """How the gradient with respect to a value comes out, each device differentiating its own copy.

    That of a copy is a term of the whole one, which is summed before it is used (see
    `programs.of_cotangent`); that of a term is the whole one.
    """
    return {WHOLE: PARTIAL, PARTIAL: WHOLE}.get(lie, lie)
