"""A model trained on a mesh of devices, its layers in the stages of a pipeline; one stage: no pipeline.

Each stage is a mesh of its own; between stages, devices at the same place of their meshes send one
another what layers hand on, and its cotangent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from math import prod
from types import MappingProxyType

import numpy as np

from psem_model.simulator.blocks import Block
from psem_model.simulator.custom import SingleCustom, sends
from psem_model.simulator.functions import Functions
from psem_model.simulator.lines import Devices
from psem_model.simulator.network import Network, point_to_point
from psem_model.simulator.norms import Ends
from psem_model.simulator.operations import Executor
from psem_model.simulator.placed import Placed, Placing
from psem_model.simulator.placeholders import Placeholders
from psem_model.simulator.rests import PADDED, Rests
from psem_model.simulator.run import Trial
from psem_model.simulator.single_model import SingleModel
from psem_model.simulator.slices import Grid, Slices, cut, in_order
from psem_model.simulator.stages import NOT_KEPT, Kept, Stage
from psem_model.simulator.tables import OUTSIDE, Key, Tables, TransformerTables
from psem_model.simulator.transformer import SingleTransformer
from spec.language.programs import Program
from spec.meaning.match import Copies, Place
from spec.models.custom import Custom
from spec.models.states import BytePolicy
from spec.models.transformer import Transformer, is_layer
from spec.pipelines.pipeline import Half, Order, Pipeline, Work, works_of_stage

ONE_STAGE = Pipeline(Order.ONE_F_ONE_B, 1, 1)


def _route(pipe: Pipeline) -> list[int]:
    """The stages that a micro-batch passes, one after the other: round and round, or up and back."""
    up = [*range(pipe.stages)]
    return [k for chunk in range(pipe.chunks) for k in (up[::-1] if pipe.is_folded and chunk else up)]


def _single(
    model: Transformer | Custom,
    grid: Grid,
    numbers: Functions,
    sizes: tuple[int, int],
    seed: int,
    micro_batches: int,
    stateful: bool,
) -> SingleModel:
    """The single device. `sizes`: samples and positions of a micro-batch."""
    if isinstance(model, Custom):
        routes = (grid.cells(), prod(grid.counts("e"))) if sends(model) else ()
        tables = Tables(numbers, model.sizes(*sizes), seed, *routes)
        return SingleCustom(model, tables, micro_batches, stateful)
    cells = grid.cells() if model.experts else None
    tables = TransformerTables(numbers, model, *sizes, seed, cells, prod(grid.counts("e")))
    return SingleTransformer(tables, micro_batches, stateful)


class DistributedModel(Trial):
    """A model on `mesh` in each stage of a pipeline, beside a single device that does the same steps.

    `programs`: of what comes before the layers, of layers of each kind, and of what comes after them.
    `placings`: of every weight of every stage,
    once. `axis`: that of the stages. `orders`: of each index the axes that may cut it, the outer one
    first.
    `boundary` counts what stages send one another: device number = stage * devices of a stage + own.
    Layers are cut as evenly as they go, or as listed.
    Raises ValueError where slices do not meet, where weights have no placing or several, and for
    schedules of more than weights.
    """

    single: SingleModel

    def __init__(
        self,
        model: Transformer | Custom,
        programs: tuple[Program, ...],
        mesh: Mapping[str, int],
        micro_batch: int,
        sequence: int,
        numbers: Functions,
        placings: Iterable[Placing],
        policy: BytePolicy,
        pipe: Pipeline = ONE_STAGE,
        seed: int = 0,
        offloads: bool = False,
        axis: str = "",
        orders: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        samples: Kept = NOT_KEPT,
        rests: Rests = PADDED,
    ) -> None:
        super().__init__(numbers, rests)
        self.pipe = pipe
        self.route = _route(pipe)
        grid = Grid(programs, mesh, model.sizes(micro_batch, sequence), orders)
        self.grid, self.inner = grid, grid.cluster.devices
        self.gives = programs[-1].part.gives.indices
        of = int(pipe.micro_batches), policy.k > 0
        self.single = _single(model, grid, numbers, (micro_batch, sequence), seed, *of)
        self.tables = self.single.tables
        self.boundary = Network(pipe.stages * self.inner)
        self.stages = [self._stage(k, model, programs, offloads) for k in range(pipe.stages)]
        for stage in self.stages:
            stage.samples = samples
            stage.placeholders = Placeholders() if rests.placeholders else None
        weights = [stage.start() for stage in self.stages]
        self.placed = [self._placed(placing, weights, mesh, policy) for placing in placings]
        self.ends = Ends(self.placed, (axis, pipe.stages), mesh, numbers)
        self.single.clips = any(placed.placing.schedule.training.clip for placed in self.placed)
        for stage, keys in zip(self.stages, weights, strict=True):
            stage.placed = [p for p in self.placed if stage.number in p.placing.stages]
            for key in keys:
                if sum(key in placed.slices for placed in stage.placed) != 1:
                    raise ValueError(f"{key[1]} of stage {stage.number} is not placed once")

    def _stage(
        self, k: int, model: Transformer | Custom, programs: tuple[Program, ...], offloads: bool
    ) -> Stage:
        of_layers = {program.part.name: program for program in programs if is_layer(program.part.name)}
        before = [*takewhile(lambda program: program.part.name not in of_layers, programs)]
        after = [p for p in programs[len(before) :] if p.part.name not in of_layers]
        pipe, devices = self.pipe, Devices(self.grid, self.tables, Network(self.inner))
        chunks = []
        for virtual in (virtual for virtual, at in enumerate(self.route) if at == k):
            numbers = range(model.layers)
            if pipe.layers:
                of = [v for v, count in enumerate(pipe.layers) for _ in range(count)]
            else:
                of = [i * pipe.virtual_stages // model.layers for i in numbers]
            here = [i for i in numbers if of[i] == virtual]
            chunk = [
                Block(of_layers[name], i, devices) for i in here for name in model.layers_of(i, i + 1)
            ]
            if virtual == 0:
                chunk = [*(Block(program, OUTSIDE, devices) for program in before), *chunk]
            if virtual == pipe.virtual_stages - 1:
                chunk += [Block(program, OUTSIDE, devices) for program in after]
            chunks.append(chunk)
        return Stage(k, devices, chunks, works_of_stage(pipe, k), offloads)

    def _placed(
        self,
        placing: Placing,
        weights: list[dict[Key, Slices]],
        mesh: Mapping[str, int],
        policy: BytePolicy,
    ) -> Placed:
        stages, keys = [self.stages[k] for k in placing.stages], {*placing.weights}
        users = sum(bool(keys & stage.keys(i)) for stage in stages for i in range(len(stage.chunks)))
        sizes = users, int(self.pipe.micro_batches), self.tables.numbers, policy, self.pipe.in_two_parts
        return Placed(placing, weights[placing.stages[0]], mesh, *sizes, self.rests)

    # ------------------------------------------------------------------------ a step
    def executors(self) -> Sequence[Executor]:
        return [placed.run for placed in self.placed]

    def links(self) -> Iterable[Network]:
        """Between stages, within each, and of norms."""
        of_stages = (stage.devices.network for stage in self.stages)
        return (self.boundary, *of_stages, *self.ends.networks)

    def work(self) -> Iterator[Work]:
        """One step.

        All micro-batches forward and backward, each stage in its order; then what schedules do after
        all of them: they sum over stages, too. Raises ValueError where every stage that has work left
        waits for another.
        """
        for work in self._forward_and_backward():
            self.ends.late(self.steps)
            yield work
        self.ends.finish(self.steps)

    def _forward_and_backward(self) -> Iterator[Work]:
        """Forward and backward of all micro-batches."""
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
                yield work
                now[k] = next(left[k], None)

    def _virtual(self, k: int, work: Work) -> int:
        """The place of a stage's chunk on the route."""
        return [virtual for virtual, at in enumerate(self.route) if at == k][work.chunk]

    def _is_ready(self, k: int, work: Work, inbox: dict[tuple[int, Work], Slices]) -> bool:
        if work.half is Half.WEIGHTS:
            return (work.micro_batch, work.chunk) in self.stages[k].held
        forward = work.half is Half.FORWARD
        if self._virtual(k, work) == (0 if forward else self.pipe.virtual_stages - 1):
            return forward or (work.micro_batch, work.chunk) in self.stages[k].kept
        return (k, work) in inbox

    def _do(self, k: int, work: Work, inbox: dict[tuple[int, Work], Slices]) -> None:
        """One work, and what comes of it sent to the stage that waits for it."""
        stage, virtual = self.stages[k], self._virtual(k, work)
        found: Slices | None
        if work.half is Half.WEIGHTS:
            return stage.second_part(work, self.steps)
        if work.half is Half.FORWARD:
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
            receiver = self.route[after]
            chunk = self.route[:after].count(receiver)
            inbox[receiver, work._replace(chunk=chunk)] = self.send(found, k, receiver)

    def send(self, value: Slices, sender: int, receiver: int) -> Slices:
        """From each device of a stage to the one at its place in another."""
        if sender == receiver:
            return value
        n = self.inner
        buffer = np.zeros((1, self.boundary.devices, *value.array.shape[1:]), value.array.dtype)
        buffer[0, sender * n : (sender + 1) * n] = value.array
        self.boundary.serve(("boundary", 0), width=value.width)
        for place in range(n):
            buffer = point_to_point(buffer, sender * n + place, receiver * n + place, self.boundary)
        return replace(value, array=buffer[0, receiver * n : (receiver + 1) * n])

    # --------------------------------------------------------------- beside one device
    def beside(self) -> Iterator[Copies]:
        """What rests, and losses, beside the single device's."""
        for placed in self.placed:
            yield from placed.beside(self.single.weights, self.single.moments, self.steps - 1)
        losses, last = self.single.losses, len(self.stages) - 1
        for m, loss in self.stages[-1].losses.items():
            has, single = in_order(loss, self.gives), cut(losses[m], self.gives, loss.where).array
            largest = max(np.abs(table).max() for table in losses)

            def place(index: tuple[int, ...]) -> Place:
                return Place(self.grid.cluster.coordinate(index[0]), None, None, None, last)

            yield Copies(self.steps - 1, f"loss of micro-batch {m}", has, single, place, largest)
