"""`python -m psem_model.certify [ID...]`: prove claims (all, or those named); a certificate, checked.

That of all is `build/certificate.json.xz`; those of some have their ids in the name. With
PSEM_NO_CACHE=1 in the environment no note of what was made and checked before is read.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError

import click

from psem_model.audit.sources import at_first
from psem_model.certify.notes import CHECKED, MADE
from psem_model.text.errors import BAD_INPUT, UserError


def main(ids: list[str]) -> int:
    """0 if every obligation has a proof that is checked."""
    for note in (MADE, CHECKED):
        at_first(note.packages)  # before what proves is imported
    from psem_model.certify.run import certify

    return certify(ids)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PackageNotFoundError:
        click.echo("psem_model.certify: cvc5 is not installed; expected: the package", err=True)
        sys.exit(BAD_INPUT)
    except UserError as error:
        click.echo(f"psem_model.certify: {error}", err=True)
        sys.exit(error.code)
