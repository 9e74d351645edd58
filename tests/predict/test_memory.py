"""What is there at once while a model computes: values by their last use, states by their units."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.measure.placings import devices_of
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from spec.costs.lifetimes import live
from spec.costs.model_costs import elements, fullest_moment, kept_bytes
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, program_of
from spec.models.parts import head, layer
from spec.models.profiles import TEXTBOOK, realised
from spec.models.states import MIXED_ADAM, State, custom_policy
from spec.models.transformer import EMBEDDING, HEAD, LAYER, Transformer
from spec.models.values import Builder, Role, Value
from tests.support.command import exact
from tests.support.examples import examples
from tests.support.plans import SHAPE, plans
from tests.support.products import plans as small_plans


# --------------------------------------------------------------------------- values, by last use
def product_and_function():
    """z = f(y), y = x w."""
    x = Value("x", ("b", "h"), Role.STREAM)
    part = Builder("part", x)
    y = part.contract(x, Value("w", ("h", "f"), Role.WEIGHT), Value("y", ("b", "f")))
    return part.part(part.apply("gelu", y, Value("z", ("b", "f"), Role.STREAM)))


@pytest.mark.parametrize(
    ("again", "kept", "beside"),
    [
        (NOTHING, 12 + 20, 40),  # x, y; dz and dy, as the function goes backward
        (EVERYTHING, 12, 60),  # x; y, made again, and dz with z, which nobody reads, and then with dy
    ],
)
def test_the_fullest_moment_of_a_product_and_a_function(again, kept, beside):
    """With 2 samples, h = 3 and f = 5 there are 12 bytes of x, and 20 of each of y, z, dy and dz."""
    program, sizes = program_of(product_and_function(), (), again), {"b": 2, "h": 3, "f": 5}
    assert kept_bytes(program, sizes, {}) == kept
    assert fullest_moment(program, sizes, {}) == beside


def at_most(program, size):
    """Bytes of a dictionary of values, from which each goes when no later line reads it."""
    of_states = {*program.part.weights, *program.gradients.values()}
    found = []
    for lines, first, last in (
        (program.forward, program.part.takes, program.gives),
        (program.backward, program.seed, program.returns),
    ):
        there = {first: size(first)} if first else {}
        for number, line in enumerate(lines):
            there |= {value: size(value) for value in (*line.reads, line.makes)}
            counted = (v for v in there if v not in of_states and v not in program.kept)
            found.append(sum(there[v] for v in counted))
            read = {v for later in lines[number + 1 :] for v in later.reads}
            there = {v: n for v, n in there.items() if v in read or v == last}
    return max(found)


@examples(60)
@given(plans("cp-all-gather*tp+sp*pp"))  # what is there in loops, simulated runs count
def test_values_are_there_from_the_line_that_makes_them_to_the_last_that_reads_them(plan):
    plan = replace(plan, sequence=36)
    for costs in plan.costs.values():
        program = costs.program

        def size(value, program=program):
            return value.width * elements(value, program.lies[value], plan.indices, plan.mesh)

        assert costs.computing == at_most(program, size)


@examples(20)
@given(small_plans())
def test_what_is_there_at_once_is_what_the_simulators_arrays_take(plan):
    run = devices_of(plan)
    run.step()
    for stage in run.stages:
        for block in (block for chunk in stage.chunks for block in chunk):
            assert block.fullest == plan.costs[block.name].computing


@given(plans(offload=False, again=NOTHING), st.sampled_from([EVERYTHING, FROM_SLICES]))
def test_all_that_is_made_again_is_there_at_once(plan, again):
    again = replace(plan, again=again).costs[LAYER]
    assert again.computing >= plan.costs[LAYER].activations - again.activations


@given(plans(offload=False))
def test_a_peak_is_what_is_there_and_what_passes(plan):
    for stage in plan.stages:
        passing = stage.transient
        assert passing["computing"] == max(plan.costs[name].computing for name in stage.counts)
        assert plan.costs[stage.computing].computing == passing["computing"] > 0
        assert stage.peak == stage.total + passing["states"] + passing["computing"]


LLAMA = {"config": "examples/configurations/llama-3-8b.json", "sequence": 4096}


def test_the_textbooks_head_computes_with_three_of_its_scores(predicted):
    """In fp32, as it goes backward: from exp, from the next word, and their sum."""
    for again in (NOTHING, EVERYTHING):
        found = predicted("tp", devices=4, recompute=again, profile="textbook", **LLAMA)
        scores = 4 * 4096 * 128_256 // 4
        assert exact(found["parts"][HEAD]["computing"]) == 3 * scores
        memory = found["memory"]
        assert memory["transient_of"]["computing"] == HEAD
        assert exact(memory["peak"]) == exact(memory["total"]) + 3 * scores


@pytest.mark.parametrize(("strategy", "wholes"), [("tp+sp", 4), ("cp-all-gather", 1)])
def test_whole_tokens_and_whole_keys_are_there_while_they_are_used(strategy, wholes, predicted):
    """Backward, at once: whole tokens, and cotangents of theirs from queries, keys and values.

    Or, with tokens cut, whole keys. All else has an eighth of that, or half of it.
    """
    layer = predicted(strategy, devices=8, **{**SHAPE, "sequence": 8})["parts"][LAYER]
    assert exact(layer["computing"]) >= wholes * 2 * 8 * 64


@pytest.mark.parametrize("recompute", [NOTHING, EVERYTHING])
@pytest.mark.parametrize("strategy", ["tp", "zero3", "pp"])
def test_a_peak_is_always_told(strategy, recompute, psem):
    options = [x for name, value in SHAPE.items() for x in (f"--{name}", value)]
    _, out, _ = psem("predict", strategy, "--devices", 2, "--recompute", recompute, *options)
    (line,) = [line for line in out.splitlines() if line.startswith("  peak ")]
    assert "each value freed after its last use" in line


def test_what_comes_first_and_last_is_there_all_along():
    program = program_of(product_and_function(), ())
    moments = live(program)[len(program.forward) :]
    assert program.seed in moments[0]
    assert program.returns in moments[-1]


# ----------------------------------------------------------------------- as wide as weights
WIDTHS = st.sampled_from([1, Fraction(3, 2), 4, 8])


def of_width(plan, w):
    return replace(plan, policy=custom_policy(Fraction(w), Fraction(2), Fraction(12)))


@given(plans("zero1*tp+sp*pp"), WIDTHS)
def test_values_are_as_wide_as_weights_but_for_masks_and_fp32(plan, w):
    two, other = of_width(plan, 2), of_width(plan, w)
    assert two.costs == replace(plan, policy=MIXED_ADAM).costs
    for name, costs in two.costs.items():
        found, program = other.costs[name], costs.program
        narrow = sum(
            elements(value, program.lies[value], plan.indices, plan.mesh)
            for value in program.kept
            if value.width == 2
        )
        assert found.activations == costs.activations + (w - 2) * narrow
        for had, has in zip(costs.traffic, found.traffic, strict=True):
            width = had.move.value.width
            assert has.bytes == has.elements * (w if width == 2 else width)
    for stage in plan.stages:
        for had, has in zip(
            two.stage(stage.number).moved, other.stage(stage.number).moved, strict=True
        ):
            assert has.elements == had.elements
            if has.collective == "send":
                assert has.bytes == has.elements * w


OF_THE_LOSS = ("logits", "raised", "total", "log_total", "lost", "loss")


@pytest.mark.parametrize("w", [1, 2, 8])
def test_all_that_the_loss_is_computed_from_is_in_fp32(w):
    """Scores of words are calculated in 32 bits. (Korthikanti et al., arXiv 2205.05198, section 4.3)

    And the loss from them: Megatron-LM's `post_language_model_processing` takes its cross entropy of
    `output.float()`.
    """
    part = realised(head(Transformer(1, 8, 2, 2, 4, 16, 11)), TEXTBOOK, w)
    widths = {operation.makes.name: operation.makes.width for operation in part.operations}
    assert {name: widths[name] for name in OF_THE_LOSS} == dict.fromkeys(OF_THE_LOSS, 4)


@pytest.mark.parametrize("w", [1, 2, 8])
def test_all_that_tokens_are_weighed_by_is_in_fp32(w):
    """The router's scores, as its softmax, whatever the weights are."""
    part = realised(layer(Transformer(1, 8, 2, 2, 4, 16, 11, experts=4, chosen=2)), TEXTBOOK, w)
    widths = {operation.makes.name: operation.makes.width for operation in part.operations}
    of_router = ("choices", "odds", "slot_odds")
    assert {name: widths[name] for name in of_router} == dict.fromkeys(of_router, 4)


