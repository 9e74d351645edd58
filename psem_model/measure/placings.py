"""What the simulator needs of a model on a product of strategies: its weights, placed and cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

from psem_model.measure.measured import FLOAT, MODULAR
from psem_model.predict.activations import keeps_given
from psem_model.predict.plan import Plan
from psem_model.predict.units import buckets
from psem_model.predict.weights import Group, has_copies
from psem_model.simulator.distributed import DistributedModel
from psem_model.simulator.functions import Functions, Real, Residues
from psem_model.simulator.layout import Vector
from psem_model.simulator.placed import Placing, dealt
from psem_model.simulator.rests import Cut, Rests, flat, in_slices
from psem_model.simulator.stages import Kept
from psem_model.simulator.tables import OUTSIDE, Key
from spec.devices.mesh import group_size
from spec.language.moves import VOCABULARY
from spec.language.schedule import Schedule
from spec.language.steps import Group as Scheduled
from spec.models.custom import Custom
from spec.models.opaque import Opaque
from spec.models.profiles import Padding, Samples, Units
from spec.models.states import State
from spec.models.transformer import Transformer

FUNCTIONS: dict[str, Callable[[], Functions]] = {MODULAR: Residues, FLOAT: Real}


def devices_of(
    plan: Plan,
    arithmetic: str = MODULAR,
    seed: int = 0,
    to_run: Callable[[Group], Schedule] = lambda group: group.costs.schedule,
) -> DistributedModel:
    """The devices of a plan, and the single device."""
    return DistributedModel(
        with_parts(plan),
        plan.step.programs,
        {axis.name: plan.mesh[axis.name] for axis in plan.axes},
        plan.indices["b"],
        plan.sequence,
        FUNCTIONS[arithmetic](),
        placings(plan, to_run),
        plan.types,
        plan.pipe,
        seed,
        plan.offload,
        plan.step.pipe or "",
        plan.step.orders,
        _kept(plan),
        rests_of(plan),
    )


def with_parts(plan: Plan) -> Transformer | Custom:
    """The model, with words as they are padded, of a plan that is not opaque. Raises TypeError."""
    if isinstance(plan.model, Opaque):
        raise TypeError(f"{plan.text}: nothing is known of its model")
    model = plan.profile.computed(plan.model)
    if isinstance(model, Transformer):
        return replace(model, vocabulary=plan.indices[VOCABULARY])
    return plan.model


def rests_of(plan: Plan) -> Rests:
    """What rests otherwise than in padded slices."""
    profile = plan.in_plan
    unpadded = profile.unpadded if plan.has_units else frozenset[State]()
    of = (
        unpadded,
        profile.wholes,
        plan.indices,
        profile.waits_whole,
        plan.has_units and profile.sums_by_chunk,
    )
    ahead = profile.prefetch if plan.has_units else 0
    alone = profile.placeholders, profile.adds_alone
    return Rests(*of, has_copies(profile), profile.fills, ahead, *alone)


def _kept(plan: Plan) -> Kept:
    """What is kept of samples."""
    samples = plan.in_plan.samples
    kept = samples is not Samples.NONE, samples is Samples.STEP, plan.policy.computed
    profile = plan.profile
    return Kept(*kept, keeps_given(profile, plan.again), profile.has_kernel, profile.masks)


def placings(plan: Plan, to_run: Callable[[Group], Schedule]) -> list[Placing]:
    """The groups of all stages; one that several stages have, once."""
    found = []
    for stage in map(plan.stage, range(plan.pipe.stages)):
        owned: dict[Key, str] = {}  # the part that has a weight; tied words are the embedding's
        for piece in stage.pieces:
            for name in plan.costs[piece.part.name].parameters:
                owned.setdefault((piece.layer, name), piece.part.name)
        for group in stage.groups:
            weights = [*_weights(plan, group, owned)]
            cuts = _cuts(plan, group, weights)
            keys = tuple(key for unit in cuts for weight in unit for key in weight.keys)
            axes = group.costs.schedule.axes
            pipe = next((axis for axis in axes if axis == plan.step.pipe), "")
            stages = plan.shared.get(keys[0][::-1], (stage.number,)) if pipe else (stage.number,)
            number = next(n for n, of in enumerate(plan.step.groups) if _is_of(group, of))
            of_group = to_run(group), keys, _as_cut(plan, group, weights, cuts), stages, pipe, number
            found.append(Placing(*of_group, tuple(weight.vector[0] for weight in weights)))
    return [*dict.fromkeys(found)]


def _is_of(group: Group, of: Scheduled) -> bool:
    """Whether a stage's weights are some of a group of the model's."""
    return group.weights[0] in of.weights and group.layers == of.layers


def cuts_of_opaque(plan: Plan, group: Group) -> tuple[Cut, ...]:
    """What all parameters are cut into: those of weights whose shapes are known, or as one weight."""
    (costs,) = plan.costs.values()
    shapes = plan.model.shapes if isinstance(plan.model, Opaque) else ()
    is_flat = plan.profile.padding is not Padding.ROW
    weights = [
        Weight(layer, (str(number),), "", (prod(shape), 1 if is_flat else prod(shape[1:])))
        for layer, of in enumerate(shapes)
        for number, shape in enumerate(of)
    ]
    whole = [
        Weight(0, (name,), "", _vector(plan, costs.program.part.name, (name,)))
        for name in group.weights
    ]
    here = weights or whole
    return _as_cut(plan, group, here, _cuts(plan, group, here))


class Weight(NamedTuple):
    """A weight of a layer, or of what is outside them, and how it is cut; or several, as one array."""

    number: int
    names: tuple[str, ...]
    part: str
    vector: Vector

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple((self.number, name) for name in self.names)


def _weights(plan: Plan, group: Group, owned: Mapping[Key, str]) -> Iterator[Weight]:
    """Those of a group among those that parts own."""
    of_parts: dict[tuple[int, str], list[str]] = {}
    for (number, name), part in owned.items():
        is_here = number == OUTSIDE or group.layers.has(number, plan.model.layers)
        if name in group.weights and is_here:
            of_parts.setdefault((number, part), []).append(name)
    for (number, part), names in of_parts.items():
        for array in plan.weights[part].arrays(names):
            yield Weight(number, array, part, _vector(plan, part, array))


def _cuts(plan: Plan, group: Group, weights: list[Weight]) -> list[list[Weight]]:
    """Weights, in the order of the model, in units as the profile says."""
    profile = plan.profile
    if not plan.has_units:
        return [weights]
    if profile.units is Units.BUCKET:  # from the last weight to the first
        lengths = [weight.vector[0] for weight in weights[::-1]]
        sizes = (size for size, _ in buckets([(lengths, 1)], profile.buckets, plan.policy.g))
        return [unit[::-1] for unit in _grouped(weights[::-1], sizes)][::-1]
    found: dict[tuple[int, str, str], list[Weight]] = {}
    for weight in weights:
        is_root = profile.units is Units.ROOT and weight.number == OUTSIDE
        name = weight.names[0] if profile.units is Units.PARAMETER else ""
        found.setdefault((weight.number, "" if is_root else weight.part, name), []).append(weight)
    return [*found.values()]


def _vector(plan: Plan, part: str, names: tuple[str, ...]) -> Vector:
    """Weights that are one array, as it is cut: elements, and those of a row."""
    vector = plan.weights[part].array(names, plan.profile.padding)
    return vector.rows * vector.row, vector.row


def _as_cut(
    plan: Plan, group: Group, weights: list[Weight], cuts: list[list[Weight]]
) -> tuple[Cut, ...]:
    """Units cut by rows, or into elements; or as one vector; or of weights that have one owner each,
    dealt out in the order of the model; or all alike.
    """
    psi, has_owners = group.costs.sizes.psi, group.costs.sizes.owners is not None
    axes = group.costs.schedule.rest(State.OPTIMIZER).sharded
    units = [tuple(weight.vector for weight in unit) for unit in cuts]
    if plan.has_units:
        is_flat = plan.profile.units is Units.BUCKET or plan.profile.padding is not Padding.ROW
        found = tuple(flat(cut.length) if is_flat else cut for cut in map(Cut, units))
    else:
        unit = group.costs.sizes.unit or psi
        found = (*([flat(psi % unit)] if psi % unit else []), *[flat(unit)] * (psi // unit))
    if has_owners and plan.profile.padding is Padding.VECTOR:
        devices = int(group_size(plan.mesh, axes))
        return in_slices((cut.length for cut in found), devices, plan.profile.elements_a_device)
    if not has_owners:
        return found
    lengths = [weight.vector[0] for weight in weights]
    dealt_out = dealt(lengths, int(group_size(plan.mesh, axes)))
    owners = {weight.keys: owner for weight, owner in zip(weights, dealt_out, strict=True)}
    return tuple(
        Cut(unit, tuple(owners[weight.keys] for weight in cut))
        for unit, cut in zip(units, cuts, strict=True)
    )


def _grouped(weights: Iterable[Weight], sizes: Iterable[int]) -> Iterator[list[Weight]]:
    """Weights, one after the other, in buckets of so many elements."""
    left = iter(weights)
    for size in sizes:
        found: list[Weight] = []
        while sum(weight.vector[0] for weight in found) < size:
            found.append(next(left))
        yield found
