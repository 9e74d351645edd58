"""Words of the embedding or of the head that tensor parallelism leaves whole."""

from __future__ import annotations

from itertools import product

import pytest

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.differences import differing
from psem_model.predict.read import read
from psem_model.predict.refusals import refused_plan
from psem_model.predict.report import predicted
from spec.costs.model_costs import elements
from spec.models.states import State
from tests.support.examples import few

WORDS = ("word_weight", "head_weight")
PLANS = ["tp(2)", "zero1(2) * tp+sp(4)", "zero3+all(2) * tp+sp(2) * pp(2)"]
CHOSEN = (WORDS, WORDS[:1], WORDS[1:])
MODEL = {"layers": 2, "hidden": 8, "heads": 4, "feed_forward": 8, "vocabulary": 19, "sequence": 8}


def plan(strategy, whole, folder, like="common", block="llama", more="", **shape):
    """Of a small model, by a profile that leaves some values and weights of words whole."""
    file, names = folder / "mine.toml", ", ".join(f'"{name}"' for name in whole)
    said = f'what = "x"\nwhy = "y"\nsource = "z"\nwhole = [{names}]\n{more}'
    file.write_text(f'title = "t"\nlike = "{like}"\n' + f"[[differs]]\n{said}" * bool(whole))
    model = {key: str(size) for key, size in (MODEL | shape).items()} | {"block": block}
    return read(Asked("predict", strategy, model=model, profile=str(file)))


def moved(found, part):
    return [t.move.value.plain_name for t in found.costs[part].traffic]


@pytest.mark.parametrize(("whole", "strategy"), [*product(CHOSEN, ["tp(2)", "tp+sp(2)"])])
def test_a_weight_that_is_left_whole_is_on_each_device_and_unpadded(whole, strategy, tmp_path):
    found = plan(strategy, whole, tmp_path)
    for part, name in (("embedding", "word_weight"), ("head", "head_weight")):
        of, hidden = found.costs[part].parameters[name], found.transformer.hidden
        assert of == (19 if name in whole else 10) * hidden
        weight = next(w for w in found.costs[part].program.part.weights if w.name == name)
        assert elements(weight, {}, found.indices, found.mesh) == 19 * hidden


def test_nothing_is_sent_for_words_that_are_whole_where_tokens_are(tmp_path):
    found = plan("tp(2)", WORDS, tmp_path)
    assert moved(found, "embedding") == moved(found, "head") == []
    assert moved(plan("tp(2)", (), tmp_path), "embedding") == ["words"]


@pytest.mark.parametrize(
    ("strategy", "axes"),
    [("tp(2)", ()), ("tp+sp(2)", ("tensor",)), ("tp+sp(4)", ("tensor", "tensor_copies"))],
)
def test_where_tokens_are_cut_their_gradients_are_summed_as_those_of_norms(strategy, axes, tmp_path):
    found = plan(strategy, WORDS, tmp_path, kv_heads="2")
    summed = found.step.summed_over()
    assert [{*summed[name]} for name in WORDS] == [{*axes}] * 2
    assert {*summed["final_norm_scale"]} == {*axes}


@pytest.mark.parametrize(
    ("whole", "strategy", "like"),
    few(
        product(
            [WORDS, ("logits", "loss", "word_weight"), ("logits", *WORDS[1:])],
            PLANS,
            ["common", "parallelize", "megatron"],
        )
    ),
)
def test_what_is_left_whole_is_run_as_it_is_predicted(whole, strategy, like, tmp_path):
    kv_heads = "4" if like == "parallelize" else "2"  # which makes no copies of them
    found = plan(strategy, whole, tmp_path, like, kv_heads=kv_heads)
    run = measured(found, Run(2))
    assert run.as_predicted and refused_plan(found) is None


def test_tied_words_are_whole_in_both_parts_or_in_none(tmp_path):
    tied = {"block": "gpt"}
    assert plan("tp(2)", WORDS[:1], tmp_path, **tied).costs["head"].parameters["word_weight"] == 19 * 8
    of_none = plan("tp(2)", WORDS[1:], tmp_path, **tied)
    assert of_none.costs["head"].parameters["word_weight"] == 10 * 8
    (difference,) = (d for d in of_none.profile.differs if "whole" in d.changes)
    assert difference not in differing(of_none)


def test_the_report_says_which_words_are_whole_and_pads_no_others(tmp_path):
    def facts(whole):
        return " ".join(predicted(plan("tp(2)", whole, tmp_path)).facts)

    assert "all words on each device: head_weight, word_weight" in facts(WORDS)
    assert "padded to" not in facts(WORDS)
    assert "19 words padded to 20" in facts(WORDS[:1])
    assert "all words" not in facts(())


def test_a_whole_embedding_has_no_gradient_beside_its_own(tmp_path):
    found = plan("tp(2)", WORDS[:1], tmp_path, more='whole_gradients = ["word_weight"]')
    without = plan("tp(2)", WORDS[:1], tmp_path)
    state = State.GRADIENTS
    assert found.fullest.resting[state] == without.fullest.resting[state]