@given(plans(), WIDTHS)
def test_the_width_of_weights_is_that_of_no_weight(plan, w):
    """What is a weight's is told by the policy alone."""
    for part in of_width(plan, w).parts:
        (twin,) = [p for p in of_width(plan, 2).parts if p.name == part.name]
        assert part.weights == twin.weights
        assert part == realised(twin, TEXTBOOK, w)


def test_training_in_fp32_keeps_and_sends_twice_as_much(predicted):
    shape = {**LLAMA, "recompute": EVERYTHING}
    bf16 = predicted("tp(2)*dp(2)*pp(2)", **shape)
    fp32 = predicted("tp(2)*dp(2)*pp(2)", bytes="fp32-adam", **shape)
    has, had = (found["parts"][LAYER] for found in (fp32, bf16))
    assert exact(has["activations"]) == 2 * exact(had["activations"]) == 4 * 4096 * 4096
    for m, n in zip(has["moves"], had["moves"], strict=True):
        assert exact(m["bytes"]) == 2 * exact(n["bytes"]) == 4 * exact(m["elements"])
    sends = [o for o in fp32["communication"]["operations"] if o["operation"] == "send"]
    assert all(exact(o["bytes"]) == 4 * exact(o["elements"]) for o in sends)
    assert sends
    assert fp32["formulas"][LAYER]["activations"] == "4*b*h*s"


