"""Weights of a model that a schedule places: one vector on each device, in units.

The schedule is about some axes of the mesh; along the others, devices have other weights, each its own
vector. All of its operations run as they do in runs of a schedule alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from math import prod

import numpy as np

from psem_model.simulator import passes
from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.functions import Functions
from psem_model.simulator.layout import cluster_of
from psem_model.simulator.models import Backward, Data, Model
from psem_model.simulator.network import OpKey
from psem_model.simulator.operations import Executor
from psem_model.simulator.rests import PADDED, Cut, Rests, flat
from psem_model.simulator.run import Run, simulate
from psem_model.simulator.single import resting
from psem_model.simulator.slices import Slices, cut
from psem_model.simulator.store import Block
from psem_model.simulator.tables import OUTSIDE, Key
from spec.language.schedule import (
    NUMBERS,
    PASSING,
    RESTING,
    STATE_OF,
    Buffer,
    Kind,
    Op,
    Schedule,
)
from spec.meaning.match import Copies, Place
from spec.models.states import BytePolicy, State
from spec.pipelines.pipeline import Half

FORWARD, BACKWARD, WEIGHTS = Half
Ops = list[tuple[OpKey, Op]]


def dealt(lengths: Sequence[int], devices: int) -> list[int]:
    """The owner of each of some weights: the longest first, each to who has fewest elements."""
    held = [(0, device) for device in range(devices)]
    found = [0] * len(lengths)
    for weight in sorted(range(len(lengths)), key=lambda weight: -lengths[weight]):
        elements, found[weight] = heappop(held)
        heappush(held, (elements + lengths[weight], found[weight]))
    return found


def touched(lengths: Sequence[int], slices: int, padding: int) -> int:
    """Elements of the weights that one of so many equal slices of all, with padding, meets at most."""
    ends = np.cumsum(lengths)
    size = -(-int(ends[-1] + padding) // slices)
    begins = np.arange(slices)[:, None] * size
    meets = (ends > begins) & (ends - lengths < begins + size)
    return int((meets * np.asarray(lengths)).sum(1).max())


@dataclass(frozen=True)
class Placing:
    """Weights, their schedule, and the stages that have them.

    `cuts`: the units that their elements, one after the other, are cut into before each is cut over
    devices; none: one. `pipe`: the axis of those stages in the schedule, if it has one. `group`:
    of the weights, all of which have this schedule, on whatever stage. `arrays`: elements of each array
    that weights are, in the order of the model; none: each is one.
    """

    schedule: Schedule
    weights: tuple[Key, ...]
    cuts: tuple[Cut, ...]
    stages: tuple[int, ...]
    pipe: str = ""
    group: int = 0
    arrays: tuple[int, ...] = ()


class Given(Model):
    """An executor's model whose gradients are given: `units`, of each unit (devices, elements)."""

    def __init__(self) -> None:
        self.units: list[Array] = []

    def backward(self, of: Backward) -> list[Array]:
        return [self.units[of.unit]]

    def whole(self, weights: Sequence[Array], step: int) -> list[Array]:
        return self.units


