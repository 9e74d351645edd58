"""E11: pieces of a model on stages, listed layer by layer, and what is counted, sent and summed.

Where a layer is, is worked out of its number; of each stage, what it has is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise, product
from typing import Any

from proofs.pipelines.listed_orders import path
from proofs.trusted.kernel import Kernel, KernelError
from spec.devices.layouts import LayoutError
from spec.models.custom import Custom
from spec.models.layers import EVERY_LAYER, Layers
from spec.models.parts import WORD_WEIGHT
from spec.models.transformer import (
    EMBEDDING,
    HEAD,
    LAYER,
    STRAIGHT,
    USUAL,
    Transformer,
    layer_name,
)
from spec.models.values import Builder, Part, Role, Value
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.stages import NO_LAYER, Piece, alike, check_stages, parts_of, pieces, sends, to_sum

SIZES = (7, 8, 2, 2, 4, 32, 16)
STREAM = Value("stream", ("b", "h"), Role.STREAM)


def _part(name: str, *weights: str) -> Part:
    """A part of some weights."""
    part = Builder(name, STREAM)
    for weight in weights:
        part.contract(STREAM, Value(weight, ("h",), Role.WEIGHT), STREAM)
    return part.part(STREAM)


BEFORE = replace(_part("first", WORD_WEIGHT), takes=None), _part("second", "own"), _part("third", "up")
LOSS = replace(STREAM, indices=("b",))
AFTER = (
    _part("layer_sums", "after"),
    _part("next", "down"),
    replace(_part("last", WORD_WEIGHT, "after"), gives=LOSS),
)
OWN = Custom((*BEFORE, _part(LAYER, "own"), *AFTER), 7, ())
MODELS: tuple[Transformer | Custom, ...] = (
    OWN,
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
    Pipeline(Order.DUALPIPE_V, 5, 10, 2, layers=(1, 1, 1, 1, 0, 1, 0, 1, 1, 0)),
    Pipeline(Order.ONE_F_ONE_B, 5, 5, layers=(2, 1, 1, 1, 2)),
    Pipeline(Order.INTERLEAVED, 4, 4, 2, layers=(1, 1, 0, 1, 1, 0, 1, 2)),
    Pipeline(Order.INTERLEAVED, 4, 4, 3, layers=(1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1)),
    Pipeline(Order.ONE_F_ONE_B, 3, 3, layers=(3, 0, 4)),
    Pipeline(Order.ONE_F_ONE_B, 4, 4, layers=(1, 2, 2, 2)),
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
        is_tied = model.tied if isinstance(model, Transformer) else True
        apart = is_tied and placed[0].stage != placed[-1].stage  # the words' two uses
        summed = {(WORD_WEIGHT, NO_LAYER): (0, pipe.stages - 1)} if apart else {}
        _require(k, pipe, (to_sum(placed), to_sum(reversed(placed))), (summed, summed))
        _require_order(k, placed, summed)
        if model is OWN:
            _require_told(k, placed, sent, [*summed])
    users = (BEFORE[0], 0), (AFTER[-1], 2), (AFTER[-1], 5)
    uses = [Piece(part, NO_LAYER, stage, 0) for part, stage in users]
    over = {(WORD_WEIGHT, NO_LAYER): (0, 2, 5), ("after", NO_LAYER): (2, 5)}
    _require(k, PIPES[0], to_sum(uses), over)


def _listed(model: Transformer | Custom, pipe: Pipeline) -> Iterator[tuple[str, int, int, int]]:
    """Pieces in order: name, layer, stage and chunk."""
    places, layers = path(pipe), range(model.layers)
    evenly = [number * len(places) // model.layers for number in layers]
    upto = [*accumulate(pipe.layers)]
    virtual = [sum(each <= number for each in upto) for number in layers] if upto else evenly
    before, after = [EMBEDDING], [HEAD]
    if isinstance(model, Custom):
        before, after = ([part.name for part in ends] for ends in (BEFORE, AFTER))
    yield from ((name, NO_LAYER, *places[0]) for name in before)
    for number, at in zip(layers, virtual, strict=True):
        kinds = model.kinds if isinstance(model, Transformer) else ()
        yield layer_name(kinds[number % len(kinds)] if kinds else USUAL), number, *places[at]
    yield from ((name, NO_LAYER, *places[-1]) for name in after)


def _names(listed: Sequence[tuple[str, int, int, int]], at: tuple[int, int]) -> list[tuple[str, int]]:
    return [(name, layer) for name, layer, *place in listed if (*place,) == at]


def _kind(model: Transformer | Custom, own: Any, held: Any, by_windows: bool) -> list[Any]:
    """What a stage has in each chunk: layers by names, held ones, sets of angles, windows."""
    found = []
    of, by = (model.windows, model.angles_of_windows) if isinstance(model, Transformer) else ((), False)
    for each in own:
        layers = [(name, number) for name, number in each if number != NO_LAYER]
        windows = {of[n % len(of)] if of else 0 for _, n in layers}
        angles = len({window == 0 for window in windows}) if by else 1
        names, some = Counter(name for name, _ in layers), Counter(n for n, i in layers if i in held)
        found.append((names, some, angles, windows if by_windows else ()))
    return found


def _require_order(k: Kernel, placed: Sequence[Piece], summed: Collection[Any]) -> None:
    """Layers out of order are refused, and without one of them; so are ends among them."""
    *before, first, second, third = placed[: next(n for n, p in enumerate(placed) if p.layer == 3)]
    *others, last = placed[len(before) + 3 :]
    for wrong in (
        (*before, first, third, second, *others, last),
        (*before, first, third, *others, last),
        (*before, second, third, *others, last),
        (first, *before, second, third, *others, last),
        (*before, first, second, third, last, *others),
    ):
        _require_refused(k, wrong, [*pairwise(wrong)], summed)


def _require_told(k: Kernel, placed: Sequence[Piece], sent: Any, summed: Sequence[Any]) -> None:
    """What is sent and summed is enough, and not without any one, or with another in its place.

    Nor is a part that takes other indices than it is given, or in another order, or takes nothing.
    """
    check_stages(placed, sent, summed)
    for n, (before, after) in enumerate(sent):
        for others in ([], [(placed[-1], after)], [(before, placed[0])], [(after, before)]):
            _require_refused(k, placed, [*sent[:n], *others, *sent[n + 1 :]], summed)
    for weight, _ in summed:
        for other in ((weight, 0), ("after", NO_LAYER)):
            _require_refused(k, placed, sent, [other])
    for takes in (None, *(replace(STREAM, indices=i) for i in (("h", "b"), ("b",), ("b", "m")))):
        wrong = replace(placed[1], part=replace(placed[1].part, takes=takes))
        wrongly = (placed[0], wrong, *placed[2:])
        _require_refused(k, wrongly, [*pairwise(wrongly)], summed)


def _require_refused(k: Kernel, placed: Sequence[Piece], sent: Any, summed: Collection[Any]) -> None:
    try:
        check_stages(placed, sent, summed)
    except LayoutError:
        return
    raise KernelError(f"{k.claim}: {placed} are accepted")


def _require(k: Kernel, pipe: Pipeline, said: object, listed: object) -> None:
    if said != listed:
        raise KernelError(f"{k.claim}: {pipe}: {said}, and not {listed}")
