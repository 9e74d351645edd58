"""Profiles: kernels, what is made again, types and units."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.report import predicted
from psem_model.predict.rounding import rounded
from psem_model.reading.profiles import read as profiled
from psem_model.reading.shapes import small
from psem_model.text.errors import BadInput
from spec.costs.model_costs import numbers_of
from spec.derivation.programs import program_of
from spec.models.parts import layer, parts
from spec.models.profiles import TEXTBOOK, realised_parts, rows_of
from spec.models.states import MIXED_ADAM, POLICIES, State
from spec.models.transformer import DENSE, STRAIGHT
from spec.plans.model_strategies import MODEL_AXES
from tests.support.profiled_plans import MODEL, SHAPE, anywhere, profiled_as
from tests.support.profiles import profiles


def kept(shape, profile):
    """The bytes that a layer keeps, and its widest moment."""
    asked = Asked("predict", "tp(1)", model={k: str(v) for k, v in shape.items()}, profile=profile)
    costs = read(asked).costs["layer"]
    return costs.activations, costs.computing


def test_fused_attention_keeps_and_needs_what_is_linear_in_the_sequence():
    (one, moment), (two, later) = (kept({**SHAPE, "sequence": s}, "common") for s in (256, 512))
    assert two == 2 * one
    assert later == 2 * moment


def test_fused_attention_keeps_a_number_of_four_bytes_for_each_row_instead_of_pairs():
    textbook, _ = kept({**SHAPE, "sequence": 256}, "textbook")
    common, _ = kept({**SHAPE, "sequence": 256}, "common")
    assert textbook - common == 4 * 256 * (2 * 256 - 4)


def test_sixteen_bytes_a_parameter_rest_with_fully_shard():
    asked = Asked("predict", "fsdp", psi="1000", devices="1", profile="fsdp2")
    stage = read(asked).fullest
    assert sum(stage.resting.values()) == 16 * 1000
    moved = read(replace(asked, devices="2")).fullest.moved
    widths = {m.collective: m.bytes / m.elements for m in moved}
    assert widths == {"all_gather": 2, "reduce_scatter": 4}


def test_what_is_quantised_on_its_way_is_computed_with_as_before():
    plain, fewer = (
        read(Asked("predict", "zero3(2)", model=MODEL, profile=name)).fullest
        for name in ("common", "zero-plus-plus")
    )
    widths = [{m.collective: m.bytes / m.elements for m in s.moved} for s in (plain, fewer)]
    assert widths == [{"all_gather": 2, "reduce_scatter": 2}, {"all_gather": 1, "reduce_scatter": 0.5}]
    assert (plain.activations, plain.resting) == (fewer.activations, fewer.resting)


def test_the_textbooks_traffic_is_beside_the_profiles():
    def told(name):
        return predicted(read(Asked("predict", "zero3(2)", model=MODEL, profile=name))).document()

    of_profile = told("zero-plus-plus")
    beside = of_profile["profile"]["textbook"]["sent"]["exact"]
    assert beside == told("textbook")["communication"]["bytes"]["exact"]
    assert beside != of_profile["communication"]["bytes"]["exact"]


def test_what_is_rounded_on_its_way_is_told(tmp_path):
    def inexact(name, strategy="zero3(2)"):
        profile = anywhere(name, tmp_path)
        found = rounded(read(Asked("predict", strategy, model=MODEL, profile=profile)))
        return {what: (has, to) for what, has, to in found}

    assert not inexact("common") and not inexact("megatron")
    of_norms = dict.fromkeys(("d layer_in of a layer", "d middle of a layer"), (4, 2))
    of_norms |= {"d layers_out of the head": (4, 2)}  # which are computed in fp32
    of_norms |= {"d logits of the head": (4, 2)}  # so is the loss
    assert inexact("fsdp2") == {"parameters, to compute with": (4, 2)} | of_norms
    passing = {"parameters, while they are gathered": (2, 1)}
    summed = {"gradients, while they are summed": (2, 0.5)}
    assert inexact("zero-plus-plus") == passing | summed
    assert inexact("zero-plus-plus", "zero1(2)") == inexact("zero-plus-plus", "dp(2)") == summed
    assert not inexact("zero-plus-plus", "tp(2)")


def test_what_is_quantised_has_no_more_bytes_than_what_is_computed_with(tmp_path):
    fewer = profiled_as("quantised = 2", tmp_path, "zero3(2)")
    assert fewer.policy.bytes_sent == fewer.policy.computed == 2
    with pytest.raises(BadInput, match="given 'mine', which gathers in 4 bytes"):
        profiled_as("quantised = 4", tmp_path, "zero3(2)")
    assert profiled_as("quantised = 4", tmp_path, "zero3(2)", policy="fp32-adam").policy.bytes_sent == 4
    with pytest.raises(
        BadInput, match="in 1 byte an element what is computed with in 1/2; expected as"
    ):
        profiled_as("quantised = 1", tmp_path, "zero3(2)", policy="0.5,1,2")


def test_a_value_inside_a_kernel_is_not_sent(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "t"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\ninside = ["output"]\n'
    )
    with pytest.raises(BadInput, match="output is inside a kernel, and would be sent"):
        model = {k: str(v) for k, v in {**SHAPE, "sequence": 4}.items()}
        read(Asked("predict", "tp(2)", model=model, profile=str(file)))


def test_what_a_kernel_with_a_softmax_gives_is_in_memory(tmp_path):
    inside = 'inside = ["scores", "seen", "shares", "context"]'
    with pytest.raises(BadInput, match="context is inside a kernel, and its backward reads it"):
        profiled_as(inside, tmp_path, "dp(2)")


def test_gradients_are_summed_in_every_micro_step_if_a_profile_says_so(tmp_path):
    def sent(text):
        moved = profiled_as(text, tmp_path, "dp(2)", accumulate="3").fullest.moved
        return sum(m.elements for m in moved if m.collective == "all_reduce")

    assert sent("each = true") == 3 * sent("prefetch = 1")


def test_weights_with_one_owner_are_whole_on_each_device(tmp_path):
    plan = profiled_as('padding = "weight"\nunits = "layer"', tmp_path, "zero1(2)")
    moved = {m.collective: m.elements for m in plan.fullest.moved}
    own = plan.fullest.resting[State.OPTIMIZER] / plan.policy.k
    assert moved["broadcast"] == own >= plan.psi / 2  # to the one other device
    with pytest.raises(BadInput, match="cuts the optimizer state alone"):
        profiled_as('padding = "weight"', tmp_path, "zero2(2)")
    with pytest.raises(BadInput, match="no --unit"):
        profiled_as('padding = "weight"', tmp_path, "zero1(2)", unit="10")


@pytest.mark.parametrize("size", [{"psi": "1e9"}, {"model": {"config": "gpt2"}}], ids=["psi", "config"])
def test_weights_with_one_owner_are_those_of_a_model_with_samples(size):
    with pytest.raises(BadInput, match="a model's shape and --sequence"):
        read(Asked("predict", "zero1(8)", profile="zero-redundancy", **size))


def test_gradients_wait_whole_for_the_last_micro_step_and_leave_slices(tmp_path):
    textbook, waits = (
        profiled_as(text, tmp_path, "fsdp(2)", accumulate="3").fullest
        for text in ("prefetch = 1", "waits_whole = true")
    )
    assert waits.resting == textbook.resting
    slices, whole = (sum(group.waiting for group in stage.groups) for stage in (textbook, waits))
    assert whole == 2 * slices
    assert waits.transient["states"] >= whole - slices
    sent = ([m.elements for m in s.moved if m.what == "gradients"] for s in (textbook, waits))
    assert [*map(sum, sent)] == [3 * (waits.parameters // 2), waits.parameters // 2]


def test_who_owns_no_weight_sends_an_element_if_a_profile_says_so(tmp_path):
    def broadcast(text):
        plan = profiled_as(f'padding = "weight"\nunits = "layer"\n{text}', tmp_path, "zero1(16)")
        return plan, next(m.elements for m in plan.fullest.moved if m.collective == "broadcast")

    (plan, fewer), (_, more) = broadcast(""), broadcast("fills = true")
    empty = 16 - len(plan.parameters)
    assert (fewer, more) == (plan.psi, plan.psi + empty - 1)  # that of the next device ends here


def test_a_ring_gathered_at_once_sends_as_much_and_has_all_slices(tmp_path):
    def ring(text):
        plan = profiled_as(text, tmp_path, "cp(4)")
        return plan.layer, {t.collective for t in plan.layer.traffic}

    (turns, by_turns), (at_once, by) = ring("prefetch = 1"), ring("at_once = true")
    assert by == by_turns - {"ring_gather"} | {"all_gather"}
    assert at_once.sent("forward", "backward") == turns.sent("forward", "backward")
    a_slice = 2 * 2 * 1 * 64  # of keys and of values: bytes, one token, all features
    assert at_once.computing - turns.computing == 2 * a_slice


def test_a_ring_in_full_brings_home_gradients_in_fp32_and_sends_all_else_as_it_is(tmp_path):
    def sent(text):
        traffic = profiled_as(text, tmp_path, "cp(4)").layer.traffic
        return {t.collective: (t.elements, t.bytes) for t in traffic if t.elements}

    plain, in_full = sent("prefetch = 1"), sent("rings_in_full = true")
    assert {name: elements for name, (elements, _) in in_full.items()} == {
        name: elements for name, (elements, _) in plain.items()
    }
    wider = {name for name, (_, size) in in_full.items() if size != plain[name][1]}
    assert wider == {"ring_reduce"}
    elements, size = in_full["ring_reduce"]
    assert size == 4 * elements == 2 * plain["ring_reduce"][1]


@pytest.mark.parametrize(
    "typed", ["zero3(2) * zero1(context) * cp(4)", "cp(4) * zero1(context) * zero3(2)"]
)
def test_own_rows_are_those_that_a_run_has_in_whatever_order_axes_are_typed(typed, tmp_path):
    plan = profiled_as('units = "layer"\npadding = "row"\nunpadded = ["parameters"]', tmp_path, typed)
    assert [f for f in measured(plan, Run()).stages[0] if not f.equal] == []


@pytest.mark.parametrize(("capped", "beside"), [(set(), 0), ({"logits"}, 1)])
def test_a_kernel_overwrites_the_logits_that_it_reads_and_no_others(capped, beside):
    """What a cap makes is overwritten; what it is made of has a cotangent beside it, half as wide."""
    half = 2 * 4 * 1000  # bytes of the logits of four tokens, in the type of the weights

    def head(name):
        plan = read(Asked("predict", "dp(1)", model=MODEL, profile=name))
        model = replace(plan.transformer, capped=frozenset(capped), vocabulary=1000, hidden=8)
        return replace(plan, model=model).costs["head"]

    textbook, common = head("textbook"), head("common")
    assert textbook.activations == common.activations
    assert (textbook.computing // half, common.computing // half) == (6, beside)


def test_placeholders_are_one_of_each_shape_and_of_one_expert():
    model = {**{k: str(v) for k, v in SHAPE.items()}, "sequence": "4", "vocabulary": "10"}
    mixture = {**model, "experts": "4", "chosen": "2"}
    alone, of_experts = (
        read(Asked("predict", "dp(1)", model=given, profile="megatron")).fullest.placeholders
        for given in (model, mixture)
    )
    shapes = 3 * 64 * 64, 64 * 64, 2 * 128 * 64, 128 * 64  # of query, key and value; of gate and up
    of_head = 128 * 64  # of words, as they are padded
    assert alone.staying == of_experts.staying == 2 * (sum(shapes) + of_head)
    assert alone.passing == 0  # that of the embedding is as large, and comes when the head's has gone


def test_odds_that_weigh_within_leave_nothing_of_what_experts_give(tmp_path):
    kept = []
    for text in ("", 'weighs_within = true\ninside = ["unweighed"]'):
        file = tmp_path / "mine.toml"
        differs = f'[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\n{text}\n' if text else ""
        file.write_text(f'title = "t"\nlike = "common"\n{differs}')
        model = {k: str(v) for k, v in {**SHAPE, "sequence": 4, "experts": 4, "chosen": 2}.items()}
        kept.append(read(Asked("predict", "ep(2)", model=model, profile=str(file))).layer.activations)
    assert kept[0] - kept[1] == 2 * 2 * 4 * 64  # bytes, of each choice of each token, all features


def test_numbers_of_a_step_are_kept_for_all_its_micro_batches(tmp_path):
    def kept(samples):
        text = f'samples = "{samples}"'
        return profiled_as(text, tmp_path, "dp(1)", accumulate="3").fullest.activations

    assert kept("step") - kept("micro-batch") == 2 * 2 * 8 * 4  # of tokens and of next words


@pytest.mark.parametrize(("kind", "has"), [(DENSE, 2 * 2 * 8 * 4), (STRAIGHT, 0)])
def test_cosines_and_sines_are_kept_where_layers_of_any_kind_are_turned(kind, has):
    model = replace(small("llama", True), head_dim=4)
    program = program_of(layer(model, frozenset({kind})), ())
    assert numbers_of((program,), model, {"s": 8}, {}, 2).places == has


def test_cosines_and_sines_are_of_the_features_that_are_turned():
    model = replace(small("llama", True), head_dim=8, rotary=2)
    program = program_of(layer(model, frozenset()), ())
    assert numbers_of((program,), model, {"s": 5}, {}, 4).places == 4 * 2 * 5 * 2


def test_norms_whose_tokens_are_cut_are_summed_by_each_use_or_first(tmp_path):
    def sent(text, strategy="tp+sp(2)", what="all_reduce"):
        moved = profiled_as(text, tmp_path, strategy, accumulate="3").fullest.moved
        of = (m for m in moved if m.what == "gradients" and m.axes == ("tensor",))
        return sum(m.elements for m in of if m.collective == what)

    assert sent("uses = 3") == 3 * sent("prefetch = 1") > 0
    assert sent("sums_first = true") == 3 * sent("prefetch = 1")
    sharded = "zero3(3) * tp+sp(2)"
    assert sent("sums_first = true", sharded) == sent("sums_first = true")
    assert sent("prefetch = 1", sharded) < sent("prefetch = 1")


def test_terms_of_gradients_on_the_host_are_fetched_and_summed_once(tmp_path):
    plan = profiled_as("uses = 3", tmp_path, "zero-offload(2) * tp+sp(2)", accumulate="2")
    found = measured(plan, Run())
    assert found.divergence is None and [f for f in found.stages[0] if not f.equal] == []


def test_rows_are_the_features_that_a_product_makes_or_the_entries_of_a_table():
    found = {}
    for part in parts(small("gpt", False)):
        found |= {weight.name: rows_of(weight, part) for weight in part.weights}
    assert found["query_weight"] == found["query_bias"] == ("g", "r", "d")
    assert found["output_weight"] == found["down_weight"] == ("h",)
    assert found["place_weight"] == ("w",)
    assert found["mlp_norm_scale"] == ("h",)


def test_only_adam_uses_a_gradient_more_than_once(tmp_path):
    def sent(policy):
        found = profiled_as("uses = 3", tmp_path, "tp+sp(2)", policy=policy).fullest.moved
        return sum(m.elements for m in found if m.what == "gradients" and m.axes == ("tensor",))

    assert sent("fp32-adam") == 3 * sent("fp32-momentum") == 3 * sent("fp32-sgd") > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_momentum_alone_begins_as_a_copy_of_gradients(policy, tmp_path):
    words = 'whole_gradients = ["word_weight"]\nlike_gradients = true'
    found = profiled_as(words, tmp_path, "tp(2)", policy=policy).in_plan
    assert found.like_gradients is (policy == "fp32-momentum")
    assert not TEXTBOOK.in_plan(POLICIES[policy], True).like_gradients


@pytest.mark.parametrize(("strategy", "of"), [("dp(1)", "micro-batch"), ("pp(1)", "step")])
def test_numbers_are_kept_of_what_is_given_at_a_time(strategy, of, tmp_path):
    given, same = (
        profiled_as(f'samples = "{kind}"', tmp_path, strategy, accumulate="3").fullest.activations
        for kind in ("given", of)
    )
    assert given == same


def test_numbers_of_rows_that_backward_makes_again_are_not_kept(tmp_path):
    def kept(more):
        text = f'rows = ["rms_norm"]\nkeeps = ["rms_norm"]{more}'
        return profiled_as(text, tmp_path, "dp(1)").costs["layer"].activations

    assert kept("") - kept('\nagain = ["mlp_norm_unit_root"]') == 4 * 4  # of four tokens


@given(profiles())
def test_optimizer_state_that_begins_as_gradients_is_whole_where_they_are(profile):
    whole = profile.wholes
    assert whole[State.GRADIENTS] == profile.whole_gradients
    assert whole.get(State.OPTIMIZER) == (profile.whole_gradients if profile.like_gradients else None)


@pytest.mark.parametrize(
    ("name", "says"), [("common", False), ("eager", False), ("fsdp2", True), ("zero-plus-plus", True)]
)
def test_types_are_said_by_a_policy_or_by_what_passes(name, says):
    assert profiled(name).says_types is says and replace(TEXTBOOK, quantised=1).says_types


@pytest.mark.parametrize("axis", ["tp", "tp+sp"])
def test_a_head_whose_weight_is_whole_moves_nothing_whatever_logits_are_to_be(axis):
    for whole in ({"head_weight"}, {"head_weight", "logits"}):
        profile = replace(TEXTBOOK, whole=frozenset(whole))
        head = realised_parts(small("llama", experts=False), profile, MIXED_ADAM.w)[-1]
        assert program_of(head, (MODEL_AXES[axis],)).moves == ()


def widths_of(name, shape=None, width=2):
    """Bytes of an element of what a layer keeps under a profile, by names."""
    model = small("gpt", False) if shape is None else shape
    profile = profiled(name)
    part = next(p for p in realised_parts(model, profile, width) if p.name == "layer")
    return {v.name: v.width for v in program_of(part, (), names=profile.again).kept}


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("width", [2, 4])
def test_numbers_of_rows_are_narrow_of_cpus_layer_norm_in_bf16_alone(norm, width):
    model = replace(small("gpt", False), norm=norm)
    plain, on_cpu = (widths_of(name, model, width) for name in ("eager", "eager+cpu"))
    assert plain["mlp_norm_unit_root"] == 4
    assert plain.keys() == on_cpu.keys()
    other = {name for name in plain if plain[name] != on_cpu[name]}
    rows = {f"{of}_norm_unit_{what}" for of in ("attention", "mlp") for what in ("mean", "root")}
    assert other == (rows if (norm, width) == ("layer_norm", 2) else set())


# how many arrays torch 2.13 and transformers 5.23 keep of a function's, by saved_tensors_hooks
ARRAYS = {"relu": 1, "gelu": 2, "silu": 2, "gelu_python": 4, "gelu_new": 5, "gelu_fast": 8}


@pytest.mark.parametrize(("function", "arrays"), ARRAYS.items())
def test_what_is_composed_of_operations_keeps_what_each_reads_beside_its_result(function, arrays):
    model = replace(small("gpt", False), function=function)
    kept = {name for name in widths_of("eager", model) if name.startswith(("up", "active"))}
    assert len(kept) == arrays


def test_a_softmax_inside_a_kernel_leaves_no_copy_in_memory():
    kept = [name for name in widths_of("eager+fused") if name.startswith("shares")]
    assert kept == ["shares_log_total"]


@pytest.mark.parametrize("norms", [{"attention", "mlp", "head"}, {"attention_out", "heads", "mlp_out"}])
def test_units_of_norms_are_kept_in_fp32_where_they_are_scaled_in_fp32(norms):
    model = replace(small("llama", False), norms=frozenset(norms))
    for in_full in (False, True):
        found = widths_of("eager", replace(model, scales_in_full=in_full))
        units = {width for name, width in found.items() if name.endswith("_unit")}
        assert units == ({4} if in_full else {2, 4} if "heads" in norms else {2})


def test_a_softmax_is_in_fp32_but_where_a_models_own_code_has_it_in_its_type():
    profile = replace(TEXTBOOK, in_full=frozenset({"softmax", "rms_norm"}))
    model = small("llama", False)
    assert profile.in_model(model).in_full == {"softmax", "rms_norm"}
    assert profile.in_model(replace(model, plain_softmax=True)).in_full == {"rms_norm"}


@pytest.mark.parametrize("width", [2, 4])
def test_attention_that_no_kernel_takes_keeps_what_products_in_fp32_read(width):
    of_one_key = replace(small("llama", False), kv_heads=1, numbered_heads=True)
    fused, kernel = (
        widths_of("eager+fused", replace(of_one_key, masked=masked), width) for masked in (False, True)
    )
    of_products = ("shares", "keys_repeated", "values_repeated", "query_turned")
    assert [fused[name] for name in of_products] == [4] * 4
    assert "shares" not in kernel
    assert "shares" in widths_of("eager", of_one_key, width)
    biased = replace(of_one_key, biases=frozenset({"qkv"}))
    assert widths_of("eager+fused", biased, width)["query_biased_turned"] == 4


def test_shares_of_experts_weigh_within_their_mlps_where_a_profile_says_so():
    model, within = small("llama", True), replace(TEXTBOOK, weighs_within=True)
    weighed = realised_parts(replace(model, weighed_within=True), TEXTBOOK, 2)
    assert realised_parts(model, within, 2) == weighed != realised_parts(model, TEXTBOOK, 2)


@pytest.mark.parametrize("strategy", ["zero2(3)", "zero3(3)"])
def test_gradients_that_are_summed_in_buckets_are_copied_into_these_alone(strategy, tmp_path):
    ways = "buckets = [64, 64]\ncopies = true", "buckets = [64, 64]", "copies = true"
    plans = (profiled_as(way, tmp_path, strategy) for way in ways)
    in_buckets, in_place, apart = (plan.fullest.transient["states"] for plan in plans)
    assert in_buckets == in_place < apart


def test_buckets_are_of_the_gradients_type_and_copies_that_are_summed_in_another_pass(tmp_path):
    ways = "copies = true", "copies = true\nreduced = 4", "reduced = 4"
    plans = (profiled_as(f"buckets = [64, 64]\n{way}", tmp_path, "dp(3)") for way in ways)
    plain, wide, views = (plan.fullest for plan in plans)
    assert plain.buckets == wide.buckets == plain.resting[State.GRADIENTS]
    assert not views.buckets
    assert not plain.transient["copied"]
    assert 0 < wide.transient["copied"] == views.transient["copied"]


def test_a_weights_gradient_is_beside_those_of_other_micro_steps_until_it_is_added(tmp_path):
    def passes(text, accumulate, strategy="dp(3)"):
        plan = profiled_as(text, tmp_path, strategy, accumulate=accumulate)
        return plan.fullest.transient["states"]

    beside = MIXED_ADAM.g * 64 * 128  # the gate's: of all features, for each of the MLP's
    assert passes("adds_alone = true", "2") - passes("repeats = true", "2") == beside
    assert passes("adds_alone = true", "1") == passes("repeats = true", "1")
    waits = "adds_alone = true", "2", "zero2(3)"  # whose gradients are summed in each micro-step
    assert passes(*waits) == passes("repeats = true", "2", "zero2(3)")
