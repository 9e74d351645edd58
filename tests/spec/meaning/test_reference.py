"""The reference run: its data, whose elements are whose, and what it does not know."""

from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import shard_contains
from spec.language.schedule import Kind
from spec.meaning.reference import UNKNOWN, Reference, divided, first_divergence, primes, run
from spec.numbers.arithmetic import ceil_div
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES
from tests.support.examples import examples
from tests.support.schedules import schedules

AXES = {"a": 2, "b": 3}


def reference(elements, data=primes, strategy="hsdp", **sizes):
    schedule = schedule_of(STRATEGIES[strategy])
    mesh = dict(zip(schedule.axes, sizes.values() or AXES.values(), strict=True))
    return Reference(schedule, mesh, 2, elements, data, True, True)


def test_data_are_all_different_and_none_is_zero():
    small = range(3)
    indices: dict[str, list] = {
        "start": [(j,) for j in small],
        "moment": [(j,) for j in small],
        "tokens": [*product(small, small, product(small, small))],
        "sample": [*product(small, small, product(small, small), small)],
    }
    values = [primes(what, *index) for what, each in indices.items() for index in each]
    assert len({*values}) == len(values) and all(value > 0 for value in values)


@given(st.integers(1, 40), st.integers(1, 3), st.integers(1, 3))
def test_an_element_is_owned_by_the_device_in_whose_chunk_it_is(elements, first, second):
    found = reference(elements, a=first, b=second)
    chunk = ceil_div(elements, first * second)
    for j, owner in found.owner.items():
        assert all(shard_contains(found.devices.index(owner), j, chunk))


@given(st.integers(-4, 4))
def test_a_device_takes_with_a_shift_the_slice_of_one_that_many_places_on(shift):
    found, axes = reference(6, strategy="zero1", a=6), ("batch",)
    for j, (d,) in product(range(6), found.devices):
        assert found.owns(j, (d,), axes, shift) is found.owns(j, ((d + shift) % 6,), axes)


@examples(40)
@given(schedules())
def test_every_device_has_an_element_of_its_own(case):
    schedule, sizes, micro_steps, _ = case
    (first, *_) = run(schedule, sizes, steps=1, micro_steps=micro_steps)
    elements = {first.place(i).element for i in range(len(first.single))}
    world = [*product(*(range(size) for size in sizes.values()))]
    assert len(elements) >= len(world)


@examples(60)
@given(schedules())
def test_nothing_that_is_not_known_is_asked_for_twice(case):
    schedule, sizes, micro_steps, _ = case
    asked = []

    def data(what, *index):
        if what == "unknown":
            asked.append(index)
        return primes(what, *index)

    for _ in run(schedule, sizes, micro_steps=micro_steps, data=data):
        pass
    assert len({*asked}) == len(asked)


@pytest.mark.parametrize("stateful", [True, False])
@pytest.mark.parametrize("updates", range(2, 9))
def test_a_schedule_that_updates_several_times_diverges(updates, stateful):
    dp = schedule_of(STRATEGIES["dp"])
    (at,) = (i for i, op in enumerate(dp.finish) if op.kind is Kind.UPDATE)
    often = replace(dp, finish=dp.finish[:at] + dp.finish[at : at + 1] * updates + dp.finish[at + 1 :])
    assert not check(often, {BATCH: 2}, 1).accepted
    assert first_divergence(often, {BATCH: 2}, stateful=stateful) is not None


@pytest.mark.parametrize(("value", "number"), [*product((0, 6, UNKNOWN), (0, 3, UNKNOWN))])
def test_a_quotient_is_known_if_both_are_and_the_divisor_is_not_zero(value, number):
    found = divided(value, number)
    if value is not UNKNOWN and value == 0 and number is UNKNOWN:
        assert found == 0
    elif value is UNKNOWN or number is UNKNOWN or number == 0:
        assert found is UNKNOWN
    else:
        assert found * number == value


def test_what_is_not_known_is_like_nothing():
    alike = [one == other for one, other in combinations((UNKNOWN, 0, 1, UNKNOWN), 2)]
    assert sum(alike) == 0 and UNKNOWN + 1 is UNKNOWN
