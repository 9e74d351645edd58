"""Closed forms of pipelines: when work starts, how long stages idle, and what they hold at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate

from spec.numbers.arithmetic import EXACT, Arithmetic, Number
from spec.pipelines.pipeline import (
    STRETCH,
    Half,
    Order,
    Pipeline,
    delay,
    least_micro_batches,
    minimum,
    warm_up,
    works_of_stage,
)


def forward_start(
    pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """When a stage starts forward number `unit`, in a timetable that keeps all orders.

    Nothing in GPipe can start earlier, and in 1F1B only the warm-up (`warm_up_start`). Interleaved,
    some work can, but the step cannot end earlier.
    """
    turn = stage + unit
    if pipe.order is Order.ONE_F_ONE_B:
        return stage * pipe.forward + unit * (pipe.forward + pipe.backward)
    if pipe.order is Order.GPIPE:
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
    if pipe.order is Order.ONE_F_ONE_B:
        forwards = pipe.stages + unit
    elif pipe.order is Order.GPIPE:
        forwards = pipe.stages - 1 + pipe.forwards
    else:
        # no forward goes between any more, once they are all done
        forwards = minimum(arithmetic, turn + pipe.virtual_stages, pipe.stages - 1 + pipe.forwards)
    return forwards * pipe.forward + turn * pipe.backward


def ideal(pipe: Pipeline) -> Number:
    """Time of a stage's work: m (f + b) with the times of a whole stage."""
    return pipe.forwards * (pipe.forward + pipe.backward)


def bubble(pipe: Pipeline, arithmetic: Arithmetic = EXACT) -> Number:
    """Time each stage does nothing: the same for all with backward in one part, in a chunk's times.

    (p - 1)(f + b)/v with the times of a whole stage (arXiv 2104.04473, sections 2.2.1 and 2.2.2). In
    two parts, b and w: (p - 1) max(f, b, f + b - w) with ZB-H1, (p - 1) max(f, b - f, f + b - 2w) with
    ZB-H2. With DualPipeV (p - 1)(F&B + B - 3w), where B is b + w, F&B f + B, and f = b >= w (arXiv
    2412.19437, table 2); raises ValueError for other times, of which `timeline` counts it.
    """
    if pipe.is_folded:
        return (pipe.stages - 1) * _folded_bubble(pipe)
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
    if pipe.order not in STRETCH:
        return bubble(pipe)
    after, ahead, f, (b, w) = pipe.stages - 1, STRETCH[pipe.order], pipe.forward, pipe.backward_times
    return arithmetic.maximum(0, after * (b - (ahead - 1) * f), after * (f + b - ahead * w))


def _folded_bubble(pipe: Pipeline) -> Number:
    """Of two stages of a V."""
    f, (b, w) = pipe.forward, pipe.backward_times
    if all(isinstance(time, int | Fraction) for time in (f, b, w)) and not f == b >= w:
        raise ValueError(f"times {f}, {b}, {w}: no closed form of {pipe.order.value}; see timeline")
    return f + 2 * pipe.backward - 3 * w


def makespan(pipe: Pipeline, arithmetic: Arithmetic = EXACT) -> Number:
    """Time from the first start to the last end."""
    return ideal(pipe) + bubble(pipe, arithmetic)


def bubble_of_ideal(pipe: Pipeline) -> Number:
    """Idle time for each time of work: (p - 1)/(v m) (arXiv 2104.04473, section 2.2.2)."""
    return _ratio(_in_units(pipe, bubble), pipe.forwards)


def bubble_of_makespan(pipe: Pipeline) -> Number:
    """Idle part of the whole: (p - 1)/(v m + p - 1) (GPipe, arXiv 1811.06965, section 2.3)."""
    idle = _in_units(pipe, bubble)
    return _ratio(idle, pipe.forwards + idle)


