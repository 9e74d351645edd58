"""Help and completion: every command has groups of options and examples that run; names complete."""

import re
import shlex

import click
import pytest
from click.shell_completion import ShellComplete

from proofs.registry import ROOT, claims
from psem_model.commands.cli import psem as program
from psem_model.commands.help import Command
from spec.models.states import POLICIES
from spec.plans.strategies import STRATEGIES
from tests.support.examples import few

COMMANDS = sorted(program.commands)
EXAMPLES = [
    example
    for command in program.commands.values()
    if isinstance(command, Command)
    for example in command.examples
]
SLOW = {"psem prove", "psem audit S1", "psem tables --all --folder build/tables"}
SLOW |= {"psem report", "psem report --out claims.html"}  # of all claims: tests/pages


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_options_in_groups_and_examples(command, psem):
    code, out, err = psem(command, "--help")
    assert (code, err) == (0, "")
    assert f"\n  psem {command}" in out.split("Example")[-1]
    assert "\nOutput:\n" in out


def test_no_summary_is_cut(psem):
    _, out, _ = psem("--help")
    assert "..." not in out.partition("Commands:")[2]


def test_every_option_says_what_it_takes(psem):
    for name in COMMANDS:
        command = program.commands[name]
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag:
                metavar = option.make_metavar(click.Context(command))
                assert metavar not in ("", "TEXT"), (name, option.opts)
                assert option.help, (name, option.opts)


def test_choices_are_shown(psem):
    _, out, _ = psem("simulate", "--help")
    for choices in (
        "[gpt|gpt-without-dropout|llama]",
        "[gpipe|1f1b|interleaved|zb-h1|zb-h2|dualpipev]",
        "[modular|exact|float64]",
    ):
        assert choices in out


@pytest.mark.parametrize("example", few(e for e in EXAMPLES if e not in SLOW))
def test_every_example_of_the_help_runs(example, psem, tmp_path, monkeypatch):
    for configuration in (ROOT / "examples" / "configurations").glob("*.json"):
        (tmp_path / configuration.name).write_text(configuration.read_text())
    (tmp_path / "my.toml").write_text(psem("derive", "zero2")[1])
    monkeypatch.chdir(tmp_path)
    _, *args = shlex.split(example.partition(" > ")[0])
    code, out, _ = psem(*args)
    assert code == 0
    assert out


def completed(line):
    """What TAB proposes at the end of a line: names, and files if there may be one."""
    *before, last = line.split(" ")[1:]
    found = ShellComplete(program, {}, "psem", "_PSEM_COMPLETE").get_completions(before, last)
    return {item.type if item.type == "file" else item.value for item in found}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("psem predict --config llama-3-", {"llama-3-70b", "llama-3-8b", "file"}),
        ("psem predict --model qwen2-", {"qwen2-0.5b", "qwen2-7b", "file"}),
        ("psem simulate --schedule ", {"file"}),
        ("psem space --plot ", {"file"}),
        ("psem tables --folder ", {"file"}),
        ("psem predict zero2", {"zero2", "zero2+all", "file"}),
        ("psem derive zero2", {"zero2", "zero2+all"}),
        ("psem compare zero1 fsdp-h", {"fsdp-hold", "fsdp-hold-offload", "fsdp-hold+all"}),
        ("psem check zero1", {"zero1", "zero1+all", "file"}),
        ("psem predict --bytes ", set(POLICIES)),
        ("psem predict --order ", {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "dualpipev"}),
        ("psem predict tp --block l", {"llama"}),
        ("psem derive tp --part ", {"embedding", "layer", "head"}),
        ("psem tables --format la", {"latex"}),
        ("psem simulate zero1 --arithmetic f", {"float64"}),
        ("psem pro", {"prove"}),
    ],
)
def test_names_and_files_complete(line, names):
    assert completed(line) == names


def test_claims_tables_and_strategies_complete():
    ids = {claim.id for claim in claims()}
    assert completed("psem prove ") == completed("psem prove C1 ") == completed("psem explain ") == ids
    assert set(STRATEGIES) <= completed("psem predict ")
    assert "memory" in completed("psem tables m")


@pytest.mark.parametrize("line", ["psem predict --config ", "psem predict --devices '' ", "psem x "])
def test_completion_prints_no_error_into_the_prompt(line, psem, monkeypatch):
    words = line.split(" ")
    monkeypatch.setenv("_PSEM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert psem()[2] == ""


@pytest.mark.parametrize(
    ("given", "words", "at", "said"),
    [
        ("nosuch", None, None, "expected one of bash_complete"),
        ("bash_complete", None, None, "expected COMP_WORDS and COMP_CWORD"),
        ("bash_complete", "psem p", "zz", "expected COMP_WORDS and COMP_CWORD"),
    ],
)
def test_what_no_shell_asks_is_told_in_a_line(given, words, at, said, psem, monkeypatch):
    for name, value in (("_PSEM_COMPLETE", given), ("COMP_WORDS", words), ("COMP_CWORD", at)):
        if value is not None:
            monkeypatch.setenv(name, value)
    code, out, err = psem()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize("args", [["predict", "zero3", "--psi"], ["explain", "T2", "--smt"]])
def test_an_option_without_its_value_is_told(args, psem):
    assert psem(*args) == (2, "", f"psem: {args[-1]}: given alone; expected a value after it\n")


def test_an_argument_that_is_too_many_is_named_and_what_is_expected(psem):
    for args, words in (
        (["space", "extra"], "given 'extra' too; expected none"),
        (["predict", "zero1", "*", "tp"], 'a product is quoted: "zero1 * tp"'),
    ):
        code, _, err = psem(*args)
        assert (code, err.count("\n")) == (2, 1)
        assert words in err
        assert ("a product is quoted" in err) == (args[0] == "predict")


def test_a_choice_is_refused_with_the_nearest_name(psem):
    _, _, err = psem("derive", "tp", "--block", "lama")
    blocks = "gpt, gpt-without-dropout, llama"
    assert err.endswith(f"--block: given 'lama'; expected one of {blocks}; nearest: llama\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_breaks_no_name_at_its_hyphen(command, psem):
    _, out, _ = psem(command, "--help")
    said = out.partition("--help")[0].partition("\n\n")[2]
    assert not re.search(r"\w-\s", re.split(r"\n\n\S", said)[0])
