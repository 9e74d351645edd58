"""E11: pieces of a model on stages, listed layer by layer, and what is counted, sent and summed.

Where a layer is, is worked out of its number; of each stage, what it has is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise, product
from typing import Any

from proofs.pipelines.listed_orders import path
from proofs.trusted.kernel import Kernel, KernelError
from spec.devices.layouts import LayoutError
from spec.models.layers import EVERY_LAYER, Layers
from spec.models.parts import WORD_WEIGHT
from spec.models.transformer import (
    EMBEDDING,
    HEAD,
    STRAIGHT,
    USUAL,
    Transformer,
    layer_name,
)
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.stages import NO_LAYER, Piece, alike, check_stages, parts_of, pieces, sends, to_sum

SIZES = (7, 8, 2, 2, 4, 32, 16)
MODELS = (
    Transformer(*SIZES, tied=True),
    Transformer(
        *SIZES, kinds=(USUAL, frozenset({STRAIGHT})), windows=(3, 3, 5, 0), angles_of_windows=True
    ),
    Transformer(*SIZES, windows=(4, 4, 2)),
)
PIPES = (
    Pipeline(Order.ONE_F_ONE_B, 1, 4),
    Pipeline(Order.ONE_F_ONE_B, 9, 9),
    Pipeline(Order.INTERLEAVED, 3, 3, 2),
    Pipeline(Order.DUALPIPE_V, 3, 6, 2),
    Pipeline(Order.ONE_F_ONE_B, 4, 4, layers=(1, 2, 2, 2)),
    Pipeline(Order.ONE_F_ONE_B, 3, 3, layers=(3, 0, 4)),
)
SOME = Layers(frozenset({0, 3, -2}), others=False)
NUMBERS = {0, 3, 5}  # of seven


def stages_have_what_is_listed(k: Kernel) -> None:
    """Raise KernelError unless stages have, send and sum what is listed, in that order."""
    for model, pipe in product(MODELS, PIPES):
        placed, listed = pieces(model, pipe), [*_listed(model, pipe)]
        _require(k, pipe, [(p.part.name, p.layer, p.stage, p.chunk) for p in placed], listed)
        has = [[_names(listed, (k, c)) for c in range(pipe.chunks)] for k in range(pipe.stages)]
        for held, numbers in ((EVERY_LAYER, range(7)), (SOME, NUMBERS)):
            of = {NO_LAYER, *numbers}
            some = [
                [Counter(name for name, layer in each if layer in of) for each in own] for own in has
            ]
            _require(k, pipe, [parts_of(model, each, pipe, held) for each in range(pipe.stages)], some)
            for by_windows in (False, True):
                kinds = [_kind(model, own, numbers, by_windows) for own in has]
                ends = [(each == 0, each == pipe.stages - 1) for each in range(pipe.stages)]
                like = [*zip(ends, kinds, strict=True)]
                found = [[i for i, other in enumerate(like) if other == one] for one in like]
                first = [same for number, same in enumerate(found) if same[0] == number]
                _require(k, pipe, alike(model, pipe, by_windows, held), first)
        sent = [(before, after) for before, after in pairwise(placed) if before.stage != after.stage]
        _require(k, pipe, sends(placed), sent)
        apart = model.tied and placed[0].stage != placed[-1].stage  # the words' two uses
        summed = {(WORD_WEIGHT, NO_LAYER): (0, pipe.stages - 1)} if apart else {}
        _require(k, pipe, (to_sum(placed), to_sum(reversed(placed))), (summed, summed))
        _require_order(k, placed, summed)


def _listed(model: Transformer, pipe: Pipeline) -> Iterator[tuple[str, int, int, int]]:
    """Pieces in order: name, layer, stage and chunk."""
    places, layers = path(pipe), range(model.layers)
    evenly = [number * len(places) // model.layers for number in layers]
    upto = [*accumulate(pipe.layers)]
    virtual = [sum(each <= number for each in upto) for number in layers] if upto else evenly
    yield EMBEDDING, NO_LAYER, *places[0]
    for number, at in zip(layers, virtual, strict=True):
        kind = model.kinds[number % len(model.kinds)] if model.kinds else USUAL
        yield layer_name(kind), number, *places[at]
    yield HEAD, NO_LAYER, *places[-1]


def _names(listed: Sequence[tuple[str, int, int, int]], at: tuple[int, int]) -> list[tuple[str, int]]:
    return [(name, layer) for name, layer, *place in listed if (*place,) == at]


def _kind(model: Transformer, own: Any, held: Any, by_windows: bool) -> list[Any]:
    """What a stage has in each chunk: layers by names, held ones, sets of angles, windows."""
    found = []
    for each in own:
        layers = [(name, number) for name, number in each if number != NO_LAYER]
        windows = {model.windows[n % len(model.windows)] if model.windows else 0 for _, n in layers}
        angles = len({window == 0 for window in windows}) if model.angles_of_windows else 1
        names, some = Counter(name for name, _ in layers), Counter(n for n, i in layers if i in held)
        found.append((names, some, angles, windows if by_windows else ()))
    return found


def _require_order(k: Kernel, placed: Sequence[Piece], summed: Collection[Any]) -> None:
    """Layers out of order are refused, and without one of them; so are ends among them."""
    first, second, third, *others, last = placed
    for wrong in (
        (first, third, second, *others, last),
        (first, third, *others, last),
        (second, first, third, *others, last),
        (first, second, third, last, *others),
    ):
        with suppress(LayoutError):
            check_stages(wrong, pairwise(wrong), summed)
            raise KernelError(f"{k.claim}: {wrong} is accepted")


def _require(k: Kernel, pipe: Pipeline, said: object, listed: object) -> None:
    if said != listed:
        raise KernelError(f"{k.claim}: {pipe}: {said}, and not {listed}")
