"""What appears when a hypothesis is dropped: values that the hypothesis itself excludes."""

import pytest

from proofs.registry import prove, select
from proofs.trusted.oracle import ask
from proofs.trusted.terms import Not
from psem_model.audit.questions import values_of
from psem_model.pages.dropped import failing, uses_of

CLAIMS = ["S1", "E1", "K1", "B5"]


@pytest.fixture(scope="module", params=CLAIMS)
def result(request):
    (claim,) = select([request.param])
    return prove(claim)


def test_each_hypothesis_has_a_step_that_fails_without_it(result):
    found = failing(result)
    assert [*found] == [name for name in found if name in result.hypotheses]
    assert {*found} == {*result.hypotheses}
    assert all(each.values for each in found.values())


def test_with_the_hypothesis_the_same_values_are_impossible(result):
    for uses in uses_of(result).values():
        for use in uses[:2]:
            values = values_of(use.without)
            if values is None:  # the step has no need of it
                continue
            same = (term == value for term, value in values)
            asked = [*use.obligation.facts, Not(use.obligation.goal), *same]
            assert ask(asked).said == "unsat"
