"""`python -m psem_model.certify [ID...]`: prove claims (all, or those named), write their certificate.

That of all is `build/certificate.json.xz`; those of some have their ids in the name.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import PackageNotFoundError

import click

from psem_model.certify.certificate import certificate, compressed, made_of_these, missing, note
from psem_model.check.claims import results, total, uncollected
from psem_model.reading.claims import named
from psem_model.text.errors import BAD_INPUT, UserError
from psem_model.text.places import BUILD
from psem_model.text.progress import ticker


def main(ids: list[str]) -> int:
    """0 if every obligation has a proof."""
    start = time.perf_counter()
    claims = named(ids)
    path = BUILD / f"{'-'.join(['certificate', *ids])}.json.xz"
    if made_of_these(path):
        click.echo(f"{path} was made of the same sources: nothing is proved again")
        return 0
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
    if not open_:
        note(path)
    for each in open_:
        click.echo(f"no proof of {each}")
    click.echo(
        f"{len(document['proofs']):,} proofs, {len(data) / 1e6:.1f} MB in {path}, "
        f"{time.perf_counter() - start:.0f} s"
    )
    return 1 if open_ else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PackageNotFoundError:
        click.echo("psem_model.certify: cvc5 is not installed; expected: the package", err=True)
        sys.exit(BAD_INPUT)
    except UserError as error:
        click.echo(f"psem_model.certify: {error}", err=True)
        sys.exit(error.code)
