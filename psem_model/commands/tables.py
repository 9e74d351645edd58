"""The command for tables of formulas."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from psem_model.commands.options import POLICY, REJECTED, options, refuse, something, ticker

if TYPE_CHECKING:
    from psem_model.tables.table import Style


@click.command()
@click.argument("name", required=False, metavar="[TABLE]")
@click.option("--format", "form", default="markdown", show_default=True, help="latex, markdown or csv.")
@click.option(
    "--symbols",
    default="Psi,N",
    show_default=True,
    help="Of the parameters, Psi or P, and of the devices, N or d.",
)
@click.option(
    "--exact/--divisible",
    default=True,
    show_default=True,
    help="With padding, or as if N divided Psi.",
)
@options(POLICY)
@click.option("--all", "every", is_flag=True, help="Write all tables, in every format, to files.")
@click.option("--folder", callback=something, help="With --all: where to. Default: build/tables.")
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
    from psem_model.reading import inputs
    from psem_model.tables.files import TABLES, build
    from psem_model.tables.table import SYMBOLS, NotAsExpected, Style
    from psem_model.tables.writers import FORMATS

    given = symbols.split(",")
    if len(given) != len(SYMBOLS):
        raise inputs.BadInput(f"--symbols: given {symbols!r}; expected two, such as Psi,N or P,d")
    chosen = {
        of: inputs.choose(f"--symbols, {of}", symbol.strip(), SYMBOLS[of])
        for of, symbol in zip(SYMBOLS, given, strict=True)
    }
    style = Style(exact, chosen["parameters"], chosen["devices"], inputs.policy(policy))
    writer = FORMATS[inputs.choose("--format", form, FORMATS)]
    if every and name is not None:
        raise inputs.BadInput(f"tables: given {name!r} and --all; expected one of the two")
    if every:
        refuse(["form"], "with --all, which writes every format", "one of the two")
    if folder is not None and not every:
        raise inputs.BadInput(f"--folder: given {folder!r} without --all; expected both or none")
    if every or name is not None:
        try:
            if every:
                write_all(style, folder)
            else:
                wanted = inputs.choose("table", name or "", TABLES)
                with interruptible() as check:
                    table = build(wanted, style)
                    check()
                click.echo(writer.write(table), nl=False)
        except NotAsExpected as error:
            click.echo(f"psem: {' '.join(str(error).split())}", err=True)
            sys.exit(REJECTED)
    else:
        wide = max(map(len, TABLES))
        for each, builder in TABLES.items():
            click.echo(f"{each:<{wide}}  {(builder.__doc__ or '').strip()}")


def write_all(style: Style, given: str | None) -> None:
    """Write every table and the document, and say where they are."""
    from psem_model.audit.proving import interruptible, require_writable
    from psem_model.tables import files as table_files
    from psem_model.text import places

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
        click.echo(f"psem: {table_files.DOCUMENT}.tex: {wrong}", err=True)
        sys.exit(REJECTED)
