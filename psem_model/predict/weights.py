"""Weights of a stage: the schedule of their states, in the units that a profile says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, groupby
from math import prod
from operator import add

from psem_model.predict.part_weights import PartWeights
from psem_model.predict.parts import PartCosts
from psem_model.predict.states import Prediction, predict_schedule
from psem_model.predict.units import (
    Weights,
    dealt,
    in_slices,
    owned,
    size_of,
    units_of,
    units_of_size,
    weights_of,
    weights_of_shapes,
)
from spec.costs.communication import most_touched
from spec.costs.memory import MODEL_STATES, Sizes, Turn, Unit, room
from spec.costs.owners import Owners
from spec.devices.mesh import Axes
from spec.language.schedule import (
    GRADIENT_BUFFERS,
    REDUCTIONS,
    Buffer,
    Kind,
    Op,
    Phase,
    Schedule,
    Span,
)
from spec.language.steps import Group as Scheduled
from spec.models.layers import Layers
from spec.models.opaque import PARAMETERS, Shapes
from spec.models.profiles import COUNT_BYTES, Padding, Profile, Units
from spec.models.states import BytePolicy, State
from spec.models.transformer import HEAD, is_layer
from spec.models.values import Role, Value
from spec.numbers.arithmetic import DIVISIBLE, EXACT, Number, ceil_div
from spec.pipelines.stages import Piece

ADDS = Kind.BACKWARD, Buffer.GRADIENTS  # to gradients that are there
CHOICES = "j"  # the index of experts to choose from
Shape = tuple[Number, Number]  # what a product makes, and what it reads


def has_copies(profile: Profile) -> bool:
    """Whether buckets are copies of gradients, which stay; copies of another type pass beside them."""
    return profile.units is Units.BUCKET and profile.copies


# --------------------------------------------------------------------- by their schedules
@dataclass(frozen=True)
class Held:
    """What a stage has, or a chunk of it: so many of each part, and so many alike in a row.

    `chunks`: what each chunk has, where gradients are summed apart.
    """

    counts: Mapping[str, int]
    runs: tuple[tuple[str, int], ...]
    chunks: tuple[Held, ...] = ()


def of_parts(counts: Mapping[str, int], pieces: Iterable[Piece], order: Iterable[str]) -> Held:
    """So many of each part, in order; `pieces`: in the model's, where layers are of several kinds."""
    found = {name: counts[name] for name in order if counts.get(name)}
    runs = groupby(piece.part.name for piece in pieces)
    return Held(found, tuple((name, len([*of])) for name, of in runs) or tuple(found.items()))


@dataclass(frozen=True)
class Group:
    """Weights of a stage whose gradients are summed over the same axes: one schedule.

    `layers`: of layers' weights, those of these.
    """

    weights: tuple[str, ...]
    layers: Layers
    costs: Prediction
    step_counts: Number  # bytes: of each weight that the device updates, one count of steps
    buckets: Number  # bytes of copies of gradients, in which they are reduced
    waiting: Number  # bytes of gradients before the last micro-step
    held: Number  # of these, beyond the slices that they leave
    at_once: Number  # bytes of the copy in which gradients that waited are summed, a unit at a time
    gathered_in: Number  # bytes of what held units are gathered in, beyond what passes
    brought: Number  # bytes of the buffer in which gradients come back from the host, weight by weight
    alone: Number  # bytes of gradients that are arrays of their own, until they are added
    largest: str = field(compare=False)  # the part that has most of them
    chunks: tuple[Group, ...] = ()  # those of each chunk, where these are summed apart

    @property
    def slices(self) -> Number:
        """Bytes of the gradients that are left, on the device or on the host."""
        return self.costs.resting[State.GRADIENTS] + self.costs.hosted[State.GRADIENTS]

    @property
    def passing(self) -> Number:
        """Bytes of what is gathered or fresh, at its own fullest moment."""
        return self.costs.peak - self.costs.total - self.held


