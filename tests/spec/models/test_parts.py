"""Parts of any model: whole, of known sizes, and as different as what is said of the model."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from psem_model.reading.profiles import read as profiled
from spec.costs.model_costs import kept_bytes
from spec.derivation.programs import program_of
from spec.devices.layouts import along
from spec.models.opaque import Opaque
from spec.models.parts import parts
from spec.models.profiles import Profile, realised, realised_parts, rows_of
from spec.models.states import State
from spec.models.transformer import (
    CAPPED,
    DENSE,
    DROPPED,
    INDICES,
    MASKED,
    NORMS,
    STRAIGHT,
    USUAL,
    USUAL_NORMS,
    Latent,
    Transformer,
    is_layer,
    is_turned,
    layer_name,
    with_masks,
)
from spec.models.values import (
    OPERANDS,
    Builder,
    Does,
    Operation,
    Role,
    Value,
    cotangent_of,
    formed,
    misfit,
)
from spec.plans.model_strategies import INSIDE_MLPS, MODEL_AXES, TENSOR
from spec.plans.modes import MATERIALIZED_FROM, MODE_MEANING, Mode
from tests.support.examples import examples
from tests.support.profiles import profiles
from tests.support.variations import VARIATIONS, experts

BIASES = frozenset({"qkv", "output", "mlp", "router"})
SOME_BIASES = st.frozensets(st.sampled_from(sorted(BIASES)))
SIZES = (3, 8, 4, 2, 2, 32)  # layers, features, heads, groups of them, features of a head, of an MLP


@st.composite
def models(draw):
    """Any shape of a model, as far as it decides which operations there are."""
    return Transformer(
        *SIZES,
        vocabulary=16,
        gated=draw(st.booleans()),
        norm=draw(st.sampled_from(["layer_norm", "rms_norm"])),
        biases=draw(SOME_BIASES),
        positions=draw(st.sampled_from([0, 4])),
        tied=draw(st.booleans()),
        **draw(experts(draw(st.sampled_from([0, 4])), 2)) | draw(VARIATIONS),
    )


def values(part):
    found = (value for op in part.operations for value in (*op.reads, op.makes))
    return [*found, part.gives, *([part.takes] if part.takes else [])]


def is_whole(part):
    """Whether each value is made once, before it is read, and of operands that fit."""
    there = {part.takes, *part.weights}
    for operation in part.operations:
        lacking = {v for v in operation.reads if v.role is not Role.CONSTANT} - there
        if lacking or operation.makes in there or misfit(operation):
            return False
        there.add(operation.makes)
    return part.gives in there


@given(models() | st.just(Opaque(8)), profiles(), st.sampled_from([2, 4]))
@example(Transformer(*SIZES, 16, sinks=True), Profile(in_full=frozenset({"softmax"})), 2)
def test_every_value_is_made_once_before_it_is_read_however_it_is_realised(model, profile, width):
    for part in parts(model):
        assert is_whole(part) and is_whole(realised(part, profile, width))


@given(models() | st.just(Opaque(8)), st.integers(1, 4), st.integers(1, 4))
def test_of_every_index_there_are_some(model, micro_batch, sequence):
    sizes = model.sizes(micro_batch, sequence)
    for value in (value for part in parts(model) for value in values(part)):
        assert all(sizes.get(index, 0) > 0 for index in value.indices)


@given(models())
def test_features_of_a_head_are_those_that_are_turned_and_those_that_are_not(model):
    sizes = model.sizes(1, 4)
    assert sizes["z"] - sizes["n"] == sizes["x"] == sizes["d"]


@given(models() | st.just(Opaque(8)))
def test_the_first_reader_of_a_value_is_the_first_operation_that_reads_it(model):
    for part in parts(model):
        for number, operation in enumerate(part.operations):
            before = {value for earlier in part.operations[:number] for value in earlier.reads}
            first = [value for value in operation.reads if value not in before]
            assert all(part.first_readers[value] is operation for value in first)


@given(models())
def test_the_rows_of_a_weight_are_some_of_its_indices(model):
    for part in parts(model):
        for weight in part.weights:
            rows = rows_of(weight, part)
            assert rows and [i for i in weight.indices if i in rows] == [*rows]


@given(models())
def test_a_norm_is_over_features_of_a_token(model):
    lines = (op for part in parts(model) for op in part.operations if op.function == model.norm)
    assert all("features" in INDICES[line.over] for line in lines)


class Asked(frozenset):
    """What is said of a model, that remembers what it was asked for."""

    words: set

    def __new__(cls, words=()):
        found = super().__new__(cls, words)
        found.words = set()
        return found

    def __contains__(self, word):
        self.words.add(word)
        return super().__contains__(word)


class InOrder(frozenset):
    """A set of words that are met in the order in which they are given."""

    order: list

    def __new__(cls, words):
        found = super().__new__(cls, words)
        found.order = [*words]
        return found

    def __iter__(self):
        return iter(self.order)


@examples(20)
@pytest.mark.parametrize(
    ("field", "known"),
    [("capped", CAPPED), ("dropout", DROPPED), ("norms", {*NORMS}), ("biases", BIASES)],
)
@given(models())
def test_parts_ask_of_a_model_what_may_be_said_of_it(field, known, model):
    asked, anew = Asked(), parts.__wrapped__  # a model that is known is not asked again
    anew(replace(model, **{field: asked}))
    assert asked.words <= known
    alone = {"latent": None, "kinds": (), "positions": 0, "parallel": False}
    everything = replace(model, experts=4, dense=4, chosen=1, **alone)
    anew(replace(everything, **{field: asked}))
    assert asked.words == known


@examples(40)
@given(models(), st.sampled_from(sorted(BIASES)))
def test_a_bias_is_there_if_it_is_asked_for(model, name):
    def biases(**changed):
        found = parts(
            replace(model, experts=4, dense=4, chosen=1, kinds=(), norm="rms_norm", **changed)
        )
        return {w.name for part in found for w in part.weights if w.name.endswith("_bias")}

    without, beside = biases(biases=frozenset()), biases(biases=frozenset({name}))
    assert not without
    assert beside or (model.latent and name == "qkv")


@examples(40)
@given(models())
def test_positions_are_learned_or_turn_queries_and_keys(model):
    read = {value.name for part in parts(model) for value in values(part)}
    assert not {"places", "angles"} <= read
    assert ("places" in read) is bool(model.positions)


@examples(40)
@given(models())
def test_parts_that_are_turned_are_those_that_read_angles(model):
    for part in parts(model):
        turns = any(value.name == "angles" for value in values(part))
        assert turns == (model.turned and is_turned(part.name))
        assert not is_turned(part.name) or is_layer(part.name)


@examples(30)
@given(models())
def test_what_tensor_parallelism_cuts_of_an_mlp_are_its_features(model):
    named = {index for index, words in INDICES.items() if words.startswith("features inside the MLP")}
    assert named == {*INSIDE_MLPS} <= {*TENSOR}
    for weight in (weight for part in parts(model) for weight in part.weights):
        if weight.name.endswith(("up_weight", "gate_weight", "down_weight")):
            assert {*weight.indices} & named


def test_every_mode_and_every_operation_is_told():
    assert {*MODE_MEANING} == {*Mode} and {*MATERIALIZED_FROM} == {*State}
    assert {*OPERANDS} == {*Does}


@examples(20)
@given(models())
def test_all_to_all_brings_sinks_to_lie_along_heads(model):
    axis = MODEL_AXES["cp-all-to-all"]
    for part in parts(replace(model, sinks=True, latent=None, norms=USUAL_NORMS, experts=0, kinds=())):
        program = program_of(part, (axis,))
        made = [line.makes for line in program.forward if line.makes.name == "sinks"]
        assert all(program.lies[value][axis.name] == along("g") for value in made)
        assert bool(made) is is_layer(part.name)


@pytest.mark.parametrize("function", ["relu", "tanh", "sigmoid", "softmax", "inverse_root"])
def test_the_derivative_of_some_functions_is_known_from_their_result(function):
    argument, result = Value("argument", ("b",)), Value("result", ("b",))
    applied = Operation(Does.APPLY, (argument,), result, function)
    assert applied.known == result
    assert replace(applied, function="gelu").known == argument


@examples(20)
@given(models())
def test_a_cotangent_is_called_by_its_value_and_that_of_a_moved_value_otherwise(model):
    for value in (value for part in parts(model) for value in values(part)):
        assert cotangent_of(value).name == f"d {value.name}"
        moved = formed(value, "tensor:R")
        assert cotangent_of(moved).name != formed(cotangent_of(value), "tensor:R").name
        assert cotangent_of(moved).plain_name == cotangent_of(value).plain_name


@given(models(), st.integers(0, 9), st.integers(0, 9))
def test_layers_are_counted_by_their_kinds(model, first, more):
    numbers = range(first, first + more)
    counted = Counter(layer_name(model.layer_kind(number)) for number in numbers)
    assert model.layers_of(first, first + more) == counted
    assert {*counted} <= {part.name for part in parts(model)}


@given(models(), st.integers(0, 9))
def test_a_window_is_that_of_the_layer_and_without_windows_a_token_sees_all(model, layer):
    assert model.window(layer) == ([*model.windows] * (layer + 1) or [0] * (layer + 1))[layer]


@given(models(), st.integers(1, 5), st.integers(0, 9), st.booleans())
def test_a_layer_is_masked_if_its_window_has_no_more_tokens_than_a_sample(model, tokens, layer, all_):
    """Or if its modules give a mask in any case; if that has distances, all layers have one."""
    found = with_masks(replace(model, masked=all_), tokens)
    is_masked = model.window(layer) in range(1, tokens + 1) or (all_ and not model.distances)
    assert found.layer_kind(layer) == model.layer_kind(layer) | ({MASKED} if is_masked else set())
    assert found.shares_mask == (all_ and model.distances)


@examples(20)
@given(models(), st.integers(1, 5))
def test_masked_layers_read_a_mask(model, tokens):
    for part in parts(with_masks(replace(model, windows=(0, tokens)), tokens)):
        read = [value.name for operation in part.operations for value in operation.reads]
        assert read.count("mask_of_pairs") == (MASKED in part.name.split("_"))


@pytest.mark.parametrize("name", ["textbook", "common", "eager", "eager+fused"])
def test_masks_take_room_where_a_kernel_of_attention_is_given_them(name):
    model = with_masks(Transformer(*SIZES, vocabulary=0, windows=(2,)), 3)
    (part,) = realised_parts(model, profiled(name), 2)
    (mask,) = {v for op in part.operations for v in op.reads if v.name == "mask_of_pairs"}
    assert mask.width == 2 * profiled(name).gives_masks


def test_a_layers_name_does_not_depend_on_the_order_of_what_it_has():
    one, other = (InOrder(kinds) for kinds in ((DENSE, STRAIGHT), (STRAIGHT, DENSE)))
    assert layer_name(one) == layer_name(other)
    assert len({*map(layer_name, (USUAL, one, InOrder([DENSE]), InOrder([STRAIGHT])))}) == 4


@given(models())
def test_layers_of_two_kinds_share_no_weight(model):
    layers = [part for part in parts(model) if part.takes and part.name.endswith("layer")]
    named = Counter(weight.name for part in layers for weight in part.weights)
    assert not layers or {*named.values()} == {1}


def test_queries_may_be_made_from_all_that_attention_reads():
    few, all_ = (
        parts(Transformer(*SIZES, vocabulary=16, latent=Latent(4, queries, 1, 2))) for queries in (3, 0)
    )
    assert any("m" in value.indices for part in few for value in values(part))
    assert not any("m" in value.indices for part in all_ for value in values(part))


def test_what_an_opaque_model_computes_has_no_size():
    for part in parts(Opaque(8)):
        assert kept_bytes(program_of(part, ()), Opaque(8).sizes(4), {}) == 0
        assert all(value.width == 0 for value in values(part) if value.role is not Role.WEIGHT)


@pytest.mark.parametrize(("name", "keeps"), [("eager", True), ("common", False)])
def test_the_number_that_words_are_scaled_by_is_kept_where_operations_are_steps(name, keeps):
    model = Transformer(*SIZES, vocabulary=9, scaled_words=True)  # as Gemma's
    (part,) = (p for p in realised_parts(model, profiled(name), 2) if p.name == "embedding")
    kept = [value.name for value in program_of(part, ()).stored]
    assert ("word_factor" in kept) == keeps


@pytest.mark.parametrize(("function", "kept"), [("exp", "made"), ("log", "taken")])
def test_backward_keeps_the_result_of_an_exp_and_what_a_log_is_taken_of(function, kept):
    """(torch, tools/autograd/derivatives.yaml: exp, log)"""
    x, weight = Value("x", ("b", "h"), Role.STREAM), Value("weight", ("h",), Role.WEIGHT)
    part = Builder("applied", x)
    taken = part.contract(x, weight, replace(x, name="taken", role=Role.ACTIVATION))
    made = part.apply(function, taken, replace(taken, name="made"))
    program = program_of(part.part(part.add(x, made, replace(x, name="gives"))), ())
    assert {value.name for value in program.kept} - {"x", "weight"} == {kept}
