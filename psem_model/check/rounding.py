"""What a step rounds on its way, line by line: what is moved, used or copied in fewer bytes.

A verdict is of exact arithmetic: what is rounded is not what a single device has that rounds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psem_model.reading.schedule_keys import PARTS
from spec.language.moves import Move
from spec.language.programs import Program
from spec.language.schedule import REDUCTIONS, Buffer, Kind, Op, Schedule
from spec.language.steps import Step
from spec.models.states import BytePolicy, State
from spec.models.values import Does, Operation, Role
from spec.numbers.arithmetic import Number

TO_COMPUTE = "parameters, to compute with"
WHILE_GATHERED = "parameters, while they are gathered"
WHILE_SUMMED = "gradients, while they are summed"
AT_REST = "gradients, where they are added up"
PHASES = ("forward", "backward")
COMPUTING = (Kind.FORWARD, Kind.BACKWARD, Kind.RECOMPUTE)


@dataclass(frozen=True)
class Rounded:
    """A line, and from how many bytes of an element to how many it rounds.

    `of`: the model's part, or the weights whose schedule it is of, group `group`. `part`: forward,
    backward, micro_step or finish; `index`: there, from 0 on. `number`: its line in a file.
    """

    what: str
    has: Number
    to: Number
    line: Operation | Op
    part: str
    index: int
    of: tuple[str, ...]
    group: int | None = None
    number: int | None = None

    @property
    def place(self) -> object:
        """By which a file's reader knows its line."""
        return (self.of[0], self.line) if self.group is None else (self.group, self.part, self.index)

    @property
    def widths(self) -> str:
        """Its bytes, in words."""
        return f"{float(self.has):g} to {float(self.to):g}"

    def __str__(self) -> str:
        line = self.line
        said = str(line)
        if isinstance(line, Operation):
            said = f"{self.what} from {line.reads[0].plain_name}"
        return f"{self.part} {self.index + 1}: {' '.join(said.split())}"

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "of": list(self.of),
            "operation": " ".join(str(self.line).split()),
            "part": self.part,
            "index": self.index,
            "line": self.number,
            "what": self.what,
            "from": float(self.has),
            "to": float(self.to),
        }


def rounded(step: Step, policy: BytePolicy) -> tuple[Rounded, ...]:
    """Every line that rounds, with states of such types."""
    found = [line for program in step.programs for line in _of_program(program)]
    for number, group in enumerate(step.groups):
        lines = _of_schedule(group.schedule, policy)
        found += [Rounded(*line, group.weights, number) for line in lines]
    return tuple(found)


def _of_program(program: Program) -> Iterator[Rounded]:
    """Copies in another type: products with ones alone."""
    for part, lines in zip(PHASES, (program.forward, program.backward), strict=True):
        for index, line in enumerate(lines):
            if isinstance(line, Move) or line.does is not Does.CONTRACT:
                continue
            (value, ones), makes = line.reads, line.makes
            is_copy = ones.role is Role.CONSTANT and ones.name.startswith("ones")
            if is_copy and value.indices == makes.indices and 0 < makes.width < value.width:
                of = (program.part.name,)
                yield Rounded(makes.plain_name, value.width, makes.width, line, part, index, of)


def _of_schedule(
    schedule: Schedule, policy: BytePolicy
) -> Iterator[tuple[str, Number, Number, Op, str, int]]:
    """What is rounded of states: to compute with, to pass, and where gradients are added up."""
    bytes_of = {Buffer.PARAMETERS: policy.w, Buffer.VIEW: policy.computed, Buffer.GRADIENTS: policy.g}
    for part, ops in zip(PARTS, schedule.bodies, strict=True):
        for index, op in enumerate(ops):
            has = bytes_of.get(op.source, policy.fresh)
            found: list[tuple[str, Number, Number]] = []
            if op.target is Buffer.VIEW or (op.kind in COMPUTING and op.source is Buffer.PARAMETERS):
                to = policy.bytes_sent if op.kind is Kind.ALL_GATHER else policy.computed
                found.append((WHILE_GATHERED if to < policy.computed else TO_COMPUTE, has, to))
            if op.kind is Kind.BACKWARD:
                has = bytes_of[op.target] = policy.fresh
            if op.kind in REDUCTIONS and op.state is State.GRADIENTS:
                to = policy.summed_in(op.axes, has)
                found.append((WHILE_SUMMED, has, to))
                has = bytes_of[op.target] = max(has, to)
            if op.target is Buffer.GRADIENTS:
                found.append((AT_REST, has, policy.g))
                bytes_of[op.target] = policy.g
            yield from ((*each, op, part, index) for each in found if each[2] < each[1])
