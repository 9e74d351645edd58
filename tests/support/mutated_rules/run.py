"""Trying mutants: each in a copy of the project and a process of its own, claims first, then tests."""

import json
import re
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from proofs.registry import ROOT
from psem_model.text.files import write_atomically
from tests.support.broken import copied
from tests.support.mutated_rules.places import path_of
from tests.support.mutated_rules.trial import crashed

CLAIM, NOT_STATED, TEST, CRASH, NOTHING = "claim", "not stated", "test", "crash", "nothing"
PENDING = "no claim"  # has noticed it, and tests are to be run
COPY = ("tests", "conformance", "examples", "docs", "psem_check")
FILES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml", "Makefile")
SECONDS = 100  # of processor time, for a mutant's claims, and for its tests
MEMORY = 6 * 2**30  # bytes of addresses
ALL_ROOMS = ("simulator/products", "simulator/poison")
# quick tests, beside those of a rule's own file: the simulator, published figures, what is worked out
# by hand
BY_ROOM = {
    "numbers": ("spec/numbers/any_size", "spec/numbers/roots", "spec/checking/micro_steps"),
    "devices": ("spec/devices/collectives", "spec/devices/all_to_all", "spec/devices/layouts"),
    "models": (
        *("spec/costs/given", "conformance/rows"),
        *("reading/own_models", "measure/own_models"),
        "spec/models/parts",
        "spec/models/context",
        *("spec/models/arrays", "conformance/arrays"),
        "published/states",
        "simulator/models",
        *("spec/models/profiles", "simulator/profiles", "predict/differences"),
    ),
    "language": (
        *("spec/meaning/semantics", "spec/devices/layouts", "spec/language/turns", "reading/schedules"),
        *("spec/plans/copies", "spec/derivation/two_parts"),
        *("spec/models/profiles", "simulator/profiles"),
    ),
    "meaning": ("spec/meaning/match", "check/first_device", "check/not_known", "check/steps"),
    "plans": ("spec/models/parts", "spec/plans/compose", "conformance/rows", "spec/plans/copies"),
    "derivation": (
        *(
            "spec/derivation/nesting",
            "check/norms",
            "check/rings",
            "conformance/rows",
            "spec/language/turns",
        ),
        *("spec/models/profiles", "simulator/profiles", "check/steps", "spec/plans/copies"),
        *("reading/own_models", "measure/own_models"),
    ),
    "checking": (
        *(
            "check/first_device",
            "spec/derivation/norms",
            "check/rings",
            "spec/checking/micro_steps",
            "check/not_known",
        ),
        *("spec/checking/verdict", "spec/checking/everywhere", "check/norms", "check/steps"),
    ),
    "costs": (
        *("spec/costs/given", "spec/costs/memory", "spec/costs/lifetimes", "spec/models/parameters"),
        "published/states",
        *("reading/own_models", "measure/own_models"),
        *("predict/programs", "simulator/costs"),
        *("conformance/rows", "check/examples", "spec/derivation/two_parts", "reading/configurations"),
    ),
    "pipelines": (
        "spec/pipelines/checkpoints",
        "spec/pipelines/stages",
        "spec/pipelines/pipeline",
        "spec/pipelines/zero_bubble",
        "spec/pipelines/dual_pipe",
    ),
    "choosing": ("space/where",),
}
MIRRORS = ("check", "predict", "space", "measure")  # tests named as the file that they are of
CROSSCHECKED = ("language", "meaning", "plans", "derivation", "checking", "costs")
CROSSCHECK = "simulator/test_crosscheck.py"
EXAMPLES = 200  # of schedules and plans, as many as when a rule is broken by hand
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?:\[.*?\])?(?: - (.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """What noticed a mutant: `by` a claim or a test, `who`; of what crashed, by which exception."""

    by: str
    who: str = ""


def tests_of(place):
    """The files of tests that a place's mutant meets, if no claim notices it: its own first."""
    stem = Path(place.file).stem
    own = [f"{folder}/{stem}" for folder in (f"spec/{place.room}", *MIRRORS)]
    names = dict.fromkeys((*own, *BY_ROOM[place.room], *ALL_ROOMS))
    files = (f"tests/{folder}/test_{name}.py" for folder, name in (n.rsplit("/", 1) for n in names))
    return [file for file in files if (ROOT / file).exists()]


def copy(folder):
    """A copy of the project in which Python knows what is compiled by its text, not by its time."""
    copied(folder, *COPY)
    for name in FILES:
        (folder / name).write_bytes((ROOT / name).read_bytes())
    python(folder, "-m", "compileall", "-qf", "--invalidation-mode", "checked-hash", ".")
    return folder


def python(folder, *args):
    """What Python does in a copy, within bounds."""

    def bounded():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    environment = {"PYTHONPATH": str(folder), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"PSEM_NO_CACHE": "1", "PSEM_JOBS": "1", "COLUMNS": "1000"}
    command = [sys.executable, *args]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, preexec_fn=bounded
    )


def by_claims(folder, ids):
    """Which of some claims notices what is changed in a copy."""
    done = python(folder, "-m", "tests.support.mutated_rules.trial", *ids)
    if done.returncode < 0:
        return Result(CRASH, "does not end")
    try:
        who, kind = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return Result(CRASH, last.partition(":")[0])
    if kind:
        return Result(NOT_STATED, f"{who}: {kind}")
    return Result(CLAIM, who) if who else Result(PENDING)


def by_tests(folder, files):
    """Which test notices what is changed in a copy."""
    crash = ""
    for file in files:
        result = by_file(folder, file)
        if result.by == TEST:
            return result
        crash = crash or result.who
    return Result(CRASH, crash) if crash else Result(NOTHING)


def by_file(folder, file):
    """The same of one file of tests."""
    options = ("-q", "-m", "not slow", "--tb=no", "-p", "no:cacheprovider")
    done = python(folder, "-m", "pytest", *options, "--maxfail=4", file)
    kinds = []
    for test, failure in FAILED.findall(done.stdout):
        kinds.append(crashed(failure.replace("AssertionError", "UserError")))
        if not kinds[-1]:
            return Result(TEST, test.removeprefix("tests/"))
    if done.returncode < 0:
        return Result(CRASH, "does not end")
    crash = next(iter(kinds), "" if done.returncode == 0 else "no test ran")
    return Result(CRASH, crash) if crash else Result(NOTHING)


def by_crosscheck(folder):
    """Whether the simulator, beside the specification, notices what is changed in a copy."""
    done = python(folder, "-m", "tests.support.crosscheck", str(EXAMPLES))
    if done.returncode < 0:
        return Result(CRASH, "does not end")
    last = (done.stderr.strip().splitlines() or [""])[-1]
    kind = crashed(last.replace("AssertionError", "UserError"))
    if done.returncode and not kind:
        return Result(TEST, CROSSCHECK)
    return Result(CRASH, kind) if kind else Result(NOTHING)


def by_tests_and_crosscheck(folder, place):
    """What notices a change that no claim notices: a test, or the simulator."""
    found = by_tests(folder, tests_of(place))
    if found.by == TEST or place.room not in CROSSCHECKED:
        return found
    beside = by_crosscheck(folder)
    return beside if beside.by == TEST or found.by == NOTHING else found


class Results:
    """Results by place, kept in a file of the build, as far as sources are the same."""

    def __init__(self, path: Path, digest: str):
        self.path, self.digest = path, digest
        try:
            document = json.loads(path.read_text())
        except (OSError, ValueError):
            document = {}
        same = document.get("digest") == digest
        self.known = {key: Result(**each) for key, each in document["results"].items()} if same else {}

    def pending(self, place):
        """Whether a place has no result yet, or none but that no claim noticed."""
        return self.known.get(place.key, Result(PENDING)).by == PENDING

    def add(self, place, result):
        self.known[place.key] = result
        results = {key: asdict(each) for key, each in self.known.items()}
        document = json.dumps({"digest": self.digest, "results": results}, indent=1)
        self.path.parent.mkdir(exist_ok=True)
        write_atomically(self.path, document + "\n")


def tried(place, folder, work):
    """What `work` finds in a copy that has the change of a place."""
    path = path_of(place, folder)
    text = path.read_text()
    path.write_text(place.changed(text))
    try:
        return work()
    finally:
        path.write_text(text)
