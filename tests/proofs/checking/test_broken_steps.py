"""T4: no part of what it supposes of steps, or says of their lines, may be otherwise."""

import pytest

from tests.support.broken import notices
from tests.support.forked import RUNS

MUTANTS = [
    # (what is wrong, file of proofs/, the rule, the broken rule)
    (
        "a step leaves the forms that it found, no step later",
        "steps_alike.py",
        "found = self.so_before(lambda s: self.form(begin, s), IntVal(1), self.length)",
        "found = self.so_before(lambda s: self.form(begin, s), IntVal(0), IntVal(0))",
    ),
    (
        "a value that no step before had is anywhere",
        "steps_alike.py",
        "time >= self.back, which >= 0",
        "which >= 0",
    ),
    (
        "steps have lines of different kinds",
        "steps_alike.py",
        "of_line = l.kind, l.target,",
        "of_line = l.target,",
    ),
    (
        "steps scale by different factors",
        "steps_alike.py",
        "l.factor, l.micro, l.mesh.axis",
        "l.micro, l.mesh.axis",
    ),
    (
        "lines of later steps are along other axes",
        "steps_alike.py",
        "l.factor, l.micro, l.mesh.axis, *l.sources",
        "l.factor, l.micro, *l.sources",
    ),
    (
        "what is right in a step is not in a later one",
        "micro_steps_alike.py",
        "            l.right(here) == l.right(there),\n",
        "",
    ),
    (
        "what was computed wrong has the time of a step, not of a line",
        "steps_alike.py",
        "self.back = If(wrong, lines, steps)",
        "self.back = If(wrong, steps, steps)",
    ),
    (
        "the first line is not compared",
        "all_steps.py",
        "early = t < self.begins(self.settled) + self.length if by_line",
        "early = And(t >= 1, t < self.begins(self.settled) + self.length) if by_line",
    ),
    (
        "copies are compared before the step",
        "all_steps.py",
        "else u <= self.settled",
        "else u < self.settled",
    ),
    (
        "what the step that repeats compares says nothing of later ones",
        "all_steps.py",
        "[asked[self.half_of(read)].at(**then), *facts,",
        "[*facts,",
    ),
    (
        "the second of two micro-steps is not compared",
        "micro_steps_alike.py",
        "self.turn(t) > self.few + 1)",
        "self.turn(t) > self.few)",
    ),
    (
        "micro-steps have lines of different kinds",
        "micro_steps_alike.py",
        "of_line = l.kind, l.target,",
        "of_line = l.target,",
    ),
    (
        "micro-steps scale by different factors",
        "micro_steps_alike.py",
        "l.target, l.factor, l.mesh.axis",
        "l.target, l.mesh.axis",
    ),
    (
        "every micro-step contributes as the first",
        "micro_steps_alike.py",
        "own + (m - self.few)",
        "own",
    ),
    (
        "a first contribution has one before it",
        "micro_steps_alike.py",
        "which < few, Not(first))",
        "which < few)",
    ),
    (
        "what a micro-step adds is the same, of no micro-step later",
        "micro_steps_alike.py",
        "substitute(self.grown(self.form, few + 1), (self.h, IntVal(0)))",
        "self.form(self.opens(l.u, few + 2), l.s) == self.form(self.opens(l.u, few + 1), l.s)",
    ),
    (
        "a contribution may be made before its micro-step",
        "few_contributions.py",
        "inside = And(opens(step, m) <= t, Or(",
        "inside = And(Or(",
    ),
    (
        "a contribution may be made after its micro-step",
        "few_contributions.py",
        "Or(t < opens(step, m + 1), m == self.turns - 1)",
        "m < self.turns",
    ),
    (
        "of the first few contributions one is compared",
        "few_contributions.py",
        "n + few + 1 < self.turns, n > few]",
        "n + few + 1 < self.turns, n > 0]",
    ),
    (
        "the last few contributions are not compared",
        "few_contributions.py",
        "n + few + 1 < self.turns, n > few]",
        "n < self.turns, n > few]",
    ),
    (
        "contributions stand for each other while micro-steps are run",
        "few_contributions.py",
        "self.is_inner(s), self.opens(self.l.time(s), self.turns) <= t)",
        "self.is_inner(s), t >= 0)",
    ),
    (
        "an optimizer whose moment is right tells no gradients apart",
        "single_runs.py",
        "for place in (target, moments))\n    single",
        "for place in (target, target))\n    single",
    ),
    (
        "whatever optimizer tells gradients apart",
        "single_runs.py",
        "Implies(And(is_injective, *same), one == other)",
        "Implies(And(is_injective, *same), one == one)",
    ),
    (
        "an update may read any norm",
        "single_runs.py",
        "for n, p, _, reads in c.numbers_read())",
        'for n, p, _, reads in c.numbers_read() if n != "norm")',
    ),
    (
        "an update may read any weight",
        "single_runs.py",
        "facts += [right.at(**at), always.at(b=place)]",
        "facts += [right.at(**at), always.at(b=place)] if reads is not None else []",
    ),
    (
        "an update may be of any line",
        "single_runs.py",
        "*c.line, l.kind(t) == UPDATE, target != moments,",
        "*c.line, target != moments,",
    ),
    (
        "an update may leave its weight and its moment in one place",
        "single_runs.py",
        "l.kind(t) == UPDATE, target != moments,",
        "l.kind(t) == UPDATE,",
    ),
    (
        "gradient descent of rate 0 matches only if every contribution comes in once",
        "all_steps.py",
        "training.sgd(start, of, 1)",
        "training.sgd(start, of, 0)",
    ),
    (
        "what is added has not to settle for each micro-step to add the same",
        "micro_steps.py",
        "[n >= early, n >= few]",
        "[n >= early]",
    ),
    (
        "micro-steps need not add alike",
        "micro_steps.py",
        "later_value(adds(m)) == adds(m + 1)",
        "later_value(adds(m)) == adds(m)",
    ),
    (
        "what an earlier micro-step added is moved as often as what the last one did",
        "micro_steps.py",
        "plus(before(m), later(m - n, n))",
        "plus(before(m), later(m, n))",
    ),
    (
        "what micro-steps add never settles",
        "micro_steps.py",
        "later(m, few + 1) == later(m, few)",
        "later(m, few) == later(m, few)",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_steps_that_are_not_alike_decide_nothing(wrong, file, rule, broken):
    changed = file, rule, broken
    if file == "micro_steps.py":  # a part of the claim
        part = "proofs.checking.micro_steps", "any_number_of_micro_steps"
        assert notices(*part, *changed, folder="proofs"), wrong
    else:
        whole = "proofs.checking.necessary_and_sufficient", "what_is_accepted_matches"
        assert notices(*whole, *changed, folder="proofs", without=RUNS), wrong
