"""More devices along tensor parallelism than key-value heads: copies of these, and their sums."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.plan import Plan
from spec.checking.steps import check_step
from spec.checking.verdict import check
from spec.costs.model_costs import elements
from spec.derivation.steps import derive
from spec.devices.layouts import LayoutError
from spec.language.schedule import COLLECTIVE_KINDS, Phase
from spec.language.steps import Group
from spec.models.parts import parts
from spec.models.transformer import Transformer
from spec.plans.compose import Product, factor, with_copies
from tests.support.examples import examples

OF_TENSOR = st.sampled_from(["tp", "tp+sp"])
OF_STATES = st.sampled_from(["dp", "zero1", "zero2", "zero3", "zero1+all", "zero3+all"])
COPIED = {"key_weight", "value_weight", "key_bias", "value_bias"}


def model(kv_heads, group, **more):
    return Transformer(2, 8, kv_heads * group, kv_heads, 2, 2 * kv_heads * group, 16, **more)


def plan(name, states, kv_heads, copies, group, **more):
    """On `copies` devices for each of the key-value heads."""
    product = Product((factor(states), factor(name)))
    sizes = {"batch": 2, "tensor": kv_heads * copies}
    product, sizes = with_copies(product, sizes, kv_heads, group)
    return Plan(model(kv_heads, group, **more), product, sizes, sequence=kv_heads * copies)


def sent(costs):
    return sum(traffic.bytes for traffic in costs.traffic)


@given(st.integers(1, 32), st.integers(1, 32), st.integers(1, 8))
def test_an_axis_becomes_two_just_where_heads_are_copied_evenly(devices, heads, group):
    product, sizes = Product((factor("zero1"), factor("tp"))), {"batch": 3, "tensor": devices}
    found, split = with_copies(product, sizes, heads, group)
    copies, rest = divmod(devices, heads)
    if rest or copies < 2 or group % copies:
        assert (found, split) == (product, sizes)
    else:
        assert split == {"batch": 3, "tensor": heads, "tensor_copies": copies}
        assert [*split] == [*found.axes]


@given(OF_TENSOR)
def test_states_placed_along_an_axis_are_placed_along_its_copies_too(name):
    states, cuts = factor("zero1", "tensor"), factor(name)
    found, _ = with_copies(Product((cuts, states)), {"tensor": 8}, 2, 4)
    for modes in dict(found.states.modes).values():
        assert dict(modes)["tensor"] == dict(modes)["tensor_copies"]


@pytest.mark.parametrize("name", ["tp", "tp+sp"])
@pytest.mark.parametrize("states", ["zero1", "zero3+all"])
def test_what_copies_find_of_a_gradient_is_summed_over_them_and_of_no_other_weight_of_a_head(
    name, states
):
    step = check_step(plan(name, states, 2, 2, 4).step)
    for weight, axes in step.summed_over().items():
        of_head = weight.partition("_")[0] in ("query", "key", "value")
        if of_head or weight == "output_weight":
            assert ("tensor_copies" in axes) is (weight in COPIED)
    for group in step.groups:
        assert check(group.schedule, dict.fromkeys(group.schedule.axes, 2)).accepted


@pytest.mark.parametrize("name", ["tp", "tp+sp"])
def test_copies_whose_gradients_are_not_summed_are_rejected(name):
    found = plan(name, "zero1", 2, 2, 4)
    step, other = found.step, derive(Product((factor("zero1"),)), parts(found.model)).groups[0]
    groups = [Group(g.weights, other.schedule) if "key_weight" in g.weights else g for g in step.groups]
    with pytest.raises(LayoutError, match="key_weight is to be summed over batch x tensor_copies"):
        check_step(replace(step, groups=tuple(groups)))
    (schedule,) = (g.schedule for g in step.groups if "key_weight" in g.weights)
    sums = [op for op in schedule.ops if op.phase is Phase.REDUCE and "tensor_copies" in op.axes]
    assert sums and all(op.kind in COLLECTIVE_KINDS for op in sums)
    without = {
        n: tuple(op for op in getattr(schedule, n) if op not in sums) for n in ("micro_step", "finish")
    }
    broken = replace(schedule, **without)
    assert not check(broken, dict.fromkeys(schedule.axes, 2)).accepted


@given(OF_TENSOR, OF_STATES, st.integers(1, 4), st.integers(2, 4), st.integers(1, 2), st.booleans())
@examples(40)
def test_a_device_has_all_of_a_copied_head_and_its_part_of_all_else(
    name, states, kv_heads, copies, more, gated
):
    found = plan(name, states, kv_heads, copies, copies * more, gated=gated)
    layer, devices, indices = found.layer, kv_heads * copies, found.indices
    of_all = {w.name: elements(w, {}, indices, {}) for w in layer.program.part.weights}
    for weight in layer.program.part.weights:
        cut = {*weight.indices} & {"g", "r", "f"}
        times = 1 if not cut else kv_heads if weight.name in COPIED else devices
        assert layer.parameters[weight.name] * times == of_all[weight.name]


@given(OF_TENSOR, st.integers(1, 4), st.integers(2, 4), st.integers(1, 2))
@examples(40)
def test_copies_send_as_many_activations_as_heads_of_their_own_would(name, kv_heads, copies, more):
    """Beside a model that has a key and a value for each device, on one axis of as many."""
    found, devices = plan(name, "dp", kv_heads, copies, copies * more), kv_heads * copies
    product = Product((factor("dp"), factor(name)))
    sizes = {"batch": 2, "tensor": devices}
    other = Plan(model(devices, more), product, sizes, sequence=devices)
    for part, costs in found.costs.items():
        assert sent(costs) == sent(other.costs[part])


@pytest.mark.slow
@settings(max_examples=25)
@given(
    OF_TENSOR, OF_STATES, st.sampled_from([(2, 2), (1, 4), (2, 3), (3, 2)]), st.integers(1, 2),
    st.booleans(), st.sampled_from([frozenset(), frozenset({"head"}), frozenset({"heads"})]),
)  # fmt: skip
def test_copies_train_as_one_device_and_hold_and_send_what_is_predicted(
    name, states, sizes, more, turned, norms
):
    kv_heads, copies = sizes
    more_norms = {"norms": frozenset({"attention", "mlp"}) | norms, "angles": turned}
    found = plan(name, states, kv_heads, copies, copies * more, **more_norms)
    run = measured(found, Run(2, "modular", 0))
    assert run.matches
    assert run.unequal == []
    assert run.as_predicted
