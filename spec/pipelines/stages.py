"""Pipeline parallelism by the same rule: what runs on which stage, and so what must be sent and summed.

A stage has some of the model's pieces, in order. A piece reads what the piece before it gives: if that
is on another stage, it is sent, and its cotangent comes back. A weight's gradient sums over the pieces
that use it: pieces on several stages each leave a term of it, as the layout rule says of any index that
is cut and summed over. Parameters change only between steps, when all work of a stage is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

from spec.devices.layouts import PARTIAL, WHOLE, Contraction, LayoutError, Lie, along, contract
from spec.models.layers import EVERY_LAYER, Layers
from spec.models.parts import Model, parts
from spec.models.transformer import Transformer, is_layer
from spec.models.values import Part, Value
from spec.numbers.arithmetic import Number, ceil_div
from spec.pipelines.pipeline import Pipeline, place_of, virtual_stage

Listed = tuple[int, ...]  # layers of each virtual stage, in the order that a micro-batch passes them
NO_LAYER = -1  # the number of what is no layer: the embedding and the head
BY_USE = Contraction(("use",), ("use",), ())  # a weight's gradient, from the pieces that use it


@dataclass(frozen=True)
class Piece:
    """A part of the model, and where it runs. `layer`: of the layer, from 0, or NO_LAYER."""

    part: Part
    layer: Number
    stage: Number
    chunk: Number

    def identity_of(self, weight: Value) -> tuple[str, Number]:
        """What tells a weight from those of other pieces: only words have two uses."""
        return (weight.name, self.layer)

    def __str__(self) -> str:
        name = self.part.name
        return f"{name} {self.layer}" if is_layer(name) else name


# ------------------------------------------------------------------------------------ the rules
def has_layer(
    virtual: Number, number: Number, layers: Number, virtual_stages: Number
) -> tuple[Any, Any]:
    """The two bounds that say a virtual stage has a layer (both must hold).

    number * virtual_stages // layers == virtual: as far among the stages as the layer among layers.
    """
    here = number * virtual_stages
    return virtual * layers <= here, here < (virtual + 1) * layers


def is_sent(before: Piece, after: Piece) -> Any:
    """Whether what a piece gives has to be sent to the next, and its cotangent sent back."""
    return before.stage != after.stage


def gradient_lie(stages: Collection[int]) -> Lie:
    """How the gradient of a weight that is used on some stages comes out: it sums over its uses."""
    return contract(BY_USE, along("use"), along("use")) if len(stages) > 1 else WHOLE


def may_update(done: Number, works: Number) -> Any:
    """A flush: a stage updates after all its works of the step, forwards and backwards in all parts."""
    return done >= works


# ------------------------------------------------------------------------------- of a whole model
def pieces(model: Model, pipe: Pipeline) -> tuple[Piece, ...]:
    """The whole model in order: layers as evenly over virtual stages as they go, or as listed."""
    by_name, found = {part.name: part for part in parts(model)}, []
    for virtual in range(pipe.virtual_stages):
        for number in range(model.layers):
            evenly = has_layer(virtual, number, model.layers, pipe.virtual_stages)
            if all(is_listed(virtual, number, pipe.layers) if pipe.layers else evenly):
                (name,) = model.layers_of(number, number + 1)
                found.append(Piece(by_name[name], number, *place_of(pipe, virtual)))
    around, before = ends(model, pipe), len(before_layers(model))
    return (*around[:before], *found, *around[before:])


def ends(model: Model, pipe: Pipeline) -> tuple[Piece, ...]:
    """The pieces that are no layers: those before them come first, and those after them last.

    Of all weights, only theirs may have two uses.
    """
    every, last = parts(model), pipe.virtual_stages - 1
    before = before_layers(model)
    after = [part for part in every[len(before) :] if not is_layer(part.name)]
    places = [*((part, 0) for part in before), *((part, last) for part in after)]
    return tuple(Piece(part, NO_LAYER, *place_of(pipe, virtual)) for part, virtual in places)


def before_layers(model: Model) -> tuple[Part, ...]:
    """Those of a model's parts that come before its layers."""
    return tuple(takewhile(lambda part: not is_layer(part.name), parts(model)))


def is_listed(virtual: int, number: int, listed: Listed) -> tuple[bool, bool]:
    """The two bounds that say a virtual stage has a layer, where it is listed how many each has."""
    return sum(listed[:virtual]) <= number, number < sum(listed[: virtual + 1])


