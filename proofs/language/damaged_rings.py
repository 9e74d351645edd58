"""Programs on rings that are wrong in one place, which the checker is to reject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle

from proofs.language.damaged_programs import (
    Way,
    brought,
    with_less_kept,
    with_lines,
    with_other_gradients,
    with_role,
    without_moves,
)
from spec.devices.layouts import PARTIAL, WHOLE, along
from spec.language.moves import Axis, Move
from spec.language.programs import Line, Program
from spec.models.values import LOG_TOTAL, Does, Operation, Role, Value

CUT_AT = 3  # one place of so many at which a loop may be cut


def damaged_rings(program: Program) -> Iterator[Program]:
    """A program of a layer on a ring, with one thing wrong."""
    (axis,) = program.axes
    yield from without_moves(program)
    yield from with_other_gradients(program)
    yield from with_less_kept(program)
    yield from _with_another_given(program)
    for move in program.moves:
        yield with_lines(program, {move: replace(move, in_turns=not move.in_turns)})
        if move.by:
            yield with_lines(
                program, {move: replace(move, by=None if move.by == move.value else move.value)}
            )
    for line in program.lines:
        value, lies = line.makes, program.lies[line.makes]
        if lies[axis.turns].index and lies[axis.name] == WHOLE:  # devices have other slices in a turn
            cut = along(next(index for index in value.indices if index != axis.ring))
            yield brought(program, value, [Way(axis.name, WHOLE, cut), Way(axis.name, cut, WHOLE)])
        if lies == {axis.name: along(axis.ring), axis.turns: WHOLE}:  # what is whole is not sent home
            home = Way(axis.name, WHOLE, lies[axis.name], in_turns=True)
            yield brought(program, value, [Way(axis.name, lies[axis.name], WHOLE), home])
    yield from _with_a_turn_kept(program)
    turn = next(move.makes for move in program.moves if move.in_turns)
    drawn = next(v for v in program.lies if v.role is Role.CONSTANT and program.is_in_turns(v))
    for value in (turn, drawn, program.seed):  # of one turn, or not there
        yield replace(program, kept=(*program.kept, value))
    yield from _with_one_more_line(program)
    yield from _with_another_total(program)
    yield from _with_squares(program)
    yield from _with_other_rows(program)


def on_a_ring(program: Program, ring: Axis) -> Iterator[Program]:
    """A program that gathers slices at once, along an axis that is a ring: it has no turns, is right.
    So it is where in a turn of another ring something is moved along it, and back.

    Then with what it sums and scatters sent home round the ring, of which no turn has made a slice; and
    with what is of one turn of the other ring kept.
    """
    lies = {value: {**found, ring.turns: WHOLE} for value, found in program.lies.items()}
    axes = tuple(ring if axis.name == ring.name else axis for axis in program.axes)
    there = replace(program, axes=axes, lies=lies)
    turn = next(line.makes for line in there.forward if there.is_in_turns(line.makes))
    lie = there.lies[turn][ring.name]
    other = WHOLE if lie.index else along(ring.ring)
    yield brought(there, turn, [Way(ring.name, lie, other), Way(ring.name, other, lie)])
    for move in there.moves:
        if move.before == PARTIAL and move.axis == ring.name:
            yield with_lines(there, {move: replace(move, in_turns=True)})
    yield replace(there, kept=(*there.kept, turn))


def _with_another_given(program: Program) -> Iterator[Program]:
    """With another value that is given, and lies as that does."""
    gives, lies = program.gives, program.lies
    made = (line.makes for line in program.forward if line.makes != gives)
    alike = (value for value in made if value.indices == gives.indices and lies[value] == lies[gives])
    yield replace(program, gives=next(alike))


def _with_one_more_line(program: Program) -> Iterator[Program]:
    """A layer's program on a ring: with scores, which are of each turn's keys, that go round; and with
    scores of what attention gives, and of the cotangent of queries, summed over turns, in the loop that
    sums it.
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
    lines = program.backward
    number, pulled = next(
        (number, line)
        for number, line in enumerate(lines, 1)
        if isinstance(line, Move) and line.axis == axis.turns and line.makes.role is not Role.WEIGHT
    )
    keys = next(line.reads[1] for line in lines if line.makes == pulled.value)
    of_sums = scores.on((pulled.makes, keys), more)
    yield replace(program, backward=(*lines[:number], of_sums, *lines[number:]))


