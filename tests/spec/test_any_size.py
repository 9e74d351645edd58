"""Sizes of which nothing is said: what is decided for one from three on is decided for all."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from proofs.registry import ROOT
from psem_model.reading.schedules import loads
from spec.any_size import LEAST, any_size, same
from spec.derive import derive
from spec.placement import BATCH
from spec.schedule import Factor, Kind, Op
from spec.space import Kept, Regime, placement_of, verdicts
from spec.strategies import STRATEGIES
from spec.verdict import check
from tests.support.schedules import schedules

SIZES = dict(zip("nm", map(any_size, "nm"), strict=True))


@st.composite
def polynomials(draw):
    """A polynomial in one or two sizes, and how it is worked out from numbers."""
    terms = draw(
        st.lists(st.tuples(st.integers(-6, 6), st.lists(st.sampled_from("nm"), max_size=3)), max_size=4)
    )

    def at(sizes):
        total = 0
        for times, names in terms:
            term = times
            for name in names:
                term = term * sizes[name]
            total = total + term
        return total

    return at


@given(polynomials(), polynomials(), st.integers(LEAST, 40), st.integers(LEAST, 40))
def test_what_is_the_same_or_not_is_so_for_every_size(a, b, n, m):
    sizes = {"n": n, "m": m}
    try:
        found = same(a(SIZES), b(SIZES))
    except ValueError:
        return
    assert found == (a(sizes) == b(sizes))


@given(polynomials())
def test_a_number_is_the_same_as_itself(a):
    assert same(a(SIZES), a(SIZES))


@given(st.integers(1, 9), st.integers(1, 3))
def test_a_product_times_its_inverse_is_one(times, power):
    product_ = times * SIZES["n"] ** power * SIZES["m"]
    assert same(product_**-1 * product_, 1)


def test_any_size_to_no_power_is_one():
    n = SIZES["n"]
    assert same(n**0, 1) and same((n + 1) ** 0, 1)


def test_a_polynomial_is_written_as_it_is_typed():
    n, m = SIZES["n"], SIZES["m"]
    assert str(n * n * m + 2 * n) in ("n^2*m + 2*n", "2*n + n^2*m", "m*n^2 + 2*n", "2*n + m*n^2")


@given(st.integers(LEAST, 40))
def test_a_size_that_may_be_a_number_is_neither_it_nor_another(number):
    n = SIZES["n"]
    assert not same(n, 1) and not same(n * n, n) and not same(n - 1, 0)
    with pytest.raises(ValueError, match="depends on the sizes"):
        same(n, number)
    with pytest.raises(ValueError, match="depends on the sizes"):
        same(n, SIZES["m"])


@pytest.mark.parametrize("name", [s for s in STRATEGIES if s != "fused-update"])
def test_a_named_strategy_is_accepted_with_sizes_of_which_nothing_is_said(name):
    schedule = derive(STRATEGIES[name])
    for micro_steps in (1, 2, 3):
        mesh = {axis: any_size(axis) for axis in schedule.axes}
        assert check(schedule, mesh, micro_steps, same=same).accepted


def test_a_schedule_that_is_right_for_one_size_is_not_decided_for_all():
    dp = derive(STRATEGIES["dp"])
    reduce, update, reset = dp.finish
    fifth = Op(Kind.SCALE, reduce.phase, reduce.source, by=Factor(Fraction(1, 5)))
    wrong = replace(dp, finish=(reduce, reduce, fifth, update, reset))
    accepted = [n for n in range(1, 9) if check(wrong, {BATCH: n}).accepted]
    assert accepted == [5]
    with pytest.raises(ValueError, match="depends on the sizes"):
        check(wrong, {BATCH: any_size("n")}, same=same)


def test_operations_that_speak_of_other_devices_than_the_owner_need_a_number():
    zero1 = derive(STRATEGIES["zero1"])
    ops = [replace(op, shift=1) if op.kind is Kind.ALL_GATHER else op for op in zero1.finish]
    with pytest.raises(ValueError, match="operations speak of 2 devices"):
        check(replace(zero1, finish=tuple(ops)), {BATCH: any_size("n")}, same=same)


@pytest.mark.parametrize(("kept", "several"), list(product(Kept, (False, True))))
def test_a_placement_is_realisable_on_any_size_if_it_is_on_numbers(kept, several):
    regime = Regime(kept, several)
    for modes, found in list(verdicts(regime).items())[:: 1 + 6 * several]:
        schedule = derive(placement_of(modes))
        for n in (3, 4, 7):
            there = check(schedule, {BATCH: n}, 2 if several else 1, regime.policy)
            assert there.accepted == found.accepted


@given(schedules(), st.lists(st.integers(LEAST, 9), min_size=3, max_size=3))
def test_what_is_accepted_for_any_size_is_accepted_for_each(drawn, numbers):
    schedule, _, micro_steps, policy = drawn
    mesh = {axis: any_size(axis) for axis in schedule.axes}
    try:
        accepted = check(schedule, mesh, micro_steps, policy, same).accepted
    except ValueError:
        accepted = False
    event(f"accepted: {accepted}")
    if accepted:
        sizes = dict(zip(schedule.axes, numbers, strict=False))
        assert check(schedule, sizes, micro_steps, policy).accepted


def test_a_size_and_its_inverse_make_a_number_also_inside_a_norm():
    text = (ROOT / "examples" / "loss_scale_and_clip.toml").read_text()
    for old, new in (
        ('  { op = "scale", source = "fresh gradients", by = 1024 },\n', ""),
        ('axes = ["batch"] },', 'axes = ["batch"], mean = true },'),
        ('"1/1024"', '"batch"'),
    ):
        assert old in text
        text = text.replace(old, new)
    assert check(loads(text, "it"), {BATCH: any_size("n")}, 2, same=same).accepted
