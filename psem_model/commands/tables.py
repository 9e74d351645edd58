"""The command for tables of formulas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from psem_model.commands import names
from psem_model.commands.help import Command, option
from psem_model.commands.options import (
    EXACT,
    FORM_OF_TABLES,
    OUTPUT,
    POLICY,
    TABLE,
    options,
)
from psem_model.commands.output import ended
from psem_model.text.errors import BadInput, choose, quoted
from psem_model.text.progress import ticker

if TYPE_CHECKING:
    from psem_model.tables.table import Style


@click.command(
    cls=Command,
    examples=[
        "psem tables memory --format latex --symbols P,d",
        "psem tables --all --folder build/tables",
    ],
)
@TABLE
@FORM_OF_TABLES
@option(
    OUTPUT,
    "--symbols",
    metavar="PARAMETERS,DEVICES",
    default="Psi,N",
    help="Of the parameters, Psi or P, and of the devices, N or d.",
)
@options(EXACT, POLICY)
@option(OUTPUT, "--all", "every", is_flag=True, help="Write all tables, in every format, to files.")
@option(OUTPUT, "--folder", type=names.FOLDER, help="With --all: where to. Default: build/tables.")
def tables(
    name: str | None,
    form: str,
    symbols: str,
    exact: bool,
    policy: str,
    every: bool,
    folder: str | None,
) -> None:
    """Print a TABLE of formulas, claims or published values; without a name, what there is.

    With --all, write all of them as .tex, .md and .csv, and all.pdf where LaTeX is installed.
    """
    from psem_model.audit.proving import interruptible
    from psem_model.reading import words
    from psem_model.tables.files import TABLES, build
    from psem_model.tables.table import SYMBOLS, Style
    from psem_model.text.report import Report, meant

    given = symbols.split(",")
    if len(given) != len(SYMBOLS):
        raise BadInput(f"--symbols: given {quoted(symbols)}; expected two, such as Psi,N or P,d")
    chosen = {
        of: choose(f"--symbols, {of}", symbol.strip(), SYMBOLS[of])
        for of, symbol in zip(SYMBOLS, given, strict=True)
    }
    style = Style(exact, chosen["parameters"], chosen["devices"], words.policy(policy))
    if every and name is not None:
        raise BadInput(f"tables: given {quoted(name)} and --all; expected one of the two")
    if every and form:
        raise BadInput("--format: given with --all, which writes every format; expected one of the two")
    if folder is not None and not every:
        raise BadInput(f"--folder: given {quoted(folder)} without --all; expected both or none")
    if every or name is not None:
        if every:
            write_all(style, folder)
        else:
            wanted = choose("table", name or "", TABLES)
            with interruptible() as check:
                report = Report("tables", "", (), (build(wanted, style),), {"table": wanted})
                check()
            ended(report, form or "markdown")
    else:
        meanings = {each: (builder.__doc__ or "").strip() for each, builder in TABLES.items()}
        ended(Report("tables", "", sections=(meant("", meanings),)), form or "text")


def write_all(style: Style, given: str | None) -> None:
    """Write every table and the document, and say where they are."""
    from psem_model.audit.proving import interruptible
    from psem_model.tables import files as table_files
    from psem_model.text import places
    from psem_model.text.files import require_writable

    folder = places.BUILD / "tables" if given is None else Path(given)
    shown = folder if given is not None else folder.relative_to(places.BUILD.parent)
    pdf = f"{table_files.DOCUMENT}.pdf"
    require_writable(folder)
    with interruptible() as check, ticker("tables", len(table_files.TABLES)) as tell:

        def progress(done: int) -> None:
            check()
            tell(done)

        files: dict[str, str | bytes] = {**table_files.texts(style, progress)}
        program, wrong = table_files.engine(), None
        if program is None:
            said = f"no {pdf}: install {table_files.PACKAGE} for a LaTeX engine"
        else:
            try:
                files[pdf], said = table_files.typeset(files, program), f"{shown / pdf}, by {program}"
            except table_files.LatexError as error:
                said, wrong = f"no {pdf}", error
        check()
        table_files.write(folder, files)
    click.echo(f"{len(table_files.TABLES)} tables in {shown}: .tex, .md, .csv")
    click.echo(said)
    if wrong:
        raise wrong
