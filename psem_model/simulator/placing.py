"""Schedules of a model's weights, of which programs make the gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.layout import Vector
from psem_model.simulator.models import Backward, Model
from psem_model.simulator.network import OpKey
from psem_model.simulator.tables import Key
from spec.language.schedule import NUMBERS, Buffer, Kind, Op, Phase, Schedule
from spec.pipelines.pipeline import Half

FORWARD, BACKWARD, WEIGHTS = Half
Ops = list[tuple[OpKey, Op]]


@dataclass(frozen=True)
class Cut:
    """A unit of vectors, each of so many elements in rows, of which devices have whole ones."""

    vectors: tuple[Vector, ...]

    @property
    def length(self) -> int:
        """Elements of all its vectors."""
        return sum(length for length, _ in self.vectors)


@dataclass(frozen=True)
class Placing:
    """Weights, their schedule, and the stages that have them.

    `cuts`: the units that their elements, one after the other, are cut into before each is cut over
    devices; none: one. `pipe`: the axis of those stages in the schedule, if it has one. `group`:
    of the weights, all of which have this schedule, on whatever stage.
    """

    schedule: Schedule
    weights: tuple[Key, ...]
    cuts: tuple[Cut, ...]
    stages: tuple[int, ...]
    pipe: str = ""
    group: int = 0


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

    With backward in two parts, they are before the first and after the second. Raises ValueError where
    operations are about more than weights and their gradients.
    """

    def __init__(self, schedule: Schedule, in_two_parts: bool = False) -> None:
        ops: Ops = [(("micro_step", i), op) for i, op in enumerate(schedule.micro_step)]
        self.finish: Ops = [(("finish", i), op) for i, op in enumerate(schedule.finish)]
        for _, op in ops + self.finish:
            everyones = op.kind is Kind.BACKWARD and bool(op.axes)
            kept = op.target is Buffer.ACTIVATIONS and op.kind is not Kind.FORWARD
            numbers = {op.source, op.target, op.by}.intersection(NUMBERS)
            if everyones or kept or not numbers <= ({Buffer.NORM} if op in schedule.finish else set()):
                raise ValueError(f"{op}: expected operations on weights and their gradients")
        kinds = [op.kind for _, op in ops]
        f, b = kinds.index(Kind.FORWARD), kinds.index(Kind.BACKWARD)
        between = next(i for i, (_, op) in enumerate(ops) if i > f and op.phase is Phase.BACKWARD)
        self.reads = {FORWARD: ops[f][1].source, BACKWARD: ops[b][1].source}
        self.before = {FORWARD: ops[:f], BACKWARD: ops[between:b]}
        self.last = WEIGHTS if in_two_parts else BACKWARD
        self.after = {FORWARD: ops[f + 1 : between], BACKWARD: [], self.last: ops[b:]}