@dataclass(frozen=True)
class StageWeights:
    """What the states of a stage's weights depend on.

    `has`: what there is, with some of the layers or others. `shapes`: of an opaque model's weights.
    `place`: of the device, along each axis. `scheduled`: the schedules.
    `shared`: the axis of stages, and how many of them have what several use.
    """

    parts: Mapping[str, PartWeights]
    has: Mapping[Layers, Held]
    shapes: Shapes
    profile: Profile
    policy: BytePolicy
    unit: Number | None
    padded: bool
    micro_steps: Number
    place: Mapping[str, int]
    scheduled: tuple[Scheduled, ...]
    mesh: Mapping[str, Number]
    shared: Mapping[str, int]

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Those of each schedule."""
        sizes = (self._sizes(of.schedule) for of in self.scheduled)
        found = map(self.group, self._held, (self.has[of.layers] for of in self.scheduled), sizes)
        here = [group for group in found if group.weights]
        most = max((group.brought for group in here), default=0)
        for number, group in enumerate(here):  # one buffer, for the largest of all
            if most and group.brought == most:
                here[number] = replace(group, costs=_beside_largest(group.costs, most))
                break
        return tuple(here)

    @property
    def _held(self) -> Iterator[Scheduled]:
        """The schedules; also of a pipeline what several parts of a stage use is held whole."""
        is_unit = self.profile.units in (Units.LAYER, Units.PARAMETER) and not self.profile.owners
        for of in self.scheduled:
            here = self.has[of.layers].counts
            uses = Counter(name for part in here for name in self.parts[part].parameters)
            is_one = is_unit and self.unit is None and all(uses[name] > 1 for name in of.weights)
            yield replace(of, schedule=of.schedule.held_whole) if is_one else of

    def _sizes(self, schedule: Schedule) -> Mapping[str, Number]:
        """The devices along each axis; of stages, those that have what several use."""
        return {**self.mesh, **{a: n for a, n in self.shared.items() if a in schedule.axes}}

    def group(self, of: Scheduled, has: Held, mesh: Mapping[str, Number]) -> Group:
        """Those of some weights that are here, and what their schedule needs and moves."""
        schedule, names, sums = of.schedule, dict[str, None](), dict[str, Number]()
        for part in has.counts:
            of_part = self.parts[part].parameters
            # tied words, if both of their uses are here, are one weight: the embedding's
            here = [name for name in of.weights if name in of_part and name not in names]
            names |= dict.fromkeys(here)
            sums[part] = sum(of_part[name] for name in here)
        psi = sum(has.counts[part] * size for part, size in sums.items())
        largest = max(sums, key=lambda part: sums[part], default="")
        known = self._known(names, has)
        is_known = PARAMETERS.name not in names or bool(self.shapes)
        has_owners = self.profile.owners and is_known
        cut = schedule.rest(State.OPTIMIZER).sharded if has_owners else ()
        along = {axis: int(size) for axis, size in mesh.items() if axis in cut}
        is_dealt = self.profile.padding is Padding.WEIGHT and _pass_in_slices(schedule, cut)
        in_turn = dealt(known, prod(along.values())) if is_dealt else known
        has_units = self.unit is None and self.profile.has_units
        units = units_of(in_turn, self.profile, self.policy.g) if has_units else ()
        owners, beside = None, self._beside(names, has)
        if cut and self.profile.padding is Padding.WEIGHT:
            owners = self._owners(known, along)
        elif cut:
            units = units or units_of_size(psi, self.unit or psi)
            owners = self._slices(psi, units, along, schedule)
            padding = owners.padding_of(psi)  # the weights are parts of the vector
            beside[State.PARAMETERS] = beside.get(State.PARAMETERS, 0) + padding
        sizes = Sizes(
            psi,
            mesh,
            self.policy,
            min(psi, sums.get(largest, 0) if self.unit is None else self.unit),
            EXACT if self.padded else DIVISIBLE,
            units=units,
            ahead=self.profile.prefetch if has_units and units else 0,
            unpadded=self.profile.unpadded,
            device=self.place,
            owners=owners,
            beside=beside,
        )
        brought = self._brought(schedule, known) if PARAMETERS.name not in names else []
        devices = prod(mesh[axis] for axis in schedule.rest(State.GRADIENTS).sharded)
        padded = psi + (owners.padding_of(psi) if owners else 0)
        touched = most_touched(brought, ceil_div(padded, int(devices))) if brought else None
        costs = predict_schedule(schedule, sizes, self.micro_steps, touched)
        count = owners.count if owners else sum(of.times * len(of.vectors) for of in known)
        is_counted = self.profile.step_counts and self.policy.counts_steps and is_known
        counts = COUNT_BYTES * count if is_counted else 0
        copied = self._copied(schedule, costs.sizes)
        waiting = costs.resting[State.GRADIENTS]
        left = schedule.sliced_by_update if self.profile.waits_whole else ()
        if left:
            slices = costs.sizes.at_rest(State.GRADIENTS, left) * self.policy.of(State.GRADIENTS)
            there, stays = (slices, 0) if schedule.hosts_updates else (0, slices)
            costs = replace(
                costs,
                resting={**costs.resting, State.GRADIENTS: stays},
                hosted={**costs.hosted, State.GRADIENTS: there},
            )
        whole = waiting - costs.resting[State.GRADIENTS]
        held = whole if self.micro_steps != 1 else 0
        waiting += 0 if left else costs.hosted[State.GRADIENTS]
        at_once = self._at_once(schedule, costs.sizes)
        each = tuple(self.group(of, chunk, mesh) for chunk in has.chunks)
        passes = self.policy.added * max((size for sizes, _ in brought for size in sizes), default=0)
        passing = costs.peak - costs.total - whole  # which is there while the last units are gathered
        beside = max(0, self._gathering(schedule, costs.sizes) - passing)
        alone = self._alone(of, has, known) if is_known else 0
        more = waiting, held, at_once, beside, passes, alone
        return Group(tuple(names), of.layers, costs, counts, copied, *more, largest, each)

    def _gathering(self, schedule: Schedule, sizes: Sizes) -> Number:
        """Bytes of a view, or of those that are held so far, and of what the last are gathered in.

        These are as many as there are ahead, and one: each is there until the next view is copied.
        """
        made = [op for op in schedule.micro_step if op.takes_room and op.target is Buffer.VIEW]
        gathers = [op for op in made if op.kind is Kind.ALL_GATHER]
        return max((_gathered_by(op, sizes) for op in gathers), default=0) if sizes.ahead else 0

    def _brought(self, schedule: Schedule, known: tuple[Weights, ...]) -> list[tuple[list[int], int]]:
        """Elements of weights, if gradients are brought back from the host, weight by weight.

        And how many layers are alike. Where parameters are slices, too, slices of gradients are.
        """
        is_sliced = schedule.rest(State.PARAMETERS).sharded
        if not self.policy.added or not schedule.rest(State.GRADIENTS).host or is_sliced:
            return []
        return [([int(size_of(vector)) for vector in of.vectors], of.times) for of in known]

    def _alone(self, of: Scheduled, has: Held, known: tuple[Weights, ...]) -> Number:
        """Bytes of gradients that are arrays of their own, until they are added.

        Of the largest weight, before it is added to what other micro-steps have left. Of one that parts
        share there are two and their sum, of which one is what passes, or is left first. What is copied
        to be reduced is so after that.
        """
        adds = any((op.kind, op.target) == ADDS for op in of.schedule.micro_step)
        later = adds and self.micro_steps != 1 and self.profile.adds_alone
        weight = max((size_of(vector) for each in known for vector in each.vectors), default=0)
        arrays = 2 + later if self.profile.adds_alone or self.profile.placeholders else 0
        width = self.policy.computed if self.profile.placeholders else self.policy.fresh
        copied = 0 if adds else self.policy.bytes_copied
        shared = max(0, arrays * width - copied) * self._largest_shared(of, has)
        return max(width * weight * later, shared)

    def _largest_shared(self, of: Scheduled, has: Held) -> Number:
        """Elements of the largest weight that several parts use here."""
        here = [self.parts[part].parameters for part in has.counts]
        uses = Counter(name for sizes in here for name in sizes if name in of.weights)
        return max((sizes[name] for sizes in here for name in sizes if uses[name] > 1), default=0)

    def _at_once(self, schedule: Schedule, sizes: Sizes) -> Number:
        """Bytes of the copy in which gradients are summed that rest until then: of the largest unit."""
        sums = [op for op in schedule.finish if op.kind in REDUCTIONS and op.source is Buffer.GRADIENTS]
        passing: list[tuple[Unit, ...]] = [(replace(unit, times=1),) for unit in sizes.units] or [()]
        found = (sizes.copied(op.within, Span.UNIT, each) for op in sums for each in passing)
        return max(found, default=0)

    def _copied(self, schedule: Schedule, sizes: Sizes) -> Number:
        """Bytes of what is copied of gradients to be reduced: of each unit, its largest slice."""
        if not has_copies(self.profile):
            return 0
        reductions = (op for op in schedule.ops if op.kind in REDUCTIONS)
        slices = {op.within for op in reductions if op.source in GRADIENT_BUFFERS}
        if not sizes.units:
            return self.policy.fresh * max(map(sizes.slice, slices), default=0)
        each = ((sizes.slice(of, Span.UNIT, (unit,)) for of in slices) for unit in sizes.units)
        return self.policy.fresh * sum(max(of_unit, default=0) for of_unit in each)

    def _beside(self, names: Iterable[str], has: Held) -> dict[State, Number]:
        """Elements of states of some weights that the device has beyond their padded slices."""
        left, found = {*names}, dict[State, Number]()
        for part, times in has.counts.items():
            here = [name for name in self.parts[part].parameters if name in left]
            left -= {*here}
            for state in MODEL_STATES:
                of = (self.parts[part].beside(n, state, self.profile, self.place) for n in here)
                found[state] = found.get(state, 0) + times * sum(of)
        return {state: more for state, more in found.items() if more != 0}

    def _known(self, names: Iterable[str], has: Held) -> tuple[Weights, ...]:
        """The weights that have some names; or all, of which only shapes are known."""
        padding = self.profile.padding
        if self.shapes:
            return weights_of_shapes(self.shapes, padding)
        return weights_of(names, has.runs, self.parts, padding, self.place)

    def _owners(self, known: tuple[Weights, ...], along: Mapping[str, int]) -> Owners:
        """The weights that devices alone update."""
        place = {axis: self.place[axis] for axis in along} if self.place else {}
        return Owners(along, owned(known, prod(along.values())), self.profile.fills, place)

    def _slices(
        self, psi: Number, units: Sequence[Unit], along: Mapping[str, int], schedule: Schedule
    ) -> Owners:
        """The slices of all units, as one vector, that devices alone update."""
        place = {axis: self.place[axis] for axis in along} if self.place else {}
        devices, multiple = prod(along.values()), self.profile.elements_a_device
        whole = EXACT if self.padded else DIVISIBLE
        slice_ = multiple * whole.shard(psi, psi, multiple * devices)
        if not _sums_slices(schedule, tuple(along)):  # it does not matter which units they are of
            units = units_of_size(psi, psi)
        return Owners(along, in_slices(units, slice_, devices), False, place, slice_)


def _pass_in_slices(schedule: Schedule, axes: Axes) -> bool:
    """Whether slices along some axes pass unit by unit: it matters who owns which weight of a unit."""
    passing = [op for op in schedule.ops if op.takes_room or op.kind in REDUCTIONS]
    gathered = (op.axes if op.kind is Kind.ALL_GATHER else () for op in passing)
    return any({*op.within, *along} & {*axes} for op, along in zip(passing, gathered, strict=True))


def _sums_slices(schedule: Schedule, axes: Axes) -> bool:
    """Whether slices along some axes are summed over devices that have the same: each unit's part."""
    return any(op.kind is Kind.ALL_REDUCE and {*op.within} & {*axes} for op in schedule.ops)


