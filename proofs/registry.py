"""The registry of claims, and running them: `claims.toml`, `@claim`, and what came of it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from proofs.claim import PROOFS, Proof
from proofs.premises import require_possible
from proofs.trusted.kernel import Kernel, KernelError, Obligation, Theorem
from proofs.trusted.oracle import RESOURCE_LIMIT, SEED, Answered, answered
from proofs.trusted.oracle import VERSION as SOLVER

NOT_PROVED = ("hypothesis", "axiom", "definition", "instance")
ROOT = Path(__file__).resolve().parent.parent
REGISTRY = Path(__file__).with_name("claims.toml")
NAMED = re.compile(r"\(Claim (\w+)")  # in the docstring of a function that proves it


@dataclass(frozen=True)
class Claim:
    """One row of claims.toml."""

    id: str
    area: str
    statement: str
    formula: str
    caveat: str
    scope: tuple[str, ...]
    decided: tuple[str, ...]  # what Python decides of it, by running
    watched: tuple[str, ...]  # what else, on which no statement rests, ends the proof if it is not so
    source: str
    expected: str

    def function(self) -> Proof:
        """The function in proofs/ that is marked with its id, and whose docstring names it.

        Raises KernelError for none or two, and for one that is marked or named otherwise.
        """
        broken_modules()
        wrong = _not_its_own(self.id)
        if wrong:
            raise KernelError(wrong)
        return PROOFS[self.id][0]

    @property
    def module(self) -> str:
        """The module that proves it, or its id if none does."""
        broken_modules()
        return PROOFS[self.id][0].__module__ if self.id in PROOFS else self.id

    @property
    def part(self) -> str:
        """What is said after the verdict of a claim of which Python decides a part; else nothing."""
        return "; part decided by Python" if self.decided else ""


@dataclass(frozen=True)
class Result:
    """What came of a claim."""

    claim: Claim
    verdict: str  # proved, refuted, or failed
    theorems: tuple[Theorem, ...]
    listed: tuple[Theorem, ...]
    seconds: float
    failure: str = ""
    answers: Answered = field(default_factory=dict)

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.claim.expected

    @property
    def obligations(self) -> list[Obligation]:
        return [o for theorem in self.listed for o in theorem.obligations]

    @property
    def axioms(self) -> list[str]:
        return sorted(frozenset().union(*(t.axioms for t in self.theorems)))

    @property
    def hypotheses(self) -> list[str]:
        return sorted(frozenset().union(*(t.hypotheses for t in self.theorems)))

    @property
    def counterexamples(self) -> dict[str, dict[str, str]]:
        """By theorem name, the values that refute."""
        found = ((t.name, t.counterexample) for t in self.theorems)
        return {name: dict(values) for name, values in found if values is not None}

    @property
    def outcome(self) -> Outcome:
        """What came of it, without the theorems."""
        return Outcome(
            self.claim,
            self.verdict,
            len(self.obligations),
            round(self.seconds, 6),
            self.axioms,
            self.hypotheses,
            self.counterexamples,
            self.failure,
            self.answers,
        )


@dataclass(frozen=True)
class Outcome:
    """What came of a claim, as plain values."""

    claim: Claim
    verdict: str
    obligations: int
    seconds: float
    axioms: list[str]
    hypotheses: list[str]
    counterexample: dict[str, dict[str, str]]
    failure: str = ""
    answers: Answered = field(default_factory=dict)  # of the solver

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.claim.expected

    def json(self) -> dict[str, Any]:
        """The claim's entry of the report."""
        found = asdict(self)
        entry = {**found.pop("claim"), **found}
        left_out = {
            "source",
            "answers",
            *(name for name in ("counterexample", "failure") if not entry[name]),
        }
        return {name: value for name, value in entry.items() if name not in left_out}


def claims() -> list[Claim]:
    """All claims, in the order of the registry."""
    lists = ("scope", "decided", "watched")
    return [
        Claim(**{**row, **{each: tuple(row.get(each, ())) for each in lists}})
        for row in _registry()["claim"]
    ]


def areas() -> dict[str, str]:
    """The areas of claims, in the order of the registry, and what each is about."""
    return dict(_registry()["areas"])


def _registry() -> dict[str, Any]:
    return _parsed(REGISTRY.read_text(encoding="utf-8"))


@cache
def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def select(ids: Sequence[str]) -> list[Claim]:
    """The claims of these ids, in the order of the registry; all if none is given.

    Raises KeyError for an id that no claim has.
    """
    known = {claim.id: claim for claim in claims()}
    chosen = {known[given] for given in ids or known}
    return [claim for claim in known.values() if claim in chosen]


