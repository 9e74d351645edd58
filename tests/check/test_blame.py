"""The line that `psem check` names: the one by which a schedule differs from a right one."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from proofs.registry import ROOT
from psem_model.check.edits import How, edits
from psem_model.check.files import NOT_ONE_LINE, TOO_EARLY, check_file
from psem_model.reading.schedules import dumps
from psem_model.reading.toml_lines import locate
from spec.language.schedule import Kind
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES
from tests.support.bugs import BUGS, FRESH, KEPT_ASIDE, F, M, changed, removed, right
from tests.support.examples import few, slow_but

# lines that are not named, each with what is named in its place, and why
MISSED = {
    "micro-steps are not averaged": "all_reduce: a factor can be put in anywhere, once in finish",
    "backward runs on the device's own samples": "all_reduce: it may sum what backward does not have",
}
EVERY = BUGS | KEPT_ASIDE | FRESH
IN_TEN = Fraction(9, 10)


# -------------------------------------------------------------------- the lines
def of_file(path, devices=None, micro_steps=None):
    """What is found of a schedule's file."""
    (found,) = check_file(str(path), devices, micro_steps, MIXED_ADAM).groups
    return found


def checked(bug, folder):
    """What is found of a bug's file, and the lines that may be named."""
    name, edit = bug
    wrong, expected = edit(right(name))
    path = folder / "my.toml"
    path.write_text(dumps(wrong, name))
    return of_file(path), expected


def at(line):
    """Where a line stands."""
    return line and (line.part, line.index)


@pytest.mark.parametrize("what", slow_but(few(BUGS), EVERY))
def test_the_line_is_named_by_which_a_schedule_differs_from_a_right_one(what, tmp_path):
    found, expected = checked(EVERY[what], tmp_path)
    assert not found.verdict.accepted
    assert found.repair
    if what in MISSED:
        assert at(found.wrong) not in expected
        assert MISSED[what].startswith(found.wrong.op.kind.value)
    else:
        assert at(found.wrong) in expected
        number = locate((tmp_path / "my.toml").read_text(), ("step", *at(found.wrong)))
        assert found.line == number


@pytest.mark.parametrize("bugs", [BUGS, KEPT_ASIDE, FRESH])
def test_the_line_is_named_in_nine_of_ten(bugs):
    assert len(BUGS) >= 45
    assert len(KEPT_ASIDE) >= 20
    assert len(FRESH) >= 30
    assert Fraction(len(bugs.keys() - MISSED.keys()), len(bugs)) >= IN_TEN


REPAIRS = {
    "gradients are summed twice": "accepted without it (line 25 does the same)",
    "a mean where the loss is a sum": "accepted without mean",
    "ZeRO-1 reduces the next slice": "accepted without shift",
    "ZeRO-1 gathers before it updates": "accepted if it is after line 27",
    "ZeRO-1 gathers nothing": "nothing gathers the parameters over batch after it; accepted with "
    '{ op = "all_gather", source = "parameters", axes = ["batch"] } after line 26',
    "clipped by each slice's own norm": "nothing sums the norm over batch before it; accepted with "
    '{ op = "all_reduce", source = "norm", axes = ["batch"] } after line 29',
    "gathered along the replicas": 'accepted with axes = ["shard"]',
    "divided by the last micro-step's tokens": 'accepted with by = "total tokens"',
    "the first device's gradients for all": 'accepted with op = "all_reduce"',
    "the updated view is not kept": "nothing keeps the slices of the optimizer view after it; accepted "
    'with { op = "keep", source = "optimizer view", into = "optimizer" } after line 27',
    "each micro-step's gradient is divided": "accepted if it is after line 31, with source = "
    '"gradients" and with by = "total tokens"',
    "each micro-step's slice is clipped": "accepted if it and the 2 lines before it are before line "
    '32, with source = "gradients"',
}


@pytest.mark.parametrize("what", few(REPAIRS))
def test_a_repair_is_said_as_in_a_review(what, tmp_path):
    assert checked(EVERY[what], tmp_path)[0].repair == REPAIRS[what]


@pytest.mark.parametrize("what", ["ZeRO-2 reduces nothing", "tokens are not summed"])
@pytest.mark.parametrize("micro_steps", [9, 1000])
def test_the_line_is_named_with_many_micro_steps(what, micro_steps, tmp_path):
    name, edit = EVERY[what]
    wrong, expected = edit(right(name))
    path = tmp_path / "my.toml"
    path.write_text(dumps(wrong, name))
    assert at(of_file(path, micro_steps=micro_steps).wrong) in expected


