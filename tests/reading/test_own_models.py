"""Files of models of one's own: what they say is read, and what is wrong is told with its line."""

from __future__ import annotations

import json

import pytest

from psem_model.reading.own_models import read
from psem_model.text.errors import BadInput
from psem_model.text.places import EXAMPLES
from spec.costs.model_costs import parameters
from spec.models.custom import Custom

MLP = (EXAMPLES / "models" / "mlp.toml").read_text()
MIXER = (EXAMPLES / "models" / "mixer.toml").read_text()


@pytest.fixture
def model(tmp_path):
    """The model that a text says."""

    def read_text(text):
        path = tmp_path / "model.toml"
        path.write_text(text)
        return read(str(path))

    return read_text


@pytest.fixture
def refused(model):
    """What is said of a text, without the file's name."""

    def said(text):
        with pytest.raises(BadInput) as error:
            model(text)
        return str(error.value).partition("model.toml, ")[2] or str(error.value)

    return said


def test_an_example_has_the_parameters_that_it_says(model):
    found = model(MLP)
    assert sum(parameters(found).values()) == 48 * 64 + 8 * (2 * 64 * 256) + 64 * 8
    assert isinstance(found, Custom)
    assert found.layers == 8
    assert found.has_index("n")
    assert not found.has_index("s")
    assert found.sizes(5, 1) == {"b": 5, "s": 1, "n": 48, "h": 64, "f": 256, "o": 8}


def test_an_index_under_another_name_has_as_many_values(model):
    assert model(MIXER).sizes(2, 7)["u"] == 7


