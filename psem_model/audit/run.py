"""One run of the claims in a process of its own, for the audit: `python -m psem_model.audit.run`.

It reads which claims, and which of them to ask about their facts too; it writes a line of JSON for
each. The audit makes two such runs, with other hash seeds and in opposite order, and compares.
"""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from proofs.registry import Claim, Result, prove
from proofs.registry import select as chosen
from psem_model.audit.notes import annotated
from psem_model.audit.processes import end, program, started

SEEDS = ("1", "2")


def header(claim: Claim, rows: dict[str, str]) -> str:
    """Comments that say what a file asks."""
    first = {"claim": claim.id, "statement": " ".join(claim.statement.split())}
    return "".join(f"; {key:<10} {value}\n" for key, value in {**first, **rows}.items())


def entry(result: Result, asks: bool) -> dict[str, Any]:
    """What came of a claim, with every obligation as text."""
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
                    "text": _titled(claim, theorem.name, obligation) + annotated(theorem, obligation),
                }
            )
    if asks:
        _ask(claim, result, found)
    return found


def _titled(claim: Claim, theorem: str, obligation: Any) -> str:
    rows = {"theorem": theorem, "obligation": f"{obligation.name}, by {obligation.rule}"}
    return header(claim, {**rows, "expected": obligation.expected})


def _ask(claim: Claim, result: Result, found: dict[str, Any]) -> None:
    """What z3 says of each text, whether facts can hold, and whether each of them is needed."""
    from proofs.premises import premises
    from psem_model.audit.hypotheses import (
        for_all_values,
        implied,
        impossible,
        resting_on_none,
        unused_parts,
    )
    from psem_model.audit.questions import answer, proved_theorems, to_hold, unused, witness

    for of, obligation in zip(found["obligations"], result.obligations, strict=True):
        of["z3"] = answer(of["text"])
        if obligation.expected == "unsat" and (facts := to_hold(obligation)):
            text = witness(facts)
            title = {"facts of": obligation.name, "and": "values of which they are true"}
            of["facts"] = len(facts)
            of["witness"] = text and header(claim, {**title, "expected": "sat"}) + text
    for theorem in proved_theorems(result.listed):
        found["unused"] += unused(theorem)
    found["unused"] += [f"part of {part}" for part in unused_parts(result.listed)]
    found["unused"] += resting_on_none(result.listed, result.theorems)
    found["unused"] += dict.fromkeys(each for theorem in result.theorems for each in implied(theorem))
    for number, theorem in enumerate(result.theorems, 1):
        if theorem.counterexample is None and (formulas := premises([theorem])):
            text = None if impossible(theorem) else witness(formulas)
            title = {"premises of": theorem.name, "and": "values of which they are true"}
            found["premises"].append(
                {
                    "file": f"{claim.id}/{number}-premises.smt2",
                    "name": theorem.name,
                    "number": len(formulas),
                    "for_all_values": for_all_values(theorem),
                    "witness": text and header(claim, {**title, "expected": "sat"}) + text,
                }
            )


def main() -> None:
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end with whoever asked, without a word
    request = json.loads(sys.stdin.readline())
    claims = {claim.id: claim for claim in chosen(request["claims"])}
    for name in request["claims"]:
        print(json.dumps(entry(prove(claims[name]), name in request["asked"])), flush=True)


# --------------------------------------------------------------------------- from the outside
def twice(ids: Sequence[str], tell: Callable[[int], None]) -> dict[str, list[dict[str, Any]]]:
    """By claim, what came of it in two runs; its facts are asked about in the first or the second."""
    orders = (list(ids), list(reversed(ids)))
    asked = (ids[::2], ids[1::2])
    found: dict[str, list[dict[str, Any]]] = {name: [{}, {}] for name in ids}
    with ExitStack() as stack:
        runs = []
        for order, some, seed in zip(orders, asked, SEEDS, strict=True):
            run = started(program("psem_model.audit.run"), PYTHONHASHSEED=seed)
            stack.callback(end, run)
            assert run.stdin is not None
            run.stdin.write(json.dumps({"claims": order, "asked": list(some)}).encode() + b"\n")
            run.stdin.flush()
            runs.append(run)
        for done, (which, line) in enumerate(_lines(runs), 1):
            made = json.loads(line)
            found[made["claim"]][which] = made
            tell(done)
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