def repeated_of_ideal(pipe: Pipeline) -> Number:
    """`bubble_repeated` for each time of work."""
    return _ratio(_in_units(pipe, bubble_repeated), pipe.forwards)


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
    until the end of the first: ZB-H1 p - k, ZB-H2 2(p - k) - 1, DualPipeV 2p + 1 on every stage.
    """
    return minimum(arithmetic, pipe.forwards, warm_up(pipe, stage) + 1)


def waiting_beside(pipe: Pipeline, stage: Number) -> Number:
    """Units beside these whose activations wait for the second part of their backward.

    None with DualPipeV: they wait when fewer are in flight.
    """
    return delay(pipe, stage) if pipe.order in STRETCH else 0


def fullest(pipe: Pipeline, stage: int, sizes: Sequence[int]) -> int:
    """The most that a stage holds at once, if chunk i keeps `sizes[i]` of each micro-batch.

    From the first forward with `in_flight` units on, each is held against the backward before it: more
    or less only from where either comes to another chunk, every p units. The two ends of a step mirror
    each other, so those where backwards do are enough; and it repeats from group to group.
    """
    full = in_flight(pipe, stage)
    after = min(full + pipe.virtual_stages, pipe.forwards + 1)
    kept, given_back = ([0, *accumulate(of)] for of in (sizes, sizes[::-1]))
    return max(
        _of_units(pipe, forwards, kept) - _of_units(pipe, forwards - full, given_back)
        for forwards in range(full, after, pipe.stages)
    )


def fullest_in_two_parts(
    pipe: Pipeline, stage: Number, size: Number, waiting: Number, passing: Number
) -> Number:
    """The most that a stage holds at once, with backward in two parts.

    Of each micro-batch it keeps `size` before the first part and `waiting` from then to the second;
    while the first part runs, `passing` at most. That is of one; of others as many as there can be.
    """
    return warm_up(pipe, stage) * size + delay(pipe, stage) * waiting + passing


def fullest_in_order(
    pipe: Pipeline,
    stage: int,
    sizes: Sequence[Number],
    waiting: Sequence[Number],
    passing: Sequence[Number],
    once: Sequence[Number] = (),
) -> Number:
    """The same of stages of several chunks, counted: the fullest moment of a stage's order.

    In a V, of the fewest micro-batches: more make more rounds of four works, all as full. `once`: what
    a chunk keeps as long as it keeps anything of a micro-batch.
    """
    held = most = 0
    least = replace(pipe, micro_batches=least_micro_batches(pipe))
    kept = Counter[int]()
    ends = Half.WEIGHTS if pipe.in_two_parts else Half.BACKWARD
    for phase, _, chunk in works_of_stage(least if pipe.is_folded else pipe, stage):
        if phase is Half.BACKWARD:
            most = max(most, held - sizes[chunk] + passing[chunk])
        if once and phase is Half.FORWARD:
            held += 0 if kept[chunk] else once[chunk]
            kept[chunk] += 1
        gives, takes = {
            Half.FORWARD: (sizes[chunk], 0),
            Half.BACKWARD: (waiting[chunk], sizes[chunk]),
            Half.WEIGHTS: (0, waiting[chunk]),
        }[phase]
        held += gives - takes
        most = max(most, held)
        if once and phase is ends:
            kept[chunk] -= 1
            held -= 0 if kept[chunk] else once[chunk]
    return most


def fullest_of_sums(
    pipe: Pipeline, stage: int, sizes: Sequence[Number], left: Sequence[Number]
) -> Number:
    """The most that a stage holds at once of sums over micro-batches, one of each chunk, counted.

    A chunk's is there from its first backward on, and has its size; after its last, what is left of it.
    Second parts of backward, which come later, are left out: by then all chunks' sums have begun.
    """
    held = most = 0
    begun = Counter[int]()
    for phase, _, chunk in works_of_stage(pipe, stage):
        if phase is not Half.BACKWARD:
            continue
        held += 0 if begun[chunk] else sizes[chunk]
        begun[chunk] += 1
        most = max(most, held)
        held += left[chunk] - sizes[chunk] if begun[chunk] == pipe.micro_batches else 0
    return max(most, held)


def _of_units(pipe: Pipeline, units: int, before: Sequence[int]) -> int:
    """The sizes of a stage's first so many units; `before`: those of the chunks before each, summed."""
    groups, rest = divmod(units, pipe.virtual_stages)
    turns, more = divmod(rest, pipe.stages)
    of_chunk = before[turns + 1] - before[turns] if more else 0
    return int(pipe.stages * (groups * before[-1] + before[turns]) + more * of_chunk)


def boundaries(pipe: Pipeline) -> Number:
    """Boundaries between stages that each micro-batch crosses, once forward and once backward.

    Of two stages or more. Where a V turns, it stays on the last stage.
    """
    return pipe.virtual_stages - (2 if pipe.is_folded else 1)


def _ratio(part: Number, whole: Number) -> Number:
    return (Fraction(part) if isinstance(part, int) else part) / whole