@cache
def broken_modules() -> tuple[str, ...]:
    """Import all of proofs/: which modules cannot be imported, and why, in sentences."""
    broken = []
    for module in _modules():
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a module does when it is imported
            why = " ".join(f"{type(error).__name__}: {error}".split())
            broken.append(f"{module} cannot be imported: {why}")
    return tuple(broken)


def _modules() -> list[str]:
    found = pkgutil.walk_packages([str(Path(__file__).parent)], "proofs.")
    return [module.name for module in found if not module.ispkg]


def _name(function: Callable[..., object]) -> str:
    return f"{function.__module__}.{function.__name__}"


def _named(function: Callable[..., object]) -> list[str]:
    """The claims that a function's docstring names."""
    return NAMED.findall(function.__doc__ or "")


def _not_its_own(id: str) -> str:
    """Why no function, or several, or one of another claim, are marked with a claim's id, if so."""
    found = PROOFS.get(id, [])
    if not found:
        return f'claim {id} is proved by no function: none in proofs/ is marked @claim("{id}")'
    if len(found) > 1:
        return f"claim {id} is proved by several functions: {', '.join(sorted(map(_name, found)))}"
    ids = _named(found[0])
    if ids != [id]:
        said = f"names {', '.join(ids)}" if ids else "names no claim"
        return f'{_name(found[0])} is marked @claim("{id}") and {said}'
    return ""


def registration() -> list[str]:
    """What does not fit of claims and the functions that are marked with their ids, in sentences."""
    broken = broken_modules()
    ids = [claim.id for claim in claims()]
    twice = sorted({id for id in ids if ids.count(id) > 1})
    unknown = [(_name(proof), id) for id in PROOFS if id not in ids for proof in PROOFS[id]]
    return [
        *broken,
        *(f"claim {id} stands twice in proofs/claims.toml" for id in twice),
        *filter(None, (_not_its_own(id) for id in dict.fromkeys(ids))),
        *(f"{name} proves claim {id}, which is not in proofs/claims.toml" for name, id in unknown),
        *_not_marked(),
    ]


def _not_marked() -> Iterator[str]:
    """Functions of which the docstring names a claim, and the mark does not."""
    for module in filter(None, map(sys.modules.get, _modules())):
        for function in filter(inspect.isfunction, vars(module).values()):
            for id in _named(function):
                if function.__module__ == module.__name__ and function not in PROOFS.get(id, []):
                    yield f'{_name(function)} names claim {id} and is not marked @claim("{id}")'


def prove(claim: Claim, proof: Proof | None = None) -> Result:
    """Run one claim's proof: the function that is marked with its id, or another."""
    start = time.perf_counter()
    kernel = Kernel(claim.id)
    theorems: tuple[Theorem, ...] = ()
    failure = ""
    try:
        returned = (proof or claim.function())(kernel)
        _require_proved(kernel, returned)
        theorems = returned
        require_possible(claim.id, theorems)
        verdict = "proved" if theorems[0].counterexample is None else "refuted"
    except Exception as error:  # a proof that breaks down is no proof
        known = isinstance(error, KernelError)
        failure = str(error) if known else f"{claim.id} could not be stated: {_broken(error)}"
        verdict = "failed"
    seconds = time.perf_counter() - start
    proved_here = tuple(kernel.theorems)
    return Result(claim, verdict, theorems, proved_here, seconds, failure, answered())


def _broken(error: Exception) -> str:
    """An exception, and the last line of spec/ or proofs/ that raised it."""
    at = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_ours(frame.filename)]
    line = f", at {Path(at[-1].filename).relative_to(ROOT)}:{at[-1].lineno}" if at else ""
    return f"{type(error).__name__}: {error}{line}"


def _is_ours(file: str) -> bool:
    return any(Path(file).is_relative_to(ROOT / folder) for folder in ("spec", "proofs"))


def _require_proved(kernel: Kernel, theorems: Sequence[Theorem]) -> None:
    """Raise KernelError unless there are theorems, each proved by this kernel."""
    if not theorems:
        raise KernelError(f"{kernel.claim}: no theorem")
    for theorem in theorems:
        if theorem not in kernel.theorems or theorem.rule in NOT_PROVED:
            raise KernelError(f"{kernel.claim}: {theorem.name} is a {theorem.rule}, not proved here")


def report(
    outcomes: Sequence[Outcome], seconds: float, remembered: int = 0, answers: int = 0
) -> dict[str, Any]:
    """What is told of the claims.

    `remembered`: how many outcomes are those of an earlier run; `answers`: of the others, how many
    answers of the solver.
    """
    return {
        "claims": [outcome.json() for outcome in outcomes],
        "remembered": remembered,
        "answers_remembered": answers,
        "solver": {
            "name": "z3",
            "version": SOLVER,
            "resource_limit": RESOURCE_LIMIT,
            "seed": SEED,
        },
        "seconds": round(seconds, 6),
    }
