"""The README: its commands run, its Python runs, its output is real, its table is the registry."""

import re
import shlex

import pytest

from proofs.page import table
from proofs.registry import ROOT, claims

README = (ROOT / "README.md").read_text()
PAGES = [README, *(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))]
BLOCKS = [b for page in PAGES for b in re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)]
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line]
CONSOLE = [text for kind, text in BLOCKS if kind == "console"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readmes_commands_run(command, psem):
    program, *args = shlex.split(command)
    assert program == ".venv/bin/psem"
    code, out, _ = psem(*args)
    assert code == 0
    assert out


def test_the_readmes_python_runs():
    found = [text for kind, text in BLOCKS if kind == "python"]
    assert found
    for text in found:
        exec(text, {})


@pytest.mark.parametrize("block", [b for b in CONSOLE if ".venv/bin/psem" in b])
def test_the_readmes_output_is_what_is_printed(block, psem):
    command, *shown = block.rstrip().splitlines()
    _, out, err = psem(*shlex.split(command.removeprefix("$ .venv/bin/psem")))
    assert (out + err).rstrip().splitlines() == shown


def test_the_readmes_proof_output_names_real_claims_and_totals():
    (block,) = [b for b in CONSOLE if b.startswith("$ make prove")]
    ids = {claim.id for claim in claims()}
    named = [line.split()[0] for line in block.splitlines() if " obligations " in line]
    assert set(named[:-1]) <= ids
    assert f"{len(ids)} claims:" in block
    assert "every verdict is the expected one" in block


def test_the_readmes_claims_table_is_the_registry():
    assert table() in README, "run: python -c 'from proofs.page import table; print(table())'"


def test_the_readme_names_every_file_of_the_specification_in_reading_order():
    order = re.findall(r"`(\w+)`", README.split("in this order:")[1].split("Each rule")[0])
    files = {p.stem for p in (ROOT / "spec").glob("*.py")} - {"__init__"}
    assert set(order) == files
    assert len(order) == len(files)
    # each file imports only what was read before it
    for i, name in enumerate(order):
        text = (ROOT / "spec" / f"{name}.py").read_text()
        imported = re.findall(r"^from spec\.(\w+) import", text, re.MULTILINE)
        assert set(imported) <= set(order[:i]), f"{name} is read before what it uses"
