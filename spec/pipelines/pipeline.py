"""Pipeline parallelism: each stage's order of work, what follows from it alone, and closed forms.

The layers are cut among p stages, v chunks each: chunk c of stage k is virtual stage c p + k. A step
has m micro-batches. A unit is the forward and the backward of one micro-batch through one chunk; a
stage has m v of them. Times are per unit: 1/v of what a whole stage takes.

One rule orders forwards and backwards of all schedules (`runs_forward`), which differ in the length of
the warm-up; but DualPipeV's, which goes by rounds. Zero-bubble schedules cut backward in two: the
cotangent of what a chunk took goes on at once, and gradients of its weights are made some backwards
later (`weights_done`). DualPipeV does so too, and runs forwards together with backwards: here such two
are one work, as long as both, which passes on what it makes when all has ended (`is_one_work`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any, NamedTuple

from spec.numbers.arithmetic import EXACT, Arithmetic, Number
from spec.pipelines.dual_pipe import rounds_before, rounds_without, works_of_round


class Order(Enum):
    """GPipe (arXiv 1811.06965), 1F1B and interleaved 1F1B (arXiv 2104.04473, section 2.2).

    And with backward in two parts: ZB-H1 and ZB-H2 (arXiv 2401.10241, section 2), and DualPipeV.
    """

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    ZB_H1 = "zb-h1"
    ZB_H2 = "zb-h2"
    DUALPIPE_V = "dualpipev"


class Half(Enum):
    """The two halves of a unit; and, where backward is in two parts, the one that may wait."""

    FORWARD = "forward"
    BACKWARD = "backward"
    WEIGHTS = "weights"  # their gradients


class Work(NamedTuple):
    """What a stage does at a time: one micro-batch through one chunk, forward or backward."""

    half: Half
    micro_batch: int
    chunk: int


@dataclass(frozen=True)
class Pipeline:
    """p stages of v chunks, m micro-batches, and the times of one micro-batch through one chunk.

    `backward`: all of it, and `of_weights` the part that makes gradients of weights, where it is a work
    of its own. `layers`: of each virtual stage, if they are not spread evenly.
    """

    order: Order
    stages: Number
    micro_batches: Number
    chunks: Number = 1
    forward: Number = 1
    backward: Number = 2
    layers: tuple[int, ...] = ()
    of_weights: Number = 1

    @property
    def in_two_parts(self) -> bool:
        """Whether backward is two works."""
        return self.order in STRETCH or self.is_folded

    @property
    def is_folded(self) -> bool:
        """Whether micro-batches go back over the stages through their second chunks: a V."""
        return self.order is Order.DUALPIPE_V

    @property
    def halves(self) -> tuple[Half, ...]:
        """The works of a unit."""
        return (*Half,) if self.in_two_parts else (Half.FORWARD, Half.BACKWARD)

    @property
    def backward_times(self) -> tuple[Number, Number]:
        """The times of the two parts of a backward: of the stream's cotangent, and of the weights'."""
        return self.backward - self.of_weights, self.of_weights

    @property
    def durations(self) -> dict[Half, Number]:
        """Of each work."""
        backward = self.backward_times if self.in_two_parts else (self.backward,)
        return dict(zip(self.halves, (self.forward, *backward), strict=True))

    @property
    def forwards(self) -> Number:
        """Forwards of each stage, and as many backwards."""
        return self.micro_batches * self.chunks

    @property
    def works(self) -> Number:
        """Of each stage in a step."""
        return len(self.halves) * self.forwards

    @property
    def virtual_stages(self) -> Number:
        """Chunks that a micro-batch passes through."""
        return self.stages * self.chunks


STRETCH = {Order.ZB_H1: 1, Order.ZB_H2: 2}  # forwards ahead for each stage after, as backwards wait


def minimum(arithmetic: Arithmetic, first: Number, second: Number) -> Number:
    """The smaller number."""
    return -arithmetic.maximum(-first, -second)


# ------------------------------------------------------------------------------- where chunks are
def virtual_stage(pipe: Pipeline, stage: Number, chunk: Number) -> Number:
    """The place of a stage's chunk among all chunks, in the order that a micro-batch passes them.

    (arXiv 2104.04473, section 2.2.2) A V passes the second chunks from the last stage to the first.
    """
    if pipe.is_folded and chunk == 1:
        return pipe.virtual_stages - 1 - stage
    return chunk * pipe.stages + stage


def place_of(pipe: Pipeline, virtual: int) -> tuple[int, int]:
    """The stage of a virtual stage, and its chunk there."""
    chunk, stage = divmod(virtual, pipe.stages)
    return (pipe.stages - 1 - stage if pipe.is_folded and chunk == 1 else stage), chunk


# ------------------------------------------------------------------ the order of a stage's work
def warm_up(pipe: Pipeline, stage: Number) -> Number:
    """Units a stage holds, at most, when it starts one more forward."""
    stages_after = pipe.stages - 1 - stage
    return {
        Order.GPIPE: pipe.forwards,
        Order.ONE_F_ONE_B: stages_after,
        Order.INTERLEAVED: 2 * stages_after + (pipe.chunks - 1) * pipe.stages,
        Order.ZB_H1: stages_after,
        Order.ZB_H2: 2 * stages_after,
        Order.DUALPIPE_V: pipe.virtual_stages,
    }[pipe.order]


def runs_forward(pipe: Pipeline, stage: Number, forwards: Number, backwards: Number) -> tuple[Any, Any]:
    """When a stage that has done so many runs a forward next (both must hold), not a backward."""
    return forwards < pipe.forwards, forwards - backwards <= warm_up(pipe, stage)


def delay(pipe: Pipeline, stage: Number) -> Number:
    """Backwards in two parts that wait for their second, when a stage starts one more forward.

    As many more on later stages as their warm-ups are shorter: all hold as many micro-batches.
    (arXiv 2401.10241, section 2.3) DualPipeV's wait only where no forward is left.
    """
    return STRETCH.get(pipe.order, 1) * stage


def weights_done(
    pipe: Pipeline, stage: Number, backwards: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """Second parts that a stage has done when it goes on after so many backwards, not the last.

    DualPipeV's wait among the last p backwards alone; each before follows its first part.
    """
    delayed = backwards - delay(pipe, stage)
    if not pipe.is_folded:
        return arithmetic.maximum(0, delayed)
    at_once = minimum(arithmetic, backwards, pipe.forwards - pipe.stages)
    return arithmetic.maximum(at_once, delayed)


def forward_unit(pipe: Pipeline, group: Number, chunk: Number, place: Number) -> Number:
    """The number, from 0, of micro-batch group p + place through a chunk among a stage's forwards.

    Micro-batches go in groups of p: a group passes chunk 0, then chunk 1, before the next group.
    """
    return group * pipe.virtual_stages + chunk * pipe.stages + place


def backward_unit(pipe: Pipeline, group: Number, chunk: Number, place: Number) -> Number:
    """Its number among the stage's backwards: a group comes back through the last chunk first."""
    return forward_unit(pipe, group, pipe.chunks - 1 - chunk, place)


