"""A copy of the project with a rule of the specification changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from proofs.registry import ROOT


def notices(tmp_path, module, function, file, rule, broken):
    """Whether a claim's function fails, in a copy of the project with one line of spec/ changed."""
    copy = tmp_path / "copy"
    if not copy.exists():
        for part in ("spec", "proofs"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        source = copy / "spec" / file
        text = source.read_text()
        assert text.count(rule) == 1, "the rule has moved"
        source.write_text(text.replace(rule, broken))
    imports = f"from proofs.kernel import Kernel\nfrom {module} import {function}\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}{function}(Kernel('twin'))"],
        cwd=copy,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    reason = (done.stderr.strip().splitlines() or [""])[-1]
    # a pair of layouts is the key of a collective: there is none from the one to the other
    known = ("proofs.smtlib.KernelError", "spec.layouts.LayoutError", "KeyError: (<Layout")
    return done.returncode == 1 and reason.startswith(known)
