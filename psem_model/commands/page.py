"""`python -m psem_model.commands.page` prints docs/CLI.md: the help of every command, as one page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from psem_model.commands.cli import INTERRUPTED, psem
from psem_model.commands.help import OTHER, Command, grouped
from psem_model.commands.output import FORMS
from psem_model.text.errors import BAD_INPUT, REJECTED
from psem_model.text.report import VERSION


def page() -> str:
    """Every command: what it says of itself, its options in groups, its examples."""
    commands = [command for command in psem.commands.values() if isinstance(command, Command)]
    links = [f"* [{c.name}](#psem-{c.name}): {c.get_short_help_str()}" for c in commands]
    head = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    said = head.format(
        commands="\n".join(links),
        forms=", ".join(FORMS[:-1]),
        last_form=FORMS[-1],
        rejected=REJECTED,
        bad_input=BAD_INPUT,
        interrupted=INTERRUPTED,
        version=VERSION,
    )
    lines = [said]
    for command in commands:
        lines += _section(command)
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(command: Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"psem {command.name}")
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    yield from (f"## psem {command.name}", "", f"    {usage}", "")
    yield from (_unmarked(cleandoc(command.help or "")), "")
    for argument in command.params:
        record = argument.get_help_record(context) if isinstance(argument, click.Argument) else None
        if record:
            yield from (f"* `{record[0]}`: {_unmarked(record[1])}", "")
    for title, records in grouped(command, context).items():
        if title != OTHER:
            yield from (f"| {title} | |", "|---|---|")
            yield from (f"| `{_cell(names)}` | {_cell(_unmarked(words))} |" for names, words in records)
            yield ""
    yield from ("Examples:" if len(command.examples) > 1 else "Example:", "")
    yield from (*(f"    {example}" for example in command.examples), "")


def _unmarked(words: str) -> str:
    """Words in which `*` is a product, and no mark."""
    return re.sub(r"([*_])", r"\\\1", words)


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
