"""Units of a stage's weights, and what stands in place of their gradients, as a profile says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from psem_model.predict.parts import PartCosts
from spec.costs.memory import Unit, Vector
from spec.models.profiles import Padding, Profile, Units
from spec.models.states import BytePolicy
from spec.models.transformer import is_layer
from spec.numbers.arithmetic import Number


def units_of(
    weights: Iterable[str],
    counts: Mapping[str, int],
    costs: Mapping[str, PartCosts],
    profile: Profile,
) -> tuple[Unit, ...]:
    """The units of some weights, part by part; none: all are as large as the largest part.

    `counts`: how many of each part there are. Words of two parts are the first one's.
    """
    left, found = {*weights}, []
    for part, times in counts.items() if profile.units is not Units.LARGEST else ():
        vectors = [costs[part].vector(n, profile.padding) for n in costs[part].parameters if n in left]
        left -= {*costs[part].parameters}
        if profile.units is Units.PARAMETER:
            found += [Unit((vector,), times) for vector in vectors]
        elif vectors and profile.padding is Padding.ELEMENT:
            found.append(Unit((Vector(sum(v.rows * v.row for v in vectors)),), times))
        elif vectors:
            found.append(Unit(tuple(vectors), times))
    return tuple(found)


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
