"""Profiles: kernels, what is made again, types and units; and the simulator beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from math import prod

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.activations import numbers_of
from psem_model.predict.asked import Asked
from psem_model.predict.model_plans import require_owners
from psem_model.predict.plan import Plan
from psem_model.predict.read import read
from psem_model.predict.report import predicted, without_effect
from psem_model.predict.rounding import rounded
from psem_model.reading.profiles import read as profile
from psem_model.reading.shapes import small
from psem_model.text.errors import BadInput
from spec.checking.steps import check_step
from spec.models.opaque import Opaque
from spec.models.parts import parts
from spec.models.profiles import TEXTBOOK, Profile, Units, rows_of
from spec.models.states import POLICIES, State
from spec.pipelines.pipeline import Order, Pipeline
from spec.plans.compose import Product, factor
from spec.plans.strategies import STRATEGIES
from tests.support.examples import examples
from tests.support.products import plans
from tests.support.profiles import profiles


def with_owners(plan):
    """The plan, with owners where there may be, if its profile has them."""
    try:
        require_owners(replace(plan, unit=None))
    except BadInput:
        return replace(plan, profile=replace(plan.profile, owners=False))
    return replace(plan, unit=None) if plan.profile.owners else plan


@st.composite
def profiled(draw, *states):
    """Any plan, or of some strategies of states, by any profile; with owners where there may be."""
    plan, profile = draw(plans(states=states) if states else plans()), draw(profiles())
    return with_owners(replace(plan, profile=profile, policy=profile.types(plan.policy)))


WITH_OWNERS = profiled("zero1", "dp", "zero1+all").filter(lambda plan: plan.profile.owners)


@st.composite
def gathered_ahead(draw):
    """Plans that gather parameters in units of their own sizes, some before their turn."""
    plan = draw(profiled("zero3", "fsdp", "hsdp", "zero3+all"))
    units = st.sampled_from([units for units in Units if units is not Units.LARGEST])
    own = {"units": draw(units), "prefetch": draw(st.integers(1, 3)), "owners": False}
    return replace(plan, unit=None, profile=replace(plan.profile, **own))


SAID = {"name", "title", "differs", "policy"}  # words, and a policy that plans have drawn
SHAPES = st.lists(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=2).map(tuple), min_size=1, max_size=4),
    max_size=4,
).map(lambda layers: tuple(map(tuple, layers)))


@st.composite
def opaque(draw, *states):
    """Of an opaque model, with weights of known shapes or not, in units of a size or of a profile.

    Of any strategy, or of some; with owners where there may be.
    """
    given, profile = draw(st.sampled_from(states or [*STRATEGIES]).map(factor)), draw(profiles())
    shapes = draw(SHAPES)
    psi = sum(prod(shape) for of in shapes for shape in of) if shapes else draw(st.integers(1, 60))
    product = Product((given,))
    micro_batches = 1 if given.name == "fused-update" else draw(st.integers(1, 3))
    model, pipe = Opaque(psi, shapes), Pipeline(Order.ONE_F_ONE_B, 1, micro_batches)
    mesh = {axis: draw(st.integers(1, 3)) for axis in product.axes}
    needs_copy = given.name in ("zero-offload", "fused-update")
    policies = [name for name, policy in POLICIES.items() if policy.master or not needs_copy]
    policy = POLICIES[draw(st.sampled_from(policies))]
    unit = draw(st.none() | st.integers(1, psi))
    found = Plan(model, product, mesh, pipe=pipe, policy=profile.types(policy), unit=unit)
    return with_owners(replace(found, profile=profile))


OPAQUE_WITH_OWNERS = opaque("zero1", "dp").filter(lambda plan: plan.profile.owners)


@given(profiled())
def test_what_a_profile_changes_is_still_what_one_device_does(plan):
    check_step(plan.step)


@examples(25)
@given(profiled())
def test_the_simulator_counts_the_bytes_that_are_predicted_of_any_profile(plan):
    found = measured(plan, Run())
    assert found.divergence is None
    assert not found.unequal


@examples(25)
@given(gathered_ahead())
def test_the_simulator_gathers_units_before_their_turn_and_counts_what_is_predicted(plan):
    found = measured(plan, Run())
    assert found.divergence is None
    assert not found.unequal


@examples(60)
@given(opaque())
def test_the_simulator_counts_the_bytes_that_are_predicted_of_any_profile_of_an_opaque_model(plan):
    found = measured(plan, Run())
    assert found.divergence is None
    assert not found.unequal


@examples(25)
@given(WITH_OWNERS | OPAQUE_WITH_OWNERS)
def test_the_simulator_deals_whole_weights_to_owners_and_counts_what_is_predicted(plan):
    found = measured(plan, Run())
    assert found.divergence is None
    assert not found.unequal


def test_random_profiles_have_every_field_otherwise_than_the_textbook():
    otherwise = set()

    @settings(max_examples=100, phases=[Phase.generate])
    @given(profiles())
    def draw(drawn):
        names = [field.name for field in fields(Profile)]
        otherwise.update(name for name in names if getattr(drawn, name) != getattr(TEXTBOOK, name))

    draw()
    assert otherwise | SAID == {field.name for field in fields(Profile)}


def kept(shape, profile):
    """The bytes that a layer keeps, and its widest moment."""
    asked = Asked("predict", "tp(1)", model={k: str(v) for k, v in shape.items()}, profile=profile)
    costs = read(asked).costs["layer"]
    return costs.activations, costs.computing


SHAPE = {"layers": 1, "hidden": 64, "heads": 4, "block": "llama", "feed_forward": 128}
MODEL = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}


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


def test_what_is_rounded_on_its_way_is_told():
    def inexact(name, strategy="zero3(2)"):
        return rounded(read(Asked("predict", strategy, model=MODEL, profile=name)))

    assert not inexact("common") and not inexact("megatron")
    assert inexact("fsdp2") == {"parameters, to compute with": (4, 2)}
    passing = {"parameters, while they are gathered": (2, 1)}
    summed = {"gradients, while they are summed": (2, 0.5)}
    assert inexact("zero-plus-plus") == passing | summed
    assert inexact("zero-plus-plus", "zero1(2)") == inexact("zero-plus-plus", "dp(2)") == summed
    assert not inexact("zero-plus-plus", "tp(2)")


def test_what_is_quantised_has_no_more_bytes_than_what_is_computed_with(tmp_path):
    fewer = profiled_as("quantised = 2", tmp_path, "zero3(2)")
    assert fewer.policy.sent == fewer.policy.computed == 2
    with pytest.raises(BadInput, match="given 'mine', which gathers in 4 bytes"):
        profiled_as("quantised = 4", tmp_path, "zero3(2)")
    assert profiled_as("quantised = 4", tmp_path, "zero3(2)", policy="fp32-adam").policy.sent == 4


def test_a_value_inside_a_kernel_is_not_sent(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "t"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\ninside = ["output"]\n'
    )
    with pytest.raises(BadInput, match="output is inside a kernel, and would be sent"):
        model = {k: str(v) for k, v in {**SHAPE, "sequence": 4}.items()}
        read(Asked("predict", "tp(2)", model=model, profile=str(file)))


def profiled_as(text, tmp_path, strategy, **options):
    file = tmp_path / "mine.toml"
    file.write_text(f'title = "t"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\n{text}\n')
    model = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}
    return read(Asked("predict", strategy, model=model, profile=str(file), **options))


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
    plan = profiled_as('owners = true\nunits = "layer"', tmp_path, "zero1(2)")
    moved = {m.collective: m.elements for m in plan.fullest.moved}
    own = plan.fullest.resting[State.OPTIMIZER] / plan.policy.k
    assert moved["broadcast"] == own >= plan.psi / 2  # to the one other device
    with pytest.raises(BadInput, match="cuts the optimizer state alone"):
        profiled_as("owners = true", tmp_path, "zero2(2)")
    with pytest.raises(BadInput, match="no --unit"):
        profiled_as("owners = true", tmp_path, "zero1(2)", unit="10")


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
        plan = profiled_as(f'owners = true\nunits = "layer"\n{text}', tmp_path, "zero1(16)")
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


@pytest.mark.parametrize(
    "typed", ["zero3(2) * zero1(context) * cp(4)", "cp(4) * zero1(context) * zero3(2)"]
)
def test_own_rows_are_those_that_a_run_has_in_whatever_order_axes_are_typed(typed, tmp_path):
    plan = profiled_as('units = "layer"\npadding = "row"\nunpadded = ["parameters"]', tmp_path, typed)
    assert [f for f in measured(plan, Run()).stages[0] if not f.equal] == []


@pytest.mark.parametrize(("capped", "beside"), [(set(), 0), ({"logits"}, 1)])
def test_a_kernel_overwrites_the_logits_that_it_reads_and_no_others(capped, beside):
    """What a cap makes is overwritten; what it is made of has a cotangent beside it."""
    logits = 4 * 4 * 1000  # bytes: of four tokens

    def head(name):
        plan = read(Asked("predict", "dp(1)", model=MODEL, profile=name))
        model = replace(plan.transformer, capped=frozenset(capped), vocabulary=1000, hidden=8)
        return replace(plan, model=model).costs["head"]

    textbook, common = head("textbook"), head("common")
    assert textbook.activations == common.activations
    assert (textbook.computing // logits, common.computing // logits) == (3, beside)


def test_placeholders_are_one_of_each_shape_and_of_one_expert():
    model = {**{k: str(v) for k, v in SHAPE.items()}, "sequence": "4", "vocabulary": "10"}
    mixture = {**model, "experts": "4", "chosen": "2"}
    alone, of_experts = (
        read(Asked("predict", "dp(1)", model=given, profile="megatron")).fullest.placeholders
        for given in (model, mixture)
    )
    shapes = 3 * 64 * 64, 64 * 64, 2 * 128 * 64, 128 * 64  # of query, key and value; of gate and up
    of_head = 10 * 64
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


def test_slots_of_experts_are_rounded_up_on_each_device():
    model = {**{k: str(v) for k, v in SHAPE.items()}, "sequence": "10", "experts": "4", "chosen": "3"}
    found = read(Asked("predict", "ep(2)", model=model))
    assert found.indices["c"] == 2 * 8  # 30 choices of 4 experts, on each of two devices
    with pytest.raises(BadInput, match="each to 3 of 4 experts: not even"):
        measured(replace(found, model=replace(found.transformer, vocabulary=8)), Run())


def test_numbers_of_a_step_are_kept_for_all_its_micro_batches(tmp_path):
    def kept(samples):
        text = f'samples = "{samples}"'
        return profiled_as(text, tmp_path, "dp(1)", accumulate="3").fullest.activations

    assert kept("step") - kept("micro-batch") == 2 * 2 * 8 * 4  # of tokens and of next words


@pytest.mark.parametrize(("name", "has"), [("dense_layer", 2 * 2 * 8 * 4), ("straight_layer", 0)])
def test_cosines_and_sines_are_kept_where_layers_of_any_kind_are_turned(name, has):
    model = replace(small("llama", True), head_dim=4)
    assert numbers_of(Counter([name]), model, {name: None}, 8, 2).places == has


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


def test_differences_that_are_overridden_are_not_listed():
    def listed(**options):
        model = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}
        plan = read(Asked("predict", "fsdp(2)", model=model, profile="fsdp2", **options))
        found = next(s for s in predicted(plan).sections if s.key == "profile.differs")
        return len(found.rows)

    assert listed() == len(profile("fsdp2").differs)
    assert listed(policy="mixed-adam") == listed() - 1
    assert listed(unit="100") == listed() - 3


@pytest.mark.parametrize(
    ("text", "strategy", "other"),
    [
        ("fills = true", "zero1(2)", ""),
        ('pinned = ["optimizer"]', "zero1(2)", "zero-offload(2)"),
        ("apart = true", "cp(2)", "tp(2)"),
        ("uneven = true", "zero3(2)", "tp(2)"),
        ('whole_gradients = ["word_weight"]', "cp(2)", "tp(2)"),
        ('stores = ["scores"]\ninside = ["scores", "seen", "shares"]', "dp(2)", ""),
        ('stores = ["output"]', "", "dp(2)"),
    ],
)
def test_differences_that_change_nothing_on_a_plan_are_not_listed(text, strategy, other, tmp_path):
    def listed(text, strategy):
        plan = profiled_as(text, tmp_path, strategy)
        alone = replace(plan, profile=replace(plan.profile, differs=plan.profile.differs[:1]))
        return [s.key for s in predicted(alone).sections if s.key == "profile.differs"]

    difference = text.replace("\n", '\n[[differs]]\nwhat = "a"\nwhy = "b"\nsource = "c"\n')
    assert not strategy or listed(difference, strategy) == []
    assert not other or listed(difference, other) == ["profile.differs"]


@examples(25)
@given(profiled())
def test_what_has_no_effect_on_a_plan_changes_no_figure(plan):
    def figures(plan):
        of = plan.fullest, plan.busiest
        rest = [(s.peak, s.total, s.transient, s.host, s.host_pinned, s.moved) for s in of]
        return rest, {n: (c.activations, c.computing) for n, c in plan.costs.items()}

    usual = {f.name: f.default for f in fields(Profile) if f.name in without_effect(plan)}
    assert figures(replace(plan, profile=replace(plan.profile, **usual))) == figures(plan)


def test_copies_of_whole_gradients_beside_slices_are_told():
    def notes(strategy, **size):
        plan = read(Asked("predict", strategy, devices="2", profile="ddp", **size))
        return [n for s in predicted(plan).sections if s.key == "profile.differs" for n in s.notes]

    for size in ({"model": MODEL}, {"psi": "1000"}):
        assert [*map(len, (notes("dp", **size), notes("zero1", **size)))] == [0, 0]
        for strategy in ("fsdp", "zero2", "zero3"):
            assert any("copies of whole gradients" in note for note in notes(strategy, **size))


def test_of_psi_parameters_the_differences_are_listed_that_change_a_figure_and_others_named():
    """Something that a plan holds or sends is another without each that is listed."""

    def figures(plan):
        stage = plan.fullest
        return plan.policy, stage.resting, stage.peak, stage.transient, stage.buckets, stage.moved

    def without(plan, difference):
        of = {f.name: f.default for f in fields(Profile) if f.name in difference.changes}
        undone, policy = replace(plan.profile, **of), plan.policy
        if "policy" in of:
            policy = POLICIES["mixed-adam"]
        return replace(plan, profile=undone, policy=undone.types(policy))

    for name in ("fsdp2", "fsdp2-op", "megatron", "ddp", "fully-shard", "loss-parallel"):
        changing, listed = set(), {}
        for strategy in ("dp", "zero2", "fsdp-hold"):
            for size in ({"psi": "1e9"}, {"model": {"config": "llama-3-8b"}}):
                asked = Asked("predict", strategy, devices="6", accumulate="3", profile=name, **size)
                plan = read(asked)
                of = plan.profile.differs
                changing |= {d.what for d in of if figures(without(plan, d)) != figures(plan)}
                told = predicted(plan).document()["profile"]
                listed = {key: {d["what"] for d in told[key]} for key in ("differs", "not_applied")}
        assert listed["differs"] == changing
        assert listed["not_applied"] == {d.what for d in profile(name).differs} - changing


def test_rows_are_the_features_that_a_product_makes_or_the_entries_of_a_table():
    found = {}
    for part in parts(small("gpt", False)):
        found |= {weight.name: rows_of(weight, part) for weight in part.weights}
    assert found["query_weight"] == found["query_bias"] == ("g", "r", "d")
    assert found["output_weight"] == found["down_weight"] == ("h",)
    assert found["place_weight"] == ("w",)
    assert found["mlp_norm_scale"] == ("h",)


@given(profiles())
def test_optimizer_state_that_begins_as_gradients_is_whole_where_they_are(profile):
    whole = profile.wholes
    assert whole[State.GRADIENTS] == profile.whole_gradients
    assert whole.get(State.OPTIMIZER) == (profile.whole_gradients if profile.like_gradients else None)