def works_of_stage(pipe: Pipeline, stage: int) -> list[Work]:
    """All work of a stage. Raises ValueError for a pipeline that has no such schedule."""
    require_schedule(pipe)
    if not 0 <= stage < pipe.stages:
        raise ValueError(f"stage {stage}: expected one of 0 to {pipe.stages - 1}")
    found = [*(_in_rounds if pipe.is_folded else _by_rule)(pipe, stage)]
    return [*_with_second_parts(pipe, stage, found)] if pipe.in_two_parts else found


def _by_rule(pipe: Pipeline, stage: int) -> Iterator[Work]:
    """Forwards and backwards, as `runs_forward` has it."""
    forwards = _in_turn(pipe, Half.FORWARD, forward_unit)
    backwards = _in_turn(pipe, Half.BACKWARD, backward_unit)
    f = b = 0
    while b < pipe.forwards:
        if all(runs_forward(pipe, stage, f, b)):
            yield forwards[f]
            f += 1
        else:
            yield backwards[b]
            b += 1


def _in_rounds(pipe: Pipeline, stage: int) -> Iterator[Work]:
    """Forwards and backwards of a V, round by round."""
    p, m = int(pipe.stages), int(pipe.micro_batches)
    for number in range(-rounds_before(p, stage), m + rounds_without(p, stage)):
        for is_forward, chunk, micro_batch in works_of_round(p, stage, number):
            if 0 <= micro_batch < m:
                yield Work(Half.FORWARD if is_forward else Half.BACKWARD, micro_batch, chunk)


