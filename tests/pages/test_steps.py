"""Placement, step and cost: each term is paid by lines, and the terms make up the whole."""

import pytest
import sympy

from psem_model.pages.steps import MOVING, strategies
from spec.derivation.derive import derive
from spec.plans.strategies import STRATEGIES

FOUND = strategies()


@pytest.mark.parametrize("strategy", FOUND, ids=lambda s: s.name)
class TestStrategy:
    def test_every_term_is_paid_by_a_line_or_a_state_that_is_there(self, strategy):
        there = {id for id, _, _ in strategy.placed}
        there |= {line.id for line in (*strategy.micro_step, *strategy.finish)}
        for term in (*strategy.memory, *strategy.sent):
            assert term.payers or term.formula == 0
            assert {*term.payers} <= there

    def test_lines_are_those_of_the_derived_step(self, strategy):
        schedule = derive(STRATEGIES[strategy.name])
        lines = [*strategy.micro_step, *strategy.finish]
        assert [line.words for line in lines] == [" ".join(str(op).split()) for op in schedule.ops]
        assert [line.moves for line in lines] == [op.kind in MOVING for op in schedule.ops]

    def test_what_lines_send_adds_up_to_what_is_sent(self, strategy):
        *each, total = strategy.sent
        paid = [term for term in each if {*term.payers} <= {*total.payers}]
        assert sympy.expand(sum(term.formula for term in paid) - total.formula) == 0


def test_the_gather_of_zero3_pays_what_passes():
    zero3 = next(s for s in FOUND if s.name == "zero3")
    passing = next(term for term in zero3.memory if term.words.startswith("passes"))
    words = {line.id: line.words for line in zero3.micro_step}
    assert any("all_gather" in words[id] for id in passing.payers)
