"""Break one of the lines that T2 is about, or what it says of them: T2 must fail."""

import pytest

from tests.support.broken import broken_copy, notices

pytestmark = pytest.mark.slow

MUTANTS = [
    # (what is wrong, file of proofs/, the rule, the broken rule)
    (
        "an update may have been wrong before the first unequal comparison",
        "first_unequal.py",
        "z3.And(l.kind(t) == UPDATE, z3.Not(l.is_met(t, d, j)))",
        "z3.BoolVal(False)",
    ),
    (
        "a backward may have been wrong before the first unequal comparison",
        "first_unequal.py",
        "z3.And(l.kind(t) == BACKWARD, z3.Not(l.is_right(t, d)))",
        "z3.BoolVal(False)",
    ),
    (
        "only the last line before it has been compared",
        "first_unequal.py",
        "z3.And(before(j), z3.Not(self.off(t, j)))",
        "z3.Not(self.off(t, j))",
    ),
    (
        "a right backward makes a wrong value",
        "symbolic_schedule.py",
        "self.is_right(t, d), self.contribution(t), self.state(WRONG, t)",
        "self.is_right(t, d), self.state(WRONG, t), self.contribution(t)",
    ),
    (
        "an update makes states of its own step",
        "symbolic_schedule.py",
        "(WRONG, WRONG_MOMENT), self.step(t) + 1",
        "(WRONG, WRONG_MOMENT), self.step(t)",
    ),
    (
        "places hold wrong values at first",
        "symbolic_schedule.py",
        "self.s == self.state(w, 0)), ONE, ZERO) for w in (WEIGHT, MOMENT)",
        "self.s == self.state(w, 0)), ONE, ZERO) for w in (WRONG, MOMENT)",
    ),
]


@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_lines_that_are_broken_do_not_match(wrong, file, rule, broken, tmp_path):
    broken_copy(tmp_path, file, rule, broken, folder="proofs")
    assert notices(tmp_path, "proofs.checking.exactness", "what_compares_equal_matches"), wrong
