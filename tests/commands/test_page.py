"""docs/CLI.md is the commands' own help."""

import re

import click

from proofs.registry import ROOT
from psem_model.commands.cli import psem as program
from psem_model.commands.page import page

PAGE = (ROOT / "docs" / "CLI.md").read_text()


def test_the_page_of_commands_is_made_from_their_help():
    assert page() == PAGE, "run: make docs"


def test_the_page_has_every_command_and_every_option():
    sections = dict(re.findall(r"^## psem (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
    assert list(sections) == list(program.commands)
    for name, command in program.commands.items():
        options = {each for p in command.params if isinstance(p, click.Option) for each in p.opts}
        assert {each for each in options if each not in sections[name]} == set()
