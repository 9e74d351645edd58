"""Pipeline parallelism: each stage's order of work, what follows from it alone, and closed forms.

The layers are cut among p stages, v chunks each: chunk c of stage k is virtual stage c p + k. A step
has m micro-batches. A unit is the forward and the backward of one micro-batch through one chunk; a
stage has m v of them. Times are per unit: 1/v of what a whole stage takes.

One rule orders forwards and backwards of all schedules (`runs_forward`); they differ in the length of
the warm-up. Zero-bubble schedules cut backward in two: the cotangent of what a chunk took goes on at
once, and gradients of its weights are made some backwards later (`weights_done`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import accumulate, product
from typing import Any, NamedTuple

from spec.numbers.arithmetic import EXACT, Arithmetic, Number


class Order(Enum):
    """GPipe (arXiv 1811.06965), 1F1B and interleaved 1F1B (arXiv 2104.04473, section 2.2).

    And with backward in two parts: ZB-H1 and ZB-H2 (arXiv 2401.10241, section 2).
    """

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    ZB_H1 = "zb-h1"
    ZB_H2 = "zb-h2"


class Half(Enum):
    """The two halves of a unit; and, where backward is in two parts, the one that may wait."""

    FORWARD = "forward"
    BACKWARD = "backward"
    WEIGHTS = "weights"  # their gradients


class Work(NamedTuple):
    """What a stage does at a time: one micro-batch through one chunk, forward or backward."""

    phase: Half
    micro_batch: int
    chunk: int


@dataclass(frozen=True)
class Pipeline:
    """p stages of v chunks, m micro-batches, and the times of one micro-batch through one chunk.

    `backward`: all of it, and `weights` the part that makes gradients of weights, where it is a work of
    its own. `layers`: of each virtual stage, if they are not spread evenly.
    """

    kind: Order
    stages: Number
    micro_batches: Number
    chunks: Number = 1
    forward: Number = 1
    backward: Number = 2
    layers: tuple[int, ...] = ()
    weights: Number = 1

    @property
    def in_two_parts(self) -> bool:
        """Whether backward is two works."""
        return self.kind in STRETCH

    @property
    def halves(self) -> tuple[Half, ...]:
        """The works of a unit."""
        return (*Half,) if self.in_two_parts else (Half.FORWARD, Half.BACKWARD)

    @property
    def parts(self) -> tuple[Number, Number]:
        """The times of the two parts of a backward: of the stream's cotangent, and of the weights'."""
        return self.backward - self.weights, self.weights

    @property
    def times(self) -> dict[Half, Number]:
        """Of each work."""
        backward = self.parts if self.in_two_parts else (self.backward,)
        return dict(zip(self.halves, (self.forward, *backward), strict=True))

    @property
    def units(self) -> Number:
        """Forwards of each stage, and as many backwards."""
        return self.micro_batches * self.chunks

    @property
    def works(self) -> Number:
        """Of each stage in a step."""
        return len(self.halves) * self.units

    @property
    def virtual_stages(self) -> Number:
        """Chunks that a micro-batch passes through."""
        return self.stages * self.chunks


STRETCH = {Order.ZB_H1: 1, Order.ZB_H2: 2}  # forwards ahead for each stage after, as backwards wait


# ------------------------------------------------------------------ the order of a stage's work
def warm_up(pipe: Pipeline, stage: Number) -> Number:
    """Units a stage holds, at most, when it starts one more forward."""
    stages_after = pipe.stages - 1 - stage
    return {
        Order.GPIPE: pipe.units,
        Order.ONE_F_ONE_B: stages_after,
        Order.INTERLEAVED: 2 * stages_after + (pipe.chunks - 1) * pipe.stages,
        Order.ZB_H1: stages_after,
        Order.ZB_H2: 2 * stages_after,
    }[pipe.kind]


def runs_forward(pipe: Pipeline, stage: Number, forwards: Number, backwards: Number) -> tuple[Any, Any]:
    """When a stage that has done so many runs a forward next (both must hold), not a backward."""
    return forwards < pipe.units, forwards - backwards <= warm_up(pipe, stage)


def delay(pipe: Pipeline, stage: Number) -> Number:
    """Backwards in two parts that wait for their second, when a stage starts one more forward.

    As many more on later stages as their warm-ups are shorter: all hold as many micro-batches.
    (arXiv 2401.10241, section 2.3)
    """
    return STRETCH[pipe.kind] * stage


def weights_done(
    pipe: Pipeline, stage: Number, backwards: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """Second parts that a stage has done when it goes on after so many backwards, not the last."""
    return arithmetic.maximum(0, backwards - delay(pipe, stage))


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
    require_schedule(pipe)
    if not 0 <= stage < pipe.stages:
        raise ValueError(f"stage {stage}: expected one of 0 to {pipe.stages - 1}")
    forwards = _in_turn(pipe, Half.FORWARD, forward_unit)
    backwards = _in_turn(pipe, Half.BACKWARD, backward_unit)
    f = b = w = 0
    found = []
    while b < pipe.units:
        if all(runs_forward(pipe, stage, f, b)):
            found.append(forwards[f])
            f += 1
        else:
            found.append(backwards[b])
            b += 1
            if pipe.in_two_parts:
                done = pipe.units if b == pipe.units else weights_done(pipe, stage, b)
                found += [unit._replace(phase=Half.WEIGHTS) for unit in backwards[w:done]]
                w = done
    return found


def _in_turn(pipe: Pipeline, phase: Half, number: Callable[..., Number]) -> list[Work]:
    """A stage's forwards, or its backwards, by their numbers."""
    p, numbered = pipe.stages, []
    for micro_batch, chunk in product(range(pipe.micro_batches), range(pipe.chunks)):
        at = number(pipe, micro_batch // p, chunk, micro_batch % p)
        numbered.append((at, Work(phase, micro_batch, chunk)))
    return [work for _, work in sorted(numbered, key=lambda pair: pair[0])]


def require_schedule(pipe: Pipeline) -> None:
    """Raise ValueError for a pipeline that has no such schedule."""
    p, m, v = pipe.stages, pipe.micro_batches, pipe.chunks
    if min(p, m, v) < 1:
        raise ValueError(f"{p} stages, {m} micro-batches, {v} chunks: each must be at least 1")
    if min(times := [*pipe.times.values()]) <= 0:
        raise ValueError(f"times {', '.join(map(str, times))}: each must be more than 0")
    if pipe.kind is not Order.INTERLEAVED and v > 1:
        raise ValueError(f"{pipe.kind.value} has one chunk per stage, not {v}")
    if pipe.kind is Order.INTERLEAVED and m % p:
        raise ValueError(f"{m} micro-batches do not make whole groups of {p}, one per stage")
    if m < (least := least_micro_batches(pipe)):
        raise ValueError(f"{m} micro-batches: {pipe.kind.value} on {p} stages needs {least}")


def least_micro_batches(pipe: Pipeline) -> int:
    """The fewest of which a step is made: in two parts, as many as a stage may hold."""
    return STRETCH[pipe.kind] * (pipe.stages - 1) + 1 if pipe.in_two_parts else 1


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


def bubble(pipe: Pipeline, arithmetic: Arithmetic = EXACT) -> Number:
    """Time each stage does nothing: the same for all with backward in one part, in a chunk's times.

    (p - 1)(f + b)/v with the times of a whole stage (arXiv 2104.04473, sections 2.2.1 and 2.2.2). In
    two parts, b and w: (p - 1) max(f, b, f + b - w) with ZB-H1, (p - 1) max(f, b - f, f + b - 2w) with
    ZB-H2.
    """
    if not pipe.in_two_parts:
        return (pipe.stages - 1) * (pipe.forward + pipe.backward)
    return arithmetic.maximum((pipe.stages - 1) * pipe.forward, bubble_repeated(pipe, arithmetic))


def bubble_repeated(pipe: Pipeline, arithmetic: Arithmetic = EXACT) -> Number:
    """That of a step among others, none of which waits for other stages to end the one before.

    Of stage 0, and of no other more: from its own first start to its own last end. Less than `bubble`
    only with backward in two parts: (p - 1)(f + b - w) with ZB-H1, (p - 1)(f + b - 2w) with ZB-H2,
    where a second part takes no longer than a forward, and these are more than 0 (arXiv 2401.10241,
    section 2.3).
    """
    if not pipe.in_two_parts:
        return bubble(pipe)
    after, ahead, f, (b, w) = pipe.stages - 1, STRETCH[pipe.kind], pipe.forward, pipe.parts
    return arithmetic.maximum(0, after * (b - (ahead - 1) * f), after * (f + b - ahead * w))


def span(pipe: Pipeline, arithmetic: Arithmetic = EXACT) -> Number:
    """Time from the first start to the last end."""
    return ideal(pipe) + bubble(pipe, arithmetic)


def bubble_of_ideal(pipe: Pipeline) -> Number:
    """Idle time for each time of work: (p - 1)/(v m) (arXiv 2104.04473, section 2.2.2)."""
    return _ratio(_in_units(pipe, bubble), pipe.units)


def bubble_of_span(pipe: Pipeline) -> Number:
    """Idle part of the whole: (p - 1)/(v m + p - 1) (GPipe, arXiv 1811.06965, section 2.3)."""
    idle = _in_units(pipe, bubble)
    return _ratio(idle, pipe.units + idle)


def repeated_of_ideal(pipe: Pipeline) -> Number:
    """`bubble_repeated` for each time of work."""
    return _ratio(_in_units(pipe, bubble_repeated), pipe.units)


def _in_units(pipe: Pipeline, idle: Callable[[Pipeline], Number]) -> Number:
    """Idle time in the times of a unit: p - 1 with backward in one part, whatever these are.

    In two parts it is a multiple of p - 1 too.
    """
    if not pipe.in_two_parts:
        return pipe.stages - 1
    each = idle(replace(pipe, stages=2))
    return (pipe.stages - 1) * _ratio(each, pipe.forward + pipe.backward)


def in_flight(pipe: Pipeline, stage: Number, arithmetic: Arithmetic = EXACT) -> Number:
    """The most units whose activations a stage holds at once, of L/(p v) layers each.

    GPipe m; 1F1B min(m, p - k); interleaved on stage 0 p v + p - 1, that is L (1 + (p - 1)/(p v))
    layers' worth, or m v if that is less (arXiv 2205.05198, section 4.2.3). With backward in two parts,
    until the end of the first: ZB-H1 p - k, ZB-H2 2(p - k) - 1.
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


def fullest_in_two_parts(
    pipe: Pipeline, stage: Number, size: Number, waiting: Number, passing: Number
) -> Number:
    """The most that a stage holds at once, with backward in two parts.

    Of each micro-batch it keeps `size` before the first part and `waiting` from then to the second;
    while the first part runs, `passing` at most. That is of one; of others as many as there can be.
    """
    return warm_up(pipe, stage) * size + delay(pipe, stage) * waiting + passing


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
