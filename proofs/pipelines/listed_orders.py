"""Orders of pipeline schedules, listed as they are published, and executed; what is there, counted.

It is another definition than that of `spec/`: no rule orders works, none starts at a closed form, and
what a stage holds is looked at in each of its works.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import islice, pairwise

from spec.pipelines.pipeline import Half, Order, Pipeline, Work

F, B, W = Half
Kind = tuple[Half, int]  # of a work: its half, and the chunk
IN_TWO_PARTS = Order.ZB_H1, Order.ZB_H2


def works_in_turn(pipe: Pipeline, stage: int) -> list[list[Work]]:
    """A stage's works, those that are one together; each chunk takes micro-batches in turn."""
    if pipe.order is Order.DUALPIPE_V:
        kinds = _steps_of_v(pipe.stages, pipe.micro_batches, stage)
    else:
        kinds = ([kind] for kind in _one_by_one(pipe, stage))
    found, done = list[list[Work]](), Counter[Kind]()
    for each in kinds:
        found.append([Work(half, done[half, chunk], chunk) for half, chunk in each])
        done.update(each)
    return found


def _one_by_one(pipe: Pipeline, stage: int) -> Iterator[Kind]:
    """A forward where the stage has room for its micro-batch, else a backward.

    Second parts where it would hold more in all. Interleaved, p micro-batches a chunk.
    """
    p, m, v = pipe.stages, pipe.micro_batches, pipe.chunks
    chunks = [c for _ in range(m // p) for c in range(v) for _ in range(p)] if v > 1 else [0] * m
    whole, in_all = _room(pipe, stage)
    forwards, waiting = iter(chunks), list[Kind]()
    started = 0
    for ended, chunk in enumerate(chunks):
        for following in islice(forwards, whole - (started - ended)):
            started += 1
            yield F, following
        yield B, v - 1 - chunk
        waiting += [(W, v - 1 - chunk)] if pipe.order in IN_TWO_PARTS else []
        while waiting and whole + len(waiting) > in_all:
            yield waiting.pop(0)
    yield from waiting


def _room(pipe: Pipeline, stage: int) -> tuple[int, int]:
    """Micro-batches through chunks that a stage holds at most, whole and in all, as published.

    1F1B as many as stages come after it, and its own. Interleaved, the first stage a micro-batch for
    each chunk of all stages, and p - 1 more (2205.05198, section 4.2.3), and each stage two fewer than
    that before. In two parts, all stages as many as the first (2401.10241, section 2.3): that of ZB-H2
    runs forwards until its first backward can start, 2p - 1 as long ones.
    """
    p, m, v = pipe.stages, pipe.micro_batches, pipe.chunks
    of_first, fewer = {
        Order.GPIPE: (m, 0),
        Order.ONE_F_ONE_B: (p, 1),
        Order.INTERLEAVED: (p * v + p - 1, 2),
        Order.ZB_H1: (p, 1),
        Order.ZB_H2: (2 * p - 1, 2),
    }[pipe.order]
    return of_first - fewer * stage, of_first


def _steps_of_v(p: int, m: int, stage: int) -> Iterator[list[Kind]]:
    """DualPipeV's eight steps, as implemented (github.com/deepseek-ai/DualPipe, dualpipev.py)."""
    after, (first, second) = p - 1 - stage, ([(B, c), (W, c)] for c in (0, 1))
    yield from [[(F, 0)]] * (2 * after)  # nF0
    yield from [[(F, 0)], [(F, 1)]] * (stage + 1)  # nF0F1
    yield from [[(B, 1)], [(W, 1)], [(F, 1)]] * after  # nB1W1F1
    for number in range(m - 2 * p + stage + 1):  # nF0B1F1B0, but the last stage's first is apart
        yield from [[(F, 0), *second]] if number or after else [[(F, 0)], second]
        yield [(F, 1), *first]
    yield from [second, [(F, 1), *first]] * after  # nB1F1B0
    backwards = [second, first] * (stage + 1)  # nB1B0
    yield from backwards[: stage + 1]
    yield from ([late] for late, _ in backwards[stage + 1 :])
    waiting = [[late] for _, late in backwards[stage + 1 :]] + [[(W, 0)]] * after
    for late in waiting[:after]:  # nWB0
        yield from (late, [(B, 0)])
    yield from waiting[after:]  # nW


def path(pipe: Pipeline) -> list[tuple[int, int]]:
    """The stages and chunks that a micro-batch passes: each chunk upwards, a V's second downwards."""
    up = range(pipe.stages)
    down = {1} if pipe.order is Order.DUALPIPE_V else set()
    return [(k, c) for c in range(pipe.chunks) for k in (reversed(up) if c in down else up)]


class Execution:
    """Works of all stages in order, each as soon as what it needs has ended on another stage."""

    def __init__(self, pipe: Pipeline) -> None:
        self.pipe, self.stages = pipe, range(pipe.stages)
        self.turns = [works_in_turn(pipe, stage) for stage in self.stages]
        self.works = [[work for turn in turns for work in turn] for turns in self.turns]
        self.last = W if any(work.half is W for work in self.works[0]) else B
        w = pipe.of_weights if self.last is W else 0
        self.takes = {F: pipe.forward, B: pipe.backward - w, W: w}

    @cached_property
    def starts(self) -> list[dict[Work, int]]:
        """When each stage starts each work; what is one starts, and passes on, together."""
        along, needs = path(self.pipe), dict[tuple[int, Work], tuple[int, Work]]()
        for b in range(self.pipe.micro_batches):
            up, down = ([(k, Work(half, b, c)) for k, c in along] for half in (F, B))
            needs |= {work: before for before, work in pairwise([*up, *reversed(down)])}
        turns = [(k, n, turn) for k in self.stages for n, turn in enumerate(self.turns[k])]
        at = {(k, work): (k, n) for k, n, turn in turns for work in turn}
        starts = [dict[Work, int]() for _ in self.stages]

        @cache
        def end(k: int, number: int) -> int:
            """Of a stage's turn."""
            if number < 0:
                return 0
            turn = self.turns[k][number]
            before = [at[needs[k, work]] for work in turn if (k, work) in needs]
            now = max([end(k, number - 1), *(end(*need) for need in before)])
            for work in turn:
                starts[k][work] = now
                now += self.takes[work.half]
            return now

        for k, n, _ in turns:
            end(k, n)
        return starts

    def work(self, stage: int) -> int:
        """The times of all works of a stage."""
        return sum(self.takes[work.half] for work in self.works[stage])

    def own_span(self, *stages: int) -> int:
        """From the first start of some stages to their last end."""
        own = [(start, work) for stage in stages for work, start in self.starts[stage].items()]
        return max(start + self.takes[work.half] for start, work in own) - min(own)[0]

    def there(self, stage: int) -> list[list[tuple[int, int]]]:
        """In each work of a stage: micro-batches before their backward 0, in it 1, after 2; chunks."""
        works = self.works[stage]
        at, units = {(*w,): now for now, w in enumerate(works)}, {w[1:] for w in works}
        spans = [(c, *(at[half, b, c] for half in (F, B, self.last))) for b, c in units]
        return [
            [
                ((now >= turns) + (now > turns), c)
                for c, begin, turns, end in spans
                if begin <= now <= end
            ]
            for now in range(len(works))
        ]

    def most_held(self, stage: int, once: Sequence[int], *sizes: Sequence[int]) -> int:
        """Of each micro-batch, before, in and after its backward; of those of a chunk together once."""
        return max(
            sum(sizes[phase][c] for phase, c in each) + sum(once[c] for c in {c for _, c in each})
            for each in self.there(stage)
        )

    def most_of_sums(self, stage: int, sizes: Sequence[int], left: Sequence[int]) -> int:
        """Of what each chunk has from its first backward to its last, and of what is left then."""
        works = [*enumerate(self.works[stage])]
        begins = {work.chunk: n for n, work in reversed(works) if work.half is B}
        ends = {work.chunk: n for n, work in works if work.half is self.last}
        return max(
            sum((sizes if now <= ends[c] else left)[c] for c in ends if begins[c] <= now)
            for now in range(len(works) + 1)
        )
