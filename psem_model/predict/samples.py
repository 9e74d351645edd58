"""Numbers of tokens, and of their places, that backward needs: of a micro-batch, or of the whole step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from psem_model.predict.parts import PartCosts
from spec.costs.model_costs import elements
from spec.models.profiles import COUNT_BYTES, NUMBER_BYTES
from spec.models.transformer import EMBEDDING, HEAD, LAYER, Transformer
from spec.numbers.arithmetic import Number

READS = {EMBEDDING: "tokens", HEAD: "next_words"}  # by their numbers


def of_tokens(costs: Mapping[str, PartCosts], parts: Iterable[str]) -> Number:
    """Bytes of the numbers of a micro-batch's tokens: of those that parts read, on one device."""
    return sum(NUMBER_BYTES * _tokens(costs[name], READS[name]) for name in parts if name in READS)


def _tokens(costs: PartCosts, name: str) -> Number:
    lies = costs.program.lies
    value = next(value for value in lies if value.plain_name == name)
    return elements(replace(value, indices=("b", "s")), lies[value], costs.indices, costs.mesh)


def of_places(model: Transformer, sequence: Number, width: Number, parts: Iterable[str]) -> Number:
    """Bytes of the places of all tokens of a sample, once for all parts of a chunk.

    Numbers, where places are learned; else cosines and sines of `width` bytes. And of the count by
    which a mean loss is divided.
    """
    parts = {*parts}
    learned = NUMBER_BYTES * sequence if model.positions and EMBEDDING in parts else 0
    turned = 2 * width * sequence * model.head_dim if model.turned and LAYER in parts else 0
    return learned + turned + (COUNT_BYTES if HEAD in parts else 0)
