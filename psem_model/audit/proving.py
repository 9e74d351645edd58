"""Running the claims from the command line: one line each, the report, and the explanation of one."""

from __future__ import annotations

import gc
import inspect
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from proofs.kernel import Obligation, Theorem
from proofs.registry import ROOT, Claim, Result, claims, prove, report
from psem_model.reading import claims as reading
from psem_model.text import places
from psem_model.text.errors import BadInput, or_nearest, quoted
from psem_model.text.files import require_writable, write_atomically

REPORT = "report.json"


def run(ids: Sequence[str], as_json: bool) -> int:
    """Prove the selected claims and print them; 0 if every verdict is the expected one."""
    selected = reading.named(ids)
    whole = len(selected) == len(claims())
    if whole:
        require_writable(places.BUILD, REPORT)
    start = time.perf_counter()
    gc.set_threshold(100_000)  # theorems stay to the end: there is little to collect
    with interruptible() as check:
        results = []
        for result in _with_progress(selected, as_json, check):
            results.append(result)
    document = report(results, time.perf_counter() - start)
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        for line in totals(results, document["seconds"]):
            click.echo(line)
    if whole:
        write_atomically(places.BUILD / REPORT, json.dumps(document, indent=2) + "\n")
    return 0 if all(result.as_expected for result in results) else 1


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Ctrl-C is noted, and raised where the yielded check is called: between claims.

    Raised in the middle of a proof it could be taken for a failure, or be lost in a destructor.
    """
    noted: list[int] = []

    def check() -> None:
        if noted:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def proved(claim: Claim) -> Result:
    """Prove one claim; Ctrl-C is raised when it is done."""
    with interruptible() as check:
        result = prove(claim)
        check()
    return result


def _with_progress(
    selected: Sequence[Claim], quiet: bool, check: Callable[[], None]
) -> Iterator[Result]:
    """Results one by one, each printed when it is there; a bar on a terminal, none in a pipe."""
    if not sys.stderr.isatty() or not sys.stdout.isatty():
        for claim in selected:
            result = prove(claim)
            check()
            if not quiet:
                click.echo(line_of(result))
            yield result
        return
    results = []
    bar = click.progressbar(
        selected, label="proving", item_show_func=lambda c: c.id if c else "", file=sys.stderr
    )
    with bar as pending:
        for claim in pending:
            results.append(prove(claim))
            check()
    for result in results:
        if not quiet:
            click.echo(line_of(result))
        yield result


def line_of(result: Result) -> str:
    """One claim's line."""
    claim = result.claim
    verdict = result.verdict if result.as_expected else f"{result.verdict.upper()}!"
    if result.verdict == "refuted" and result.as_expected:
        verdict = "refuted as expected"
    axioms = ", ".join(result.axioms) or "none"
    line = (
        f"{claim.id:<3} {verdict:<19} {len(result.obligations):>4} obligations "
        f"{result.seconds * 1e3:>6.0f} ms  {claim.statement}  [axioms: {axioms}]"
    )
    return f"{line}\n    {result.failure}" if result.failure else line


def totals(results: Sequence[Result], seconds: float) -> list[str]:
    """The closing lines."""
    import z3

    wrong = [r.claim.id for r in results if not r.as_expected]
    count = sum(len(r.obligations) for r in results)
    lines = [
        f"{len(results)} claims: {sum(r.verdict == 'proved' for r in results)} proved, "
        f"{sum(r.verdict == 'refuted' for r in results)} refuted; {count} obligations in "
        f"{seconds:.1f} s; z3 {z3.get_version_string()}"
    ]
    lines.append(
        f"NOT as expected: {', '.join(wrong)}" if wrong else "every verdict is the expected one"
    )
    return lines


def explanation(given: str, smt: str | None) -> str:
    """A claim, where it is stated and proved, its theorem tree, its counterexamples."""
    (claim,) = reading.named([given])
    result = proved(claim)
    if smt is not None:
        return _obligation(result, smt)
    function = claim.function()
    source = Path(inspect.getsourcefile(function) or "").relative_to(ROOT)
    line = inspect.getsourcelines(function)[1]
    lines = [
        f"{claim.id}  {claim.statement}",
        f"  expected {claim.expected}, found {result.verdict}",
        f"  source   {claim.source}",
        f"  stated   proofs/claims.toml; proved {source}:{line} ({function.__name__})",
        *(f"  caveat   {caveat}" for caveat in claim.caveats),
        f"  axioms   {', '.join(result.axioms) or 'none'}",
        "",
        *(f"  {text}" for text in inspect.cleandoc(function.__doc__ or "").splitlines()),
    ]
    if result.failure:
        lines += ["", result.failure]
    shown: set[int] = set()
    for theorem in result.theorems:
        lines += ["", *tree(theorem, 1, shown)]
    return "\n".join(lines)


def _obligation(result: Result, name: str) -> str:
    texts = {o.name: o.text for o in result.obligations}
    if not texts:
        raise BadInput(f"{result.claim.id} has no obligations: {result.failure}")
    if name not in texts:
        raise BadInput(
            f"obligation of {result.claim.id}: given {quoted(name)}; expected one that "
            f"`psem explain {result.claim.id}` lists{or_nearest(name, texts)}"
        )
    return texts[name].rstrip()


def _cost(o: Obligation) -> str:
    return f"{o.seconds * 1e3:.1f} ms, {o.resources} resources"


def tree(
    theorem: Theorem, depth: int, shown: set[int], note: Callable[[Obligation], str] = _cost
) -> list[str]:
    """A theorem, its obligations with a note on each, and what it was made from."""
    while theorem.rule == "instance":
        (theorem,) = theorem.parts
    pad = "  " * depth
    if id(theorem) in shown:
        return [f"{pad}{theorem.name} (above)"]
    shown.add(id(theorem))
    lines = [f"{pad}{theorem.name}  by {theorem.rule}"]
    if theorem.rule in ("hypothesis", "axiom", "definition"):
        lines[0] += f": {_one_line(theorem.statement)}"
    for o in theorem.obligations:
        lines.append(f"{pad}  - {o.name}: {o.rule}, {o.expected}, {note(o)}")
    if theorem.counterexample:
        values = ", ".join(f"{k} = {v}" for k, v in theorem.counterexample.items())
        lines.append(f"{pad}  counterexample: {values}")
    for part in theorem.parts:
        lines += tree(part, depth + 1, shown, note)
    return lines


def _one_line(statement: Any, limit: int = 160) -> str:
    text = " ".join(str(statement).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
