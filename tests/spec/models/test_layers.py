"""Layers by their numbers: from the first or from the last on, each one of some or of all others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from spec.models.layers import EVERY_LAYER, ROOT, HeldUnits, Layers, has_each_once
from spec.models.opaque import MODEL, Opaque
from spec.models.transformer import DENSE, EMBEDDING, HEAD, Transformer

LAYERS = st.builds(Layers, st.frozensets(st.integers(-9, 9)), st.booleans())
KINDS = st.sampled_from(
    [(), (frozenset(), frozenset({DENSE})), (frozenset({DENSE}), *[frozenset()] * 2)]
)


@given(LAYERS, st.integers(1, 7))
def test_a_layer_is_one_of_some_by_its_number_from_the_first_or_from_the_last_on(some, count):
    every = [*range(count)]
    said = {every[number] for number in some.numbers if -count <= number < count}
    for number in every:
        assert some.has(number, count) is ((number in said) is not some.others)
        assert some.rest.has(number, count) is not some.has(number, count)


@given(LAYERS, st.integers(1, 7), KINDS, st.data())
def test_some_layers_from_one_to_another_are_counted_as_they_are_listed(some, count, kinds, data):
    first = data.draw(st.integers(0, count))
    after = data.draw(st.integers(first, count))
    model = Transformer(count, 16, 4, 4, 4, 32, 10, kinds=kinds)
    listed = Counter()
    for number in range(first, after):
        listed += model.layers_of(number, number + 1) if some.has(number, count) else Counter()
    assert +some.counted(model, first, after) == listed


@given(st.lists(LAYERS, max_size=3), st.integers(1, 12))
def test_layers_that_have_each_once_have_each_once(some, count):
    times = {sum(each.has(number, count) for each in some) for number in range(count)}
    assert not has_each_once(some) or times == {1}
    assert has_each_once([EVERY_LAYER])
    assert all(has_each_once([each, each.rest]) for each in some)


@given(LAYERS)
def test_where_no_layers_are_told_apart_none_are_some(some):
    assert not some.counted(Opaque(8), 0, 0)


def test_a_root_is_all_that_is_no_layer():
    assert [HeldUnits(frozenset({ROOT})).has(part) for part in (EMBEDDING, HEAD)] == [True, True]
    assert [HeldUnits(frozenset({HEAD})).has(part) for part in (EMBEDDING, HEAD)] == [False, True]
    assert [HeldUnits().has(part) for part in (EMBEDDING, HEAD)] == [False, False]
    assert not any(HeldUnits().layers.has(number, 3) for number in range(3))
    assert not HeldUnits(frozenset({ROOT})).has(MODEL)  # of which nothing is known


@given(LAYERS)
def test_numbers_of_layers_are_said_all_of_them_and_in_few_words(some):
    words, said = str(some).removeprefix("all").removeprefix(" but "), []
    for run in filter(None, words.split(", ") if some.numbers else ()):
        first, *last = map(int, run.split(" to "))
        said += range(first, (last or [first])[0] + 1)
        assert not last or last[0] - first >= 2
    assert said == sorted(some.numbers)


def test_the_last_layer_and_the_first_do_not_follow_each_other():
    assert str(Layers(frozenset(range(-3, 70)), others=False)) == "-3 to -1, 0 to 69"


def test_layers_are_said_to_be_all_but_some_or_those_of_some_numbers():
    last = Layers(frozenset({-1}))
    assert (last.said, last.rest.said) == ("all but -1", "those numbered -1")
