"""Simulated runs: what matches a single device, what does not, and what the devices hold and send."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.registry import ROOT
from psem_model.predict.states import predict_schedule
from psem_model.reading.schedules import read
from psem_model.simulator import Floating, Mlp, simulate
from psem_model.text.figures import divergence_text
from spec.costs.memory import Sizes
from spec.derivation.schedules import schedule_of
from spec.language.schedule import MICRO_STEPS, Monomial, Rest, Span
from spec.meaning.match import Place
from spec.models.states import MIXED_ADAM, POLICIES, State, custom_policy
from spec.models.training import Loss, Statistics, Training
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
from tests.support.examples import examples
from tests.support.schedules import made_up

NAMES = sorted(STRATEGIES)


def mesh_of(schedule, data):
    return {a: data.draw(st.integers(1, 3), label=a) for a in schedule.axes}


# --------------------------------------------------------------------- strategies
@examples(60)
@given(st.sampled_from(NAMES), st.integers(1, 13), st.integers(1, 13), st.integers(1, 3), st.data())
def test_every_strategy_matches_the_single_device_exactly(name, psi, unit, micro_steps, data):
    schedule = schedule_of(STRATEGIES[name])
    micro_steps = 1 if name == "fused-update" else micro_steps
    mesh = mesh_of(schedule, data)
    run = simulate(schedule, mesh, psi, steps=3, micro_steps=micro_steps, unit=unit)
    assert run.matches, str(run.divergence)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arithmetic", ["exact", "float64"])
def test_every_strategy_matches_in_fractions_and_in_floating_point(name, arithmetic):
    schedule = schedule_of(STRATEGIES[name])
    run = simulate(schedule, dict.fromkeys(schedule.axes, 2), 5, steps=2, unit=3, arithmetic=arithmetic)
    assert run.matches, str(run.divergence)


@pytest.mark.parametrize("policy", ["mixed-adam", "fp32-adam", "fp32-momentum", "fp32-sgd"])
@pytest.mark.parametrize("name", [n for n in NAMES if n != "zero-offload"])
def test_every_strategy_on_the_device_matches_with_and_without_a_master_copy(name, policy):
    schedule = schedule_of(STRATEGIES[name])
    mesh = dict(zip(schedule.axes, (3, 2), strict=False))
    for arithmetic in ("modular", Floating(), Floating(adam=False)):
        run = simulate(schedule, mesh, 11, steps=2, policy=POLICIES[policy], arithmetic=arithmetic)
        assert run.matches, str(run.divergence)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "fused-update"])
@pytest.mark.parametrize("kind", [K.REDUCE_SCATTER, K.ALL_REDUCE])
def test_dropping_a_reduction_diverges(name, kind):
    schedule = schedule_of(STRATEGIES[name])
    parts = [tuple(o for o in ops if o.kind is not kind) for ops in schedule.bodies]
    broken = replace(schedule, micro_step=parts[0], finish=parts[1])
    run = simulate(broken, dict.fromkeys(schedule.axes, 2), 7, steps=2)
    assert run.matches is (parts == [schedule.micro_step, schedule.finish])


def test_a_divergence_says_where_it_is_and_what_was_expected():
    broken = written(MICRO, (UPDATE, RESET))
    run = simulate(broken, {"d": 2}, 3, steps=3, stop_at_divergence=True)
    d = run.divergence
    assert (d.step, d.place, d.state) == (0, Place((0,), 0), "parameters")
    assert divergence_text(d) == (
        f"after step 1, element 0 of the parameters on device (0) is {d.has}; "
        f"on a single device it is {d.single}"
    )


def test_keeping_no_copy_of_the_parameters_diverges():
    nothing = Rest(stored=False)
    run = simulate(written((), (), parameters=nothing, optimizer=nothing), {"d": 2}, 3)
    assert divergence_text(run.divergence) == "after step 1, no copy of the parameters is kept"


# ---------------------------------------------------------- what the language can say
def gradients_scaled(schedule, mesh=None, micro_steps=2, **options):
    return simulate(schedule, mesh or {"d": 3}, 7, steps=2, micro_steps=micro_steps, unit=3, **options)


def test_a_mean_is_taken_by_the_reduction_and_a_factor_or_by_a_factor_alone():
    training = Training(loss=Loss.MEAN)
    mean = replace(SUM, mean=True)
    by_steps = op(K.SCALE, B.GRADIENTS, by=Monomial(powers=((MICRO_STEPS, -1),)))
    by_both = op(K.SCALE, B.GRADIENTS, by=Monomial(powers=((MICRO_STEPS, -1), ("d", -1))))
    assert gradients_scaled(written(MICRO, (mean, by_steps, UPDATE, RESET), training)).matches
    assert gradients_scaled(written(MICRO, (by_both, SUM, UPDATE, RESET), training)).matches
    assert not gradients_scaled(written(MICRO, (mean, UPDATE, RESET), training)).matches
    assert not gradients_scaled(written(MICRO, (mean, by_steps, UPDATE, RESET))).matches


def test_a_token_mean_divides_by_all_tokens_and_not_by_those_of_one_device():
    training = Training(loss=Loss.TOKEN_MEAN)
    count, keep = op(K.COUNT, B.TOKENS), op(K.ACCUMULATE, B.TOKENS, B.TOTAL_TOKENS)
    together = op(K.ALL_REDUCE, B.TOTAL_TOKENS, axes=("d",))
    divide = op(K.DIVIDE, B.GRADIENTS, by=B.TOTAL_TOKENS)
    end = (UPDATE, RESET, op(K.RESET, B.TOTAL_TOKENS))
    micro = (count, keep, *MICRO)
    for arithmetic in ("modular", "exact", "float64"):
        right = written(micro, (together, SUM, divide, *end), training)
        assert gradients_scaled(right, arithmetic=arithmetic).matches
    assert not gradients_scaled(written(micro, (SUM, divide, *end), training)).matches
    assert not gradients_scaled(written(micro, (together, SUM, divide, *end[:2]), training)).matches
    counted_for_all = replace(count, axes=("d",))
    right = written((counted_for_all, *micro[1:]), (SUM, divide, *end), training)
    assert gradients_scaled(right).matches
    run = gradients_scaled(written(micro, (together, SUM, divide, *end), training))
    assert list(run.sent_by_operation["finish", 0]) == [4, 4, 4]


def test_clipping_needs_the_norm_of_the_whole_gradient():
    training = Training(clip=True)
    norm = op(K.SQUARE_NORM, B.GRADIENTS, B.NORM)
    clip = op(K.CLIP, B.GRADIENTS, by=B.NORM)
    for arithmetic in ("modular", "exact", "float64"):
        right = written(MICRO, (SUM, norm, clip, UPDATE, RESET), training)
        assert gradients_scaled(right, arithmetic=arithmetic).matches
    assert not gradients_scaled(written(MICRO, (norm, SUM, clip, UPDATE, RESET), training)).matches
    sharded = {"gradients": Rest(("d",)), "optimizer": Rest(("d",))}
    scatter = op(K.REDUCE_SCATTER, B.FRESH, axes=("d",))
    micro = (FORWARD, BACKWARD, scatter, replace(ACCUMULATE, within=("d",)), DROP)
    own_norm, own_clip, update = (replace(o, within=("d",)) for o in (norm, clip, UPDATE))
    together = op(K.ALL_REDUCE, B.NORM, axes=("d",))
    publish = op(K.ALL_GATHER, B.PARAMETERS, axes=("d",))
    for finish, right in (((together,), True), ((), False)):
        ops = (own_norm, *finish, own_clip, update, publish, RESET)
        assert gradients_scaled(written(micro, ops, training, **sharded)).matches is right


def test_tied_parameters_need_both_gradients():
    training = Training(tied=True)
    tie = op(K.ACCUMULATE, B.TIED, B.FRESH)
    drop = op(K.RELEASE, B.TIED)
    right = written((FORWARD, BACKWARD, tie, drop, ACCUMULATE, DROP), (SUM, UPDATE, RESET), training)
    assert gradients_scaled(right).matches
    run = gradients_scaled(right)
    assert run.meter.peak_parts[State.GRADIENTS] == 2 * (7 + 3 + 3)
    wrong = written((FORWARD, BACKWARD, drop, ACCUMULATE, DROP), (SUM, UPDATE, RESET), training)
    assert not gradients_scaled(wrong).matches


def test_statistics_must_be_a_single_devices_of_the_samples_that_move_them():
    share = op(K.ALL_REDUCE, B.STATISTICS, axes=("d",), mean=True)
    total = op(K.ALL_REDUCE, B.STATISTICS, axes=("d",))
    first = op(K.BROADCAST, B.STATISTICS, axes=("d",))
    right = {(Statistics.ALL, share), (Statistics.FIRST, first)}
    right |= {(Statistics.COPY, first), (Statistics.COPY, None)}
    for whose in Statistics:
        for same in (share, total, first, None):
            ops = () if same is None else (same,)
            schedule = written(MICRO, (*ops, SUM, UPDATE, RESET), Training(statistics=whose))
            run = gradients_scaled(schedule)
            assert run.matches is ((whose, same) in right), str(run.divergence)
            assert run.matches or run.divergence.state == "statistics"


@pytest.mark.parametrize("kept", [1, 2])
def test_a_shifted_slice_must_be_gathered_with_the_same_shift(kept):
    shifted = {"axes": ("d",), "shift": 1}
    micro = (
        FORWARD,
        BACKWARD,
        op(K.REDUCE_SCATTER, B.FRESH, **shifted),
        op(K.ALL_GATHER, B.FRESH, axes=("d",), shift=kept, span=Span.UNIT),
        ACCUMULATE,
        DROP,
    )
    schedule = written(micro, (UPDATE, RESET))
    assert simulate(schedule, {"d": 4}, 10, steps=2).matches is (kept == 1)


def test_a_shifted_update_is_published_with_the_same_shift():
    update = op(K.UPDATE, B.GRADIENTS, B.OPTIMIZER, within=("d",), shift=1)
    for shift in (0, 1, 4, 5):
        publish = op(K.ALL_GATHER, B.OPTIMIZER, axes=("d",), shift=shift)
        copy = op(K.RECOMPUTE, B.OPTIMIZER, B.PARAMETERS)
        schedule = written(MICRO, (SUM, update, publish, copy, RESET))
        assert simulate(schedule, {"d": 4}, 10, steps=2, unit=6).matches is (shift in (1, 5))


def test_broadcasting_the_first_devices_update_is_enough():
    first = tuple(op(K.BROADCAST, b, axes=("d",)) for b in (B.PARAMETERS, B.OPTIMIZER))
    own_work = op(K.SCALE, B.GRADIENTS, by=Monomial(Fraction(1)))
    schedule = written(MICRO, (SUM, own_work, UPDATE, *first, RESET))
    run = simulate(schedule, {"d": 3}, 7, steps=2)
    assert run.matches
    sent = run.sent_by_operation["finish", 3] + run.sent_by_operation["finish", 4]
    assert list(sent) == [14, 14, 0]


def test_gathered_activations_let_a_device_do_the_whole_groups_samples():
    axes = ("a", "b")
    for gathered, everyones, reduced, right in (
        (("a",), ("a",), ("b",), True),
        (("a", "b"), ("a", "b"), (), True),
        (("a",), ("a",), ("a", "b"), False),
        (("a",), (), ("a", "b"), True),
    ):
        gather = op(K.ALL_GATHER, B.ACTIVATIONS, axes=gathered)
        backward = op(K.BACKWARD, B.PARAMETERS, B.GRADIENTS, axes=everyones)
        total = op(K.ALL_REDUCE, B.GRADIENTS, axes=reduced)
        finish = (total, UPDATE, RESET) if reduced else (UPDATE, RESET)
        schedule = written((FORWARD, gather, backward), finish, axes=axes)
        assert simulate(schedule, {"a": 2, "b": 3}, 7, steps=2).matches is right
        perceptron = simulate(schedule, {"a": 2, "b": 3}, 12, unit=6, steps=2, model=Mlp(2))
        assert perceptron.matches is right


def test_activations_of_other_parameters_diverge_and_so_do_none():
    spoil = op(K.RESET, B.GRADIENTS)
    release = op(K.RELEASE, B.ACTIVATIONS)
    again = op(K.RECOMPUTE, B.PARAMETERS, B.ACTIVATIONS)
    away, back = op(K.OFFLOAD, B.ACTIVATIONS), op(K.FETCH, B.ACTIVATIONS)
    for between, right in (
        ((spoil,), True),
        ((release,), False),
        ((release, again), True),
        ((away,), False),
        ((away, back), True),
    ):
        schedule = written((FORWARD, *between, *MICRO[1:]), (SUM, UPDATE, RESET))
        assert simulate(schedule, {"d": 2}, 5, steps=2).matches is right


@pytest.mark.parametrize("policy", [MIXED_ADAM, POLICIES["fp32-sgd"]])
def test_devices_that_begin_with_other_weights_than_the_single_one_diverge(policy):
    def on_device(d, change):
        return lambda row: row + change * (np.arange(2) == d)[:, None]

    dp, how = schedule_of(STRATEGIES["dp"]), {"policy": policy}
    for device in (0, 1):
        assert simulate(dp, {"batch": 2}, 5, begin=on_device(device, 0), **how).matches
        assert not simulate(dp, {"batch": 2}, 5, begin=on_device(device, 1), **how).matches


# ------------------------------------------------------------------ memory and messages
def test_what_zero3_holds_and_sends_is_counted_from_its_blocks_and_messages():
    run = simulate(schedule_of(STRATEGIES["zero3"]), {"batch": 4}, 10, steps=2)
    chunk, n = 3, 4
    assert run.resting == {State.PARAMETERS: 6, State.OPTIMIZER: 36, State.GRADIENTS: 6}
    assert run.peak == 48 + 2 * n * chunk + 2 * 10
    assert run.meter.peak_parts == {State.PARAMETERS: 30, State.OPTIMIZER: 36, State.GRADIENTS: 26}
    assert run.sent_elements == 3 * (n - 1) * chunk and run.sent == 2 * run.sent_elements
    assert run.messages == 3 * (n - 1) * n
    assert run.host == run.host_link == 0


def test_units_are_there_one_at_a_time():
    whole = simulate(schedule_of(STRATEGIES["zero3"]), {"batch": 2}, 12)
    units = simulate(schedule_of(STRATEGIES["zero3"]), {"batch": 2}, 12, unit=3)
    assert whole.peak - sum(whole.resting.values()) == 2 * 12 + 2 * 12
    assert units.peak - sum(units.resting.values()) == 2 * 4 + 2 * 3


def test_offloaded_states_rest_on_the_host_and_cross_its_link():
    run = simulate(schedule_of(STRATEGIES["zero-offload"]), {"batch": 2}, 10, micro_steps=2)
    assert run.resting == {State.PARAMETERS: 20, State.OPTIMIZER: 0, State.GRADIENTS: 0}
    assert run.host_parts == {State.PARAMETERS: 0, State.OPTIMIZER: 60, State.GRADIENTS: 10}
    assert run.host == 70 and run.host_link == 30


def test_bytes_of_a_policy_in_fractions_stay_exact():
    policy = custom_policy(Fraction(1, 2), Fraction(1, 2), Fraction(3))
    run = simulate(schedule_of(STRATEGIES["zero1"]), {"batch": 2}, 5, policy=policy)
    assert run.matches and run.resting[State.PARAMETERS] == Fraction(5, 2)
    assert run.sent == Fraction(1, 2) * 6


def test_an_optimizer_without_state_takes_no_bytes_and_sends_none():
    run = simulate(schedule_of(STRATEGIES["zero1"]), {"batch": 2}, 6, policy=POLICIES["fp32-sgd"])
    assert run.matches and run.resting[State.OPTIMIZER] == 0


@pytest.mark.parametrize("name", ["zero3", "hsdp"])
def test_the_simulator_takes_little_more_memory_than_what_it_simulates(name):
    schedule = schedule_of(STRATEGIES[name])
    mesh = dict.fromkeys(schedule.axes, 16 if len(schedule.axes) == 1 else 4)
    simulate(schedule, mesh, 1000, unit=1000, arithmetic="float64")
    tracemalloc.start()
    run = simulate(schedule, mesh, 64_000, unit=1000, arithmetic="float64")
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    elements = {State.PARAMETERS: 1, State.GRADIENTS: 1, State.OPTIMIZER: 3}
    held = sum(run.resting[s] / MIXED_ADAM.of(s) * n for s, n in elements.items())
    assert run.matches and taken <= 4 * 8 * held * run.network.devices


# ---------------------------------------------------------------------- robustness
@pytest.mark.slow
@settings(max_examples=400)
@given(made_up(), st.integers(1, 7), st.data())
def test_whatever_the_language_allows_is_executed(schedule, psi, data):
    policy = data.draw(st.sampled_from(sorted(POLICIES)))
    unit, micro_steps = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 2))
    mesh = {axis: data.draw(st.integers(1, 3)) for axis in schedule.axes}
    options = {"steps": 2, "micro_steps": micro_steps, "unit": unit, "policy": POLICIES[policy]}
    runs = [simulate(schedule, mesh, psi, **options) for _ in range(2)]
    assert str(runs[0].divergence) == str(runs[1].divergence)
    floating = simulate(schedule, mesh, psi, arithmetic="float64", **options)
    assert (floating.peak, floating.resting) == (runs[0].peak, runs[0].resting)
    assert floating.sent == runs[0].sent and floating.host_link == runs[0].host_link


def test_progress_is_told_after_each_pass():
    told = []
    simulate(schedule_of(STRATEGIES["zero1"]), {"batch": 2}, 5, steps=2, progress=told.append)
    assert told == list(range(1, len(told) + 1)) and len(told) > 2


@pytest.mark.parametrize("psi", [True, 0, 2.0])
def test_sizes_that_are_no_whole_numbers_are_refused(psi):
    with pytest.raises(ValueError, match="psi is"):
        simulate(schedule_of(STRATEGIES["dp"]), {"batch": 2}, psi)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mesh": {"d": 2}}, "the mesh's axes are d; the schedule's are batch"),
        ({"mesh": {"batch": 0}}, "axis batch is 0"),
        ({"psi": 0}, "psi is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"micro_steps": 0}, "micro_steps is 0"),
        ({"unit": 0}, "unit is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"arithmetic": "float16"}, "arithmetic is float16; expected modular or exact or float64"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(change, words):
    options = {"mesh": {"batch": 2}, "psi": 4} | change
    with pytest.raises(ValueError, match=words) as error:
        simulate(schedule_of(STRATEGIES["zero1"]), options.pop("mesh"), options.pop("psi"), **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_view_that_the_step_before_left_is_padded_as_it_was_gathered(steps):
    schedule = read(str(ROOT / "tests" / "regressions" / "right_view_of_the_step_before.toml"))
    run = simulate(schedule, {"dp": 2}, 3, unit=3, steps=steps)
    predicted = predict_schedule(schedule, Sizes(3, {"dp": 2}, MIXED_ADAM, 3))
    assert run.peak == predicted.peak == 46
    assert run.resting == predicted.resting
