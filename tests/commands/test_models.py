"""`psem predict` and `psem derive` for strategies that cut the model."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofs.registry import ROOT
from psem_model.reading.configurations import read
from spec.plans.model_strategies import MODEL_AXES
from tests.support.command import exact
from tests.support.examples import few, slow_but

CONFIGURATIONS = sorted((ROOT / "examples" / "configurations").glob("*.json"))
FAMILIES = {json.loads(path.read_text())["model_type"]: path for path in CONFIGURATIONS}
COUNTS = {
    "llama-2-7b": 6_738_415_616,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "gpt2": 124_439_808,
    "mixtral-8x7b-v0.1": 46_702_792_704,
}
SHAPE = ["--layers", 8, "--hidden", 64, "--heads", 8, "--sequence", 32]
WITH_EXPERTS = ["--experts", 4, "--chosen", 2]


@pytest.mark.parametrize("name", COUNTS)
def test_published_parameter_counts_come_from_the_configuration(name, predicted):
    path = ROOT / "examples" / "configurations" / f"{name}.json"
    found = predicted("dp", devices=8, config=path)
    assert found["inputs"]["psi"] == COUNTS[name]
    assert exact(found["memory"]["resting"]["total"]) == 16 * COUNTS[name]


@pytest.mark.parametrize("path", slow_but(few(FAMILIES.values()), CONFIGURATIONS), ids=lambda p: p.stem)
def test_every_configuration_is_cut_along_every_axis_that_fits(path, predicted):
    shape = read(str(path))[1]
    by_heads = () if shape.kv_heads % 2 == 0 else ("tp", "tp+sp", "cp-all-to-all")
    for product in (["dp", "tp", "cp", "ep"], ["tp+sp", "cp-all-gather", "pp"], ["cp-all-to-all"]):
        fit = [name for name in product if name not in by_heads and (name != "ep" or shape.experts)]
        if fit:
            found = predicted(
                " * ".join(f"{name}(2)" for name in fit),
                config=path,
                sequence=1280 - 256 * bool(shape.positions),
            )
            assert sum(found["parameters"].values()) == found["inputs"]["psi"]


@pytest.mark.parametrize("product", ["tp", "tp+sp*pp", "dp*cp*tp", "ep*tp+sp*pp", "cp-all-to-all*pp"])
def test_totals_are_the_sums_of_what_is_listed(product, predicted):
    sizes = "x".join("2" for _ in product.split("*"))
    more = {"experts": 4, "chosen": 2} if "ep" in product else {}
    shape = {"layers": 8, "hidden": 64, "heads": 8, "sequence": 32, "vocabulary": 96}
    found = predicted(product, devices=sizes, accumulate=4, **shape, **more)
    sent = found["communication"]
    for unit in ("elements", "bytes"):
        assert exact(sent[unit]) == sum(exact(o[unit]) for o in sent["operations"])
    memory = found["memory"]
    states = sum(exact(memory["resting"][s]) for s in ("parameters", "optimizer", "gradients"))
    assert exact(memory["resting"]["total"]) == states
    assert exact(memory["total"]) == states + exact(memory["activations"])
    for part in found["parts"].values():
        listed = sum(exact(move["elements"]) for move in part["moves"])
        phases = ("forward", "backward", "again")
        assert listed == sum(exact(part["elements"][phase]) for phase in phases)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_formulas_give_the_numbers_beside_them(predicted, data):
    import sympy

    names = data.draw(st.lists(st.sampled_from(sorted(MODEL_AXES)), min_size=1, max_size=3))
    by_axis = {MODEL_AXES[name].name: name for name in names}
    sizes = {axis: data.draw(st.sampled_from([1, 2, 4])) for axis in by_axis}
    experts = "ep" in names or data.draw(st.booleans())
    shape = {
        "layers": data.draw(st.integers(1, 5)),
        "heads": 16 * data.draw(st.integers(1, 2)),
        "sequence": 32 * data.draw(st.integers(1, 3)),
        "micro-batch": data.draw(st.integers(1, 3)),
        "block": data.draw(st.sampled_from(["gpt", "llama"])),
        "vocabulary": 64,
    }
    shape["hidden"] = shape["heads"] * data.draw(st.integers(1, 4))
    if experts:
        shape |= {"experts": 4, "chosen": 2}
    found = predicted(
        "*".join(by_axis.values()),
        devices="x".join(map(str, sizes.values())),
        recompute=data.draw(st.sampled_from(["none", "attention", "all", "sliced"])),
        **shape,
    )
    i, letters = found["inputs"], {"tensor": "t", "context": "c", "expert": "e", "batch": "n"}
    values = {letters[axis]: size for axis, size in sizes.items()} | {
        "b": i["micro_batch"],
        "s": i["sequence"],
        "h": i["hidden"],
        "a": i["heads"],
        "V": i["vocabulary"],
        "L": i["layers"],
        "P": i["positions"],
        "E": i["experts"],
        "k": i["chosen"],
    }
    symbols = {name: sympy.Symbol(name) for name in values}

    def value(formula):
        found = sympy.sympify(formula, locals=symbols).subs(values)
        return Fraction(int(found.p), int(found.q))

    for name, part in found["parts"].items():
        forms = found["formulas"][name]
        assert value(forms["parameters"]) == part["parameters"]
        assert value(forms["activations"]) == exact(part["activations"])
        for phase in ("forward", "backward", "again"):
            assert value(forms[phase]) == exact(part["elements"][phase])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["tp", *SHAPE, "--devices", 3], "expected a divisor of 8, the key-value heads"),
        (["tp", *SHAPE, "--devices", "2x2"], "a whole number for tensor, at least 1"),
        (["tp*tp+sp", *SHAPE, "--devices", "2x2"], "another axis than tensor"),
        (["tp(2)*pp", *SHAPE], "without a size for pipe"),
        (["tp(2)", *SHAPE, "--devices", 2], "--devices: given with"),
        (["tp", *SHAPE], "--devices: missing"),
        (["tpp", *SHAPE, "--devices", 2], "nearest: tp"),
        (["dp*zero3*tp", *SHAPE, "--devices", "2x2x2"], "character 4: given 'zero3'"),
        (["ep", *SHAPE, "--devices", 2], "expected a model with experts"),
        (["ep", *SHAPE, "--devices", 3, *WITH_EXPERTS], "expected a divisor of 4, the experts"),
        (["tp", *SHAPE, "--experts", 4, "--devices", 2], "--experts and --chosen go together"),
        (["tp", *SHAPE, "--experts", 2, "--chosen", 4, "--devices", 2], "at most --experts 2"),
        (["pp", *SHAPE, "--devices", 16], "expected at most 8 in all"),
        (["pp", *SHAPE, "--devices", 2, "--chunks", 2, "--accumulate", 3], "multiple of the 2"),
        (["pp", *SHAPE, "--devices", 2, "--order", "1f2b"], "nearest: 1f1b"),
        (["pp", *SHAPE, "--devices", 2, "--order", ""], "expected one of gpipe, 1f1b"),
        (
            ["pp", *SHAPE, "--devices", 4, "--order", "zb-h2", "--accumulate", 6],
            "at least 7 micro-batches",
        ),
        (["pp", *SHAPE, "--devices", 2, "--chunks", 2, "--order", "zb-h1"], "expected interleaved"),
        (
            ["pp", *SHAPE, "--devices", 8, "--order", "dualpipe"],
            'expected dualpipev, and for 8 stages "dp',
        ),
        (
            ["pp", *SHAPE, "--devices", 2, "--chunks", 3, "--order", "dualpipev"],
            "--chunks: given 3 with --order dualpipev; expected 2",
        ),
        (
            ["pp", *SHAPE, "--devices", 2, "--order", "dualpipev", "--accumulate", 3],
            "at least 4 micro-batches, as dualpipev needs on 2 stages",
        ),
        (
            ["pp(1)", *SHAPE, "--order", "zb-h1", "--offload-activations"],
            "--offload-activations: given with --order zb-h1",
        ),
        (["pp(2) * pp(q=2)", *SHAPE], "character 9: given 'pp'; expected one pipeline"),
        (["TP+SP(2)", *SHAPE], "nearest: tp+sp"),
        (["ZeRO3", *SHAPE, "--devices", 2], "nearest: zero3"),
        (
            ["zero1", "README.md", "tests", *SHAPE],
            "given 'README.md tests' too; expected one [STRATEGY|FILE]; a product is",
        ),
        (["pp", *SHAPE, "--devices", 2, "--chunks", 2, "--order", "gpipe"], "interleaved"),
        (["tp", *SHAPE, "--devices", 2, "--recompute", "some"], "expected one of none, attention"),
        (
            ["tp", *SHAPE, "--devices", 2, "--block", "bert"],
            "expected one of gpt, gpt-without-dropout, llama",
        ),
        (["tp", *SHAPE, "--devices", 2, "--psi", 3], "--psi: given with 'tp'"),
        (["tp", *SHAPE[:6], "--devices", 2], "--sequence: missing"),
        (["tp", *SHAPE[:6], "--sequence", 31, "--devices", 2, "--recompute", "sliced"], "in slices"),
        (["tp", "--devices", 2], "--layers: missing"),
        (["tp", *SHAPE, "--devices", 2, "--kv-heads", 3], "expected a divisor of --heads 8"),
        (["tp", *SHAPE[:4], "--heads", 7, "--sequence", 4, "--devices", 7], "--hidden 64"),
        (["tp", *SHAPE, "--devices", 2, "--config", CONFIGURATIONS[0]], "given with --config"),
        (["tp", "--devices", 2, "--config", "no/such.json"], "no/such.json"),
        (["zero3", *SHAPE[:6], "--psi", 4, "--devices", 2], "one of the two"),
        (["zero3", "--devices", 2], "one of the two"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(args, words, psem):
    code, out, err = psem("predict", *args)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert words in err


def test_unknown_architectures_name_the_supported_ones(psem, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "mamba"}))
    code, _, err = psem("predict", "tp", "--devices", 2, "--sequence", 8, "--config", path)
    assert code == 2
    assert all(
        name in err for name in ("mamba", "falcon", "llama", "mistral", "qwen2", "gpt2", "mixtral")
    )


def test_the_four_all_reduces_of_a_layer_are_derived(psem):
    _, out, _ = psem("derive", "tp", "--moves")
    assert out.count("all_reduce") == out.count(">") - out.count("->") == 4


@pytest.mark.parametrize(
    "args",
    [
        ["predict", "ep", "--devices", 2, *SHAPE],
        ["compare", "ep(2)", "dp(2)", *SHAPE],
        ["simulate", "ep(2)", *SHAPE, "--vocabulary", 8],
        ["check", "ep", "--config", CONFIGURATIONS[0].parent / "gpt2.json"],
        ["check", "zero1 * ep", "--config", CONFIGURATIONS[0].parent / "gpt2.json"],
    ],
)
def test_a_model_without_experts_has_none_to_cut(args, psem):
    code, out, err = psem(*args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "given 'ep'; expected a model with experts" in err


@pytest.mark.parametrize("product", ["ep", "tp * ep"])
def test_a_program_of_experts_is_derived_with_the_option_that_is_named(product, psem):
    code, out, err = psem("derive", product)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "given 'ep'; expected it with --experts" in err
    assert psem("derive", product, "--experts")[0] == 0


def test_choices_of_experts_that_do_not_spread_evenly_are_bounded_and_simulated(psem):
    shape = ["--layers", 5, "--hidden", 8, "--heads", 4, "--sequence", 4, "--block", "llama"]
    experts = ["--experts", 4, "--chosen", 1, "--vocabulary", 8]
    code, out, err = psem("predict", "ep(2) * zero2(3) * tp+sp(2)", *shape, *experts)
    assert (code, err) == (0, "")
    assert "2 choices of 4 experts on each device, spread as evenly as can be" in out
    code, out, err = psem("simulate", "ep(2) * zero2(3) * tp+sp(2)", *shape, *experts)
    assert (code, err) == (0, "")
    assert "what devices exchange for experts is predicted at most" in out
    assert "differs" not in out


def test_a_model_has_no_more_layers_than_can_be_looked_at(psem, tmp_path):
    shape = ["--hidden", 1024, "--heads", 16, "--sequence", 1024]
    assert psem("predict", "zero1(4)", *shape, "--layers", "1e15")[0] == 0
    for layers in ("1000000000000001", "1e29"):
        code, out, err = psem("predict", "zero1(4)", *shape, "--layers", layers)
        assert (code, out) == (2, "")
        assert (
            err == f"psem: --layers: given {layers!r}; expected at most 1,000,000,000,000,000 layers\n"
        )
    for name, field in (("llama-2-7b", "num_hidden_layers"), ("gpt2", "n_layer")):
        given = json.loads((CONFIGURATIONS[0].parent / f"{name}.json").read_text())
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**given, field: 10**15 + 1}))
        code, out, err = psem("predict", "zero1(4)", "--sequence", 1024, "--config", path)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{field}: given 1000000000000001; expected at most 1,000,000,000,000,000 layers" in err


def test_a_gpt_has_no_angles_with_words_or_without(psem):
    shape = ["--layers", 1, "--hidden", 4, "--heads", 4, "--kv-heads", 2, "--head-dim", 16]
    shape += ["--sequence", 2, "--feed-forward", 4, "--json"]
    layers = []
    for words in ([], ["--vocabulary", 3]):
        _, out, _ = psem("predict", "tp(1)", *shape, *words)
        layers.append(json.loads(out)["parts"]["layer"])
    assert layers[0] == layers[1]


@pytest.mark.parametrize("strategy", ["cp", "cp-all-gather"])
def test_a_ring_sends_its_messages_slice_by_slice(strategy, predicted):
    """Of 64 tokens of 8 features on 4 devices keys are 512 elements, and a slice of them 128."""
    shape = {"layers": 2, "hidden": 8, "heads": 2, "sequence": 64}
    moves = predicted(f"{strategy}(4)", **shape)["parts"]["layer"]["moves"]
    found = [(m["value"], m["phase"], m["messages"], exact(m["elements"])) for m in moves]
    last = 4 if strategy == "cp" else 3  # with a ring, one hop more to their home
    again = [(value, "again", 3, 3 * 128) for value in ("keys", "values")]
    back = [(f"d {value}", "backward", last, last * 128) for value in ("keys", "values")]
    sent = [(value, "forward", 3, 3 * 128) for value in ("keys", "values")]
    assert sorted(found) == sorted(sent + again + back)


def test_a_ring_has_one_block_of_pairs_at_a_time(predicted):
    """Gathered, attention has scores, shares and cotangents of all keys; with a ring, of one slice."""
    shape = {"layers": 2, "hidden": 8, "heads": 2, "sequence": 1024, "recompute": "attention"}
    shape |= {"profile": "textbook"}
    for n in (2, 4):
        ring, gathered = (
            exact(predicted(f"{name}({n})", **shape)["parts"]["layer"]["computing"])
            for name in ("cp", "cp-all-gather")
        )
        pairs = 2 * 2 * 1024 * 1024 // n  # bytes, of all keys
        assert 3 * pairs <= gathered < 4 * pairs
        assert 3 * pairs // n <= ring < 4 * pairs // n


@pytest.mark.parametrize("command", [["predict", "dp"], ["simulate", "dp"], ["compare", "dp", "cp"]])
def test_no_more_tokens_are_taken_than_there_are_learned_places(command, psem):
    args = ["--config", CONFIGURATIONS[0].parent / "gpt2.json", "--devices", 2]
    code, _, err = psem(*command, *args, "--sequence", 1026)
    assert (code, err.count("\n")) == (2, 1)
    assert "--sequence: given 1,026; expected at most 1,024" in err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["tp(7)"], "given 7 along tensor; expected a divisor of 12, the key-value heads"),
        (["cp-all-to-all(5)"], "given 5 along context; expected a divisor of 12"),
        (["tp(4) * cp-all-to-all(2)"], "given 8 along tensor x context; expected a divisor of 12"),
        (["pp(14)"], "expected at most 13 in all, one for each layer, and one for the head"),
    ],
)
def test_a_product_that_cannot_cut_the_model_is_not_checked(args, words, psem):
    code, out, err = psem("check", *args, "--config", CONFIGURATIONS[0].parent / "gpt2.json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.parametrize("order", ["gpipe", "1f1b", "zb-h1"])
def test_the_last_stage_may_have_the_head_alone(order, psem):
    shape = ["--layers", 3, "--hidden", 16, "--heads", 4, "--sequence", 8, "--vocabulary", 9]
    options = ["--accumulate", 8, "--order", order]
    assert psem("simulate", "pp(4)", *shape, *options)[0] == 0


@pytest.mark.parametrize("name", ["tppp", "zero4", "tp+spp", "zero1*tppp", "megatron-tp"])
def test_a_mistyped_strategy_is_not_taken_for_a_file(name, psem):
    code, _, err = psem("check", name)
    assert (code, err.count("\n")) == (2, 1)
    assert "expected one of dp, tp" in err


@pytest.mark.parametrize("name", ["none.toml", "./tppp", "tests"])
def test_what_names_a_file_is_read_as_one(name, psem):
    code, _, err = psem("check", name)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"psem: {name}: cannot read it")


@pytest.mark.parametrize("name", sorted({*MODEL_AXES} - {"dp"}))
@pytest.mark.parametrize("part", ["embedding", "layer", "head"])
def test_programs_are_printed_with_every_weights_gradient(name, part, psem):
    experts = ["--experts"] if part == "layer" else []
    code, out, _ = psem("derive", name, "--part", part, *experts)
    assert code == 0
    assert re.search(r"  d \w+_weight( [0-9]+)?\[", out)


def test_pipelines_have_no_program_of_their_own(psem):
    code, _, err = psem("derive", "tp*pp", "--moves")
    assert code == 2
    assert "for all of the step" in err
    code, out, _ = psem("derive", "tp*pp")
    assert (code, 'stages = "pipe"' in out) == (0, True)


def test_recomputation_keeps_less_and_sends_more(predicted):
    shape = {"layers": 8, "hidden": 64, "heads": 8, "sequence": 32, "devices": 4}
    found = [
        predicted("tp", recompute=r, profile="textbook", **shape)
        for r in ("none", "attention", "all", "sliced")
    ]
    kept = [exact(f["memory"]["activations"]) for f in found]
    sent = [exact(f["communication"]["elements"]) for f in found]
    assert kept == sorted(kept, reverse=True)
    assert sent == sorted(sent)
    assert len({*kept}) == 4


def test_heads_of_an_odd_number_of_features_cannot_be_turned(psem):
    shape = "--layers 1 --hidden 6 --heads 2 --sequence 4 --vocabulary 5 --block"
    code, _, err = psem("simulate", "tp(2)", *shape.split(), "llama")
    assert code == 2
    assert "given 3 features of a head; expected an even number" in err
    assert psem("simulate", "tp(2)", *shape.split(), "gpt")[0] == 0


def test_gradients_that_wait_whole_are_told_beside_what_rests(psem):
    asked = "predict", "fsdp(8)", "--model", "gpt2", "--sequence", "64", "--accumulate", "2"
    words = "whole until the last micro-step, beyond the slices that they leave"
    for profile, told in (("fsdp2+no-sync", True), ("fsdp2", False)):
        code, out, _ = psem(*asked, "--profile", profile)
        assert (code, words in out) == (0, told)


def test_what_passes_in_buckets_is_told_as_one(psem):
    asked = "predict", "dp(8)", "--model", "gpt2", "--sequence", "64", "--profile", "ddp"
    code, out, _ = psem(*asked)
    assert (code, "parameters or gradients, of a bucket" in out) == (0, True)
