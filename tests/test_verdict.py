"""The verdict against the reference run: what is accepted matches, what is rejected diverges."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec.derive import derive
from spec.modes import Mode
from spec.placement import on_batch
from spec.reference import first_divergence
from spec.states import POLICIES
from spec.strategies import STRATEGIES
from spec.verdict import check

SYMBOLS = [mode.value for mode in Mode]
PLACEMENTS = list(product(SYMBOLS, repeat=4))
REALISABLE = [q for q in PLACEMENTS if check(derive(on_batch(*q)), {"batch": 5}).accepted]


def agree(schedule, sizes, micro_steps, policy=POLICIES["mixed-adam"]):
    """The verdict and the reference run say the same; returns whether it is accepted."""
    verdict = check(schedule, sizes, micro_steps, policy)
    divergence = first_divergence(
        schedule,
        sizes,
        steps=4,
        micro_steps=micro_steps,
        stateful=policy.k > 0,
        master=policy.master,
    )
    assert verdict.accepted == (divergence is None), f"{verdict.reason} / {divergence}"
    return verdict.accepted


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_every_placement_of_an_axis_is_accepted_exactly_when_it_matches(devices):
    accepted = [q for q in PLACEMENTS if agree(derive(on_batch(*q)), {"batch": devices}, 1)]
    # on several devices: parameters R, S*, M or O; activations S, M or O; optimizer R, S, S* or O
    # with gradients R, S*, M or O, or gradients S with optimizer S; and, where parameters keep no
    # whole copy (S*, M), a whole update from a gradient slice, of which only the slice is kept
    assert devices == 1 or len(accepted) == (4 * (4 * 4 + 1) + 2) * 3


def test_an_optimizer_without_state_may_be_materialized():
    stateless = POLICIES["fp32-sgd"]
    accepted = [
        q for q in PLACEMENTS if q[1] == "M" and agree(derive(on_batch(*q)), {"batch": 3}, 1, stateless)
    ]
    assert ("R", "M", "R", "S") in accepted
    assert all(q[0] != "M" for q in accepted)  # nothing would be left to start from


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("micro_steps", [1, 3])
def test_named_strategies_match_but_for_accumulating_fused_updates(name, micro_steps):
    schedule = derive(STRATEGIES[name])
    for sizes in product([1, 2, 3], repeat=len(schedule.axes)):
        accepted = agree(schedule, dict(zip(schedule.axes, sizes, strict=True)), micro_steps)
        assert accepted == (name != "fused-update" or micro_steps == 1)


@st.composite
def broken(draw):
    """A realisable schedule with a few operations dropped, repeated, moved or misdirected."""
    placements = [on_batch(*q) for q in REALISABLE]
    placement = draw(st.sampled_from([*placements, *[STRATEGIES["hsdp"]] * 40]))
    schedule = derive(placement)
    parts = [list(schedule.micro_step), list(schedule.finish)]
    everything = parts[0] + parts[1]
    for _ in range(draw(st.integers(1, 3))):
        part = draw(st.sampled_from([p for p in parts if p] or [[everything[0]]]))
        i = draw(st.integers(0, len(part) - 1))
        action = draw(st.sampled_from(["drop", "repeat", "swap", "insert", "axes", "within"]))
        if action == "drop":
            del part[i]
        elif action == "repeat":
            part.insert(draw(st.integers(0, len(part))), part[i])
        elif action == "swap":
            j = draw(st.integers(0, len(part) - 1))
            part[i], part[j] = part[j], part[i]
        elif action == "insert":
            part.insert(i, draw(st.sampled_from(everything)))
        elif action == "axes" and part[i].axes:
            some = [(), schedule.axes, schedule.axes[:1], schedule.axes[-1:]]
            axes = tuple(a for a in draw(st.sampled_from(some)) if a not in part[i].within)
            part[i] = replace(part[i], axes=axes)
        elif action == "within":
            some = [(), schedule.axes, schedule.axes[:1]]
            within = tuple(a for a in draw(st.sampled_from(some)) if a not in part[i].axes)
            part[i] = replace(part[i], within=within)
    sizes = {axis: draw(st.integers(1, 3)) for axis in schedule.axes}
    made = replace(schedule, micro_step=tuple(parts[0]), finish=tuple(parts[1]))
    return made, sizes, draw(st.integers(1, 3))


@settings(max_examples=1500)
@given(broken())
def test_broken_schedules_are_rejected_exactly_when_they_diverge(case):
    agree(*case)


@pytest.mark.parametrize("devices", [1, 3])
def test_without_a_master_copy_parameters_cannot_be_materialized_from_it(devices):
    no_copy = POLICIES["fp32-adam"]
    accepted = [q for q in PLACEMENTS if agree(derive(on_batch(*q)), {"batch": devices}, 1, no_copy)]
    assert ("R", "S", "S", "S") in accepted
    assert all(q[0] != "M" for q in accepted)


def test_a_host_update_of_device_parameters_needs_a_master_copy():
    offload = derive(STRATEGIES["zero-offload"])
    assert agree(offload, {"batch": 3}, 2, POLICIES["mixed-adam"])
    assert not agree(offload, {"batch": 3}, 2, POLICIES["fp32-adam"])


def test_a_rejection_says_what_there_is_and_what_is_needed():
    verdict = check(derive(on_batch("S", "S", "S", "S")), {"batch": 8})
    assert verdict.rule == "fresh"
    assert "only on the owner" in verdict.has
    assert verdict.needs == "the current weight"


def test_useless_but_harmless_work_is_accepted():
    # a whole update from a gradient slice is wrong on the other devices, which then drop it
    assert agree(derive(on_batch("S*", "S*", "S", "S")), {"batch": 3}, 1)
