"""The registry of claims, and running them: `claims.toml` and what came of it."""

from __future__ import annotations

import importlib
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from proofs.kernel import RESOURCE_LIMIT, SEED, Kernel, KernelError, Obligation, Theorem

NOT_PROVED = ("hypothesis", "axiom", "definition", "instance")
ROOT = Path(__file__).resolve().parent.parent
REGISTRY = Path(__file__).with_name("claims.toml")


@dataclass(frozen=True)
class Claim:
    """One row of claims.toml."""

    id: str
    statement: str
    source: str
    theorem: str
    expected: str
    caveats: tuple[str, ...]

    def function(self) -> Callable[[Kernel], tuple[Theorem, ...]]:
        """The function in proofs/ that proves it."""
        module, _, name = self.theorem.rpartition(".")
        function: Callable[[Kernel], tuple[Theorem, ...]] = getattr(
            importlib.import_module(module), name
        )
        return function


@dataclass(frozen=True)
class Result:
    """What came of a claim."""

    claim: Claim
    verdict: str  # proved, refuted, or failed
    theorems: tuple[Theorem, ...]
    listed: tuple[Theorem, ...]
    seconds: float
    failure: str = ""

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.claim.expected

    @property
    def obligations(self) -> list[Obligation]:
        return [o for theorem in self.listed for o in theorem.obligations]

    @property
    def axioms(self) -> list[str]:
        return sorted(frozenset().union(*(t.axioms for t in self.theorems)))

    @property
    def hypotheses(self) -> list[str]:
        return sorted(frozenset().union(*(t.hypotheses for t in self.theorems)))

    @property
    def counterexamples(self) -> dict[str, dict[str, str]]:
        """By theorem name, the values that refute."""
        found = ((t.name, t.counterexample) for t in self.theorems)
        return {name: dict(values) for name, values in found if values is not None}

    def json(self) -> dict[str, Any]:
        """The claim's entry of the report."""
        entry: dict[str, Any] = {
            "id": self.claim.id,
            "statement": self.claim.statement,
            "expected": self.claim.expected,
            "verdict": self.verdict,
            "obligations": len(self.obligations),
            "seconds": round(self.seconds, 6),
            "axioms": self.axioms,
            "hypotheses": self.hypotheses,
        }
        if self.counterexamples:
            entry["counterexample"] = self.counterexamples
        if self.failure:
            entry["failure"] = self.failure
        return entry


class UnknownClaim(ValueError):
    """No claim has this id, or the claims cannot be read."""


def claims() -> list[Claim]:
    """All claims, in the order of the registry. Raises UnknownClaim if it cannot be read."""
    try:
        rows = tomllib.loads(REGISTRY.read_text(encoding="utf-8"))["claim"]
    except OSError as error:
        raise UnknownClaim(f"cannot read the claims, {REGISTRY}: {error.strerror}") from None
    return [Claim(**{**row, "caveats": tuple(row["caveats"])}) for row in rows]


def select(ids: Sequence[str]) -> list[Claim]:
    """The claims of these ids, in the order of the registry; all if none is given.

    Raises UnknownClaim, with the nearest id if one is near.
    """
    known = {claim.id: claim for claim in claims()}
    ids = [given.upper() if given.upper() in known else given for given in ids]
    for given in ids:
        if given not in known:
            near = get_close_matches(given.upper(), known, n=1, cutoff=0.4)
            nearest = f"; nearest: {near[0]}" if near else ""
            raise UnknownClaim(f"unknown claim {given!r}; expected one of {', '.join(known)}{nearest}")
    return [claim for claim in known.values() if not ids or claim.id in ids]


def prove(claim: Claim) -> Result:
    """Run one claim's proof."""
    start = time.perf_counter()
    kernel = Kernel(claim.id)
    try:
        theorems = claim.function()(kernel)
        if not theorems:
            raise KernelError(f"{claim.id}: no theorem")
        for theorem in theorems:
            if theorem not in kernel.theorems or theorem.rule in NOT_PROVED:
                raise KernelError(f"{claim.id}: {theorem.name} is a {theorem.rule}, not proved here")
        verdict = "proved" if theorems[0].counterexample is None else "refuted"
        failure = ""
    except Exception as error:  # a proof that breaks down is no proof
        known = isinstance(error, KernelError)
        failure = str(error) if known else f"{type(error).__name__}: {error}"
        theorems, verdict = (), "failed"
    seconds = time.perf_counter() - start
    return Result(claim, verdict, theorems, tuple(kernel.theorems), seconds, failure)


def table() -> str:
    """The claims as a Markdown table, as the README shows it."""
    rows = ["| claim | statement | verdict | caveats |", "|---|---|---|---|"]
    for claim in claims():
        caveats = "; ".join(claim.caveats) or "none"
        rows.append(f"| {claim.id} | {claim.statement} | {claim.expected} | {caveats} |")
    return "\n".join(rows)


def report(results: Sequence[Result], seconds: float) -> dict[str, Any]:
    """The machine-readable report."""
    import z3

    return {
        "claims": [result.json() for result in results],
        "solver": {
            "name": "z3",
            "version": z3.get_version_string(),
            "resource_limit": RESOURCE_LIMIT,
            "seed": SEED,
        },
        "seconds": round(seconds, 6),
    }
