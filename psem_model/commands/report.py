"""`psem report`: the claims as one page for a browser."""

from __future__ import annotations

import click

from psem_model.commands.help import Command, option
from psem_model.commands.options import FILE, JSON, OUTPUT
from psem_model.commands.output import page_file, write_page, written
from psem_model.text.figures import counted

PAGE = "report.html"


@click.command(cls=Command, examples=["psem report", "psem report --out claims.html"])
@option(OUTPUT, "--out", type=FILE, help="The file. Default: build/report.html.")
@JSON
def report(out: str | None, as_json: bool) -> None:
    """Write all claims as one page for a browser, which needs no network.

    Verdicts, times and the audit are those in build/: run `psem prove` first. A certificate that is
    there is checked, and the claims are proved once more for the trees of their theorems.
    """
    from proofs.registry import claims
    from psem_model.audit.proving import interruptible, proved
    from psem_model.check.claims import uncollected
    from psem_model.pages.claims_report import page
    from psem_model.pages.evidence import evidence
    from psem_model.text import places
    from psem_model.text.files import require_writable, write_atomically
    from psem_model.text.progress import ticker
    from psem_model.text.report import Report

    file = places.BUILD / PAGE if out is None else page_file("--out", out)
    every = claims()
    require_writable(file.parent, file.name)
    with ticker("checking the certificate", len(every)) as tell:
        found = evidence(tell)
    with uncollected():
        results = proved(every)
        with interruptible() as check, ticker("writing the pages", len(every)) as tell:

            def of_pages(done: int) -> None:
                check()
                tell(done)

            made = page(results, found, of_pages)
    if not as_json:
        write_page(file, made, counted(len(every), "claim"))
        return
    write_atomically(file, made)
    verdicts = {result.claim.id: result.verdict for result in results}
    told = {"file": str(file), "bytes": len(made.encode()), "claims": verdicts}
    click.echo(written(Report("report", "", data=told), "json"), nl=False)
