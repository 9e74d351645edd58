"""Pipelines executed: when each stage does each work, by what it needs and its order alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from spec.numbers.arithmetic import Number
from spec.pipelines.pipeline import Half, Pipeline, Work, order, require_schedule


def needs(work: Work, stage: int, stages: int, chunks: int) -> tuple[int, Work] | None:
    """The work, and its stage, that must have ended before this one starts."""
    virtual, last = work.chunk * stages + stage, stages * chunks - 1
    if work.phase is Half.WEIGHTS:
        return stage, work._replace(phase=Half.BACKWARD)
    if work.phase is Half.FORWARD:
        before, phase = virtual - 1, Half.FORWARD
    elif virtual == last:  # the loss
        before, phase = virtual, Half.FORWARD
    else:
        before, phase = virtual + 1, Half.BACKWARD
    if before < 0:
        return None
    chunk, stage = divmod(before, stages)
    return stage, Work(phase, work.micro_batch, chunk)


@dataclass(frozen=True)
class Timeline:
    """When each stage starts each work, and the times of the works of a unit."""

    starts: tuple[dict[Work, Fraction], ...]
    times: dict[Half, Fraction]

    @property
    def span(self) -> Fraction:
        """From the first start to the last end: the first stage starts at 0."""
        return max(
            start + self.times[work.phase] for stage in self.starts for work, start in stage.items()
        )

    def bubble(self, stage: int) -> Fraction:
        """Time in which a stage does nothing."""
        return self.span - sum(self.times[work.phase] for work in self.starts[stage])

    def idle(self, stage: int) -> Fraction:
        """That, from a stage's own first start to its own last end.

        So long it idles in a step among others, if none waits for other stages to end the one before.
        """
        works = self.starts[stage].items()
        first = min(start for _, start in works)
        last = max(start + self.times[work.phase] for work, start in works)
        return last - first - self.span + self.bubble(stage)

    def in_flight(self, stage: int) -> int:
        """The most units at once whose forward has started and whose backward has not ended."""
        # one thing at a time: the order alone says it, and a backward gives back what it ends
        started = sorted(self.starts[stage], key=self.starts[stage].__getitem__)
        given = {Half.FORWARD: 1, Half.BACKWARD: -1, Half.WEIGHTS: 0}
        return max(accumulate(given[work.phase] for work in started))


def timed(orders: Sequence[Sequence[Work]], chunks: int, times: Mapping[Half, Number]) -> Timeline:
    """Each stage does its work in its order, one thing at a time, each as soon as it can.

    Raises ValueError on a deadlock: every stage that has work left waits.
    """
    takes = {half: Fraction(time) for half, time in times.items()}
    starts: tuple[dict[Work, Fraction], ...] = tuple({} for _ in orders)
    free = [Fraction(0)] * len(orders)
    while stages := [k for k, work in enumerate(orders) if len(starts[k]) < len(work)]:
        waiting = []
        for k in stages:
            work = orders[k][len(starts[k])]
            need = needs(work, k, len(orders), chunks)
            if need and need[1] not in starts[need[0]]:
                waiting.append(f"stage {k} waits for {need[1].phase.value} of {need[1].micro_batch}")
                continue
            ready = starts[need[0]][need[1]] + takes[need[1].phase] if need else Fraction(0)
            starts[k][work] = max(ready, free[k])
            free[k] = starts[k][work] + takes[work.phase]
        if len(waiting) == len(stages):
            raise ValueError(f"deadlock: {'; '.join(waiting)}")
    return Timeline(starts, takes)


def timeline(pipe: Pipeline) -> Timeline:
    """A pipeline's orders, executed. Raises ValueError for one that has no such schedule."""
    require_schedule(pipe)
    orders = [order(pipe, stage) for stage in range(pipe.stages)]
    return timed(orders, pipe.chunks, pipe.times)
