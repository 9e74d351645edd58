"""Claims as a user names them."""

from __future__ import annotations

from collections.abc import Sequence

from proofs.registry import Claim, broken_modules, claims, select
from psem_model.text.errors import BadInput, UserError, choose


def ids() -> list[str]:
    """What the claims are called. Raises BadInput if they cannot be read."""
    try:
        return [claim.id for claim in claims()]
    except OSError as error:
        raise BadInput(f"cannot read the claims, {error.filename}: {error.strerror}") from None


def named(given: Sequence[str]) -> list[Claim]:
    """The claims of these ids, in small or capital letters; all if none is given.

    Raises BadInput, and UserError if a module of proofs/ cannot be imported.
    """
    known = ids()
    capital = {name: name.upper() for name in given if name.upper() in known}
    chosen = select([choose("claim", capital.get(name, name), known) for name in given])
    for broken in broken_modules():
        raise UserError(broken)
    return chosen
