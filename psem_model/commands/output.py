"""Printing a report in the form that is asked for, or writing a page, and ending with its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from psem_model.text.errors import REJECTED, BadInput
from psem_model.text.files import file_to_write, named, write_atomically
from psem_model.text.report import Report

if TYPE_CHECKING:
    from psem_model.pages.runs import Played

SUFFIX = ".html"  # of pages
FORMS = ("text", "json", "markdown", "latex", "csv", "html")


def ended(report: Report, form: str, html: str | None = None, runs: Sequence[Played] = ()) -> NoReturn:
    """Print a report, or write its page with some runs, and exit: 0 if it is right, else 1."""
    if html is None:
        click.echo(written(report, form), nl=False)
    else:
        from psem_model.pages.plan import page

        if form != "text":
            raise BadInput(f"--html: given with --format {form}; expected one of the two")
        write_page(page_file("--html", html), page(report, runs))
    sys.exit(0 if report.right else REJECTED)


def page_file(option: str, given: str) -> Path:
    """The file of a page, as it was typed. Raises BadInput if no page can be written there."""
    return file_to_write(option, given, (SUFFIX,), "page")


def write_page(file: Path, page: str, *about: str) -> None:
    """Write a whole page or nothing, and say so in a line. Raises BadInput."""
    write_atomically(file, page)
    click.echo(f"{named(file)}: {', '.join((*about, f'{len(page.encode()):,} bytes'))}")


def written(report: Report, form: str) -> str:
    """A report in one of the forms."""
    if form == "json":
        return json.dumps(report.document(), indent=2) + "\n"
    if form == "text":
        from psem_model.text.terminal import shown

        return shown(report)
    from psem_model.text import papers

    return papers.report(report, form)
