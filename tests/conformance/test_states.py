"""PyTorch's units: rows, buckets and owners have every element once."""

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from conformance.cases import Case, Mlp, on
from conformance.states import Slices, States

SHAPES = st.lists(
    st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple), min_size=1, max_size=6
).map(tuple)
RANKS = st.integers(1, 9)


def states(shapes, ranks, bucket=0):
    case = Case("ddp", Mlp((1, 1)), on(batch=ranks), bucket=bucket)
    return States(case, {f"layers.{i}.weight": shape for i, shape in enumerate(shapes)})


@given(SHAPES, RANKS)
def test_rows_of_all_ranks_are_the_weights(shapes, ranks):
    own = [Slices(shapes, ranks, rank).shard(0, 0, ranks) for rank in range(ranks)]
    assert sum(own) == sum(map(prod, shapes))


@given(SHAPES, RANKS)
def test_no_rank_has_more_rows_than_are_padded_to(shapes, ranks):
    most = Slices(shapes, ranks).shard(0, 0, ranks)
    assert all(Slices(shapes, ranks, rank).shard(0, 0, ranks) <= most for rank in range(ranks))


@given(SHAPES, RANKS, st.integers(1, 200))
def test_buckets_have_every_element_and_but_for_the_last_their_bytes(shapes, ranks, bucket):
    buckets = states(shapes, ranks, bucket).buckets
    assert sum(buckets) == sum(map(prod, shapes))
    assert all(4 * size >= bucket for size in buckets[:-1])


@given(SHAPES, RANKS)
def test_each_weight_has_one_owner(shapes, ranks):
    found = states(shapes, ranks)
    owned = [name for names in found.owned for name in names]
    assert sorted(owned) == sorted(found.shapes)
