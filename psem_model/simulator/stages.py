"""A model trained on a mesh of devices, its layers in the stages of a pipeline; one stage: no pipeline.

Each stage is a mesh of its own, and executes programs; between stages, devices at the same place of
their meshes send one another what layers hand on, and its cotangent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.blocks import Block, Devices, Values
from psem_model.simulator.functions import Functions
from psem_model.simulator.layout import Cluster
from psem_model.simulator.moves import sum_over
from psem_model.simulator.network import Network, point_to_point
from psem_model.simulator.slices import Grid, Slices, cut
from psem_model.simulator.tables import OUTSIDE, Moment, Tables
from psem_model.simulator.transformer import Key, SingleDevice
from spec.match import Copies, Place
from spec.pipeline import Kind, Phase, Pipeline, Work, order
from spec.programs import Program
from spec.transformer import Transformer
from spec.values import Value

ONE_STAGE = Pipeline(Kind.ONE_F_ONE_B, 1, 1)


@dataclass
class Room:
    """Bytes that parts keep from forward to backward, on each device or on its part of the host.

    `held`, `peak`: now and at most, by the name of the part; `fullest`: at most, of all together.
    """

    held: dict[str, Number] = field(default_factory=dict)
    peak: dict[str, Number] = field(default_factory=dict)
    fullest: Number = 0

    def add(self, name: str, size: Number) -> None:
        self.held[name] = self.held.get(name, 0) + size
        self.peak[name] = max(self.peak.get(name, 0), self.held[name])
        self.fullest = max(self.fullest, sum(self.held.values()))


@dataclass
class Stage:
    """Devices that have some of the parts, in chunks, and what they hold.

    `offloads`: what a part keeps goes to the host after its forward, and comes back for its backward.
    """

    devices: Devices
    chunks: list[list[Block]]
    orders: list[Work]
    weights: dict[Key, Slices] = field(default_factory=dict)
    moments: dict[Key, Array] = field(default_factory=dict)
    gradients: dict[Key, Slices] = field(default_factory=dict)
    kept: dict[tuple[int, int], list[Values]] = field(default_factory=dict)
    losses: dict[int, Slices] = field(default_factory=dict)
    offloads: bool = False
    room: Room = field(default_factory=Room)
    host: Room = field(default_factory=Room)

    def start(self) -> None:
        """Each weight's slice, once, however many parts read it; no optimizer state yet."""
        for block in (block for chunk in self.chunks for block in chunk):
            for weight in block.program.part.weights:
                table = self.devices.tables.weight(weight.name, weight.indices, block.layer)
                self.weights[block.layer, weight.name] = block.place(weight, table)
        zeros, how_many = self.devices.numbers.zeros, self.devices.numbers.moments
        self.moments = {k: zeros((how_many, *w.array.shape)) for k, w in self.weights.items()}

    def of(self, block: Block) -> dict[Value, Slices]:
        """The weights of a part."""
        return {w: self.weights[block.layer, w.name] for w in block.program.part.weights}

    def hold(self, block: Block, made: Values) -> Values:
        """What forward leaves for backward, where it is kept."""
        self.room.add(block.name, block.bytes_kept(made))
        return self._moved(block, made, self.room, self.host) if self.offloads else made

    def take(self, block: Block, kept: Values) -> Values:
        """What is kept, on the devices."""
        return self._moved(block, kept, self.host, self.room) if self.offloads else kept

    def _moved(self, block: Block, values: Values, leaves: Room, enters: Room) -> Values:
        """Over the host link: there is room on the other side before any is free on this."""
        found = block.over_host_link(values, enters is self.host)
        enters.add(block.name, block.bytes_kept(found))
        leaves.add(block.name, -block.bytes_kept(values))
        return found

    def forward(self, work: Work, takes: Slices | None, step: int) -> Slices:
        """One micro-batch through one chunk."""
        kept, given = [], takes
        for block in self.chunks[work.chunk]:
            given, values = block.forward(self.of(block), given, Moment(step, work.micro_batch))
            kept.append(self.hold(block, values))
        self.kept[work.micro_batch, work.chunk] = kept
        if given is None:
            raise ValueError("the first chunk begins with an embedding")
        return given

    def backward(self, work: Work, cotangent: Slices, step: int) -> Slices | None:
        """The cotangent of what the chunk took."""
        kept, found = self.kept.pop((work.micro_batch, work.chunk)), cotangent
        for block, away in zip(self.chunks[work.chunk][::-1], kept[::-1], strict=True):
            values = self.take(block, away)
            returned = block.backward(self.of(block), values, found, Moment(step, work.micro_batch))
            self.room.add(block.name, -block.bytes_kept(values))
            if returned is None:
                return None
            found = returned
        return found

    def finish(self, step: int) -> None:
        """Gradients of all micro-batches; of a weight that two parts read, those by way of both."""
        self.gradients = {}
        for block in (block for chunk in self.chunks for block in chunk):
            for weight, gradient in block.finish(Moment(step, 0)).items():
                key = (block.layer, weight.name)
                had = self.gradients.get(key)
                self.gradients[key] = gradient if had is None else block.added(had, gradient)

    def update(self, step: int) -> None:
        """Each device, its own slice of each weight."""
        for key, gradient in self.gradients.items():
            has = self.weights[key]
            moved = self.devices.numbers.next(has.array, self.moments[key], gradient.array, step)
            self.weights[key], self.moments[key] = replace(has, array=moved[0]), moved[1]


