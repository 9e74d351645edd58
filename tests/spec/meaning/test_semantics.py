"""What operations read and write, as they are executed: what a schedule says of itself follows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.derivation.schedules import schedule_of
from spec.language.schedule import (
    NUMBERS,
    RESTING,
    STATE_OF,
    Buffer,
    Kind,
    Op,
    Phase,
    Schedule,
    neighbour,
)
from spec.meaning.reference import Reference, primes
from spec.meaning.semantics import CONTENT, execute, initial, updates_on_host
from spec.models.states import State
from spec.models.training import PLAIN
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES
from tests.support.damage import operations
from tests.support.schedules import schedules

ADDED = (Buffer.FRESH, Buffer.TIED, Buffer.TOKENS, Buffer.TOTAL_TOKENS)


class Places(dict):
    """A store that remembers which places were looked at, and which were not yet written."""

    def __init__(self, store):
        super().__init__(store)
        self.read, self.missed, self.written = set(), set(), set()

    def __contains__(self, slot):
        if not super().__contains__(slot) and slot[0] not in self.written:
            self.missed.add(slot[0])
        return super().__contains__(slot)

    def __getitem__(self, slot):
        self.read.add(slot[0])
        return super().__getitem__(slot)

    def __setitem__(self, slot, value):
        self.written.add(slot[0])
        super().__setitem__(slot, value)

    read: set
    missed: set
    written: set


def begun(schedule, sizes, without=()):
    """A run of a schedule that has not begun, and its places, without some that sums start in."""
    world = Reference(schedule, sizes, 1, 2, primes, True, True)
    start = initial(schedule, world, world.constant(lambda j: j), world.constant(lambda j: j))
    return world, Places({slot: value for slot, value in start.items() if slot[0] not in without})


@given(schedules())
def test_sums_are_what_is_read_before_it_is_written(case):
    schedule, sizes, *_ = case
    world, places = begun(schedule, sizes, ADDED)
    for m, op in schedule.flat(1):
        execute(op, schedule, world, places, m)
    assert {*schedule.sums} == places.missed & {*ADDED}


@given(st.sampled_from([*STRATEGIES]), st.sampled_from(ADDED))
def test_what_is_released_before_it_is_there_is_no_sum(name, buffer):
    schedule = schedule_of(STRATEGIES[name])
    release = Op(Kind.RELEASE, Phase.FORWARD, buffer)
    assert replace(schedule, micro_step=(release, *schedule.micro_step)).sums == schedule.sums


@given(st.data())
def test_an_operation_is_of_a_number_if_it_reads_or_writes_one(data):
    axes = ("a", "b")
    op = data.draw(operations(axes))
    rests = schedule_of(STRATEGIES["dp"]).rests
    schedule = Schedule(axes, rests, (op,), (), PLAIN)
    world, places = begun(schedule, {"a": 2, "b": 1})
    places.clear()
    for buffer in Buffer:
        places[buffer, CONTENT] = (False, world.constant(lambda j: j + 1))
    before = {*places}
    places.read.clear()
    places.written.clear()
    execute(op, schedule, world, places, 0)
    touched = places.read | places.written | {slot[0] for slot in before - {*places}}
    assert op.of_a_number is bool(touched & {*NUMBERS})


@given(schedules(), st.integers(1, 4))
def test_operations_belong_to_the_micro_steps_that_there_are(case, micro_steps):
    schedule, *_ = case
    flat = [*schedule.flat(micro_steps)]
    assert [op for _, op in flat] == [*schedule.micro_step] * micro_steps + [*schedule.finish]
    assert {m for m, _ in flat} <= {*range(micro_steps)}
    assert [m for m, _ in flat] == sorted(m for m, _ in flat)


@given((st.integers(-4, 4) | st.integers(-9999, 9999)).filter(bool))
def test_a_neighbour_is_so_many_places_on_or_back(places):
    words = neighbour(places)
    number = "".join(filter(str.isdigit, words))
    assert int(number or 1) == abs(places) and (number == "") is (abs(places) == 1)
    assert ("on" in words.split() or "next" in words) is (places > 0)
    assert ("back" in words or "before" in words) is (places < 0)


@pytest.mark.parametrize("theta", ["R", "O"])
def test_an_optimizer_without_state_updates_where_the_weights_are(theta):
    schedule = schedule_of(on_batch(theta, "M", "R", "S"))
    (update,) = (op for op in schedule.finish if op.kind is Kind.UPDATE)
    assert updates_on_host(update, schedule) is schedule.rest(State.PARAMETERS).host is (theta == "O")


def test_each_state_rests_in_one_place():
    assert [STATE_OF[buffer] for buffer in RESTING] == [
        State.PARAMETERS,
        State.OPTIMIZER,
        State.GRADIENTS,
    ]
