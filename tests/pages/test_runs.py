"""Runs that go wrong: the first wrong value is where the verdict says."""

from fractions import Fraction

import pytest

from psem_model.check.schedules import check_schedule
from psem_model.pages.runs import of_examples, played
from psem_model.reading.schedules import read
from psem_model.text.places import EXAMPLES
from spec.models.states import MIXED_ADAM

FOUND = of_examples()


def checked(run):
    return check_schedule(read(str(EXAMPLES / f"{run.id}.toml")), {}, MIXED_ADAM)


def test_every_rejected_example_with_a_run_is_there():
    assert len(FOUND) > 20
    assert {"token_mean_local_counts", "unsafe_wrong_group"} <= {run.id for run in FOUND}


@pytest.mark.parametrize("run", FOUND, ids=lambda run: run.id)
class TestRun:
    def test_the_first_wrong_value_is_at_the_line_that_the_verdict_names(self, run):
        (first,) = [moment for moment in run.moments if moment.first_wrong]
        op = checked(run).verdict.op
        assert first.line == (" ".join(str(op).split()) if op else "what is kept")

    def test_nothing_before_it_is_wrong_and_something_there_is(self, run):
        marks = [any(cell.should for cell in moment.cells) for moment in run.moments]
        assert marks.index(True) == [moment.first_wrong for moment in run.moments].index(True)

    def test_it_ends_with_the_divergence_that_the_check_shows(self, run):
        found = checked(run).run.divergence
        rows = [m for m in run.moments if m.line == "what is kept" and m.buffer == found.state]
        devices = [*run.devices]
        cell = rows[-1].cells[devices.index(f"({', '.join(map(str, found.place.device))})")]
        assert cell.should.endswith(str(found.single))
        if isinstance(found.has, int | Fraction):
            assert (cell.exact or cell.text) == str(found.has)

    def test_each_line_has_a_value_of_each_device(self, run):
        assert all(len(moment.cells) == len(run.devices) for moment in run.moments)


def test_what_is_shown_of_a_copy_of_another_size_is_its_own():
    run = next(run for run in FOUND if run.id == "mean_twice")
    found = checked(run)
    assert played("again", "again", found, found.run).moments == run.moments
