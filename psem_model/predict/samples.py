"""Numbers of tokens and of their places, which backward reads: of a micro-batch, or of the step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from psem_model.predict.parts import PartCosts
from spec.costs.model_costs import Indices, elements
from spec.models.opaque import Opaque
from spec.models.profiles import COUNT_BYTES, NUMBER_BYTES, Samples
from spec.models.transformer import EMBEDDING, HEAD, Model, Transformer, is_turned
from spec.numbers.arithmetic import Number, quotient
from spec.pipelines.pipeline import Pipeline, fullest, fullest_in_two_parts
from spec.plans.model_strategies import SLOTS

READS = {EMBEDDING: "tokens", HEAD: "next_words"}  # by their numbers


@dataclass(frozen=True)
class Numbers:
    """Bytes that a chunk keeps of one micro-batch: of its tokens, and of the places of a sample's.

    Places are numbers, where they are learned, else cosines and sines, once for all layers. With them
    is the count by which a mean loss is divided.
    """

    tokens: Number
    places: Number


def numbers_of(
    chunk: Mapping[str, int],
    model: Transformer,
    costs: Mapping[str, PartCosts],
    sequence: Number,
    width: Number,
) -> Numbers:
    """Those of a chunk with so many of each part, on one device. `width`: bytes of a cosine."""
    parts = [name for name in costs if chunk[name]]
    tokens = sum(NUMBER_BYTES * _tokens(costs[name], READS[name]) for name in parts if name in READS)
    learned = NUMBER_BYTES * sequence if model.positions and EMBEDDING in parts else 0
    turned = 2 * width * sequence * model.head_dim if model.turned and any(map(is_turned, parts)) else 0
    return Numbers(tokens, learned + turned + (COUNT_BYTES if HEAD in parts else 0))


def kept_with(
    numbers: Sequence[Numbers],
    samples: Samples,
    of_parts: Iterable[Number],
    pipe: Pipeline,
    stage: int,
    halfway: Iterable[Number],
) -> Number:
    """The most that a stage keeps at once of what its parts keep, chunk by chunk, and of numbers.

    `halfway`: what they keep between two parts of backward, and at most while the first runs.
    """
    if samples is Samples.STEP:
        of_step = pipe.micro_batches * sum(each.tokens for each in numbers)
        beside = [each.places for each in numbers]
    else:
        of_step, beside = 0, [each.places + each.tokens for each in numbers]
    sizes = [kept + more for kept, more in zip(of_parts, beside, strict=True)]
    if pipe.in_two_parts:
        (own,) = beside
        return of_step + fullest_in_two_parts(pipe, stage, *sizes, *(size + own for size in halfway))
    return of_step + fullest(pipe, stage, sizes)


def choices(indices: Indices, model: Model) -> Number:
    """How often tokens of a micro-batch choose an expert, on all devices."""
    return 0 if isinstance(model, Opaque) else indices["b"] * indices["s"] * model.chosen


def with_slots(indices: Indices, model: Model, cells: Number) -> Indices:
    """With as many slots of an expert as each of some devices has for its own tokens, rounded up."""
    if isinstance(model, Opaque) or not model.experts:
        return indices
    slots = quotient(choices(indices, model), cells * model.experts)
    return {**indices, SLOTS: cells * slots}


def _tokens(costs: PartCosts, name: str) -> Number:
    lies = costs.program.lies
    value = next(value for value in lies if value.plain_name == name)
    return elements(replace(value, indices=("b", "s")), lies[value], costs.indices, costs.mesh)
