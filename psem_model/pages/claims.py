"""The claims as pages: what each says, how it is proved, what was run, what it is joined to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from proofs.registry import Claim, Result
from psem_model.audit import explanation
from psem_model.audit.refutations import REGISTERED, name_of
from psem_model.pages.dropped import Failing, failing
from psem_model.pages.evidence import Audited, Evidence
from psem_model.pages.proofs import (
    Node,
    Statement,
    Texts,
    Trees,
    assumed,
    definitions,
    obligations,
    statement,
)
from psem_model.pages.words import ids_in
from psem_model.text.files import beside
from psem_model.text.html import text
from psem_model.text.report import Prose

FIRST = 12  # statements of a claim that are shown at once


@dataclass(frozen=True)
class Dropped:
    """A hypothesis, and the counterexamples that appear without it: claim, theorem, and values."""

    name: str
    by: Sequence[tuple[str, str, Sequence[tuple[str, str]]]]


@dataclass(frozen=True)
class ClaimPage:
    """All that is shown of a claim."""

    claim: Claim
    entry: Mapping[str, Any]
    formula: Markup
    audited: Audited
    certified: str
    beside: Sequence[str]  # what is true instead, or what is false beside it
    words: Mapping[str, str]  # what symbols stand for
    defined: tuple[Sequence[Statement], int]  # and how many more are
    concluded: Sequence[Statement]
    hypotheses: Sequence[Statement]
    failing: Mapping[str, Failing]  # by hypothesis, a step that does not follow without it
    axioms: Sequence[Statement]
    dropped: Sequence[Dropped]
    tree: Sequence[Node]
    obligations: int  # the number of their text
    names: Sequence[str]
    named_by: Sequence[str]
    place: Mapping[str, Any]
    runs: Sequence[str]  # of examples/, line by line on the page
    executed: Sequence[str]  # theorems whose counterexample the simulator runs, in the audit

    @property
    def as_expected(self) -> bool:
        return bool(self.entry["verdict"] == self.claim.expected)

    @property
    def first(self) -> Sequence[Statement]:
        """What is stated at once."""
        return self.concluded[:FIRST]

    @property
    def further(self) -> Sequence[Statement]:
        """What is stated where it is asked for."""
        return self.concluded[FIRST:]


def twins() -> dict[str, Any]:
    """Refuted claims and sharp ones, and which counterexample appears without which hypothesis."""
    return beside(__file__, "twins.toml")


def pages(
    results: Sequence[Result], found: Evidence, texts: Texts, tell: Callable[[int], None]
) -> list[ClaimPage]:
    """A page for each claim, as the registry has them. `texts` gets the lines of their obligations."""
    known = [result.claim.id for result in results]
    joined, values = twins(), _counterexamples(found)
    named = {result.claim.id: _named(result.claim, known) for result in results}
    made, trees = [], Trees()
    for done, result in enumerate(results, 1):
        claim = result.claim
        audited = found.audited(claim.id, result.obligations)
        drops = joined["drops"].get(claim.id, {})
        entry = found.entry(claim.id)
        made.append(
            ClaimPage(
                claim,
                entry,
                Markup(text(Prose(claim.formula))),
                audited,
                found.certified(result),
                _beside(claim.id, joined["beside"], known),
                explanation.spoken_of(result),
                definitions(result),
                [statement(each, played=result.verdict == "refuted") for each in result.theorems],
                assumed(result, "hypothesis"),
                failing(result),
                assumed(result, "axiom"),
                [
                    Dropped(name, [(*each.split("/"), values.get(each, ())) for each in by])
                    for name, by in drops.items()
                ],
                trees.of(result),
                obligations(result, audited.answers, texts),
                named[claim.id],
                [other for other in known if claim.id in named[other]],
                explanation.place(result),
                joined["runs"].get(claim.id, ()),
                [t.name for t in result.theorems if name_of(claim.id, t.name) in REGISTERED],
            )
        )
        tell(done)
    return made


def _counterexamples(found: Evidence) -> dict[str, Sequence[tuple[str, str]]]:
    """By claim and theorem, the values that the report has."""
    return {
        f"{entry['id']}/{theorem}": tuple(values.items())
        for entry in found.proofs["claims"]
        for theorem, values in entry.get("counterexample", {}).items()
    }


def _named(claim: Claim, known: Sequence[str]) -> list[str]:
    """The claims that a claim's words name."""
    words = " ".join((claim.statement, claim.formula, claim.caveat, *claim.scope))
    return [other for other in ids_in(words, known) if other != claim.id]


def _beside(id: str, joined: Mapping[str, Sequence[str]], known: Sequence[str]) -> list[str]:
    false = [refuted for refuted, sharp in joined.items() if id in sharp]
    return [other for other in (*joined.get(id, ()), *false) if other in known]
