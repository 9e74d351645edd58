"""`python -m tests.support.forked`: tries broken rules, each in a fork of this process.

It reads requests, one a line, and answers each in a line. A fork imports anew, with one file changed,
that module and all that import it, directly or not. It keeps what knows nothing of it: the libraries,
other modules, the kernel with the terms that it has made, and what was answered. (Word for word the
same is not asked again.)
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import sys
import traceback
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from unittest.mock import patch

from proofs.trusted.kernel import Kernel

OURS = ("conformance", "proofs", "psem_check", "psem_model", "spec", "tests")
KEPT = ("proofs.trusted", "spec.assumptions")  # the kernel, and what it imports
REGISTER = "proofs.claim"  # knows the functions of those that import it
# what T4 finds of the schedules that it runs, whatever it then proves of steps
RUNS = ("require_judged", "require_repetition", "require_needs", "require_axes_apart")
# proofs that many broken rules fail, each after much that does not depend on it; but for some checks
LONG = {"what_is_accepted_matches": RUNS, "what_compares_equal_matches": ()}


class Changed(SourceFileLoader):
    """A module, of another text than its file's."""

    def __init__(self, name, path, text):
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname):
        return compile(self.text, self.path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Finds one module, changed."""

    def __init__(self, name, path, text):
        self.loader = Changed(name, path, text)

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.loader.name:
            return None
        return spec_from_file_location(fullname, self.loader.path, loader=self.loader)


def within(name, packages):
    """Whether a module is one of some packages, or in it."""
    return any(name == each or name.startswith(f"{each}.") for each in packages)


@cache
def imported_by(file):
    """What a module may import, wherever it says so: names of modules, and of what is in them."""
    found = set()
    for each in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(each, ast.Import):
            found |= {alias.name for alias in each.names}
        elif isinstance(each, ast.ImportFrom):
            found |= {each.module, *(f"{each.module}.{alias.name}" for alias in each.names)}
    return frozenset(found)


def users(*names):
    """Those modules of ours, and all that import them, directly or not."""
    ours = [name for name in sys.modules if within(name, OURS) and not within(name, KEPT)]
    found, more = set(), {*names}
    while more:
        found |= more
        more = {name for name in ours if imported_by(sys.modules[name].__file__) & more} - found
    return found


def forget(modules):
    """These are imported anew when they are imported next."""
    for name in modules:
        room, _, own = name.rpartition(".")
        if sys.modules.pop(name, None) and hasattr(sys.modules.get(room), own):
            delattr(sys.modules[room], own)
    importlib.invalidate_caches()


# ------------------------------------------------------------------------------ what is tried
@contextmanager
def without(checks):
    """Proofs that require these checks do not.

    They take long. What fails without them fails with them, as the claim requires them too.
    """
    with ExitStack() as stack:
        for name in checks:
            proofs = [module for of, module in sys.modules.items() if within(of, ["proofs"])]
            users = [module for module in proofs if hasattr(module, name)]
            assert users, name
            for module in users:
                stack.enter_context(patch.object(module, name, lambda: None))
        yield


def proves(module, function, left_out=()):
    """Runs a function that proves, in a kernel of its own, without some checks."""
    claim = getattr(importlib.import_module(module), function)
    gc.disable()  # as where claims are proved
    with without(left_out):
        claim(Kernel("twin"))


def fails(*ids):
    """Which of some claims have not the expected verdict."""
    registry = importlib.import_module("proofs.registry")
    gc.disable()
    return [claim.id for claim in registry.select(ids) if _fails(registry.prove, claim)]


def _fails(prove, claim):
    left_out = LONG.get(claim.function().__name__, ())
    with without(left_out):
        found = prove(claim)
    return not (found.as_expected and (not left_out or prove(claim).as_expected))


def calls(module, function, *given):
    """Calls a function of a module."""
    return getattr(importlib.import_module(module), function)(*given)


TRIED = {function.__name__: function for function in (proves, fails, calls)}


def said(what, given):
    """What is returned, and the line that says what was raised, if it was."""
    try:
        with redirect_stdout(sys.stderr):
            return [TRIED[what](*given), ""]
    except BaseException as error:
        return [None, traceback.format_exception_only(error)[-1].strip()]


def answered(what, given, *changed):
    """The same in a fork that has a module changed: its name, its file, its text; None if it dies."""
    reader, writer = os.pipe()
    changes = users(changed[0], REGISTER)
    gc.freeze()
    fork = os.fork()
    if not fork:
        gc.disable()  # it ends before there is much to collect
        os.close(reader)
        forget(changes)
        sys.meta_path.insert(0, Finder(*changed))
        with os.fdopen(writer, "w") as out:
            json.dump(said(what, given), out)
            out.flush()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as found:
        text = found.read()
    os.waitpid(fork, 0)
    return json.loads(text) if text else None


def main():
    left = {**LONG}
    registry = importlib.import_module("proofs.registry")
    assert not registry.broken_modules()
    for line in sys.stdin:
        what, given, *changed = json.loads(line)
        if what != "fails":
            importlib.import_module(given[0])
        if what == "proves" and (function := given[1]) in left:
            said(what, (*given[:2], left.pop(function)))
        print(json.dumps(answered(what, given, *changed)), flush=True)


if __name__ == "__main__":
    main()
