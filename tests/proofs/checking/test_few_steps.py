"""T5: what it supposes is so of runs, and no part of it may be otherwise."""

from copy import deepcopy
from dataclasses import replace
from itertools import product

import pytest

from proofs.checking.later_steps import LaterSteps
from proofs.checking.norms import NormedLanguage
from proofs.plans.listing import listing
from proofs.trusted.kernel import Kernel
from spec.derivation.derive import derive
from spec.plans.strategies import STRATEGIES
from tests.support.amount_runs import WRONG, AmountRun
from tests.support.broken import broken_copy, notices
from tests.support.examples import slow_but
from tests.support.mesh_values import LinesOfARun

STEPS, MICRO_STEPS, SETTLED = 4, 2, 1
ALIKE = {"Weight": "weight", "Moment": "moment"}


class RepeatedRun(LinesOfARun):
    """A listed schedule's run over some steps: amounts before each line, on the devices of one axis."""

    def __init__(self, name, devices):
        super().__init__(devices)
        schedule = derive(STRATEGIES[name])
        listed = listing(schedule)
        starts = {p: of.replace("_slices", "s") for p, of in listed.starts.items() if "Zero" not in of}
        run = AmountRun(schedule.axes, dict.fromkeys(schedule.axes, devices), starts, False)
        for place, of in listed.starts.items():
            if "Zero" in of:
                run.amounts[place] = {at: {} for at in run.each}
                run.unknowns[place] = dict.fromkeys(run.each, 0)
            if "slices" in of:
                run.unknowns[place] = {(o, d): int(o != d) for o, d in run.each}
        body, finish = listed.lines[: listed.body], listed.lines[listed.body :]
        self.lines = [
            replace(line, step=u, micro_step=m)
            for u in range(STEPS)
            for m, lines in [*((m, body) for m in range(MICRO_STEPS)), (MICRO_STEPS - 1, finish)]
            for line in lines
        ]
        self.before = []
        for number, line in enumerate(self.lines):
            self.before.append(deepcopy((run.amounts, run.unknowns)))
            run.run(number, line, MICRO_STEPS)
        self.before.append((run.amounts, run.unknowns))
        self.length = len(self.lines) // STEPS
        self.names = [
            *((what, u, 0) for what in ALIKE for u in range(STEPS + 1)),
            *(("Gradient", u, m) for u in range(STEPS) for m in range(MICRO_STEPS)),
        ]
        self.kept = {*listed.starts}
        self.fixed = {
            **{"settled": SETTLED, "length": self.length, "last": len(self.lines)},
            "micro_steps": MICRO_STEPS,
        }

    def line(self, t):
        return self.lines[t] if 0 <= t < len(self.lines) else self.lines[0]

    def begins(self, u):
        return u * self.length

    def ends(self, u):
        return self.begins(u + 1)

    def step(self, t):
        return self.line(t).step

    def micro_step(self, t):
        return self.line(t).micro_step

    def what(self, s):
        return self.names[s][0]

    def time(self, s):
        return self.names[s][1]

    def which(self, s):
        return self.names[s][2]

    def named(self, what, u, m):
        return self.names.index((what, u, m)) if (what, u, m) in self.names else 0

    def unknowns(self, t, b, d, j):
        """What is computed wrong is not known."""
        amounts, unknowns = (each.get(b) for each in self.before[t])
        if not unknowns or d >= len(self.all):
            return 1
        at = self.all[j], self.all[d]
        return unknowns[at] + sum(s[0] == WRONG for s, _ in amounts[at])

    def amount(self, t, b, s, d, i, j):
        what, u, m = self.names[s]
        if d >= len(self.all):
            return 0
        found = self.before[t][0].get(b, {}).get((self.all[j], self.all[d]), {})
        if what in ALIKE:
            has = (times for (of, _), times in found.items() if of == (ALIKE[what], u))
            return sum(has) if i == 0 else 0
        return found.get((("gradient", u, m), self.all[i]), 0)

    def finds(self, p, b, s, d, i, j):
        return self.amount(self.begins(SETTLED) + p, b, s, d, i, j)

    def finds_unknown(self, p, b, d, j):
        """Of what does not rest the checker need not know anything."""
        return self.unknowns(self.begins(SETTLED) + p, b, d, j) if b in self.kept else 1


