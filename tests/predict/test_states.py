"""Predictions against arithmetic done by hand, and their invariants."""

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from psem_model.check.placements import NotRealisable
from psem_model.predict import closed as symbolic
from psem_model.predict.states import predict, predict_many
from spec.checking.verdict import check
from spec.costs.memory import ledger, room
from spec.derivation.schedules import schedule_of
from spec.models.states import MIXED_ADAM, POLICIES, BytePolicy, State
from spec.numbers.arithmetic import DIVISIBLE
from spec.plans.modes import Mode
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES

ONE_AXIS = sorted(name for name, p in STRATEGIES.items() if len(p.axes) == 1)
sizes = st.integers(1, 2**40)
policies = st.builds(BytePolicy, st.integers(1, 8), st.integers(1, 8), st.integers(1, 32))


def by_hand(name, psi, n, p, m):
    """Resting bytes and elements sent, as the ZeRO paper and its successors state them."""
    c = ceil(Fraction(psi, n))
    ring = (n - 1) * c
    return {
        "dp": ((p.w + p.g + p.k) * psi, 2 * ring),
        "zero1": ((p.w + p.g) * psi + p.k * c, 2 * ring),
        "zero2": (p.w * psi + (p.g + p.k) * c, (m + 1) * ring),
        "zero3": ((p.w + p.g + p.k) * c, 3 * m * ring),
        "fsdp": ((p.w + p.g + p.k) * c, 3 * m * ring),
        "fsdp-hold": ((p.w + p.g + p.k) * c, 2 * m * ring),
        "zero-offload": (p.w * psi, (m + 1) * ring),
        "fused-update": ((p.w + p.k) * psi, 2 * m * ring),
    }[name]


@given(st.sampled_from(ONE_AXIS), sizes, sizes, policies, st.integers(1, 9))
def test_predictions_are_the_published_formulas_with_padding(name, psi, n, policy, m):
    m = 1 if name == "fused-update" else m
    found = predict(name, psi, n, policy, m)
    assert (found.total, found.elements) == by_hand(name, psi, n, policy, m)


@given(st.sampled_from(ONE_AXIS), st.integers(1, 10**6), st.integers(1, 2**20), policies)
def test_padding_never_predicts_less_than_the_closed_form(name, psi, n, policy):
    exact = predict(name, psi, n, policy)
    closed = predict(name, psi, n, policy, arithmetic=DIVISIBLE)
    assert 0 <= exact.total - closed.total < n * (policy.w + policy.g + policy.k)
    assert predict(name, psi * n, n, policy).total == n * closed.total


@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.integers(1, 10**9),
    st.integers(1, 64),
    st.integers(1, 64),
    st.integers(1, 10**9),
)
def test_the_peak_is_above_what_rests_and_everything_is_given_back(name, psi, a, b, unit):
    placement = STRATEGIES[name]
    mesh = dict(zip(placement.axes, (a, b), strict=False))
    found = predict(placement, psi, mesh, unit=min(unit, psi))
    assert found.peak >= found.total
    entries = ledger(found.schedule, found.total, lambda op: room(op, found.sizes))
    assert entries[-1] == found.total


def test_zero3_peaks_at_two_units_more():
    # one gathered unit of weights and one unit of gradients, both of 2 bytes, padded to 64 shards
    found = predict("zero3", 7_500_000_000, 64, unit=200_000_001)
    padded = 64 * ceil(Fraction(200_000_001, 64))
    assert found.peak - found.total == 2 * padded + 2 * 200_000_001


@pytest.mark.parametrize(
    ("modes", "room"),
    [
        # what passes at the fullest moment, in bytes, with Psi = 1000, N = 4, U = 100, 2 + 2 + 12
        (("M", "S", "S", "S"), 2 * 100 + 2 * 100),  # gathered from the cast slice; fresh gradient
        (("O", "S", "S", "S"), 2 * 100 + 2 * 100),  # fetched unit, fresh gradient
        (("R", "R", "O", "S"), 2 * 1000),  # the whole gradient comes back for its all-reduce
        (("R", "S*", "R", "S"), 12 * 100),  # a gathered unit of optimizer state
        (("R", "S*+O", "R", "S"), 12 * 25 + 12 * 100),  # fetched slice, gathered
        (("R", "R", "S*", "S"), 2 * 100),  # a gathered unit of gradient
    ],
)
def test_unusual_placements_take_the_room_of_what_passes(modes, room):
    found = predict(on_batch(*modes), 1000, 4, unit=100)
    assert found.peak - found.total == room


def test_a_unit_larger_than_the_model_is_the_model():
    assert predict("zero3", 10, 4, unit=1000) == predict("zero3", 10, 4, unit=10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"psi": -5},
        {"psi": 2.5},
        {"devices": 0},
        {"devices": (2, 2)},
        {"devices": -3},
        {"micro_steps": 0},
        {"unit": 0},
        {"policy": BytePolicy(2, 2, -1)},
        {"devices": {"shard": 4}},
    ],
)
def test_sizes_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"expected|no number"):
        predict("zero3", **{"psi": 10, "devices": 4, **wrong})


