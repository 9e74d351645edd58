"""When values of a program are there: its loops run turn by turn, and each value until its last use.

What a line reads and makes is looked at in each turn, so what a loop needs throughout is found and not
said: it is another definition than that of `spec.costs.lifetimes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spec.costs.lifetimes import phases
from spec.devices.layouts import WHOLE
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import Role, Value

TURNS = 3  # of each loop: a first one, a last one, and one between them
Turns = tuple[tuple[str, int], ...]  # which turn of each loop it is
Instance = tuple[Value, Turns]  # a value, in those turns along which it is not the same in each


def value_lives(program: Program) -> list[set[Value]]:
    """While each line runs, forward and then backward, part by part, the values that are there then."""
    forward, first, second = phases(program)
    made_then = {line.makes for line in second}
    needed_then = {value for line in second for value in line.reads if value not in made_then}
    # masks and the like are drawn again, unless they are kept
    drawn = {v for v in needed_then if v.role is Role.CONSTANT and v not in program.kept}
    kept_between = needed_then - drawn
    return [
        *_lives(program, forward, {program.part.takes}, {program.gives}),
        *_lives(program, first, {program.seed}, {program.returns, *kept_between}),
        *_lives(program, second, kept_between, set()),
    ]


def _lives(
    program: Program, lines: Sequence[Line], first: set[Any], last: set[Any]
) -> list[set[Value]]:
    """Of lines that run one after the other; `first`: what is there before them, `last`: after them."""
    steps = [*_steps(program, lines, range(len(lines)), program.turns, ())]
    begins: dict[Instance, int] = {(value, ()): 0 for value in first if value}
    ends: dict[Instance, int] = {}
    for at, (_, used) in enumerate(steps):
        for instance in used:
            begins.setdefault(instance, at)
            ends[instance] = at
    ends |= {(value, ()): len(steps) for value in last if value}
    found = [set[Value]() for _ in lines]
    for instance, begin in begins.items():
        for number, _ in steps[begin : ends.get(instance, begin - 1) + 1]:
            found[number].add(instance[0])
    return found


def _steps(
    program: Program, lines: Sequence[Line], numbers: range, names: Sequence[str], turns: Turns
) -> Iterator[tuple[int, set[Instance]]]:
    """Lines as they run, and what each reads and makes in its turn."""
    if not names:
        yield from ((number, _used(program, lines[number], turns)) for number in numbers)
        return
    name, *inner = names
    start = numbers.start
    for body in program.loops(lines[numbers.start : numbers.stop], name):
        here = range(numbers.start + body.start, numbers.start + body.stop)
        yield from _steps(program, lines, range(start, here.start), inner, turns)
        for turn in range(here.start * TURNS, (here.start + 1) * TURNS):  # another loop has others
            yield from _steps(program, lines, here, inner, (*turns, (name, turn)))
        start = here.stop
    yield from _steps(program, lines, range(start, numbers.stop), inner, turns)


def _used(program: Program, line: Line, turns: Turns) -> set[Instance]:
    """What a line uses in a turn: what goes round, or is summed, also as the turn before left it."""
    used = {_instance(program, value, turns) for value in (*line.reads, line.makes)}
    if isinstance(line, Move) and line.turns:
        before = tuple((name, turn - (name == line.turns)) for name, turn in turns)
        used.add(_instance(program, line.makes, before))
    return used


def _instance(program: Program, value: Value, turns: Turns) -> Instance:
    lies = program.lies[value]
    return value, tuple((name, turn) for name, turn in turns if lies[name] != WHOLE)