@pytest.mark.parametrize(
    ("name", "devices"),
    slow_but([("dp", 3), ("zero1", 1), ("zero3", 2)], product(["dp", "zero1", "zero3"], [1, 2, 3])),
)
def test_what_is_supposed_of_steps_is_so_of_a_run(name, devices):
    run, few = RepeatedRun(name, devices), LaterSteps(NormedLanguage(Kernel("steps")))
    n, every = range(devices), range(len(run.names))
    alike = [{"u": u, "p": p} for u in range(STEPS + 1) for p in range(-1, run.length + 1)]
    found = [
        dict(zip("bsdij", values, strict=True))
        for values in product(range(-1, 8), every, range(devices + 1), n, n)
    ]
    known = 0
    for supposed, values in (
        (few.follow, [{"u": u} for u in range(STEPS)]),
        (few.there_is_one, [{}]),
        (few.numbers, [{"t": t} for t in range(-1, len(run.lines) + 2)]),
        (few.same_lines, alike),
        (few.begins_so, found),
        (few.repeats, found),
    ):
        for value in values:
            assert run.value(supposed.goal, value), (supposed.name, value)
    for at in found:
        known += at["d"] < devices and not run.finds_unknown(0, at["b"], at["d"], at["j"])
    assert known > len(every)


def test_a_run_that_does_not_repeat_is_not_supposed_to():
    run, few = RepeatedRun("zero1", 2), LaterSteps(NormedLanguage(Kernel("steps")))
    last = (SETTLED + 1) * run.length
    amounts = deepcopy(run.before[last])
    place = min(run.kept)
    for at in amounts[0][place]:
        amounts[0][place][at] = {}
    run.before[last] = amounts
    values = [
        dict(zip("bsdij", (place, s, d, i, j), strict=True))
        for s, d, i, j in product(range(len(run.names)), range(2), range(2), range(2))
    ]
    assert not all(run.value(few.repeats.goal, value) for value in values)


MUTANTS = [
    # (what is wrong, file of proofs/, the rule, the broken rule)
    (
        "a step leaves the values that it found, no step later",
        "few_steps.py",
        'one_step_later", *same, IntVal(1), end)',
        'one_step_later", *same, IntVal(0), zero)',
    ),
    (
        "a value that no step before had is anywhere",
        "few_steps.py",
        "time >= 0, time <= l.last, time >= back,",
        "time >= 0, time <= l.last,",
    ),
    (
        "steps have lines of different kinds",
        "few_steps.py",
        "(l.kind, l.target, l.factor, l.micro, *l.sources)",
        "(l.target, l.factor, l.micro, *l.sources)",
    ),
    (
        "steps scale by different factors",
        "few_steps.py",
        "(l.kind, l.target, l.factor, l.micro, *l.sources)",
        "(l.kind, l.target, l.micro, *l.sources)",
    ),
    (
        "groups of later steps have other members",
        "few_steps.py",
        "members = l.mesh.member(here, d, l.c) == l.mesh.member(there, d, l.c)",
        "members = l.mesh.member(there, d, l.c) == l.mesh.member(there, d, l.c)",
    ),
    (
        "what is right in a step is not in a later one",
        "few_steps.py",
        "l.is_right(here, d) == l.is_right(there, d),",
        "",
    ),
    (
        "what was computed wrong has the time of a step, not of a line",
        "few_steps.py",
        "return If(wrong, lines, steps)",
        "return If(wrong, steps, steps)",
    ),
    (
        "what is found before the step is of no run",
        "few_steps.py",
        "And(unknown == 0, amount == found)",
        "unknown == 0",
    ),
    (
        "the first line of the step is not compared",
        "later_steps.py",
        "within = self.of_a_step if by_line else ()",
        "within = (self.p >= 1, self.p < self.length) if by_line else ()",
    ),
    (
        "copies are compared before the step",
        "later_steps.py",
        "self.p if by_line else self.length,",
        "self.p if by_line else IntVal(0),",
    ),
    (
        "what an earlier micro-step added is moved as often as what the last one did",
        "later_steps.py",
        "plus(before(m), later(m - n, n))",
        "plus(before(m), later(m, n))",
    ),
    (
        "what micro-steps add never settles",
        "later_steps.py",
        "later(m, few + 1) == later(m, few)",
        "later(m, few) == later(m, few)",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_steps_that_are_not_alike_decide_nothing(wrong, file, rule, broken, tmp_path):
    broken_copy(tmp_path, file, rule, broken, folder="proofs")
    assert notices(tmp_path, "proofs.checking.later_steps", "a_step_that_repeats_decides_all"), wrong
