"""Sizes of which nothing is said: what is decided for them is decided for all but a few."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from proofs.registry import ROOT
from psem_model.reading.schedules import loads
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import MICRO_STEPS, Kind, Monomial, Op
from spec.numbers.any_size import Comparison, Polynomial, any_size
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES

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


@given(polynomials(), polynomials(), st.integers(1, 40), st.integers(1, 40))
def test_what_is_the_same_or_not_is_so_for_all_sizes_but_those_that_are_found(a, b, n, m):
    sizes, comparison = {"n": n, "m": m}, Comparison()
    same = comparison.same(a(SIZES), b(SIZES))
    found = comparison.exceptions()
    if any(sizes[name] in numbers for name, numbers in found.items()):
        event("an exception")
    elif min(n, m) > 1 and any(c.at(sizes) == 0 for c in comparison.conditions()):
        event("a condition")
    elif min(n, m) > 1 or len(found) == 1:
        assert same == (a(sizes) == b(sizes))


@given(polynomials(), st.integers(1, 40), st.integers(1, 40))
def test_a_polynomial_has_at_sizes_the_value_that_is_worked_out_of_them(a, n, m):
    number, sizes = a(SIZES), {"n": n, "m": m}
    if isinstance(number, Polynomial):
        assert number.at(sizes) == a(sizes)
    else:
        assert number == a(sizes)


@given(polynomials())
def test_where_a_polynomial_is_zero_two_sums_without_a_minus_are_equal(a):
    number = a(SIZES)
    if isinstance(number, Polynomial):
        above, below = number.sides
        assert isinstance(above, Polynomial) and number in (above - below, -1 * (above - below))
        assert "-" not in f"{above} {below}"


@given(polynomials())
def test_a_number_is_the_same_as_itself(a):
    comparison = Comparison()
    assert comparison.same(a(SIZES), a(SIZES)) and not comparison.differences


@given(st.integers(1, 9), st.integers(1, 3))
def test_a_product_times_its_inverse_is_one(times, power):
    product_ = times * SIZES["n"] ** power * SIZES["m"]
    assert product_**-1 * product_ == 1


def test_any_size_to_no_power_is_one():
    n = SIZES["n"]
    assert n**0 == 1 == (n + 1) ** 0


def test_a_polynomial_is_written_as_it_is_typed():
    n, m = SIZES["n"], SIZES["m"]
    assert str(n * n * m + 2 * n) in ("n^2*m + 2*n", "2*n + n^2*m", "m*n^2 + 2*n", "2*n + m*n^2")


@given(st.integers(1, 40))
def test_a_size_that_may_be_a_number_is_not_it_in_general(number):
    n, comparison = SIZES["n"], Comparison()
    assert not comparison.same(n, number)
    assert comparison.exceptions() == {"n": {number}}
    assert not comparison.same(n, SIZES["m"])
    assert [str(c) for c in comparison.conditions()] == ["n - m"]


@pytest.mark.parametrize("name", [s for s in STRATEGIES if s != "fused-update"])
def test_a_named_strategy_is_accepted_with_sizes_and_micro_steps_of_which_nothing_is_said(name):
    schedule = schedule_of(STRATEGIES[name])
    mesh, comparison = {axis: any_size(axis) for axis in schedule.axes}, Comparison()
    for micro_steps in (1, 2, any_size(MICRO_STEPS)):
        assert check(schedule, mesh, micro_steps, comparison=comparison).accepted
    assert not any(comparison.exempt.values())


def test_a_schedule_that_is_right_for_one_size_is_wrong_in_general():
    dp = schedule_of(STRATEGIES["dp"])
    reduce, update, reset = dp.finish
    fifth = Op(Kind.SCALE, reduce.phase, reduce.source, by=Monomial(Fraction(1, 5)))
    wrong = replace(dp, finish=(reduce, reduce, fifth, update, reset))
    accepted = [n for n in range(1, 9) if check(wrong, {BATCH: n}).accepted]
    assert accepted == [5]
    comparison = Comparison()
    assert not check(wrong, {BATCH: any_size("n")}, comparison=comparison).accepted
    assert 5 in comparison.exceptions()["n"]


def test_a_size_and_its_inverse_make_a_number_also_inside_a_norm():
    text = (ROOT / "examples" / "loss_scale_and_clip.toml").read_text()
    for old, new in (
        ('  { op = "scale", source = "fresh gradients", by = 1024 },\n', ""),
        ('axes = ["batch"] },', 'axes = ["batch"], mean = true },'),
        ('"1/1024"', '"batch"'),
    ):
        assert old in text
        text = text.replace(old, new)
    assert check(loads(text, "it"), {BATCH: any_size("n")}, 2).accepted
