"""Whatever is typed: exit code 0, 1 or 2, errors of one line and at most 2 KB, and no traceback."""

import json
from itertools import product

import click
import pytest

from psem_model.commands.cli import psem as program
from tests.support.examples import few

MOST = 2_000  # bytes of a message
SIZE = ["--psi", "9", "--devices", "2"]
SHAPE = ["--layers", "2", "--hidden", "8", "--heads", "2", "--sequence", "4"]
CALLS = [
    ["predict", "zero3", *SIZE],
    ["predict", "zero1(2) * tp(2)", *SHAPE],
    ["compare", "zero1", "zero3", *SIZE],
    ["derive", "tp"],
    ["check", "zero2"],
    ["simulate", "zero3", *SIZE],
    ["space"],
    ["tables"],
    ["explain", "S1"],
]
LONG = 30_000  # characters
LONG_WORDS = {
    "letters": "a" * LONG,
    "digits": "9" * LONG,
    "sizes": "8x" * (LONG // 2),
    "factors": "zero1*" * (LONG // 6),
    "states": "parameters=R," * (LONG // 13),
    "axes": "parameters=" + "/".join(f"a{n}:R" for n in range(LONG // 8)),
    "lines": "a\n" * (LONG // 2),
    "marks": "é\0" * (LONG // 2),
    "wide": "\N{GRINNING FACE}," * (LONG // 2),
}
MALFORMED = [
    "",
    " ",
    "-1",
    "0",
    "nan",
    "1e99",
    "8x",
    "0x10",
    "1/0,2,2",
    "é",
    "a\nb",
    "\0",
    "(",
    "*",
    "=,=",
]


def options(command):
    """The options of a command that take a value, as they are spelled."""
    found = program.commands[command].params
    return [p.opts[-1] for p in found if isinstance(p, click.Option) and not p.is_flag]


def check(call, psem):
    code, out, err = psem(*call)
    assert code in (0, 1, 2)
    assert len(err.encode()) <= MOST
    assert all(line.startswith("psem: ") for line in err.splitlines())
    if code == 2:
        assert (out, err.count("\n")) == ("", 1)
    return code


def with_option(call, option, value):
    """A call with an option, in place of what it has for it."""
    at = call.index(option) if option in call else len(call)
    return [*call[:at], option, value, *call[at + 2 :]]


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_malformed_option_is_one_line(call, psem):
    for option, value in few(product(options(call[0]), MALFORMED)):
        check(with_option(call, option, value), psem)


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_malformed_argument_is_one_line(call, psem):
    for value in MALFORMED:
        check([call[0], value, *call[2:]], psem)
        check([*call, value], psem)
        check([*call, f"--{value}"], psem)
        check([value, *call], psem)


@pytest.mark.parametrize("kind", LONG_WORDS)
@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_long_option_is_not_repeated_whole(call, kind, psem):
    word = LONG_WORDS[kind]
    for option in few(options(call[0])):
        assert check(with_option(call, option, word), psem) == 2, option


@pytest.mark.parametrize("kind", LONG_WORDS)
def test_a_long_argument_is_not_repeated_whole(kind, psem):
    word = LONG_WORDS[kind]
    for command in program.commands:
        assert check([command, word], psem) == 2
        assert check([command, f"--{word}"], psem) == 2
        assert check([command, f"--json={word}"], psem) == 2
    assert check([word], psem) == 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (["predict", "dp(2)", "--sequence", "8", "--config"], '{{"num_hidden_layers": {}}}'),
        (["predict", "dp(2)", "--sequence", "8", "--config"], "layers = {}\n"),
        (["predict", "dp", *SIZE, "--profile"], 'title = "t"\nlike = {}\n'),
        (["check"], "axes = {}\n"),
        (["predict", *SIZE, "--schedule"], "axes = {}\n"),
    ],
    ids=["configuration", "model", "profile", "schedule", "step"],
)
def test_of_a_number_in_a_file_of_too_many_digits_or_brackets_this_is_said(call, text, psem, tmp_path):
    for number, words in (("9" * 5000, "digits"), ("[" * LONG + "]" * LONG, "brackets")):
        path = tmp_path / ("my.json" if text.startswith("{{") else "my.toml")
        path.write_text(text.format(number))
        assert check([*call, path], psem) == 2
        err = psem(*call, path)[2]
        assert f"given {'a number of ' * (words == 'digits')}too many {words}" in err


@pytest.mark.slow
def test_a_long_product_is_not_repeated_whole(psem):
    sized = " * ".join(f"zero1(a{n}=2)" for n in range(60))
    unsized = "*".join(f"zero1(a{n})" for n in range(60))
    for plan in (
        f"{sized} * tp(x)",
        f"{sized} * zero1(a7=2)",
        unsized,
        f"{unsized} * zero1(a7)",
        "*".join([unsized] * 200),
    ):
        for command in ("predict", "simulate", "check"):
            assert check([command, plan, "--devices", "2"], psem) == 2
        for other in (plan, "zero1(2)", "zero1"):
            assert check(["compare", plan, other, "--psi", "9"], psem) == 2
        assert check(["derive", f"tp * {plan} *"], psem) == 2


@pytest.mark.parametrize("kind", few(LONG_WORDS))
def test_a_long_word_in_a_file_is_not_repeated_whole(kind, psem, tmp_path):
    word, derived = json.dumps(LONG_WORDS[kind]), psem("derive", "zero2")[1]
    file = tmp_path / "file"
    for value in ('"batch"', '"forward"', '"parameters"', '"activations"', '"sum"'):
        file.write_text(derived.replace(value, word, 1))
        assert check(["check", file], psem) == 2
    for text in (
        '{"model_type": WORD}',
        '{"model_type": "gpt2", "n_head": WORD}',
        "{WORD: 1}",
        "[WORD]",
    ):
        file.write_text(text.replace("WORD", word))
        assert check(["predict", "tp(2)", "--config", file, "--sequence", "4"], psem) == 2


@pytest.mark.parametrize("given", ["0", "x", "9" * 100_000], ids=["none", "word", "long"])
def test_how_many_processes_is_a_count_whoever_says_it(given, psem, monkeypatch):
    code, _, err = psem("prove", "S1", "--jobs", given)
    shown = repr(given) if len(given) < 9 else f"{given[:60]!r}... (100,000 characters)"
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"psem: --jobs, PSEM_JOBS: given {shown}; expected a ")
    monkeypatch.setenv("PSEM_JOBS", given)
    assert psem("prove", "S1") == (2, "", err)


def test_a_switch_of_the_environment_says_what_it_takes(psem, monkeypatch):
    monkeypatch.setenv("PSEM_NO_CACHE", "maybe")
    error = "psem: PSEM_NO_CACHE: given 'maybe'; expected 1 or 0\n"
    assert psem("prove", "S1") == (2, "", error)
