"""Running the claims from the command line: what is printed of each, and the report."""

from __future__ import annotations

import gc
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from proofs.registry import Claim, Result, areas, claims, prove, registration, report
from psem_model.reading.claims import named
from psem_model.text import places
from psem_model.text.figures import counted
from psem_model.text.files import require_writable, write_atomically
from psem_model.text.lines import width, wrapped
from psem_model.text.progress import ticker

REPORT = "report.json"
CLEAR = "\r\033[K"  # of the terminal's line: the bar


def run(ids: Sequence[str], as_json: bool) -> int:
    """Prove the selected claims and print them; 0 if every verdict is the expected one."""
    selected = named(ids)
    whole = len(selected) == len(claims())
    if whole:
        require_writable(places.BUILD, REPORT)
    start = time.perf_counter()
    with uncollected(), interruptible() as check:
        results = list(_each(selected, check, (lambda _: None) if as_json else printer()))
    document = report(results, time.perf_counter() - start)
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo()
        for line in totals(results, document["seconds"]):
            click.echo(line)
    if whole:
        write_atomically(places.BUILD / REPORT, json.dumps(document, indent=2) + "\n")
    unfit = registration() if whole else []
    for each in unfit:
        click.echo(f"psem: {each}", err=True)
    return 0 if all(result.as_expected for result in results) and not unfit else 1


@contextmanager
def uncollected() -> Iterator[None]:
    """Python's collector is off: theorems stay to the end, and there is little to collect."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # not when the process ends, either
        if was_on:
            gc.enable()


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


def _each(
    selected: Sequence[Claim], check: Callable[[], None], show: Callable[[Result], None]
) -> Iterator[Result]:
    """Results one by one, each shown when it is there; below them a bar, on a terminal."""
    with ticker("proving", len(selected), patience=0) as tell:
        for done, claim in enumerate(selected, 1):
            tell(done - 1)
            result = prove(claim)
            check()
            if sys.stderr.isatty():
                click.echo(CLEAR, nl=False, err=True)
            show(result)
            yield result


def printer() -> Callable[[Result], None]:
    """Prints results as they come, with a heading where an area of claims begins."""
    known = areas()
    before: list[str] = []

    def show(result: Result) -> None:
        area = result.claim.area
        if before[-1:] != [area]:
            if before:
                click.echo()
            for line in wrapped(f"{area}: {known.get(area, area)}"):
                click.echo(line)
            before.append(area)
        for line in lines_of(result):
            click.echo(line)

    return show


def lines_of(result: Result) -> list[str]:
    """What is printed of one claim."""
    claim = result.claim
    verdict = result.verdict if result.as_expected else f"{result.verdict.upper()}!"
    if result.verdict == "refuted" and result.as_expected:
        verdict = "refuted as expected"
    row = (
        f"{claim.id:<3} {verdict:<19} {_number(result.obligations, 'obligation', 's'):<16} "
        f"{result.seconds * 1e3:>6.0f} ms {_number(result.hypotheses, 'hypothes', 'es', 'is')}"
    )
    lines = [row] if len(row) <= width() else wrapped(" ".join(row.split()), "", "    ")
    lines += wrapped(f"{claim.statement} [axioms: {', '.join(result.axioms) or 'none'}]", "    ")
    lines += wrapped(claim.formula, "    ")
    if claim.caveat:
        lines += wrapped(f"caveat: {claim.caveat}", "    ")
    return [*lines, *wrapped(result.failure, "    ")]


def _number(of: Sequence[Any], what: str, many: str, one: str = "") -> str:
    return f"{len(of):>4} {what}{one if len(of) == 1 else many}"


def totals(results: Sequence[Result], seconds: float) -> list[str]:
    """The closing lines."""
    import z3

    wrong = [r.claim.id for r in results if not r.as_expected]
    count = sum(len(r.obligations) for r in results)
    lines = wrapped(
        f"{counted(len(results), 'claim')}: {sum(r.verdict == 'proved' for r in results)} proved, "
        f"{sum(r.verdict == 'refuted' for r in results)} refuted; {counted(count, 'obligation')} in "
        f"{seconds:.1f} s; z3 {z3.get_version_string()}"
    )
    said = f"NOT as expected: {', '.join(wrong)}" if wrong else "every verdict is the expected one"
    return [*lines, *wrapped(said)]
