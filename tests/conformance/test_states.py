"""Units as systems have them: rows, buckets and owners have every element once."""

from dataclasses import replace
from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.units import buckets, dealt, weights_of_shapes
from spec.costs.memory import Sizes, Unit
from spec.costs.model_costs import elements
from spec.devices.layouts import along
from spec.models.profiles import Padding
from spec.models.states import POLICIES, State
from spec.models.values import Value

SHAPES = st.lists(
    st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple), min_size=1, max_size=6
).map(tuple)
RANKS = st.integers(1, 9)


def weights(shapes, padding=Padding.ELEMENT):
    return weights_of_shapes((shapes,), padding)


def sizes(shapes, ranks):
    (of,) = weights(shapes, Padding.ROW)
    mesh, psi = {"shard": ranks}, sum(map(prod, shapes))
    found = Sizes(psi, mesh, POLICIES["fp32-adam"], cut=("shard",), units=(Unit(of.vectors),))
    return replace(found, unpadded=frozenset({State.OPTIMIZER}))


def own(found, rank):
    return replace(found, device={"shard": rank}).at_rest(State.OPTIMIZER, ("shard",))


@given(SHAPES, RANKS)
def test_rows_of_all_ranks_are_the_weights(shapes, ranks):
    found = sizes(shapes, ranks)
    assert sum(own(found, rank) for rank in range(ranks)) == sum(map(prod, shapes))


@given(SHAPES, RANKS)
def test_no_rank_has_more_rows_than_are_padded_to(shapes, ranks):
    found = sizes(shapes, ranks)
    most = found.at_rest(State.PARAMETERS, ("shard",))
    assert all(own(found, rank) <= most for rank in range(ranks))
    assert own(found, 0) == most


@given(SHAPES, st.integers(1, 200), st.integers(1, 200))
def test_buckets_have_every_element_and_but_for_the_last_their_bytes(shapes, first, other):
    found = [size for size, _ in buckets([([*map(prod, shapes)], 1)], (first, other), 4)]
    assert sum(found) == sum(map(prod, shapes))
    assert all(4 * size >= (first if not i else other) for i, size in enumerate(found[:-1]))


@given(SHAPES, RANKS)
def test_each_weight_has_one_owner(shapes, ranks):
    (of,) = dealt(weights(shapes), ranks)
    assert [vector.rows for vector in of.vectors] == [*map(prod, shapes)]
    own = [0] * ranks
    for vector in of.vectors:
        own[vector.owner] += vector.rows
    smallest = min(of.vectors, key=lambda v: v.rows).rows if len(shapes) > ranks else max(own)
    assert max(own) - min(own) <= max(smallest, *(vector.rows for vector in of.vectors))


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 4))
def test_own_words_of_all_ranks_are_the_words(words, outer, inner):
    value, mesh = Value("word_weight", ("v", "h")), {"outer": outer, "inner": inner}
    lies, indices = dict.fromkeys(mesh, along("v")), {"v": words, "h": 3}
    most = elements(value, lies, indices, mesh)
    places = [dict(zip(mesh, at, strict=True)) for at in product(range(outer), range(inner))]
    own = [elements(value, lies, indices, mesh, place) for place in places]
    assert sum(own) == 3 * words
    assert own == sorted(own, reverse=True)
    assert own[0] == most
