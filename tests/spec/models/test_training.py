"""Optimizers and clippings have the properties by which they are known."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from spec.models.training import adam_moments, clip_by_norm, clip_value, momentum, sgd, sign

NUMBER = st.fractions(-9, 9, max_denominator=6)
POSITIVE = st.fractions(Fraction(1, 6), 9, max_denominator=6)
SHARE = st.fractions(0, 1, max_denominator=6)


def select(condition, yes, no):
    return yes if condition else no


@given(NUMBER, NUMBER, POSITIVE, SHARE)
def test_descent_goes_against_the_gradient_by_the_rate_times_it(weight, gradient, rate, decay):
    assert sgd(weight, gradient, rate) + rate * gradient == weight
    assert momentum(weight, 0, gradient, rate, decay) == (sgd(weight, gradient, rate), gradient)


@given(NUMBER, NUMBER, SHARE, SHARE)
def test_adams_moments_are_means_so_a_gradient_that_stays_is_its_own(gradient, other, beta1, beta2):
    assert adam_moments(gradient, gradient**2, gradient, beta1, beta2) == (gradient, gradient**2)
    first, _ = adam_moments(other, 0, gradient, beta1, beta2)
    assert min(other, gradient) <= first <= max(other, gradient)


@given(NUMBER)
def test_a_sign_times_the_size_is_the_value(value):
    assert sign(value, select) * abs(value) == value
    assert abs(sign(value, select)) == bool(value)


@given(NUMBER, POSITIVE)
def test_a_clipped_value_is_the_nearest_within_the_bounds(value, bound):
    assert clip_value(value, bound, select) == sorted([-bound, value, bound])[1]


@given(st.sampled_from([(3, 4, 5), (5, 12, 13), (-8, 15, 17)]), POSITIVE, POSITIVE)
def test_a_vector_that_is_clipped_by_its_norm_points_where_it_did(triple, times, bound):
    *vector, norm = (times * x for x in triple)
    x, y = (clip_by_norm(each, norm, bound, select) for each in vector)
    assert x * vector[1] == y * vector[0] and x * vector[0] > 0
    assert x * x + y * y == min(norm, bound) ** 2
