"""Printing a report in the form that is asked for, and ending with its exit code."""

from __future__ import annotations

import json
import sys
from typing import NoReturn

import click

from psem_model.text.errors import REJECTED
from psem_model.text.report import Report

FORMS = ("text", "json", "markdown", "latex", "csv")


def ended(report: Report, form: str) -> NoReturn:
    """Print a report, and exit: 0 if it is right, else 1."""
    click.echo(written(report, form), nl=False)
    sys.exit(0 if report.right else REJECTED)


def written(report: Report, form: str) -> str:
    """A report in one of the forms."""
    if form == "json":
        return json.dumps(report.document(), indent=2) + "\n"
    if form == "text":
        from psem_model.text.terminal import shown

        return shown(report)
    from psem_model.text import papers

    return papers.report(report, form)
