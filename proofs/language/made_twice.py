"""E10: programs that make a value once more, and another, or that find a gradient of no weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spec.devices.layouts import WHOLE, along
from spec.language.moves import Move
from spec.language.programs import Program


def with_values_twice(program: Program) -> Iterator[Program]:
    """A program on one axis with one more line, that makes what another makes: in forward the same;
    lying otherwise; and another one; and one with a gradient of what it takes among those of weights.
    """
    (axis,) = program.axes
    assert program.returns and program.part.takes
    *_, line = (line for line in program.backward if line.makes == program.returns)
    taken = program.part.takes
    lie = program.lies[taken][axis.name]
    move = Move(axis.name, taken, taken, lie, WHOLE if lie != WHOLE else along(taken.indices[0]))
    firsts = (replace(move, makes=lines[-1].makes) for lines in (program.forward, program.backward))
    yield replace(program, forward=(*program.forward, program.forward[-1]))
    yield replace(program, forward=(next(firsts), *program.forward))
    yield replace(program, backward=(next(firsts), *program.backward))
    yield replace(program, backward=(*program.backward, move))
    yield replace(program, backward=(*program.backward, replace(line, makes=program.gives)))
    yield replace(program, gradients={**program.gradients, taken: program.returns})
