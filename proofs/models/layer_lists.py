"""A1: layers are counted, and have windows and masks, as if they were listed one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import Any

from proofs.language.programs import LLAMA
from proofs.trusted.kernel import KernelError
from spec.models.layers import EVERY_LAYER, ROOT, HeldUnits, Layers, has_each_once
from spec.models.transformer import (
    DENSE,
    FLAT,
    MASKED,
    STRAIGHT,
    USUAL,
    Transformer,
    is_turned,
    with_masks,
)

COUNT, TOKENS = 7, 4
KINDS = frozenset({STRAIGHT, DENSE}), USUAL, USUAL
WINDOWS = 0, TOKENS, TOKENS, 1, TOKENS + 1
SOME = [
    Layers(frozenset(numbers), others)
    for numbers in ((), (1, -1), (-COUNT,), (0, -COUNT, 5, COUNT + 2, -COUNT - 1))
    for others in (False, True)
]


def require_listed(claim: str) -> None:
    """Raise KernelError unless layers are those of a list."""
    model = replace(LLAMA, layers=COUNT, kinds=KINDS, windows=WINDOWS, angles_of_windows=True)
    for what, found, expected in (*_of_some(model), *_of_windows(model), *_of_masks(model)):
        if found != expected:
            raise KernelError(f"{claim}: {what} are {found}, not {expected}")


def _of_some(model: Transformer) -> Iterator[tuple[str, Any, Any]]:
    """Which layers some numbers name, and how many of each kind are between two of them."""
    every = [*range(COUNT)]
    names = ["dense_straight_layer", "layer", "layer"] * COUNT
    for some in SOME:
        named = {every[n] for n in some.numbers if -COUNT <= n < COUNT}
        listed = [n for n in every if (n in named) != some.others]
        yield f"{some}", [n for n in every if some.has(n, COUNT)], listed
        for first, after in combinations_with_replacement((*every, COUNT), 2):
            here = Counter(names[n] for n in listed if first <= n < after)
            yield f"{some}, {first} to {after}", +some.counted(model, first, after), here
    for one, other in product(SOME, repeat=2):
        once = all(one.has(n, c) != other.has(n, c) for c in range(1, 10) for n in range(c))
        yield f"{one} and {other} all", has_each_once([one, other]), once
    few = replace(model, experts=3, chosen=1)
    yield "slots", few.sizes(1, 2)["c"], Fraction(2, 3)
    for rotary, turned in ((None, model.head_dim), (0, 0), (3, 3)):
        yield "turned features", replace(model, rotary=rotary).turned_features, turned
    straight = [is_turned(name) for name in ("layer", "dense_layer", "dense_straight_layer", "head")]
    yield "turned", straight, [True, True, False, False]
    yield "all, twice", has_each_once([SOME[2], SOME[2].rest, EVERY_LAYER]), False
    yield "all", [has_each_once([some]) for some in SOME], [some == EVERY_LAYER for some in SOME]
    words = "-3 to -1, 0, 1, 3 to 5"
    for numbers, *said in (
        ((-3, -2, -1, 0, 1, 3, 4, 5), words, f"those numbered {words}", f"all but {words}"),
        ((), "none", "those numbered none", "all"),
    ):
        some = Layers(frozenset(numbers), others=False)
        yield "words", [str(some), some.said, some.rest.said], said
    ends = "embedding", "layer", "head"
    for names_of, has in (((ROOT,), ends[::2]), (ends[:1], ends[:1])):
        held = HeldUnits(frozenset(names_of))
        layers = [n for n in every if held.layers.has(n, COUNT)]
        yield f"{names_of} held", (tuple(end for end in ends if held.has(end)), layers), (has, [])


def _of_windows(model: Transformer) -> Iterator[tuple[str, Any, Any]]:
    """By which windows layers are, and how many sets of angles they need."""
    for first, after in combinations(range(COUNT + 1), 2):
        windows = [WINDOWS[n % len(WINDOWS)] for n in range(first, after)]
        yield "windows", [model.window(n) for n in range(first, after)], windows
        yield "windows between", model.windows_of(first, after), {*windows}
        yield "sets of angles", model.sets_of_angles(first, after), len({w > 0 for w in windows})
    for plain in (replace(model, windows=()), replace(model, angles_of_windows=False)):
        yield "sets of angles of all", plain.sets_of_angles(0, COUNT), 1


def _of_masks(model: Transformer) -> Iterator[tuple[str, Any, Any]]:
    """Which layers' kernels are given a mask: those with a window within a sample, or all.

    If it has distances, all share one. Groups of heads are put together where there are several.
    """
    within = {*range(1, TOKENS + 1)}
    for given, distances, groups in product((False, True), (False, True), (1, 2, 4)):
        some = replace(
            model, masked=given, distances=distances, spread_keys=True, kv_heads=groups, heads=4
        )
        found, flat = with_masks(some, TOKENS), {*[FLAT] * (groups == 2)}
        for n in range(15):
            window, alone = WINDOWS[n % len(WINDOWS)], given and not distances
            masked = {*[MASKED] * (alone or window in within)}
            yield f"layer {n}", found.layer_kind(n), KINDS[n % 3] | masked | flat
            yield f"mask {n}", some.is_given_mask(window, TOKENS), given or window in within
            numbered = replace(some, numbered_heads=True)
            yield f"numbered {n}", numbered.is_given_mask(window, TOKENS), True
        yield "shared masks", found.shares_mask, given and distances
    plain = replace(model, windows=(), kinds=())
    of_none = {(plain.window(n), plain.layer_kind(n)) for n in range(COUNT)}
    yield "windows and kinds of none", of_none, {(0, USUAL)}
    yield "kinds without windows", with_masks(plain, TOKENS).kinds, ()