# ------------------------------------------------------------------------- states, by their units
def of_parts(plan, stage):
    """Elements of each part's weights; of tied words on one stage, the embedding has them."""
    found = {name: dict(plan.costs[name].parameters) for name in stage.counts}
    if plan.model.tied and EMBEDDING in found and HEAD in found:
        found[HEAD].pop("word_weight")
    return {name: sum(sizes.values()) for name, sizes in found.items()}


@given(plans("zero3*pp"))
def test_a_unit_is_the_largest_of_a_layer_the_embedding_and_the_head(plan):
    plan = replace(plan, mesh=plan.mesh | {"batch": 2})
    for stage in plan.stages:
        sizes = of_parts(plan, stage)
        of_layers = [g for g in stage.groups if not {*g.costs.schedule.axes} - {"batch"}]
        assert max(g.costs.sizes.unit for g in stage.groups) <= max(sizes.values())
        if len(of_layers) == len(stage.groups) == 1:
            (group,) = of_layers
            assert group.costs.sizes.unit == max(sizes.values()) == sizes[group.largest]
            gathered, fresh = (2 * (size + size % 2) for size in (sizes[stage.unit],) * 2)
            assert stage.transient["states"] <= gathered + fresh


def test_embedding_and_head_are_not_gathered_at_once(psem, predicted):
    """Of 6,738,415,616 parameters, 32,000 x 4,096 words are 131,072,000; a layer is 202,383,360."""
    shape = {"config": "examples/configurations/llama-2-7b.json", "sequence": 128}
    memory = predicted("zero3", devices=8, **shape)["memory"]
    assert exact(memory["transient"]["states"]) == (2 + 2) * 202_383_360
    assert memory["transient_of"]["states"] == LAYER
    for words, part in ((2**20, "the embedding"), (16, "a layer")):
        options = [x for name, value in SHAPE.items() for x in (f"--{name}", value)]
        _, out, _ = psem("predict", "zero3", "--devices", 2, "--vocabulary", words, *options)
        assert f"parameters or gradients, of {part}" in out
    given_ = predicted("zero3", devices=8, unit=10**6, **shape)["memory"]
    assert given_["transient_of"]["states"] == 10**6
    assert exact(given_["transient"]["states"]) == (2 + 2) * 10**6


@pytest.mark.parametrize(
    ("strategy", "words", "layers"),
    [
        ("fsdp", 4, 2),
        ("fsdp(8) * pp(1)", 4, 2),
        ("fsdp-hold", 3, 1),
        ("zero2", 3, 1),
        ("zero1", 2, 0),
        ("zero1 --accumulate 2", 3, 0),
    ],
)
@pytest.mark.parametrize("profile", ["common", "eager"])
def test_words_that_both_ends_have_are_there_beside_a_layers_turn(
    strategy, words, layers, profile, predicted
):
    """Of fsdp the view, the gradients that the head and the embedding leave, and their sum; of a layer
    its view and its gradient. What rests is the sum, or that of other micro-steps.
    """
    strategy, _, micro_steps = strategy.partition(" --accumulate ")
    plan = strategy if "(" in strategy else f"{strategy}(8)"
    asked = {"model": "llama-3.2-1b", "sequence": 8, "profile": profile}
    asked |= {"accumulate": micro_steps} if micro_steps else {}
    transient = predicted(plan, **asked)["memory"]["transient"]
    held = 2 * 1_235_814_400 * (strategy == "fsdp-hold")
    passing = words * 2 * 128_256 * 2048 + layers * 2 * 60_821_504
    assert exact(transient["states"]) == held + passing


@pytest.mark.parametrize(("micro_steps", "waits"), [(1, 0), (2, 1), (5, 1)])
def test_gradients_that_wait_whole_are_held_from_micro_step_to_micro_step(micro_steps, waits):
    """Beside the slices that rest they are all of them, in fp32; what passes and the peak are alike."""
    asked = Asked("predict", "fsdp(4)", psi="1000", accumulate=str(micro_steps))
    stage = read(replace(asked, profile="fully-shard+no-sync")).fullest
    at_once = read(replace(asked, profile="fully-shard+no-sync", accumulate="1")).fullest
    assert stage.resting[State.GRADIENTS] == 4 * 250
    assert stage.waiting == waits * 4 * 750
    assert stage.total == sum(stage.resting.values()) + stage.step_counts + stage.waiting
    assert stage.peak == at_once.peak
