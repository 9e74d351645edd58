"""A1, A6: where sizes do not divide, what devices have of their own adds up to the whole, once.

Numbers, for sizes that no number of devices divides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations, product
from math import prod

from proofs.language.programs import GPT
from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.memory import Sizes, Unit, Vector
from spec.costs.model_costs import elements, kept_bytes, waiting_bytes
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, program_of
from spec.derivation.steps import derive
from spec.derivation.two_parts import gradients_last
from spec.devices.layouts import PARTIAL, WHOLE, Lies, along
from spec.models.parts import layer
from spec.models.states import BytePolicy, State
from spec.models.values import Value
from spec.numbers.arithmetic import ceil_div
from spec.plans.compose import factor
from spec.plans.model_strategies import MODEL_AXES

MESH = {"a": 2, "b": 3, "c": 2}
INDICES = {"i": 7, "j": 5}
SAMPLES, POSITIONS, DEVICES = 2, 7, 3


def own_parts_are_all(k: Kernel) -> None:
    """Raise KernelError unless devices have all elements of a value among them, as often as it lies: of
    an index the first axis' chunk, of that the next one's.
    """
    value, places = Value("value", tuple(INDICES)), places_of(MESH)
    ways = (WHOLE, PARTIAL, *map(along, INDICES))
    for lies in (dict(zip(MESH, each, strict=True)) for each in product(ways, repeat=len(MESH))):
        own = [elements(value, lies, INDICES, MESH, place) for place in places]
        times = prod(MESH[axis] for axis, lie in lies.items() if not lie.index)
        if sum(own) != times * prod(INDICES.values()):
            raise KernelError(f"{k.claim}: {lies}: devices have {own}")
        if own != [prod(_own(index, lies, place) for index in INDICES) for place in places]:
            raise KernelError(f"{k.claim}: {lies}: devices have {own}, and not each its own")
        first = elements(value, lies, INDICES, MESH, {"a": 1})
        if max(own) != elements(value, lies, INDICES, MESH) or first != own[MESH["b"] * MESH["c"]]:
            raise KernelError(f"{k.claim}: {lies}: the most is not what any device may have")


def _own(index: str, lies: Lies, place: Mapping[str, int]) -> int:
    """How many positions of an index the device at a place has: chunk by chunk, axis by axis."""
    along = [axis for axis, lie in lies.items() if lie.index == index]
    chunks = [*places_of({axis: MESH[axis] for axis in along})]
    each = ceil_div(INDICES[index], len(chunks))
    number = chunks.index({axis: place[axis] for axis in along})
    return len(range(INDICES[index])[number * each : (number + 1) * each])


def own_parts_are_those_of_their_order(k: Kernel) -> None:
    """Raise KernelError unless devices keep the same in whichever order axes are named, where moves ask
    for one order of those that cut an index.
    """
    mesh, sizes, found = {"tp+sp": DEVICES, "cp": 2}, GPT.sizes(SAMPLES, POSITIONS), []
    for one, other in permutations(mesh):
        (program,) = derive(factor(one, one) * factor(other, other), [layer(GPT)]).programs
        found.append([kept_bytes(program, sizes, mesh, place) for place in places_of(mesh)])
    if found[0] != found[1] or len({*found[0]}) < 2:
        raise KernelError(f"{k.claim}: devices keep {found}, by the order of axes")


def own_rows_are_all(k: Kernel) -> None:
    """Raise KernelError unless devices have their rows of states without padding, row by row.

    Of two vectors, three of the one; in whichever order axes are named. Of no device, the first one's.
    """
    units = (Unit((Vector(7, 3), Vector(4), Vector(5)), 3), Unit((Vector(11, 2),)), Unit((Vector(5),)))
    vectors = [*units[0].vectors] * 3 + [v for unit in units[1:] for v in unit.vectors]
    policy, unpadded = BytePolicy(1, 1, 1), frozenset({State.OPTIMIZER})
    ways, mesh = (("a",), ("a", "b"), ("b", "a"), ("a", "b", "c")), MESH
    for cut in ways:
        along_cut = {axis: size for axis, size in mesh.items() if axis in cut}
        cells = [*map(dict.items, places_of(along_cut))]
        rows = [
            (cells[row // ceil_div(vector.rows, len(cells))], vector.row)
            for vector in vectors
            for row in range(vector.rows)
        ]
        sizes = Sizes(0, mesh, policy, cut=cut, units=units, unpadded=unpadded)
        apart = replace(sizes, psi=61, units=())  # each weight by itself
        for axes, place in product((*ways, ("b",)), ({}, *places_of(mesh))):
            along = {axis: place.get(axis, 0) for axis in axes if axis in cut}.items()
            expected = sum(elements for cell, elements in rows if along <= cell)
            own = replace(sizes, device=place).at_rest(State.OPTIMIZER, axes)
            if own != expected or apart.at_rest(State.OPTIMIZER, axes) != apart.slice(axes):
                raise KernelError(f"{k.claim}: cut along {cut}, {place} has {own} along {axes}")


def own_parts_of_layers_are_all(k: Kernel) -> None:
    """Raise KernelError unless with TP+SP devices keep, and hold, a layer's activations among them.

    Between the two parts of backward each has the cotangents of both blocks whole, 4sbh bytes.
    """
    axis, sizes = MODEL_AXES["tp+sp"], GPT.sizes(SAMPLES, POSITIONS)
    mesh, whole = {axis.name: DEVICES}, 2 * 2 * prod(sizes[index] for index in "bsh")
    alone, many = (gradients_last(program_of(layer(GPT), axes)) for axes in ((), (axis,)))
    for bytes_of, copied in ((kept_bytes, 0), (waiting_bytes, whole)):
        own = [bytes_of(many, sizes, mesh, place) for place in places_of(mesh)]
        expected = bytes_of(alone, sizes, {}) + (DEVICES - 1) * copied
        if sum(own) != expected:
            raise KernelError(f"{k.claim}: {own} of {expected} bytes, {bytes_of.__name__}")


def stored_beside(k: Kernel) -> None:
    """Raise KernelError unless what a part stores beside is kept, as it lies at last, but where all is
    made again.
    """
    for mesh in ((), (MODEL_AXES["tp+sp"],)):
        alone = program_of(layer(GPT), mesh)
        names = {value.plain_name for value in alone.kept}
        lines = [line.makes for line in (alone.moves if mesh else alone.forward)]
        stored = next(value for value in lines if value.width and value.plain_name not in names)
        part = replace(layer(GPT), stores=frozenset({stored.plain_name}))
        for again in (NOTHING, EVERYTHING, FROM_SLICES):
            kept = program_of(part, mesh, again).kept
            if kept != ((*alone.kept, stored) if again == NOTHING else (part.takes,)):
                raise KernelError(f"{k.claim}: {kept} are kept, made again: {again}")


def places_of(mesh: Mapping[str, int]) -> list[dict[str, int]]:
    """Where devices are along the axes of a mesh, in order."""
    return [dict(zip(mesh, at, strict=True)) for at in product(*map(range, mesh.values()))]
