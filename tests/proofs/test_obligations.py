"""What the solver was asked, asked again: no vacuous premises, no unused ones, no unlisted claim."""

from functools import cache

import pytest

from proofs import registry
from proofs.premises import premises
from psem_model.audit.hypotheses import resting_on_none, unused_parts
from psem_model.audit.questions import answer, to_hold, together, unused, without
from psem_model.audit.questions import proved_theorems as proved

pytestmark = pytest.mark.slow

CLAIMS = registry.claims()
every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)


@cache
def result_of(claim):
    return registry.prove(claim)


def proved_theorems(claim):
    return proved(result_of(claim).listed)


@every_claim
def test_facts_of_every_obligation_can_hold_together(claim):
    answers = {
        obligation.name: together(to_hold(obligation))
        for theorem in proved_theorems(claim)
        for obligation in theorem.obligations
    }
    assert {name: said for name, said in answers.items() if said != "sat"} == {}


@every_claim
def test_no_fact_of_an_obligation_is_unused(claim):
    found = [fact for theorem in proved_theorems(claim) for fact in unused(theorem)]
    assert not found, "\n".join(["facts that can be dropped:", *found])


@every_claim
def test_no_part_of_a_given_or_a_hypothesis_is_unused(claim):
    assert unused_parts(result_of(claim).listed) == []


@every_claim
def test_every_proved_theorem_is_one_of_the_claims_or_used_by_one(claim):
    result = result_of(claim)
    assert resting_on_none(result.listed, result.theorems) == []


@every_claim
def test_all_that_a_theorem_is_proved_from_can_hold_together(claim):
    theorems = [t for t in result_of(claim).theorems if t.counterexample is None]
    assert [t.name for t in theorems if together(premises([t])) != "sat"] == []


@every_claim
def test_every_theorem_with_facts_fails_without_some_fact(claim):
    idle = [
        theorem.name
        for theorem in proved_theorems(claim)
        if any(obligation.facts for obligation in theorem.obligations)
        and all(
            without(obligation, index) != "sat"
            for obligation in theorem.obligations
            for index in range(len(obligation.facts))
        )
    ]
    assert idle == []


@every_claim
def test_every_verdict_is_as_expected(claim):
    result = result_of(claim)
    assert result.verdict == claim.expected, result.failure


@every_claim
def test_every_exported_text_stands_alone_and_gives_its_expected_answer(claim):
    for obligation in result_of(claim).obligations:
        assert obligation.text.startswith("(set-logic ")
        assert answer(obligation.text) == obligation.expected, obligation.name


@every_claim
def test_every_claim_returns_theorems_of_its_own_run(claim):
    result = result_of(claim)
    assert result.theorems
    assert all(any(t is listed for listed in result.listed) for t in result.theorems)
    assert all(t.obligations or t.parts for t in result.theorems), "a bare definition or hypothesis"


def test_expected_verdicts_are_proved_or_refuted():
    assert {claim.expected for claim in CLAIMS} == {"proved", "refuted"}
