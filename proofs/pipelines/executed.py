"""B1: pipelines of every order are as they are published, and executed and counted work by work.

Numbers, on few stages: each stage's order, when it starts each work, what a step takes, how long a
stage idles in it, and among other steps, and what it holds at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import chain, pairwise, product
from typing import Any

from proofs.pipelines.listed_orders import Execution, path
from proofs.trusted.kernel import KernelError
from spec.pipelines.idle_and_held import (
    boundaries,
    bubble,
    bubble_of_ideal,
    bubble_of_makespan,
    bubble_repeated,
    fullest,
    fullest_in_order,
    fullest_in_two_parts,
    fullest_of_sums,
    ideal,
    in_flight,
    makespan,
    repeated_of_ideal,
    waiting_beside,
)
from spec.pipelines.pipeline import (
    STRETCH,
    Half,
    Order,
    Pipeline,
    Work,
    is_one_work,
    least_micro_batches,
    place_of,
    require_schedule,
    virtual_stage,
    works_of_stage,
)
from spec.pipelines.stages import may_update
from spec.pipelines.timeline import timed, timeline

FORWARD, BACKWARD, WEIGHTS = 3, 7, 2
ONE, TWO = (FORWARD, BACKWARD), (FORWARD, FORWARD + WEIGHTS)
PIPES = (
    Pipeline(Order.GPIPE, 3, 4, 1, *ONE),
    Pipeline(Order.ONE_F_ONE_B, 3, 5, 1, *ONE),
    Pipeline(Order.ONE_F_ONE_B, 4, 2, 1, *ONE),
    Pipeline(Order.INTERLEAVED, 3, 6, 2, *ONE),
    Pipeline(Order.INTERLEAVED, 2, 6, 3, *ONE),
    Pipeline(Order.INTERLEAVED, 1, 1, 2, *ONE),
    Pipeline(Order.INTERLEAVED, 1, 3, 2, *ONE),
    Pipeline(Order.ZB_H1, 3, 6, 1, *ONE, of_weights=WEIGHTS),
    Pipeline(Order.ZB_H2, 3, 6, 1, *ONE, of_weights=WEIGHTS),
    Pipeline(Order.ZB_H2, 3, 6, 1, 5, 9, of_weights=4),
    Pipeline(Order.DUALPIPE_V, 1, 2, 2, *TWO, of_weights=WEIGHTS),
    Pipeline(Order.DUALPIPE_V, 2, 5, 2, *TWO, of_weights=WEIGHTS),
    Pipeline(Order.DUALPIPE_V, 3, 8, 2, *TWO, of_weights=WEIGHTS),
)
UNLIKE = (
    Pipeline(Order.DUALPIPE_V, 3, 6, 2, FORWARD, FORWARD + BACKWARD, of_weights=BACKWARD),
    Pipeline(Order.DUALPIPE_V, 3, 6, 2, *ONE, of_weights=WEIGHTS),
    Pipeline(Order.DUALPIPE_V, 3, 6, 2, Fraction(7), Fraction(7), of_weights=Fraction(WEIGHTS)),
)  # other times, of which no closed form is known
# of chunks: before a backward, in its first part, after it; and once
SIZES, DURING, AFTER, ONCE = (5, 3, 11), (17, 6, 12), (4, 70, 2), (10**3, 10**4, 10**5)
NOTHING = (0, 0, 0)


def require_executed() -> None:
    """Raise KernelError unless pipelines are as what is listed, executed and counted says."""
    for pipe in (*PIPES, *UNLIKE):
        run = Execution(pipe)
        for name, (said, counted) in chain(_of_stages(run), _of_times(run), _of_places(run)):
            if said != counted:
                raise KernelError(f"B1: {pipe}: {name}: {said}, and not {counted}")
        _require_waiting(pipe)
    _require_refused()


Compared = Iterator[tuple[str, tuple[Any, Any]]]  # what a rule says, and what is counted


def _of_stages(run: Execution) -> Compared:
    """Each stage's order, its times, and the most that it holds at once."""
    pipe, line, v, span = run.pipe, timeline(run.pipe), run.pipe.chunks, run.own_span(*run.stages)
    sizes, during, after, once = (each[:v] for each in (SIZES, DURING, AFTER, ONCE))
    after, nothing = after if pipe.in_two_parts else NOTHING[:v], NOTHING[:v]
    yield "makespan", (line.makespan, span)
    for k in run.stages:
        yield "works", (works_of_stage(pipe, k), run.works[k])
        begin, last = {turn[0] for turn in run.turns[k]}, (run.last, 0, 0)
        two = [each for each in pairwise(run.works[k]) if (each[1].half, each[1].chunk, k) != last]
        one = [is_one_work(pipe, k, *each) for each in two]  # but last parts, which pass on nothing
        yield "works that are one", (one, [work not in begin for _, work in two])
        yield "starts", (line.starts[k], run.starts[k])
        yield "bubble", (line.bubble(k), span - run.work(k))
        yield "idle among steps", (line.idle(k), run.own_span(k) - run.work(k))
        phases = [[phase for phase, _ in each] for each in run.there(k)]
        flight = max(len(each) - each.count(2) for each in phases)
        beside = max(each.count(2) for each in phases if len(each) - each.count(2) == flight)
        yield "in flight", ((line.in_flight(k), in_flight(pipe, k)), (flight, flight))
        yield "waiting beside", (waiting_beside(pipe, k), beside)
        for kept, late in ((once, after[::-1]), (once, after), (nothing, after)):
            held = run.most_held(k, kept, sizes, during, late)
            yield "held", (fullest_in_order(pipe, k, sizes, late, during, kept), held)
        if pipe.order in STRETCH:
            yield "held, closed", (fullest_in_two_parts(pipe, k, *sizes, *after, *during), held)
        elif not pipe.in_two_parts:
            yield "held, closed", (fullest(pipe, k, sizes), run.most_held(k, nothing, sizes, sizes))
        for left in (AFTER, DURING, NOTHING):
            yield "sums", (fullest_of_sums(pipe, k, sizes, left), run.most_of_sums(k, sizes, left))


