"""Programs that are wrong in one place, which the checker is to reject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

from spec.devices.layouts import PARTIAL, along
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import Operation, Value


def damaged_programs(program: Program) -> Iterator[Program]:
    """A program with one thing wrong: a move, a gradient, or what is kept."""
    yield from map(program.without, program.moves)
    yield from (_with_twice(program, move) for move in program.moves)
    yield from with_other_gradients(program)
    yield from with_less_kept(program)
    yield from (_with_slices(program, w) for w in program.part.weights if program.summed(w))


def with_other_gradients(program: Program) -> Iterator[Program]:
    """With the gradient of another weight in place of one's own."""
    for one, other in permutations(program.gradients, 2):
        yield replace(program, gradients={**program.gradients, one: program.gradients[other]})


def with_less_kept(program: Program) -> Iterator[Program]:
    """Without one of the values that backward reads."""
    for value in program.kept:
        yield replace(program, kept=tuple(other for other in program.kept if other != value))


def _with_twice(program: Program, move: Move) -> Program:
    """With a move made once more, of what it made; all that read it read what is made then."""
    again = replace(move.makes, name=f"{move.makes.name} again", form_of=move.makes.plain_name)
    twice = replace(move, value=move.makes, makes=again)

    def reading(line: Line) -> Line:
        if isinstance(line, Operation):
            return replace(line, reads=tuple(again if v == move.makes else v for v in line.reads))
        return replace(line, value=again) if line.value == move.makes else line

    def after(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        found: list[Line] = []
        for line in lines:
            found += [line, twice] if line == move else [reading(line)]
        return tuple(found)

    def now(value: Value) -> Value:
        return again if value == move.makes else value

    return replace(
        program,
        forward=after(program.forward),
        backward=after(program.backward),
        gives=now(program.gives),
        returns=program.returns and now(program.returns),
        gradients={weight: now(gradient) for weight, gradient in program.gradients.items()},
        kept=tuple(map(now, program.kept)),
        lies={**program.lies, again: program.lies[move.makes]},
    )


def _with_slices(program: Program, weight: Value) -> Program:
    """The program that leaves slices of a weight's gradient where the weight is whole."""
    (axis,), gradient = program.axes, program.gradients[weight]
    after = along(weight.indices[0])
    move = Move(axis.name, gradient, replace(gradient, name="slices"), PARTIAL, after)
    lies = {**program.lies, move.makes: {axis.name: after}}
    return replace(
        program,
        backward=(*program.backward, move),
        gradients={**program.gradients, weight: move.makes},
        lies=lies,
    )
