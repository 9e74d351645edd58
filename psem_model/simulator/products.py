"""A model trained with its weights placed by schedules, on a mesh in each stage of a pipeline.

Programs say what each device computes and what it moves for that; schedules, where weights, gradients
and optimizer state rest, and over which devices gradients are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.functions import Functions, Real, Residues
from psem_model.simulator.placed import Placed
from psem_model.simulator.placing import Placing
from psem_model.simulator.slices import Slices
from psem_model.simulator.stages import ONE_STAGE, DistributedTransformer, Stage
from psem_model.simulator.transformer import Key, SingleDevice
from spec.match import Copies, Divergence, first_difference
from spec.pipeline import Pipeline, Work
from spec.programs import Move, Program
from spec.states import BytePolicy, State
from spec.transformer import Transformer
from spec.values import Value


class _Descent(Functions):
    """Gradient descent, which keeps nothing."""

    moments = 0

    def next(self, weight: Array, moments: Array, gradient: Array, step: int) -> tuple[Array, Array]:
        return self.descend(weight, gradient), moments


class ResiduesOfDescent(_Descent, Residues):
    """Residues, without optimizer state."""


class RealDescent(_Descent, Real):
    """Double precision, without optimizer state."""

    def __init__(self) -> None:
        super().__init__()
        self.moments = 0


def term(program: Program, weight: Value) -> Value:
    """The gradient of a weight as backward leaves it: its sum over some axes is the whole.

    Raises ValueError where more than sums are left to do.
    """
    value, made = program.gradients[weight], {line.makes: line for line in program.finish}
    while value in made:
        line = made[value]
        if not isinstance(line, Move) or line.collective != "all_reduce":
            raise ValueError(f"{line}: expected a sum")
        value = line.value
    return value


@dataclass
class PlacedStage(Stage):
    """A stage that has its weights while forward, or backward, reads them."""

    number: int = 0
    placed: list[Placed] = field(default_factory=list)

    def forward(self, work: Work, takes: Slices | None, step: int) -> Slices:
        with self._weights(work, step):
            return super().forward(work, takes, step)

    def backward(self, work: Work, cotangent: Slices, step: int) -> Slices | None:
        """And every weight's term of its gradient, to where it is placed."""
        with self._weights(work, step) as used:
            returned = super().backward(work, cotangent, step)
            for block in self.chunks[work.chunk]:
                sums, block.sums = block.sums, {}
                for weight in block.program.part.weights:
                    key, found = (block.layer, weight.name), sums[term(block.program, weight)]
                    (where,) = (placed for placed in used if key in placed.slices)
                    where.add(work.micro_batch, self.number, key, found.array)
        return returned

    def used(self, chunk: int) -> list[Placed]:
        """What has the weights of a chunk."""
        keys = self.keys(chunk)
        return [placed for placed in self.placed if keys & placed.slices.keys()]

    def keys(self, chunk: int) -> set[Key]:
        blocks = self.chunks[chunk]
        return {(block.layer, w.name) for block in blocks for w in block.program.part.weights}

    @contextmanager
    def _weights(self, work: Work, step: int) -> Iterator[list[Placed]]:
        used, turn = self.used(work.chunk), (work.phase, work.micro_batch)
        self.weights = {}
        for placed in used:
            self.weights |= placed.see(turn, self.number, step)
        yield used
        self.weights = {}
        for placed in used:
            placed.leave(turn, step)


class PlacedTransformer(DistributedTransformer):
    """A distributed transformer, and where its weights are placed; compared after each step.

    `placings`: of every weight of every stage, once. `divergence`: the first, if the run diverges.
    Raises ValueError where weights have none, or several, and for schedules of more than weights.
    """

    kind_of_stage = PlacedStage
    stages: list[PlacedStage]  # type: ignore[assignment]

    def __init__(
        self,
        model: Transformer,
        programs: tuple[Program, Program, Program],
        mesh: Mapping[str, int],
        micro_batch: int,
        sequence: int,
        numbers: Functions,
        placings: Iterable[Placing],
        policy: BytePolicy,
        pipe: Pipeline = ONE_STAGE,
        seed: int = 0,
        offloads: bool = False,
    ) -> None:
        super().__init__(model, programs, mesh, micro_batch, sequence, numbers, pipe, seed)
        self.single = SingleDevice(self.tables)
        self.divergence: Divergence | None = None
        self.told: Callable[[], None] = lambda: None
        self.placed = [self._placed(placing, mesh, policy) for placing in placings]
        for number, stage in enumerate(self.stages):
            stage.number, stage.offloads, stage.moments = number, offloads, {}
            stage.placed = [p for p in self.placed if number in p.placing.stages]
            for key in stage.weights:
                if sum(key in placed.slices for placed in stage.placed) != 1:
                    raise ValueError(f"{key} of stage {number} is not placed once")

    def _placed(self, placing: Placing, mesh: Mapping[str, int], policy: BytePolicy) -> Placed:
        stages, keys = [self.stages[k] for k in placing.stages], {*placing.weights}
        users = sum(bool(keys & stage.keys(i)) for stage in stages for i in range(len(stage.chunks)))
        sizes = users, int(self.pipe.micro_batches), self.numbers, policy
        return Placed(placing, stages[0].weights, mesh, *sizes)

    def step(self) -> None:
        """One step of the devices, of which what is sent is counted, and of the single device."""
        for network in (self.boundary, *(stage.devices.network for stage in self.stages)):
            network.clear()
        for placed in self.placed:
            placed.count_anew()
        super().step()
        self.single.step(self.pipe.micro_batches)
        self.divergence = self.divergence or first_difference(
            self.beside(self.single), self.numbers.unequal
        )

    def beside(self, single: SingleDevice) -> Iterator[Copies]:
        """What rests."""
        for placed in self.placed:
            yield from placed.beside(single.weights, single.moments, self.steps - 1)

    def _do(self, k: int, work: Work, inbox: dict[tuple[int, Work], Slices]) -> None:
        super()._do(k, work, inbox)
        self.told()

    def finish(self) -> None:
        """What schedules do after all micro-batches: they sum over stages, too."""
        for placed in self.placed:
            placed.finish(self.steps)

    def resting(self, stage: int, host: bool = False) -> dict[State, Number]:
        """Bytes of each state that rest on each device of a stage, or on its part of the host."""
        found = [placed.resting(host) for placed in self.stages[stage].placed]
        return {state: sum(bytes[state] for bytes in found) for state in found[0]}