def test_the_line_is_named_with_many_axes(tmp_path):
    axes, zero2 = tuple("abcdef"), right("zero2")

    def along(op):
        return replace(op, axes=axes if op.axes else (), within=axes if op.within else ())

    rests = tuple((s, replace(r, sharded=axes if r.sharded else ())) for s, r in zero2.rests)
    step, finish = (tuple(map(along, part)) for part in zero2.bodies)
    many = replace(zero2, axes=axes, rests=rests, micro_step=step, finish=finish)
    wrong, expected = changed(F, 1, axes=axes[1:])(many)
    path = tmp_path / "my.toml"
    path.write_text(dumps(wrong, "my"))
    found = of_file(path, lambda axes: dict.fromkeys(axes, 2))
    assert at(found.wrong) in expected


def test_of_a_file_that_is_too_long_no_repair_is_looked_for(tmp_path):
    zero3, _ = removed(F, 0)(right("zero3"))
    path = tmp_path / "my.toml"
    path.write_text(dumps(replace(zero3, micro_step=zero3.micro_step * 7), "my"))
    found = of_file(path)
    assert (found.repair, found.repaired) == ("not looked for: more than 60 lines", None)


def test_a_schedule_that_is_accepted_has_no_repair_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("psem_model.check.files.trace", None)
    path = tmp_path / "my.toml"
    path.write_text(dumps(right("zero3"), "zero3"))
    assert of_file(path).verdict.accepted


def test_of_several_wrong_lines_the_first_is_named_after_which_no_continuation_is_right(tmp_path):
    def twice(schedule):
        return removed(M, 2)(removed(F, 1)(schedule)[0])

    found, _ = checked(("zero2", twice), tmp_path)
    assert (found.wrong.op.kind, found.repair) == (Kind.ACCUMULATE, NOT_ONE_LINE)
    path = ROOT / "examples" / "token_mean_local_counts.toml"
    found = of_file(path)
    first = next(line for line in path.read_text().splitlines() if line.endswith("  # wrong"))
    assert first == path.read_text().splitlines()[found.wrong.number - 1]


ENDS = {  # what is cut off or left out at the end, and the lines with which it is accepted
    "dp": ((1, 2), "update reset"),
    "zero1": ((2, 3), "all_gather reset"),
    "zero2": ((0, 2), "update all_gather reset"),
    "zero3": ((0, 1), "update reset"),
}


def test_a_gather_that_is_missing_is_put_back_and_forward_is_not_moved_to_another(tmp_path):
    found, _ = checked(("zero3", removed(M, 0)), tmp_path)
    assert found.wrong.op.kind is Kind.FORWARD
    assert found.repair.startswith("nothing gathers the parameters over batch before it")


@pytest.mark.parametrize("name", ENDS)
def test_of_a_step_that_ends_too_early_no_line_is_named_and_its_end_is_shown(name, tmp_path):
    (first, last), kinds = ENDS[name]
    found, _ = checked((name, lambda s: removed(F, first)(removed(F, last)(s)[0])), tmp_path)
    assert (found.wrong, found.repair.startswith(TOO_EARLY)) == (None, True)
    assert (found.line, found.said()) == (None, "rejected: at the end of the step")
    lines = re.findall(r"{ .*? }", found.repair)
    assert [re.search('op = "(.*?)"', line)[1] for line in lines] == kinds.split()
    path = tmp_path / "my.toml"
    begun = path.read_text().removesuffix("]\n")
    path.write_text(f"{begun}{','.join(lines)}]\n")
    assert of_file(path).verdict.accepted


def test_where_that_is_not_known_the_line_is_named_whose_need_is_not_met(tmp_path):
    def twice(schedule):
        return removed(M, 2)(removed(F, 1)(schedule)[0])

    found, _ = checked(("zero-offload", twice), tmp_path)
    assert (found.repair, found.repaired, found.wrong) == ("", None, found.unmet)


def test_of_what_diverges_one_micro_step_on_several_devices_is_shown_first(tmp_path):
    path = str(ROOT / "examples" / "token_mean_local_counts.toml")
    found = of_file(path)
    assert found.failed.json() == {"mesh": {"batch": 2}, "micro_steps": 1}
    assert found.run.case == found.failed


@pytest.mark.parametrize("name", STRATEGIES)
def test_an_edit_makes_another_schedule(name):
    made = list(edits(right(name)))
    assert {edit.how for edit in made} == {*How}
    assert all(edit.schedule != right(name) for edit in made)
