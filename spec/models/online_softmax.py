"""Attention over keys that come block by block: the online softmax.

A query's attention is the mean of the keys' values, weighted by exp(score). Of a block of keys it is
enough to know a reference m (the largest score), l = the sum of exp(x - m) and o = the sum of
exp(x - m) * value; two such partial results merge into that of both blocks. (M. Milakov and
N. Gimelshein, arXiv 1805.02867; context parallelism: H. Liu et al., ring attention, arXiv 2310.01889)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from spec.numbers.arithmetic import Number


@dataclass(frozen=True)
class Reals:
    """What the rules need of real numbers beyond + - * /."""

    exp: Callable[[Number], Number]
    maximum: Callable[[Number, Number], Number]


FLOATS = Reals(math.exp, max)


class PartialResult(NamedTuple):
    """What a query's attention needs to know of a block of keys."""

    reference: Number  # m: any number will do; the largest score, and no exponential overflows
    total: Number  # l: the sum of the keys' weights
    weighted_sum: Number  # o: the sum of weight * value, a number or a vector of the head's size

    @property
    def output(self) -> Number:
        """The attention over the block: there is none without keys."""
        return self.weighted_sum / self.total


def no_keys(reference: Number = -sys.float_info.max) -> PartialResult:
    """The partial result of no keys: a block that is empty, or hidden from the query by the mask."""
    return PartialResult(reference, 0, 0)


def exponential(score: Number, reference: Number, reals: Reals) -> Number:
    """exp(x - m). With the log of the sum of all exp(x) as reference, it is the softmax itself."""
    return reals.exp(score - reference)


def of_block(scores: Sequence[Number], values: Sequence[Number], reals: Reals) -> PartialResult:
    """The partial result of a block's visible keys: their scores and, alike, their values."""
    none = no_keys()
    reference = reduce(reals.maximum, scores, none.reference)
    weights = [exponential(score, reference, reals) for score in scores]
    weighted = sum((w * v for w, v in zip(weights, values, strict=True)), none.weighted_sum)
    return PartialResult(reference, sum(weights, none.total), weighted)


def merge(first: PartialResult, second: PartialResult, reals: Reals) -> PartialResult:
    """The partial result of both blocks: rescaled to the larger reference, and added."""
    reference = reals.maximum(first.reference, second.reference)
    one, other = (exponential(p.reference, reference, reals) for p in (first, second))
    return PartialResult(
        reference,
        first.total * one + second.total * other,
        first.weighted_sum * one + second.weighted_sum * other,
    )


def merge_outputs(
    output: Number,
    log_total: Number,
    other: Number,
    other_log_total: Number,
    both: Number,
    reals: Reals,
) -> Number:
    """The output over both of two blocks: each one's, weighed by its share, from log-sum-exps."""
    share, other_share = exponential(log_total, both, reals), exponential(other_log_total, both, reals)
    return output * share + other * other_share


def score_gradient(probability: Number, with_value: Number, with_output: Number) -> Number:
    """The loss's derivative by a score, from p = weight(x, log-sum-exp) of that key.

    `with_value` and `with_output`: the products of the output's gradient with the key's value and
    with the output. (T. Dao, arXiv 2307.08691, section 2.3)
    """
    return probability * (with_value - with_output)
