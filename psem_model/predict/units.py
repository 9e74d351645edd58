"""Units of a stage's weights, and what stands in place of their gradients, as a profile says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from psem_model.predict.parts import PartCosts
from spec.costs.memory import Unit, Vector
from spec.models.opaque import Shapes
from spec.models.profiles import Padding, Profile, Units
from spec.models.states import BytePolicy
from spec.models.transformer import is_layer
from spec.numbers.arithmetic import Number


@dataclass(frozen=True)
class Weights:
    """The weights of a layer, or of what is outside layers: the vectors that they are cut as."""

    vectors: tuple[Vector, ...]
    times: int = 1
    in_layer: bool = False


def weights_of(
    names: Iterable[str],
    counts: Mapping[str, int],
    costs: Mapping[str, PartCosts],
    padding: Padding,
) -> tuple[Weights, ...]:
    """Some weights, part by part. `counts`: how many of each part there are.

    Words of two parts are the first one's.
    """
    left, found = {*names}, []
    for part, times in counts.items():
        here = [name for name in costs[part].parameters if name in left]
        left -= {*here}
        vectors = tuple(costs[part].vector(name, padding) for name in here)
        found += [Weights(vectors, times, is_layer(part))] if vectors else []
    return tuple(found)


def weights_of_shapes(shapes: Shapes, padding: Padding) -> tuple[Weights, ...]:
    """Those of which only shapes are known, layer by layer."""

    def vector(shape: tuple[int, ...]) -> Vector:
        return Vector(prod(shape)) if padding is Padding.ELEMENT else Vector(shape[0], prod(shape[1:]))

    return tuple(Weights(tuple(map(vector, each)), in_layer=True) for each in shapes)


def units_of(weights: tuple[Weights, ...], profile: Profile, width: Number) -> tuple[Unit, ...]:
    """The units of some weights. `width`: bytes of an element in a bucket."""
    if profile.units is Units.BUCKET:
        return tuple(Unit((Vector(size),)) for size in buckets(weights, profile.buckets, width))
    if profile.units is Units.PARAMETER:
        return tuple(Unit((vector,), of.times) for of in weights for vector in of.vectors)
    found = [(of.vectors, of.times) for of in weights]
    if profile.units is Units.ROOT:
        others = [vector for of in weights if not of.in_layer for vector in of.vectors]
        found = [(of.vectors, of.times) for of in weights if of.in_layer]
        found += [(tuple(others), 1)] if others else []
    return tuple(Unit(_joined(vectors, profile.padding), times) for vectors, times in found)


def _joined(vectors: tuple[Vector, ...], padding: Padding) -> tuple[Vector, ...]:
    """A unit's vectors: one, if it is cut into elements."""
    return (Vector(sum(map(_size, vectors))),) if padding is Padding.ELEMENT else vectors


def _size(vector: Vector) -> Number:
    return vector.rows * vector.row


@dataclass(frozen=True)
class Owned:
    """The weights that one device updates: how many, and their elements."""

    count: int = 0
    elements: Number = 0


def owned(weights: tuple[Weights, ...], devices: int) -> list[Owned]:
    """Of each device, its weights: the largest first, each to who has fewest elements.

    (torch.distributed.optim.ZeroRedundancyOptimizer._partition_parameters)
    """
    found = [Owned()] * devices
    sizes = [_size(vector) for of in weights for vector in of.vectors * of.times]
    for size in sorted(sizes, reverse=True):
        least = min(range(devices), key=lambda device: found[device].elements)
        found[least] = Owned(found[least].count + 1, found[least].elements + size)
    return found


def buckets(weights: tuple[Weights, ...], least: tuple[int, int], width: Number) -> list[Number]:
    """Elements of each bucket: weights from the last to the first, until it has its bytes.

    `least`: bytes of the first one, and of each other one.
    """
    found: list[Number] = [0]
    for of in reversed(weights):
        for vector in tuple(reversed(of.vectors)) * of.times:
            found[-1] += _size(vector)
            if width * found[-1] >= least[min(len(found), 2) - 1]:
                found.append(0)
    return [size for size in found if size]


@dataclass(frozen=True)
class Placeholders:
    """Bytes of arrays in place of gradients that are added up elsewhere.

    `staying`: of the products of one layer, of the kind that has most. `passing`: of those of the
    embedding or the head.
    """

    staying: Number
    passing: Number


def placeholders(
    counts: Mapping[str, int],
    costs: Mapping[str, PartCosts],
    profile: Profile,
    policy: BytePolicy,
) -> Placeholders:
    """Those of a stage with so many of each part."""
    if not profile.placeholders:
        return Placeholders(0, 0)
    each = {name: policy.computed * _of_products(costs[name]) for name in counts}
    staying = (size for name, size in each.items() if is_layer(name))
    passing = (size for name, size in each.items() if not is_layer(name))
    return Placeholders(max(staying, default=0), max(passing, default=0))


def _of_products(costs: PartCosts) -> Number:
    """Elements of the weights of products with a token's features."""
    found = (w for w in costs.program.part.weights if len(w.indices) > 1 and "h" in w.indices)
    return sum(costs.parameters[weight.name] for weight in found)
