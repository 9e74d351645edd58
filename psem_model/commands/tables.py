"""The command for tables of formulas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from psem_model.commands.help import Command, Word, option
from psem_model.commands.options import EXACT, FORM_OF_TABLES, OUTPUT, POLICY, TABLES, takes
from psem_model.commands.output import ended
from psem_model.text.errors import BadInput, quoted
from psem_model.text.progress import ticker

if TYPE_CHECKING:
    from psem_model.tables.table import Style


STEPS = 1000  # of tables, on a bar


@click.command(
    cls=Command,
    examples=[
        "psem tables memory --format latex --symbols psi=M,N=d",
        "psem tables paper memory --rows dp,zero3 --format markdown",
        "psem tables --all --folder build/tables",
    ],
)
@TABLES
@FORM_OF_TABLES
@option(
    OUTPUT,
    "--symbols",
    metavar="NAME=SYMBOL,...",
    default="",
    help="What formulas call a quantity: psi=M,N=d,K=k,m=a. Names are those of the formulas.",
)
@option(OUTPUT, "--rows", metavar="NAME,...", help="Only these rows, in this order.")
@option(OUTPUT, "--columns", metavar="TITLE,...", help="Only these columns, in this order.")
@option(OUTPUT, "--caption", metavar="WORDS", default="", help="Of one table, in place of its title.")
@option(
    OUTPUT,
    "--label",
    metavar="LABEL",
    default="",
    help="Of one table in LaTeX. Default: tab:psem-TABLE.",
)
@option(
    OUTPUT,
    "--two-column",
    is_flag=True,
    help="LaTeX for a document in two columns: long tables are floats over both, page by page.",
)
@option(OUTPUT, "--preamble", is_flag=True, help="Print the LaTeX packages that all tables need.")
@takes(EXACT, POLICY)
@option(OUTPUT, "--all", "every", is_flag=True, help="Write all tables, in every format, to files.")
@option(
    OUTPUT,
    "--folder",
    type=Word("FOLDER", file=True),
    help="With --all: where to. Default: build/tables.",
)
def tables(
    given: tuple[str, ...],
    form: str,
    symbols: str,
    rows: str | None,
    columns: str | None,
    caption: str,
    label: str,
    two_column: bool,
    preamble: bool,
    exact: bool,
    policy: str,
    every: bool,
    folder: str | None,
) -> None:
    """Print TABLES of formulas, claims or published values; without a name, what there is.

    With --all, write all of them as .tex, .md, .csv and .html, and all.pdf where LaTeX is installed.
    """
    from psem_model.audit.proving import interruptible
    from psem_model.reading import words
    from psem_model.tables import chosen
    from psem_model.tables import symbols as own
    from psem_model.tables.files import TABLES, build_all, known
    from psem_model.tables.pages import in_two_columns
    from psem_model.tables.table import Style
    from psem_model.text.report import Report, meant

    style = Style(exact, own.typed(symbols), words.policy(policy))
    part = chosen.chosen(rows, columns, caption, label)
    if preamble:
        _print_preamble(given, every)
        return
    if every and given:
        raise BadInput(f"tables: given {quoted(given[0])} and --all; expected one of the two")
    if every and form:
        raise BadInput("--format: given with --all, which writes every format; expected one of the two")
    if folder is not None and not every:
        raise BadInput(f"--folder: given {quoted(folder)} without --all; expected --all too")
    if part != chosen.ALL_OF_IT and not given:
        raise BadInput("--rows, --columns, --caption, --label: given without a table; expected one")
    if (caption or label) and len(given) > 1:
        raise BadInput(f"--caption, --label: given with {len(given)} tables; expected one table")
    if two_column and not every and form != "latex":
        raise BadInput("--two-column: given without --format latex; expected --format latex too")
    if not every:
        _require_shown(given, symbols, label, caption, form)
    if every:
        write_all(style, folder, two_column)
        return
    if given:
        wanted = chosen.once("tables", tuple(map(known, given)))
        _require_bytes(wanted, policy)
        with interruptible() as check, ticker("tables", STEPS) as tell:

            def progress(done: float) -> None:
                check()
                tell(round(STEPS * done))

            made = build_all(wanted, style, part, progress)
        sections = [
            part for table in made for part in (in_two_columns(table) if two_column else (table,))
        ]
        ended(Report("tables", "", (), tuple(sections), {"tables": wanted}), form or "markdown")
    meanings = {each: (builder.__doc__ or "").strip() for each, builder in TABLES.items()}
    ended(Report("tables", "", (), (meant("", meanings),), {"known": meanings}), form or "text")


def _require_shown(given: Sequence[str], symbols: str, label: str, caption: str, form: str) -> None:
    """Raise BadInput for symbols without a table, or what a form has no place for."""
    if symbols and not given:
        raise BadInput("--symbols: given without a table; expected one, or --all")
    if label and form != "latex":
        raise BadInput("--label: given without --format latex; expected --format latex too")
    if caption and form in ("csv", "json"):
        raise BadInput(f"--caption: given with --format {form}; expected a form that has captions")


def _require_bytes(given: Sequence[str], policy: str) -> None:
    """Raise BadInput for bytes of an element that change none of some tables."""
    from psem_model.predict.asked import USUAL_POLICY
    from psem_model.tables.files import OF_BYTES

    if policy != USUAL_POLICY and given and not {*given} & {*OF_BYTES}:
        wrong = f"--bytes: given {quoted(policy)} with {quoted(given[0])}, which it does not change"
        raise BadInput(f"{wrong}; expected it with one of {', '.join(OF_BYTES)}")


def _print_preamble(given: tuple[str, ...], every: bool) -> None:
    """Print what a document needs before the tables."""
    from psem_model.text.latex import preamble

    if given or every:
        raise BadInput("--preamble: given with tables; expected it alone")
    click.echo(preamble())


def write_all(style: Style, given: str | None, two_columns: bool) -> None:
    """Write every table and the document, and say where they are."""
    from psem_model.audit.proving import interruptible
    from psem_model.tables import files as table_files
    from psem_model.text import places
    from psem_model.text.files import require_writable

    folder = places.BUILD / "tables" if given is None else Path(given)
    shown = folder if given is not None else folder.relative_to(places.BUILD.parent)
    pdf = f"{table_files.DOCUMENT}.pdf"
    require_writable(folder)
    program, wrong = table_files.engine(), None
    made = sum(map(table_files.seconds, table_files.TABLES))
    share = made / (made + (table_files.PDF if program else 0))  # what is left is the document
    with interruptible() as check, ticker("tables", STEPS) as tell:

        def progress(done: float) -> None:
            check()
            tell(round(STEPS * share * done))

        files: dict[str, str | bytes] = {**table_files.texts(style, progress, two_columns)}
        if program is None:
            said = f"no {pdf}: install {table_files.PACKAGE} for a LaTeX engine"
        else:
            try:
                files[pdf], said = table_files.typeset(files, program), f"{shown / pdf}, by {program}"
            except table_files.LatexError as error:
                said, wrong = f"no {pdf}", error
        check()
        table_files.write(folder, files)
    click.echo(f"{len(table_files.TABLES)} tables in {shown}: .tex, .md, .csv, .html")
    click.echo(said)
    if wrong:
        raise wrong
