"""A schedule that tells elements apart by whether the first device owns them."""

import pytest

from spec.reference import first_divergence
from spec.schedule import Span
from spec.verdict import check
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


@pytest.mark.xfail(strict=True, reason="a backward is right on all elements or on none (T4)")
@pytest.mark.parametrize("devices", [2, 3])
def test_a_gradient_at_a_view_that_is_wrong_elsewhere_is_rejected(devices):
    assert not check(SCHEDULE, {"d": devices}).accepted
