"""B1: pipelines executed, each work as soon as it can be, take and hold what closed forms say.

A few of each order, in numbers: what a step takes, how long a stage idles in it, and among other steps,
and how many micro-batches are in flight on each stage.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import accumulate, pairwise

from proofs.trusted.kernel import KernelError
from spec.pipelines.idle_and_held import (
    bubble,
    bubble_repeated,
    fullest,
    fullest_in_order,
    in_flight,
    makespan,
)
from spec.pipelines.pipeline import Half, Order, Pipeline, works_of_stage
from spec.pipelines.timeline import timed, timeline

FORWARD, BACKWARD, WEIGHTS = Fraction(3), Fraction(7), Fraction(2)
PIPES = (
    Pipeline(Order.GPIPE, 3, 4, 1, FORWARD, BACKWARD),
    Pipeline(Order.ONE_F_ONE_B, 3, 5, 1, FORWARD, BACKWARD),
    Pipeline(Order.INTERLEAVED, 3, 6, 2, FORWARD, BACKWARD),
    Pipeline(Order.ZB_H1, 3, 6, 1, FORWARD, BACKWARD, of_weights=WEIGHTS),
    Pipeline(Order.ZB_H2, 3, 6, 1, FORWARD, BACKWARD, of_weights=WEIGHTS),
    Pipeline(Order.ZB_H2, 3, 6, 1, Fraction(5), Fraction(9), of_weights=Fraction(4)),
    Pipeline(Order.DUALPIPE_V, 3, 8, 2, FORWARD, FORWARD + WEIGHTS, of_weights=WEIGHTS),
)


def require_executed() -> None:
    """Raise KernelError unless pipelines that are executed are as closed forms say."""
    for pipe in PIPES:
        run, stages = timeline(pipe), range(pipe.stages)
        flights = [run.in_flight(stage) for stage in stages]
        if run.makespan != makespan(pipe) or flights != [in_flight(pipe, stage) for stage in stages]:
            raise KernelError(f"B1: {pipe} takes {run.makespan}, and has {flights} in flight")
        idle = [run.idle(stage) for stage in stages]  # on the first stage most
        if run.bubble(0) != bubble(pipe) or not max(idle) == idle[0] == bubble_repeated(pipe):
            raise KernelError(f"B1: {pipe} idles {run.bubble(0)}, among others {idle}")
        if not pipe.in_two_parts and any(_holds_otherwise(pipe, stage) for stage in stages):
            raise KernelError(f"B1: {pipe} holds otherwise than its order says")
        if any(_keeps_otherwise(pipe, stage) for stage in stages):
            raise KernelError(f"B1: what chunks of {pipe} keep once is there otherwise than while used")
        _require_waiting(pipe)


def _require_waiting(pipe: Pipeline) -> None:
    """Raise KernelError unless no stage does a unit's work before the one that it is made from."""
    orders = [works_of_stage(pipe, stage) for stage in range(pipe.stages)]
    for stage, works in enumerate(orders):
        for early, late in pairwise(pipe.durations):
            before, after = (next(w for w in works if w.half is half) for half in (early, late))
            exchanged = {before: after, after: before}
            wrong = [exchanged.get(work, work) for work in works]
            try:
                timed([*orders[:stage], wrong, *orders[stage + 1 :]], pipe)
            except ValueError:
                continue
            raise KernelError(f"B1: {pipe} does {after} before {before} on stage {stage}")


def _holds_otherwise(pipe: Pipeline, stage: int) -> bool:
    """Whether a stage whose chunks keep unlike sizes holds more, or less, than its order says."""
    sizes = range(1, pipe.chunks + 1)
    works = works_of_stage(pipe, stage)
    held = accumulate(sizes[w.chunk] * (1 if w.half is Half.FORWARD else -1) for w in works)
    return fullest(pipe, stage, sizes) != max(held)


def _keeps_otherwise(pipe: Pipeline, stage: int) -> bool:
    """Whether what a chunk keeps once is not there just while any of its micro-batches is."""
    works, chunks = works_of_stage(pipe, stage), range(pipe.chunks)
    ends = Half.WEIGHTS if pipe.in_two_parts else Half.BACKWARD
    once, nothing, moments = [2**chunk for chunk in chunks], [0 for _ in chunks], []
    for number, _ in enumerate(works, 1):
        done = Counter((work.half, work.chunk) for work in works[:number])
        there = (chunk for chunk in chunks if done[Half.FORWARD, chunk] > done[ends, chunk])
        moments.append(sum(once[chunk] for chunk in there))
    return fullest_in_order(pipe, stage, nothing, nothing, nothing, once) != max(moments)
