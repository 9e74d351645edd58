"""Claims as a user names them."""

from __future__ import annotations

from collections.abc import Sequence

from proofs.registry import Claim, broken_modules, claims, select
from psem_model.text.errors import BadInput, UserError, choose


def named(ids: Sequence[str]) -> list[Claim]:
    """The claims of these ids, in small or capital letters; all if none is given.

    Raises BadInput, and UserError if a module of proofs/ cannot be imported.
    """
    try:
        known = [claim.id for claim in claims()]
    except OSError as error:
        raise BadInput(f"cannot read the claims, {error.filename}: {error.strerror}") from None
    capital = {given: given.upper() for given in ids if given.upper() in known}
    chosen = select([choose("claim", capital.get(given, given), known) for given in ids])
    for broken in broken_modules():
        raise UserError(broken)
    return chosen
