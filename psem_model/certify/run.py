"""Certificates of claims: made where sources or files are others, and checked by `psem_check`."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import click

from proofs.registry import Claim
from psem_model.audit.processes import program
from psem_model.audit.sources import are_unchanged
from psem_model.certify.certificate import certificate, compressed, missing
from psem_model.certify.notes import CHECKED, MADE
from psem_model.check.claims import results, total, uncollected
from psem_model.reading.claims import named
from psem_model.text.files import write_atomically
from psem_model.text.places import BUILD
from psem_model.text.progress import ticker

NO_CACHE = "PSEM_NO_CACHE"


def certify(ids: list[str]) -> int:
    """0 if every obligation has a proof that is checked."""
    cached = not os.environ.get(NO_CACHE)
    claims = named(ids)
    path = BUILD / f"{'-'.join(['certificate', *ids])}.json.xz"
    if cached and MADE.holds(path):
        click.echo(f"{path} was made of the same sources: nothing is proved again")
    elif code := make(claims, path):
        return code
    return checked(path, cached)


def checked(path: Path, cached: bool) -> int:
    """What `psem_check` says of a certificate; if `cached`, not again of what it said to be checked."""
    if cached and CHECKED.holds(path):
        click.echo(f"it was checked by the same psem_check, remembered: {NO_CACHE}=1 checks it again")
        return 0
    given = CHECKED.of(path)  # what is written meanwhile was not checked
    code = subprocess.run(program("psem_check", str(path), "--brief"), check=False).returncode
    if not code and are_unchanged(CHECKED.packages):
        write_atomically(CHECKED.beside(path), given)
    return code


def make(claims: Sequence[Claim], path: Path) -> int:
    """Write the certificate of claims; 0 if every obligation has a proof."""
    start = time.perf_counter()
    with uncollected(), ticker("proving", total(claims)) as tell:
        found = list(results(claims, tell))
    wrong = [result.claim.id for result in found if not result.as_expected]
    if wrong:
        click.echo(f"NOT as expected: {', '.join(wrong)}", err=True)
        return 1
    with ticker("finding proofs", 100) as tell:
        document = certificate(found, lambda done, of: tell(100 * done // of))
    with ticker("compressing", 100) as tell:
        data = compressed(document, lambda done, of: tell(100 * done // of))
    path.write_bytes(data)
    open_ = missing(document)
    if not open_ and are_unchanged(MADE.packages):
        write_atomically(MADE.beside(path), MADE.of(path))
    for each in open_:
        click.echo(f"no proof of {each}")
    click.echo(f"{len(data) / 1e6:.1f} MB in {path}, {time.perf_counter() - start:.0f} s")
    return 1 if open_ else 0
