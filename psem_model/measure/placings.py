"""What the simulator needs of a model on a product of strategies: its weights, placed and cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from psem_model.measure.measured import FLOAT, MODULAR
from psem_model.predict.plan import Plan
from psem_model.predict.weights import Group, buckets, has_copies
from psem_model.simulator.distributed import DistributedTransformer
from psem_model.simulator.functions import Functions, Real, Residues
from psem_model.simulator.layout import Vector
from psem_model.simulator.placed import Cut, Placing, Rests, dealt
from psem_model.simulator.stages import Kept
from psem_model.simulator.tables import OUTSIDE, Key
from spec.devices.mesh import group_size
from spec.language.schedule import Schedule
from spec.models.profiles import Padding, Samples, Units
from spec.models.states import State

FUNCTIONS: dict[str, Callable[[], Functions]] = {MODULAR: Residues, FLOAT: Real}


def transformer(
    plan: Plan,
    arithmetic: str = MODULAR,
    seed: int = 0,
    schedule_of: Callable[[Group], Schedule] = lambda group: group.costs.schedule,
) -> DistributedTransformer:
    """The devices of a plan, and the single device."""
    return DistributedTransformer(
        plan.transformer,
        plan.step.programs,
        {axis.name: plan.mesh[axis.name] for axis in plan.axes},
        plan.indices["b"],
        plan.sequence,
        FUNCTIONS[arithmetic](),
        placings(plan, schedule_of),
        plan.policy,
        plan.pipe,
        seed,
        plan.offload,
        plan.step.stages or "",
        plan.step.orders,
        _kept(plan),
        _rests(plan),
    )


def _rests(plan: Plan) -> Rests:
    """What rests otherwise than in padded slices."""
    profile, policy = plan.profile, plan.policy
    unpadded = profile.unpadded if plan.has_units else frozenset[State]()
    of = unpadded, profile.wholes, plan.indices, profile.waits_whole
    return Rests(*of, has_copies(profile, policy), profile.fills)


def _kept(plan: Plan) -> Kept:
    """What is kept of samples."""
    samples = plan.profile.samples
    return Kept(samples is not Samples.NONE, samples is Samples.STEP, plan.policy.computed)


def placings(plan: Plan, schedule_of: Callable[[Group], Schedule]) -> list[Placing]:
    """The groups of all stages; one that several stages have, once."""
    found = []
    for stage in map(plan.stage, range(plan.pipe.stages)):
        owned = {piece.owns(w) for piece in stage.pieces for w in piece.part.weights}
        pieces = stage.pieces[::-1]  # tied words are the embedding's
        parts = {w.name: piece.part.name for piece in pieces for w in piece.part.weights}
        for group in stage.groups:
            keys = [(number, name) for name, number in owned if name in group.weights]
            keys = _in_order(plan, parts, keys)
            axes = group.costs.schedule.axes
            pipe = next((axis for axis in axes if axis == plan.step.stages), "")
            stages = plan.shared.get(keys[0][::-1], (stage.number,)) if pipe else (stage.number,)
            number = next(n for n, of in enumerate(plan.step.groups) if group.weights[0] in of.weights)
            cuts = _cuts(plan, parts, group, keys)
            found.append(Placing(schedule_of(group), tuple(keys), cuts, stages, pipe, number))
    return [*dict.fromkeys(found)]


def _cuts(plan: Plan, parts: Mapping[str, str], group: Group, keys: Sequence[Key]) -> tuple[Cut, ...]:
    """What the weights of a group are cut into: units as the profile says, or all alike.

    `parts`: the part that has a weight, by their names.
    """
    profile, psi = plan.profile, group.costs.sizes.psi
    if not plan.has_units:
        unit = group.costs.sizes.unit or psi
        return (*([_cut(psi % unit)] if psi % unit else []), *[_cut(unit)] * (psi // unit))
    found: dict[tuple[int, str, str], list[Vector]] = {}
    vectors = [_vector(plan, parts[name], name) for _, name in keys]
    if profile.units is Units.BUCKET:
        sizes = buckets((length for length, _ in vectors), profile.buckets, plan.policy.g)
        return _owned(plan, group, _grouped(vectors, sizes))
    for (number, name), vector in zip(keys, vectors, strict=True):
        part = "" if profile.units is Units.ROOT and number == OUTSIDE else parts[name]
        unit_of = (number, part, name if profile.units is Units.PARAMETER else "")
        found.setdefault(unit_of, []).append(vector)
    return _owned(plan, group, found.values())


def _vector(plan: Plan, part: str, name: str) -> Vector:
    """A weight, as it is cut: elements, and those of a row."""
    vector = plan.costs[part].vector(name, plan.profile.padding)
    return vector.rows * vector.row, vector.row


def _owned(plan: Plan, group: Group, units: Iterable[Sequence[Vector]]) -> tuple[Cut, ...]:
    """Units cut by rows, or into elements; or of weights that have one owner each."""
    axes = group.costs.schedule.rest(State.OPTIMIZER).sharded
    if not plan.profile.owners or not axes:
        is_flat = plan.profile.units is Units.BUCKET or plan.profile.padding is Padding.ELEMENT
        cuts = (Cut(tuple(unit)) for unit in units)
        return tuple(_cut(cut.length) if is_flat else cut for cut in cuts)
    units = [*units]
    lengths = [length for unit in units for length, _ in unit]
    owners = iter(dealt(lengths, int(group_size(plan.mesh, axes))))
    return tuple(Cut(tuple(unit), tuple(next(owners) for _ in unit)) for unit in units)


def _cut(length: int) -> Cut:
    """A unit of one vector, cut into elements."""
    return Cut(((length, 1),))


def _in_order(plan: Plan, parts: Mapping[str, str], keys: Iterable[Key]) -> list[Key]:
    """Weights as they are cut: of buckets, from the model's last to its first."""
    if plan.profile.units is not Units.BUCKET:
        return sorted(keys, key=lambda key: (key[0], parts[key[1]], key[1]))
    names = [*plan.costs]

    def at(key: Key) -> tuple[int, ...]:
        part = parts[key[1]]
        return names.index(part), key[0], [*plan.costs[part].parameters].index(key[1])

    return sorted(keys, key=at, reverse=True)


def _grouped(vectors: Iterable[Vector], sizes: Iterable[int]) -> Iterator[list[Vector]]:
    """Weights, one after the other, in buckets of so many elements."""
    left = iter(vectors)
    for size in sizes:
        found: list[Vector] = []
        while sum(length for length, _ in found) < size:
            found.append(next(left))
        yield found
