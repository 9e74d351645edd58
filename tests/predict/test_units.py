"""Layers that are alike fill the same buckets as if each were listed."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.units import buckets

SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=4)


@given(st.lists(st.tuples(SIZES, st.integers(1, 300)), min_size=1, max_size=3), st.data())
def test_buckets_of_layers_that_are_alike_are_those_of_the_layers_one_by_one(runs, data):
    least = data.draw(st.integers(1, 400)), data.draw(st.integers(1, 400))
    alone = [(sizes, 1) for sizes, times in runs for _ in range(times)]
    one_by_one = buckets([([size for of, _ in alone for size in of], 1)], least, 2)
    found = Counter[int]()
    for size, times in buckets(runs, least, 2):
        found[size] += times
    assert found == Counter(size for size, _ in one_by_one)
