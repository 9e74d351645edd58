"""Pipelines executed: when each stage does each work, by what it needs and its order alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from spec.pipelines.pipeline import (
    Half,
    Pipeline,
    Work,
    is_one_work,
    place_of,
    require_schedule,
    virtual_stage,
    works_of_stage,
)


def waits_for(work: Work, stage: int, pipe: Pipeline) -> tuple[int, Work] | None:
    """The work, and its stage, that must have ended before this one starts."""
    virtual, last = virtual_stage(pipe, stage, work.chunk), pipe.virtual_stages - 1
    if work.half is Half.WEIGHTS:
        return stage, work._replace(half=Half.BACKWARD)
    if work.half is Half.FORWARD:
        before, phase = virtual - 1, Half.FORWARD
    elif virtual == last:  # the loss
        before, phase = virtual, Half.FORWARD
    else:
        before, phase = virtual + 1, Half.BACKWARD
    if before < 0:
        return None
    stage, chunk = place_of(pipe, before)
    return stage, Work(phase, work.micro_batch, chunk)


@dataclass(frozen=True)
class Timeline:
    """When each stage starts each work, and the times of the works of a unit."""

    starts: tuple[dict[Work, Fraction], ...]
    durations: dict[Half, Fraction]

    @property
    def makespan(self) -> Fraction:
        """From the first start to the last end: the first stage starts at 0."""
        return max(
            start + self.durations[work.half] for stage in self.starts for work, start in stage.items()
        )

    def bubble(self, stage: int) -> Fraction:
        """Time in which a stage does nothing."""
        return self.makespan - sum(self.durations[work.half] for work in self.starts[stage])

    def idle(self, stage: int) -> Fraction:
        """That, from a stage's own first start to its own last end.

        So long it idles in a step among others, if none waits for other stages to end the one before.
        """
        works = self.starts[stage].items()
        first = min(start for _, start in works)
        last = max(start + self.durations[work.half] for work, start in works)
        return last - first - self.makespan + self.bubble(stage)

    def in_flight(self, stage: int) -> int:
        """The most units at once whose forward has started and whose backward has not ended."""
        # one thing at a time: the order alone says it, and a backward gives back what it ends
        started = sorted(self.starts[stage], key=self.starts[stage].__getitem__)
        given = {Half.FORWARD: 1, Half.BACKWARD: -1, Half.WEIGHTS: 0}
        return max(accumulate(given[work.half] for work in started))


def timed(orders: Sequence[Sequence[Work]], pipe: Pipeline) -> Timeline:
    """Each stage does its work in its order, one thing at a time, each as soon as it can.

    Works that are one start when all has come that they need from other stages, and pass on what they
    make when all have ended. Raises ValueError on a deadlock: every stage that has work left waits.
    """
    takes = {half: Fraction(time) for half, time in pipe.durations.items()}
    starts: tuple[dict[Work, Fraction], ...] = tuple({} for _ in orders)
    ended: tuple[dict[Work, Fraction], ...] = tuple({} for _ in orders)
    free = [Fraction(0)] * len(orders)
    left = [_one_by_one(pipe, k, works) for k, works in enumerate(orders)]
    while stages := [k for k, works in enumerate(left) if works]:
        waiting = []
        for k in stages:
            works = left[k][-1]
            own = [(k, work) for work in works]
            found = [need for work in works if (need := waits_for(work, k, pipe)) and need not in own]
            late = [work for stage, work in found if work not in ended[stage]]
            if late:
                waiting.append(f"stage {k} waits for {late[0].half.value} of {late[0].micro_batch}")
                continue
            now = max([free[k], *(ended[stage][work] for stage, work in found)])
            for work in left[k].pop():
                starts[k][work] = now
                now += takes[work.half]
            free[k] = now
            ended[k].update(dict.fromkeys(works, now))
        if len(waiting) == len(stages):
            raise ValueError(f"deadlock: {'; '.join(waiting)}")
    return Timeline(starts, takes)


def _one_by_one(pipe: Pipeline, stage: int, works: Sequence[Work]) -> list[list[Work]]:
    """A stage's works, those that are one together; the first last."""
    found: list[list[Work]] = []
    for work in works:
        if found and is_one_work(pipe, stage, found[-1][-1], work):
            found[-1].append(work)
        else:
            found.append([work])
    return found[::-1]


def timeline(pipe: Pipeline) -> Timeline:
    """A pipeline's orders, executed. Raises ValueError for one that has no such schedule."""
    require_schedule(pipe)
    return timed([works_of_stage(pipe, stage) for stage in range(pipe.stages)], pipe)
