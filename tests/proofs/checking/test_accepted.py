"""T4: accepted if and only if every run matches. No part of what it supposes may be otherwise."""

from itertools import product

import pytest

from proofs.checking.beside import Beside
from spec.derivation.schedules import schedule_of
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES
from tests.support.broken import broken_copy, notices
from tests.support.line_runs import CLIPS, PLAIN_PIECES
from tests.support.schedules import PIECES

# what the claim finds of the schedules that it runs, whatever it then proves of verdicts
RUNS = ("require_judged", "require_repetition", "require_needs", "require_axes_apart")
MUTANTS = [
    # (what is wrong, file of proofs/, the rule, the broken rule)
    (
        "what is accepted may keep anything",
        "every_line.py",
        "return [*step, *self.verdict, *copy(start, at.holds)]",
        "return [*step, *(Not(each) for each in self.verdict), *copy(start, at.holds)]",
    ),
    (
        "what is rejected may compare equal",
        "accepted.py",
        "And(self.is_kept(what), Not(self.copy_equals(what)))",
        "self.is_kept(what)",
    ),
    (
        "what is rejected is so after the steps that are run",
        "accepted.py",
        "said = And(l.u <= self.settled, *self.on_a_device, *self._is_a_value(), unequal)",
        "said = And(*self.on_a_device, *self._is_a_value(), unequal)",
    ),
    (
        "a line that is not right may compare equal",
        "accepted.py",
        "return And(l.kind(t) == of.kind, of.reads, Not(equal), known)",
        "return And(l.kind(t) == of.kind, of.reads, known)",
    ),
    (
        "a line that is not right may read what is not known",
        "accepted.py",
        "return And(l.kind(t) == of.kind, of.reads, Not(equal), known)",
        "return And(l.kind(t) == of.kind, of.reads, Not(equal))",
    ),
    (
        "what is lost lacks integrity",
        "accepted.py",
        "lacks = And(self.runs_all, *self._computes(), Or(*differs))",
        "lacks = And(self.runs_all, *self.on_a_device, Or(*differs))",
    ),
    (
        "lines that are not run may be the first",
        "rejected.py",
        "self.in_run,\n            self._is_first,",
        "And(self.in_run, self.l.t < self.settled),\n            self._is_first,",
    ),
    (
        "the first may be made of what is wrong",
        "rejected.py",
        "*(self.runs_all, *self._is_a_value(), *self._computes(), self.all_equal(l.j, t)),",
        "*(self.runs_all, *self._is_a_value(), *self._computes()),",
    ),
    (
        "what is unequal first is passed on nowhere",
        "rejected.py",
        "            substitute(passed, *at, (self.off_line, line), (self.off_device, on)),\n",
        "",
    ),
    (
        "another device's update is passed on",
        "rejected.py",
        "(self.off_line, line), (self.off_device, on)),",
        "(self.off_line, line)),",
    ),
    (
        "the update of another step applies a wrong view",
        "rejected.py",
        "l.is_device(on), l.step(line) == l.step(t)),",
        "l.is_device(on)),",
    ),
    (
        "every run is the run of one value",
        "closing.py",
        "return self.kernel.suppose(name, [*free, *variables], formula)",
        "return self.kernel.suppose(name, [*variables], formula)",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_no_part_of_the_theorem_may_be_otherwise(tmp_path, wrong, file, rule, broken):
    where = broken_copy(tmp_path, file, rule, broken, folder="proofs")
    claim = "proofs.checking.necessary_and_sufficient", "what_is_accepted_matches"
    assert notices(where, *claim, without=RUNS), wrong


def wrong_and_known(run):
    """The lines that compute something known of what compares unequal."""
    at = run.run
    lost = {number for (number, *_), is_lost in at.lost.items() if is_lost}
    alone = {number for (number,) in (key for key in at.met if len(key) == 1)}
    found = {number for number in alone if not at.met[number,] and number not in lost}
    for number, firsts, places in (key for key in at.met if len(key) == 3):
        there = places in [*at.there_are(firsts)]
        if there and not at.met[number, firsts, places] and not at.lost[number, firsts, places]:
            found.add(number)
    return found


@pytest.mark.parametrize("piece", PLAIN_PIECES)
def test_named_strategies_compute_nothing_wrong_that_is_known(piece):
    """They are of the fragment, owners' updates of slices too: nothing is to be passed on."""
    for placement, clips in product(STRATEGIES.values(), CLIPS):
        schedule = schedule_of(placement)
        if schedule.finish:
            made = clips(PIECES[piece](schedule))
            run = Beside(made, dict.fromkeys(schedule.axes, 3), 2, MIXED_ADAM, 2)
            assert all(run.equal) and not wrong_and_known(run), (placement, piece)
