"""Pipeline parallelism by the same rule: what runs on which stage, and so what must be sent and summed.

A stage has some of the model's pieces, in order. A piece reads what the piece before it gives: if that
is on another stage, it is sent, and its cotangent comes back. A weight's gradient sums over the pieces
that use it: pieces on several stages each leave a term of it, as the layout rule says of any index that
is cut and summed over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

from spec.layouts import PARTIAL, WHOLE, Contraction, LayoutError, Lie, along, contract
from spec.transformer import EMBEDDING, HEAD, LAYER, Transformer, parts
from spec.values import Part, Value


@dataclass(frozen=True)
class Piece:
    """A part of the model, and where it runs: chunk c of stage k is virtual stage c p + k."""

    part: Part
    number: int  # of the layer; 0 for the embedding and the head
    stage: int
    chunk: int

    def owns(self, weight: Value) -> tuple[str, int]:
        """What tells its weights from those of other pieces: words may be shared."""
        layer = self.part.name == LAYER
        return (weight.name, self.number if layer else -1)


def pieces(model: Transformer, stages: int, chunks: int = 1) -> tuple[Piece, ...]:
    """The whole model in order: layers as evenly over virtual stages as they go."""
    by_name = {part.name: part for part in parts(model)}
    found = []
    for number in range(model.layers):
        chunk, stage = divmod(number * stages * chunks // model.layers, stages)
        found.append(Piece(by_name[LAYER], number, stage, chunk))
    if EMBEDDING in by_name:
        found.insert(0, Piece(by_name[EMBEDDING], 0, 0, 0))
        found.append(Piece(by_name[HEAD], 0, stages - 1, chunks - 1))
    return tuple(found)


def sends(placed: Iterable[Piece]) -> list[tuple[Piece, Piece]]:
    """Neighbours on different stages: what the first gives is sent, and its cotangent sent back."""
    placed = list(placed)
    return [(before, after) for before, after in pairwise(placed) if before.stage != after.stage]


def gradient_lie(stages: Collection[int]) -> Lie:
    """How the gradient of a weight that is used on some stages comes out: it sums over its uses."""
    by_use = Contraction(("use",), ("use",), ())
    return contract(by_use, along("use"), along("use")) if len(stages) > 1 else WHOLE


def to_sum(placed: Iterable[Piece]) -> dict[tuple[str, int], tuple[int, ...]]:
    """Weights whose gradients must be summed over stages, and over which."""
    stages: dict[tuple[str, int], set[int]] = {}
    for piece in placed:
        for weight in piece.part.weights:
            stages.setdefault(piece.owns(weight), set()).add(piece.stage)
    return {w: tuple(sorted(at)) for w, at in stages.items() if gradient_lie(at) == PARTIAL}


def check_stages(
    placed: Iterable[Piece],
    sent: Iterable[tuple[Piece, Piece]],
    summed: Iterable[tuple[str, int]],
) -> None:
    """Raise LayoutError if a piece has not what it reads, or a gradient is only one of its terms."""
    placed, sent, summed = list(placed), list(sent), list(summed)
    for before, after in pairwise(placed):
        if before.stage != after.stage and (before, after) not in sent:
            raise LayoutError(
                f"{after.part.name} {after.number} on stage {after.stage} reads what "
                f"{before.part.name} {before.number} gives, which is on stage {before.stage}"
            )
    for weight, stages in to_sum(placed).items():
        if weight not in summed:
            raise LayoutError(f"the gradient of {weight[0]} is {PARTIAL} over stages {stages}; needs R")
