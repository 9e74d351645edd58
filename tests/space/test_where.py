"""Placements within bounds on their cost: the solver's answer, and that of trying all of them."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.space.placements import Space
from psem_model.space.verdicts import verdicts
from psem_model.space.where import Asked, bounds
from psem_model.text.errors import BadInput
from spec.choosing.halves import AGREED, CURRENT, FRESH, INTEGRITY, both_halves
from spec.choosing.regimes import REGIMES, Kept, placement_of, regime_of
from spec.choosing.requirements import Truths
from spec.choosing.space import cost, realisable
from spec.costs.memory import Sizes
from spec.models.states import POLICIES, State
from spec.numbers.arithmetic import DIVISIBLE
from spec.plans.modes import Mode
from spec.plans.placement import BATCH
from tests.support.command import exact
from tests.support.examples import examples

MANY = 10**6  # devices that stand for all large numbers


@pytest.mark.parametrize("regime", REGIMES)
def test_the_checker_accepts_the_placements_whose_modes_are_realisable(regime):
    accepted = {modes for modes, verdict in verdicts(regime).items() if verdict.accepted}
    assert accepted == {*realisable(regime)}


def with_both_halves(regime, besides=""):
    """The placements that have gradient integrity and state consistency, but for one condition."""
    return {
        modes
        for modes in product(Mode, repeat=len(State))
        if all(
            holds
            for own in (True, False)
            for name, holds in both_halves(regime, Truths(modes), own).items()
            if name != besides
        )
    }


@pytest.mark.parametrize("regime", REGIMES)
def test_realisable_placements_are_those_that_have_both_halves(regime):
    assert with_both_halves(regime) == {*realisable(regime)}


@pytest.mark.parametrize("condition", [INTEGRITY, FRESH, CURRENT, AGREED])
@pytest.mark.parametrize("regime", REGIMES)
def test_without_one_condition_of_the_halves_more_placements_have_them(regime, condition):
    if condition == AGREED and regime.optimizer is not Kept.NO_STATE:
        return  # slices that rest on devices are not updated on a host
    assert with_both_halves(regime, condition) > {*realisable(regime)}


@pytest.mark.parametrize("regime", REGIMES)
def test_where_a_verdict_names_a_rule_the_condition_of_this_name_fails(regime):
    named = {"whole": {INTEGRITY}, "fresh": {FRESH}, "current": {CURRENT}}
    for modes, verdict in verdicts(regime).items():
        on_two = [both_halves(regime, Truths(modes), own) for own in (True, False)]
        failed = {name for on_one in on_two for name, holds in on_one.items() if not holds}
        assert failed & named.get(verdict.rule, {FRESH, CURRENT, AGREED}) or verdict.accepted


@cache
def costs(policy, devices, steps):
    """Of all realisable placements, by their first three modes, for one parameter."""
    sizes = Sizes(Fraction(1), {BATCH: devices}, policy, None, DIVISIBLE)
    right = realisable(regime_of(policy, steps))
    return {modes[:3]: cost(placement_of(modes), sizes, steps) for modes in right}


def within(found, limits, devices):
    return all(
        getattr(found, name) <= a + Fraction(b, devices)
        for name, (a, b) in zip(NAMES, limits, strict=True)
    )


NAMES = ("resting", "sent", "host")
limits = st.tuples(*[st.tuples(st.integers(0, 18), st.integers(0, 16))] * 3)


@pytest.mark.slow
@examples(12)
@given(
    limits,
    st.sampled_from(["mixed-adam", "fp32-adam", "fp32-sgd"]),
    st.sampled_from([2, 3, 8, None]),
    st.sampled_from([1, 3]),
)
def test_what_serves_is_what_trying_all_finds(limits, policy, devices, steps):
    """Bounds and costs are linear in 1/N: within them on 2 and on very many devices is on all."""
    text = ", ".join(f"{n} <= {a}*Psi + {b}*Psi/N" for n, (a, b) in zip(NAMES, limits, strict=True))
    asked = Asked(Space(devices or 8, POLICIES[policy], steps), bounds(text), devices is None)
    tried = [devices] if devices else [2, 3, 5, MANY]
    each = [costs(POLICIES[policy], n, steps) for n in tried]
    serve = {
        " ".join(mode.value for mode in modes)
        for modes in each[0]
        if all(within(found[modes], limits, n) for found, n in zip(each, tried, strict=True))
    }
    assert {modes for row in asked.rows for modes in row.modes} >= serve
    assert {row.modes[0] for row in asked.rows} <= serve
    if not serve:
        core = asked.why_none()
        assert all(count > 0 for name, count in core.items() if len(core) > 1)
        assert {*core} & {bound.text for bound in asked.bounds}


@pytest.mark.slow
def test_bounds_that_no_placement_meets_are_named(psem):
    code, out, _ = psem("space", "--where", "resting <= 16*Psi, sent <= 1*Psi")
    assert code == 1
    assert "no placement serves" in out
    assert "sent <= 1*Psi (the others of these alone: 210 placements)" in out
    assert "\n  resting <= 16*Psi (" not in out


@pytest.mark.slow
def test_zero3_serves_where_its_cost_is_asked_for(psem):
    code, out, _ = psem("space", "--where", "resting <= 16*Psi/N, sent <= 6*Psi, host <= 0", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["devices"] is None
    (zero3,) = (row for row in found["serve"] if "S* S S" in row["placements"])
    assert exact(zero3["bytes_per_parameter"]["resting"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["sent*(N-2)*(N-3) >= 0", "resting <= 1" + 400 * "0" + "*Psi"])
def test_every_number_of_devices_is_every_whole_number(bound):
    """The first is wrong between 2 and 3 alone."""
    asked = Asked(Space(8, POLICIES["mixed-adam"], 1), bounds(bound), every_number=True)
    assert sum(len(row.modes) for row in asked.rows) == 70


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("resting", "an inequality"),
        ("resting == 2", "an inequality"),
        ("restin <= 2", "nearest: resting"),
        ("resting <= __import__('os')", "numbers"),
        ("resting <= 2**Psi", "+, -, * and /"),
        ("resting <= 'x'", "numbers and"),
        ("resting <= -2", "numbers"),
        ("N <= 3", "a bound on resting, sent, host"),
        ("resting <=", "inequalities between commas"),
        ("", "inequalities between commas"),
        ("resting <= 1, ", "inequalities between commas"),
        ("resting <= True", "numbers and"),
        ("resting <= 2 if N else 3", "an inequality"),
        ("resting <= (lambda: 3)", "numbers"),
        ("resting <= [1]", "numbers"),
        ("resting <= 1j", "numbers and"),
        ("resting <= 1e999", "numbers and"),
        ("resting <= " + "+".join(["Psi"] * 1500), "at most 500 characters"),
        ("resting <= N/0", "a size to divide by"),
    ],
)
def test_what_is_no_bound_is_refused_in_one_line(text, words):
    with pytest.raises(BadInput) as found:
        bounds(text)
    assert words in str(found.value)
    assert "\n" not in str(found.value)
