"""Choices of experts that do not spread evenly over them."""

from __future__ import annotations

from dataclasses import replace

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.said_of_model import said
from spec.costs.model_costs import elements
from tests.support.profiled_plans import SHAPE


def test_choices_that_do_not_spread_evenly_are_as_many_as_they_are_on_devices_with_all_experts():
    model = {**{k: str(v) for k, v in SHAPE.items()}, "sequence": "10", "experts": "4", "chosen": "3"}
    found = read(Asked("predict", "dp(2)", model=model))
    (sent,) = {v for v in found.layer.program.lies if v.name == "sent"}
    where = found.layer.program.lies[sent]
    assert elements(sent, where, found.indices, found.mesh) == 10 * 3 * 64
    assert "choices of" not in " ".join(said(found).facts)


def test_a_devices_experts_have_one_more_choice_each_where_these_do_not_spread_evenly():
    model = {**{k: str(v) for k, v in SHAPE.items()}, "sequence": "10", "experts": "4", "chosen": "3"}
    found = read(Asked("predict", "ep(2)", model=model))
    there, back = (t.elements for t in found.layer.traffic if t.phase == "forward" and t.elements)
    # of each device's 30 choices experts have 8, 8, 7 and 7; of both together 15 each
    assert (there, back) == ((30 - 14) * 64, (2 * 15 - 14) * 64)
    assert "30 choices of 4 experts on each device" in " ".join(said(found).facts)
    run = measured(replace(found, model=replace(found.transformer, vocabulary=8)), Run())
    assert run.divergence is None
    assert not run.unequal
