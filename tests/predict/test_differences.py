"""Which differences of a profile from the textbook a prediction lists."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from psem_model.predict.asked import Asked
from psem_model.predict.differences import alike, differing, figures, realised_by, without
from psem_model.predict.fields import OF_STEPS
from psem_model.predict.read import read
from psem_model.predict.report import predicted
from psem_model.reading.schedules import dumps
from spec.derivation.schedules import schedule_of
from spec.derivation.steps import derive
from spec.devices.layouts import LayoutError
from spec.models.differences import Difference
from spec.models.profiles import Profile, realised_parts
from spec.models.states import POLICIES
from spec.plans.strategies import STRATEGIES
from tests.support.examples import examples, few
from tests.support.profiled_plans import MODEL, SHAPE, anywhere, profiled, profiled_as
from tests.support.profiles import profiles

SAID = ("name", "title", "differs", "policy")


def test_differences_that_are_overridden_are_not_listed(tmp_path):
    file = tmp_path / "mine.toml"
    keys = ['policy = "fp32-adam"', "gathered = 2\nreduced = 4", 'units = "layer"']
    keys += ['padding = "row"', "prefetch = 1"]
    said = (f'[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\n{key}\n' for key in keys)
    file.write_text('title = "t"\n' + "".join(said))

    def listed(**options):
        model = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}
        plan = read(Asked("predict", "fsdp(3)", model=model, profile=str(file), **options))
        found = next(s for s in predicted(plan).sections if s.key == "profile.differs")
        return len(found.rows)

    assert listed() == len(keys)
    assert listed(policy="mixed-adam") == listed() - 1
    assert listed(unit="100") == listed() - 3


def test_what_a_difference_leaves_as_it_is_is_derived_once():
    shape = {k: str(v) for k, v in {**SHAPE, "vocabulary": 10, "sequence": 4}.items()}
    plan = read(Asked("predict", "fsdp(3)", model=shape, profile="megatron"))
    for difference in plan.profile.differs:
        costs = without(plan, difference).costs
        same = {name for name, of in costs.items() if of == plan.costs[name]}
        assert same == {name for name, of in costs.items() if of is plan.costs[name]}
        other = without(plan, difference)
        assert (other.derived == plan.derived) is (other.derived is plan.derived)
        has, had = (each.stage(0).weights for each in (other, plan))
        assert (has == had) is (has.groups is plan.stages[0].groups)
    of_head = next(d for d in plan.profile.differs if d.what == "logits are in bf16")
    costs = without(plan, of_head).costs
    assert [name for name, of in costs.items() if of is plan.costs[name]] == ["embedding", "layer"]


@pytest.mark.parametrize(
    ("text", "strategy", "other"),
    [
        ("fills = true", "zero1(2)", ""),
        ('pinned = ["optimizer"]', "zero1(2)", "zero-offload(2)"),
        ("apart = true", "cp(2)", "tp(2)"),
        ("uneven = true", "tp(2)", ""),
        ("holds = true", "zero3(2)", "tp+sp(2)"),
        ('padding = "weight"', "dp(2)", "zero1(3)"),
        ("buckets = [300, 300]", "tp(2)", "zero1(3)"),
        ("quantised = 1", "zero1(2)", "zero3(2)"),
        ('padding = "row"', "zero3(2)", ""),
        ('whole_gradients = ["word_weight"]', "cp(2)", "tp(2)"),
        ('stores = ["scores"]\nagain = ["seen"]', "", "dp(2)"),
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


def test_uneven_slices_are_listed_where_features_do_not_divide(tmp_path):
    plan = profiled_as("uneven = true", tmp_path, "tp(2)")
    odd = replace(plan, model=replace(plan.model, feed_forward=127))
    assert [len(differing(each)) for each in (plan, odd)] == [0, 1]


def test_a_difference_without_which_no_plan_can_be_is_listed(tmp_path):
    inside = '[[differs]]\nwhat = "a"\nwhy = "b"\nsource = "c"\ninside = ["raised", "total"]'
    plan = profiled_as(f'whole = ["logits", "loss"]\n{inside}', tmp_path, "tp(2)")
    (whole, _) = plan.profile.differs
    with pytest.raises(LayoutError, match="inside a kernel, and would be sent"):
        _ = without(plan, whole).step
    assert differing(plan) == plan.profile.differs


def test_of_a_schedule_beside_a_model_values_too_are_the_textbooks(tmp_path):
    """Its parts are as the profile computes them."""
    path = tmp_path / "mine.toml"
    path.write_text(dumps(schedule_of(STRATEGIES["zero1"]), "mine"))

    def told(**of):
        asked = Asked("predict", model=MODEL, devices="2", profile="eager", **of)
        found = predicted(read(asked)).document()["profile"]
        return [difference["what"] for difference in found["differs"]], found["textbook"]

    assert told(schedule=str(path)) == told(strategy="zero1")


@examples(5)
@given(profiled())
def test_what_is_not_listed_changes_no_figure(plan):
    def figures(plan):
        of = plan.fullest, plan.busiest
        rest = [(s.peak, s.total, s.transient, s.host, s.host_pinned, s.moved) for s in of]
        return rest, {n: (c.activations, c.computing) for n, c in plan.costs.items()}

    usual = {f.name: f.default for f in fields(Profile) if f.name not in SAID}
    other = {name for name, value in usual.items() if getattr(plan.profile, name) != value}
    each = tuple(Difference(name, "why", "source", frozenset({name})) for name in sorted(other))
    plan = replace(plan, profile=replace(plan.profile, differs=each))
    listed = {difference.what for difference in differing(plan)}
    for name in other - listed:
        profile = replace(plan.profile, **{name: usual[name]})
        undone = replace(plan, profile=profile, policy=profile.types(plan.policy))
        assert figures(undone) == figures(plan)


@examples(60)
@given(profiled(), profiles(), st.sampled_from(sorted(OF_STEPS)))
def test_plans_whose_steps_are_the_same_have_the_same_figures(plan, other, name):
    """Where their profiles have one thing otherwise that steps alone may tell."""
    profile = replace(plan.profile, **{name: getattr(other, name)})
    found = realised_by(plan, profile, plan.policy)
    try:
        assume(alike(plan, found))
    except LayoutError:  # what is inside a kernel would be sent
        assume(False)
    assert [*figures(plan)] == [*figures(replace(found, beside=None))]


@examples(60)
@given(profiled(), profiles())
def test_a_plan_beside_another_has_the_figures_that_it_has_alone(plan, profile):
    found = realised_by(plan, profile, profile.types(plan.policy))
    try:
        beside = [*figures(found)]
    except LayoutError:  # what is inside a kernel would be sent
        assume(False)
    assert beside == [*figures(replace(found, beside=None))]


def test_copies_of_whole_gradients_beside_slices_are_told(tmp_path):
    def notes(strategy, **size):
        profile = anywhere("ddp", tmp_path)
        plan = read(Asked("predict", strategy, devices="2", profile=profile, **size))
        return [n for s in predicted(plan).sections if s.key == "profile.differs" for n in s.notes]

    for size in ({"model": MODEL}, {"psi": "1000"}):
        assert [*map(len, (notes("dp", **size), notes("zero1", **size)))] == [0, 0]
        for strategy in ("fsdp", "zero2", "zero3"):
            assert any("copies of whole gradients" in note for note in notes(strategy, **size))


def test_of_psi_parameters_the_differences_are_listed_that_change_a_figure_and_others_named(
    tmp_path,
):
    """Something that a plan holds or sends is another without each that is listed."""

    def figures(plan):
        stage, types = plan.fullest, replace(plan.policy, copied=False)  # copies show in what passes
        return types, stage.resting, stage.peak, stage.transient, stage.buckets, stage.moved

    def undone(plan, difference):
        of = {f.name: f.default for f in fields(Profile) if f.name in difference.changes}
        profile, policy = replace(plan.profile, **of), plan.policy
        if "policy" in of:
            policy = POLICIES["mixed-adam"]
        return replace(plan, profile=profile, policy=profile.types(policy))

    for name in few(("fsdp2", "fsdp2-op", "megatron", "ddp", "fully-shard", "parallelize")):
        applied, told = set(), {}
        for strategy in ("dp", "zero2", "fsdp-hold"):
            for size in ({"psi": "1e9"}, {"model": {"config": "llama-3-8b"}}):
                profile = anywhere(name, tmp_path)
                asked = Asked("predict", strategy, devices="6", accumulate="3", profile=profile, **size)
                plan = read(asked)
                of = plan.profile.differs
                changing = {d.what for d in of if figures(undone(plan, d)) != figures(plan)}
                told = predicted(plan).document()["profile"]
                assert {d["what"] for d in told["differs"]} == changing
                applied |= changing
        assert {d["what"] for d in told["not_applied"]} == {d.what for d in of} - applied


ORDER = ["composes", "as_computed", "masks", "heads_alike", "keeps_given"]


@pytest.mark.parametrize(
    ("name", "profile", "again", "keys"),
    [
        ("gemma-2b", "eager+fused", "none", {"composes"}),
        ("mistral-7b-v0.1", "eager+fused", "none", {"masks"}),
        ("falcon-7b", "eager+fused", "none", {"composes", "heads_alike"}),
        ("gpt-oss-20b", "eager", "none", {"composes", "as_computed"}),
        ("llama-2-7b", "eager", "all", {"keeps_given"}),
        ("llama-2-7b", "eager", "none", set()),
    ],
)
def test_what_operations_and_kernels_do_is_told_one_by_one_where_a_plan_has_it(
    name, profile, again, keys
):
    model = {"config": name, "sequence": "4096", "recompute": again}
    plan = read(Asked("predict", "dp(1)", model=model, profile=profile))
    found = [{key for key, _ in each.given} & {*ORDER} for each in differing(plan)]
    assert [each for each in found if each] == [{key} for key in sorted(keys, key=ORDER.index)]


@given(profiled())
def test_a_step_and_its_parts_are_derived_by_the_fields_that_are_said_to_be_read(plan):
    """A field that is left out of these would be the textbook's in each plan."""
    profile = plan.in_plan
    assert plan.derived == derive(plan.product, plan.parts, plan.again, profile=profile)
    width = plan.policy.computed
    assert plan.parts == realised_parts(plan.model, plan.profile, width)
