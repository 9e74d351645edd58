"""Lines of a program in order, and loops turn by turn: values go round rings, terms are summed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.functions import Functions
from psem_model.simulator.layout import Group
from psem_model.simulator.moves import move
from psem_model.simulator.network import Network, all_gather
from psem_model.simulator.routes import to_slots, to_tokens
from psem_model.simulator.slices import ONCE, SLOTTED, Grid, Slices, cut, in_order, lettered
from psem_model.simulator.tables import Moment, Tables
from spec.devices.layouts import WHOLE, Lies
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import LOG_TOTAL, Does, Operation, Role, Value

Values = dict[Value, Slices]


@dataclass(frozen=True)
class Devices:
    """A mesh, what its devices compute with, and what they send."""

    grid: Grid
    tables: Tables
    network: Network

    @property
    def numbers(self) -> Functions:
        return self.tables.numbers

    def place(self, value: Value, lies: Lies, table: Array, turn: Mapping[str, int] = ONCE) -> Slices:
        """The slices of a weight or a constant that lies so. Raises ValueError: it has none, or does
        not repeat.
        """
        if not value.indices:
            raise ValueError(f"{value}: a number of no index")
        for dimension in map(value.indices.index, value.repeats):
            if np.not_equal(table, table.take([0], dimension)).any():
                raise ValueError(f"{value}: not the same along {value.indices[dimension]}")
        where = self.grid.where(value.indices, lies, turn)
        return replace(cut(table, value.indices, where), width=value.width, repeats=value.repeats)


def there(value: Value, reader: str | Line, has: Values) -> Slices:
    """A value that devices have. Raises ValueError if it is not there."""
    if value not in has:
        raise ValueError(f"{reader} reads {value.name}, which is not there")
    return has[value]


class Lines:
    """Some lines of a phase of a part's program, while devices execute them.

    `has`: what is there; what is `apart` of it is counted elsewhere. `arriving`: of what goes round a
    ring, the slice that comes in or leaves while one is in use. `totals`: by which partial results have
    merged. `turn`: of each loop that is running. `at_once`: the slices of all turns, where they are
    gathered before the first. `room`: bytes on each device of what is there, `fullest`: at the fullest
    moment.
    """

    def __init__(
        self,
        program: Program,
        layer: int,
        devices: Devices,
        phase: str,
        has: Values,
        moment: Moment,
        apart: set[Value],
    ) -> None:
        self.program, self.layer, self.devices, self.phase = program, layer, devices, phase
        self.has, self.moment, self.apart = has, moment, apart
        self.lines: tuple[Line, ...] = getattr(program, phase)
        self.numbers, self.grid = devices.numbers, devices.grid
        self.last: dict[Value, int] = {}  # the number of the last line that reads a value
        self.arriving: Values = {}
        self.totals: dict[Value, Array] = {}
        self.turn: dict[str, int] = {}
        self.at_once: dict[Value, list[Slices]] = {}
        self.fullest: Number = 0
        self.room: Number = sum(slices.bytes for value, slices in has.items() if value not in apart)

    def put(self, value: Value, slices: Slices) -> None:
        """Devices have this of a value."""
        self.drop(value)
        if slices.slots is None and {*SLOTTED} <= {*slices.indices}:
            slots = self.devices.tables.slots(self.layer, self.moment)
            slices = slices if slots.filled.all() else replace(slices, slots=slots)
        self.has[value] = slices
        if value not in self.apart:
            self.room += slices.bytes

    def drop(self, value: Value) -> None:
        """Devices have nothing of a value any more."""
        slices = self.has.pop(value, None)
        if slices is not None and value not in self.apart:
            self.room -= slices.bytes

    def execute(self, numbers: range, leaves: tuple[Value, ...]) -> None:
        """Lines, by their numbers; only what is left stays after its use."""
        self.last = {value: number for number in numbers for value in self.lines[number].reads}
        self.last |= dict.fromkeys(leaves, len(self.lines))
        self.go(numbers, self.program.turns, frozenset())

    def go(self, numbers: range, turns: tuple[str, ...], stays: frozenset[Value]) -> None:
        """Lines, those of turns as loops, the outer one first.

        What nothing reads any more is let go, but for what `stays`.
        """
        bodies: dict[int, tuple[range, str, tuple[str, ...]]] = {}
        for rest, name in enumerate(turns, 1):
            found = self.program.loops(self.lines[numbers.start : numbers.stop], name)
            for body in found:
                at = range(body.start + numbers.start, body.stop + numbers.start)
                if not any(at.start in other for other, *_ in bodies.values()):
                    bodies[at.start] = at, name, turns[rest:]
        number = numbers.start
        while number < numbers.stop:
            if number in bodies:
                body, name, inner = bodies[number]
                self.loop(body, name, inner, stays)
                number = body.stop
            else:
                self.line(number)
                line = self.lines[number]  # all else has been let go before, but at first
                used = self.has if number == numbers.start else (*line.reads, line.makes)
                self.let_go(used, number, stays)
                number += 1

    def let_go(self, values: Iterable[Value], number: int, stays: frozenset[Value]) -> None:
        """Those that no line after this one reads."""
        for value in [v for v in values if self.last.get(v, -1) <= number and v not in stays]:
            self.drop(value)

    def line(self, number: int) -> None:
        line = self.lines[number]
        if isinstance(line, Move) and line.in_turns:
            self.step(line, number)
        else:
            reads = [self.read(value, line) for value in line.reads]
            if isinstance(line, Move):
                over, network = self.program.axes_of(line), self.sends(number)
                found = move(line, over, reads[0], self.grid, self.numbers, network)
            else:
                found = self.do(line, reads)
            self.put(line.makes, found)
        arriving = sum(slices.bytes for slices in self.arriving.values())
        self.fullest = max(self.fullest, self.room + arriving)

    def sends(self, number: int) -> Network:
        """The network, which counts what follows as sent by a line."""
        line, network = self.lines[number], self.devices.network
        width = there(line.reads[0], line, self.has).width
        network.serve((f"{self.program.part.name} {self.phase}", number), width=width)
        return network

    # ---------------------------------------------------------------------- one operation
    def read(self, value: Value, line: Line) -> Slices:
        """A value that devices have, or a constant that they make.

        One that takes room is made where forward makes it; backward has it if it is kept.
        """
        if value in self.has or value.role is not Role.CONSTANT:
            return there(value, line, self.has)
        if value.width and line not in self.program.forward and not self.program.is_in_turns(value):
            raise ValueError(f"{line}: {value.name} is not kept")
        name = value.name.partition("|")[0]
        table = self.devices.tables.constant(name, value.indices, self.layer, self.moment)
        self.put(value, self.devices.place(value, self.program.lies[value], table, self.turn))
        return self.has[value]

    def do(self, line: Operation, reads: list[Slices]) -> Slices:
        """What each device makes of its own arrays. Raises ValueError where slices do not meet."""
        numbers, makes, first = self.numbers, line.makes.indices, reads[0]
        where = _met(line, reads)
        if line.does is Does.CONTRACT:
            left, right, out = lettered(*(r.indices for r in reads), makes)
            found = numbers.einsum(f"D{left},D{right}->D{out}", first.array, reads[1].array)
        elif line.does is Does.ADD:
            found, makes = numbers.add(first.array, in_order(reads[1], first.indices)), first.indices
        elif line.does is Does.RENAME:
            return replace(self.renamed(line, first), width=line.makes.width)
        elif line.does is Does.APPLY:
            arrays, makes = [in_order(r, first.indices) for r in reads], first.indices
            function = numbers.apply_backward if line.backward else numbers.apply
            found = function(line.function, *arrays)
        else:
            rows = tuple(index for index in first.indices if index != line.over)
            found = self.normalised(line, reads, rows)
            makes = rows if line.function == LOG_TOTAL else first.indices
        return Slices(makes, found, {i: where[i] for i in makes}, line.makes.width)

    def normalised(self, line: Operation, reads: list[Slices], rows: tuple[str, ...]) -> Array:
        """What needs all of an index at once; it may read what it has for each row as well."""
        axis = reads[0].axis(line.over)
        beside = [in_order(value, rows) for value in reads[1 + line.backward :]]
        of_rows = beside[0] if beside else None
        if line.backward:
            cotangent, known = reads[0].array, in_order(reads[1], reads[0].indices)
            return self.numbers.normalise_backward(line.function, cotangent, known, axis, of_rows)
        return self.numbers.normalise(line.function, reads[0].array, axis, of_rows)

    def renamed(self, line: Operation, value: Slices) -> Slices:
        makes, new = line.makes.indices, dict(line.renamed)
        if len({*new.values()}) < len(new):  # several become one
            return to_slots(value, makes, self.devices.tables.slots(self.layer, self.moment))
        if len(new) < len(line.renamed):  # one becomes several
            slots = self.devices.tables.slots(self.layer, self.moment)
            return to_tokens(value, makes, slots, self.numbers)
        indices = tuple(new.get(index, index) for index in value.indices)
        return Slices(indices, value.array, {new.get(i, i): at for i, at in value.where.items()})

    # ------------------------------------------------------------------------------- loops
    def group(self, turns: str) -> Group:
        """The ring of a loop's turns."""
        return self.grid.cluster.group((self.grid.rings[turns],))

    def empty(self, value: Value) -> Slices:
        """Room for a value, with nothing in it."""
        where = self.grid.where(value.indices, self.program.lies[value], self.turn)
        sizes = (where[index].shape[1] for index in value.indices)
        array = self.numbers.zeros((self.grid.cluster.devices, *sizes))
        return Slices(value.indices, array, where, value.width)

    def loop(self, body: range, name: str, inner: tuple[str, ...], stays: frozenset[Value]) -> None:
        """All turns of a loop."""
        lines = [self.lines[number] for number in body]
        moves = [line for line in lines if isinstance(line, Move) and line.turns == name]
        turns = self.group(name).size
        for line in moves:
            self.put(line.makes, self.empty(line.makes))
            if line.axis != name and turns > 1:
                self.arriving[line.makes] = self.empty(line.makes)
        here = stays | {*self.has}
        for turn in range(turns):
            self.turn[name] = turn
            self.go(body, inner, here)
            for value in [value for value in self.has if value not in here]:  # of this turn alone
                self.drop(value)
        del self.turn[name]
        for line in moves:
            arrived = self.arriving.pop(line.makes, None)
            self.at_once.pop(line.makes, None)
            self.totals.pop(line.makes, None)
            if arrived and line.after != WHOLE:  # home
                self.put(line.makes, arrived)
        self.let_go(self.has, body.stop - 1, stays)

    # ------------------------------------------------------------------------ in one turn
    def step(self, move: Move, number: int) -> None:
        """What a move does in one turn."""
        network = self.sends(number)  # of what is there
        if move.turns not in self.turn:
            raise ValueError(f"{move}: it is in no loop over {move.turns}")
        value, makes, turn = self.has[move.value], move.makes, self.turn[move.turns]
        if move.axis == move.turns:
            self.put(makes, self.summed(move, value, turn))
        elif self.program.is_at_once(move):
            self.put(makes, self.gathered(move, value, turn, network))
        elif move.after == WHOLE:
            own = replace(value, array=value.array.copy()) if turn == 0 else self.arriving[makes]
            self.put(makes, own)
            if turn < self.group(move.turns).size - 1:
                self.arriving[makes] = self.passed_on(self.has[makes], move, network)
        else:
            if turn:
                value = _added(self.arriving[makes], value, self.numbers)
            self.put(makes, value)
            if makes in self.arriving:
                self.arriving[makes] = self.passed_on(value, move, network)

    def gathered(self, move: Move, value: Slices, turn: int, network: Network) -> Slices:
        """The slice of a turn; all are there from the first turn to the last."""
        group, makes = self.group(move.turns), move.makes
        if turn == 0:
            chunks = all_gather(value.array[None], group, network)[0]
            for later in range(group.size):
                places = (group.position - later) % group.size
                owners = group.members[group.devices, places]
                where = {index: at[owners] for index, at in value.where.items()}
                slices = replace(value, array=chunks[group.devices, places], where=where)
                self.at_once.setdefault(makes, []).append(slices)
        others = [each.array for other, each in enumerate(self.at_once[makes]) if other != turn]
        if others:
            self.arriving[makes] = replace(value, array=np.concatenate(others, 1))
        return self.at_once[makes][turn]

    def passed_on(self, value: Slices, move: Move, network: Network) -> Slices:
        """Each device's slice, on the next one round the ring, with its positions."""
        group = self.group(move.turns)
        array = network.move(value.array[None], group.previous, group.devices)[0]
        where = {index: at[group.previous] for index, at in value.where.items()}
        return replace(value, array=array, where=where)

    def summed(self, move: Move, term: Slices, turn: int) -> Slices:
        """The sum of the terms so far; partial results are rescaled to their log-sum-exp together."""
        if move.by is None:
            return _added(self.has[move.makes], term, self.numbers) if turn else term
        by = self.has[move.by]
        if turn == 0:
            self.totals[move.makes] = by.array
            return term
        before, numbers = self.totals[move.makes], self.numbers
        together = self.totals[move.makes] = numbers.together(before, by.array)
        if move.by == move.value:
            return replace(term, array=together)
        letters, rows = lettered(term.indices, by.indices)
        scaled = [
            numbers.einsum(f"D{letters},D{rows}->D{letters}", of, numbers.share(part, together))
            for of, part in ((self.has[move.makes].array, before), (term.array, by.array))
        ]
        return replace(term, array=numbers.add(*scaled))


def _added(one: Slices, other: Slices, numbers: Functions) -> Slices:
    """The sum of terms of the same elements. Raises ValueError for others."""
    if any(not np.array_equal(at, other.where[index]) for index, at in one.where.items()):
        raise ValueError("terms of different elements are added")
    return replace(other, array=numbers.add(in_order(one, other.indices), other.array))


def _met(line: Operation, reads: list[Slices]) -> dict[str, Array]:
    """The positions of all operands. Raises ValueError unless they have the same of each index."""
    found: dict[str, Array] = {}
    for slices in reads:
        for index, at in slices.where.items():
            known = found.setdefault(index, at)
            if known is not at and not np.array_equal(known, at):
                raise ValueError(f"{line}: its operands have different positions of {index}")
    return found
