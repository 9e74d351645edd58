"""Weights that are one array: their rows are padded together, and their steps counted once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.plan import Plan
from psem_model.predict.report import predicted
from psem_model.reading.products import parse
from psem_model.reading.profiles import read
from spec.models.parts import parts
from spec.models.profiles import TEXTBOOK, Padding, made_by, rows_of
from spec.models.states import POLICIES, State
from spec.models.transformer import JOINED, Transformer
from tests.support.examples import examples
from tests.support.profiled_plans import profiled

JOINS = st.frozensets(st.sampled_from(sorted(JOINED)))


def plan(devices, strategy="fsdp", profile="fully-shard", **more):
    shape = {"gated": True, "norm": "rms_norm", "biases": frozenset(), **more}
    model, product = Transformer(1, 6, 3, 1, 3, 5, 7, **shape), parse(strategy).product
    mesh = dict.fromkeys(product.axes, devices)
    policy = POLICIES["fp32-adam"]
    return Plan(model, product, mesh, sequence=2, policy=policy, profile=read(profile))


def vectors(of):
    weights = of.weights["layer"]
    arrays = weights.arrays(weights.parameters)
    return {names[0]: weights.array(names, Padding.ROW) for names in arrays}


def test_rows_of_queries_keys_and_values_are_padded_together():
    joined = plan(4, joined=frozenset({"qkv"}))
    vector = vectors(joined)["query_weight"]
    assert (vector.rows, vector.row) == (9 + 3 + 3, 6)
    apart = plan(4)
    # 16 padded rows in place of 12, 4 and 4: on each of four devices 4 in place of 5
    more = apart.fullest.resting[State.PARAMETERS] - joined.fullest.resting[State.PARAMETERS]
    assert more == 4 * 6
    assert apart.fullest.step_counts - joined.fullest.step_counts == 4 * 2


def test_stacked_experts_are_beside_each_other_along_what_they_make():
    experts = {"experts": 3, "chosen": 1, "joined": frozenset({"experts"})}
    vector = vectors(plan(2, **experts))["gate_weight"]
    assert (vector.rows, vector.row) == (3, 2 * 5 * 6)


def test_rows_may_be_what_products_read():
    found = vectors(plan(2, reads_first=True, joined=frozenset({"qkv"}), biases=frozenset({"qkv"})))
    assert (found["query_weight"].rows, found["query_weight"].row) == (6, 15)
    assert (found["query_bias"].rows, found["query_bias"].row) == (15, 1)
    assert (found["down_weight"].rows, found["down_weight"].row) == (5, 6)
    assert (found["mlp_norm_scale"].rows, found["mlp_norm_scale"].row) == (6, 1)


def test_rows_of_a_weight_are_what_its_product_makes_or_reads():
    (layer,) = (of for of in parts(plan(2).model) if of.name == "layer")
    (turned,) = (of for of in parts(plan(2, reads_first=True).model) if of.name == "layer")
    for weight in layer.weights:
        made = made_by(weight, layer)
        assert rows_of(weight, layer) == made
        assert {*rows_of(weight, turned)} == {*weight.indices} - {*made} or made == weight.indices


@pytest.mark.parametrize("profile", ["textbook", "common", "zero-plus-plus"])
def test_which_weights_are_one_array_is_told_where_it_matters(profile):
    joined = {"joined": frozenset({"qkv", "mlp"})}
    words = "weights that are one array, as in transformers: of the gate and what it opens; of queries"
    assert words in "\n".join(predicted(plan(2, **joined)).facts)
    assert "one array" not in "\n".join(predicted(plan(2, profile=profile, **joined)).facts)
    assert "one array" not in "\n".join(predicted(plan(2)).facts)


@pytest.mark.parametrize("profile", ["textbook", "common", "megatron"])
@given(JOINS)
def test_nothing_else_depends_on_it(profile, joined):
    one, other = (plan(3, profile=profile, joined=of) for of in (joined, frozenset()))
    assert one.fullest.moved == other.fullest.moved
    assert one.fullest.resting == other.fullest.resting


@pytest.mark.slow
@examples(40)
@given(profiled("zero3", "zero1", "fsdp", "hsdp"))
def test_the_simulator_has_as_many_arrays(plan):
    assert measured(plan, Run()).as_predicted


def test_the_textbook_knows_no_arrays():
    assert not TEXTBOOK.tells_arrays
