"""Claims that are proved once for all tests of a process."""

from __future__ import annotations

from functools import cache

from proofs.registry import Result, prove, select


@cache
def proved(id: str) -> Result:
    (claim,) = select([id])
    return prove(claim)
