"""T2 in numbers: on any mesh the verdict is what comparisons of amounts say."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.checking.operation_lines import NotCovered
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Monomial
from spec.models.states import MIXED_ADAM, POLICIES
from spec.plans.strategies import STRATEGIES
from tests.support import by_hand
from tests.support.amount_runs import (
    NAMED,
    TakenForOne,
    agree_on_amounts,
    agree_on_faults,
    agree_on_named_strategies,
)
from tests.support.broken import called
from tests.support.by_hand import B, K, op
from tests.support.damage import damaged
from tests.support.examples import examples
from tests.support.line_runs import CLIPS, PLAIN_PIECES
from tests.support.schedules import PIECES, cancelled, made_up, placements, training


@pytest.mark.parametrize("name", NAMED)
def test_named_strategies_compare_equal_in_amounts(name):
    agree_on_named_strategies([name])


@pytest.mark.slow
@pytest.mark.parametrize("clips", CLIPS)
def test_single_faults_on_two_axes_are_judged_by_amounts(clips):
    assert agree_on_faults(clips(schedule_of(STRATEGIES["hsdp"]))) > 20


@st.composite
def on_meshes(draw):
    """A schedule along one axis or two, perhaps damaged, mostly of what T2 covers."""
    policy = POLICIES[draw(st.sampled_from(["mixed-adam", "fp32-adam", "fp32-sgd"]))]
    source = draw(st.sampled_from(["derived", "derived", "made up", "cancelled"]))
    if source == "derived":
        schedule = schedule_of(draw(placements(axes=draw(st.sampled_from([1, 2, 2])))))
        schedule = PIECES[draw(st.sampled_from(PLAIN_PIECES))](schedule)
        schedule = draw(st.sampled_from(CLIPS))(schedule)
        schedule = draw(damaged(schedule)) if draw(st.integers(0, 3)) else schedule
    else:
        schedule = draw(made_up() if source == "made up" else cancelled())
        schedule = training(schedule, clip=False, statistics=None)
    mesh = {axis: draw(st.integers(1, 3)) for axis in schedule.axes}
    return schedule, mesh, draw(st.integers(1, 2)), policy


@examples(150)
@given(on_meshes())
def test_verdicts_are_those_of_amounts(case):
    try:
        agree_on_amounts(*case)
    except NotCovered:
        return


def test_the_norm_of_minus_a_gradient_is_its_norm_to_the_checker_alone():
    minus = op(K.SCALE, B.GRADIENTS, by=Monomial(Fraction(-1)))
    norm = op(K.SQUARE_NORM, B.GRADIENTS, B.NORM)
    clip = op(K.CLIP, B.GRADIENTS, by=B.NORM)
    finish = (by_hand.SUM, minus, norm, minus, clip, by_hand.UPDATE, by_hand.RESET)
    schedule = training(by_hand.written(by_hand.MICRO, finish), clip=True)
    assert check(schedule, {"d": 2}).accepted
    with pytest.raises(TakenForOne):
        agree_on_amounts(schedule, {"d": 2}, 1, MIXED_ADAM)


MUTANTS = [
    # (what is wrong, folder, file, the rule, the broken rule)
    (
        "a norm of slices is summed over no axis",
        "proofs",
        "operation_lines.py",
        "replace(norm, summed=(*norm.summed, axis))",
        "norm",
    ),
    (
        "a norm of means is none of sums",
        "proofs",
        "operation_lines.py",
        "NormOf(self._of_all_samples(of.gradient), along, count=of.count)",
        "NormOf(of.gradient, along, count=of.count)",
    ),
    (
        "an update reads no norm",
        "proofs",
        "operation_lines.py",
        '{"fourth": norm, "fifth": applied.count}',
        '{"fifth": applied.count}',
    ),
    (
        "an update reads no count",
        "proofs",
        "operation_lines.py",
        '{"fourth": norm, "fifth": applied.count}',
        '{"fourth": norm}',
    ),
    (
        "a count is of the first micro-step",
        "proofs",
        "operation_lines.py",
        "return self._write(COUNT, micro_step=micro_step)",
        "return self._write(COUNT, micro_step=0)",
    ),
    (
        "a norm adds the slices of others",
        "spec",
        "semantics.py",
        "own = domain.replace(domain.zero, read(source, present), op.within, op.shift)",
        "own = read(source, present)",
    ),
    (
        "a norm of slices is the whole norm",
        "spec",
        "algebra.py",
        "norm.append(SUM_ALL if to == {ALL} else IDENTITY)",
        "norm.append(SUM_ALL)",
    ),
    (
        "what is applied is never clipped",
        "spec",
        "forms.py",
        "return self.clip(form, self.square_norm(form)) if self.training.clip else form",
        "return form",
    ),
    (
        "a clip does nothing",
        "spec",
        "algebra.py",
        'self._times("clip", known, square_norm) if square_norm else known',
        "known",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "folder", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_a_broken_rule_of_norms_is_noticed(wrong, folder, file, rule, broken):
    changed = file, rule, broken
    _, raised = called("tests.support.amount_runs", "agree", changed=changed, folder=folder)
    noticed = ("AssertionError", "NotCovered", "TakenForOne")
    assert any(each in raised for each in noticed), wrong
