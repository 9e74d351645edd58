"""Activation checkpoints: what a stage of layers keeps when it recomputes between checkpoints.

Of l layers, c keep their input (size_in); the l/c layers of one segment at a time are recomputed and
keep all that the backward pass needs (size_mid). (Narayanan et al., arXiv 2104.04473, section 3.5)
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from spec.numbers.arithmetic import DIVISIBLE, EXACT, Arithmetic, Number, ceil_div


def kept_at_most(
    checkpoints: Number,
    layers: Number,
    size_in: Number,
    size_mid: Number,
    arithmetic: Arithmetic = DIVISIBLE,
) -> Number:
    """Elements (or bytes, as the sizes are) kept at most: c * size_in + (l/c) * size_mid.

    Exact arithmetic takes ceil(l/c) layers for the largest segment.
    """
    segment = arithmetic.shard(layers, layers, checkpoints)
    return checkpoints * size_in + segment * size_mid


def best(layers: int, size_in: int, size_mid: int) -> int:
    """The number in 1..layers that keeps least with segments of whole layers; the least such.

    As many as segments of g layers need, for a g next to the root g0^2 * size_mid = layers * size_in:
    as long as the closed form, which keeps no more, does not exceed what is kept (claim A5). Raises
    ValueError unless all are >= 1.
    """
    if min(layers, size_in, size_mid) < 1:
        raise ValueError(
            f"expected at least 1 of each, got {layers=}, {size_in=}, {size_mid=} (layers, elements)"
        )

    def of(segment: int) -> tuple[int, int]:
        count = ceil_div(layers, segment)
        return kept_at_most(count, layers, size_in, size_mid, EXACT), count

    near = min(max(isqrt(layers * size_in // size_mid), 1), layers)
    least = of(near)
    for outwards in (range(near - 1, 0, -1), range(near + 1, layers + 1)):
        for segment in outwards:
            if kept_at_most(Fraction(layers, segment), layers, size_in, size_mid) > least[0]:
                break
            least = min(least, of(segment))
    return least[1]
