"""Pipeline parallelism: each stage's order of work, what follows from it alone, and closed forms.

The layers are cut among p stages, v chunks each: chunk c of stage k is virtual stage c p + k. A step
has m micro-batches. A unit is the forward and the backward of one micro-batch through one chunk; a
stage has m v of them. Times are per unit: 1/v of what a whole stage takes.

One rule orders all three schedules (`runs_forward`); they differ in the length of the warm-up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import accumulate, product
from typing import Any, NamedTuple

from spec.numbers.arithmetic import EXACT, Arithmetic, Number


class Order(Enum):
    """GPipe (arXiv 1811.06965), 1F1B and interleaved 1F1B (arXiv 2104.04473, section 2.2)."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"


class Half(Enum):
    """The two halves of a unit."""

    FORWARD = "forward"
    BACKWARD = "backward"


class Work(NamedTuple):
    """What a stage does at a time: one micro-batch through one chunk, forward or backward."""

    phase: Half
    micro_batch: int
    chunk: int


@dataclass(frozen=True)
class Pipeline:
    """p stages of v chunks, m micro-batches, and the times of one micro-batch through one chunk."""

    kind: Order
    stages: Number
    micro_batches: Number
    chunks: Number = 1
    forward: Number = 1
    backward: Number = 2

    @property
    def units(self) -> Number:
        """Forwards of each stage, and as many backwards."""
        return self.micro_batches * self.chunks

    @property
    def virtual_stages(self) -> Number:
        """Chunks that a micro-batch passes through."""
        return self.stages * self.chunks


# ------------------------------------------------------------------ the order of a stage's work
def warm_up(pipe: Pipeline, stage: Number) -> Number:
    """Units a stage holds, at most, when it starts one more forward."""
    stages_after = pipe.stages - 1 - stage
    return {
        Order.GPIPE: pipe.units,
        Order.ONE_F_ONE_B: stages_after,
        Order.INTERLEAVED: 2 * stages_after + (pipe.chunks - 1) * pipe.stages,
    }[pipe.kind]


def runs_forward(pipe: Pipeline, stage: Number, forwards: Number, backwards: Number) -> tuple[Any, Any]:
    """When a stage that has done so many runs a forward next (both must hold), not a backward."""
    return forwards < pipe.units, forwards - backwards <= warm_up(pipe, stage)


def forward_unit(pipe: Pipeline, group: Number, chunk: Number, place: Number) -> Number:
    """The number, from 0, of micro-batch group p + place through a chunk among a stage's forwards.

    Micro-batches go in groups of p: a group passes chunk 0, then chunk 1, before the next group.
    """
    return group * pipe.virtual_stages + chunk * pipe.stages + place


def backward_unit(pipe: Pipeline, group: Number, chunk: Number, place: Number) -> Number:
    """Its number among the stage's backwards: a group comes back through the last chunk first."""
    return forward_unit(pipe, group, pipe.chunks - 1 - chunk, place)


def order(pipe: Pipeline, stage: int) -> list[Work]:
    """All work of a stage. Raises ValueError for a pipeline that has no such schedule."""
    _require_schedule(pipe)
    if not 0 <= stage < pipe.stages:
        raise ValueError(f"stage {stage}: expected one of 0 to {pipe.stages - 1}")
    forwards = _in_turn(pipe, Half.FORWARD, forward_unit)
    backwards = _in_turn(pipe, Half.BACKWARD, backward_unit)
    f = b = 0
    found = []
    while b < pipe.units:
        if all(runs_forward(pipe, stage, f, b)):
            found.append(forwards[f])
            f += 1
        else:
            found.append(backwards[b])
            b += 1
    return found