def _of_times(run: Execution) -> Compared:
    """What a step takes, and its idle parts: of the first stage, among steps of none more."""
    pipe, span, work = run.pipe, run.own_span(*run.stages), run.work(0)
    idle, among = span - work, max(run.own_span(k) - run.work(k) for k in run.stages)
    yield "ideal", (ideal(pipe), work)
    if pipe in UNLIKE:
        with suppress(ValueError):
            raise KernelError(f"B1: {pipe} has a closed form of its idle time, {bubble(pipe)}")
        return
    yield "closed times", ((makespan(pipe), bubble(pipe)), (span, idle))
    yield "of the ideal", (bubble_of_ideal(pipe), Fraction(idle, work))
    yield "of the makespan", (bubble_of_makespan(pipe), Fraction(idle, span))
    yield "among steps", (bubble_repeated(pipe), among)
    yield "among steps, of the first stage", (among, run.own_span(0) - work)
    yield "among steps, of the ideal", (repeated_of_ideal(pipe), Fraction(among, work))


def _of_places(run: Execution) -> Compared:
    """Where chunks are, what passes between stages, and how many works there are."""
    pipe, places = run.pipe, path(run.pipe)
    yield "places", ([place_of(pipe, virtual) for virtual in range(len(places))], places)
    yield "virtual stages", ([virtual_stage(pipe, *at) for at in places], [*range(len(places))])
    sent = sum(before != after for (before, _), (after, _) in pairwise(places))
    if pipe.stages > 1:
        yield "boundaries", (boundaries(pipe), sent)
    all_works = len(run.works[0])
    updates = [may_update(done, pipe.works) for done in range(all_works + 1)]
    yield "updates", (updates, [False] * all_works + [True])


def _require_waiting(pipe: Pipeline) -> None:
    """Raise KernelError unless no stage does a unit's work before one that it is made from."""
    orders = [works_of_stage(pipe, stage) for stage in range(pipe.stages)]
    units = [[(k, Work(half, 0, c)) for half in pipe.durations] for k, c in path(pipe)]
    passed = [[(k, Work(half, 0, c)) for k, c in path(pipe)] for half in (Half.FORWARD, Half.BACKWARD)]
    for (stage, before), (other, after) in chain(*map(pairwise, (*units, *passed))):
        if stage == other:
            exchanged = {before: after, after: before}
            wrong = [exchanged.get(work, work) for work in orders[stage]]
            with suppress(ValueError):
                timed([*orders[:stage], wrong, *orders[stage + 1 :]], pipe)
                raise KernelError(f"B1: {pipe} does {after} before {before} on stage {stage}")


def _require_refused() -> None:
    """Raise KernelError unless all schedules that there are not are refused, and no other."""
    least = {Order.ZB_H1: (1, 0), Order.ZB_H2: (2, -1), Order.DUALPIPE_V: (2, 0)}  # of stages, and more
    for order, p, m, v in product(Order, range(4), range(7), range(4)):
        each, more = least.get(order, (0, 1))
        groups, chunks = order is Order.INTERLEAVED, 2 if order is Order.DUALPIPE_V else 1
        there_is = min(p, m, v) > 0 and m >= each * p + more and (m % p == 0 if groups else v == chunks)
        pipe = Pipeline(order, p, m, v)
        if _is_refused(pipe) is there_is or (p and least_micro_batches(pipe) != each * p + more):
            raise KernelError(f"B1: {pipe} is refused, or is not")
    for pipe, times in product(PIPES, ((0, 2, 1), (1, 1, 1), (1, 2, 0), (1, 2, 1))):
        f, b, w = times
        if _is_refused(pipe := replace(pipe, forward=f, backward=b, of_weights=w)) is (
            f > 0 and (not pipe.in_two_parts or b > w > 0)
        ):
            raise KernelError(f"B1: {pipe} is refused, or is not")
    for stage in (-1, 3):
        with suppress(ValueError):
            works_of_stage(PIPES[0], stage)
            raise KernelError(f"B1: there is no stage {stage}")
    with suppress(ValueError):
        timeline(nothing := replace(PIPES[0], stages=0))
        raise KernelError(f"B1: {nothing} is executed")


def _is_refused(pipe: Pipeline) -> bool:
    """Whether there is no such schedule."""
    try:
        require_schedule(pipe)
    except ValueError:
        return True
    return False
