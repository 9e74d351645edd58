"""Layers that are alike fill the same buckets, and cost the same, as if each were listed."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict import units, weights
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.units import Weights, buckets, dealt, in_slices, owned, size_of
from spec.costs.memory import Unit, Vector
from spec.models.profiles import Padding, Units
from spec.models.states import State
from tests.support.examples import examples
from tests.support.profiled_plans import WITH_OWNERS, gathered_ahead, profiled, profiled_as

SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=4)
FIGURES = "peak", "total", "host", "bytes", "elements", "host_bytes", "buckets", "resting", "transient"


def listed(runs, least, width):
    """Buckets of layers one by one."""
    alone = [size for sizes, times in runs for _ in range(times) for size in sizes]
    return buckets([(alone, 1)], least, width)


@given(st.lists(st.tuples(SIZES, st.integers(1, 300)), min_size=1, max_size=3), st.data())
def test_buckets_of_layers_that_are_alike_are_those_of_the_layers_one_by_one(runs, data):
    least = data.draw(st.integers(1, 400)), data.draw(st.integers(1, 400))
    found = Counter[int]()
    for size, times in buckets(runs, least, 2):
        found[size] += times
    assert found == Counter(size for size, _ in listed(runs, least, 2))


@examples(60)
@given(profiled() | gathered_ahead(), st.data())
def test_a_plan_in_buckets_costs_what_it_does_with_its_layers_one_by_one(plan, data):
    layers = plan.pipe.virtual_stages * data.draw(st.integers(1, 12))
    least = data.draw(st.integers(1, 9000)), data.draw(st.integers(1, 9000))
    profile = replace(plan.profile, units=Units.BUCKET, buckets=least)
    model = replace(plan.model, layers=max(layers, plan.model.layers))
    alike, alone = (replace(plan, model=model, profile=profile, unit=None) for _ in range(2))
    found = [getattr(alike.fullest, figure) for figure in FIGURES]
    before, units.buckets = units.buckets, listed
    try:
        expected = [getattr(alone.fullest, figure) for figure in FIGURES]
    finally:
        units.buckets = before
    assert found == expected


RUNS = st.lists(st.tuples(SIZES, st.integers(1, 60)), min_size=1, max_size=3)


@given(RUNS, st.integers(1, 12))
def test_owners_of_layers_that_are_alike_have_what_they_are_dealt_one_by_one(runs, devices):
    of = tuple(Weights(tuple(map(Vector, sizes)), times) for sizes, times in runs)
    one_by_one = [Counter[int]() for _ in range(devices)]
    for vector in (vector for each in dealt(of, devices) for vector in each.vectors):
        one_by_one[vector.owner][size_of(vector)] += 1
    found = owned(of, devices)
    assert [dict(row.weight_sizes) for row in found for _ in range(row.devices)] == one_by_one


@pytest.mark.parametrize("devices", [3, 100_000])
def test_owners_that_own_alike_are_as_few_rows_as_there_are_sizes_and_one(devices):
    weights = (Weights((Vector(7), Vector(5), Vector(7))), Weights((Vector(3),), times=1000))
    rows = owned(weights, devices)
    assert sum(row.devices for row in rows) == devices
    assert len(rows) <= 3 + 1


@examples(60)
@given(WITH_OWNERS, st.data())
def test_a_plan_of_owners_costs_what_it_does_with_its_weights_dealt_one_by_one(plan, data):
    model = replace(plan.model, layers=plan.pipe.virtual_stages * data.draw(st.integers(1, 12)))
    alike, alone = (replace(plan, model=model) for _ in range(2))
    found = [getattr(alike.fullest, figure) for figure in FIGURES]
    before, weights._pass_in_slices = weights._pass_in_slices, lambda schedule, axes: True
    try:
        expected = [getattr(alone.fullest, figure) for figure in FIGURES]
    finally:
        weights._pass_in_slices = before
    assert found == expected


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=5),
    st.integers(1, 40),
    st.integers(0, 3),
)
def test_slices_of_one_vector_have_what_they_have_element_by_element(of, slice_, more):
    listed = [
        n for n, size in enumerate(s for s, times in of for _ in range(times)) for _ in range(size)
    ]
    parts = [listed[start : start + slice_] for start in range(0, len(listed), slice_)]
    expected = [Counter(Counter(part).values()) for part in parts] + [Counter()] * more
    rows = in_slices([Unit((Vector(size),), times) for size, times in of], slice_, len(expected))
    assert [Counter(row.weight_sizes) for row in rows for _ in range(row.devices)] == expected


def test_slices_of_one_vector_are_at_most_two_rows_for_where_each_unit_begins_and_ends():
    rows = in_slices([Unit((Vector(10**30),)), Unit((Vector(5),))], 2, 10**30)
    assert len(rows) <= 2 * (2 + 2)
    assert sum(row.devices for row in rows) == 10**30


SHAPE = {"block": "llama", "layers": "3", "hidden": "10", "heads": "2", "sequence": "4"}


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("vocabulary", ["11", "12"])
@pytest.mark.parametrize("units", Units)
def test_deepspeeds_weights_are_padded_once_in_whichever_units_gradients_pass(
    devices, vocabulary, units
):
    """As align_dense_tensors pads them: to a multiple of two elements for each process."""
    asked = Asked(
        "predict",
        f"zero-offload({devices})",
        model=SHAPE | {"vocabulary": vocabulary},
        profile="zero-offload",
    )
    plan = read(asked)
    passing: dict[str, Any] = {"units": units, "buckets": (500, 500)}
    plan = replace(plan, profile=replace(plan.profile, **passing))
    padded = next(n for n in range(int(plan.psi), 10**6) if n % (2 * devices) == 0)
    (group,) = plan.stages[0].groups
    assert plan.profile.padding is Padding.VECTOR
    assert group.costs.resting[State.PARAMETERS] == 2 * padded
    hosted = group.costs.hosted
    assert hosted[State.OPTIMIZER] == plan.policy.of(State.OPTIMIZER) * padded // devices
    assert hosted[State.GRADIENTS] - group.brought == 4 * padded // devices
    sent = {moved.collective: moved.elements for moved in group.costs.moves}
    assert sent["all_gather"] == (devices - 1) * padded // devices
    ddp = read(replace(asked, strategy=f"dp({devices})", profile="ddp"))
    passing |= {"units": Units.LAYER} if units is Units.LARGEST else {}  # sizes are known
    ddp = replace(ddp, profile=replace(ddp.profile, **passing))
    of_ddp = sum(move.elements for group in ddp.stages[0].groups for move in group.costs.moves)
    assert sent["all_reduce"] == of_ddp  # buckets are summed whole
    (group,) = replace(plan, profile=replace(plan.profile, sums_whole=False)).stages[0].groups
    owned_least = max(0, plan.psi - (devices - 1) * padded // devices)
    sent = {moved.collective: moved.elements for moved in group.costs.moves}
    assert sent["reduce_scatter"] == plan.psi - owned_least


@pytest.mark.parametrize(
    ("strategy", "cut"), [("zero2(2)", Padding.VECTOR), ("zero3(2)", Padding.ELEMENT)]
)
def test_one_vector_is_of_weights_that_rest_whole_and_of_slices_units_are_cut_apart(
    strategy, cut, tmp_path
):
    assert profiled_as('padding = "vector"', tmp_path, strategy).profile.padding is cut