def _in_turn(pipe: Pipeline, phase: Half, number: Callable[..., Number]) -> list[Work]:
    """A stage's forwards, or its backwards, by their numbers."""
    p, numbered = pipe.stages, []
    for micro_batch, chunk in product(range(pipe.micro_batches), range(pipe.chunks)):
        at = number(pipe, micro_batch // p, chunk, micro_batch % p)
        numbered.append((at, Work(phase, micro_batch, chunk)))
    return [work for _, work in sorted(numbered, key=lambda pair: pair[0])]


def _require_schedule(pipe: Pipeline) -> None:
    p, m, v = pipe.stages, pipe.micro_batches, pipe.chunks
    if min(p, m, v) < 1:
        raise ValueError(f"{p} stages, {m} micro-batches, {v} chunks: each must be at least 1")
    if min(pipe.forward, pipe.backward) <= 0:
        raise ValueError(f"times {pipe.forward} and {pipe.backward}: each must be more than 0")
    if pipe.kind is not Order.INTERLEAVED and v > 1:
        raise ValueError(f"{pipe.kind.value} has one chunk per stage, not {v}")
    if pipe.kind is Order.INTERLEAVED and m % p:
        raise ValueError(f"{m} micro-batches do not make whole groups of {p}, one per stage")


# ------------------------------------------------------------ what follows from the dependencies
def needs(work: Work, stage: int, stages: int, chunks: int) -> tuple[int, Work] | None:
    """The work, and its stage, that must have ended before this one starts."""
    virtual, last = work.chunk * stages + stage, stages * chunks - 1
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
    """When each stage starts each work, and the times of one forward and one backward."""

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

    def in_flight(self, stage: int) -> int:
        """The most units at once whose forward has started and whose backward has not ended."""
        # one thing at a time: the order alone says it, and a backward gives back what it ends
        started = sorted(self.starts[stage], key=self.starts[stage].__getitem__)
        return max(accumulate(1 if work.phase is Half.FORWARD else -1 for work in started))


def timed(
    orders: Sequence[Sequence[Work]], chunks: int, forward: Fraction | int, backward: Fraction | int
) -> Timeline:
    """Each stage does its work in its order, one thing at a time, each as soon as it can.

    Raises ValueError on a deadlock: every stage that has work left waits.
    """
    times = {Half.FORWARD: Fraction(forward), Half.BACKWARD: Fraction(backward)}
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
            ready = starts[need[0]][need[1]] + times[need[1].phase] if need else Fraction(0)
            starts[k][work] = max(ready, free[k])
            free[k] = starts[k][work] + times[work.phase]
        if len(waiting) == len(stages):
            raise ValueError(f"deadlock: {'; '.join(waiting)}")
    return Timeline(starts, times)


def timeline(pipe: Pipeline) -> Timeline:
    """A pipeline's orders, executed. Raises ValueError for one that has no such schedule."""
    _require_schedule(pipe)
    orders = [order(pipe, stage) for stage in range(pipe.stages)]
    return timed(orders, pipe.chunks, pipe.forward, pipe.backward)


# --------------------------------------------------------------------------------- closed forms
def forward_start(
    pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """When a stage starts forward number `unit`, in a timetable that keeps all orders.

    Nothing in GPipe can start earlier, and in 1F1B only the warm-up (`warm_up_start`). Interleaved,
    some work can, but the step cannot end earlier.
    """
    turn = stage + unit
    if pipe.kind is Order.ONE_F_ONE_B:
        return stage * pipe.forward + unit * (pipe.forward + pipe.backward)
    if pipe.kind is Order.GPIPE:
        return turn * pipe.forward
    # once the first micro-batch has come through, backwards go between
    between = arithmetic.maximum(0, turn - (pipe.virtual_stages - 1))
    return turn * pipe.forward + between * pipe.backward


def warm_up_start(pipe: Pipeline, stage: Number, unit: Number) -> Number:
    """When the forwards before a stage's first backward can start: in 1F1B those below p - k."""
    return (stage + unit) * pipe.forward


def backward_start(
    pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """When a stage starts backward number `unit`, in the same timetable."""
    stages_after = pipe.stages - 1 - stage
    turn = stages_after + unit
    if pipe.kind is Order.ONE_F_ONE_B:
        forwards = pipe.stages + unit
    elif pipe.kind is Order.GPIPE:
        forwards = pipe.stages - 1 + pipe.units
    else:
        # no forward goes between any more, once they are all done
        forwards = _minimum(arithmetic, turn + pipe.virtual_stages, pipe.stages - 1 + pipe.units)
    return forwards * pipe.forward + turn * pipe.backward


def ideal(pipe: Pipeline) -> Number:
    """Time of a stage's work: m (f + b) with the times of a whole stage."""
    return pipe.units * (pipe.forward + pipe.backward)


def bubble(pipe: Pipeline) -> Number:
    """Time each stage does nothing: the same for all three, in the times of one chunk.

    (p - 1)(f + b)/v with the times of a whole stage (arXiv 2104.04473, sections 2.2.1 and 2.2.2).
    """
    return (pipe.stages - 1) * (pipe.forward + pipe.backward)


def span(pipe: Pipeline) -> Number:
    """Time from the first start to the last end."""
    return ideal(pipe) + bubble(pipe)


def bubble_of_ideal(pipe: Pipeline) -> Number:
    """Idle time for each time of work: (p - 1)/(v m) (arXiv 2104.04473, section 2.2.2)."""
    return _ratio(pipe.stages - 1, pipe.units)


def bubble_of_span(pipe: Pipeline) -> Number:
    """Idle part of the whole: (p - 1)/(v m + p - 1) (GPipe, arXiv 1811.06965, section 2.3)."""
    return _ratio(pipe.stages - 1, pipe.units + pipe.stages - 1)


def in_flight(pipe: Pipeline, stage: Number, arithmetic: Arithmetic = EXACT) -> Number:
    """The most units whose activations a stage holds at once, of L/(p v) layers each.

    GPipe m; 1F1B min(m, p - k); interleaved on stage 0 p v + p - 1, that is L (1 + (p - 1)/(p v))
    layers' worth, or m v if that is less (arXiv 2205.05198, section 4.2.3).
    """
    return _minimum(arithmetic, pipe.units, warm_up(pipe, stage) + 1)


def fullest(pipe: Pipeline, stage: int, sizes: Sequence[int]) -> int:
    """The most that a stage holds at once, if chunk i keeps `sizes[i]` of each micro-batch.

    From the first forward with `in_flight` units on, each is held against the backward before it: more
    or less only from where either comes to another chunk, every p units. The two ends of a step mirror
    each other, so those where backwards do are enough; and it repeats from group to group.
    """
    full = in_flight(pipe, stage)
    last = min(full + pipe.virtual_stages, pipe.units)
    kept, given_back = ([0, *accumulate(of)] for of in (sizes, sizes[::-1]))
    return max(
        _of_units(pipe, forwards, kept) - _of_units(pipe, forwards - full, given_back)
        for forwards in (*range(full, last, pipe.stages), last)
    )


def _of_units(pipe: Pipeline, units: int, before: Sequence[int]) -> int:
    """The sizes of a stage's first so many units; `before`: those of the chunks before each, summed."""
    groups, rest = divmod(units, pipe.virtual_stages)
    turns, more = divmod(rest, pipe.stages)
    of_chunk = before[turns + 1] - before[turns] if more else 0
    return int(pipe.stages * (groups * before[-1] + before[turns]) + more * of_chunk)


def boundaries(pipe: Pipeline) -> Number:
    """Boundaries that each micro-batch crosses, once forward and once backward."""
    return pipe.virtual_stages - 1


def boundary_sends(pipe: Pipeline, stage: int) -> int:
    """Boundary activations, and their cotangents, that a stage sends in a step.

    All but the last virtual stage send forward, all but the first backward; one stage alone sends
    nothing. The busiest stage sends 2 m v when p > 2.
    """
    if pipe.stages == 1:
        return 0
    ends = (stage == 0) + (stage == pipe.stages - 1)
    return int(pipe.micro_batches * (2 * pipe.chunks - ends))


def _minimum(arithmetic: Arithmetic, first: Number, second: Number) -> Number:
    return -arithmetic.maximum(-first, -second)


def _ratio(part: Number, whole: Number) -> Number:
    return (Fraction(part) if isinstance(part, int) else part) / whole
