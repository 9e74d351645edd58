"""The best number of checkpoints beside trying all, and broken rules that its proof must notice."""

from fractions import Fraction
from itertools import product
from math import isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proofs.pipelines.checkpoints as proof
from proofs.trusted.kernel import Kernel, KernelError
from spec.numbers.arithmetic import EXACT
from spec.pipelines.checkpoints import best, kept_at_most

layers_ = st.integers(1, 300)
sizes = st.integers(1, 10**12)


def of_all(layers, size_in, size_mid):
    """The best number, by trying all."""
    return min(
        range(1, layers + 1), key=lambda count: kept_at_most(count, layers, size_in, size_mid, EXACT)
    )


@given(layers_, sizes, sizes)
def test_the_best_number_is_that_of_trying_all(layers, size_in, size_mid):
    assert best(layers, size_in, size_mid) == of_all(layers, size_in, size_mid)


def test_the_best_number_is_that_of_trying_all_where_sizes_are_small():
    for case in product(range(1, 25), range(1, 9), range(1, 10)):
        assert best(*case) == of_all(*case), case


@given(st.integers(1, 10**15), st.integers(1, 10**4), st.integers(1, 10**4))
def test_the_best_number_keeps_no_more_than_its_neighbours_and_those_next_to_the_root(
    layers, size_in, size_mid
):
    found = best(layers, size_in, size_mid)
    root = isqrt(layers * size_mid // size_in)
    others = {found - 1, found + 1, root, root + 1}
    least = kept_at_most(found, layers, size_in, size_mid, EXACT)
    assert all(
        kept_at_most(n, layers, size_in, size_mid, EXACT) >= least for n in others if 1 <= n <= layers
    )


@pytest.mark.parametrize(
    ("layers", "size_in", "size_mid", "expected"),
    [
        (4, 1, 100, 4),  # the root is 20
        (4, 100, 1, 1),  # the root is 1/5
        (4, 1, 4, 4),
        (4, 4, 1, 1),
        (1, 1, 1, 1),
        (6, 1, 1, 2),  # between 2 and 3, which keep as much
    ],
)
def test_the_best_number_is_between_one_and_all_wherever_the_root_is(
    layers, size_in, size_mid, expected
):
    counts = range(1, layers + 1)
    assert min(counts, key=lambda n: kept_at_most(n, layers, size_in, size_mid)) == expected
    assert best(layers, size_in, size_mid) == expected


@given(layers_, sizes, sizes)
def test_of_equal_segments_the_best_number_is_next_to_the_root_or_at_an_end(layers, size_in, size_mid):
    root = isqrt(layers * size_mid // size_in)
    near = {min(max(n, 1), layers) for n in (root, root + 1)}
    least = min(kept_at_most(Fraction(n), layers, size_in, size_mid) for n in range(1, layers + 1))
    assert min(kept_at_most(Fraction(n), layers, size_in, size_mid) for n in near) == least


@given(layers_, layers_)
def test_where_a_whole_root_divides_the_layers_it_is_the_best_number(count, length):
    assert best(count * length, length, count) == count


@given(layers_, layers_, sizes, sizes)
def test_layers_cut_into_equal_segments_keep_what_the_closed_form_says(
    count, length, size_in, size_mid
):
    layers = count * length
    exactly = kept_at_most(count, layers, size_in, size_mid, EXACT)
    assert (
        exactly == kept_at_most(count, layers, size_in, size_mid) == count * size_in + length * size_mid
    )


@given(layers_, layers_, sizes, sizes)
def test_unequal_segments_keep_at_most_one_layer_more(count, layers, size_in, size_mid):
    more = kept_at_most(count, layers, size_in, size_mid, EXACT) - kept_at_most(
        count, layers, size_in, size_mid
    )
    assert 0 <= more < size_mid


@pytest.mark.parametrize("given_", [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_sizes_that_are_none_are_refused(given_):
    with pytest.raises(ValueError, match="at least 1"):
        best(*given_)


def test_the_proof_holds():
    assert proof.least_is_kept_at_the_square_root(Kernel("A5"))


@pytest.mark.parametrize(
    "broken",
    [
        lambda c, layers, size_in, size_mid, _: c * size_in + layers * size_mid,
        lambda c, layers, size_in, size_mid, _: size_in / c + c * size_mid / layers,
        lambda c, layers, size_in, size_mid, _: c * size_mid + layers / c * size_in,
        lambda c, layers, size_in, size_mid, _: 2 * c * size_in + layers / c * size_mid,
    ],
    ids=["all layers are kept", "upside down", "the sizes change places", "inputs are kept twice"],
)
def test_a_broken_rule_is_noticed(broken, monkeypatch):
    monkeypatch.setattr(proof, "kept_at_most", broken)
    monkeypatch.setattr("proofs.trusted.oracle.RESOURCE_LIMIT", 1_000_000)
    with pytest.raises(KernelError, match="not proved"):
        proof.least_is_kept_at_the_square_root(Kernel("A5"))


@given(layers_, st.fractions(min_value=Fraction(1, 9), max_value=9))
def test_sizes_may_be_in_any_unit(layers, unit):
    whole = kept_at_most(1, layers, 6, 35)
    assert kept_at_most(1, layers, 6 * unit, 35 * unit) == whole * unit
