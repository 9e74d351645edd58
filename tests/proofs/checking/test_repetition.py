"""T4: no rule by which the checker decides all steps, or all micro-steps, from few may be otherwise."""

import pytest

from proofs.checking.late_steps import late_schedules
from spec.checking.verdict import check
from spec.meaning.reference import first_divergence
from spec.plans.placement import BATCH
from tests.support.broken import notices

MUTANTS = [
    # (what is wrong, file of spec/, the rule, the broken rule)
    (
        "what never repeats stays as it is",
        "verdict.py",
        "forms.with_at(value, forms.unknown(UNSETTLED), position)",
        "value",
    ),
    (
        "elements are looked at in fewer steps than others",
        "verdict.py",
        "others.steps = max(others.steps, step)",
        "others.steps = step",
    ),
    (
        "steps are repeated once some are run, whatever they leave",
        "verdict.py",
        "if not apart and step == others.steps:",
        "if (not apart or step > SETTLED_WITHIN) and step == others.steps:",
    ),
    (
        "what a later micro-step changes stays as it is",
        "micro_steps.py",
        'raise Undecided(f"micro-steps leave the {place[0].value} in different ways")',
        "pass",
    ),
    (
        "what is made wrong of what earlier micro-steps left is so of all of it",
        "forms.py",
        "if self.micro_step == EACH and any(",
        "if False and any(",
    ),
    (
        "micro-steps multiply what earlier ones left by nothing",
        "micro_steps.py",
        'raise Undecided("a micro-step multiplies what earlier ones left by what depends on it")',
        "return False",
    ),
    (
        "what micro-steps leave need not settle",
        "micro_steps.py",
        'raise Undecided("each micro-step changes what earlier ones left")',
        "return found",
    ),
    (
        "few micro-steps move on what was there before as many do",
        "micro_steps.py",
        "len(begun) + max(len(early), len(late))",
        "len(begun) + len(late)",
    ),
    (
        "the largest number that is few is not set apart",
        "micro_steps.py",
        "range(1, least)",
        "range(1, least - 1)",
    ),
    (
        "those that are run first are as any",
        "micro_steps.py",
        "len(begun) + max(len(early), len(late))",
        "1 + max(len(early), len(late))",
    ),
    (
        "micro-steps leave a place on either side",
        "micro_steps.py",
        "host is there and ",
        "",
    ),
    (
        "micro-steps leave a place known, or not",
        "micro_steps.py",
        " and {*split(form)[1]} == {*split(found)[1]}",
        "",
    ),
]


@pytest.mark.parametrize("late", [*late_schedules()], ids=lambda late: late.name)
def test_a_step_that_is_wrong_late_is_rejected_and_diverges_then(late):
    mesh = {BATCH: late.devices}
    assert not check(late.schedule, mesh).accepted
    assert first_divergence(late.schedule, mesh, steps=late.step) is None
    assert first_divergence(late.schedule, mesh, steps=late.step + 1).step == late.step


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_the_claim_notices_that(wrong, file, rule, broken):
    whole = "proofs.checking.necessary_and_sufficient", "what_is_accepted_matches"
    assert notices(*whole, file, rule, broken), wrong
