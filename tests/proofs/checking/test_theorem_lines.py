"""Break one of the lines that T2 is about, or what it says of them: T2 must fail."""

import pytest

from tests.support.broken import notices

pytestmark = pytest.mark.slow

MUTANTS = [
    # (what is wrong, file of proofs/, the rule, the broken rule)
    (
        "an update may have been wrong before the first unequal comparison",
        "first_unequal.py",
        "And(l.kind(t) == UPDATE, Not(l.is_met(t, d, j)))",
        "t < t",
    ),
    (
        "a backward may have been wrong before the first unequal comparison",
        "first_unequal.py",
        "for kind in (BACKWARD, NORM_OF))",
        "for kind in (NORM_OF,))",
    ),
    (
        "a norm may have been wrong before the first unequal comparison",
        "first_unequal.py",
        "for kind in (BACKWARD, NORM_OF))",
        "for kind in (BACKWARD,))",
    ),
    (
        "only the last line before it has been compared",
        "first_unequal.py",
        "And(before(j), Not(self.off(t, j)))",
        "Not(self.off(t, j))",
    ),
    (
        "a right backward makes a wrong value",
        "amounts.py",
        "self.is_right(t, d), self.contribution(t), self.state(WRONG, t)",
        "self.is_right(t, d), self.state(WRONG, t), self.contribution(t)",
    ),
    (
        "an update makes states of its own step",
        "amounts.py",
        "(WRONG, WRONG_MOMENT), self.step(t) + 1",
        "(WRONG, WRONG_MOMENT), self.step(t)",
    ),
    (
        "places hold wrong values at first",
        "amounts.py",
        "self.s == self.state(w, 0)), ONE, ZERO) for w in (WEIGHT, MOMENT)",
        "self.s == self.state(w, 0)), ONE, ZERO) for w in (WRONG, MOMENT)",
    ),
    (
        "a norm leaves out the last device of a group",
        "norm_symbols.py",
        "of_group(t, d, self.elements, size)",
        "of_group(t, d, self.elements, size - 1)",
    ),
    (
        "a single device's norm leaves out the last element",
        "norm_symbols.py",
        "self.of_whole(u, self.elements)",
        "self.of_whole(u, self.elements - 1)",
    ),
    (
        "a norm is of what the first device has",
        "norm_symbols.py",
        "groups.with_element(t, d, x))[x]",
        "groups.member(t, d, 0))[x]",
    ),
    (
        "a norm is of another step's gradient",
        "norm_symbols.py",
        "part = self.part_of_norm(u, self.single_gradient(u, x))",
        "part = self.part_of_norm(u, self.single_gradient(u + 1, x))",
    ),
    (
        "a norm that adds up anything is right",
        "amounts.py",
        "If(self.is_right(t, d), self.state(NORM, self.step(t)), self.state(WRONG, t))",
        "self.state(NORM, self.step(t))",
    ),
    (
        "a norm compares its own device's slice only",
        "checking/norms.py",
        "right += [d == groups.with_element(t, asks, j), l.is_a_weight]",
        "right += [d == groups.with_element(t, asks, j), l.is_a_weight, d == asks]",
    ),
    (
        "a norm compares nothing",
        "checking/norms.py",
        "[(t, source, None, now)],",
        "[],",
    ),
    (
        "an update reads the next step's norm",
        "every_line.py",
        "[(t, place, self.needed(what, now), now)]",
        "[(t, place, self.needed(what, now + 1), now + 1)]",
    ),
    (
        "an update reads a norm that the single device does not",
        "norm_symbols.py",
        "return If(self.reads_norm, self.single_norm(u), ZERO)",
        "return ZERO",
    ),
    (
        "an update does not compare the norm",
        "every_line.py",
        "[*self.line, l.kind(t) == UPDATE, at.met, reads]",
        "[*self.line, l.kind(t) == UPDATE, at.met, t < t]",
    ),
    (
        "a single device counts another step",
        "norm_symbols.py",
        "return self.of_step(u, self.micro_steps)",
        "return self.of_step(u + 1, self.micro_steps)",
    ),
    (
        "a single device's count leaves out the last device",
        "norm_symbols.py",
        "self.of_batch(u, m, self.n))",
        "self.of_batch(u, m, self.n - 1))",
    ),
    (
        "a device has all devices' tokens",
        "amounts.py",
        "And(s == self.count(t), i == self.whose(s, d))",
        "s == self.count(t)",
    ),
    (
        "a count is a contribution to the gradient",
        "amounts.py",
        "return self.named(TOKENS, self.step(t), self.micro(t))",
        "return self.contribution(t)",
    ),
    (
        "activations are known after backward drops them",
        "amounts.py",
        "*(ONE, ONE, lost, lost, lost, ONE, lost, ZERO)",
        "*(ONE, ONE, lost, lost, lost, ZERO, lost, ZERO)",
    ),
    (
        "an update passes on nothing that is off",
        "kept.py",
        "== l.theta(u + 1)[j] + cases(self.operand, by_operand, of_norm)",
        "== l.theta(u + 1)[j]",
    ),
    (
        "a weight that one device gets wrong is wrong on all",
        "kept.py",
        "And(b == l.target(t), l.d == self.off_device)",
        "b == l.target(t)",
    ),
    (
        "a weight is passed on through what overwrites it",
        "kept.py",
        "And(l.untouched(b), before(b, l.d))",
        "before(b, l.d)",
    ),
    (
        "a weight is what its moment overwrites",
        "kept.py",
        "l.kind(t) == UPDATE, target != l.second(t)),",
        "l.kind(t) == UPDATE),",
    ),
    (
        "an update reads the norm whether it reads one or not",
        "kept.py",
        "(NORM, l.fourth(t), l.state(NORM, now), l.reads_norm)",
        "(NORM, l.fourth(t), l.state(NORM, now), always)",
    ),
    (
        "an update reads moments whether it has any or not",
        "kept.py",
        "(MOMENT, l.second(t), l.state(MOMENT, now), l.reads_moment)",
        "(MOMENT, l.second(t), l.state(MOMENT, now), always)",
    ),
    (
        "an optimizer without moments reads them",
        "norm_symbols.py",
        "return If(self.reads_moment, self.has(t, self.second(t), d)[self.j], ZERO)",
        "return self.has(t, self.second(t), d)[self.j]",
    ),
    (
        "an update may read what is not known",
        "kept.py",
        "self.operand == kind, self.knows(t, place), read,",
        "self.operand == kind, read,",
    ),
]


@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_lines_that_are_broken_do_not_match(wrong, file, rule, broken):
    whole = "proofs.checking.kept", "what_compares_equal_matches"
    assert notices(*whole, file, rule, broken, folder="proofs"), wrong
