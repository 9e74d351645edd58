"""The runs that the counterexamples of refuted claims describe, executed by the simulator.

They are tests of this repository, since each needs a model, an optimizer and a schedule of its own:
`tests/proofs/test_refuted.py` and `tests/check/test_unsafe.py`. Each passes if its run does what is
said of it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from proofs.registry import ROOT

FILES = ("tests/proofs/test_refuted.py", "tests/check/test_unsafe.py")
OPTIONS = ("-q", "-n", "0", "-p", "no:cacheprovider", "-p", "psem_model.audit.recorder")
NAMED = re.compile(r"\[([^\]]+)\]\Z")


def executed(names: Sequence[str], files: Sequence[str] = FILES) -> dict[str, bool]:
    """By CLAIM-theorem, whether the simulator ran it and it did what the counterexample says."""
    if not names:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch) / "record.json"
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest", *OPTIONS, *files),
                *("-k", " or ".join(names), f"--audit-record={record}"),
            ],
            cwd=ROOT,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        tests = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    found: dict[str, bool] = {}
    for test, did in tests.items():
        named = NAMED.search(test)
        if named and named[1] in names:
            found[named[1]] = found.get(named[1], True) and did
    return found
