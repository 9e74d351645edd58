"""T4: accepted if and only if every run matches. No part of what it supposes may be otherwise."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from proofs.checking.beside import Beside
from proofs.checking.halves import Halves
from proofs.checking.lines import UPDATE
from proofs.checking.operation_lines import NORM, NotCovered
from proofs.checking.representation import Represented
from proofs.checking.witnesses import broken_schedules, meant, operation
from proofs.trusted.kernel import Kernel
from proofs.trusted.terms import KernelError, symbols
from proofs.trusted.theorem import read
from spec.checking.verdict import check
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Span
from spec.meaning.reference import first_divergence
from spec.models.states import MIXED_ADAM
from spec.plans.strategies import STRATEGIES
from tests.support.broken import notices
from tests.support.examples import few
from tests.support.forked import RUNS
from tests.support.fragment import Replayed, wrong_and_known
from tests.support.line_runs import CLIPS, PLAIN_PIECES
from tests.support.schedules import PIECES

# what the claim finds of the schedules that it runs, whatever it then proves of verdicts
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
        "what is first is passed on only where a copy was unequal before",
        "rejected.py",
        "return Not(self.unequal_copy.holds)",
        "return self.unequal_copy.holds",
    ),
    (
        "a copy that was unequal before may be one of later",
        "accepted.py",
        "before = (l.u, l.b, l.d, l.s, l.j), And(l.ends(l.u) <= l.t, said)",
        "before = (l.u, l.b, l.d, l.s, l.j), And(l.ends(l.u) >= l.t, said)",
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
        "reads = And(self.runs_all, *self._computes(), Or(*others))",
        "reads = And(self.runs_all, *self.on_a_device, Or(*others))",
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
        "l.is_device(on), l.step(line) == l.step(t), is_a_weight),",
        "l.is_device(on), is_a_weight),",
    ),
    (
        "an update is clipped by another norm",
        "kept.py",
        "        made = (self.off_line, self.norm_line), (self.off_device, self.norm_on)\n",
        "        made = (self.off_line, self.norm_line), (self.off_device, l.d)\n",
    ),
    (
        "an update that is clipped by a wrong norm is passed on nowhere",
        "rejected.py",
        "            *self._is_copied(line, on, element),\n",
        "",
    ),
    (
        "a norm of another step clips",
        "kept.py",
        "[l.reads_norm, l.step(t) == l.step(self.norm_line), substitute(read, *made)]",
        "[l.reads_norm, substitute(read, *made)]",
    ),
    (
        "a moment is current where it is the weight",
        "halves.py",
        "            return self.current[what](u)[l.j]\n",
        "            return self.current[WEIGHT](u)[l.j]\n",
    ),
    (
        "an update of another step leaves what is current next",
        "halves.py",
        "l.kind(t) == UPDATE, l.step(t) == u),",
        "l.kind(t) == UPDATE),",
    ),
    (
        "an update of what is not known leaves it",
        "halves.py",
        "*(l.is_device(d), Not(l.is_lost(t, d, j))),",
        "l.is_device(d),",
    ),
    (
        "what is current next may be anything",
        "halves.py",
        "self.halves = self.not_whole, self.not_fresh, self.disagree, self.no_progress",
        "self.halves = self.not_whole, self.not_fresh, self.disagree",
    ),
    (
        "copies need not agree",
        "halves.py",
        "self.halves = self.not_whole, self.not_fresh, self.disagree, self.no_progress",
        "self.halves = self.not_whole, self.not_fresh, self.no_progress",
    ),
    (
        "what is read may be stale",
        "halves.py",
        "self.halves = self.not_whole, self.not_fresh, self.disagree, self.no_progress",
        "self.halves = self.not_whole, self.disagree, self.no_progress",
    ),
    (
        "what is applied need not be whole",
        "halves.py",
        "self.halves = self.not_whole, self.not_fresh, self.disagree, self.no_progress",
        "self.halves = self.not_fresh, self.disagree, self.no_progress",
    ),
    (
        "a step may begin before the one before it has ended",
        "halves.py",
        "Implies(And(u > 0, self.step_ends(u)), self.step_ends(u - 1)),",
        "Implies(And(u > 1, self.step_ends(u)), self.step_ends(u - 1)),",
    ),
    (
        "the single device's norm is of one weight",
        "norm_symbols.py",
        "return self.norm(u, self.of_wholes(u, self.all_weights))",
        "return self.norm(u, self.of_whole(u, self.elements))",
    ),
    (
        "a norm leaves a weight out",
        "norm_symbols.py",
        "self.of_groups(t, d, self.all_weights))",
        "self.of_groups(t, d, self.all_weights - 1))",
    ),
    (
        "a norm finds all weights in one place",
        "norm_symbols.py",
        "read = self.has(t, self.normed(t),",
        "read = self.has(t, self.source(t),",
    ),
    (
        "a weight that is not in the norm is wrong in it",
        "accepted.py",
        "l.normed(t), owner, l.is_a_weight),",
        "l.normed(t), owner, TRUE),",
    ),
    (
        "a weight that is not in the norm is passed on by it",
        "rejected.py",
        "l.step(line) == l.step(t), is_a_weight),",
        "l.step(line) == l.step(t)),",
    ),
    (
        "a norm in the made run counts one weight",
        "exactness.py",
        "self.l.of_wholes(u, self.l.all_weights)",
        "self.l.of_whole(u, self.l.elements)",
    ),
    (
        "what is current of a weight is in another's copy",
        "halves.py",
        "And(self.whose_copy(copy) == l.weight, Or(whole, slices))",
        "Or(whole, slices)",
    ),
    (
        "an update of another weight leaves what is current next",
        "halves.py",
        "*(l.target(t) != l.second(t), l.weight == self.whose_line(t)),",
        "l.target(t) != l.second(t),",
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
def test_no_part_of_the_theorem_may_be_otherwise(wrong, file, rule, broken):
    claim = "proofs.checking.necessary_and_sufficient", "what_is_accepted_matches"
    assert notices(*claim, file, rule, broken, folder="proofs", without=RUNS), wrong


@pytest.mark.parametrize("piece", few(PLAIN_PIECES))
def test_named_strategies_compute_nothing_wrong_that_is_known(piece):
    """They are of the fragment, owners' updates of slices too: nothing is to be passed on."""
    for placement, clips in product(STRATEGIES.values(), CLIPS):
        schedule = schedule_of(placement)
        if schedule.finish:
            made = clips(PIECES[piece](schedule))
            run = Beside(made, dict.fromkeys(schedule.axes, 3), 2, MIXED_ADAM, 2)
            assert all(run.equal) and not wrong_and_known(run), (placement, piece)
            assert updates_everything(run), (placement, piece)


