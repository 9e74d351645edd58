"""Features inside MLPs that do not divide by the devices that cut them, where a profile does so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.plan import Plan
from psem_model.reading.products import parse
from psem_model.reading.profiles import read
from spec.costs.model_costs import elements
from spec.models.states import POLICIES, State
from spec.models.transformer import Transformer
from tests.support.examples import examples

PROFILE = read("parallelize")
SHAPE = ["--layers", 2, "--hidden", 16, "--heads", 8, "--vocabulary", 24, "--sequence", 8]


def plan(devices, features, strategy="tp", **more):
    model = Transformer(2, 8, 8, 8, 2, features, 16, **more)
    sizes = {"tensor": devices, "batch": 2}
    product = parse(strategy).product
    return Plan(
        model,
        product,
        {a: sizes[a] for a in product.axes},
        1,
        8,
        policy=POLICIES["fp32-adam"],
        profile=PROFILE,
    )


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 40), st.booleans())
def test_slices_are_those_of_torch_chunk_and_the_first_device_has_most(devices, features, gated):
    costs = plan(devices, features, gated=gated).layer
    (up,) = (w for w in costs.program.part.weights if w.name == "up_weight")
    lies = costs.program.lies[up]
    each = [
        elements(up, lies, costs.indices, costs.mesh, {"tensor": place}) // 8
        for place in range(devices)
    ]
    chunk = -(-features // devices)
    assert each == [max(0, min(chunk, features - chunk * place)) for place in range(devices)]
    assert costs.parameters["up_weight"] == 8 * each[0]


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 40))
def test_slices_of_rows_are_padded_and_those_of_columns_are_not_unless_they_are_empty(
    devices, features
):
    costs, chunk = plan(devices, features, gated=True).layer.weights, -(-features // devices)
    for place in range(devices):
        own = max(0, min(chunk, features - chunk * place))
        has = {
            name: costs.parameters[name]
            + costs.beside(name, State.PARAMETERS, PROFILE, {"tensor": place})
            for name in ("up_weight", "down_weight")
        }
        assert has == {"up_weight": 8 * chunk, "down_weight": 8 * (own or chunk)}


@examples(15)
@given(
    st.sampled_from([2, 4]),
    st.integers(1, 11),
    st.sampled_from(["tp", "tp+sp", "tp*zero1", "zero3*tp"]),
    st.sampled_from([(False, "gelu"), (True, "silu")]),
)
def test_uneven_features_train_as_on_one_device_and_take_what_is_predicted(
    devices, features, strategy, kind
):
    gated, function = kind
    run = measured(
        plan(devices, features, strategy, gated=gated, function=function), Run(2, "modular", 0)
    )
    assert run.matches
    assert run.unequal == []


@pytest.mark.parametrize(
    ("strategy", "profile", "words"),
    [
        (
            "tp(4)",
            "megatron",
            "given 4 along tensor; expected a divisor of 30, the features inside the MLP",
        ),
        (
            "tp(4)",
            "common",
            "given 4 along tensor; expected a divisor of 30, the features inside the MLP",
        ),
        ("tp(3)", "parallelize", "given 3 along tensor; expected a divisor of 8, the key-value heads"),
        ("tp+sp(5)", "parallelize", "given 5 along tensor; expected a divisor of 8"),
    ],
)
def test_what_is_cut_evenly_alone_is_refused_by_name(strategy, profile, words, psem):
    code, out, err = psem("predict", strategy, *SHAPE, "--feed-forward", 30, "--profile", profile)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_uneven_features_are_told(psem):
    _, out, _ = psem("predict", "tp(4)", *SHAPE, "--feed-forward", 30, "--profile", "parallelize")
    assert "30 features inside the MLP are cut as 32 would be: the last have fewer" in out
    assert "features inside the MLP, padded to the devices where they cut them" in out


def test_what_a_device_keeps_does_not_depend_on_the_order_in_which_axes_are_named():
    model, sizes = Transformer(2, 8, 4, 4, 2, 16, 32), {"context": 2, "tensor": 3}
    kept = []
    for text in ("tp+sp * cp", "cp * tp+sp"):
        found = Plan(model, parse(text).product, sizes, 1, 4, profile=read("parallelize"))
        places = ({"context": c, "tensor": t} for c in range(2) for t in range(3))
        kept.append([found.stage(0, place).activations for place in places])
    assert kept[0] == kept[1] and len({*kept[0]}) > 1
