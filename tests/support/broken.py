"""Copies of the project in which a rule of the specification is another."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

from proofs.registry import ROOT

PARTS = ("spec", "proofs", "psem_model")
# proofs that many broken rules fail, each after much that does not depend on it
LONG = ("what_is_accepted_matches", "what_compares_equal_matches")
SEEN_BY_T3 = [
    # (what is wrong, file, the rule, the broken rule): the simulator disagrees with these, too
    (
        "a resting place has room for everything",
        "semantics.py",
        "fitting(buffer, value), cut(buffer)",
        "fitting(buffer, value), ()",
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
PROVED = """
import gc
import json
import sys
from hashlib import sha256
from importlib import import_module

from proofs.trusted import oracle
from proofs.trusted.kernel import Kernel

gc.disable()  # as where claims are proved
module, function, *without = sys.argv[1:]
known, found, answer = {*json.load(sys.stdin)}, [], oracle._Session.answer


def remembered(session, text, limit):
    key = sha256(f"{limit} {text}".encode()).hexdigest()
    said = oracle.Answer("unsat", {}, 0) if key in known else answer(session, text, limit)
    if said.said == "unsat":
        found.append(key)
    return said


oracle._Session.answer = remembered
claim = getattr(import_module(module), function)
for name in without:
    users = [module for of, module in sys.modules.items() if of.startswith("proofs.")]
    users = [module for module in users if hasattr(module, name)]
    assert users, name
    for module in users:
        setattr(module, name, lambda: None)
claim(Kernel("twin"))
json.dump(found, sys.stdout)
"""


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


def broken_copy(where, file, rule, broken, *more, folder="spec"):
    """A copy of the project with one rule of a file of spec/, or of another folder, changed."""
    source = file_of(copied(where, *more) / folder, file)
    source.write_text(with_another(rule, broken, source.read_text()))
    Path(cache_from_source(source)).unlink(missing_ok=True)
    return where


def python(folder, *args, given=""):
    """What Python does in a copy, given some input."""
    environment = {"PYTHONPATH": str(folder), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"PSEM_NO_CACHE": "1", "PSEM_JOBS": "1"}
    command = [sys.executable, *args]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, input=given
    )


@cache
def proved_texts(module, function):
    """What is asked and proved where a claim's function proves it, with no rule broken: by hashes.

    Word for word the same is proved in a copy, too, and is not asked there again.
    """
    done = python(ROOT, "-c", PROVED, module, function, given="[]")
    assert done.returncode == 0, done.stderr
    return done.stdout


def notices(folder, module, function, without=()):
    """Whether a claim's function fails in a copy: by what it proves, and not by a crash.

    `without`: checks of the same claim that are left out, as they take long. The claim requires them
    too: so what fails without them fails with them.
    """
    known = proved_texts(module, function) if function in LONG else "[]"
    done = python(folder, "-c", PROVED, module, function, *without, given=known)
    reason = (done.stderr.strip().splitlines() or [""])[-1]
    # a pair of layouts is the key of a collective: there is none from the one to the other
    failures = (
        "proofs.trusted.sorts.KernelError",
        "spec.devices.layouts.LayoutError",
        "KeyError: (<Layout",
    )
    return done.returncode == 1 and reason.startswith(failures)


def claims_fail(where, wrong, file, rule, broken, ids):
    """Require that each of some claims fails in a copy with a broken rule, and does not crash."""
    broken_copy(where, file, rule, broken)
    done = python(where, "-m", "psem_model", "prove", *ids)
    assert done.returncode == 1, f"none of {ids} notices that {wrong}"
    (said,) = re.findall(r"^NOT as expected: (.*)$", done.stdout, re.MULTILINE) or [""]
    assert {*said.split(", ")} == {*ids}, (wrong, done.stderr)
