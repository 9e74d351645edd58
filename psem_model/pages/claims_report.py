"""`psem report`: one HTML file on all claims, from what is in build/ and the theorems themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from proofs.registry import Result, areas
from psem_model.pages.claims import ClaimPage, pages
from psem_model.pages.evidence import Evidence, require_same
from psem_model.pages.pictures import pictures
from psem_model.pages.proofs import Texts
from psem_model.pages.render import filled
from psem_model.pages.runs import of_examples
from psem_model.pages.steps import model_strategies, strategies
from psem_model.pages.words import abstract, said
from psem_model.text.figures import counted
from spec.assumptions import ASSUMPTIONS

CONTENTS = (
    ("claims", "Claims"),
    ("abstract", "Abstract"),
    ("strategies", "Strategies"),
    ("runs", "Runs"),
    ("pictures", "Pictures"),
    ("assumed", "Assumed"),
    ("trusted", "Trusted"),
    ("limits", "Limits"),
)


@dataclass(frozen=True)
class Area:
    """Claims of an area."""

    name: str
    about: str
    pages: Sequence[ClaimPage]


@dataclass(frozen=True)
class Axiom:
    """An assumption, and the claims that rest on it."""

    name: str
    reason: str
    claims: Sequence[str]


@dataclass(frozen=True)
class Totals:
    """Of all claims."""

    proved: int
    refuted: int
    obligations: int
    seconds: float
    remembered: int
    solver: str
    second: str
    certificate: str
    as_expected: bool


def page(results: Sequence[Result], found: Evidence, tell: Callable[[int], None]) -> str:
    """The page. Raises BadInput if the report in build/ is of other proofs."""
    require_same(results, found)
    texts = Texts()
    made = pages(results, found, texts, tell)
    rests = {p.claim.id: p.entry["axioms"] for p in made}
    return filled(
        "report.html",
        strategies=strategies(),
        model_strategies=model_strategies(),
        runs=of_examples(),
        pictures=pictures(),
        version=_version(),
        contents=CONTENTS,
        pages=made,
        by_id={p.claim.id: p for p in made},
        areas=[
            Area(name, about, of)
            for name, about in areas().items()
            if (of := [p for p in made if p.claim.area == name])
        ],
        axioms=[
            Axiom(a.name, a.reason, [id for id, names in rests.items() if a.name in names])
            for a in ASSUMPTIONS.values()
        ],
        free=[p.claim.id for p in made if not p.entry["axioms"] and not p.claim.decided],
        decided=[p.claim.id for p in made if p.claim.decided],
        totals=_totals(made, found),
        texts=texts,
        abstract=abstract(),
        said=[(name, said(name)) for name in ("trusted", "limits")],
    )


def _certificate(found: Evidence, made: Sequence[ClaimPage]) -> str:
    """What the checker of certificates says of all claims."""
    if found.certificate is None or found.certificate.rejected:
        return made[0].certified
    checked = sum(claim.obligations for claim in found.certificate.claims.values())
    whole = sum(page.certified.startswith("checked,") for page in made)
    return f"{whole} of {counted(len(made), 'claim')} checked, {checked:,} obligations"


def _version() -> str:
    try:
        return version("psem")
    except PackageNotFoundError:
        return "from a checkout"


def _totals(made: Sequence[ClaimPage], found: Evidence) -> Totals:
    proofs: Any = found.proofs
    verdicts = [p.entry["verdict"] for p in made]
    answered = sum(len(p.audited.answers) for p in made)
    second = f"cvc5 agrees on {answered:,}" if answered else made[0].audited.words
    if any(p.audited.findings for p in made):
        second = f"{sum(bool(p.audited.findings) for p in made)} claims with findings"
    return Totals(
        verdicts.count("proved"),
        verdicts.count("refuted"),
        sum(p.entry["obligations"] for p in made),
        proofs["seconds"],
        proofs.get("remembered", 0),
        proofs["solver"]["version"],
        second,
        _certificate(found, made),
        all(p.as_expected for p in made),
    )
