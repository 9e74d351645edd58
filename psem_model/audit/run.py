"""One run of the claims in a process of its own, for the audit: `python -m psem_model.audit.run`.

It reads which claims, and which of them to ask about their facts too; it writes a line of JSON for
each. The audit makes two such runs, with other hash seeds and in opposite order, and compares.
"""

from __future__ import annotations

import gc
import json
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import Any

from proofs.premises import of_like_cases, premises
from proofs.registry import Claim, Result
from proofs.registry import select as chosen
from proofs.trusted.kernel import Theorem
from psem_model.audit import questions
from psem_model.audit.obligations import exported
from psem_model.audit.processes import end, program, started
from psem_model.check.claims import Tell, sizes, total, watched

SEEDS = ("1", "2")
ASKING = 6  # to ask about a claim's facts takes about so many times as long as to prove it


def header(claim: Claim, rows: dict[str, str]) -> str:
    """Comments that say what a file asks."""
    first = {"claim": claim.id, "statement": " ".join(claim.statement.split())}
    return "".join(f"; {key:<10} {value}\n" for key, value in {**first, **rows}.items())


def entry(result: Result, asks: bool, tell: Tell = lambda _: None) -> dict[str, Any]:
    """What came of a claim, with every obligation as text; `tell` is told how many are asked about."""
    claim = result.claim
    found: dict[str, Any] = {
        "claim": claim.id,
        "verdict": result.verdict,
        "failure": result.failure,
        "axioms": result.axioms,
        "rules": dict(sorted(Counter(t.rule for t in result.listed).items())),
        "obligations": [],
        "unused": [],
        "premises": [],
    }
    for theorem in result.listed:
        for obligation in theorem.obligations:
            found["obligations"].append(
                {
                    "file": f"{claim.id}/{len(found['obligations']) + 1}.smt2",
                    "name": obligation.name,
                    "theorem": theorem.name,
                    "rule": obligation.rule,
                    "expected": obligation.expected,
                    "seconds": obligation.seconds,
                    "resources": obligation.resources,
                    "values": None if theorem.counterexample is None else dict(theorem.counterexample),
                    "text": _titled(claim, theorem.name, obligation) + exported(theorem, obligation),
                }
            )
    if asks:
        _ask(claim, result, found, tell)
    return found


def _titled(claim: Claim, theorem: str, obligation: Any) -> str:
    rows = {"theorem": theorem, "obligation": f"{obligation.name}, by {obligation.rule}"}
    return header(claim, {**rows, "expected": obligation.expected})


def _ask(claim: Claim, result: Result, found: dict[str, Any], tell: Tell) -> None:
    """What z3 says of each text, whether facts can hold, and whether each of them is needed."""
    asked = count(1)  # twice of each: the facts of an obligation, then those of its theorem
    for of, obligation in zip(found["obligations"], result.obligations, strict=True):
        of["z3"] = questions.answer(of["text"])
        if obligation.expected == "unsat" and (facts := questions.to_hold(obligation)):
            text = questions.witness(facts)
            title = {"facts of": obligation.name, "and": "values of which they are true"}
            of["facts"] = len(facts)
            of["witness"] = text and header(claim, {**title, "expected": "sat"}) + text
        tell(next(asked) // 2)
    for theorem in questions.proved_theorems(result.listed):
        found["unused"] += questions.unused(theorem)
        tell(next(asked) // 2)
    found["unused"] += [f"part of {part}" for part in questions.unused_parts(result.listed)]
    found["unused"] += questions.resting_on_none(result.listed, result.theorems)
    found["unused"] += dict.fromkeys(questions.implied(result.theorems))
    held = (each for group in of_like_cases(result.theorems) for each in _held(group))
    for number, (theorems, text) in enumerate(held, 1):
        names = ", ".join(theorem.name for theorem in theorems)
        title = {"premises of": names, "and": "values of which they are true"}
        for theorem in theorems:
            found["premises"].append(
                {
                    "file": f"{claim.id}/{number}-premises.smt2",
                    "name": theorem.name,
                    "number": len(premises([theorem])),
                    "for_all_values": questions.for_all_values(theorem),
                    "witness": text and header(claim, {**title, "expected": "sat"}) + text,
                }
            )


def _held(group: Sequence[Theorem]) -> Iterator[tuple[Sequence[Theorem], str | None]]:
    """Theorems with values of which all is true that they rest on: of all, or else of each alone."""
    text = None if any(map(questions.impossible, group)) else questions.witness(premises(group))
    if text or len(group) == 1:
        yield group, text
    else:
        yield from (each for theorem in group for each in _held([theorem]))


def main() -> None:
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end with whoever asked, without a word
    request = json.loads(sys.stdin.readline())
    claims = {claim.id: claim for claim in chosen(request["claims"])}
    for name in request["claims"]:
        result = watched(claims[name], partial(_tell, name))
        asking = partial(_tell, name, len(result.obligations))
        print(json.dumps(entry(result, name in request["asked"], asking)), flush=True)
        gc.freeze()  # theorems stay to the end, and need not be looked at again


def _tell(claim: str, decided: int, asked: int = 0) -> None:
    """Say how many obligations of a claim are decided, and asked about."""
    print(json.dumps({"claim": claim, "decided": decided, "asked": asked}), flush=True)


# --------------------------------------------------------------------------- from the outside
def works(ids: Sequence[str]) -> int:
    """How much is to be done in two runs of claims, in milliseconds."""
    return (2 + ASKING) * total(chosen(ids))


def twice(ids: Sequence[str], tell: Tell) -> dict[str, list[dict[str, Any]]]:
    """By claim, what came of it in two runs; its facts are asked about in the first or the second.

    `tell` is told how much is done, of `works`.
    """
    orders = (list(ids), list(reversed(ids)))
    known = sizes(chosen(ids))
    asked: tuple[list[str], list[str]] = ([], [])
    for name in sorted(ids, key=lambda name: -known[name].obligations):  # as many in each
        min(asked, key=lambda some: sum(known[of].obligations for of in some)).append(name)
    found: dict[str, list[dict[str, Any]]] = {name: [{}, {}] for name in ids}
    done: dict[tuple[str, int], int] = {}
    with ExitStack() as stack:
        runs = []
        for order, some, seed in zip(orders, asked, SEEDS, strict=True):
            run = started(program("psem_model.audit.run"), PYTHONHASHSEED=seed)
            stack.callback(end, run)
            assert run.stdin is not None
            run.stdin.write(json.dumps({"claims": order, "asked": some}).encode() + b"\n")
            run.stdin.flush()
            runs.append(run)
        for which, line in _lines(runs):
            made = json.loads(line)
            name, size = made["claim"], known[made["claim"]]
            if "obligations" not in made:
                done[name, which] = size.done(made["decided"]) + ASKING * size.done(made["asked"])
            else:
                done[name, which] = size.milliseconds * (1 + ASKING * (name in asked[which]))
                found[name][which] = made
            tell(sum(done.values()))
    return found


def _lines(runs: Sequence[subprocess.Popen[bytes]]) -> Iterator[tuple[int, bytes]]:
    """The lines of several processes as they come."""
    open_ = {run.stdout: i for i, run in enumerate(runs) if run.stdout is not None}
    while open_:
        for pipe in select.select(list(open_), [], [])[0]:
            line = pipe.readline()
            if line:
                yield open_[pipe], line
            else:
                del open_[pipe]


if __name__ == "__main__":
    main()
