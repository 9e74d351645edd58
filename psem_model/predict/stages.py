"""What the stages of a pipeline have: found once, as plans by different profiles have the same."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from spec.models.layers import EVERY_LAYER, Layers
from spec.models.parts import Model
from spec.pipelines.pipeline import Pipeline
from spec.pipelines.stages import alike, parts_of


@lru_cache(maxsize=64)
def parts_of_chunks(
    model: Model, stage: int, pipe: Pipeline, layers: Layers = EVERY_LAYER
) -> list[Counter[str]]:
    """How many of each part a stage has, chunk by chunk; of layers, some."""
    return parts_of(model, stage, pipe, layers)


@lru_cache(maxsize=64)
def candidates(
    model: Model, pipe: Pipeline, by_windows: bool = False, held: Layers = EVERY_LAYER
) -> list[tuple[list[int], int]]:
    """Of each kind of stages those that may hold most, and how many are of the kind.

    The first; of backwards in two parts more wait on later stages, and in a V these have more of
    their second chunk, so that it may be the last.
    """
    ends = (0, -1) if pipe.in_two_parts else (0,)
    return [
        ([*dict.fromkeys(of[end] for end in ends)], len(of))
        for of in alike(model, pipe, by_windows, held)
    ]
