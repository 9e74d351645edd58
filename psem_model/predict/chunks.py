"""Gradients of a stage's chunks that wait, each for its own last backward; and what is copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from psem_model.predict.weights import Group, Held, of_parts
from spec.numbers.arithmetic import Number
from spec.pipelines.idle_and_held import fullest_of_sums
from spec.pipelines.pipeline import Pipeline
from spec.pipelines.stages import Piece

Of = Callable[[Group], Number]


def of_few(pipe: Pipeline) -> Pipeline:
    """The pipeline of few micro-batches: first ones begin chunks, last ones end them, others repeat."""
    few = 4 * pipe.stages + pipe.micro_batches % pipe.stages
    return replace(pipe, micro_batches=min(pipe.micro_batches, few))


def apart(
    pipe: Pipeline,
    stage: int,
    pieces: Sequence[Piece],
    chunks: Sequence[Mapping[str, int]],
    order: Iterable[str],
) -> tuple[Held, ...]:
    """What each chunk of a stage has, in order; nothing, if their sums are all there at once."""
    pipe = of_few(pipe)
    ones, zeros = [1] * len(chunks), [0] * len(chunks)
    if len(chunks) == 1 or fullest_of_sums(pipe, stage, ones, zeros) == len(chunks):
        return ()
    of = ([piece for piece in pieces if piece.chunk == number] for number in range(len(chunks)))
    return tuple(of_parts(counts, some, order) for counts, some in zip(chunks, of, strict=True))


def fullest(groups: Sequence[Group], pipe: Pipeline, stage: int, size: Of, left: Of) -> Number:
    """The most bytes at once of what has a size until its chunk is summed, and of what is left then."""
    chunks = [*zip(*(group.chunks for group in groups), strict=True)]
    if not chunks:
        return sum(map(size, groups))
    sizes, rest = ([sum(map(of, some)) for some in chunks] for of in (size, left))
    return fullest_of_sums(pipe, stage, sizes, rest)


def states_that_pass(groups: Sequence[Group]) -> Number:
    """Bytes of what is gathered or fresh, by units, and of a gradient that is added to what waits."""
    alone = max((group.alone for group in groups), default=0)
    return sum(group.passing for group in groups) + alone


def copied_at_once(groups: Sequence[Group]) -> Number:
    """Bytes of copies in which gradients are summed; or, before, of what held views are gathered in."""
    copies = max((group.at_once for group in groups), default=0)
    return max(copies, sum(group.gathered_in for group in groups))
