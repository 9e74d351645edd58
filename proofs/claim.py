"""`@claim("M6")`: the function below it proves claim M6, a row of claims.toml."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from proofs.trusted.kernel import Kernel, Theorem

Proof: TypeAlias = "Callable[[Kernel], tuple[Theorem, ...]]"
PROOFS: dict[str, list[Proof]] = {}  # by claim, the functions that are marked with its id


def claim(id: str) -> Callable[[Proof], Proof]:
    """The claim that a function proves: the theorems it returns are the claim."""

    def mark(proof: Proof) -> Proof:
        PROOFS.setdefault(id, []).append(proof)
        return proof

    return mark
