"""Weights as the vectors that they are cut as, in the units and buckets of a profile."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from math import prod

from psem_model.predict.part_weights import PartWeights
from spec.costs.memory import Unit, Vector
from spec.costs.owners import AlikeOwners
from spec.devices.mesh import Device
from spec.models.opaque import Shapes
from spec.models.profiles import Padding, Profile, Units
from spec.models.transformer import is_layer
from spec.numbers.arithmetic import Number, ceil_div

Held = list[tuple[Number, int]]  # elements, and how many devices in a row have so many
Run = tuple[Iterable[Number], int]  # elements of the weights of a layer, and how many layers are alike


@dataclass(frozen=True)
class Weights:
    """The weights of a layer, or of what is outside layers: the vectors that they are cut as."""

    vectors: tuple[Vector, ...]
    times: int = 1
    in_layer: bool = False


def weights_of(
    names: Iterable[str],
    runs: Iterable[tuple[str, int]],
    costs: Mapping[str, PartWeights],
    padding: Padding,
    place: Device,
) -> tuple[Weights, ...]:
    """Some weights, part by part in the order of the model. `runs`: so many alike of a part.

    Words of two parts are the first one's. `place`: of the device that is asked about, if one is.
    """
    named, owner = {*names}, dict[str, str]()
    found = []
    for part, times in runs:
        here = [name for name in costs[part].parameters if owner.setdefault(name, part) == part]
        arrays = costs[part].arrays(name for name in here if name in named)
        vectors = tuple(costs[part].array(names, padding, place) for names in arrays)
        found += [Weights(vectors, times, is_layer(part))] if vectors else []
    return tuple(found)


def weights_of_shapes(shapes: Shapes, padding: Padding) -> tuple[Weights, ...]:
    """Those of which only shapes are known, layer by layer."""

    def vector(shape: tuple[int, ...]) -> Vector:
        return Vector(shape[0], prod(shape[1:])) if padding is Padding.ROW else Vector(prod(shape))

    return tuple(Weights(tuple(map(vector, each)), in_layer=True) for each in shapes)


def units_of(weights: tuple[Weights, ...], profile: Profile, width: Number) -> tuple[Unit, ...]:
    """The units of some weights, in the order of the model. `width`: bytes of an element in a bucket.

    The root's turn is when the first of its weights is needed.
    """
    if profile.units is Units.BUCKET:
        return _in_buckets(weights, profile, width)
    if profile.units is Units.PARAMETER:
        return tuple(Unit((vector,)) for of in weights for vector in of.vectors * of.times)
    found = [(of.vectors, of.times) for of in weights]
    if profile.units is Units.ROOT:
        root = tuple(vector for of in weights if not of.in_layer for vector in of.vectors)
        first = next((i for i, of in enumerate(weights) if not of.in_layer), 0)
        found = [
            (of.vectors, of.times) if of.in_layer else (root, 1)
            for i, of in enumerate(weights)
            if of.in_layer or i == first
        ]
    return tuple(Unit(_joined(vectors, profile.padding), times) for vectors, times in found)


def units_of_size(psi: Number, unit: Number) -> tuple[Unit, ...]:
    """Units of so many elements, and before them a smaller one of what is left."""
    found = (Unit((Vector(psi % unit),)), Unit((Vector(unit),), psi // unit)) if psi else ()
    return tuple(each for each in found if each.times and sum(map(size_of, each.vectors)))


def _in_buckets(weights: tuple[Weights, ...], profile: Profile, width: Number) -> tuple[Unit, ...]:
    """The units of some weights, if they are buckets: filled from the last weight to the first.

    Layers that are alike are listed where neighbouring units are there at once.
    """
    rows = [(of.vectors[::-1], of.times) for of in reversed(weights)]
    if profile.prefetch:
        rows = [(vectors, 1) for vectors, times in rows for _ in range(times)]
    sizes = buckets((([*map(size_of, of)], times) for of, times in rows), profile.buckets, width)
    owned = [vector for vectors, _ in rows for vector in vectors if vector.owner is not None]
    if owned:  # layers have owners of their own
        return tuple(map(Unit, _grouped(owned, sizes)))[::-1]
    return tuple(Unit((Vector(size),), times) for size, times in sizes)[::-1]


def _grouped(
    vectors: Iterable[Vector], sizes: Iterable[tuple[Number, int]]
) -> Iterator[tuple[Vector, ...]]:
    """Vectors, one after the other, in groups of so many elements."""
    left = iter(vectors)
    for size, times in sizes:
        for _ in range(times):
            found, elements = list[Vector](), 0
            while elements < size:
                found.append(next(left))
                elements += size_of(found[-1])
            yield tuple(found)


def _joined(vectors: tuple[Vector, ...], padding: Padding) -> tuple[Vector, ...]:
    """A unit's vectors: one, if it is cut into elements."""
    is_cut = all(vector.owner is None for vector in vectors)
    is_flat = padding is not Padding.ROW and is_cut
    return (Vector(sum(map(size_of, vectors))),) if is_flat else vectors


