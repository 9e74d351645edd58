"""Every option of the commands for strategies changes what they say, or is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from proofs.registry import ROOT
from tests.support.examples import few

CONFIGURATIONS = ROOT / "examples" / "configurations"
OF_SHAPE = ["--layers", 4, "--hidden", 16, "--heads", 4, "--head-dim", 4, "--vocabulary", 12]
SHAPE = [*OF_SHAPE, "--sequence", 8]
CONFIG = ["--config", CONFIGURATIONS / "gpt2.json", "--sequence", 8]
DENSE, SPARSE = CONFIGURATIONS / "llama-2-7b.json", CONFIGURATIONS / "mixtral-8x7b-v0.1.json"
PSI = ["--psi", 100]
PLACED = ["--placement", "parameters=S*,optimizer=S,gradients=S,activations=S", "--devices", 2]

OF_A_STEP = {"--bytes": "2,4,6", "--accumulate": 8, "--unit": 7, "--json": None}
OF_A_MODEL = {
    "--config": DENSE,
    "--layers": 2,
    "--hidden": 32,
    "--heads": 2,
    "--kv-heads": 2,
    "--head-dim": 8,
    "--feed-forward": 8,
    "--vocabulary": 20,
    "--block": "llama",
    "--sequence": 4,
    "--micro-batch": 4,
    "--recompute": "full",
    "--offload-activations": None,
    "--order": "gpipe",
    "--chunks": 2,
    "--hold": None,
}
OF_PREDICTIONS = {"--psi": 200, "--devices": 3, **OF_A_STEP, **OF_A_MODEL}
OF_A_PROGRAM = {
    "--part": "head",
    "--block": "llama",
    "--experts": None,
    "--recompute": "all",
    "--moves": None,
    "--hold": None,
    "--language": None,
}
OF_RUNS = {
    "--mlp": "2x2",
    "--steps": 2,
    "--seed": 1,
    "--arithmetic": "float64",
    "--schedule": "none.toml",
}
CONTEXTS: dict[str, Any] = {
    "predict": (
        {**OF_PREDICTIONS, "--divisible": None},
        [
            ["zero3(3)", *PSI],
            [*PLACED, *PSI],
            [*PLACED, *OF_SHAPE],
            [*PLACED, *SHAPE],
            ["zero1(3)", *OF_SHAPE],
            ["zero1(3)", *SHAPE],
            ["tp(2)", *SHAPE],
            ["tp(2)", *CONFIG],
            ["tp+sp(2) * pp(2)", *SHAPE, "--accumulate", 4],
        ],
    ),
    "compare": (
        OF_PREDICTIONS,
        [
            ["zero1(3)", "zero3(3)", *PSI],
            ["zero1(3)", "zero3(3)", *OF_SHAPE],
            ["zero1(3)", "tp(2)", *SHAPE],
            ["cp(2) * pp(2)", "zero3(3)", *SHAPE, "--accumulate", 4],
        ],
    ),
    "simulate": (
        {**OF_PREDICTIONS, **OF_RUNS},
        [
            ["zero3(3)", *PSI],
            [*PLACED, *PSI],
            ["zero1(3)", *SHAPE],
            ["tp(2)", *SHAPE],
            ["tp+sp(2) * pp(2)", *SHAPE, "--accumulate", 4],
        ],
    ),
    "derive": (
        OF_A_PROGRAM,
        [["zero1"], ["hsdp(a, b)"], PLACED[:2], ["tp"], ["cp", "--part", "embedding"]],
    ),
    "check": (
        {"--devices": 2, "--accumulate": 2, "--config": SPARSE, "--block": "llama", "--json": None},
        [["zero1"], ["zero1(2)"], ["tp * pp"], ["zero1 * tp", "--config", DENSE]],
    ),
}
CASES = [(command, context) for command, (_, contexts) in CONTEXTS.items() for context in contexts]


@pytest.mark.parametrize(("command", "context"), few(CASES))
def test_every_option_changes_what_is_said_or_is_refused(command, context, psem):
    _, without, _ = psem(command, *context)
    for option, value in CONTEXTS[command][0].items():
        code, out, err = psem(command, *context, option, *([] if value is None else [value]))
        if code == 2:
            assert (out, err.count("\n")) == ("", 1), option
        else:
            assert out != without, option


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["predict", "zero1(4)", *PSI, "--sequence", 32], "--sequence: given with --psi"),
        (["predict", "zero1(4)", *PSI, "--hold"], "--hold: given with 'zero1(4)'"),
        (["predict", "zero1(4)", *OF_SHAPE, "--recompute", "all"], "--recompute: given without --seq"),
        (["predict", "tp(2)", *SHAPE, "--chunks", 1], "--chunks: given without pp"),
        (["predict", "tp(2)", *SHAPE, "--order", "1f1b"], "--order: given without pp"),
        (["predict", "tp(2)", *SHAPE, "--hold"], "--hold: given where backward gathers nothing"),
        (["predict", "tp(2)", *SHAPE, "--divisible"], "--divisible: given with 'tp(2)'"),
        (["predict", "tp(2)", *SHAPE, "--unit", 7], "--unit: given where no weight"),
        (["predict", "tp(2)", *CONFIG, "--block", "gpt"], "--block: given with --config"),
        (["compare", "zero1(4)", "dp(4)", *PSI, "--hold"], "--hold: given without --sequence"),
        (["compare", "zero1(4)", "tp(2)", *SHAPE, "--chunks", 2], "--chunks: given without pp"),
        (["check", "tp", "--config", DENSE, "--block", "gpt"], "--block: given with --config"),
        (["check", "no.toml", "--block", "gpt"], "--block: given with a file"),
        (["derive", "zero1", "--part", "head"], "--part: given with zero1"),
        (["derive", "tp", "--part", "head", "--recompute", "all"], "--recompute: given with --part"),
        (["derive", "tp", "--hold"], "--hold: given where backward gathers nothing"),
        (["derive", "--language", "--moves"], "--language alone"),
        (["simulate", "zero1(2)", *PSI, "--order", "gpipe"], "--order: given with --psi"),
        (["simulate", "tp(2)", *SHAPE, "--psi", 9], "--psi: given with 'tp(2)'"),
        (["simulate", "tp(2)", *SHAPE, "--mlp", "2x2"], "--mlp: given with 'tp(2)'"),
        (["simulate", "tp(2)", *SHAPE, "--arithmetic", "exact"], "one of modular, float64"),
    ],
)
def test_what_would_change_nothing_is_refused_by_name(args, words, psem):
    code, out, err = psem(*args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["predict", "tp(2)", "--sequence", 8], "--config"),
        (["compare", "tp(2)", "dp(2)", "--sequence", 8], "--config"),
        (["check", "tp(2)"], "--config"),
        (["predict", "zero1", *PSI], "--devices"),
        (["predict", "zero1(2)", *PSI], "--devices"),
        (["check", "zero1"], "--devices"),
        (["simulate", *PSI, "--devices", 2], "--schedule"),
    ],
)
def test_nothing_is_not_taken_for_a_value(command, option, psem):
    code, out, err = psem(*command, option, "")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{option}: given ''; expected: " in err


def test_a_product_is_checked_for_the_kind_of_model_that_is_said(psem):
    for block in ("gpt", "llama"):
        _, out, _ = psem("check", "tp(7) * pp(3)", "--block", block)
        assert out.startswith(f"tp(7) * pp(3): accepted, for {block} layers that it cuts evenly")
    _, out, _ = psem("check", "tp * ep")
    assert "for gpt layers with experts that it cuts evenly" in out
    _, out, _ = psem("check", "tp", "--config", DENSE)
    assert out.startswith("tp: accepted\n")


@pytest.mark.parametrize(("name", "same"), [("selective", "attention"), ("full", "all")])
def test_the_fields_names_of_recomputation_are_taken_too(name, same, psem):
    for command in (["predict", "tp+sp(2)", *SHAPE], ["derive", "tp+sp"]):
        code, found, _ = psem(*command, "--recompute", name)
        assert (code, found) == (0, psem(*command, "--recompute", same)[1])


@pytest.mark.parametrize("command", ["predict", "compare", "simulate"])
def test_help_names_what_a_step_of_a_model_takes(command, psem):
    _, out, _ = psem(command, "--help")
    for word in ("--order", "--chunks", "--offload-activations", "selective", "full", "sliced"):
        assert word in out
