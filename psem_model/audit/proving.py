"""Running the claims from the command line: what is printed of each, and the report."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing import get_all_start_methods, get_context

import click

from proofs.registry import Claim, Outcome, Result, areas, claims, prove, registration, report
from proofs.trusted.oracle import VERSION, Answered, forget, recall
from psem_model.audit.remembered import Memory
from psem_model.check.claims import POLL, REPORT, Tell, results, sizes, total, uncollected
from psem_model.reading.claims import named
from psem_model.text import places
from psem_model.text.errors import UserError
from psem_model.text.figures import counted
from psem_model.text.files import require_writable, write_atomically
from psem_model.text.lines import width, wrapped
from psem_model.text.progress import CLEAR, is_watched, ticker
from psem_model.text.report import Report

# modules whose claims look at the same placements, or ask much that is the same, as another's
LIKE = {
    "proofs.costs.memory": "proofs.choosing.space",
    "proofs.choosing.every_run": "proofs.checking.kept",
    "proofs.plans.products": "proofs.checking.kept",
}


def run(ids: Sequence[str], as_json: bool, jobs: int = 1, cached: bool = False) -> int:
    """Prove the selected claims and print them; 0 if every verdict is the expected one.

    `jobs`: in so many processes. `cached`: what is remembered of these sources is not proved again.
    """
    start = time.perf_counter()
    memory = Memory(tell=cached)
    selected = named(ids)
    whole = {claim.id for claim in selected} == {claim.id for claim in claims()}
    if whole:
        require_writable(places.BUILD, REPORT)
    known = memory.outcomes(selected) if cached else {}
    answers = memory.answers() if cached and len(known) < len(selected) else {}
    show = (lambda _: None) if as_json else printer()
    with ExitStack() as stack:
        check = stack.enter_context(interruptible())
        left = [claim for claim in selected if claim.id not in known]
        jobs = min(jobs, len(left))
        several = processes(jobs, answers) if jobs > 1 else recalled(answers)
        executor = stack.enter_context(several)
        outcomes = list(_each(selected, known, executor, check, show))
    new = [outcome for outcome in outcomes if outcome.claim.id not in known]
    answered = sum(asked in answers for outcome in new for asked in outcome.answers)
    told = report(outcomes, time.perf_counter() - start, len(known), answered)
    document = Report("prove", "", data=told).document()
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo()
        for line in totals(outcomes, document["seconds"], len(known), answered):
            click.echo(line)
    if whole:
        write_atomically(places.BUILD / REPORT, json.dumps(document, indent=2) + "\n")
    unfit = registration() if whole and not (cached and memory.is_fit) else []
    _remember(new, whole and not unfit, cached)
    for each in unfit:
        click.echo(f"psem: {each}", err=True)
    return 0 if all(outcome.as_expected for outcome in outcomes) and not unfit else 1


def _remember(found: Sequence[Outcome], fit: bool, cached: bool) -> None:
    """For the next run. One that remembers nothing forgets what is not as expected now."""
    memory = Memory()  # another run may have written it
    if not cached:
        found, fit = [outcome for outcome in found if not outcome.as_expected], False
    if found or (fit and not memory.is_fit):
        memory.change(found, fit)


@contextmanager
def recalled(answers: Answered) -> Iterator[None]:
    """Claims are proved in this process; what has these answers is not asked."""
    recall(answers)
    try:
        yield
    finally:
        if answers:
            forget()


@contextmanager
def processes(jobs: int, answers: Answered) -> Iterator[Executor]:
    """Processes that prove claims, and recall answers. An interrupt is this one's: they end with it."""
    context = get_context("fork" if "fork" in get_all_start_methods() else "spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begun_by, initargs=(os.getpid(), answers))
    try:
        yield pool
    except BrokenProcessPool as error:
        raise UserError(
            f"prove: one of {jobs} processes ended before it answered, perhaps for lack of memory; "
            "expected all to answer; nearest: --jobs 1"
        ) from error
    except BaseException:
        for process in [*pool._processes.values()]:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begun_by(parent: int, answers: Answered) -> None:
    """A process of another begins: an interrupt is that one's, and it ends when that one is gone."""
    recall(answers)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def outcomes_of(group: Sequence[Claim]) -> list[Outcome]:
    """Prove some claims, one after the other."""
    with uncollected():
        return [prove(claim).outcome for claim in group]


def outcomes(
    selected: Sequence[Claim], executor: Executor | None = None, tell: Tell = lambda _: None
) -> Iterator[Outcome]:
    """What comes of claims, in their order: proved here, or by any executor's workers.

    The last are begun first: later claims are mostly larger. `tell`: told how much is proved, of their
    `total`.
    """
    if executor is None:
        with uncollected():
            yield from (result.outcome for result in results(selected, tell))
        return
    known = sizes(selected)
    futures: dict[str, Future[list[Outcome]]] = {}
    for group in alike(selected):
        future = executor.submit(outcomes_of, group)
        futures |= dict.fromkeys((claim.id for claim in group), future)
    for claim in selected:
        while wait([futures[claim.id]], POLL).not_done:
            tell(sum(known[id].milliseconds for id, future in futures.items() if future.done()))
        yield next(each for each in futures[claim.id].result() if each.claim.id == claim.id)


def alike(selected: Sequence[Claim]) -> list[list[Claim]]:
    """Claims in groups, the last one's first: what a group computes alike, it computes once."""
    groups: dict[str, list[Claim]] = {}
    for claim in reversed(selected):
        groups.setdefault(LIKE.get(claim.module, claim.module), []).insert(0, claim)
    return [*groups.values()]


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Ctrl-C is noted, and raised where the yielded check is called: between claims.

    Raised in the middle of a proof it could be taken for a failure, or be lost in a destructor.
    """
    noted: list[int] = []

    def check() -> None:
        if noted and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def proved(selected: Sequence[Claim]) -> list[Result]:
    """Prove claims, with their theorems; Ctrl-C is raised when one is done."""
    found: list[Result] = []
    with interruptible() as check, ticker("proving", total(selected), patience=0) as tell:
        for result in results(selected, tell):
            found.append(result)
            check()
    return found


def _each(
    selected: Sequence[Claim],
    known: Mapping[str, Outcome],
    executor: Executor | None,
    check: Callable[[], None],
    show: Callable[[Outcome], None],
) -> Iterator[Outcome]:
    """Outcomes one by one, each shown when it is there; below them a bar, on a terminal."""
    unknown = [claim for claim in selected if claim.id not in known]
    with ticker("proving", total(unknown), patience=0) as tell:
        left = outcomes(unknown, executor, tell)
        for claim in selected:
            outcome = known.get(claim.id) or next(left)
            check()
            if is_watched():
                click.echo(CLEAR, nl=False, err=True)
            show(outcome)
            yield outcome


def printer() -> Callable[[Outcome], None]:
    """Prints outcomes as they come, with a heading where an area of claims begins."""
    known = areas()
    before: list[str] = []

    def show(result: Outcome) -> None:
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


def lines_of(result: Outcome) -> list[str]:
    """What is printed of one claim."""
    claim = result.claim
    verdict = result.verdict if result.as_expected else f"{result.verdict.upper()}!"
    if result.verdict == "refuted" and result.as_expected:
        verdict = "refuted as expected"
    row = (
        f"{claim.id:<3} {verdict:<19} {_number(result.obligations, 'obligation', 's'):<16} "
        f"{result.seconds * 1e3:>6.0f} ms {_number(len(result.hypotheses), 'hypothes', 'es', 'is')}"
    )
    lines = [row] if len(row) <= width() else wrapped(" ".join(row.split()), "", "    ")
    rests = f"axioms: {', '.join(result.axioms) or 'none'}{claim.part}"
    lines += wrapped(f"{claim.statement} [{rests}]", "    ")
    lines += wrapped(claim.formula, "    ")
    if claim.caveat:
        lines += wrapped(f"caveat: {claim.caveat}", "    ")
    return [*lines, *wrapped(result.failure, "    ")]


def _number(of: int, what: str, many: str, one: str = "") -> str:
    return f"{of:>4} {what}{one if of == 1 else many}"


def totals(
    outcomes: Sequence[Outcome], seconds: float, remembered: int = 0, answers: int = 0
) -> list[str]:
    """The closing lines. `remembered`: so many outcomes; `answers`: so many answers of the others."""
    wrong = [r.claim.id for r in outcomes if not r.as_expected]
    count = sum(r.obligations for r in outcomes)
    lines = wrapped(
        f"{counted(len(outcomes), 'claim')}: {sum(r.verdict == 'proved' for r in outcomes)} proved, "
        f"{sum(r.verdict == 'refuted' for r in outcomes)} refuted; {counted(count, 'obligation')} in "
        f"{seconds:.1f} s; z3 {VERSION}"
    )
    which = "all" if remembered == len(outcomes) else f"{remembered:,}"
    kept = [f"{which} of them remembered, of the same sources"] if remembered else []
    kept += [f"{counted(answers, 'answer')} remembered, to the same texts"] if answers else []
    if kept:
        lines += wrapped(f"{'; '.join(kept)}: --no-cache proves all again")
    said = f"NOT as expected: {', '.join(wrong)}" if wrong else "every verdict is the expected one"
    return [*lines, *wrapped(said)]
