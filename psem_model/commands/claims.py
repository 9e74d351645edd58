"""The commands about claims: prove them, and explain what is proved."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from psem_model.commands.help import Command, Switch, option
from psem_model.commands.options import CLAIMS, JSON, OUTPUT, SOME_CLAIMS, number, takes
from psem_model.commands.output import written
from psem_model.text.errors import REJECTED, BadInput
from psem_model.text.report import Report


@click.command(cls=Command, examples=["psem prove", "psem prove C1 E2"])
@takes(CLAIMS)
@number(OUTPUT, "--jobs", "In so many processes; by default, one for each core.", envvar="PSEM_JOBS")
@option(
    OUTPUT,
    "--no-cache",
    is_flag=True,
    type=Switch(),
    envvar="PSEM_NO_CACHE",
    help="Prove again what is remembered of the same sources, or answered to the same texts.",
)
@JSON
def prove(ids: Sequence[str], jobs: str | None, no_cache: bool, as_json: bool) -> None:
    """Prove claims (all, or those named), by area.

    Of each: the verdict, how many obligations the solver decided and how many hypotheses its theorems
    rest on, its statement and its axioms. Exit code 1 if a verdict is not the expected one.
    """
    from psem_model.audit.sources import at_first

    at_first()  # before what proves is imported
    from psem_model.audit.proving import run
    from psem_model.reading.words import count

    cores = os.cpu_count() or 1
    processes = cores if jobs is None else count("--jobs, PSEM_JOBS", jobs, "processes")
    sys.exit(run(ids, as_json, processes, not no_cache))


@click.command(
    cls=Command,
    examples=[
        "psem explain E2 E3",
        "psem explain T2 --outline",
        "psem explain C1 --smt chunks_wait_untouched_step",
    ],
)
@SOME_CLAIMS
@option(
    OUTPUT, "--smt", metavar="OBLIGATION", help="Print one obligation's SMT-LIB text, of one claim."
)
@option(OUTPUT, "--tree", is_flag=True, help="Print the tree of theorems and obligations too.")
@option(
    OUTPUT, "--outline", is_flag=True, help="Two screens: conclusions, and the tops of their trees."
)
@JSON
def explain(ids: Sequence[str], smt: str | None, tree: bool, outline: bool, as_json: bool) -> None:
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
    if outline and (tree or as_json or smt is not None):
        raise BadInput("--outline: given --tree, --json or --smt besides; expected it alone")
    results = proved(selected)
    if smt is not None:
        click.echo(explanation.smt_of(results[0], smt))
    elif as_json:
        found = {"claims": [explanation.json_of(result) for result in results]}
        click.echo(written(Report("explain", "", data=found), "json"), nl=False)
    elif outline:
        from psem_model.audit.outline import outline_of

        click.echo("\n\n".join("\n".join(outline_of(result)) for result in results))
    else:
        click.echo("\n\n".join("\n".join(explanation.lines_of(result, tree)) for result in results))
    sys.exit(0 if all(result.as_expected for result in results) else REJECTED)
