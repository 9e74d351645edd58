"""T2 and T4: what is made of a wrong view, a wrong norm, and what is not known, differ in some run."""

import pytest

from proofs.checking import lines
from proofs.checking.beside import Beside
from proofs.checking.line_run import wrong_one
from proofs.checking.lines import OPERATORS
from proofs.checking.witnesses import broken_schedules
from spec.checking.symbols import Symbol
from spec.devices.operators import SUM_ALL
from spec.models.states import MIXED_ADAM
from tests.support.broken import notices

STEPS, MICRO_STEPS = 2, 2


def test_a_stale_view_is_one_of_the_theorem():
    """A step reads the weights of the step before. What is applied of it has what each backward made,
    summed over devices: nothing else in it is wrong, and nothing by which the view is off.
    """
    (stale,) = (each for each in broken_schedules() if each.name == "a_view_is_kept_before_the_update")
    mesh = dict.fromkeys(stale.schedule.axes, 3)
    found = Beside(stale.schedule, mesh, MICRO_STEPS, MIXED_ADAM, STEPS)
    run, every = found.run, found.places.lines
    backwards = [
        n for n, line in enumerate(every) if line.kind == lines.BACKWARD.name and line.step == 1
    ]
    assert len(backwards) == MICRO_STEPS
    assert not any(map(run.right, backwards))
    (update,) = (line for line in every if line.kind == lines.UPDATE.name and line.step == 1)
    wrong = {(wrong_one(line, "gradient"), (OPERATORS.index(SUM_ALL),)): 1 for line in backwards}
    for firsts in run.firsts:
        assert run.form(every[backwards[0]].source, firsts) == {(Symbol("weight", 0), (0,)): 1}
        assert run.form(update.third, firsts) == wrong


MUTANTS = [
    # (what is wrong, file of proofs/, the rule, the broken rule)
    (
        "a contribution that is not used shows",
        "wrong_views.py",
        "            l.amount(t, b, self.stale, d, self.reader, j) != 0,\n",
        "",
    ),
    (
        "other wrong values are in it too",
        "wrong_views.py",
        "            Not(self.mixed(t, b, d, j)),\n",
        "",
    ),
    (
        "the odd value is in it at will",
        "wrong_views.py",
        "            l.amount(t, b, odd, d, self.contributor, j) == of_step,\n",
        "",
    ),
    (
        "the contribution may be the odd value",
        "wrong_views.py",
        "return [l.kind(line) == BACKWARD, Not(itself)]",
        "return [l.kind(line) == BACKWARD, l.kind(line) == BACKWARD]",
    ),
    (
        "the contribution is computed wrong again",
        "wrong_views.py",
        "Not(there), Not(square))",
        "Not(there))",
    ),
    ("the view is not known", "wrong_views.py", "*(self.knows(l.t, l.b), self", "*(self"),
    ("the loss is linear", "exactness.py", "read - l.theta(u)[j], ZERO)", "ZERO, ZERO)"),
    ("the square is least at zero", "exactness.py", "read - l.theta(u)[j], ZERO)", "read, ZERO)"),
    (
        "an update of another step applies it",
        "kept.py",
        "*(l.step(t) == l.step(self.curved), *applied)",
        "*applied",
    ),
    (
        "a norm counts what is the single device's gradient",
        "exactness.py",
        "indicator(l.y != indicator(l.is_of_step(self.odd, l.u)))",
        "indicator(l.y == indicator(l.is_of_step(self.odd, l.u)))",
    ),
    (
        "a norm is the same whatever it counts",
        "exactness.py",
        " + l.y - l.of_wholes(l.u, l.all_weights)",
        "",
    ),
    (
        "an element may have no number",
        "norm_symbols.py",
        ", self.element(number) == self.j)",
        ")",
    ),
    (
        "a norm adds up what its own device has of others' slices",
        "wrong_norms.py",
        "return self.l.mesh.of_norms.with_element(self.l.t, self.l.d, self.l.j)",
        "return self.l.d",
    ),
    (
        "an update that reads no norm is clipped",
        "kept.py",
        "[l.reads_norm, l.step(t)",
        "[l.step(t)",
    ),
    (
        "what is not there at all makes two values",
        "two_choices.py",
        ", self.often(t, b, d, j) != 0]",
        "]",
    ),
    (
        "runs are alike after that line, too",
        "two_choices.py",
        "[t >= 0, t <= self.until, *",
        "[t >= 0, *",
    ),
    (
        "the other run has another value at any time",
        "two_choices.py",
        "lambda t: l.has(t, b, d)[j] + self._once(t),",
        "lambda t: self.other(t, b, d)[j],",
    ),
    (
        "what is moved is in one device's place alone",
        "two_choices.py",
        "moving(lambda b, e: self.often(t, b, e, j), source, l.factor(t)),",
        "moving(lambda b, e: self.often(t, b, d, j), source, l.factor(t)),",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_another_theorem_is_not_proved(wrong, file, rule, broken):
    whole = "proofs.checking.kept", "what_compares_equal_matches"
    assert notices(*whole, file, rule, broken, folder="proofs"), wrong
