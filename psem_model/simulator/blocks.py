"""Programs, executed: a part of a model on a mesh of devices, each with its own slices and terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.functions import Functions
from psem_model.simulator.layout import Group
from psem_model.simulator.loops import Run, Values
from psem_model.simulator.moves import move
from psem_model.simulator.network import Network
from psem_model.simulator.routes import to_slots, to_tokens
from psem_model.simulator.slices import Grid, Slices, cut
from psem_model.simulator.tables import Moment, Tables
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import LOG_TOTAL, Does, Operation, Role, Value

EMPTY: set[Value] = set()


@dataclass(frozen=True)
class Devices:
    """A mesh, what its devices compute with, and what they send."""

    grid: Grid
    tables: Tables
    network: Network

    @property
    def numbers(self) -> Functions:
        return self.tables.numbers


class Block:
    """One part: an embedding, one of the layers, or a head.

    `fullest`: bytes that each device computes with at the fullest moment of forward or backward, beside
    weights, what is kept between the two, and gradients.
    """

    def __init__(self, program: Program, layer: int, devices: Devices) -> None:
        self.program, self.layer, self.devices = program, layer, devices
        self.forward_lines = frozenset(program.forward)
        self.apart = {*program.part.weights, *program.kept, *program.gradients.values()}
        self.fullest: Number = 0
        self.turn: dict[str, int] = {}  # of the loops that run

    @property
    def name(self) -> str:
        return self.program.part.name

    def place(self, value: Value, table: Array) -> Slices:
        """A weight's or a constant's slices, as the program says that it lies."""
        grid = self.devices.grid
        if not value.indices:
            raise ValueError(f"{value}: a number of no index")
        where = grid.where(value.indices, self.program.lies[value], self.turn)
        return replace(cut(table, value.indices, where), width=value.width)

    def empty(self, value: Value) -> Slices:
        """Room for a value, with nothing in it."""
        where = self.devices.grid.where(value.indices, self.program.lies[value], self.turn)
        sizes = (where[index].shape[1] for index in value.indices)
        array = self.devices.numbers.zeros((self.devices.grid.cluster.devices, *sizes))
        return Slices(value.indices, array, where, value.width)

    def forward(
        self, weights: Mapping[Value, Slices], takes: Slices | None, moment: Moment
    ) -> tuple[Slices, Values]:
        """What the part gives, and what is kept for backward: nothing but that."""
        has = dict(weights)
        if self.program.part.takes and takes:
            has[self.program.part.takes] = takes
        every = range(len(self.program.forward))
        self.run("forward", every, has, moment, (*self.program.kept, self.program.gives))
        kept = {value: self.value(value, "backward", has) for value in self.program.kept}
        return self.value(self.program.gives, "what follows", has), kept

    def backward(
        self, weights: Mapping[Value, Slices], kept: Values, cotangent: Slices, moment: Moment
    ) -> tuple[Values, Slices | None, Values]:
        """Gradients of weights, from what was kept, and the cotangent of what the part takes.

        And what is held for those that wait: all there is of a second part.
        """
        program = self.program
        has, returns = {**weights, **kept, program.seed: cotangent}, program.returns
        first, _ = program.parts_of_backward
        leaves = (*([returns] if returns else []), *program.held_between)
        gradients = self.gradients(range(len(first)), has, moment, leaves)
        held = {value: self.value(value, "what waits", has) for value in program.held_between}
        return gradients, self.value(returns, "what comes before", has) if returns else None, held

    def second_part(self, held: Values, moment: Moment) -> Values:
        """The gradients that waited: nothing is there but what was held for them."""
        first, second = self.program.parts_of_backward
        lines = range(len(first), len(first) + len(second))
        return self.gradients(lines, dict(held), moment, (), {*held})

    def gradients(
        self,
        numbers: range,
        has: Values,
        moment: Moment,
        leaves: tuple[Value, ...],
        apart: set[Value] = EMPTY,
    ) -> Values:
        """Those that some lines of backward make."""
        made = {self.program.backward[number].makes for number in numbers}
        left = {weight: value for weight, value in self.program.gradients.items() if value in made}
        self.run("backward", numbers, has, moment, (*left.values(), *leaves), apart)
        return {weight: self.value(value, "the update", has) for weight, value in left.items()}

    def over_host_link(self, kept: Values, offload: bool) -> Values:
        """What is kept, each array on the other side of its device's link to the host."""
        network, found, way = self.devices.network, {}, "offload" if offload else "fetch"
        for number, (value, slices) in enumerate(kept.items()):
            if value in self.program.stored:
                network.serve((f"{self.name} {way}", number), width=slices.width)
                network.to_host(slices.array[0].size)
            found[value] = replace(slices, array=slices.array.copy())
        return found

    def bytes_kept(self, kept: Values) -> Number:
        """Bytes on each device of what is kept in room of its own."""
        return sum(kept[value].bytes for value in self.program.stored)

    def bytes_held(self, held: Values) -> Number:
        """Bytes on each device of what is held between two parts of backward, likewise."""
        return sum(held[value].bytes for value in self.program.stored_between)

    # ------------------------------------------------------------------------- lines
    def run(
        self,
        phase: str,
        numbers: range,
        has: Values,
        moment: Moment,
        leaves: tuple[Value, ...],
        apart: set[Value] = EMPTY,
    ) -> None:
        """Execute lines of a phase on what the devices have; only what it leaves stays after its use.

        What is `apart` is counted elsewhere.
        """
        lines: tuple[Line, ...] = getattr(self.program, phase)
        last = {value: number for number in numbers for value in lines[number].reads}
        last |= dict.fromkeys(leaves, len(lines))
        grid, rings = self.devices.grid, self.devices.grid.rings

        def send(number: int) -> Network:
            (value, *_), network = lines[number].reads, self.devices.network
            width = self.value(value, lines[number], has).width
            network.serve((f"{self.name} {phase}", number), width=width)
            return network

        def do(number: int) -> Slices:
            line = lines[number]
            reads = [self.read(value, line, has, moment) for value in line.reads]
            if isinstance(line, Move):
                over = self.program.over(line)
                return move(line, over, reads[0], grid, self.devices.numbers, send(number))
            return replace(self.do(line, reads, moment), width=line.makes.width)

        def count() -> None:
            here = [slices for value, slices in has.items() if value not in self.apart | apart]
            room = sum(slices.bytes for slices in (*here, *run.arriving.values()))
            self.fullest = max(self.fullest, room)

        def group(turns: str) -> Group:
            return grid.cluster.group((rings[turns],))

        run = Run(
            *(self.program, lines, last, has, do, self.empty, count, group, send),
            *(self.devices.numbers,),
            turn=self.turn,
        )
        run.execute(numbers, self.program.turns, frozenset())

    def read(self, value: Value, line: Line, has: Values, moment: Moment) -> Slices:
        """A value that devices have, or a constant that they make.

        One that takes room is made where forward makes it; backward has it if it is kept.
        """
        if value in has or value.role is not Role.CONSTANT:
            return self.value(value, line, has)
        in_turns = self.program.is_in_turns(value)
        if value.width and line not in self.forward_lines and not in_turns:
            raise ValueError(f"{line}: {value.name} is not kept")
        name = value.name.partition("|")[0]
        table = self.devices.tables.constant(name, value.indices, self.layer, moment)
        has[value] = self.place(value, table)
        return has[value]

    def value(self, value: Value, reader: str | Line, has: Values) -> Slices:
        if value not in has:
            raise ValueError(f"{reader} reads {value.name}, which is not there")
        return has[value]

    def do(self, line: Operation, reads: list[Slices], moment: Moment) -> Slices:
        """What each device makes of its own arrays. Raises ValueError where slices do not meet."""
        numbers, makes, first = self.devices.numbers, line.makes.indices, reads[0]
        where = _met(line, reads)
        if line.does is Does.CONTRACT:
            left, right = ("".join(r.indices) for r in reads)
            subscripts = f"D{left},D{right}->D{''.join(makes)}"
            found = numbers.einsum(subscripts, first.array, reads[1].array)
        elif line.does is Does.ADD:
            return self.added(first, reads[1])
        elif line.does is Does.RENAME:
            return self.renamed(line, first, moment)
        elif line.does is Does.APPLY:
            arrays = [r.array for r in reads]
            function = numbers.apply_backward if line.backward else numbers.apply
            found = function(line.function, *arrays)
        else:
            rows = tuple(index for index in first.indices if index != line.over)
            found = self.normalised(line, reads, rows)
            makes = rows if line.function == LOG_TOTAL else makes
        return Slices(makes, found, {i: where[i] for i in makes})

    def normalised(self, line: Operation, reads: list[Slices], rows: tuple[str, ...]) -> Array:
        """What needs all of an index at once; it may read what it has for each row as well."""
        numbers, axis = self.devices.numbers, reads[0].axis(line.over)
        beside = [_rows(value, rows) for value in reads[1 + line.backward :]]
        of_rows = beside[0] if beside else None
        if line.backward:
            cotangent, known = reads[0].array, reads[1].array
            return numbers.normalise_backward(line.function, cotangent, known, axis, of_rows)
        return numbers.normalise(line.function, reads[0].array, axis, of_rows)

    def added(self, left: Slices, right: Slices) -> Slices:
        return replace(left, array=self.devices.numbers.add(left.array, right.array))

    def renamed(self, line: Operation, value: Slices, moment: Moment) -> Slices:
        makes, new = line.makes.indices, dict(line.renamed)
        if set(new.values()) == {"c"}:
            return to_slots(value, makes, self.devices.tables.slots(self.layer, moment))
        if set(new) == {"c"}:
            slots = self.devices.tables.slots(self.layer, moment)
            return to_tokens(value, makes, slots, self.devices.numbers)
        return Slices(makes, value.array, {new.get(i, i): at for i, at in value.where.items()})


def _rows(value: Slices, rows: tuple[str, ...]) -> Array:
    """A value's array, with its dimensions in the order of these indices."""
    return np.transpose(value.array, (0, *(value.axis(index) for index in rows)))


def _met(line: Operation, reads: list[Slices]) -> dict[str, Array]:
    """The positions of all operands. Raises ValueError unless they have the same of each index."""
    found: dict[str, Array] = {}
    for slices in reads:
        for index, at in slices.where.items():
            if not np.array_equal(found.setdefault(index, at), at):
                raise ValueError(f"{line}: its operands have different positions of {index}")
    return found
