"""A1: what layers are given, and what is kept of tokens and places: the arrays of some kinds of models.

Each array is its bytes of an element, and how many it has along each of its dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any

from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.model_costs import given_bytes, numbers_of
from spec.derivation.programs import program_of
from spec.models.parts import parts
from spec.models.transformer import STRAIGHT, Transformer
from spec.plans.model_strategies import MODEL_AXES

W, F, I, BOOL = 3, 4, 8, 1  # bytes of a value, of one in fp32, of a number, of yes or no
B, S, H, D, T = 3, 5, 7, 12, 6  # samples, tokens, heads, their features, and those that are turned
DEVICES = 2
MODEL = Transformer(3, 6, H, 1, D, 8, 9, rotary=T)
Arrays = tuple[tuple[int, ...], ...]
MASK, PAIRS, PLACES = (W, B, S, S), (BOOL, S, S), (I, S)
FALLING, ANGLES, OF_HEADS = (W, B, H, S), (W, S, T), (W, B, H, S, S)
FALCON = {"angles": False, "distances": True, "unread_angles": True}
# kind of model, windows of its layers; arrays they are given, operation by operation and by a kernel
GIVEN: tuple[tuple[dict[str, Any], set[int], Arrays, Arrays], ...] = (
    ({}, {0}, (PLACES, MASK), (PLACES,)),
    ({}, {1, S}, (PLACES, MASK, MASK), (PLACES, PAIRS, PAIRS)),
    ({}, {0, S + 1}, (PLACES, MASK, MASK), (PLACES,)),
    ({"masked": True}, {0}, (PLACES, MASK), (PLACES, PAIRS)),
    ({"numbered_heads": True}, {0}, (PLACES, MASK), (PLACES, PAIRS)),
    ({"chunked": True}, {4}, (PLACES, MASK), (PLACES, (BOOL, B, S, S))),
    ({"angles": False}, {0}, (MASK,), ()),
    ({"positions": 9}, {0}, (MASK,), ()),
    ({"positions": 9, "spare": 2}, {0}, ((I, B, S), MASK), ((I, B, S),)),
    ({"angles": False, "distances": True}, {0}, (FALLING, MASK), (FALLING, MASK)),
    (FALCON, {0}, *((PLACES, ANGLES, ANGLES, FALLING, OF_HEADS),) * 2),
    (FALCON | {"shares_mask": True}, {0}, *((PLACES, ANGLES, ANGLES, FALLING),) * 2),
)
TOKENS, COUNT = (I, B, S), (F,)
# kind of model, its parts; arrays of tokens, and of places
NUMBERS: tuple[tuple[dict[str, Any], str, Arrays, Arrays], ...] = (
    ({"tied": True}, "embedding layer head", (TOKENS, TOKENS), (*(ANGLES,) * 4, COUNT)),
    ({}, "embedding", (TOKENS,), ()),
    ({"angles_in_full": True}, "layer", (), ((F, S, T),) * 4),
    ({"angles_in_full": True, "paired_angles": True}, "layer", (), ((F, S, T // 2),) * 4),
    ({"paired_angles": True}, "layer", (), ((W, S, T // 2),) * 4),
    ({"kinds": (frozenset({STRAIGHT}),)}, "straight_layer", (), ()),
    ({"positions": 9}, "embedding layer", (TOKENS,), (PLACES,)),
    ({"positions": 9}, "layer", (), ()),
    ({"positions": 9, "spare": 2}, "embedding", (TOKENS,), ((I, B, S),)),
    ({"angles": False, "spare": 2}, "layer head", (TOKENS,), (COUNT,)),
    (FALCON | {"shares_mask": True}, "embedding layer", (TOKENS,), (OF_HEADS,)),
    (FALCON | {"shares_mask": True}, "head", (TOKENS,), (COUNT,)),
)


def arrays_are_given(k: Kernel) -> None:
    """Raise KernelError unless layers are given these arrays, and parts keep numbers of these.

    On a device with as many samples; where layers have two sets of angles.
    """
    axis, sizes = MODEL_AXES["dp"], MODEL.sizes(DEVICES * B, S)
    mesh = {axis.name: DEVICES}
    for kind, windows, *both in GIVEN:
        model = replace(MODEL, **kind)
        (layer,) = (part for part in parts(model) if part.name == "layer")
        program = program_of(layer, (axis,))
        for in_kernel, arrays in enumerate(both):
            has = given_bytes(program, model, sizes, mesh, W, windows, bool(in_kernel))
            if has != _bytes(arrays):
                raise KernelError(f"{k.claim}: layers of {kind} are given {has} bytes, not {arrays}")
    for kind, names, tokens, places in NUMBERS:
        model = replace(MODEL, **kind)
        programs = [program_of(part, (axis,)) for part in parts(model) if part.name in names.split()]
        found = numbers_of(programs, model, sizes, mesh, W, sets=2)
        if (found.tokens, found.places) != (_bytes(tokens), _bytes(places)):
            raise KernelError(f"{k.claim}: {names} of {kind} keep {found}, not {tokens} and {places}")


def _bytes(arrays: Iterable[tuple[int, ...]]) -> int:
    return sum(map(prod, arrays))
