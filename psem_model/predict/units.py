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
from spec.models.transformer import HEAD, is_layer
from spec.models.values import Role, Value
from spec.numbers.arithmetic import Number

CHOICES = "j"  # the index of experts to choose from
Shape = tuple[Number, Number]  # what a product makes, and what it reads


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

    `staying`: of the products of layers, one of each shape; and that of the head, which is there when
    all is that is kept for backward, if this begins with it: with one chunk. `passing`: what more there
    is of the embedding's or the head's.
    """

    staying: Number
    passing: Number


def placeholders(
    counts: Mapping[str, int],
    costs: Mapping[str, PartCosts],
    profile: Profile,
    policy: BytePolicy,
    chunks: Number,
) -> Placeholders:
    """Those of a stage with so many of each part, and chunks."""
    if not profile.placeholders:
        return Placeholders(0, 0)
    shapes = {name: _of_products(costs[name]) for name in counts}
    staying = frozenset[Shape]().union(*(of for name, of in shapes.items() if is_layer(name)))
    ends = {name: _elements(of) for name, of in shapes.items() if not is_layer(name)}
    of_head = ends.get(HEAD, 0) if chunks == 1 else 0
    passing = max(ends.values(), default=0) - of_head
    return Placeholders(policy.computed * (_elements(staying) + of_head), policy.computed * passing)


def _elements(shapes: Iterable[Shape]) -> Number:
    return sum(made * read for made, read in shapes)


def _of_products(costs: PartCosts) -> frozenset[Shape]:
    """The shapes of the weights of products: of those that read one value, together; of one expert.

    The choice of experts is no such product.
    """
    found: dict[Value, Shape] = {}
    for line in costs.program.part.operations:
        for weight in (value for value in line.reads if value.role is Role.WEIGHT):
            (other,) = (value for value in line.reads if value != weight)
            read = tuple(i for i in weight.indices if i not in line.makes.indices)
            made = tuple(i for i in weight.indices if i not in read and i not in other.indices)
            if made and read and CHOICES not in made:
                rows, row = costs.elements_of(weight, made), costs.elements_of(weight, read)
                found[other] = found.get(other, (0, 0))[0] + rows, row
    return frozenset(found.values())