# ------------------------------------------------------------------------ the same, counted
def layers_before(virtual: int, layers: int, virtual_stages: int, listed: Listed = ()) -> int:
    """How many layers are on earlier virtual stages, as `has_layer` spreads them, or as listed."""
    if listed:
        return sum(listed[:virtual])
    return ceil_div(virtual * layers, virtual_stages)  # type: ignore[no-any-return]


def layers_of_chunk(model: Model, stage: int, chunk: int, pipe: Pipeline) -> tuple[int, int]:
    """The number of the first layer of a stage's chunk, and of the first one after it."""
    virtual = int(virtual_stage(pipe, stage, chunk))
    of = model.layers, pipe.virtual_stages, pipe.layers
    return layers_before(virtual, *of), layers_before(virtual + 1, *of)


def parts_of(
    model: Model, stage: int, pipe: Pipeline, layers: Layers = EVERY_LAYER
) -> list[Counter[str]]:
    """How many pieces of each part a stage has, in each of its chunks, by the part's name.

    Of layers, those of `layers`.
    """
    found = []
    for chunk in range(pipe.chunks):
        found.append(layers.counted(model, *layers_of_chunk(model, stage, chunk, pipe)))
    for piece in ends(model, pipe):
        if piece.stage == stage:
            found[piece.chunk][piece.part.name] += 1
    return found


def alike(
    model: Model, pipe: Pipeline, by_windows: bool = False, held: Layers = EVERY_LAYER
) -> list[list[int]]:
    """The stages of each kind, in order.

    Stages are of a kind if each chunk has as many layers of each kind, and as many that are `held`,
    turned by as many sets of angles, or, `by_windows`, of the same windows; and neither is the first
    or the last. They hold and send the same, but for what is in flight: of forwards, the first has
    most.
    """
    of = model.layers, pipe.virtual_stages, pipe.layers
    before = [layers_before(v, *of) for v in range(pipe.virtual_stages + 1)]
    counts = [_has(model, *ends, by_windows, held) for ends in pairwise(before)]
    found: dict[tuple[object, ...], list[int]] = {}
    for stage in range(pipe.stages):
        has = (counts[virtual_stage(pipe, stage, chunk)] for chunk in range(pipe.chunks))
        kind = (stage == 0, stage == pipe.stages - 1, *has)
        found.setdefault(kind, []).append(stage)
    return [*found.values()]


def _has(model: Model, first: int, after: int, by_windows: bool, held: Layers) -> tuple[object, ...]:
    """What tells the layers of some chunks apart."""
    counts = (some.counted(model, first, after) for some in (EVERY_LAYER, held))
    layers = tuple(frozenset(count.items()) for count in counts)
    if not isinstance(model, Transformer):
        return (layers,)
    windows = model.windows_of(first, after) if by_windows else frozenset()
    return layers, model.sets_of_angles(first, after), windows


def sends(placed: Iterable[Piece]) -> list[tuple[Piece, Piece]]:
    """Neighbours on different stages."""
    return [(before, after) for before, after in pairwise(placed) if is_sent(before, after)]


def to_sum(placed: Iterable[Piece]) -> dict[tuple[str, Number], tuple[int, ...]]:
    """Weights whose gradients must be summed over stages, and over which."""
    stages: dict[tuple[str, Number], set[int]] = {}
    for piece in placed:
        for weight in piece.part.weights:
            stages.setdefault(piece.identity_of(weight), set()).add(piece.stage)
    return {w: tuple(sorted(at)) for w, at in stages.items() if gradient_lie(at) == PARTIAL}


def check_stages(
    placed: Iterable[Piece],
    sent: Iterable[tuple[Piece, Piece]],
    summed: Iterable[tuple[str, Number]],
) -> None:
    """Raise LayoutError if a piece has not what it reads, or a gradient is only one of its terms."""
    placed, sent, summed = tuple(placed), tuple(sent), tuple(summed)
    layers = [piece.layer for piece in placed if is_layer(piece.part.name)]
    if layers != [*range(len(layers))]:
        raise LayoutError(f"layers are in the order {layers}; expected each once, from 0 on")
    for before, after in pairwise(placed):
        if after.part.takes is None or after.part.takes.indices != before.part.gives.indices:
            raise LayoutError(f"{after} comes after {before}, and does not go on with what that gives")
    for before, after in sends(placed):
        if (before, after) not in sent:
            raise LayoutError(
                f"{after} on stage {after.stage} reads what {before} gives, "
                f"on stage {before.stage}: it is not sent"
            )
    for (weight, number), stages in to_sum(placed).items():
        if (weight, number) not in summed:
            raise LayoutError(
                f"the gradient of {weight} is in terms over stages {stages}; needs its sum"
            )
