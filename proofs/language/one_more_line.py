"""E10: programs on a ring with one more line that nothing reads, and that is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spec.devices.layouts import WHOLE
from spec.language.moves import Move
from spec.language.programs import Program
from spec.models.values import Operation


def with_one_more_line(program: Program) -> Iterator[Program]:
    """A layer's program on a ring: with scores, which are of each turn's keys, that go round; and with
    scores of what attention gives, summed over turns, in the loop that sums it.
    """
    (axis,) = program.axes
    lines = program.forward
    scores = next(line for line in lines if line.makes.plain_name == "scores")
    gives = next(move for move in lines if isinstance(move, Move) and move.by)
    assert isinstance(scores, Operation)
    more = replace(scores.makes, name="more")
    lie = program.lies[scores.makes][axis.name]
    round_again = Move(axis.name, scores.makes, more, lie, WHOLE, in_turns=True)
    of_sums = scores.on((gives.makes, scores.reads[1]), more)
    for line, other in ((scores, round_again), (gives, of_sums)):
        at = lines.index(line) + 1
        yield replace(program, forward=(*lines[:at], other, *lines[at:]))
