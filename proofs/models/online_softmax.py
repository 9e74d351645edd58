"""F4, F5: partial results of attention merge in any order, and only when they are rescaled.

`exp` is any function that turns sums into products and is positive. Values are one component of the
keys' value vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import exp, isclose
from typing import Any

from proofs.claim import claim
from proofs.trusted.kernel import Bool, Kernel, KernelError, Term, Theorem
from proofs.trusted.terms import And, If, RealSort, RealVal
from spec.assumptions import EXPONENTIAL
from spec.models.online_softmax import (
    FLOATS,
    PartialResult,
    Reals,
    exponential,
    merge,
    no_keys,
    of_block,
    score_gradient,
)

REAL = RealSort()


@dataclass(frozen=True)
class Softmax:
    """exp and what follows from its laws, for any score x and references m and r."""

    k: Kernel
    reals: Reals
    larger: Theorem  # what the larger of m and r is
    rescales: Theorem  # for any size a of what is rescaled
    law: Theorem  # of exp, for any a and b
    x: Term
    m: Term

    @cached_property
    def positive(self) -> Theorem:
        """exp(x - m) > 0."""
        goal = exponential(self.x, self.m, self.reals) > 0
        return self.k.prove("weights_are_positive", goal, uses=[self.law.at(a=self.x - self.m)])

    @cached_property
    def one(self) -> Theorem:
        """exp(x - x) = 1."""
        goal, zero = exponential(self.x, self.x, self.reals) == 1, RealVal(0)
        return self.k.prove("the_reference_has_weight_one", goal, uses=[self.law.at(a=zero, b=zero)])

    def rescaled(self, size: Term, score: Term, m: Term, r: Term) -> Theorem:
        """size exp(score - m) exp(m - r) = size exp(score - r)."""
        return self.rescales.at(a=size, x=score, m=m, r=r)


def softmax(k: Kernel) -> Softmax:
    """Declare exp and the larger of two references, with their laws."""
    a, b, x, m, r = k.reals("a b x m r")
    raised = k.function("exponential", REAL, REAL)
    larger, largest = k.define("larger", [m, r], If(m >= r, m, r))
    reals = Reals(raised, larger)
    law = k.axiom("exp_of_a_sum_is_a_product", EXPONENTIAL, raised, a, b)
    rescales = k.prove(
        "references_may_change",
        a * exponential(x, m, reals) * exponential(m, r, reals) == a * exponential(x, r, reals),
        uses=[law.at(a=x - m, b=m - r)],
    )
    return Softmax(k, reals, largest, rescales, law, x, m)


def equal(one: PartialResult, other: PartialResult) -> Bool:
    """Field by field."""
    return And(*(a == b for a, b in zip(one, other, strict=True)))


@claim("F4")
def merging_is_associative_and_commutative(k: Kernel) -> tuple[Theorem, ...]:
    """Merging partial results is associative and commutative, and no keys are its identity.

    (Claim F4; arXiv 1805.02867, section 3.1)
    """
    s = softmax(k)
    named = {i: PartialResult(*k.reals(f"m_{i} l_{i} o_{i}")) for i in "pqu"}
    p, q, u = named.values()

    def merged(one: PartialResult, other: PartialResult, reference: Any = None) -> PartialResult:
        """Merged, at any reference that is given in place of the larger one."""
        chosen = s.reals if reference is None else Reals(s.reals.exp, lambda *_: reference)
        return merge(one, other, chosen)

    def larger(one: PartialResult, other: PartialResult) -> Theorem:
        return s.larger.at(m=one.reference, r=other.reference)

    commutes = k.prove(
        "merge_is_commutative", equal(merged(p, q), merged(q, p)), uses=[larger(p, q), larger(q, p)]
    )
    first, last = merged(p, q), merged(q, u)
    one_way, other_way = merged(first, u), merged(p, last)
    same_reference = k.prove(
        "the_largest_of_three",
        one_way.reference == other_way.reference,
        uses=[larger(p, q), larger(q, u), larger(first, u), larger(p, last)],
    )
    # at any references, on the way and in the end
    way, other, end, other_end = k.reals("way other end other_end")
    whole = sum(each.total * exponential(each.reference, end, s.reals) for each in (p, q, u))

    def rescaled(name: str, total: Any, *two: PartialResult) -> Theorem:
        uses = [s.rescaled(each.total, each.reference, way, end) for each in two]
        return k.prove(name, total == whole, uses=uses)

    def first_two(way: Any, end: Any) -> Any:
        return merged(merged(p, q, way), u, end).total

    def last_two(way: Any, end: Any) -> Any:
        return merged(p, merged(q, u, way), end).total

    before = rescaled("the_first_two_before", first_two(way, end), p, q)
    after = rescaled("the_last_two_before", last_two(way, end), q, u)
    totals = k.prove(
        "rescaling_on_the_way_changes_nothing",
        first_two(way, end) == last_two(other, other_end),
        given=[end == other_end],
        uses=[before, after.at(way=other, end=other_end)],
    ).at(
        way=first.reference, other=last.reference, end=one_way.reference, other_end=other_way.reference
    )
    components = {f"l_{i}": each.weighted_sum for i, each in named.items()}
    associates = k.prove(
        "merge_is_associative",
        equal(one_way, other_way),
        uses=[same_reference, totals, totals.at(**components)],
    )
    _require_attention(k.claim)
    lowest = k.reals("lowest")
    none = no_keys(lowest)
    identity = k.prove(
        "nothing_is_the_identity",
        equal(merged(none, p), p),
        given=[lowest <= p.reference],
        uses=[larger(none, p), s.one.at(x=p.reference)],
    )
    return associates, commutes, identity


def _require_attention(claim: str) -> None:
    """Raise KernelError unless of numbers, too, blocks merge to the mean of values, weighed by exp."""
    scores, values = [3.0, -1.0, 0.5, 2.0], [0.5, 7.0, -2.0, 1.0]
    weights = [exp(score) for score in scores]
    mean = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
    for start, far in product(range(len(scores) + 1), (0, -1e6, 1000)):  # exp of either is no number
        moved = [score + far for score in scores]
        first = of_block(moved[:start], values[:start], FLOATS)
        last = of_block(moved[start:], values[start:], FLOATS)
        both = merge(first, last, FLOATS)
        if not both.total or not isclose(both.output, mean):
            raise KernelError(f"{claim}: blocks of keys, merged, give no mean of their values")


def backward_from_the_log_sum_exp(k: Kernel) -> tuple[Theorem, ...]:
    """From the log-sum-exp each block finds its own keys' softmax again, and its scores' gradients.

    A score that goes from x to y changes the loss by (exp(y - x) - 1) score_gradient, over the ratio in
    which that makes the sum of all weights grow: to first order, by (y - x) score_gradient.
    """
    s = softmax(k)
    x, y, lse, m, l = k.reals("score changed lse m_saved l_saved")
    saved = exponential(lse, m, s.reals) == l
    one = RealVal(1)
    rescaled, positive = s.rescaled(one, x, lse, m), s.positive.at(x=lse, m=m)
    p, more = exponential(x, lse, s.reals), exponential(y, x, s.reals) - 1
    found = k.prove(
        "weights_at_the_log_sum_exp_are_the_softmax",
        p == exponential(x, m, s.reals) / l,
        given=[saved],
        uses=[rescaled, positive],
    )
    grown = k.prove(
        "a_score_that_changes_adds_its_share",
        exponential(y, m, s.reals) - exponential(x, m, s.reals) == l * p * more,
        given=[saved],
        uses=[s.rescaled(one, y, x, m), rescaled],
    )
    value, weighted, added = k.reals("value weighted added")
    before, after = PartialResult(m, l, weighted), PartialResult(m, l + added, weighted + added * value)
    changed = k.prove(
        "the_output_changes_by_its_gradient",
        (after.output - before.output) * after.total == score_gradient(added, value, before.output),
        given=[before.total > 0, after.total > 0],
    )
    # as that of the loss: `slope` times that of this component, and those of others
    scale, share, slope, v, o, other_v, other_o = k.reals("scale share slope v o other_v other_o")
    linear = k.prove(
        "gradients_are_linear_in_shares_and_components",
        score_gradient(scale * share, slope * v + other_v, slope * o + other_o)
        == scale * (slope * score_gradient(share, v, o) + score_gradient(share, other_v, other_o)),
    )
    return found, grown, changed, linear


@claim("F5")
def blocks_cannot_simply_be_added(k: Kernel) -> tuple[Theorem, ...]:
    """Blocks' sums may be added as they are, at references of their own; or their outputs averaged.

    Refuted with two blocks. The stand-in for exp is powers of a base, on whole scores. (Claim F5)
    """

    def powers(base: Any) -> Reals:
        return Reals(lambda power: {-1: 1 / base, 0: base / base, 1: base}[power], max)

    def added(base: Any, v0: Any, v1: Any) -> Any:
        reals = powers(base)
        one, other = of_block([0], [v0], reals), of_block([1], [v1], reals)
        both = PartialResult(1, one.total + other.total, one.weighted_sum + other.weighted_sum)
        return both.output == of_block([0, 1], [v0, v1], reals).output

    def averaged(base: Any, v0: Any, v1: Any) -> Any:
        reals = powers(base)
        one, other = of_block([0], [v0], reals), of_block([0, 0], [v1, v1], reals)
        return (one.output + other.output) / 2 == of_block([0, 0, 0], [v0, v1, v1], reals).output

    def refuted(words: str, claim: Callable[..., Any]) -> Theorem:
        part = k.part(words)
        base, v0, v1 = part.reals("base v0 v1")

        def replay(**values: Fraction) -> bool:
            return bool(claim(**values))

        return part.refute(words, claim(base, v0, v1), [base, v0, v1], replay, given=[base > 0])

    return refuted("sums_without_rescaling", added), refuted("averages_of_outputs", averaged)
