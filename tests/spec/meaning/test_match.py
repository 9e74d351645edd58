"""The comparator: which copies are not the single device's, and which of them is first."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from psem_model.simulator import Arithmetic, Floating
from psem_model.text.figures import divergence_json, divergence_text
from spec.meaning.match import Copies, Divergence, Place, divergences, first_difference

SMALL = st.integers(-2, 2)
TWO = st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=6)


def in_rows(pairs, step=0, state="parameters", largest=0):
    """Copies of element i on device i, beside the single device's."""
    has, single = ([*row] for row in zip(*pairs, strict=True))
    return Copies(step, state, has, single, lambda i: Place((i,), i), largest)


def in_arrays(copies, dtype=object):
    """The same copies as arrays, of one element on each device."""
    has, single = (np.array(row, dtype)[:, None] for row in (copies.has, copies.single))
    place = lambda i: copies.place(i[0])  # noqa: E731
    return Copies(copies.step, copies.state, has, single, place, copies.largest)


@given(st.lists(TWO, max_size=3))
def test_there_is_no_difference_exactly_if_all_copies_are_the_single_devices(rows):
    alike = all(has == single for row in rows for has, single in row)
    assert (first_difference(map(in_rows, rows)) is None) is alike


@given(st.lists(TWO, max_size=3))
def test_differences_are_all_that_differ_in_order_and_the_first_is_the_first(rows):
    kept = [in_rows(row, state=str(number)) for number, row in enumerate(rows)]
    expected = [
        Divergence(0, Place((i,), i), str(number), has, single)
        for number, row in enumerate(rows)
        for i, (has, single) in enumerate(row)
        if has != single
    ]
    assert list(divergences(kept)) == expected
    assert first_difference(kept) == (expected[0] if expected else None)


def test_what_comes_after_the_first_difference_is_not_computed():
    def kept():
        yield in_rows([(1, 2)])
        raise AssertionError

    assert first_difference(kept()).has == 1


@given(st.lists(TWO, max_size=3))
def test_arrays_differ_where_lists_do(rows):
    kept = [in_rows(row) for row in rows]
    arrays = map(in_arrays, kept)
    assert list(divergences(arrays, Arithmetic().unequal)) == list(divergences(kept))


@given(st.lists(st.tuples(SMALL, SMALL), min_size=4, max_size=4))
def test_arrays_are_looked_at_device_by_device(pairs):
    has, single = (np.array(row, object).reshape(2, 2) for row in zip(*pairs, strict=True))
    copies = Copies(0, "parameters", has, single, lambda i: Place(i[:1], i[1]))
    found = [(*d.place.device, d.place.element) for d in divergences([copies], Arithmetic().unequal)]
    assert found == [(i // 2, i % 2) for i, (a, b) in enumerate(pairs) if a != b]


@given(st.floats(1, 1e6), st.floats(-1, 1))
def test_floating_point_numbers_may_differ_by_the_tolerance_times_the_largest(largest, offset):
    assume(abs(abs(offset) - 0.5) > 0.1)
    bound = 2 * Floating.tolerance * largest
    copies = in_arrays(in_rows([(offset * bound, 0.0)], largest=largest), np.float64)
    found = first_difference([copies], Floating().unequal)
    assert (found is None) is (abs(offset) < 0.5)


def test_what_is_no_number_differs_from_every_number():
    for wrong in (np.nan, np.inf):
        copies = in_arrays(in_rows([(wrong, 1.0)], largest=1.0), np.float64)
        assert first_difference([copies], Floating().unequal) is not None


def test_a_state_that_nothing_keeps_diverges_once_whatever_is_equal():
    nothing = Copies(1, "parameters", None, [5, 6], lambda i: Place((i,), i))
    for unequal in (Arithmetic().unequal, Floating().unequal):
        (only,) = divergences([nothing], unequal)
        assert only == Divergence(1, Place((0,), 0), "parameters", None, 5)
    assert list(nothing.pairs()) == [(None, 5), (None, 6)]
    assert divergence_text(only) == "after step 2, no copy of the parameters is kept"
    assert divergence_json(only)["has"] is None


def test_a_divergence_says_what_it_is_of_and_what_it_is_beside():
    told = {
        Divergence(0, Place((0, 1), 4), "parameters", 1, 2): (
            "after step 1, element 4 of the parameters on device (0,1) is 1; on a single device it is 2"
        ),
        Divergence(1, Place((1,), 0), "statistics", 1, 2): (
            "after step 2, element 0 of the statistics on device (1) is 1; on a single device it is 2"
        ),
        Divergence(0, Place((1,), None, "up_weight", 3, 2), "optimizer state", 1, 2): (
            "after step 1, an element of the optimizer state of up_weight of layer 3 on device (1) "
            "of stage 2 is 1; on a single device it is 2"
        ),
        Divergence(0, Place((1,), None, "word_weight", None, 0), "parameters", 1, 2): (
            "after step 1, an element of the parameters of word_weight on device (1) of stage 0 is 1; "
            "on a single device it is 2"
        ),
    }
    assert {d: divergence_text(d) for d in told} == told
    keys = [set(divergence_json(d)) for d in told]
    common = {"step", "device", "state", "has", "single_device"}
    assert keys == [common | {"element"}] * 2 + [common | {"stage", "weight", "layer"}] * 2
