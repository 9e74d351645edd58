"""Steps along a circle: the first that is within a range, without a look at each."""

from hypothesis import given
from hypothesis import strategies as st

from spec.numbers.arithmetic import first_within


@given(st.integers(1, 60), st.data())
def test_the_first_step_within_a_range_is_the_first_of_all(modulus, data):
    step = data.draw(st.integers(0, modulus - 1))
    low = data.draw(st.integers(0, modulus - 1))
    high = data.draw(st.integers(low, modulus - 1))
    steps = (n for n in range(modulus) if low <= n * step % modulus <= high)
    assert first_within(step, modulus, low, high) == next(steps, None)
