"""Units that are held: gathered once for forward and backward, and there from one to the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.text.errors import BadInput
from spec.models.layers import NONE_HELD, ROOT, HeldUnits, Layers
from spec.models.profiles import TEXTBOOK, Units
from spec.models.states import State
from spec.pipelines.pipeline import Order
from tests.support.examples import examples
from tests.support.profiled_plans import profiled, profiled_as

LAYERS, HIDDEN, WORDS = 6, 64, 8
SHAPE = {"layers": LAYERS, "hidden": HIDDEN, "heads": 4, "vocabulary": WORDS, "sequence": 4}
MODEL = {key: str(value) for key, value in SHAPE.items()}
LAYER = HIDDEN * (12 * HIDDEN + 13)  # of GPT-2: four products, with biases, and two norms
EVERY = st.frozensets(st.integers(0, LAYERS - 1))


def held(*numbers, outside=()):
    """The profile that holds layers of some numbers, and other units."""
    units = HeldUnits(frozenset(outside), Layers(frozenset(numbers), others=False))
    return replace(TEXTBOOK, units=Units.ROOT, held_units=units)


def planned(strategy, profile, micro_steps=1, **options):
    asked = Asked("predict", strategy, model=MODEL, accumulate=str(micro_steps), **options)
    return replace(read(asked), profile=profile)


def gathered(plan):
    """Elements of parameters that the busiest device sends, and that others get of it."""
    sent = (m for m in plan.busiest.moved if (m.collective, m.what) == ("all_gather", "parameters"))
    return sum(m.elements for m in sent)


@examples(20)
@given(EVERY, st.sampled_from([2, 4, 8]), st.integers(1, 3))
def test_each_layer_that_is_held_saves_a_gathering_in_each_micro_step(numbers, devices, micro_steps):
    none, some = (planned(f"fsdp({devices})", held(*of), micro_steps) for of in ((), numbers))
    saved = len(numbers) * micro_steps * (devices - 1) * LAYER // devices
    assert gathered(none) - gathered(some) == saved
    others = [[m for m in plan.busiest.moved if m.collective != "all_gather"] for plan in (none, some)]
    sent = [sum(m.elements for m in of) for of in others]
    assert sent[0] == sent[1]


@examples(20)
@given(EVERY.filter(lambda numbers: 0 < len(numbers) < LAYERS), st.sampled_from([2, 4, 8]))
def test_layers_that_are_held_are_there_whole_until_their_backward(numbers, devices):
    """And beside them the gradient of one, as the layers that are not held have theirs."""
    none, some = (planned(f"fsdp({devices})", held(*of)).fullest for of in ((), numbers))
    policy = none.plan.policy
    views = len(numbers) * LAYER * policy.computed
    assert some.resting == none.resting
    assert some.transient["states"] - none.transient["states"] == views + LAYER * policy.fresh


@pytest.mark.parametrize("strategy", ["fsdp(4)", "zero3(2) * tp(2)", "hsdp(2, 2)", "fsdp(2) * pp(2)"])
def test_all_units_held_one_by_one_are_as_those_of_a_strategy_that_holds_them_all(strategy):
    holds = strategy.replace("zero3", "fsdp").replace("fsdp", "fsdp-hold").replace("hsdp", "hsdp-hold")
    profile = held(*range(LAYERS // 2), *range(-LAYERS // 2, 0), outside=[ROOT])
    some, every = planned(strategy, profile, 2), planned(holds, held(), 2)
    for one, other in zip(some.stages, every.stages, strict=True):
        assert (one.peak, one.resting, one.transient) == (other.peak, other.resting, other.transient)
        assert one.bytes == other.bytes
    none = replace(some, profile=replace(profile, held_units=NONE_HELD))
    assert gathered(some) < gathered(none)
    assert some.fullest.peak > none.fullest.peak


@examples(30)
@given(profiled("zero3", "fsdp", "hsdp"))
def test_no_stage_holds_or_sends_more_than_one_that_is_told_of(plan):
    """Stages with other layers that are held are of another kind."""
    every = [plan.stage(number) for number in range(plan.pipe.stages)]
    assert plan.fullest.peak >= max(stage.peak for stage in every)
    assert plan.busiest.bytes == max(stage.bytes for stage in every)


@given(st.sampled_from(["zero1(4)", "zero2(4)", "dp(4)", "fsdp-hold(4)"]), EVERY)
def test_what_is_not_gathered_again_is_as_without_units_that_are_held(strategy, numbers):
    some, none = planned(strategy, held(*numbers)), planned(strategy, held())
    assert some.step == none.step
    assert (some.fullest.peak, some.busiest.bytes) == (none.fullest.peak, none.busiest.bytes)


def test_an_order_in_which_stages_go_does_not_change_what_is_held():
    """The last layer is the last stage's."""
    model = MODEL | {"order": Order.GPIPE.value}
    asked = Asked("predict", "fsdp(2) * pp(2)", model=model, accumulate="2")
    first, last = (replace(read(asked), profile=held(-1)).stage(number) for number in (0, 1))
    without = replace(first.plan, profile=held())
    assert first.bytes == without.stage(0).bytes
    saved = 2 * LAYER // 2 * first.plan.policy.computed
    assert without.stage(1).bytes - last.bytes == saved
    assert last.resting[State.PARAMETERS] == without.stage(1).resting[State.PARAMETERS]


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ("6", "which holds layer 6; expected layers from -6 to 5; nearest: 5"),
        ("-7", "which holds layer -7; expected layers from -6 to 5; nearest: -6"),
        ("-1, 5", "which holds layer 5, and -1, the same; expected each unit once"),
    ],
)
def test_layers_that_a_model_has_not_are_refused_in_one_line(units, words, tmp_path, psem):
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE.format(units))
    shape = [x for key, value in SHAPE.items() for x in (f"--{key}", value)]
    for command in ("predict", "simulate"):
        code, _, error = psem(command, "fsdp(2)", *shape, "--profile", path)
        assert (code, error.count("\n")) == (2, 1)
        assert words in error
    code, _, error = psem("check", "fsdp(2)", *shape[:-4], "--profile", path)
    assert code == 2 and words in error


PROFILE = 'title = "t"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\nheld_units = [{}]\n'


def test_layers_of_a_model_of_which_no_layers_are_known_are_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE.format("-1") + 'policy = "mixed-adam"\ngathered = 2\n')
    with pytest.raises(BadInput, match="which holds layer -1; expected a model's shape and --sequence"):
        read(Asked("predict", "fsdp(2)", psi="64", profile=str(path)))


def test_what_is_sent_of_some_layers_says_which(tmp_path):
    plan = profiled_as("held_units = [-1]", tmp_path, "fsdp(2)")
    plan = replace(plan, model=replace(plan.model, layers=3))
    said = {m.of for m in plan.busiest.moved if m.what == "parameters"}
    assert any(of.endswith("(of layers, those numbered -1)") for of in said)
    assert any(of.endswith("(of layers, all but -1)") for of in said)
