"""The house: which package may import which, and how large a module may grow."""

import ast

import pytest

from proofs.registry import ROOT

ALLOWED = {
    "spec": {"spec"},
    "proofs": {"spec", "proofs", "z3"},
    "psem_model": {"spec", "proofs", "psem_model", "z3", "sympy", "numpy", "click"},
}
OURS_OR_HEAVY = {"spec", "proofs", "psem_model", "z3", "sympy", "numpy", "click", "tests"}
FILES = [path for package in ALLOWED for path in sorted((ROOT / package).glob("*.py"))]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_imports_point_one_way(path):
    allowed = ALLOWED[path.parent.name]
    assert {name for name in imports(path) if name in OURS_OR_HEAVY} <= allowed


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_modules_stay_small(path):
    assert len(path.read_text().splitlines()) <= 450


def test_kernel_guards_are_raised_not_asserted():
    for name in ("kernel", "smtlib"):
        tree = ast.parse((ROOT / "proofs" / f"{name}.py").read_text())
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
