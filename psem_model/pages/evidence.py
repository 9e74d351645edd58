"""What was run and left its report in build/: proofs, the audit, certificates. Nothing is invented."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.registry import Result
from proofs.trusted.kernel import Obligation
from psem_check.check import Checked, check, in_a_line
from psem_check.reader import read
from psem_check.terms import Rejected
from psem_model.text import places
from psem_model.text.errors import BadInput
from psem_model.text.figures import counted
from psem_model.text.files import json_in

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
class Certificate:
    """The claims of a certificate that was checked, or why it is rejected."""

    claims: Mapping[str, Checked]
    rejected: str = ""


@dataclass(frozen=True)
class Evidence:
    """The reports in build/: that of the proofs, and those of audit and certificates, if they ran."""

    proofs: Document
    audit: Document | None
    certificate: Certificate | None

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
        known = [(row["name"], row["rule"]) for row in asked]
        if rows is None or known != [(o.name, o.rule) for o in obligations]:
            return Audited((), missing=OTHER)
        answers = [str(row["cvc5"]["answer"]) for row in asked]
        seconds = sum(row["cvc5"]["seconds"] for row in asked)
        return Audited(answers, seconds, tuple(rows["findings"]))

    def certified(self, result: Result) -> str:
        """What the checker of certificates says of a claim, in words."""
        if self.certificate is None:
            return NOT_RUN
        if self.certificate.rejected:
            return f"rejected: {self.certificate.rejected}"
        had = self.certificate.claims.get(result.claim.id)
        same = (result.claim.statement, result.verdict, [theorem.name for theorem in result.theorems])
        if had is None or (had.statement, had.verdict, [t.name for _, t in had.theorems]) != same:
            return OTHER
        steps = counted(had.obligations, "obligation")
        return f"checked, {steps if had.obligations else 'its values evaluated'}"


def evidence(tell: Callable[[int], None]) -> Evidence:
    """What is in build/; a certificate is checked, and `tell` is told how many claims of it are.

    Raises BadInput if there is no report of the proofs.
    """
    proofs = json_in(places.BUILD / PROVED)
    if proofs is None or "claims" not in proofs:
        shown = places.BUILD / PROVED
        raise BadInput(f"{shown}: there is no report of the proofs; expected one: run `psem prove`")
    return Evidence(
        proofs, json_in(places.BUILD / AUDITED), _certificate(places.BUILD / CERTIFIED, tell)
    )


def _certificate(path: Path, tell: Callable[[int], None]) -> Certificate | None:
    found: dict[str, Checked] = {}
    if not path.exists():
        return None
    try:
        for done, claim in enumerate(check(read(path)), 1):
            found[claim.id] = claim
            tell(done)
    except Rejected as error:
        return Certificate({}, in_a_line(str(error)))
    return Certificate(found)


def require_same(results: Sequence[Result], found: Evidence) -> None:
    """Raise BadInput if the report is not of the claims as they are proved now."""
    timeless = ("id", "statement", "verdict", "obligations", "axioms", "hypotheses")
    for result in results:
        now = result.outcome.json()
        then: Document = next((e for e in found.proofs["claims"] if e["id"] == result.claim.id), {})
        other = [key for key in timeless if then.get(key) != now[key]]
        if other:
            raise BadInput(
                f"{places.BUILD / PROVED}: {result.claim.id} has another {other[0]} than now; expected "
                "the report of these proofs: run `psem prove`"
            )
