"""A1, A6: where sizes do not divide, what devices have of their own adds up to the whole, once.

Numbers, for sizes that no number of devices divides.
"""

from __future__ import annotations

from itertools import product
from math import prod

from proofs.language.programs import GPT
from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.model_costs import elements, kept_bytes, waiting_bytes
from spec.derivation.distribute import distribute
from spec.derivation.two_parts import in_two_parts
from spec.devices.layouts import PARTIAL, WHOLE, along
from spec.models.parts import layer
from spec.models.values import Value
from spec.plans.model_strategies import MODEL_AXES

MESH = {"a": 2, "b": 3}
INDICES = {"i": 7, "j": 5}
SAMPLES, POSITIONS, DEVICES = 2, 7, 3


def own_parts_are_all(k: Kernel) -> None:
    """Raise KernelError unless devices have all elements of a value among them, as often as it lies."""
    value, places = Value("value", tuple(INDICES)), _places(MESH)
    ways = (WHOLE, PARTIAL, *map(along, INDICES))
    for lies in (dict(zip(MESH, each, strict=True)) for each in product(ways, repeat=len(MESH))):
        own = [elements(value, lies, INDICES, MESH, place) for place in places]
        times = prod(MESH[axis] for axis, lie in lies.items() if not lie.index)
        if sum(own) != times * prod(INDICES.values()):
            raise KernelError(f"{k.claim}: {lies}: devices have {own}")
        if max(own) != elements(value, lies, INDICES, MESH):
            raise KernelError(f"{k.claim}: {lies}: the most is not what any device may have")


def own_parts_of_layers_are_all(k: Kernel) -> None:
    """Raise KernelError unless with TP+SP devices keep, and hold, a layer's activations among them.

    Between the two parts of backward each has the cotangents of both blocks whole, 4sbh bytes.
    """
    axis, sizes = MODEL_AXES["tp+sp"], GPT.sizes(SAMPLES, POSITIONS)
    mesh, whole = {axis.name: DEVICES}, 2 * 2 * prod(sizes[index] for index in "bsh")
    alone, many = (in_two_parts(distribute(layer(GPT), axes)) for axes in ((), (axis,)))
    for bytes_of, copied in ((kept_bytes, 0), (waiting_bytes, whole)):
        own = [bytes_of(many, sizes, mesh, place) for place in _places(mesh)]
        expected = bytes_of(alone, sizes, {}) + (DEVICES - 1) * copied
        if sum(own) != expected:
            raise KernelError(f"{k.claim}: {own} of {expected} bytes, {bytes_of.__name__}")


def _places(mesh: dict[str, int]) -> list[dict[str, int]]:
    return [dict(zip(mesh, at, strict=True)) for at in product(*map(range, mesh.values()))]