def _gathered_by(gather: Op, sizes: Sizes) -> Number:
    """Bytes of the views of one gathering of all units, and of what they are gathered in, at most.

    Of many units in a row that are alike, the most is at one of the first or at the last.
    """
    few, each = sizes.ahead + 1, list[tuple[Number, Number]]()  # a view; by how much there are more
    for unit in sizes.units[::-1] if gather.phase is Phase.BACKWARD else sizes.units:
        turn = replace(sizes, turn=Turn(replace(unit, times=1)))
        size = room(replace(gather, span=Span.UNIT), turn)
        each += [(size, size)] * min(unit.times, few)
        each += [(size, size * (unit.times - few))] if unit.times > few else []
    rooms, more = [size for size, _ in each], [step for _, step in each]
    views = accumulate(more) if gather.span is Span.ALL_UNITS else rooms
    beside = (sum(rooms[max(0, i - sizes.ahead) : i + 1]) for i in range(len(rooms)))
    return max(map(add, views, beside), default=0)


def _beside_largest(costs: Prediction, size: Number) -> Prediction:
    """With a buffer of so many bytes on the device, and as large a one on the host, for gradients."""
    of = State.GRADIENTS
    return replace(
        costs,
        resting={**costs.resting, of: costs.resting[of] + size},
        hosted={**costs.hosted, of: costs.hosted[of] + size},
        peak=costs.peak + size,
    )


# ------------------------------------------------------ in place of gradients
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
    weights, found = costs.weights, dict[Value, Shape]()
    for line in costs.program.part.operations:
        for weight in (value for value in line.reads if value.role is Role.WEIGHT):
            (other,) = (value for value in line.reads if value != weight)
            read = tuple(i for i in weight.indices if i not in line.makes.indices)
            made = tuple(i for i in weight.indices if i not in read and i not in other.indices)
            if made and read and CHOICES not in made:
                rows, row = (weights.elements_of(weights.named[weight.name], of) for of in (made, read))
                found[other] = found.get(other, (0, 0))[0] + rows, row
    return frozenset(found.values())
