"""Products of strategies: composed, read, checked, compared."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from proofs.plans.factor_order import _unordered
from proofs.registry import ROOT
from psem_model.check.steps import check_product
from psem_model.predict.states import predict_schedule
from psem_model.reading.fully_sharded import factor
from psem_model.reading.products import NAMES, parse
from psem_model.reading.shapes import small
from psem_model.text.errors import BadInput
from spec.checking.verdict import check
from spec.costs.memory import Sizes
from spec.derivation.schedules import schedule_of
from spec.models.states import POLICIES, State
from spec.plans.compose import (
    DATA_PARALLEL,
    OVER_ALL,
    HoldError,
    OverAllError,
    OverlapError,
    Product,
    combined,
)
from spec.plans.modes import Mode
from spec.plans.placement import place_states
from spec.plans.strategies import STRATEGIES
from tests.support.command import exact
from tests.support.examples import examples

POLICY = POLICIES["mixed-adam"]
LLAMA = ROOT / "examples" / "configurations" / "llama-3.1-405b.json"
ONE_AXIS = [name for name in NAMES if not name.startswith("hsdp")]
SHAPE: list = ["--layers", 8, "--hidden", 64, "--heads", 8, "--sequence", 32]


@st.composite
def products(draw, most=4):
    """Strategies on different axes, at most one that cuts the layers."""
    names = draw(st.lists(st.sampled_from(ONE_AXIS), min_size=1, max_size=most))
    assume(names.count("pp") <= 1)
    factors = tuple(factor(name, f"axis{i}") for i, name in enumerate(names))
    assume(len({f.holds for f in factors} - {None}) <= 1)
    assume(sum(f.over_all for f in factors) <= 1)
    return factors


@given(products(6))
def test_composition_is_associative(factors):
    for cut in range(1, len(factors)):
        left, right = Product(factors[:cut]), Product(factors[cut:])
        assert left * right == Product(factors)


@given(products(3))
def test_the_order_of_factors_changes_neither_states_nor_cuts(factors):
    first = Product(factors)
    for some in permutations(factors):
        other = Product(some)
        assert other.states.modes == first.states.modes
        assert set(other.states.axes) == set(first.states.axes)
        assert set(other.cuts) == set(first.cuts)
        assert other.pipe == first.pipe


@given(products(3), st.data())
def test_the_order_of_factors_changes_no_cost(factors, data):
    assume(any(f.states for f in factors))
    mesh = {axis: data.draw(st.integers(1, 4)) for f in factors for axis in f.axes}
    found = set()
    for some in permutations(factors):
        costs = predict_schedule(schedule_of(Product(some).states), Sizes(120, mesh, POLICY), 3)
        found.add((costs.total, costs.host, costs.peak, costs.elements, costs.host_bytes))
    assert len(found) == 1


def test_replicas_of_what_is_fully_sharded_are_hsdp():
    assert (factor("dp", "replica") * factor("zero3", "shard")).states == STRATEGIES["hsdp"]


@pytest.mark.parametrize(
    ("first", "second"), [("zero1", "zero3"), ("cp", "tp"), ("pp", "zero1"), ("ep", "pp")]
)
def test_an_axis_is_cut_by_one_factor_and_states_are_placed_along_it_by_one(first, second):
    for one, other in ((first, second), (second, first)):
        with pytest.raises(OverlapError, match="axis a"):
            factor(one, "a") * factor("dp", "b") * factor(other, "a")


@pytest.mark.parametrize("released", ["zero3", "fsdp"])
def test_gathered_parameters_are_held_along_all_axes_or_none(released):
    for first, second in (("fsdp-hold", released), (released, "fsdp-hold")):
        with pytest.raises(HoldError, match=rf"factor 3: .* as {first} does") as found:
            factor("dp", "a") * factor(first, "b") * factor(second, "c")
        assert found.value.factor == 2
    with pytest.raises(HoldError, match=r"holds .* as fsdp-hold does"):
        factor("fsdp-hold", "a") * factor("hsdp")


def test_states_are_placed_along_every_axis_by_one_strategy_at_most():
    with pytest.raises(OverAllError, match=r"factor 3: .* as zero1\+all is") as found:
        factor("zero1+all", "a") * factor("dp", "b") * factor("zero1+all", "c")
    assert found.value.factor == 2


@given(st.sampled_from(sorted(OVER_ALL)), st.permutations(["x", "y", "pipe"]))
def test_states_over_every_axis_are_placed_alike_but_along_stages(name, summed):
    whole, own = factor(name) * factor("pp"), factor(OVER_ALL[name])
    placed = whole.states_of(tuple(summed))
    for axis in own.axes:
        for state in State:
            assert placed.mode(state, axis) == own.states.mode(state, axis)
    for state in State:
        alike = own.states.mode(state, own.axes[-1])
        assert [placed.mode(state, axis) for axis in ("x", "y")] == [alike, alike]
        assert placed.mode(state, "pipe") == DATA_PARALLEL[state]


@given(st.sampled_from(sorted(OVER_ALL)), st.sampled_from(["x", "y"]))
def test_a_strategy_over_every_axis_alone_is_the_strategy(name, axis):
    alone, everywhere = parse(OVER_ALL[name]).product, parse(name).product
    assert everywhere.states == alone.states == everywhere.states_of(())
    with_replicas = everywhere * factor("dp", axis)
    assert with_replicas.states == (alone * factor("dp", axis)).states


def test_replicas_of_what_is_fully_sharded_over_every_axis_are_hsdp_over_every_axis():
    whole = factor("dp", "replica") * factor("zero3+all", "shard")
    assert whole.states_of(("x",)) == Product((factor("hsdp+all"),)).states_of(("x",))


@given(products(4))
def test_states_that_no_strategy_places_everywhere_are_replicated_along_other_axes(factors):
    assume(not any(f.over_all for f in factors))
    whole = Product(factors)
    assert whole.states_of(("x", "y")) == (whole * factor("dp", "x") * factor("dp", "y")).states


@given(st.sampled_from(sorted({*OVER_ALL} - {"hsdp+all"})))
def test_a_strategy_over_every_axis_is_that_strategy_on_each_of_them(name):
    each = [factor(OVER_ALL[name], axis) for axis in ("batch", "x", "y")]
    assert parse(name).product.states_of(("x", "y")) == Product(tuple(each)).states


@given(products(3))
def test_a_factor_that_gathers_nothing_leaves_the_others_held_or_released(factors):
    holding = [f for f in factors if f.holds]
    assert Product(factors).states.hold is bool(holding)


@given(st.sampled_from(sorted(STRATEGIES)))
def test_nothing_is_the_identity_of_merging(name):
    placement = STRATEGIES[name]
    assert combined([placement]) == combined([combined([]), placement]) == placement


@examples(40)
@given(st.sampled_from(["dp", "zero1", "zero2", "zero3"]), st.integers(1, 5), st.integers(1, 5))
def test_memory_multiplies_and_each_axis_acts_on_what_the_others_leave(name, first, second):
    mesh, psi = {"shard": first, "more": second}, 5 * first * second
    both = predict_schedule(
        schedule_of(combined([factor(name, "shard").states, factor(name, "more").states])),
        Sizes(psi, mesh, POLICY),
    )
    one = predict_schedule(
        schedule_of(factor(name, "all").states), Sizes(psi, {"all": first * second}, POLICY)
    )
    assert (both.total, both.peak, both.elements) == (one.total, one.peak, one.elements)


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        # b: 2 (7/8) of the 1/4 that a has reduced; a: scatter and gather 3/4 of everything
        ("zero1(a=4)*dp(b=8)", {"b": 14, "a": 48}),
        # b: scatter, and gather, 7/8 of a's 1/4; a: two gathers and a scatter of everything
        ("zero3(a=4)*zero1(b=8)", {"b": 14, "a": 72}),
        # both at once: 31/32 of everything, twice
        ("zero1(a=4)*zero1(b=8)", {"a,b": 62}),
        # after the micro-step b scatters 7/8 of a's 1/4; the gather is along both
        ("zero2(a=4)*zero1(b=8)", {"a": 24, "b": 7, "a,b": 31}),
    ],
)
def test_each_axis_sends_its_part_of_what_the_other_leaves(text, elements):
    found = parse(text)
    costs = predict_schedule(schedule_of(found.product.states), Sizes(32, found.sizes, POLICY))
    sent = dict.fromkeys(elements, 0)
    for move in costs.moves:
        sent[",".join(move.op.axes)] += move.elements
    assert sent == elements


placements = st.lists(st.tuples(*[st.sampled_from(Mode)] * len(State)), min_size=2, max_size=3).map(
    lambda all_: [
        place_states((f"axis{i}",), {s: {f"axis{i}": m} for s, m in zip(State, modes, strict=True)})
        for i, modes in enumerate(all_)
    ]
)


@given(placements, st.data())
def test_the_order_of_any_placements_changes_no_operation_and_no_verdict(placed, data):
    schedule = schedule_of(combined(placed))
    other = schedule_of(combined(data.draw(st.permutations(placed))))
    assert _unordered(schedule) == _unordered(other)
    mesh = {axis: data.draw(st.integers(1, 3)) for axis in schedule.axes}
    micro_steps = data.draw(st.integers(1, 2))
    assert check(schedule, mesh, micro_steps).accepted == check(other, mesh, micro_steps).accepted


# ------------------------------------------------------------------------------ reading
@given(products(), st.data())
def test_a_product_is_read_as_it_is_written(factors, data):
    sizes = {axis: data.draw(st.integers(1, 9)) for f in factors for axis in f.axes}
    space = data.draw(st.sampled_from(["", " "]))
    text = f"{space}*{space}".join(
        f"{f.name}({', '.join(f'{axis}={sizes[axis]}' for axis in f.axes)})" for f in factors
    )
    found = parse(text)
    assert (found.product, found.sizes) == (Product(factors), sizes)


@given(st.text("zero1tp(=8)*, +-", max_size=20))
def test_anything_is_read_or_refused_with_its_place(text):
    refused = None
    try:
        parse(text)
    except BadInput as error:
        refused = str(error)
    whole = f"strategy: given {text.strip()!r}; "
    assert refused is None or "character " in refused or refused.startswith(whole)
    assert "\n" not in (refused or "")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("zero1(dp=16) * tq(8)", 16, "nearest: tp"),
        ("zero1(dp=16", 12, "the end"),
        ("tp(8))", 6, "* and another strategy"),
        ("tp(0)", 4, "a whole number of devices"),
        ("dp(2)*zero3(4)", 7, "another axis than batch"),
        ("hsdp(2)", 7, "the size of shard"),
        ("zero3(2, 3)", 8, "zero3 has one axis"),
        ("", 1, "the end; expected one of dp"),
        ("zero1(host=2)", 7, "a name such as batch"),
        ("tp(8) pp(2)", 7, "'pp'"),
        ("fsdp-hold(a=2) * zero3(b=4)", 18, "one that holds the parameters it gathers"),
        ("hsdp(2,4)*dp(2)*fsdp-hold(b=4)", 17, "as hsdp does"),
        ("zero1+all(a=2)*cp(2)*zero2+all(b=4)", 22, "one strategy over every axis, as zero1+all is"),
        ("zero1+al(2)", 1, "nearest: zero1+all"),
        ("cp(2)*zero1(context=4)", 21, "2, as context has above"),
        ("cp(2)*zero1(context)*zero3(context)", 28, "another axis than context"),
        ("pp(2)*zero1(pipe)", 13, "another axis than pipe"),
        ("dp+all(2)", 1, "'dp+all'"),
    ],
)
def test_an_error_points_at_the_character(text, place, words, psem):
    for command in ("predict", "check", "compare"):
        code, out, err = psem(command, text, *(["dp"] if command == "compare" else SHAPE * 0))
        if command == "check" and ("*" not in text and "(" not in text):
            continue  # a file's name
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert f"character {place}: " in err
        assert words in err


# ----------------------------------------------------------------------------- checking
@examples(25)
@given(products(3), st.data())
def test_every_product_of_strategies_is_accepted(factors, data):
    found = parse("*".join(f"{f.name}({f.axes[0]}=2)" for f in factors))
    accumulates = data.draw(st.integers(1, 2))
    assume("fused-update" not in {f.name for f in factors} or accumulates == 1)
    states = {OVER_ALL.get(f.name, f.name) for f in factors if f.states}
    assume("zero-offload" not in states or states <= {"zero-offload", "dp"})
    block = data.draw(st.sampled_from(["gpt", "llama"]))
    experts = any("e" in axis.weight_indices for axis in found.product.cuts)
    model = small(block, experts)
    checked = check_product(found.text, found.product, model, found.sizes, accumulates, POLICY)
    assert checked.accepted, checked.data()


@examples(60)
@given(
    st.sampled_from([None, *ONE_AXIS]),
    st.sampled_from(sorted(OVER_ALL)),
    st.sampled_from(sorted(POLICIES)),
    st.integers(1, 2),
    st.integers(1, 3),
)
def test_states_are_right_over_every_axis_where_they_are_on_their_own(
    other, name, policy, micro_steps, size
):
    """So what a product is refused for is seen on the axes of the states alone."""
    factors = (*([factor(other, "a")] if other else []), factor(name))
    assume(sum(f.over_all for f in factors) <= 1 and len({f.holds for f in factors} - {None}) <= 1)
    whole = Product(factors)
    mesh = {axis: size if axis == whole.axes[-1] else 2 for axis in (*whole.axes, "x")}
    own, everywhere = (schedule_of(whole.states_of(summed)) for summed in ((), ("x",)))
    verdicts = (check(schedule, mesh, micro_steps, POLICIES[policy]) for schedule in (own, everywhere))
    assert len({verdict.accepted for verdict in verdicts}) == 1


def test_a_product_on_many_thousand_devices_is_checked_and_predicted(psem, predicted):
    text = "zero1(dp=64) * tp+sp(8) * cp(4) * pp(8)"
    code, out, _ = psem("check", text, "--config", LLAMA)
    assert code == 0
    assert out.startswith(f"{text}: accepted")
    found = predicted(text, config=LLAMA, sequence=8192, accumulate=8)
    assert found["inputs"]["devices"] == 16_384
    assert found["inputs"]["psi"] == 405_853_388_800


def test_a_rejected_product_names_the_rule_and_a_run(psem):
    code, out, _ = psem("check", "fused-update(2)*tp(2)", "--json")
    assert code == 1
    found = json.loads(out)
    (weights,) = [w for w in found["weights"] if not w["schedule"]["accepted"]][:1]
    assert weights["schedule"]["rejection"]["rule"] == "whole"
    assert weights["schedule"]["divergence"]


def test_zero2_with_a_pipeline_is_right_but_reduces_each_micro_batch(predicted):
    shape_ = dict(zip([n.strip("-") for n in SHAPE[::2]], SHAPE[1::2], strict=True))

    def sent(name, micro_batches):
        found = predicted(f"{name}(dp=4)*pp(2)", accumulate=micro_batches, **shape_)
        operations = found["communication"]["operations"]
        return sum(exact(o["elements"]) for o in operations if o["axes"] == ["dp"])

    for m in (2, 4, 8):
        assert sent("zero1", m) == sent("zero1", 1)
        assert 2 * sent("zero2", m) == (m + 1) * sent("zero1", 1)
        assert 2 * sent("zero3", m) == 3 * m * sent("zero1", 1)


# ---------------------------------------------------------------------------- comparing
@settings(examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["dp(8)", "zero1(8)", "zero3(8)", "hsdp(2,4)"]), min_size=2, unique=True)
)
def test_compared_figures_are_those_predicted(psem, predicted, texts):
    _, out, _ = psem("compare", *texts, "--psi", "1e9", "--json")
    for text, found in zip(texts, json.loads(out)["plans"], strict=True):
        alone = predicted(text, psi="1e9")
        for state in ("parameters", "optimizer", "gradients"):
            assert exact(found["memory"][state]) == exact(alone["memory"]["resting"][state])
        sent = sum(exact(size) for size in found["sent"].values())
        assert sent == exact(alone["communication"]["bytes"])


def test_plans_for_a_model_are_compared_along_each_axis(psem):
    plans = ["zero1(dp=2)*tp(2)*pp(2)", "zero3(dp=8)"]
    code, out, _ = psem("compare", *plans, *SHAPE, "--accumulate", 4)
    assert code == 0
    for words in ("verdict", "activations", "sent over tensor", "sent over dp", "idle, of the step"):
        assert words in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["compare", "dp"], "two strategies or more"),
        (["compare", "dp(2)", "tp(2)", "--psi", 4], "which cuts the model"),
        (["compare", "dp(2)", "zero1", "--psi", 4], "given 'zero1' without sizes"),
        (["check", "tp(2)*pp", "--devices", 2], "without a size for pipe"),
        (["check", "examples/ddp_mean.toml", "--model", "x"], "--config, --model: given with a file"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(args, words, psem):
    code, out, err = psem(*args)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert words in err
