"""Placement, step and cost: each term is paid by lines, and the terms make up the whole."""

import pytest
import sympy

from psem_model.pages.steps import MOVING, model_strategies, strategies
from spec.derivation.schedules import schedule_of
from spec.plans.strategies import STRATEGIES

FOUND = strategies()
OF_MODELS = model_strategies()


@pytest.mark.parametrize("strategy", [*FOUND, *OF_MODELS], ids=lambda s: s.name)
class TestStrategy:
    def test_every_term_is_paid_by_a_line_or_a_state_that_is_there(self, strategy):
        there = {id for id, _, _ in strategy.placed}
        there |= {line.id for line in strategy.lines}
        for term in (*strategy.memory, *strategy.sent):
            assert term.payers or term.formula == 0
            assert {*term.payers} <= there

    def test_what_lines_send_adds_up_to_what_is_sent(self, strategy):
        *each, total = strategy.sent
        paid = [term for term in each if {*term.payers} <= {*total.payers}]
        assert sympy.expand(sum(term.formula for term in paid) - total.formula) == 0


@pytest.mark.parametrize("strategy", FOUND, ids=lambda s: s.name)
def test_lines_are_those_of_the_derived_step(strategy):
    schedule = schedule_of(STRATEGIES[strategy.name])
    assert [line.words for line in strategy.lines] == [" ".join(str(op).split()) for op in schedule.ops]
    assert [line.moves for line in strategy.lines] == [op.kind in MOVING for op in schedule.ops]


def test_the_gather_of_zero3_pays_what_passes():
    zero3 = next(s for s in FOUND if s.name == "zero3")
    passing = next(term for term in zero3.memory if term.words.startswith("passes"))
    words = {line.id: line.words for line in zero3.lines}
    assert any("all_gather" in words[id] for id in passing.payers)


def test_a_layer_of_tensor_parallelism_sends_what_x6_proves():
    b, s, h, t = sympy.symbols("b s h t", positive=True)
    tp = next(s for s in OF_MODELS if s.name == "tp")
    assert sympy.simplify(tp.sent[-1].formula - 8 * b * s * h * (t - 1) / t) == 0


def test_no_name_of_a_value_says_how_it_lies():
    assert not [line.words for s in OF_MODELS for line in s.lines if "|" in line.words]
