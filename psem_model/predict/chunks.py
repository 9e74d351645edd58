"""Gradients of a stage's chunks that wait, each for its own last backward; and what is copied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from psem_model.predict.stages import parts_of_chunks
from psem_model.predict.weights import Group, Held, of_parts
from spec.models.layers import Layers
from spec.models.parts import Model
from spec.models.transformer import is_layer
from spec.numbers.arithmetic import Number
from spec.pipelines.idle_and_held import fullest_of_sums
from spec.pipelines.pipeline import Pipeline
from spec.pipelines.stages import NO_LAYER, Piece, pieces

Of = Callable[[Group], Number]


def of_few(pipe: Pipeline) -> Pipeline:
    """The pipeline of few micro-batches: first ones begin chunks, last ones end them, others repeat."""
    few = 4 * pipe.stages + pipe.micro_batches % pipe.stages
    return replace(pipe, micro_batches=min(pipe.micro_batches, few))


def held_by(
    model: Model, pipe: Pipeline, stage: int, order: Collection[str], by_chunk: bool, layers: Layers
) -> Held:
    """What a stage has, of layers some. `order`: of parts; `by_chunk`: so gradients are summed."""
    chunks = parts_of_chunks(model, stage, pipe, layers)
    here = _listed(model, pipe, stage, layers) if sum(map(is_layer, order)) > 1 else []
    counts = {name: sum(chunk[name] for chunk in chunks) for name in order}
    each = apart(pipe, stage, here, chunks, order) if by_chunk else ()
    return replace(of_parts(counts, here, order), chunks=each)


def _listed(model: Model, pipe: Pipeline, stage: int, layers: Layers) -> list[Piece]:
    """The pieces of a stage, of layers some, of a model of several kinds of layers."""
    found = (piece for piece in pieces(model, pipe) if piece.stage == stage)
    return [p for p in found if p.layer == NO_LAYER or layers.has(p.layer, model.layers)]


def apart(
    pipe: Pipeline,
    stage: int,
    listed: Sequence[Piece],
    chunks: Sequence[Mapping[str, int]],
    order: Iterable[str],
) -> tuple[Held, ...]:
    """What each chunk of a stage has, in order; nothing, if their sums are all there at once."""
    pipe = of_few(pipe)
    ones, zeros = [1] * len(chunks), [0] * len(chunks)
    if len(chunks) == 1 or fullest_of_sums(pipe, stage, ones, zeros) == len(chunks):
        return ()
    of = ([piece for piece in listed if piece.chunk == number] for number in range(len(chunks)))
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
