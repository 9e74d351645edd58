"""The runs that the counterexamples of refuted claims describe, executed by the simulator.

They are tests of this repository, since each needs a model, an optimizer and a schedule of its own:
`tests/test_refuted.py` and `tests/test_unsafe.py`. Each passes if its run diverges as is said.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from proofs.registry import ROOT

FILES = ("tests/test_refuted.py", "tests/test_unsafe.py")
OPTIONS = ("-q", "-n", "0", "-p", "no:cacheprovider")
NAMED = re.compile(r"\[([^\]]+)\]\Z")


def executed(names: Sequence[str]) -> dict[str, bool]:
    """By CLAIM-theorem, whether its run diverges as the counterexample says; those that are run."""
    if not names:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest", *OPTIONS, *FILES),
                *("-k", " or ".join(names), f"--junitxml={report}"),
            ],
            cwd=ROOT,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    found: dict[str, bool] = {}
    for case in cases:
        named = NAMED.search(case.get("name", ""))
        if named and named[1] in names:
            found[named[1]] = found.get(named[1], True) and len(case) == 0
    return found
