"""Normal forms of what moves, divides and sums values; and which slice a device takes for its own."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from spec.checking.algebra import split, taker
from spec.checking.forms import Forms
from spec.derivation.schedules import schedule_of
from spec.devices.operators import add, scale
from spec.models.states import MIXED_ADAM
from spec.numbers.any_size import Comparison, any_size
from spec.plans.strategies import STRATEGIES

AXIS = "batch"
SMALL = st.integers(-4, 4).filter(bool)


def forms(size=3):
    return Forms(schedule_of(STRATEGIES["zero1"]), {AXIS: size}, 1, MIXED_ADAM, None, {AXIS: 0}, True)


@given(SMALL, SMALL, st.booleans())
def test_a_multiple_over_a_multiple_is_a_multiple_of_the_quotient(times, of_count, everyones):
    on = forms()
    gradient, count = on.symbol("gradient", 0), on.symbol("tokens", 0)
    count = on.sum(count, AXIS) if everyones else count
    found = on.divide(scale(gradient, times), scale(count, of_count))
    assert found == scale(on.divide(gradient, count), Fraction(times, of_count))


def test_over_nothing_a_value_is_not_known():
    on = forms()
    assert on.divide(on.symbol("gradient", 0), {}) == on.unknown("it is divided by zero")


@given(st.sampled_from(["no copy", "released"]))
def test_what_is_not_known_is_so_for_its_reason_until_slices_of_it_are_summed(why):
    on = forms()
    unknown = on.unknown(why)
    assert {symbol.made_of for symbol, _ in on.sum(unknown, AXIS)} == {why}
    own = on.replace(unknown, on.symbol("weight", 0), (AXIS,))
    (reason,) = {symbol.made_of for symbol, _ in split(on.sum(own, AXIS))[1]} - {why}
    assert "mixes different elements" in reason


@given(st.sampled_from(["no copy", "released"]))
def test_what_is_divided_by_what_is_not_known_is_not_known_for_the_same_reason(why):
    on = forms()
    divided = on.divide(on.symbol("gradient", 0), on.unknown(why))
    assert {symbol.made_of for symbol, _ in split(on.sum(divided, AXIS))[1]} == {why}


@given(st.integers(-9, 9), st.integers(2, 9))
def test_who_takes_a_slice_is_the_same_device_however_many_there_are(shift, size):
    assert taker(any_size("n"), shift) % size == taker(size, shift)


@given(st.integers(4, 40))
def test_norms_of_forms_that_are_the_same_for_some_size_are_told_apart_but_for_that_size(number):
    size, comparison = any_size("n"), Comparison()
    schedule = schedule_of(STRATEGIES["dp"])
    on = Forms(schedule, {AXIS: size}, 1, MIXED_ADAM, comparison, {AXIS: 0}, True)
    gradient, tied = (on.sum(on.symbol(kind, 0), AXIS) for kind in ("gradient", "tied"))
    one, other = (on.square_norm(add(gradient, scale(tied, times))) for times in (size, number))
    assert one != other
    assert number in comparison.exceptions()["n"]