def _with_another_total(program: Program) -> Iterator[Program]:
    """With one more log-sum-exp, which merges by the first, and not by itself; with one of other
    scores, by which all else merges; and with terms that merge by what is whole.
    """
    of, by = (move for move in program.moves if move.by)
    made = {line.makes: line for line in program.forward}
    total, again = made[by.value], replace(by.value, name=f"{by.value.name}_again")
    assert isinstance(total, Operation)
    scores = total.reads
    apart = replace(by, value=again, makes=replace(by.makes, name="once more"))
    more: dict[Line, tuple[Line, ...]] = {by: (by, apart)}
    yield _with_more_lines(program, {total: (total, total.on(scores, again)), **more})
    others: dict[Line, tuple[Line, ...]] = {of: (replace(of, by=again),)}
    of_others = total.on(made[scores[0]].reads[:1], again)
    yield _with_more_lines(program, {total: (total, of_others), **others})
    for move in program.moves:
        if move.collective == "accumulate":
            yield with_lines(program, {move: replace(move, by=by.makes)})


def with_a_total_made_again(program: Program) -> tuple[Line, Program]:
    """On two rings, where the scores are given, in each turn: with a log-sum-exp made again in one more
    loop over the inner turns, by which what the first one gave merges in the outer loop; and that line.
    """
    there, (_, inner) = _with_given_scores(program), program.turns
    lines = there.forward
    of, by = (line for line in lines if isinstance(line, Move) and line.by and line.turns == inner)
    merge = next(line for line in lines if isinstance(line, Move) and line.value == of.makes)
    of_outer = next(line for line in lines if isinstance(line, Move) and line.in_turns)
    total = next(line for line in lines if line.makes == by.value)
    apart, again = (
        replace(one, makes=replace(one.makes, name=f"{one.makes.name} again"))
        for one in (of_outer, total)
    )
    last = replace(merge, by=again.makes)
    return last, _with_more_lines(there, {merge: (apart, again, last)})


def _with_given_scores(program: Program) -> Program:
    """With the scores whose log-sum-exp it makes given, and not made: a constant of each turn."""
    operations = (line for line in program.forward if isinstance(line, Operation))
    (scores,) = next(line.reads for line in operations if line.function == LOG_TOTAL)
    given = replace(scores, role=Role.CONSTANT)

    def of(lines: Sequence[Line]) -> tuple[Line, ...]:
        return tuple(_reading(line, {scores: given}) for line in lines if line.makes != scores)

    lies = {**program.lies, given: program.lies[scores]}
    return replace(program, forward=of(program.forward), backward=of(program.backward), lies=lies)


def _reading(line: Line, others: Mapping[Value, Value]) -> Line:
    """A line that reads other values, if it is no move."""
    if isinstance(line, Move):
        return line
    return line.on(tuple(others.get(value, value) for value in line.reads), line.makes)


def _with_more_lines(program: Program, others: Mapping[Line, tuple[Line, ...]]) -> Program:
    """With several lines of forward in place of some."""
    lines = (each for line in program.forward for each in others.get(line, (line,)))
    return replace(program, forward=tuple(lines))


def _with_squares(program: Program) -> Iterator[Program]:
    """With an operand twice in a product of two that have the same indices."""
    for line in program.lines:
        if isinstance(line, Operation) and line.does is Does.CONTRACT:
            one, other = line.reads
            if one.indices == other.indices:
                for twice in (one, other):
                    yield with_lines(program, {line: replace(line, reads=(twice, twice))})


def _with_other_rows(program: Program) -> Iterator[Program]:
    """With another number for each row, or one for several, in a softmax that reads one."""
    of_rows = _of_rows(program)
    rows = dict.fromkeys(line.reads[-1] for line in of_rows)
    for line in of_rows:
        *reads, own = line.reads
        for other in (other for other in rows if other != own):
            yield with_lines(program, {line: replace(line, reads=(*reads, other))})
    operations = (line for line in program.backward if isinstance(line, Operation))
    for made in (line for line in operations if line.makes in rows):
        fewer = replace(made.makes, indices=made.makes.indices[1:])
        yield with_lines(program, _making_another(program, made, fewer))
        for other in (other for other in rows if other != made.makes):
            yield with_lines(program, {made: replace(made, reads=(made.reads[0], other))})


def _making_another(program: Program, line: Line, made: Value) -> dict[Line, Line]:
    """A line that makes another value, and the operations that read that."""
    readers = (r for r in program.lines if isinstance(r, Operation) and line.makes in r.reads)
    others: dict[Line, Line] = {
        r: replace(r, reads=tuple(made if v == line.makes else v for v in r.reads)) for r in readers
    }
    return others | {line: replace(line, makes=made)}


