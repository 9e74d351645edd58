"""What is moved of whole weights, of which devices have slices; what is sent of what is broadcast."""

from dataclasses import replace

import sympy
from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.closed import Closed
from spec.costs.communication import elements_sent, most_touched
from spec.costs.memory import Sizes
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Op, Phase
from spec.models.states import MIXED_ADAM
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES


def touched_at_most(weights, size):
    """Element by element."""
    weight_of = [weight for weight, size_ in enumerate(weights) for _ in range(size_)]
    parts = ({*weight_of[start : start + size]} for start in range(0, len(weight_of), size))
    return max(sum(weights[w] for w in part) for part in parts)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8), st.integers(1, 99))
def test_a_slice_touches_each_weight_of_which_it_has_an_element(weights, size):
    most = touched_at_most(weights, size)
    assert most_touched([(weights, 1)], size) == most
    assert most_touched([([weight], 1) for weight in weights], size) == most


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(1, 40)), min_size=1
    ),
    st.integers(1, 400),
)
def test_layers_that_are_alike_are_touched_as_if_they_were_listed(runs, size):
    listed = [size for sizes, times in runs for size in sizes * times]
    assert most_touched(runs, size) == touched_at_most(listed, size)


def test_slices_may_be_as_many_as_one_likes():
    # one has the last of the first weight, and the first of the third
    assert most_touched([([10**30, 1, 10**30], 1)], 3) == 2 * 10**30 + 1


@given(st.integers(1, 8), st.integers(1, 50))
def test_all_but_the_last_device_send_all_of_what_is_broadcast(devices, psi):
    schedule = schedule_of(STRATEGIES["dp"])
    whole = Buffer.PARAMETERS, Buffer.PARAMETERS
    published = Op(Kind.BROADCAST, Phase.PUBLISH, *whole, axes=(BATCH,))
    asked = replace(schedule, finish=(*schedule.finish, published))
    n = sympy.Symbol("N", positive=True, integer=True)
    sent = elements_sent(published, asked, Sizes(psi, {BATCH: devices}, MIXED_ADAM))
    assert sent == (psi if devices > 1 else 0)
    formula = elements_sent(published, asked, Sizes(psi, {BATCH: n}, MIXED_ADAM, None, Closed(True)))
    assert formula.subs(n, devices) == sent
