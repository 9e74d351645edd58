"""What was run and left its report in build/: proofs, the audit, certificates. Nothing is invented."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.registry import Result
from proofs.trusted.kernel import Obligation
from psem_model.text import places
from psem_model.text.errors import BadInput

PROVED, AUDITED, CERTIFIED = "report.json", "audit.json", "certificate.json.xz"
NOT_RUN = "not run"
OTHER = "ran on other proofs"
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Audited:
    """What the second solver said of a claim's obligations, in order; or why it said nothing."""

    answers: Sequence[str]
    seconds: float = 0.0
    findings: tuple[str, ...] = ()
    missing: str = ""

    @property
    def words(self) -> str:
        """In a line."""
        if self.missing:
            return self.missing
        if self.findings:
            return f"{len(self.findings)} findings"
        return f"cvc5 agrees on {len(self.answers):,}, {self.seconds:.2f} s"


@dataclass(frozen=True)
class Evidence:
    """The reports in build/: that of the proofs, and those of audit and certificates, if they ran."""

    proofs: Document
    audit: Document | None
    certificate: Document | None

    def entry(self, claim: str) -> Document:
        """A claim's entry in the report of the proofs."""
        found: Document = next(e for e in self.proofs["claims"] if e["id"] == claim)
        return found

    def audited(self, claim: str, obligations: Sequence[Obligation]) -> Audited:
        """What the audit says of a claim that has these obligations."""
        if self.audit is None:
            return Audited((), missing=NOT_RUN)
        rows = next((c for c in self.audit["claims"] if c["claim"] == claim), None)
        asked = rows["obligations"] if rows else []
        known = [(row["name"], row["rule"], row["z3"]["resources"]) for row in asked]
        if rows is None or known != [(o.name, o.rule, o.resources) for o in obligations]:
            return Audited((), missing=OTHER)
        answers = [str(row["cvc5"]["answer"]) for row in asked]
        seconds = sum(row["cvc5"]["seconds"] for row in asked)
        return Audited(answers, seconds, tuple(rows["findings"]))

    def certified(self, claim: str, obligations: int) -> str:
        """Whether a certificate has the claim, in words. It is not checked here."""
        if self.certificate is None:
            return NOT_RUN
        had = next((c for c in self.certificate["claims"] if c["id"] == claim), None)
        return f"written, {obligations:,} obligations" if had else OTHER


def evidence() -> Evidence:
    """What is in build/. Raises BadInput if there is no report of the proofs."""
    proofs = _read(places.BUILD / PROVED)
    if proofs is None or "claims" not in proofs:
        shown = places.BUILD / PROVED
        raise BadInput(f"{shown}: there is no report of the proofs; expected one: run `psem prove`")
    return Evidence(proofs, _read(places.BUILD / AUDITED), _read(places.BUILD / CERTIFIED))


def _read(path: Path) -> Any:
    """A document, or none."""
    try:
        data = path.read_bytes()
        return json.loads(lzma.decompress(data) if path.suffix == ".xz" else data)
    except (OSError, ValueError, lzma.LZMAError):
        return None


def require_same(results: Sequence[Result], found: Evidence) -> None:
    """Raise BadInput if the report is not of the claims as they are proved now."""
    timeless = ("id", "statement", "verdict", "obligations", "axioms", "hypotheses")
    for result in results:
        now = result.json()
        then: Document = next((e for e in found.proofs["claims"] if e["id"] == result.claim.id), {})
        other = [key for key in timeless if then.get(key) != now[key]]
        if other:
            raise BadInput(
                f"{places.BUILD / PROVED}: {result.claim.id} has another {other[0]} than now; expected "
                "the report of these proofs: run `psem prove`"
            )