def updates_everything(beside):
    """Whether in each step some update of each element is computed: the halves suppose it."""
    run, updates = beside.run, {step: [] for step in range(len(beside.equal))}
    for number, line in enumerate(beside.places.lines):
        if line.kind == UPDATE.name and line.target != line.second:
            updates[line.step].append(number)
    return all(
        any(not run.lost[number, firsts, places] for number in each for places in run.there_are(firsts))
        for each, firsts in product(updates.values(), run.firsts)
    )


def test_of_t3s_broken_schedules_whose_copies_are_known_most_are_of_the_fragment():
    """The halves suppose more, of one that updates nothing. One keeps no weights: it is no case."""
    covered, known, outside, idle = 0, 0, [], []
    for broken in broken_schedules():
        try:
            run = Replayed(broken.schedule, broken.micro_steps)
        except NotCovered:
            continue
        covered += 1
        if run.keeps_what_is_known:
            known += 1
            outside += [] if run.passes_it_on else [broken.name]
            idle += [] if updates_everything(run.beside) else [broken.name]
    assert (len(broken_schedules()), covered, known) == (49, 41, 20)
    assert outside == ["each_micro_step_updates"] and idle == ["nothing_is_updated"]


def of_own_slices():
    """Each device clips its slices by their own norm."""
    clip = clipped(meant(schedule_of(STRATEGIES["zero3"]), clip=True))
    return replace(clip, finish=tuple(op for op in clip.finish if op.kind is not Kind.ALL_REDUCE))


