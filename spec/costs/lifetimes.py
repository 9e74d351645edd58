"""What is there while a program's lines run: from its first line to its last, and through loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import or_

from spec.devices.layouts import WHOLE
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import Role, Value


def phases(program: Program) -> tuple[tuple[Line, ...], ...]:
    """The lines that run one after the other, without works of others between them."""
    return program.forward, *program.parts_of_backward


def live(program: Program) -> list[set[Value]]:
    """While each line runs, forward and then backward, part by part, which values are there.

    A value is there from the line that makes it to the last that reads it; through a loop, if it is
    read in every turn, goes round, or is summed up. No result takes the place of an operand.
    """
    between = {*program.held_between}
    ends: tuple[tuple[set[Value | None], set[Value | None]], ...] = (
        ({program.part.takes}, {program.gives}),
        ({program.seed}, {program.returns, *between}),
        ({*between}, set()),
    )
    found = []
    for lines, (first, last) in zip(phases(program), ends, strict=True):
        drawn = drawn_in_turns(program, lines)
        touched = [{line.makes, *line.reads} - drawn[number] for number, line in enumerate(lines)]
        for value, body in staying(program, lines):
            touched[body[0]].add(value)
            touched[body[-1]].add(value)
        started, needed = ({value for value in values if value} for values in (first, last))
        by_then = [*accumulate(touched, or_, initial=started)][1:]
        from_then = [*accumulate(reversed(touched), or_, initial=needed)][:0:-1]
        found += [a & b | c for a, b, c in zip(by_then, from_then, drawn, strict=True)]
    return found


def drawn_in_turns(program: Program, lines: Sequence[Line]) -> list[set[Value]]:
    """While each line runs, the masks that are there in one turn: while its lines read them."""
    lies, found = program.lies, [set[Value]() for _ in lines]
    for name in program.turns:
        for body in program.loops(lines, name):
            read: dict[Value, list[int]] = {}
            for number in body:
                for value in lines[number].reads:
                    inner = [turn for turn in program.turns if lies[value][turn] != WHOLE][-1:]
                    if value.role is Role.CONSTANT and inner == [name]:
                        read.setdefault(value, []).append(number)
            for value, numbers in read.items():
                for number in range(numbers[0], numbers[-1] + 1):
                    found[number].add(value)
    return found


def staying(program: Program, lines: Sequence[Line]) -> list[tuple[Value, range]]:
    """Values that are there from the first line of a loop to its last, and the loop's body.

    Those that it reads from before it, in every turn; those that are summed up or go round in it.
    """
    lies, found = program.lies, []
    for name in program.turns:
        for body in program.loops(lines, name):
            here = [lines[number] for number in body]
            moved = [line.makes for line in here if isinstance(line, Move) and line.turns == name]
            read = [v for line in here for v in line.reads if lies[v][name] == WHOLE]
            found += [(value, body) for value in dict.fromkeys((*moved, *read))]
    return found


def arriving(program: Program) -> list[dict[Value, str]]:
    """While each line runs, the values that go round a ring, and over which axis.

    One slice of each is in use, or leaves, while the next one arrives.
    """
    found: list[dict[Value, str]] = []
    for lines in phases(program):
        here: list[dict[Value, str]] = [{} for _ in lines]
        for name in program.turns:
            for body in program.loops(lines, name):
                moves = [line for line in map(lines.__getitem__, body) if isinstance(line, Move)]
                rings = {move.makes: move.axis for move in moves if name == move.turns != move.axis}
                for number in body:
                    here[number] |= rings
        found += here
    return found
