"""Lines of a program in order, and loops turn by turn: values go round rings, terms are summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.functions import Functions
from psem_model.simulator.layout import Group
from psem_model.simulator.network import Network, all_gather
from psem_model.simulator.slices import Slices
from spec.devices.layouts import WHOLE
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import Value

Values = dict[Value, Slices]


@dataclass
class Run:
    """Some lines of a program, while devices execute them.

    `has`: what is there. `arriving`: of what goes round a ring, the slice that comes in or leaves
    while one is in use. `turn`: of each loop that is running. `at_once`: the slices of all turns, where
    they are gathered before the first. `do` executes a line that ends no turn.
    """

    program: Program
    lines: Sequence[Line]
    last: dict[Value, int]  # the number of the last line that reads a value
    has: Values
    do: Callable[[int], Slices]
    empty: Callable[[Value], Slices]
    counts: Callable[[], None]
    group: Callable[[str], Group]
    send: Callable[[int], Network]
    numbers: Functions
    arriving: Values = field(default_factory=dict)
    totals: dict[Value, Array] = field(default_factory=dict)  # by which partial results have merged
    turn: dict[str, int] = field(default_factory=dict)
    at_once: dict[Value, list[Slices]] = field(default_factory=dict)

    def execute(self, numbers: range, turns: tuple[str, ...], stays: frozenset[Value]) -> None:
        """Lines, by their numbers; those of turns as loops, the outer one first.

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
                self.let_go(number, stays)
                number += 1

    def let_go(self, number: int, stays: frozenset[Value]) -> None:
        unread = [v for v in self.has if self.last.get(v, -1) <= number and v not in stays]
        for value in unread:
            del self.has[value]

    def line(self, number: int) -> None:
        line = self.lines[number]
        if isinstance(line, Move) and line.in_turns:
            self.step(line, number)
        else:
            self.has[line.makes] = self.do(number)
        self.counts()

    def loop(self, body: range, name: str, inner: tuple[str, ...], stays: frozenset[Value]) -> None:
        """All turns of a loop."""
        lines = [self.lines[number] for number in body]
        moves = [line for line in lines if isinstance(line, Move) and line.turns == name]
        turns = self.group(name).size
        for move in moves:
            self.has[move.makes] = self.empty(move.makes)
            if move.axis != name and turns > 1:
                self.arriving[move.makes] = self.empty(move.makes)
        here = stays | {*self.has}
        for turn in range(turns):
            self.turn[name] = turn
            self.execute(body, inner, here)
            for value in [value for value in self.has if value not in here]:  # of this turn alone
                del self.has[value]
        del self.turn[name]
        for move in moves:
            arrived = self.arriving.pop(move.makes, None)
            self.at_once.pop(move.makes, None)
            self.totals.pop(move.makes, None)
            if arrived and move.after != WHOLE:  # home
                self.has[move.makes] = arrived
        self.let_go(body.stop - 1, stays)

    # ------------------------------------------------------------------------ in one turn
    def step(self, move: Move, number: int) -> None:
        """What a move does in one turn."""
        network = self.send(number)  # of what is there
        value, makes, turn = self.has[move.value], move.makes, self.turn[move.turns]
        if move.axis == move.turns:
            self.has[makes] = self.summed(move, value, turn)
        elif self.program.is_at_once(move):
            self.has[makes] = self.gathered(move, value, turn, network)
        elif move.after == WHOLE:
            self.has[makes] = (
                replace(value, array=value.array.copy()) if turn == 0 else self.arriving[makes]
            )
            if turn < self.group(move.turns).size - 1:
                self.arriving[makes] = self.passed_on(self.has[makes], move, network)
        else:
            if turn:
                value = _added(self.arriving[makes], value, self.numbers)
            self.has[makes] = value
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
        letters, rows = "".join(term.indices), "".join(by.indices)
        scaled = [
            numbers.einsum(f"D{letters},D{rows}->D{letters}", of, numbers.share(part, together))
            for of, part in ((self.has[move.makes].array, before), (term.array, by.array))
        ]
        return replace(term, array=numbers.add(*scaled))


def _added(one: Slices, other: Slices, numbers: Functions) -> Slices:
    """The sum of terms of the same elements. Raises ValueError for others."""
    if any(not np.array_equal(at, other.where[index]) for index, at in one.where.items()):
        raise ValueError("terms of different elements are added")
    return replace(other, array=numbers.add(one.array, other.array))