def size_of(vector: Vector) -> Number:
    return vector.rows * vector.row


def dealt(weights: tuple[Weights, ...], devices: int) -> tuple[Weights, ...]:
    """Weights with their owners: the largest first, each to who has fewest elements.

    (torch.distributed.optim.ZeroRedundancyOptimizer._partition_parameters)
    """
    each = [of for of in weights for _ in range(of.times)]
    vectors = [vector for of in each for vector in of.vectors]
    held: list[tuple[Number, int]] = [(0, device) for device in range(devices)]
    owners: dict[int, int] = {}
    for number in sorted(range(len(vectors)), key=lambda number: -size_of(vectors[number])):
        elements, owners[number] = heappop(held)
        heappush(held, (elements + size_of(vectors[number]), owners[number]))
    left = (replace(vector, owner=owners[number]) for number, vector in enumerate(vectors))
    return tuple(replace(of, vectors=tuple(next(left) for _ in of.vectors), times=1) for of in each)


@lru_cache(maxsize=64)
def owned(weights: tuple[Weights, ...], devices: int) -> tuple[AlikeOwners, ...]:
    """How many weights of each size each device owns, as they are `dealt`.

    Of weights of a size, a device's n-th would come when it has what it had and n - 1 of them: they are
    dealt in the order of these elements, then of devices. So it gets those below a level, which is what
    the least of all then has; and of those at it the first devices. What devices have is never further
    apart than the largest weight.
    """
    counts = Counter[Number]()
    for of in weights:
        for vector in of.vectors:
            counts[size_of(vector)] += of.times
    rows = [AlikeOwners({}, devices)]
    for size, left in sorted(counts.items(), reverse=True):
        held = [(row.elements, row.devices) for row in rows]

        def below(level: Number, size: Number = size, held: Held = held) -> Number:
            return sum(n * ceil_div(level - own, size) for own, n in held if own < level)

        average = (sum(own * n for own, n in held) + left * size) // devices
        lowest = average - max(counts)
        level = lowest - 1 + bisect_right(range(lowest, average + 1), left, key=below)
        left -= below(level)
        found = list[AlikeOwners]()
        for row in rows:
            times = max(0, ceil_div(level - row.elements, size))
            first = min(left, row.devices) if row.elements + times * size == level else 0
            left -= first
            found += _with_more(row, size, times + 1, first)
            found += _with_more(row, size, times, row.devices - first)
        rows = found
    return tuple(rows)


def in_slices(units: Iterable[Unit], slice_: Number, devices: int) -> tuple[AlikeOwners, ...]:
    """What each device has of units that are one vector, the first of them first, in slices.

    Most slices are of one unit alone: those where one begins or ends are looked at.
    """
    parts, end = defaultdict[int, Counter[Number]](Counter), 0 * slice_
    for unit in units:
        size = sum(map(size_of, unit.vectors))
        for _ in range(unit.times if size else 0):
            start, end = end, end + size
            for number in {start // slice_, ceil_div(end, slice_) - 1}:
                meets = min(end, (number + 1) * slice_) - max(start, number * slice_)
                parts[number][meets] += 1
    rows, before = list[AlikeOwners](), 0
    for number in sorted(parts):
        rows += [AlikeOwners({slice_: 1}, number - before)] if number > before else []
        rows.append(AlikeOwners(parts[number]))
        before = number + 1
    return (*rows, AlikeOwners({}, devices - before)) if devices > before else tuple(rows)


def _with_more(row: AlikeOwners, size: Number, times: int, devices: int) -> Iterator[AlikeOwners]:
    """So many devices of a row, if any, with more weights of a size."""
    if devices:
        yield AlikeOwners({**row.weight_sizes, **({size: times} if times else {})}, devices)


def buckets(runs: Iterable[Run], least: tuple[int, int], width: Number) -> list[tuple[Number, int]]:
    """Elements of each bucket, and how many are alike: filled weight by weight, until it has its bytes.

    `least`: bytes of the first one, and of each other one. Layers that are alike fill the same buckets
    over and over: from where one ends as one before it did, those between them are counted.
    """
    found, filled = list[tuple[Number, int]](), 0
    for sizes, times in runs:
        left, ends = (
            times,
            dict[Number, tuple[int, int]](),
        )  # elements in the last: layers left, buckets
        while left:
            for size in sizes:
                filled += size
                if width * filled >= least[min(len(found), 1)]:
                    found.append((filled, 1))
                    filled = 0
            left -= 1
            if found and filled in ends:
                then, first = ends[filled]
                again, left = divmod(left, then - left)
                found[first:] = [(size, n * (1 + again)) for size, n in found[first:]]
                ends.clear()
            elif found:
                ends[filled] = left, len(found)
    return [*found, (filled, 1)] if filled else found