def test_hsdp_shards_inside_and_reduces_across():
    found = predict("hsdp", 8 * 10**6, {"replica": 4, "shard": 8})
    shard = 10**6
    assert found.total == 16 * shard
    assert found.elements == 3 * 7 * shard + 2 * 3 * (shard // 4)


def test_one_device_sends_nothing():
    for name, placement in STRATEGIES.items():
        mesh = dict.fromkeys(placement.axes, 1)
        assert predict(placement, 1001, mesh).elements == 0, name


def test_more_devices_than_parameters_leave_one_element_each():
    found = predict("zero3", 3, 2**40)
    assert (found.total, found.elements) == (16, 3 * (2**40 - 1))


def test_an_optimizer_without_state_takes_no_bytes():
    found = predict("zero1", 100, 4, POLICIES["fp32-sgd"])
    assert found.resting[State.OPTIMIZER] == 0


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@given(st.integers(1, 10**4), st.integers(1, 64), st.integers(1, 64), st.integers(1, 5))
def test_closed_forms_agree_with_exact_predictions_at_divisible_sizes(name, units, a, b, m):
    placement = STRATEGIES[name]
    m = 1 if name == "fused-update" else m
    mesh = dict(zip(placement.axes, (a, b), strict=False))
    psi = units * a * b
    exact = predict(placement, psi, mesh, micro_steps=m)
    for padded in (False, True):
        closed = symbolic.closed_form(schedule_of(placement), MIXED_ADAM, padded)
        symbols = symbolic.mesh_symbols(placement.axes)
        at = {symbolic.PSI: psi, symbolic.K: 12, symbolic.MICRO: m}
        at |= {symbols[axis]: size for axis, size in mesh.items()}
        pairs = [
            (closed.total, exact.total),
            (symbolic.peak_formula(closed), exact.peak),
            (closed.host, exact.host),
            (closed.elements, exact.elements),
            (closed.host_bytes, exact.host_bytes),
        ]
        for formula, value in pairs:
            assert sympy.sympify(formula).subs(at).doit() == value


@given(st.lists(st.tuples(sizes, sizes, st.integers(0, 64)), min_size=1, max_size=20))
def test_arrays_predict_what_single_numbers_do(rows):
    rows = [(1 + p % 10**12, 1 + n % 10**5, k) for p, n, k in rows]
    psi, n, k = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    for name in ("dp", "zero1", "zero2", "zero3"):
        found = predict_many(name, psi, n, k)
        for i, (p, devices, state) in enumerate(rows):
            one = predict(name, p, devices, BytePolicy(2, 2, state))
            assert (found["resting"][i], found["elements"][i]) == (one.total, one.elements)


WRONG_ARRAYS: dict[str, dict[str, Any]] = {
    "psi: given 0; expected whole numbers from 1 on": {"psi": np.array([5, 0])},
    "devices: given 0; expected whole numbers from 1 on": {"n": np.array([4, 0])},
    "psi: given float64; expected whole numbers": {"psi": np.array([10.5, 3])},
    "k: given -1; expected whole numbers from 0 on": {"k": np.array([0, -1])},
    "psi: given 9223372036854775808": {"psi": np.array([2**63], dtype=np.uint64)},
    "more than 63 bits": {"name": "dp", "psi": np.array([10**18]), "n": np.array([8])},
    "given the axes replica, shard; expected one": {"name": "hsdp"},
}


@pytest.mark.parametrize("words", WRONG_ARRAYS)
def test_arrays_of_no_sizes_or_that_do_not_fit_are_refused(words):
    usual: dict[str, Any] = {"name": "zero3", "psi": np.array([8, 9]), "n": np.array([2, 3]), "k": 12}
    name, psi, n, k = (usual | WRONG_ARRAYS[words]).values()
    with pytest.raises(ValueError, match=words):
        predict_many(name, psi, n, k)


@pytest.mark.parametrize("name", ["dp", "zero1", "zero3"])
@given(st.integers(0, 2**63 - 1), st.integers(1, 2**63 - 1))
def test_large_arrays_are_exact_or_refused(name, less, n):
    psi = np.array([2**63 - 1 - less] if less < 2**63 - 1 else [1])
    one = predict(name, int(psi[0]), n)
    if max(one.total, one.elements) < 2**63:
        found = predict_many(name, psi, np.array([n]))
        assert (found["resting"][0], found["elements"][0]) == (one.total, one.elements)
    else:
        with pytest.raises(ValueError, match="63 bits"):
            predict_many(name, psi, np.array([n]))


def test_arrays_of_narrower_numbers_and_of_none_are_taken():
    psi, n = (np.array([each], dtype=np.int32) for each in (2**30, 8))
    assert predict_many("zero3", psi, n)["resting"] == [2**31]
    assert predict_many("zero3", psi[:0], n[:0])["resting"].shape == (0,)


def test_one_number_of_devices_is_not_taken_for_several_axes():
    with pytest.raises(ValueError, match=r'of each, such as {"replica": 8, "shard": 8}'):
        predict("hsdp", psi=10, devices=8)


def test_a_placement_that_is_not_realisable_comes_with_a_diverging_run():
    with pytest.raises(NotRealisable) as refused:
        predict(on_batch("S", "S", "S", "S"), 10**9, 64)
    divergence = refused.value.divergence
    assert divergence is not None
    assert divergence.has != divergence.single


@given(st.tuples(*[st.sampled_from([m.value for m in Mode])] * 4), st.sampled_from([1, 2, 64]))
def test_a_placement_is_predicted_or_refused_with_a_diverging_run(modes, devices):
    placement = on_batch(*modes)
    accepted = check(schedule_of(placement), {"batch": min(devices, 3)}).accepted
    if accepted:
        assert predict(placement, 1000, devices).schedule == schedule_of(placement)
    else:
        with pytest.raises(NotRealisable) as refused:
            predict(placement, 1000, devices)
        assert refused.value.divergence is not None