def line_of(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


@pytest.mark.parametrize(
    ("text", "old", "new", "at", "expected"),
    [
        (MLP, "f = 256", "", "[sizes]", "f = ...: how many values"),
        (MLP, "f = 256", "f = 0", "f = 0", "a number from 1"),
        (MLP, "f = 256", 'f = "x"', 'f = "x"', "a whole number"),
        (MLP, "f = 256", "f = 256\nz = 3", "z = 3", "one of n, h, f, o"),
        (MLP, "f = 256", "f = 256\nb = 3", "b = 3", "--micro-batch says it"),
        (MIXER, "f = 256", "f = 256\nu = 3", "u = 3", "another name of s"),
        (MLP, "layers = 8", "layers = 0", "layers = 0", "a number from 1"),
        (MLP, "layers = 8", "layersz = 8", "layersz = 8", "nearest: layers"),
        (
            MLP,
            '"first", "layer"',
            '"layer", "first"',
            'parts = ["layer"',
            "a first part that takes nothing",
        ),
        (MLP, '"layer", "last"]', '"layer"]', "[last]", "one of the keys"),
        (MLP, 'takes = "layer_in[b h]"', "", 'source = "layer_in"', "given or made before"),
        (MLP, '"first", "layer", "last"', "", "parts = []", "one part or more"),
        (MLP, 'into = "loss[b]"', 'into = "loss[b]", over = "o"', "loss[b]", "no over, for contract"),
        (MLP, 'gives = "loss"', 'gives = "loss"\n[last.bytes]\nlogs = 4', "logs = 4", "one of"),
        (MLP, 'gives = "loss"', 'gives = "loss"\n[last.bytes]\nguess = -4', "guess = -4", "or more"),
        (MLP, 'gives = "loss"', 'gives = "loss"\n[last.bytes]\nlast_in = 4', "last_in[b h]", "2 bytes"),
        (MLP, '"ones"], into = "loss[b]"', '"squares"], into = "loss[]"', 'gives = "loss"', "an index"),
        (MLP, "layer_out[b h]", "layer_out[h b]", 'gives = "layer_out"', "what the layer takes"),
        (MLP, "last_in[b h]", "last_in[h b]", 'takes = "last_in[h b]"', "layer_out[b h]"),
        (MLP, "last_weight", "up_weight", "up_weight[h o]", "a name of its own: layer has up_weight"),
        (MLP, 'op = "add", source = ["guess"', 'op = "plus", source = ["guess"', "plus", "of contract"),
        (MLP, '"unit", "up_weight"', '"unity", "up_weight"', '"unity", "up_weight"', "nearest: unit"),
        (MLP, 'source = ["layer_in", "down"]', 'source = ["unit", "unit"]', "[layer]", "all count"),
        (MIXER, '["s -> u"]', '["s -> h"]', '["s -> h"]', "new names for indices"),
        (
            MLP,
            '"contract", source = ["squares", "ones"], into = "loss[b]"',
            '"rename", source = "squares", names = ["b -> k", "o -> k"], into = "loss[k]"',
            '"b -> k"',
            "one new name for each index",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, old, new, at, expected, refused):
    assert old in text
    wrong = text.replace(old, new)
    said = refused(wrong)
    assert expected in said
    assert "\n" not in said
    if at in wrong and said.startswith("line "):
        assert said.startswith(f"line {line_of(wrong, at)},")


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_weight_that_has_samples_by_any_name_is_refused(name, refused):
    names = [f"b -> {name}", f"{name} -> b"]
    there, back = (f', names = ["{each}"]' if name != "b" else "" for each in names)
    rename = "rename" if name != "b" else "add"
    source = ('"back"', '"gated"') if name != "b" else ('["back", "back"]', '["gated", "gated"]')
    gate = f"""
  {{ op = "{rename}", source = {source[0]}, into = "turned[{name} s h]"{there} }},
  {{ op = "contract", source = ["turned", "gate"], into = "gated[{name} s h]" }},
  {{ op = "{rename}", source = {source[1]}, into = "opened[b s h]"{back} }},
  {{ op = "add", source = ["layer_in", "opened"]"""
    text = MIXER.replace('"mix_weight[u t]"', f'"mix_weight[u t]", "gate[{name} h]"')
    assert f"given gate[{name} h]; expected a weight that all samples share" in refused(
        text.replace('\n  { op = "add", source = ["layer_in", "back"]', gate)
    )


def test_several_layers_are_refused(refused):
    assert "one part whose name ends in layer" in refused(
        MLP.replace('"last"', '"last_layer"').replace("[last]", "[last_layer]")
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("predict", "cp(2)", "--sequence", "1"), "a model with values of s"),
        (("predict", "ep(2)", "--sequence", "1"), "a model with"),
        (("predict", "tp(3)", "--sequence", "1"), "a divisor of 256, the values of f"),
        (("predict", "tp+sp(2)"), "a model with values of s"),
        (("predict", "tp(2)", "--recompute", "sliced"), "a model with values of s"),
        (("predict", "tp(2)", "--sequence", "4"), "expected 1, as no value has the index s"),
        (("predict", "tp(2)", "--sequence", "1", "--profile", "fsdp2"), "expected textbook"),
        (("predict", "tp(2)", "--sequence", "1", "--layers", "3"), "expected one of the two"),
        (("predict", "tp(2) * pp(10)", "--sequence", "1"), "at most 9 in all"),
        (("simulate", "tp(2)", "--sequence", "1", "--arithmetic", "exact"), "modular"),
        (("check", "cp"), "a model with values of s"),
        (("check", "tp(3)"), "a divisor of 256"),
        (("derive", "cp"), "a model with values of s"),
        (("derive", "tp", "--part", "head"), "one of first, layer, last"),
        (("derive", "tp", "--experts"), "expected one of the two"),
    ],
)
def test_what_does_not_fit_such_a_model_is_told(command, said, psem):
    code, out, error = psem(*command, "--model", EXAMPLES / "models" / "mlp.toml")
    assert code == 2
    assert out == ""
    assert said in error
    assert error.count("\n") == 1


def test_weights_with_positions_are_as_many_as_a_sample_has(psem):
    model = ("--model", EXAMPLES / "models" / "mixer.toml")
    found = json.loads(psem("predict", "zero1(4)", *model, "--sequence", "196", "--json")[1])
    of_layer = 2 * (196 * 32 + 64 * 256)
    assert found["inputs"]["psi"] == 192 * 64 + 6 * of_layer + 64 * 10
    code, _, error = psem("predict", "zero1", "--devices", "4", *model)
    assert code == 2
    assert "--sequence: missing" in error
    assert psem("check", "cp(2)", *model)[0] == 0


def test_the_file_of_a_model_is_no_step(psem):
    code, _, error = psem("check", EXAMPLES / "models" / "mlp.toml")
    assert code == 2
    assert "psem check STRATEGY --model FILE" in error


def test_a_model_without_layers_is_checked_and_predicted(psem, tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(MLP.replace('"layer", ', "").replace("layers = 8\n", "").partition("[layer]")[0]
                    .replace("f = 256\n", "") + "[last]" + MLP.partition("[last]")[2])  # fmt: skip
    assert psem("check", "zero1", "--model", path)[0] == 0
    assert psem("simulate", "zero1(2)", "--model", path)[0] == 0
    assert psem("predict", "pp(2)", "--model", path)[0] == 2


def test_a_function_that_no_arithmetic_has_is_checked_and_predicted_and_not_simulated(psem, tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(MLP.replace('by = "gelu"', 'by = "mish"'))
    given = ("tp(2)", "--model", path)
    assert psem("check", *given)[0] == 0
    assert psem("predict", *given, "--sequence", "1")[0] == 0
    code, _, error = psem("simulate", *given, "--sequence", "1")
    assert code == 2
    assert "apply by mish; expected one of gelu" in error
