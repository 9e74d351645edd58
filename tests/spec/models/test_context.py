"""Attention block by block beside plain attention; and broken rules that the proofs must notice."""

from fractions import Fraction
from functools import reduce
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import proofs.models.context as context
import proofs.models.online_softmax as online
from proofs.trusted.kernel import Kernel, KernelError
from spec.devices.collectives import all_gather_sends
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

WHOLE = Reals(lambda score: Fraction(2) ** score, max)  # exact: powers of two, of whole scores


def attention(scores, values):
    """Plain softmax attention of one query: scores [keys], values [keys, head]."""
    weights = np.exp(scores - scores.max())
    return weights @ values / weights.sum()


@st.composite
def keys(draw, scores, at_least=1):
    """Scores, and each key's block, of a few blocks that come in any order; blocks may be empty."""
    drawn = draw(st.lists(scores, min_size=at_least, max_size=24))
    blocks = draw(st.integers(1, 6))
    owners = [draw(st.integers(0, blocks - 1)) for _ in drawn]
    return drawn, owners, draw(st.permutations(range(blocks)))


def merged(scores, values, owners, order, reals):
    """Blocks' partial results, merged in the order given."""
    found = []
    for block in order:
        mine = [i for i, owner in enumerate(owners) if owner == block]
        found.append(of_block([scores[i] for i in mine], [values[i] for i in mine], reals))
    return reduce(lambda a, b: merge(a, b, reals), found)


floats = st.floats(-100, 100)
seeds = st.integers(0, 99)


@given(keys(floats), seeds)
def test_blocks_in_any_order_give_the_attention_over_all_keys(cut, seed):
    scores, owners, order = cut
    values = np.random.default_rng(seed).normal(size=(len(scores), 3))
    plain = attention(np.array(scores), values)
    found = merged(scores, values, owners, order, FLOATS).output
    assert np.abs(found - plain).max() <= 1e-12 * np.abs(values).max()


@given(keys(st.integers(-30, 30)), seeds)
def test_in_exact_arithmetic_they_are_equal(cut, seed):
    scores, owners, order = cut
    visited = [block for block in order if block in owners]  # whole scores know no lowest number
    values = np.random.default_rng(seed).integers(-9, 9, len(scores)).tolist()
    weights = [Fraction(2) ** x for x in scores]
    whole = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
    found = merged(scores, values, owners, visited, WHOLE)
    assert found.output == whole
    assert found == of_block(scores, values, WHOLE)


@given(keys(floats), st.data())
def test_a_ring_gives_every_device_the_attention_of_the_keys_its_query_may_see(cut, data):
    scores, owners, order = cut
    n = len(order)
    values = np.random.default_rng(0).normal(size=(len(scores), 2))
    seen = data.draw(st.integers(1, len(scores)))  # causal: hidden keys hide blocks whole
    plain = attention(np.array(scores[:seen]), values[:seen])
    for device in range(n):
        turns = [all_gather_sends(device, step) % n for step in range(n)]
        found = merged(scores[:seen], values, owners[:seen], turns, FLOATS).output
        assert np.abs(found - plain).max() <= 1e-12 * np.abs(values).max()


partials = st.builds(
    PartialResult, st.integers(-9, 9), st.fractions(0, 9), st.fractions(min_value=-9, max_value=9)
)


@given(partials, partials, partials)
def test_merging_is_associative_and_commutative_with_an_identity(p, q, u):
    def both(a, b):
        return merge(a, b, WHOLE)

    assert both(both(p, q), u) == both(p, both(q, u))
    assert both(p, q) == both(q, p)
    assert both(no_keys(-9), p) == p


@given(st.floats(-1e300, 1e300), st.floats(0, 9), st.floats(-9, 9))
def test_floats_have_the_identity_without_overflow(reference, total, weighted):
    some = PartialResult(reference, total, weighted)
    assert merge(no_keys(), some, FLOATS) == merge(some, no_keys(), FLOATS) == some
    assert merge(no_keys(), no_keys(), FLOATS) == no_keys() == of_block([], [], FLOATS)


@given(st.lists(floats, min_size=1, max_size=9), st.floats(-500, 500))
def test_the_reference_does_not_matter(scores, reference):
    values = np.arange(len(scores)) - 2.0
    weights = np.array([exponential(x, reference, FLOATS) for x in scores])
    plain = attention(np.array(scores), values)
    assert abs(weights @ values / weights.sum() - plain) <= 1e-11 * (len(scores) + 2)


