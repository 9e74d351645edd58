"""The norm of all gradients: how it lies is how the sums of squares of real slices lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.checking.norms import check_norm
from spec.checking.verdict import check
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, along
from spec.devices.mesh import ALL_WEIGHTS
from spec.language.schedule import Buffer, Kind
from spec.language.steps import of_gradient
from spec.models.training import PLAIN
from spec.models.values import Role, Value
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES

KEPT = [name for name, placed in STRATEGIES.items() if schedule_of(placed).finish]
WEIGHT = Value("w", ("h", "f"), Role.WEIGHT)


@given(st.sampled_from([WHOLE, along("h"), along("f")]), st.integers(2, 4), st.integers(0, 9))
def test_a_sum_over_devices_is_the_square_norm_where_the_rule_says_terms(lie, devices, seed):
    gradient = np.random.default_rng(seed).integers(1, 9, (devices * 2, devices * 3))
    axis = WEIGHT.indices.index(lie.index) if lie.index else None
    has = [gradient] * devices if axis is None else np.split(gradient, devices, axis)
    squares = [int((each**2).sum()) for each in has]
    whole = int((gradient**2).sum())
    assert of_gradient(WEIGHT, lie) == (PARTIAL if sum(squares) == whole else WHOLE)
    assert (of_gradient(WEIGHT, lie) == WHOLE) == (squares == [whole] * devices)


def test_a_gradient_in_terms_has_no_norm_yet():
    with pytest.raises(LayoutError, match="in terms"):
        of_gradient(WEIGHT, PARTIAL)


@pytest.mark.parametrize("name", KEPT)
def test_a_derived_schedule_clips_by_the_norm_that_a_single_device_takes(name):
    schedule = clipped(schedule_of(STRATEGIES[name]))
    for mesh in (dict.fromkeys(schedule.axes, size) for size in (1, 2, 3)):
        assert check(schedule, mesh, 2).accepted


@pytest.mark.parametrize("name", KEPT)
def test_a_schedule_that_does_not_clip_is_not_one_that_does(name):
    derived = schedule_of(STRATEGIES[name])
    schedule = clipped(derived)
    assert schedule.training != PLAIN
    kinds = (Kind.SQUARE_NORM, Kind.CLIP)
    rest = [op for op in schedule.finish if op.source is not Buffer.NORM and op.kind not in kinds]
    assert tuple(rest) == derived.finish


def test_a_slice_that_is_applied_to_gathered_states_is_clipped_by_the_norm_of_all_slices():
    schedule = clipped(schedule_of(on_batch("S*", "S*", "S", "S")))
    assert check(schedule, {"batch": 2}, 2).accepted


def test_where_no_gradient_of_the_whole_step_is_kept_none_can_be_clipped():
    with pytest.raises(ValueError, match="each micro-step applies its own gradient"):
        clipped(schedule_of(STRATEGIES["fused-update"]))


@given(st.lists(st.sampled_from(["batch", "tensor", "expert", ALL_WEIGHTS]), unique=True))
def test_only_a_sum_over_all_that_cuts_a_weight_and_over_weights_last_is_right(axes):
    schedule = clipped(schedule_of(STRATEGIES["zero1"]), of_all=(ALL_WEIGHTS,))
    (line,) = (op for op in schedule.finish if op.source is Buffer.NORM)
    norms = {"w": {"tensor": PARTIAL, "expert": WHOLE, ALL_WEIGHTS: PARTIAL}}
    index = schedule.finish.index(line)
    wrong = {*axes} - {"batch"} != {"tensor", ALL_WEIGHTS} or axes[-1] != ALL_WEIGHTS
    changed = replace(line, axes=tuple(axes))
    finish = (*schedule.finish[:index], changed, *schedule.finish[index + 1 :])
    try:
        check_norm(replace(schedule, finish=finish), norms, 0)
        found = False
    except LayoutError:
        found = True
    assert found is wrong