class DistributedTransformer:
    """A model on `mesh` in each stage of a pipeline. `programs`: of embedding, layer and head.

    `boundary` counts what stages send one another: device number = stage * devices of a stage + own.
    `copies[weight]`: what the stages that have a copy of it send; numbered so, as if alone.
    Layers are cut as evenly as they go. Raises ValueError where slices do not meet.
    """

    kind_of_stage: type[Stage] = Stage

    def __init__(
        self,
        model: Transformer,
        programs: tuple[Program, Program, Program],
        mesh: Mapping[str, int],
        micro_batch: int,
        sequence: int,
        numbers: Functions,
        pipe: Pipeline = ONE_STAGE,
        seed: int = 0,
    ) -> None:
        self.pipe, self.numbers, self.steps = pipe, numbers, 0
        grid = Grid(programs, mesh, model.sizes(micro_batch, sequence))
        self.grid, self.inner = grid, grid.cluster.devices
        cells = grid.cells() if model.experts else None
        self.tables = Tables(numbers, model, micro_batch, sequence, seed, cells)
        self.boundary = Network(pipe.stages * self.inner)
        self.stages = [self._stage(k, model.layers, programs) for k in range(pipe.stages)]
        self.copies: dict[Key, Network] = {}

    def _stage(self, k: int, layers: int, programs: tuple[Program, Program, Program]) -> Stage:
        pipe, devices = self.pipe, Devices(self.grid, self.tables, Network(self.inner))
        chunks = []
        for virtual in range(k, pipe.virtual_stages, pipe.stages):
            here = [i for i in range(layers) if i * pipe.virtual_stages // layers == virtual]
            chunk = [Block(programs[1], i, devices) for i in here]
            if virtual == 0:
                chunk.insert(0, Block(programs[0], OUTSIDE, devices))
            if virtual == pipe.virtual_stages - 1:
                chunk.append(Block(programs[2], OUTSIDE, devices))
            chunks.append(chunk)
        stage = self.kind_of_stage(devices, chunks, order(pipe, k))
        stage.start()
        return stage

    # ------------------------------------------------------------------------ a step
    def step(self) -> None:
        """All micro-batches forward and backward, each stage in its order; then the update.

        Raises ValueError where every stage that has work left waits for another.
        """
        inbox: dict[tuple[int, Work], Slices] = {}
        left = [iter(stage.orders) for stage in self.stages]
        now = [next(rest, None) for rest in left]
        while any(now):
            works = [(k, work) for k, work in enumerate(now) if work]
            ready = [(k, work) for k, work in works if self._is_ready(k, work, inbox)]
            if not ready:
                raise ValueError(f"every stage waits: {now}")
            for k, work in ready:
                self._do(k, work, inbox)
                now[k] = next(left[k], None)
        self.finish()
        self.steps += 1

    def finish(self) -> None:
        """The whole gradients, and the update."""
        for stage in self.stages:
            stage.finish(self.steps)
        self.sum_copies()
        for stage in self.stages:
            stage.update(self.steps)

    def _virtual(self, k: int, work: Work) -> int:
        return int(work.chunk * self.pipe.stages + k)

    def _is_ready(self, k: int, work: Work, inbox: dict[tuple[int, Work], Slices]) -> bool:
        forward = work.phase is Phase.FORWARD
        if self._virtual(k, work) == (0 if forward else self.pipe.virtual_stages - 1):
            return forward or (work.micro_batch, work.chunk) in self.stages[k].kept
        return (k, work) in inbox

    def _do(self, k: int, work: Work, inbox: dict[tuple[int, Work], Slices]) -> None:
        """One work, and what comes of it sent to the stage that waits for it."""
        stage, virtual = self.stages[k], self._virtual(k, work)
        found: Slices | None
        if work.phase is Phase.FORWARD:
            found = stage.forward(work, inbox.pop((k, work), None), self.steps)
            after = virtual + 1
            if after == self.pipe.virtual_stages:
                stage.losses[work.micro_batch] = found
                return
        else:
            if virtual == self.pipe.virtual_stages - 1:
                loss = stage.losses[work.micro_batch]
                ones = self.numbers.count(np.ones(loss.array.shape, np.int64))
                cotangent = replace(loss, array=ones)
            else:
                cotangent = inbox.pop((k, work))
            found = stage.backward(work, cotangent, self.steps)
            after = virtual - 1
        if found is not None:
            chunk, receiver = divmod(after, self.pipe.stages)
            inbox[receiver, work._replace(chunk=chunk)] = self.send(found, k, receiver)

    def send(self, value: Slices, sender: int, receiver: int) -> Slices:
        """From each device of a stage to the one at its place in another."""
        if sender == receiver:
            return value
        n = self.inner
        buffer = np.zeros((1, self.boundary.devices, *value.array.shape[1:]), value.array.dtype)
        buffer[0, sender * n : (sender + 1) * n] = value.array
        self.boundary.serve(("boundary", 0), None, width=value.width)
        for place in range(n):
            buffer = point_to_point(buffer, sender * n + place, receiver * n + place, self.boundary)
        return replace(value, array=buffer[0, receiver * n : (receiver + 1) * n])

    def sum_copies(self) -> None:
        """The gradient of a weight that several stages have: the sum of theirs, on each."""
        where: dict[Key, list[int]] = {}
        for k, stage in enumerate(self.stages):
            for key in stage.gradients:
                where.setdefault(key, []).append(k)
        for key, stages in where.items():
            if len(stages) > 1:
                self._sum(key, [self.stages[k] for k in stages])

    def _sum(self, key: Key, stages: list[Stage]) -> None:
        cluster = Cluster((("stage", len(stages)), ("place", self.inner)))
        network = self.copies.setdefault(key, Network(cluster.devices))
        network.serve(("copies", 0), None)
        arrays = np.concatenate([stage.gradients[key].array for stage in stages])
        found = sum_over(arrays, cluster.group(("stage",)), self.numbers, network)
        for stage, array in zip(stages, np.split(found, len(stages)), strict=True):
            stage.gradients[key] = replace(stage.gradients[key], array=array)

    # --------------------------------------------------------------- beside one device
    def beside(self, single: SingleDevice) -> Iterator[Copies]:
        """Losses, gradients and weights, beside those of the one that did the same steps."""
        losses, last = single.losses[-1], len(self.stages) - 1
        for m, loss in self.stages[-1].losses.items():
            yield self._beside(f"loss of micro-batch {m}", last, None, loss, losses[m], losses)
        for k, stage in enumerate(self.stages):
            states = (
                ("gradients", stage.gradients, single.gradients),
                ("parameters", stage.weights, single.weights),
            )
            for state, kept, whole in states:
                for key, has in kept.items():
                    yield self._beside(state, k, key, has, whole[key], whole.values())

    def _beside(
        self, state: str, k: int, key: Key | None, has: Slices, whole: Array, every: Iterable[Array]
    ) -> Copies:
        """The slices of a value on a stage. `every`: what its numbers are compared beside."""
        layer, weight = key or (OUTSIDE, None)

        def place(index: tuple[int, ...]) -> Place:
            return Place(
                self.grid.cluster.coordinate(index[0]),
                None,
                weight,
                None if layer == OUTSIDE else layer,
                k,
            )

        single = cut(whole, has.indices, has.where).array
        largest = max(np.abs(table).max() for table in every)
        return Copies(self.steps - 1, state, has.array, single, place, largest)
