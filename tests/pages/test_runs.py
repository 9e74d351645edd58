"""Runs that go wrong: the first wrong value is where the verdict says."""

from fractions import Fraction
from functools import cache

from psem_model.check.schedules import check_schedule
from psem_model.pages.runs import of_examples, played
from psem_model.reading.schedules import read
from psem_model.text.places import EXAMPLES
from spec.models.states import MIXED_ADAM

found = cache(of_examples)


@cache
def checked(name):
    return check_schedule(read(str(EXAMPLES / f"{name}.toml")), {}, MIXED_ADAM)


def test_every_rejected_example_with_a_run_is_there():
    assert len(found()) > 20
    assert {"token_mean_local_counts", "unsafe_wrong_group"} <= {run.id for run in found()}


def test_the_first_wrong_value_is_at_the_line_that_the_verdict_names():
    for run in found():
        (first,) = [moment for moment in run.moments if moment.first_wrong]
        op = checked(run.id).verdict.op
        assert first.line == (" ".join(str(op).split()) if op else "what is kept"), run.id


def test_nothing_before_it_is_wrong_and_something_there_is():
    for run in found():
        marks = [any(cell.should for cell in moment.cells) for moment in run.moments]
        firsts = [moment.first_wrong for moment in run.moments]
        assert marks.index(True) == firsts.index(True), run.id


def test_it_ends_with_the_divergence_that_the_check_shows():
    for run in found():
        ends = checked(run.id).run.divergence
        rows = [m for m in run.moments if m.line == "what is kept" and m.buffer == ends.state]
        devices = [*run.devices]
        cell = rows[-1].cells[devices.index(f"({', '.join(map(str, ends.place.device))})")]
        assert cell.should.endswith(str(ends.single)), run.id
        if isinstance(ends.has, int | Fraction):
            assert (cell.exact or cell.text) == str(ends.has), run.id


def test_each_line_has_a_value_of_each_device():
    for run in found():
        assert all(len(moment.cells) == len(run.devices) for moment in run.moments), run.id


def test_what_is_shown_of_a_copy_of_another_size_is_its_own():
    run = next(run for run in found() if run.id == "mean_twice")
    again = checked(run.id)
    assert played("again", "again", again, again.run).moments == run.moments
