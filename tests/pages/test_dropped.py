"""What appears when a hypothesis is dropped: values that the hypothesis itself excludes."""

import pytest
import z3

from proofs.registry import prove, select
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
            solver = z3.Solver()
            solver.add(*use.obligation.facts, z3.Not(use.obligation.goal))
            solver.add(*(term == value for term, value in values))
            assert solver.check() == z3.unsat
