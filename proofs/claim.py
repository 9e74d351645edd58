"""`@claim("M6")`: the function below it proves claim M6, a row of claims.toml."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from proofs.kernel import Kernel, Theorem

Proof: TypeAlias = "Callable[[Kernel], tuple[Theorem, ...]]"
PROOFS: dict[str, dict[str, Proof]] = {}  # by claim, the functions that prove it, by module and name


def claim(id: str) -> Callable[[Proof], Proof]:
    """The claim that a function proves: the theorems it returns are the claim."""

    def mark(proof: Proof) -> Proof:
        PROOFS.setdefault(id, {})[f"{proof.__module__}.{proof.__name__}"] = proof
        return proof

    return mark
