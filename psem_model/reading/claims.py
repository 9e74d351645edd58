"""Claims as a user names them."""

from __future__ import annotations

from collections.abc import Sequence

from proofs.registry import Claim, claims, select
from psem_model.reading.inputs import choose


def named(ids: Sequence[str]) -> list[Claim]:
    """The claims of these ids, in small or capital letters; all if none is given. Raises BadInput."""
    known = [claim.id for claim in claims()]
    capital = {given: given.upper() for given in ids if given.upper() in known}
    return select([choose("claim", capital.get(given, given), known) for given in ids])
