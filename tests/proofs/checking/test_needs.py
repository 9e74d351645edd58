"""Delete one need of the verdict: T3 has a schedule that is then accepted, though its run diverges."""

import ast

import pytest

from proofs.registry import ROOT
from tests.support.broken import called, file_of, notices

pytestmark = pytest.mark.slow

# needs that are stated otherwise, or of several copies at once
OTHERS = [
    (
        "verdict.py",
        "        rest = schedule.rest(state)\n        if rest.stored and",
        "        rest = schedule.rest(state)\n"
        "        if state is not State.PARAMETERS and rest.stored and",
    ),
    ("verdict.py", "if policy.master:", "if False:"),
    ("verdict.py", "if policy.k > 0:", "if False:"),
    ("verdict.py", 'if not any(kind == "weight"', 'if False and any(kind == "weight"'),
    ("forms.py", "if axis in lacking:", "if False:"),
]


def needs(file):
    """Each need that a file of spec/ states, and one that every value meets in its place."""
    text = file_of(ROOT / "spec", file).read_text()
    for call in ast.walk(ast.parse(text)):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("Need", "self._fresh"):
            rule = ast.get_source_segment(text, call)
            has = ast.unparse(call.args[1 if ast.unparse(call.func) == "Need" else 0])
            yield file, rule, f'Need("", {has}, {has}, "")'


OF_ALL_WEIGHTS = "self.unclipped()"  # a need of several schedules together, of which T3 has none
ALONE, TOGETHER = ([n for n in needs("forms.py") if (OF_ALL_WEIGHTS in n[1]) == t] for t in (0, 1))
NEEDS = [*ALONE, *needs("verdict.py"), *OTHERS]


@pytest.mark.parametrize(
    ("file", "need", "nothing"), NEEDS, ids=[need.strip()[:50] for _, need, _ in NEEDS]
)
def test_each_need_has_a_schedule_that_is_accepted_without_it(file, need, nothing):
    changed = file, need, nothing
    names, raised = called("tests.support.accepted", "of_t3", changed=changed)
    assert names and not raised
    assert notices("proofs.checking.completeness", "what_is_rejected_diverges", *changed)


@pytest.mark.parametrize("changed", TOGETHER)
def test_t4_has_the_need_of_norms_that_are_added_to_those_of_other_weights(changed):
    assert notices("proofs.checking.necessary_and_sufficient", "what_is_accepted_matches", *changed)
