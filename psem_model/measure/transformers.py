"""A transformer on a product of strategies, simulated stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from psem_model.measure.measured import FLOAT, LARGEST, MODULAR, PER_ELEMENT, Ran, Run
from psem_model.measure.stage_figures import figures
from psem_model.predict.cuts import require_places
from psem_model.predict.groups import Group
from psem_model.predict.plan import Plan
from psem_model.simulator.distributed import DistributedTransformer
from psem_model.simulator.functions import Functions, Real, Residues
from psem_model.simulator.placed import Rests
from psem_model.simulator.placing import Cut, Placing
from psem_model.simulator.samples import Kept
from psem_model.simulator.tables import OUTSIDE, Key
from psem_model.text.errors import BadInput, choose
from psem_model.text.figures import counted, memory
from spec.language.schedule import Schedule
from spec.models.profiles import Padding, Samples, Units
from spec.models.states import State

ARITHMETICS: dict[str, Callable[[], Functions]] = {MODULAR: Residues, FLOAT: Real}
MOST_STAGES = 512  # which take a minute
PER_ACTIVATION = 20  # bytes at the fullest moment for each byte that is kept
PER_PAIR = 64  # of devices, for each group of weights
NOT_COUNTED = "not counted: gathered parameters and gradients, as they pass"


def ran(plan: Plan, run: Run, progress: Callable[[int], None] | None = None) -> Ran:
    """Simulate a model on a product of strategies, beside one device.

    `progress` is called with the number of works done, of `works`. Raises BadInput for a model that
    cannot be simulated, or not at these sizes.
    """
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done)

    try:
        found = transformer(plan, run.arithmetic, run.seed)
        found.told = tell
        for _ in range(run.steps):
            found.step()
    except ValueError as error:  # slices that do not meet, tokens that do not spread evenly
        raise BadInput(f"these sizes cannot be simulated: {error}") from None
    stages = tuple(tuple(figures(found, plan.stage(k))) for k in range(plan.pipe.stages))
    return Ran(stages, found.divergence, NOT_COUNTED)


def works(plan: Plan, run: Run) -> int:
    """How often a run's progress is told: of each work of each stage."""
    return int(run.steps * plan.pipe.works * plan.pipe.stages)


def require_room(plan: Plan, run: Run) -> None:
    """Raise BadInput for a model that has no words, or too few places, or does not fit in memory."""
    if not plan.transformer.vocabulary:
        raise BadInput("--vocabulary: missing; expected how many words there are, to train on them")
    choose("--arithmetic", run.arithmetic, ARITHMETICS)
    require_places(plan)
    if plan.transformer.turned and plan.transformer.head_dim % 2:
        raise BadInput(
            f"these sizes cannot be simulated: given {plan.transformer.head_dim} features of a head; "
            "expected an even number, as positions by angles turn them in pairs"
        )
    if plan.pipe.stages > MOST_STAGES:
        stages = counted(plan.pipe.stages, "stage")
        raise BadInput(f"--devices: given {stages}; expected at most {MOST_STAGES} to simulate")
    inner, last = prod(plan.mesh.values()) // plan.pipe.stages, plan.pipe.stages - 1
    takes = PER_ELEMENT * plan.psi
    for number, alike in {0: 1, last: 1, **({1: last - 1} if last > 1 else {})}.items():
        stage = plan.stage(number)
        each = int(PER_ELEMENT * stage.parameters + PER_ACTIVATION * stage.held.kept())
        takes += alike * (inner * each + inner**2 * PER_PAIR * len(stage.groups))
    if takes > LARGEST:
        raise BadInput(
            f"--devices: given {counted(prod(plan.mesh.values()), 'device')} and a model of "
            f"{counted(plan.psi, 'parameter')}, which take about {memory(takes)}; expected at most "
            f"{memory(LARGEST)} to simulate"
        )


# --------------------------------------------------------------------- what the simulator needs
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
        ARITHMETICS[arithmetic](),
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
    copies = profile.units is Units.BUCKET and (profile.copies or policy.summed != policy.g)
    return Rests(unpadded, profile.wholes, plan.indices, profile.waits_whole, copies)


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
    if profile.units is Units.BUCKET:
        sizes = (plan.costs[parts[name]].parameters[name] for _, name in keys)
        return _buckets(sizes, profile.buckets, plan.policy.g)
    found: dict[tuple[int, str, str], list[tuple[int, int]]] = {}
    for number, name in keys:
        vector = plan.costs[parts[name]].vector(name, profile.padding)
        part = "" if profile.units is Units.ROOT and number == OUTSIDE else parts[name]
        unit_of = (number, part, name if profile.units is Units.PARAMETER else "")
        found.setdefault(unit_of, []).append((vector.rows * vector.row, vector.row))
    by_rows = profile.padding is Padding.ROW
    cuts = (Cut(tuple(vectors)) for vectors in found.values())
    return tuple(cut if by_rows else _cut(cut.length) for cut in cuts)


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


def _buckets(sizes: Iterable[int], least: tuple[int, int], width: int) -> tuple[Cut, ...]:
    """One after the other, each of the next weights until it has so many bytes."""
    found: list[Cut] = []
    now = 0
    for size in sizes:
        now += size
        if now * width >= least[bool(found)]:
            found.append(_cut(now))
            now = 0
    return (*found, *([_cut(now)] if now else []))
