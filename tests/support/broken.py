"""Copies of the project in which a rule of the specification is another."""

from __future__ import annotations

import shutil
import subprocess
import sys

from proofs.registry import ROOT

PARTS = ("spec", "proofs", "psem_model")


def copied(folder, *more):
    """A copy of the project in a folder."""
    for part in (*PARTS, *more):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def with_another(rule, broken, text):
    """A text with another rule in place of one that stands there once."""
    assert text.count(rule) == 1, "the rule has moved"
    return text.replace(rule, broken)


def broken_copy(folder, file, rule, broken, *more):
    """A copy of the project with one rule of a file of spec/ changed."""
    source = copied(folder, *more) / "spec" / file
    source.write_text(with_another(rule, broken, source.read_text()))
    return folder


def python(folder, *args):
    """What Python does in a copy."""
    environment = {"PYTHONPATH": str(folder), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


def notices(folder, module, function):
    """Whether a claim's function fails in a copy: by what it proves, and not by a crash."""
    imports = f"from proofs.kernel import Kernel\nfrom {module} import {function}\n"
    done = python(folder, "-c", f"{imports}{function}(Kernel('twin'))")
    reason = (done.stderr.strip().splitlines() or [""])[-1]
    # a pair of layouts is the key of a collective: there is none from the one to the other
    known = ("proofs.smtlib.KernelError", "spec.layouts.LayoutError", "KeyError: (<Layout")
    return done.returncode == 1 and reason.startswith(known)
