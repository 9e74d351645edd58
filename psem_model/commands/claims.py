"""The commands about claims: prove them, and explain what is proved."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from psem_model.commands.help import Command, option
from psem_model.commands.options import CLAIMS, JSON, OUTPUT, SOME_CLAIMS, options
from psem_model.commands.output import written
from psem_model.text.errors import REJECTED, BadInput
from psem_model.text.report import Report


@click.command(cls=Command, examples=["psem prove", "psem prove C1 E2"])
@options(CLAIMS)
@option(
    OUTPUT,
    "--jobs",
    type=click.IntRange(1, 256),
    metavar="NUMBER",
    envvar="PSEM_JOBS",
    help="In so many processes; by default, one for each core.",
)
@option(
    OUTPUT,
    "--no-cache",
    is_flag=True,
    envvar="PSEM_NO_CACHE",
    help="Prove again what is remembered of the same sources.",
)
@JSON
def prove(ids: Sequence[str], jobs: int | None, no_cache: bool, as_json: bool) -> None:
    """Prove claims (all, or those named), by area.

    Of each: the verdict, how many obligations the solver decided and how many hypotheses its theorems
    rest on, its statement and its axioms. Exit code 1 if a verdict is not the expected one.
    """
    from psem_model.audit.proving import run

    sys.exit(run(ids, as_json, jobs or os.cpu_count() or 1, not no_cache))


@click.command(
    cls=Command, examples=["psem explain E2 E3", "psem explain C1 --smt chunks_wait_untouched_step"]
)
@SOME_CLAIMS
@option(
    OUTPUT, "--smt", metavar="OBLIGATION", help="Print one obligation's SMT-LIB text, of one claim."
)
@option(OUTPUT, "--tree", is_flag=True, help="Print the tree of theorems and obligations too.")
@JSON
def explain(ids: Sequence[str], smt: str | None, tree: bool, as_json: bool) -> None:
    """Print what CLAIMs define and conclude, what they rest on and how large the proofs are.

    Exit code 1 if a verdict is not the expected one.
    """
    from psem_model.audit import explanation
    from psem_model.audit.proving import proved
    from psem_model.reading.claims import named

    selected = named(ids)
    order = [given.upper() for given in ids]
    selected.sort(key=lambda claim: order.index(claim.id))
    if smt is not None and (as_json or len(selected) > 1):
        given = "--json" if as_json else f"{len(selected)} claims"
        raise BadInput(f"--smt: given {given} besides; expected one claim, and no --json")
    results = proved(selected)
    if smt is not None:
        click.echo(explanation.smt_of(results[0], smt))
    elif as_json:
        found = {"claims": [explanation.json_of(result) for result in results]}
        click.echo(written(Report("explain", "", data=found), "json"), nl=False)
    else:
        click.echo("\n\n".join("\n".join(explanation.lines_of(result, tree)) for result in results))
    sys.exit(0 if all(result.as_expected for result in results) else REJECTED)