class Halves:
    """A schedule's operations before and after forward, and backward, of a micro-batch.

    With backward in two parts, they are before the first and after the second. `late`: from a norm on.
    Raises ValueError where operations are about more than weights and their gradients.
    """

    def __init__(self, schedule: Schedule, in_two_parts: bool = False) -> None:
        ops: Ops = [(("micro_step", i), op) for i, op in enumerate(schedule.micro_step)]
        self.finish: Ops = [(("finish", i), op) for i, op in enumerate(schedule.finish)]
        for _, op in ops + self.finish:
            kept = op.target is Buffer.ACTIVATIONS and op.kind is not Kind.FORWARD
            if kept or {op.source, op.target, op.by} & {*NUMBERS} - {Buffer.NORM}:
                raise ValueError(f"{op}: expected operations on weights and their gradients")
        kinds = [op.kind for _, op in ops]
        if {*kinds} & {Kind.FORWARD, Kind.BACKWARD} != {Kind.FORWARD, Kind.BACKWARD}:
            raise ValueError("the states' schedule has no forward, or no backward")
        self.stays = schedule.stays
        # a view that stays is released when all is done: what an executor has of it, turn by turn
        ends = [(key, op) for key, op in self.finish if op.target is Buffer.VIEW] if self.stays else []
        self.finish = [each for each in self.finish if each not in ends]
        ops += ends
        f, b = kinds.index(Kind.FORWARD), kinds.index(Kind.BACKWARD)
        if b < f:
            raise ValueError("the states' schedule has backward before forward")
        between = next((i for i in range(f + 1, b) if ops[i][1].takes_room), b)
        self.reads = {FORWARD: ops[f][1].source, BACKWARD: ops[b][1].source}
        self.before = {FORWARD: ops[:f], BACKWARD: ops[between:b]}
        self.last = WEIGHTS if in_two_parts else BACKWARD
        late = next((i for i, (_, op) in enumerate(ops) if op.of_a_number), len(ops))
        if late < b:
            raise ValueError(f"{ops[late][1]}: expected it after backward")
        self.late = ops[late:]
        self.after = {FORWARD: ops[f + 1 : between], BACKWARD: [], self.last: ops[b:late]}


Turn = tuple[Half, int]  # forward or backward of a micro-batch


