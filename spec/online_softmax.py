"""Attention over keys that come block by block: the online softmax.

One query's attention is the mean of the keys' values, weighted by exp(score). Of a block of keys it is
enough to keep a reference m (its largest score), l = the sum of exp(x - m) and o = the sum of
exp(x - m) * value; two such partial results merge into that of both blocks. (M. Milakov and
N. Gimelshein, arXiv 1805.02867; ring attention: H. Liu et al., arXiv 2310.01889)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import exp
from typing import Any, NamedTuple

from spec.arithmetic import Number

Condition = Any  # bool or a Z3 term


@dataclass(frozen=True)
class Reals:
    """What the rules need of real numbers beyond + - * /."""

    exp: Callable[[Number], Number]
    maximum: Callable[[Number, Number], Number]
    select: Callable[[Condition, Any, Any], Any]  # (condition, then, otherwise)


FLOATS = Reals(exp, max, lambda condition, then, otherwise: then if condition else otherwise)


class Partial(NamedTuple):
    """What one query's attention needs of a block of keys."""

    some: Condition  # whether the query sees any key of the block
    reference: Number  # m, at least every score, so that no exponential overflows
    total: Number  # l: the sum of the keys' weights
    weighted: Number  # o: the sum of weight * value; a number or a vector over the head dimension

    @property
    def output(self) -> Number:
        """The attention over the block; there is none without keys."""
        return self.weighted / self.total


NOTHING = Partial(False, 0, 0, 0)  # no key, or all of them masked


def weight(score: Number, reference: Number, reals: Reals) -> Number:
    """exp(x - m). With the log-sum-exp of all scores as reference it is the softmax itself."""
    return reals.exp(score - reference)


def of_key(score: Number, value: Number) -> Partial:
    """The partial result of one visible key."""
    return Partial(True, score, 1, value)


def merge(first: Partial, second: Partial, reals: Reals) -> Partial:
    """The partial result of both blocks: rescaled to the larger reference, and added."""
    reference = reals.maximum(first.reference, second.reference)
    scale, other_scale = (weight(p.reference, reference, reals) for p in (first, second))
    both = Partial(
        True,
        reference,
        first.total * scale + second.total * other_scale,
        first.weighted * scale + second.weighted * other_scale,
    )
    return _select(first.some, _select(second.some, both, first, reals), second, reals)


def _select(condition: Condition, then: Partial, otherwise: Partial, reals: Reals) -> Partial:
    return Partial(*(reals.select(condition, a, b) for a, b in zip(then, otherwise, strict=True)))


def of_block(keys: Iterable[tuple[Number, Number]], reals: Reals) -> Partial:
    """The partial result of a block's visible keys, each a (score, value), all at once."""
    ...