@given(keys(st.floats(-5, 5), at_least=2), seeds)
def test_gradients_of_blocks_from_the_saved_log_sum_exp_are_those_of_the_whole(cut, seed):
    _, owners, order = cut
    rng = np.random.default_rng(seed)
    query, out_bar = rng.normal(size=4), rng.normal(size=3)
    key, value = rng.normal(size=(len(owners), 4)), rng.normal(size=(len(owners), 3))
    forward = merged(list(key @ query), value, owners, order, FLOATS)
    saved = forward.reference + log(forward.total)
    dq, dk, dv = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
    for block in order:  # each device with the keys that it has now
        for j in (j for j, owner in enumerate(owners) if owner == block):
            p = exponential(key[j] @ query, saved, FLOATS)
            ds = score_gradient(p, out_bar @ value[j], out_bar @ forward.output)
            dq, dk[j], dv[j] = dq + ds * key[j], ds * query, p * out_bar

    def loss(q, k, v):
        return attention(k @ q, v) @ out_bar

    for i, (at, gradient) in enumerate(((query, dq), (key, dk), (value, dv))):
        change = rng.normal(size=at.shape)
        moved = [
            loss(
                *(x + sign * 1e-5 * change if n == i else x for n, x in enumerate((query, key, value)))
            )
            for sign in (1, -1)
        ]
        assert abs((moved[0] - moved[1]) / 2e-5 - (gradient * change).sum()) <= 1e-6


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=9), st.integers(-9, 9), seeds)
def test_a_score_changes_the_output_by_its_gradient_exactly(scores, changed, seed):
    values = np.random.default_rng(seed).integers(-9, 9, len(scores)).tolist()
    before, after = (of_block([x, *scores[1:]], values, WHOLE) for x in (scores[0], changed))
    total, now = (Fraction(2) ** x.reference * x.total for x in (before, after))
    share = Fraction(2) ** scores[0] / total
    change = Fraction(2) ** (changed - scores[0]) - 1
    gradient = score_gradient(share, values[0], before.output)
    assert (after.output - before.output) * now / total == change * gradient


WHOLE_ATTENTION = context.blocks_in_any_order_give_the_whole_attention
LAWS = online.merging_is_associative_and_commutative


@pytest.mark.parametrize(
    "claim", [WHOLE_ATTENTION, LAWS, online.blocks_cannot_simply_be_added], ids=lambda f: f.__name__
)
def test_the_proofs_hold(claim):
    assert claim(Kernel("F"))


def without_rescaling(first, second, reals):
    reference = reals.maximum(first.reference, second.reference)
    return PartialResult(
        reference, first.total + second.total, first.weighted_sum + second.weighted_sum
    )


def rescaled_once(first, second, reals):
    """The second is taken to be at the larger reference."""
    reference = reals.maximum(first.reference, second.reference)
    scale = exponential(first.reference, reference, reals)
    return PartialResult(
        reference, first.total * scale + second.total, first.weighted_sum * scale + second.weighted_sum
    )


def only_totals_rescaled(first, second, reals):
    return merge(first, second, reals)._replace(weighted_sum=first.weighted_sum + second.weighted_sum)


@pytest.mark.parametrize(
    ("rule", "broken", "claims"),
    [
        ("merge", without_rescaling, [WHOLE_ATTENTION]),
        ("merge", rescaled_once, [WHOLE_ATTENTION, LAWS]),
        ("merge", only_totals_rescaled, [WHOLE_ATTENTION]),
        ("merge", lambda first, second, reals: second, [WHOLE_ATTENTION, LAWS]),
        ("exponential", lambda x, m, reals: reals.exp(m - x), [WHOLE_ATTENTION, LAWS]),
        ("exponential", lambda x, m, reals: reals.exp(x), [WHOLE_ATTENTION, LAWS]),
        ("no_keys", lambda m=0: PartialResult(m, 1, 0), [WHOLE_ATTENTION, LAWS]),
        ("score_gradient", lambda p, with_value, with_output: p * with_value, [WHOLE_ATTENTION]),
        ("score_gradient", lambda p, with_value, with_output: p * with_output, [WHOLE_ATTENTION]),
        ("score_gradient", lambda p, v, o: p * (1 - p) * (v - o), [WHOLE_ATTENTION]),
        ("merge_outputs", lambda o, l, p, m, both, reals: o + p, [WHOLE_ATTENTION]),
        ("merge_outputs", lambda o, l, p, m, both, reals: (o + p) / 2, [WHOLE_ATTENTION]),
        ("all_gather_sends", lambda d, s: d + s, [WHOLE_ATTENTION]),
        ("all_gather_sends", lambda d, s: d - 2 * s, [WHOLE_ATTENTION]),
    ],
)
def test_a_broken_rule_is_noticed(rule, broken, claims, monkeypatch):
    for module in (context, online):
        if hasattr(module, rule):
            monkeypatch.setattr(module, rule, broken)
    monkeypatch.setattr("proofs.trusted.oracle.RESOURCE_LIMIT", 1_000_000)
    for claim in claims:
        with pytest.raises(KernelError, match="not proved"):
            claim(Kernel("F"))


def test_blocks_whose_references_are_equal_may_be_added(monkeypatch):
    monkeypatch.setattr(online, "of_block", lambda x, v, reals: of_block([0] * len(x), v, reals))
    with pytest.raises(KernelError, match="sums_without_rescaling: no counterexample"):
        online.blocks_cannot_simply_be_added(Kernel("F5"))
