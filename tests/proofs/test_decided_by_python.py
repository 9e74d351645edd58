"""Of which claims Python decides a part: a comparison that ends their proof runs."""

import ast
import gc
import sys
from functools import _lru_cache_wrapper

import pytest

from proofs.registry import ROOT, broken_modules, claims, prove
from proofs.trusted.terms import TRUE

DECIDES = "raise "
TRUSTED = {"registry", "premises"}  # of every claim


def first_lines():
    """Where functions begin that end a proof if something is not so, by file."""
    found = set()
    for path in (ROOT / "proofs").rglob("*.py"):
        if path.parent.name == "trusted" or path.stem in TRUSTED or DECIDES not in path.read_text():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and DECIDES in ast.unparse(node):
                first = node.decorator_list[0] if node.decorator_list else node
                found.add((str(path), first.lineno))
    return found


def run_by(claim, among):
    """Those of some functions that run while a claim is proved; and theorems that say nothing."""
    ran = set()

    def called(frame, event, _):
        if event == "call":
            ran.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    for known in [each for each in gc.get_objects() if isinstance(each, _lru_cache_wrapper)]:
        known.cache_clear()  # what is remembered would not run
    sys.setprofile(called)
    try:
        result = prove(claim)
    finally:
        sys.setprofile(None)
    assert result.verdict == claim.expected
    proved = (theorem for theorem in result.theorems if theorem.counterexample is None)
    return ran & among | {theorem for theorem in proved if theorem.statement is TRUE}


@pytest.fixture(scope="module")
def deciding():
    broken_modules()
    return first_lines()


def test_a_claim_that_does_not_say_so_has_no_part_that_python_decides(deciding):
    silent = [claim for claim in claims() if not (claim.decided or claim.watched)]
    found = {claim.id: run_by(claim, deciding) for claim in silent}
    assert len(found) > 40
    assert not {id: ran for id, ran in found.items() if ran}


@pytest.mark.parametrize("id", ["T1", "T2", "X9", "A5", "B3", "K8"])
def test_of_a_claim_that_says_so_python_decides_a_part(id, deciding):
    (claim,) = (claim for claim in claims() if claim.id == id)
    assert claim.decided or claim.watched
    assert run_by(claim, deciding)
