"""States over every axis that gradients are summed over: predicted as over one axis of that size."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.plan import Plan
from psem_model.reading.products import parse
from spec.costs.memory import MODEL_STATES
from spec.derivation.schedules import schedule_of
from spec.language.schedule import REDUCTIONS
from spec.models.states import State
from spec.models.transformer import Transformer
from spec.pipelines.pipeline import Order, Pipeline
from spec.plans.compose import OVER_ALL
from spec.plans.strategies import STRATEGIES
from tests.support.command import exact
from tests.support.examples import examples

ON_ONE_AXIS = sorted({*OVER_ALL} - {"hsdp+all"})
LLAMA = {"block": "llama", "layers": 12, "hidden": 8192, "heads": 64, "kv-heads": 8}
LLAMA |= {"feed-forward": 28672, "vocabulary": 128256, "sequence": 32768, "accumulate": 4}


def plan_of(text, experts=0, unit=None, micro_batches=2):
    found = parse(text)
    shape = Transformer(3, 6, 2, 2, 3, 10, 12, experts=experts, chosen=min(experts, 1))
    pipe = Pipeline(Order.ONE_F_ONE_B, 1, micro_batches)
    return Plan(shape, found.product, found.sizes, 12, 12, pipe, unit=unit)


def of_states(plan):
    """What states take and send on a device of the only stage, whatever the axes are called."""
    stage = plan.stage(0)
    moved = [m for m in stage.moved if m.what in {state.value for state in MODEL_STATES}]
    sent = [(m.what, m.collective, m.when, m.times, m.elements, m.bytes, m.to_host) for m in moved]
    return stage.resting, stage.host, stage.transient["states"], sent


@examples(60)
@given(
    st.sampled_from(ON_ONE_AXIS),
    st.integers(1, 5),
    st.sampled_from([1, 2, 3, 4, 6, 12]),
    st.one_of(st.none(), st.integers(5, 400)),
    st.integers(1, 3),
)
def test_several_axes_act_on_states_as_one_of_product_size(name, n, m, unit, micro_batches):
    """Padding and what passes included."""
    everywhere = plan_of(f"{name}({n}) * cp({m})", unit=unit, micro_batches=micro_batches)
    one = plan_of(f"{OVER_ALL[name]}({n * m})", unit=unit, micro_batches=micro_batches)
    assert of_states(everywhere) == of_states(one)


@given(st.sampled_from(ON_ONE_AXIS), st.integers(1, 4), st.sampled_from([1, 2, 4]))
def test_experts_rest_along_their_own_replicas_and_the_rest_along_all(name, n, m):
    plan = plan_of(f"{name}({n}) * ep({m})", experts=4)
    axes = {
        group.weights: group.costs.schedule.rest(State.OPTIMIZER).sharded
        for group in plan.stage(0).groups
    }
    for weights, sharded in axes.items():
        assert sharded == (("batch",) if "up_weight" in weights else ("batch", "expert"))


ON_AN_AXIS_THAT_CUTS = [("cp", "context"), ("ep", "expert"), ("tp+sp", "tensor")]


@pytest.mark.parametrize(("cut", "axis"), ON_AN_AXIS_THAT_CUTS)
@pytest.mark.parametrize("name", ON_ONE_AXIS)
def test_a_strategy_on_each_axis_is_the_strategy_over_all(name, cut, axis):
    experts = 4 if cut == "ep" else 0
    each = plan_of(f"{OVER_ALL[name]}(2) * {cut}(2) * {OVER_ALL[name]}({axis})", experts)
    everywhere = plan_of(f"{name}(2) * {cut}(2)", experts)
    assert each.step == everywhere.step
    assert of_states(each) == of_states(everywhere)


def test_states_are_placed_along_some_of_the_axes_that_do_not_cut_them():
    """Parameters gathered over data x context, and no more; the optimizer over experts' axis, too."""
    some = plan_of("zero3(2) * cp(2) * ep(2) * zero3(context) * zero1(expert)", experts=4)
    found = {
        "up_weight" in group.weights: {s: group.schedule.rest(s).sharded for s in MODEL_STATES}
        for group in some.step.groups
    }
    both = ("batch", "context")
    assert found[True] == dict.fromkeys(MODEL_STATES, both)  # experts are cut along their own axis
    dense = {State.PARAMETERS: both, State.GRADIENTS: both, State.OPTIMIZER: (*both, "expert")}
    assert found[False] == dense


@pytest.mark.parametrize("name", [name for name in ON_ONE_AXIS if name != "zero-offload+all"])
def test_states_rest_along_an_axis_that_a_gradient_is_whole_along(name):
    """They are cut as over one axis; what is whole there is not sent to be summed."""
    of = OVER_ALL[name]
    placed = plan_of(f"{of}(2) * tp(2) * {of}(tensor)")
    whole = {w for w, (_, axes) in placed.step.gradients_over().items() if "tensor" in axes}
    assert {"attention_norm_scale", "output_bias"} <= whole
    for group in placed.step.groups:
        where = {*group.weights} <= whole
        assert where or not whole & {*group.weights}
        assert group.schedule.axes == (("batch", "tensor") if where else ("batch",))
        sums = {(op.axes, op.within) for op in group.schedule.ops if op.kind in REDUCTIONS}
        assert sums == {(("batch",), ("tensor",) if where else ())}  # of its slice alone
        one = schedule_of(STRATEGIES[of])
        for state in MODEL_STATES:
            cut = one.rest(state).sharded and group.schedule.axes
            assert group.schedule.rest(state).sharded == (cut or ())


@given(st.integers(1, 4), st.sampled_from([1, 2, 3]))
def test_replicas_stay_replicas_where_groups_are_sharded_over_every_axis(n, m):
    everywhere, hsdp = plan_of(f"hsdp+all({n}, 2) * cp({m})"), plan_of(f"hsdp({n}, {2 * m})")
    assert of_states(everywhere) == of_states(hsdp)


def test_zero1_over_data_and_context_keeps_a_32nd_of_the_optimizer(predicted):
    shape = {"layers": 8, "hidden": 64, "heads": 8, "sequence": 32}
    everywhere = predicted("zero1+all(8) * cp(4)", **shape)
    own = predicted("zero1(8) * cp(4)", **shape)
    psi = everywhere["inputs"]["psi"]
    for found, devices in ((everywhere, 32), (own, 8)):
        assert exact(found["memory"]["resting"]["optimizer"]) == Fraction(12 * psi, devices)


def test_llama_70b_of_12_layers_over_context_keeps_69_gib(predicted):
    """68.43 GiB were measured; with the optimizer on an axis of one device 120.96 are predicted."""
    kept = [
        predicted(f"{name}(1) * tp+sp(2) * cp(4)", bytes="2,4,12", recompute="attention", **LLAMA)
        for name in ("zero1+all", "zero1")
    ]
    sizes = [round(exact(found["memory"]["total"]) / 2**30, 2) for found in kept]
    assert [float(size) for size in sizes] == [69.12, 120.96]


@pytest.mark.parametrize("name", sorted(OVER_ALL))
def test_a_plan_without_other_axes_is_that_of_the_strategy(name):
    axes = "2, 2" if name.startswith("hsdp") else "4"
    assert of_states(plan_of(f"{name}({axes})")) == of_states(plan_of(f"{OVER_ALL[name]}({axes})"))