def _with_second_parts(pipe: Pipeline, stage: int, works: Iterable[Work]) -> Iterator[Work]:
    """After each backward the second parts that are due; after the last, all."""
    waiting: list[Work] = []
    b = w = 0
    for work in works:
        yield work
        if work.half is Half.BACKWARD:
            b += 1
            waiting.append(work._replace(half=Half.WEIGHTS))
            done = int(pipe.forwards if b == pipe.forwards else weights_done(pipe, stage, b))
            yield from waiting[w:done]
            w = done


def is_one_work(pipe: Pipeline, stage: int, before: Work, work: Work) -> bool:
    """Whether a work that comes next is one with that before it, in DualPipeV's rounds of four works.

    A backward with the forward before it, but for the first of all; a second part with its first.
    """
    if not pipe.is_folded or (work.chunk and work.micro_batch < rounds_without(pipe.stages, stage)):
        return False
    if work.half is Half.WEIGHTS:
        return before == work._replace(half=Half.BACKWARD)
    is_first = work.chunk and not work.micro_batch
    return work.half is Half.BACKWARD and before.half is Half.FORWARD and not is_first


def _in_turn(pipe: Pipeline, phase: Half, number: Callable[..., Number]) -> list[Work]:
    """A stage's forwards, or its backwards, by their numbers."""
    p, numbered = pipe.stages, []
    for micro_batch, chunk in product(range(pipe.micro_batches), range(pipe.chunks)):
        at = number(pipe, micro_batch // p, chunk, micro_batch % p)
        numbered.append((at, Work(phase, micro_batch, chunk)))
    return [work for _, work in sorted(numbered)]


def require_schedule(pipe: Pipeline) -> None:
    """Raise ValueError for a pipeline that has no such schedule."""
    p, m, v = pipe.stages, pipe.micro_batches, pipe.chunks
    if min(p, m, v) < 1:
        raise ValueError(f"{p} stages, {m} micro-batches, {v} chunks: each must be at least 1")
    if min(times := [*pipe.durations.values()]) <= 0:
        raise ValueError(f"times {', '.join(map(str, times))}: each must be more than 0")
    if pipe.is_folded and v != 2:
        raise ValueError(f"{pipe.order.value} has two chunks per stage, not {v}")
    if not pipe.is_folded and pipe.order is not Order.INTERLEAVED and v > 1:
        raise ValueError(f"{pipe.order.value} has one chunk per stage, not {v}")
    if pipe.order is Order.INTERLEAVED and m % p:
        raise ValueError(f"{m} micro-batches do not make whole groups of {p}, one per stage")
    if m < (least := least_micro_batches(pipe)):
        raise ValueError(f"{m} micro-batches: {pipe.order.value} on {p} stages needs {least}")


def least_micro_batches(pipe: Pipeline) -> Number:
    """The fewest of which a step is made: in two parts, as many as a stage may hold; a V one less."""
    if pipe.is_folded:
        return 2 * pipe.stages
    return STRETCH[pipe.order] * (pipe.stages - 1) + 1 if pipe.in_two_parts else 1
