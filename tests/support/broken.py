"""The project with another rule of the specification: in a copy, or in a fork of a process."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import sys
from functools import cache

from proofs.registry import ROOT
from tests.support.forked import KEPT, within

PARTS = ("spec", "proofs", "psem_model")
SEEN_BY_T3 = [
    # (what is wrong, file, the rule, the broken rule): the simulator disagrees with these, too
    (
        "a resting place has room for everything",
        "semantics.py",
        "fitting(value, slices := cut(buffer))",
        "fitting(value, slices := ())",
    ),
    (
        "another's slice has room beside one's own",
        "semantics.py",
        "op.within if op.shift == 0 else ()",
        "op.within",
    ),
    (
        "a collective reads the host's memory",
        "semantics.py",
        "_collect(op, domain, read(source, False, part))",
        "_collect(op, domain, read(source, present, part))",
    ),
    (
        "an update writes across the host link",
        "semantics.py",
        "if theta.stored and theta.host is host:\n        write(Buffer.PARAMETERS, weight, host)",
        "if theta.stored:\n        write(Buffer.PARAMETERS, weight, theta.host)",
    ),
    (
        "copies agree on either side of the host link",
        "verdict.py",
        "value = value if host is rest.host else domain.unknown(other_side(buffer))",
        "pass",
    ),
    (
        "a square norm grows as the gradient",
        "algebra.py",
        "(symbol, tuple(norm)): multiple * multiple",
        "(symbol, tuple(norm)): multiple",
    ),
    (
        "a count's multiple is forgotten",
        "algebra.py",
        "power(multiple, -1))\n        return add(divided",
        "1)\n        return add(divided",
    ),
    (
        "a count's multiple multiplies",
        "algebra.py",
        "power(multiple, -1))\n        return add(divided",
        "multiple)\n        return add(divided",
    ),
    (
        "the rest of a group counts once",
        "algebra.py",
        "count * unnamed(place, self.named[i], self.sizes[i])",
        "count",
    ),
]


def copied(folder, *more):
    """A copy of the project in a folder, with what is compiled of it, if anything is.

    Python takes that only for the files that it was compiled of, by their times and sizes.
    """
    being_written = shutil.ignore_patterns("*.pyc.*")
    for part in (*PARTS, *more):
        shutil.copytree(ROOT / part, folder / part, ignore=being_written)
    return folder


def file_of(folder, name):
    """The file of that name, in whichever room of a folder it is."""
    (found,) = folder.rglob(name)
    return found


def with_another(rule, broken, text):
    """A text with another rule in place of one that stands there once."""
    assert text.count(rule) == 1, "the rule has moved"
    return text.replace(rule, broken)


def environment(folder):
    """That of a process that has the project from a folder."""
    found = {"PYTHONPATH": str(folder), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    return found | {"PSEM_NO_CACHE": "1", "PSEM_JOBS": "1"}


def python(folder, *args):
    """What Python does in a copy."""
    command = [sys.executable, *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment(folder))


class Forked:
    """A process in which broken rules are tried, each in a fork of it."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forked"],
            cwd=ROOT,
            env=environment(ROOT),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        atexit.register(self.close)

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def tried(self, what, given, file, rule, broken, folder="spec"):
        """What is returned, and how what was raised reads, where a rule of a file is broken.

        `what`: a function of tests/support/forked.py.
        """
        path = file_of(ROOT / folder, file)
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        assert not within(name, KEPT), "what no fork imports anew"
        text = with_another(rule, broken, path.read_text())
        self.process.stdin.write(json.dumps([what, given, name, str(path), text]) + "\n")
        self.process.stdin.flush()
        found, raised = json.loads(self.process.stdout.readline())  # nothing, if the fork dies
        return found, raised


@cache
def forked():
    """One for all tests of a process."""
    return Forked()


def notices(module, function, file, rule, broken, *, folder="spec", without=()):
    """Whether a claim's function fails with a broken rule: by what it proves, and not by a crash."""
    _, raised = forked().tried("proves", [module, function, without], file, rule, broken, folder)
    # a pair of layouts is the key of a collective: there is none from the one to the other
    return raised.startswith(
        ("proofs.trusted.sorts.KernelError", "spec.devices.layouts.LayoutError", "KeyError: (<Layout")
    )


def claims_fail(wrong, file, rule, broken, ids):
    """Require that each of some claims fails with a broken rule, and nothing crashes."""
    found, raised = forked().tried("fails", ids, file, rule, broken)
    assert not raised, (wrong, raised)
    assert {*found} == {*ids}, (wrong, found)


def called(module, function, *given, changed, folder="spec"):
    """What a function returns where a rule is broken, and how what it raised reads.

    `changed`: the file of the rule, the rule, the broken rule.
    """
    return forked().tried("calls", [module, function, *given], *changed, folder)
