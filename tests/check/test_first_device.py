"""A schedule that tells elements apart by whether the first device owns them."""

from fractions import Fraction

import pytest

from spec.checking.verdict import check
from spec.language.schedule import Monomial, Span
from spec.meaning.reference import first_divergence
from spec.models.training import Training
from tests.support.by_hand import ACCUMULATE, BACKWARD, FORWARD, RESET, UPDATE, B, K, op, written

AXES = ("d",)
OF_THE_FIRST = [  # a view that is current where the first device owns the element, and zero elsewhere
    op(K.ZERO, B.VIEW, span=Span.UNIT),
    op(K.KEEP, B.PARAMETERS, B.VIEW, within=AXES, span=Span.UNIT),
    op(K.BROADCAST, B.VIEW, axes=AXES),
]
WRONG_GRADIENT = [
    *OF_THE_FIRST,
    op(K.FORWARD, B.VIEW, B.ACTIVATIONS),
    op(K.BACKWARD, B.VIEW, B.FRESH, span=Span.UNIT),
    op(K.RELEASE, B.VIEW),
    op(K.ALL_REDUCE, B.FRESH, axes=AXES),
    op(K.KEEP, B.FRESH, B.TIED, span=Span.UNIT),
]
RIGHT_GRADIENT = [FORWARD, BACKWARD, op(K.ALL_REDUCE, B.FRESH, axes=AXES)]
USED_WHERE_THE_FIRST_OWNS = [
    op(K.KEEP, B.TIED, B.FRESH, within=AXES, span=Span.UNIT),
    op(K.BROADCAST, B.FRESH, axes=AXES),
]
SCHEDULE = written(
    [*WRONG_GRADIENT, *RIGHT_GRADIENT, *USED_WHERE_THE_FIRST_OWNS, ACCUMULATE], (UPDATE, RESET)
)


@pytest.mark.parametrize("devices", [2, 3])
def test_a_gradient_at_a_view_that_is_wrong_elsewhere_diverges(devices):
    assert first_divergence(SCHEDULE, {"d": devices}) is not None


@pytest.mark.parametrize("devices", [2, 3])
def test_a_gradient_at_a_view_that_is_wrong_elsewhere_is_rejected(devices):
    assert not check(SCHEDULE, {"d": devices}).accepted


def of_the_first(source, into):
    """What a buffer has where the first device owns the element, and zero elsewhere."""
    keep = op(K.KEEP, source, into, within=AXES, span=Span.UNIT)
    return (op(K.ZERO, into, span=Span.UNIT), keep, op(K.BROADCAST, into, axes=AXES))


@pytest.mark.parametrize("devices", [2, 3])
def test_a_norm_that_is_right_only_where_the_first_device_owns_the_element_diverges(devices):
    """Elements that the first device owns are clipped by the norm of these alone, others rightly."""
    gradients, fresh, tied = B.GRADIENTS, B.FRESH, B.TIED
    finish = (
        op(K.ALL_REDUCE, gradients, axes=AXES),
        *of_the_first(gradients, fresh),
        op(K.SQUARE_NORM, fresh, B.NORM),
        op(K.RELEASE, fresh),
        op(K.KEEP, gradients, tied, span=Span.UNIT),
        op(K.CLIP, tied, by=B.NORM),
        op(K.RELEASE, B.NORM),
        *of_the_first(tied, fresh),
        op(K.RELEASE, tied),
        op(K.SQUARE_NORM, gradients, B.NORM),
        op(K.CLIP, gradients, by=B.NORM),
        op(K.RELEASE, B.NORM),
        *of_the_first(gradients, tied),
        op(K.SCALE, tied, by=Monomial(Fraction(-1))),
        op(K.ACCUMULATE, tied, gradients),
        op(K.RELEASE, tied),
        op(K.ACCUMULATE, fresh, gradients),
        op(K.RELEASE, fresh),
        UPDATE,
        RESET,
    )
    micro_step = (FORWARD, op(K.BACKWARD, B.PARAMETERS, gradients))
    schedule = written(micro_step, finish, Training(clip=True))
    assert first_divergence(schedule, {"d": devices}) is not None
    assert not check(schedule, {"d": devices}).accepted