class Placed:
    """Some weights on all devices of the stages that have them; `users`: chunks that use them.

    What comes before forward (or backward) runs on all those devices, for all units, when the first of
    the users needs the weights; what comes after, when the last is done. What passes, each micro-batch
    has for itself.
    """

    def __init__(
        self,
        placing: Placing,
        slices: Mapping[Key, Slices],
        mesh: Mapping[str, int],
        users: int,
        micro_batches: int,
        numbers: Functions,
        policy: BytePolicy,
        in_two_parts: bool = False,
        rests: Rests = PADDED,
    ) -> None:
        self.policy, self.rests = policy, rests
        self.placing, self.users, self.numbers = placing, users, numbers
        self.micro_batches, self.halves = micro_batches, Halves(placing.schedule, in_two_parts)
        pipe = {placing.pipe: len(placing.stages)} if placing.pipe else {}
        self.cluster = cluster_of((*pipe.items(), *mesh.items()))
        self.slices = {key: slices[key] for key in placing.weights}
        ends = np.cumsum([found.elements for found in self.slices.values()]).tolist()
        places = map(slice, [0, *ends], ends)
        self.places = dict(zip(self.slices, places, strict=True))
        self.elements: int = ends[-1]
        self.units_cut = cuts = placing.cuts or (flat(self.elements),)
        if sum(unit.length for unit in cuts) != self.elements:
            raise ValueError(f"{placing.weights}: {self.elements} elements, otherwise cut")
        self.cuts = np.cumsum([unit.length for unit in cuts])[:-1]
        self.given = Given()
        self.run = Executor(
            placing.schedule,
            micro_batches,
            cuts,
            self.given,
            Data(0, self.cluster, numbers),
            policy,
            rests,
        )
        lengths = placing.arrays or tuple(found.elements for found in self.slices.values())
        of_all = len(lengths)
        owned = _count_of_most([unit for unit in cuts if unit.owners]) or of_all
        self.step_counts = np.zeros(owned if policy.counts_steps else 0, np.float32)
        self.views: dict[Turn, Array] = {}
        self.left: list[int] = []  # micro-batches of which what is late is left to do
        self.staying: Array | None = None  # the view that is there between turns, if it stays
        self.done: dict[Turn, int] = {}
        self.gradients: dict[int, Array] = {}
        self.added: dict[int, set[tuple[int, Key]]] = {}  # to what is there of a micro-batch
        self.most_added = 0  # elements of what is added to what another part has left
        self.passing: dict[int, dict[tuple[Buffer, int], Block]] = {}
        gradients = placing.schedule.rest(State.GRADIENTS)
        is_whole = gradients.host and not placing.schedule.rest(State.PARAMETERS).sharded
        self.brought: Number = policy.added * max(lengths) if is_whole else 0
        if is_whole and self.run.store.meter.added:
            devices = prod(self.cluster.sizes[axis] for axis in gradients.sharded)
            self.run.touched = touched(lengths, devices, sum(cuts[-1].padding))
            self.run.store.meter.adds_slices = False
        weights = self.units(self.vectors({key: found.array for key, found in self.slices.items()}))
        kept = self.run.store.moments
        self.run.store.start(weights, [numbers.zeros((kept, *row.shape)) for row in weights])

    # ------------------------------------------------------------------ vectors and units
    def vectors(self, arrays: Mapping[Key, Array]) -> Array:
        """A stage's arrays (devices, ...) as vectors (devices, elements), on all of the stages."""
        parts = [arrays[key].reshape(len(found.array), -1) for key, found in self.slices.items()]
        return np.concatenate([np.concatenate(parts, 1)] * len(self.placing.stages))

    def units(self, vectors: Array) -> list[Array]:
        return np.split(vectors, self.cuts, 1)

    @property
    def inner(self) -> int:
        """Devices of a stage."""
        return self.cluster.devices // len(self.placing.stages)

    def rows(self, stage: int) -> slice:
        """The devices of one of the stages."""
        first = self.placing.stages.index(stage) * self.inner
        return slice(first, first + self.inner)

    # ---------------------------------------------------------------------------- a step
    def see(self, turn: Turn, stage: int, step: int) -> dict[Key, Slices]:
        """The weights as a stage's forward, or backward, reads them; its second part reads none."""
        if turn[0] is WEIGHTS:
            self.done.setdefault(turn, 0)
            return {}
        if turn not in self.views:
            self.views[turn], self.done[turn] = self._view(turn, step), 0
        own = self.views[turn][self.rows(stage)]
        return {
            key: replace(found, array=own[:, self.places[key]].reshape(found.array.shape))
            for key, found in self.slices.items()
        }

    def _view(self, turn: Turn, step: int) -> Array:
        """The weights as forward, or backward, of a micro-batch reads them (devices, elements).

        Those of the turn before, where views stay, and no forward has released them.
        """
        half, micro_batch = turn
        view = self.staying
        if view is None:
            with self._passing_of(micro_batch):
                self._execute(self.halves.before[half], step, micro_batch)
                store, source = self.run.store, self.halves.reads[half]
                every = range(len(self.run.layouts))
                view = np.concatenate([store.slab(source, u, False, ())[0] for u in every], 1)
        is_released = half is FORWARD and any(
            op.kind is Kind.RELEASE for _, op in self.halves.after[half]
        )
        self.staying = view if self.halves.stays and not is_released else None
        return view

    def add(self, micro_batch: int, stage: int, key: Key, term: Array) -> None:
        """What a stage's backward adds to a weight's gradient: each device, of its own samples."""
        if micro_batch not in self.gradients:
            self.gradients[micro_batch] = self.numbers.zeros((self.cluster.devices, self.elements))
        here = self.rows(stage), self.places[key]
        if (stage, key) in self.added.setdefault(micro_batch, set()):
            self.most_added = max(self.most_added, self.slices[key].elements)
        self.added[micro_batch].add((stage, key))
        had = self.gradients[micro_batch][here]
        self.gradients[micro_batch][here] = self.numbers.add(had, term.reshape(had.shape))

    def leave(self, turn: Turn, step: int) -> None:
        """One of the users has done its forward, or backward."""
        half, micro_batch = turn
        self.done[turn] += 1
        if self.done[turn] == self.users:
            del self.done[turn]
            self.views.pop(turn, None)
            if half is self.halves.last:
                self.added.pop(micro_batch, None)
                self.given.units = self.units(self._of_all(self.gradients.pop(micro_batch)))
            self.go_on(self.halves.after[half], step, micro_batch)
            if half is self.halves.last and self.halves.late:
                self.left.append(micro_batch)

    def go_on(self, ops: Ops, step: int, micro_batch: int) -> None:
        """Some of what comes after forward, or backward, of a micro-batch."""
        with self._passing_of(micro_batch):
            self._execute(ops, step, micro_batch)

    def _of_all(self, gradients: Array) -> Array:
        """Gradients; along axes of which a device is to have all samples', known where all have one."""
        axes = self.placing.schedule.samples_of_all
        if not axes:
            return gradients
        grid = gradients.reshape(*self.cluster.shape, -1)
        firsts = (grid.take([0], self.cluster.names.index(axis)) for axis in axes)
        alike = np.all([grid == first for first in firsts], 0).reshape(gradients.shape)
        return np.where(alike, gradients, self.run.data.unknown(*gradients.shape))

    def finish(self, ops: Ops, step: int) -> None:
        """Some of what comes after all micro-batches."""
        self.staying = None
        self.step_counts += any(op.kind is Kind.UPDATE for _, op in ops)
        self._execute(ops, step, self.micro_batches - 1)

    def _execute(self, ops: Ops, step: int, micro_batch: int) -> None:
        turns = tuple(passes.Turn(key, micro_batch, op) for key, op in ops)
        self.run.execute(passes.Pass(turns, False), step)

    @contextmanager
    def _passing_of(self, micro_batch: int) -> Iterator[None]:
        """With what passes of one micro-batch, and of no other."""
        blocks = self.run.store.blocks
        blocks |= self.passing.pop(micro_batch, {})
        yield
        passing = [place for place in blocks if place[0] in PASSING]
        self.passing[micro_batch] = {place: blocks.pop(place) for place in passing}

    # --------------------------------------------------------------- what is held and sent
    @property
    def in_full(self) -> int:
        """Bytes of the weights of one device as a process makes them before anything is placed."""
        return sum(found.array[0].astype(np.float32).nbytes for found in self.slices.values())

    @cached_property
    def alone(self) -> Run:
        """A run of the schedule alone, on the same units: a chunk is computed with all of its weights.

        More than two micro-batches are like two.
        """
        schedule, sizes = self.placing.schedule, self.cluster.sizes
        return simulate(
            schedule,
            {axis: sizes[axis] for axis in schedule.axes},
            self.elements,
            micro_steps=min(self.micro_batches, 2),
            policy=self.policy,
            cuts=self.units_cut,
            rests=self.rests,
        )

    @property
    def most_passing(self) -> Number:
        """Bytes of views and fresh gradients at the fullest moment, as units take their turns."""
        if not (self.rests.waits_whole and self.placing.schedule.sliced_by_update):
            return self.alone.passing
        beyond = self._beyond_slices(State.GRADIENTS) * self.run.store.meter.widths[Buffer.GRADIENTS]
        return self.alone.passing + beyond  # which goes, where slices are left

    @property
    def added_alone(self) -> Number:
        """Bytes of gradients that are arrays of their own until they are added: the largest weight's.

        Of what a part has added to another's there are these two and their sum; copies come after that.
        """
        if not (self.rests.adds_alone or self.rests.placeholders):
            return 0
        is_placeholder, widths = self.rests.placeholders, self.run.store.meter.widths
        width = self.policy.computed if is_placeholder else widths[Buffer.FRESH]
        ops = [op for op in self.placing.schedule.micro_step if op.kind is Kind.BACKWARD]
        adds = any(op.target is Buffer.GRADIENTS for op in ops)
        is_later = adds and self.rests.adds_alone and self.micro_batches > 1
        weights = self.placing.arrays or tuple(found.elements for found in self.slices.values())
        beside = (3 if is_later else 2) * width - (0 if adds else self.policy.bytes_copied)
        return max(max(weights) * width if is_later else 0, self.most_added * max(0, beside))

    @property
    def gathered_in(self) -> Number:
        """Bytes that there are more of, with what views are gathered in, than at that moment."""
        return max(0, self.alone.meter.gathering - self.alone.meter.peak)

    def waiting(self, keys: Collection[Key]) -> Number:
        """Bytes of gradients of some weights' units that wait whole, beyond the slices that they leave.

        A unit is of the chunk that has its first weight.
        """
        store, found = self.run.store, 0
        firsts = dict(zip([0, *self.cuts], self.run.layouts, strict=True))
        for key, at in self.places.items() if self.rests.sums_by_chunk and store.left else ():
            layout = firsts.get(at.start)
            if key in keys and layout:
                found += layout.length
                found -= 0 if store.left_on_host else layout.size(layout.slice(store.left))
        beside = self._beyond_slices(State.GRADIENTS, keys) if found else 0
        return (found + beside) * store.meter.widths[Buffer.GRADIENTS]

    def resting(self, host: bool, stage: int) -> dict[State, Number]:
        """Bytes of each state on a stage's first device, or on its part of the host."""
        found = self.run.store.resting(host, self.rests.unpadded, self.rows(stage))
        if host and self.run.touched is not None:
            found[State.GRADIENTS] += self.run.store.meter.added * self.run.touched
        for buffer in RESTING:
            state = STATE_OF[buffer]
            rest = self.placing.schedule.rest(state)
            left = (
                state is State.GRADIENTS
                and self.rests.waits_whole
                and self.placing.schedule.sliced_by_update
            )
            if rest.stored and rest.host is host and not (rest.sharded or left):
                found[state] += self.run.store.meter.widths[buffer] * self._beyond_slices(state)
        return found

    def _beyond_slices(self, state: State, keys: Collection[Key] | None = None) -> int:
        """Elements of a state that a device has of weights, all or some, beyond its slices of them."""
        wholes, sizes = self.rests.wholes.get(state, frozenset()), self.rests.sizes
        some = self.slices.keys() if keys is None else self.slices.keys() & keys
        here = [self.slices[key] for key in some if key[1] in wholes]
        return sum(prod(sizes[i] for i in found.indices) - found.elements for found in here)

    # ------------------------------------------------------------------ beside one device
    def beside(
        self, weights: Mapping[Key, Array], moments: Mapping[Key, Array], step: int
    ) -> Iterator[Copies]:
        """What rests, beside the single device's weights and moments (how many, ...)."""

        def rows(tables: Mapping[Key, Array]) -> list[Array]:
            found = {k: cut(tables[k], v.indices, v.where).array for k, v in self.slices.items()}
            return self.units(self.vectors(found))

        kept = range(self.run.store.moments)
        each = [rows({key: found[i] for key, found in moments.items()}) for i in kept]
        return resting(self.run, rows(weights), each, self._place, step)

    def _place(self, index: tuple[int, int]) -> Place:
        """Of a device's number, and of an element's in the vector; padding is the last weight's."""
        stage = index[0] // self.inner
        coordinate = self.cluster.coordinate(index[0])
        ends = ((k, at.stop) for k, at in self.places.items())
        layer, name = next((k for k, end in ends if index[1] < end), [*self.places][-1])
        return Place(
            coordinate[1:] if self.placing.pipe else coordinate,
            weight=name,
            layer=None if layer == OUTSIDE else layer,
            stage=self.placing.stages[stage],
        )


def _count_of_most(cuts: Sequence[Cut]) -> int:
    """How many weights a device owns, a slice as one: the first of those with most elements."""
    if any(cut.slice for cut in cuts):
        return 1
    pairs = [
        (owner, length)
        for cut in cuts
        for owner, (length, _) in zip(cut.owners, cut.vectors, strict=True)
    ]
    if not pairs:
        return 0
    owners, lengths = zip(*pairs, strict=True)
    most = int(np.bincount(owners, weights=lengths).argmax())
    return owners.count(most)