def of_own_samples():
    """Each device clips the sum by the norm of its own term."""
    dp = schedule_of(STRATEGIES["dp"])
    square = operation(Kind.SQUARE_NORM, Buffer.GRADIENTS, Buffer.NORM)
    clip = operation(Kind.CLIP, Buffer.GRADIENTS, by=Buffer.NORM)
    reduced, *rest = dp.finish
    return replace(meant(dp, clip=True), finish=(square, reduced, clip, *rest))


def of_a_multiple(times=Fraction(2)):
    """The norm is of twice the gradient that it clips, or of another multiple."""
    dp = schedule_of(STRATEGIES["dp"])
    double, half = (operation(Kind.SCALE, Buffer.GRADIENTS, by=Monomial(n)) for n in (times, 1 / times))
    square = operation(Kind.SQUARE_NORM, Buffer.GRADIENTS, Buffer.NORM)
    clip = operation(Kind.CLIP, Buffer.GRADIENTS, by=Buffer.NORM)
    reduced, *rest = dp.finish
    return replace(meant(dp, clip=True), finish=(reduced, double, square, half, clip, *rest))


@pytest.mark.parametrize("made", [of_own_slices, of_own_samples, of_a_multiple])
def test_a_wrong_norm_that_clips_is_of_the_fragment_and_its_run_diverges(made):
    schedule = made()
    run = Replayed(schedule, 2)
    assert run.lines[run.first].kind == NORM and not any(run.beside.equal)
    assert run.is_of_the_fragment
    assert first_divergence(schedule, dict.fromkeys(schedule.axes, 3), steps=1, micro_steps=2)


def test_a_norm_of_squares_does_not_show_a_turned_sign():
    """It is accepted, and its run matches; to T4, whose norms are any functions, it is wrong."""
    schedule = of_a_multiple(Fraction(-1))
    mesh = dict.fromkeys(schedule.axes, 3)
    assert check(schedule, mesh, 2).accepted
    assert not first_divergence(schedule, mesh, micro_steps=2)
    with pytest.raises(KernelError, match="makes nothing wrong"):
        Replayed(schedule, 2)


def test_a_slice_whose_sign_is_turned_is_rejected_though_runs_whose_norm_is_of_squares_match():
    """It is of the fragment: the run of T4 that does not match has another norm."""
    dp, gradients, fresh = schedule_of(STRATEGIES["dp"]), Buffer.GRADIENTS, Buffer.FRESH
    reduced, *rest = dp.finish
    add = operation(Kind.ACCUMULATE, fresh, gradients)
    finish = (
        operation(Kind.ZERO, fresh, span=Span.UNIT),
        operation(Kind.KEEP, gradients, fresh, within=dp.axes, span=Span.UNIT),
        *(operation(Kind.SCALE, fresh, by=Monomial(Fraction(-2))), add),
        operation(Kind.SQUARE_NORM, gradients, Buffer.NORM),
        *(operation(Kind.SCALE, fresh, by=Monomial(Fraction(-1))), add),
        operation(Kind.RELEASE, fresh),
        operation(Kind.CLIP, gradients, by=Buffer.NORM),
    )
    schedule = replace(meant(dp, clip=True), finish=(reduced, *finish, *rest))
    mesh, run = dict.fromkeys(dp.axes, 3), Replayed(schedule, 2)
    assert run.lines[run.first].kind == NORM and run.passes_it_on and updates_everything(run.beside)
    assert all(known for known, _ in run.ends) and not any(run.beside.equal)
    assert not check(schedule, mesh, 2).accepted
    assert not first_divergence(schedule, mesh, micro_steps=2)


@pytest.mark.slow
def test_the_halves_are_of_the_run_alone():
    """What a run lacks is said without a single device, but for what both begin with."""
    language = Represented(Kernel("halves"))
    language.follows()
    checker = Halves(language)
    norms = [part for sums in (checker.of_own, checker.of_owns) for part in (sums.start, sums.next)]
    said = [each.shown for each in checker.halves], norms
    names = {
        symbol.name for facts in said for fact in facts for symbol in symbols(read(fact).statement)
    }
    assert {
        "current",
        "current_moments",
        "has",
        "parts_of_its_own_norm",
        "weights_in_its_own_norm",
    } <= names
    assert names.isdisjoint(
        {"theta", "omega", "parts_of_the_single_norm", "weights_in_the_single_norm", "does_not_match"}
    )
