"""What AUDIT says of how long the trusted files are is how long they are."""

import ast
import re

import pytest

from proofs.registry import ROOT

PAGE = " ".join((ROOT / "docs" / "AUDIT.md").read_text().split())
KERNEL = ("kernel", "terms", "theorem")


def counted(paths):
    """Lines, and those that are code: no docstring, import, comment or space."""
    lines = code = 0
    for path in paths:
        text = path.read_text()
        rows = text.splitlines()
        besides = {i for i, row in enumerate(rows, 1) if not row.strip() or row.strip()[0] == "#"}
        for node in ast.walk(ast.parse(text)):
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if isinstance(node, ast.stmt) and (
                is_text or isinstance(node, ast.Import | ast.ImportFrom)
            ):
                besides |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
        lines, code = lines + len(rows), code + len(rows) - len(besides)
    return lines, code


def files(folder, *names):
    return [ROOT / folder / f"{name}.py" for name in names]


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (
            sorted((ROOT / "psem_check").glob("*.py")),
            "The checker has {:,} lines, of which {:,} are code",
        ),
        (files("proofs/trusted", *KERNEL), "have {:,} lines, of which {:,} are code"),
        (files("psem_check", "tree", "terms"), "takes {} ({} of code)"),
    ],
)
def test_lines_are_as_many_as_the_page_says(paths, words):
    assert words.format(*counted(paths)) in PAGE


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("forms", "cases", "proofs", "polynomials"), "{} decide what follows"),
        (("tree",), "{} are the rules of the kernel"),
        (("terms",), "{} terms and their sorts"),
        (("reader", "check"), "{} reading a file and going through its claims"),
        (("printing", "__main__"), "{} printing and the command"),
    ],
)
def test_the_checkers_lines_are_what_the_page_says_they_are_for(names, words):
    _, code = counted(files("psem_check", *names))
    assert words.format(code) in PAGE


@pytest.mark.parametrize("name", KERNEL)
def test_the_kernels_files_have_the_lines_that_the_page_says(name):
    _, code = counted(files("proofs/trusted", name))
    assert re.search(rf"Of `{name}.py` \({code}\)", PAGE)
