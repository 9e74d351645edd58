"""What a simulated device does not hold is not known: random numbers, others at each read."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from psem_model.simulator import Floating, Mlp, simulate
from psem_model.simulator.arithmetic import Arithmetic, Modular, Poison
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Monomial, Rest, Span
from spec.models.states import POLICIES
from spec.models.training import Loss, Training
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES
from tests.support.by_hand import (
    ACCUMULATE,
    BACKWARD,
    DROP,
    FORWARD,
    MICRO,
    RESET,
    SUM,
    UPDATE,
    B,
    K,
    op,
    written,
)

D = ("d",)
SLICES = {state: Rest(D) for state in ("parameters", "optimizer", "gradients")}
READ = (op(K.FORWARD, B.VIEW, B.ACTIVATIONS), op(K.BACKWARD, B.VIEW, B.FRESH, span=Span.UNIT))
OWN = op(K.KEEP, B.PARAMETERS, B.VIEW, within=D, span=Span.ALL_UNITS)
LEAVE = op(K.RELEASE, B.VIEW)
SCATTER = op(K.REDUCE_SCATTER, B.FRESH, axes=D)
ADD_OWN = op(K.ACCUMULATE, B.FRESH, B.GRADIENTS, within=D)
UPDATE_OWN = op(K.UPDATE, B.GRADIENTS, B.OPTIMIZER, within=D)


def matches(schedule, micro_steps=2, devices=3, **options):
    mesh = dict.fromkeys(schedule.axes, devices)
    return simulate(schedule, mesh, 7, steps=2, micro_steps=micro_steps, unit=4, **options).matches


def in_slices(*fetch, finish=()):
    """All states rest as slices; the view is fetched by some operations."""
    micro_step = (*fetch, *READ, LEAVE, SCATTER, ADD_OWN, DROP)
    return written(micro_step, (*finish, UPDATE_OWN, RESET), **SLICES)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_named_strategy_reads_nothing_that_is_not_known(name, monkeypatch):
    def draw(poison, *shape):
        assert 0 in shape
        return poison.arithmetic.zeros(shape)

    monkeypatch.setattr(Poison, "__call__", draw)
    schedule = schedule_of(STRATEGIES[name])
    mesh, micro_steps = dict.fromkeys(schedule.axes, 3), 2 if schedule.finish else 1
    accepted = [p for p in POLICIES.values() if check(schedule, mesh, micro_steps, p).accepted]
    assert accepted and all(matches(schedule, micro_steps, policy=policy) for policy in accepted)


@pytest.mark.parametrize("arithmetic", ["modular", "exact", "float64"])
def test_a_sum_of_slices_fetches_them_only_where_there_are_zeros_beside_them(arithmetic):
    summed = op(K.ALL_REDUCE, B.VIEW, axes=D)
    zeros = op(K.ZERO, B.VIEW, span=Span.ALL_UNITS)
    assert matches(in_slices(zeros, OWN, summed), arithmetic=arithmetic)
    assert not matches(in_slices(OWN, summed), arithmetic=arithmetic)


def test_gradients_that_rest_as_slices_are_not_summed_again():
    again = op(K.ALL_REDUCE, B.GRADIENTS, axes=D)
    gather = op(K.ALL_GATHER, B.PARAMETERS, B.VIEW, axes=D, span=Span.ALL_UNITS)
    assert matches(in_slices(gather))
    assert not matches(in_slices(gather, finish=(again,)))
    assert not matches(in_slices(gather, finish=(replace(again, within=D),)))  # different elements


def test_a_sum_over_a_group_does_not_mix_its_slices_but_over_one_device_there_is_no_other():
    mixed = op(K.ALL_REDUCE, B.FRESH, axes=D, within=D)
    schedule = written((FORWARD, BACKWARD, mixed, ACCUMULATE, DROP), (UPDATE, RESET))
    assert matches(schedule, devices=1) and not matches(schedule, devices=2)


@pytest.mark.parametrize("last", [K.REDUCE_SCATTER, K.ALL_REDUCE])
def test_what_a_reduce_scatter_in_place_leaves_outside_its_slice_is_not_added_to(last):
    micro_step = (FORWARD, op(K.BACKWARD, B.PARAMETERS, B.GRADIENTS))
    scatter = op(K.REDUCE_SCATTER, B.GRADIENTS, axes=D)
    publish = op(K.ALL_GATHER, B.PARAMETERS, axes=D)
    finish = (op(last, B.GRADIENTS, axes=D), UPDATE_OWN, publish, RESET)
    sharded = {"optimizer": Rest(D)}
    assert matches(written(micro_step, finish, **sharded))
    assert not matches(written((*micro_step, scatter), finish, **sharded))
    assert not matches(written((*micro_step, scatter), (UPDATE_OWN, publish, RESET), **sharded))


def test_sums_start_at_zero_but_what_is_released_is_not_zero():
    add = op(K.ACCUMULATE, B.TIED, B.FRESH)
    forget = op(K.RELEASE, B.TIED)
    zero = op(K.ZERO, B.TIED, span=Span.ALL_UNITS)
    micro_step = (FORWARD, BACKWARD, add, ACCUMULATE, DROP)
    assert matches(written(micro_step, (SUM, UPDATE, RESET)))
    assert not matches(written((forget, *micro_step), (SUM, UPDATE, RESET)))
    assert matches(written((forget, zero, *micro_step), (SUM, UPDATE, RESET)))


def test_what_is_not_known_is_not_there_even_when_it_is_taken_off_again():
    minus = op(K.SCALE, B.GRADIENTS, by=Monomial(Fraction(-1)))
    absent = op(K.ACCUMULATE, B.TIED, B.GRADIENTS)
    forget = op(K.RELEASE, B.TIED)
    schedule = written((*MICRO, forget, absent, minus, absent, minus), (SUM, UPDATE, RESET))
    assert not matches(schedule)


def test_what_is_made_of_the_unknown_is_not_there_even_when_it_is_taken_off_again():
    minus = op(K.SCALE, B.FRESH, by=Monomial(Fraction(-1)))
    on_nothing = replace(BACKWARD, source=B.VIEW)
    taken_off = (on_nothing, ACCUMULATE, minus, ACCUMULATE, DROP)
    assert not matches(written((*taken_off, *MICRO), (SUM, UPDATE, RESET)))


@pytest.mark.parametrize("policy", ["mixed-adam", "fp32-adam", "fp32-momentum"])
@pytest.mark.parametrize("within", [(), ("batch",)])
@pytest.mark.parametrize("made", [(K.ZERO, B.OPTIMIZER_VIEW), (K.KEEP, B.PARAMETERS)])
def test_moments_of_a_view_whose_weights_are_made_anew_are_not_known(made, within, policy):
    gathered = schedule_of(on_batch("R", "S*", "R", "S"))
    kind, source = made
    anew = op(kind, source, B.OPTIMIZER_VIEW, within=within, span=Span.ALL_UNITS)
    at = next(i for i, each in enumerate(gathered.finish) if each.kind is K.UPDATE)
    schedule = replace(gathered, finish=(*gathered.finish[:at], anew, *gathered.finish[at:]))
    mesh, policy = {"batch": 2}, POLICIES[policy]
    assert check(gathered, mesh, 1, policy).accepted
    assert not check(schedule, mesh, 1, policy).accepted
    assert not simulate(schedule, mesh, 4, policy=policy, steps=3).matches


def test_zero_times_what_is_not_known_is_zero():
    forget = op(K.RELEASE, B.TIED)
    by_zero = op(K.SCALE, B.TIED, by=Monomial(Fraction(0)))
    add = op(K.ACCUMULATE, B.TIED, B.GRADIENTS)
    assert matches(written((*MICRO, forget, by_zero, add), (SUM, UPDATE, RESET)))
    own = replace(by_zero, within=D)
    assert not matches(written((*MICRO, forget, own, add), (SUM, UPDATE, RESET)))


def test_a_view_that_is_not_there_or_is_on_the_host_is_not_known():
    keep = op(K.KEEP, B.PARAMETERS, B.VIEW, span=Span.ALL_UNITS)
    away, back = op(K.OFFLOAD, B.VIEW), op(K.FETCH, B.VIEW, span=Span.ALL_UNITS)
    for first, right in (
        ((keep,), True),
        ((keep, LEAVE), False),
        ((keep, away), False),
        ((keep, away, back), True),
    ):
        schedule = written((*first, *READ, ACCUMULATE, LEAVE, DROP), (SUM, UPDATE, RESET))
        assert matches(schedule) is right


@pytest.mark.parametrize("model", [None, Mlp(1)])
def test_activations_that_are_not_there_are_not_known(model):
    release = op(K.RELEASE, B.ACTIVATIONS)
    for between, right in (((), True), ((release,), False)):
        schedule = written((FORWARD, *between, *MICRO[1:]), (SUM, UPDATE, RESET))
        assert simulate(schedule, {"d": 2}, 4, unit=2, model=model).matches is right


@pytest.mark.parametrize("arithmetic", ["modular", "float64"])
def test_a_norm_that_is_not_there_or_of_more_than_a_device_has_is_not_known(arithmetic):
    norm, clip = op(K.SQUARE_NORM, B.GRADIENTS, B.NORM), op(K.CLIP, B.GRADIENTS, by=B.NORM)
    forget = op(K.RELEASE, B.NORM)
    scatter = op(K.REDUCE_SCATTER, B.GRADIENTS, axes=D)
    whole, training = op(K.ALL_GATHER, B.GRADIENTS, axes=D), Training(clip=True)
    for before, right in (
        ((SUM, norm), True),
        ((SUM,), False),
        ((SUM, norm, forget), False),
        ((scatter, norm, whole), False),
        ((scatter, whole, norm), True),
    ):
        schedule = written(MICRO, (*before, clip, UPDATE, RESET), training)
        assert matches(schedule, arithmetic=arithmetic) is right


@pytest.mark.parametrize("arithmetic", ["modular", "exact", "float64"])
def test_over_a_count_that_is_zero_or_released_nothing_is_known_but_zero_over_the_latter(arithmetic):
    count = (op(K.COUNT, B.TOKENS, axes=D), op(K.ACCUMULATE, B.TOKENS, B.TOTAL_TOKENS))
    divide = op(K.DIVIDE, B.GRADIENTS, by=B.TOTAL_TOKENS)
    reset, release = (op(kind, B.TOTAL_TOKENS) for kind in (K.RESET, K.RELEASE))
    training = Training(Loss.TOKEN_MEAN)
    for finish, right in (
        ((SUM, divide, UPDATE, RESET, reset), True),
        ((SUM, divide, UPDATE, RESET, reset, divide), False),
        ((SUM, divide, UPDATE, RESET, release, divide, reset), True),
        ((SUM, reset, divide, UPDATE, RESET), False),
        ((SUM, release, divide, UPDATE, RESET, reset), False),
    ):
        assert matches(written((*count, *MICRO), finish, training), arithmetic=arithmetic) is right


def test_a_run_that_matches_by_luck_does_not_match_with_other_numbers(monkeypatch):
    class Lucky(Poison):
        def __init__(self, seed, arithmetic):
            super().__init__(seed, arithmetic)
            self.lucky = seed == 0

        def __call__(self, *shape):
            return super().__call__(*shape) * (0 if self.lucky else 1)

    monkeypatch.setattr("psem_model.simulator.models.Poison", Lucky)
    schedule = in_slices(OWN, op(K.ALL_REDUCE, B.VIEW, axes=D))
    assert not matches(schedule)


@pytest.mark.parametrize("arithmetic", [Arithmetic(), Modular(), Floating()])
def test_poison_is_other_numbers_at_each_read_and_the_same_in_each_run(arithmetic):
    one, again, other = (Poison(seed, arithmetic) for seed in (0, 0, 1))
    first = one(4, 5)
    assert np.array_equal(first, again(4, 5)) and first.dtype == arithmetic.dtype
    assert not (first == one(4, 5)).any() and not (first == other(4, 5)).any()
    assert one.drawn == 40