def with_rows_twice(program: Program) -> Iterator[Program]:
    """With a number for each row once more, in a softmax that reads one."""
    for line in _of_rows(program):
        yield with_lines(program, {line: replace(line, reads=(*line.reads, line.reads[-1]))})


def _of_rows(program: Program) -> list[Operation]:
    """Where backward makes a softmax, or its derivative, from a number for each row."""
    operations = (line for line in program.backward if isinstance(line, Operation))
    return [
        line
        for line in operations
        if line.function == "softmax" and line.reads[-1].indices != line.makes.indices
    ]


def damaged_loops(program: Program, of_two: Program) -> Iterator[Program]:
    """A program on two rings, one in the other: turned, with loops cut, with other totals. And one of
    two loops, one after the other, with the first one's sums in it.
    """
    yield from _with_one_more_line(of_two)
    yield replace(program, axes=program.axes[::-1])
    yield from _with_loops_cut(program)
    merges = [move for move in program.moves if move.by]
    totals = {form for move in merges if move.by == move.value for form in (move.value, move.makes)}
    for move in merges:
        for by in {None, *totals} - {move.by}:
            yield with_lines(program, {move: replace(move, by=by)})


def merged_in_slices(program: Program, axis: Axis) -> tuple[Program, Program, Program]:
    """A program on one more axis, along which what merges is in slices of features; and two along which
    just it, or just what it merges by, is in slices of rows.
    """
    more = {axis.name: WHOLE}
    lies = {value: found | more for value, found in program.lies.items()}
    there = replace(program, axes=(axis, *program.axes), lies=lies)
    of, by = (move for move in program.moves if move.by)
    after = with_lines(there, {of: by, by: of})
    features, rows = of.value.indices[-1], by.value.indices[0]

    def in_slices(each: Program, move: Move, index: str) -> Program:
        away, home = (Way(axis.name, *w) for w in ((WHOLE, along(index)), (along(index), WHOLE)))
        return brought(brought(each, move.value, [away]), move.makes, [home])

    return in_slices(after, of, features), in_slices(after, of, rows), in_slices(there, by, rows)


def _with_loops_cut(program: Program) -> Iterator[Program]:
    """With a line within a loop that is of no turn of its: there the loop ends, and another begins.

    What lines make is in turn an activation, what layers hand on, and a weight.
    """
    roles = cycle([with_role(program, role) for role in Role if role is not Role.CONSTANT])
    for turns in program.turns:
        for at in [*_cuts(program, program.forward, turns)][::CUT_AT]:
            other = next(roles)
            yield replace(other, forward=_with_one_more(other, other.forward, at, turns))
        for at in [*_cuts(program, program.backward, turns)][::CUT_AT]:
            other = next(roles)
            yield replace(other, backward=_with_one_more(other, other.backward, at, turns))


def _with_one_more(program: Program, lines: tuple[Line, ...], at: int, turns: str) -> tuple[Line, ...]:
    """With the last line before some place that is of no turn, once more, there."""
    lies = program.lies
    plain = (
        line for line in lines[:at] if {lies[v][turns] for v in (*line.reads, line.makes)} == {WHOLE}
    )
    *_, last = plain
    return (*lines[:at], replace(last, makes=replace(last.makes, name="once more")), *lines[at:])


def _cuts(program: Program, lines: Sequence[Line], turns: str) -> Iterator[int]:
    """Where loops would be cut, between lines that make something of a turn and lines that read it."""
    of_turns = {value for value, lies in program.lies.items() if lies[turns] != WHOLE}
    for at in range(1, len(lines)):
        made = {line.makes for line in lines[:at]}
        if any(of_turns & made & {*line.reads} for line in lines[at:]):
            yield at


def _with_a_turn_kept(program: Program) -> Iterator[Program]:
    """With what goes round in forward kept, in place of going round again."""
    again = {(m.value, m.axis): m for m in program.backward if isinstance(m, Move) and m.in_turns}
    for move in (line for line in program.forward if isinstance(line, Move)):
        other = again.get((move.value, move.axis))
        if other and program.is_in_turns(move.makes):
            yield _kept_for(program, other, move.makes)


def _kept_for(program: Program, line: Line, value: Value) -> Program:
    """With a value of forward kept and read in place of what a line of backward makes."""
    backward = tuple(
        replace(other, reads=tuple(value if v == line.makes else v for v in other.reads))
        if isinstance(other, Operation)
        else other
        for other in program.backward
        if other != line
    )
    return replace(program, backward=backward, kept=(*program.kept, value))
