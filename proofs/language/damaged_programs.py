"""Programs that are wrong in one place, which the checker is to reject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple

from proofs.language.made_twice import with_values_twice
from proofs.language.one_more_line import with_one_more_line
from spec.devices.layouts import PARTIAL, WHOLE, Lie, along
from spec.language.moves import Axis, Move
from spec.language.programs import Line, Program
from spec.models.values import Does, Operation, Role, Value

CUT_AT = 3  # one place of so many at which a loop may be cut
NOWHERE = along("nowhere")  # slices of an index that no value has


class Way(NamedTuple):
    """Of a move: from how a value lies along an axis to how it lies then."""

    axis: str
    before: Lie
    after: Lie
    in_turns: bool = False


def without_moves(program: Program) -> Iterator[Program]:
    """Without each of its moves."""
    yield from map(program.without, program.moves)


def damaged_programs(program: Program) -> Iterator[Program]:
    """A program on one axis with one thing wrong: a move, a gradient, or what is kept."""
    (axis,) = program.axes
    yield from without_moves(program)
    for move in program.moves:
        yield _brought(program, move.makes, [Way(move.axis, move.before, move.after, move.in_turns)])
        yield _with_lines(program, {move: replace(move, in_turns=not move.in_turns)})
    for line in program.lines:
        if program.lies[line.makes][axis.name] == WHOLE:
            there = Way(axis.name, WHOLE, NOWHERE)
            yield _brought(program, line.makes, [there, Way(axis.name, NOWHERE, WHOLE)])
        else:
            lie = program.lies[line.makes][axis.name]
            yield _brought(program, line.makes, [Way(axis.name, lie, lie)])  # slices change places
    yield from _with_terms_apart(program)
    yield from _with_other_moves(program)
    yield from with_other_gradients(program)
    yield from with_less_kept(program)
    yield from with_values_twice(program)
    for weight in program.part.weights:
        if program.summed_over(weight):
            yield _with_slices(program, weight)
        if program.lies[weight][axis.name] != WHOLE:
            yield _with_terms(program, weight)


def damaged_rings(program: Program) -> Iterator[Program]:
    """A program of a layer on a ring, with one thing wrong."""
    (axis,) = program.axes
    yield from without_moves(program)
    yield from with_other_gradients(program)
    yield from with_less_kept(program)
    yield from _with_another_given(program)
    for move in program.moves:
        yield _with_lines(program, {move: replace(move, in_turns=not move.in_turns)})
        if move.by:
            yield _with_lines(
                program, {move: replace(move, by=None if move.by == move.value else move.value)}
            )
    for line in program.lines:
        value, lies = line.makes, program.lies[line.makes]
        if lies[axis.turns].index and lies[axis.name] == WHOLE:  # devices have other slices in a turn
            cut = along(next(index for index in value.indices if index != axis.ring))
            yield _brought(program, value, [Way(axis.name, WHOLE, cut), Way(axis.name, cut, WHOLE)])
        if lies == {axis.name: along(axis.ring), axis.turns: WHOLE}:  # what is whole is not sent home
            home = Way(axis.name, WHOLE, lies[axis.name], in_turns=True)
            yield _brought(program, value, [Way(axis.name, lies[axis.name], WHOLE), home])
    yield from _with_a_turn_kept(program)
    turn = next(move.makes for move in program.moves if move.in_turns)
    drawn = next(v for v in program.lies if v.role is Role.CONSTANT and program.is_in_turns(v))
    for value in (turn, drawn, program.seed):  # of one turn, or not there
        yield replace(program, kept=(*program.kept, value))
    yield from with_one_more_line(program)
    yield from _with_another_total(program)
    yield from _with_squares(program)
    yield from _with_other_rows(program)


def on_a_ring(program: Program, ring: Axis) -> Iterator[Program]:
    """A program that gathers slices at once, on the axis of a ring: it has no turns, and is right.

    Then with what it sums and scatters sent home round the ring, of which no turn has made a slice.
    """
    lies = {value: {**found, ring.turns: WHOLE} for value, found in program.lies.items()}
    there = replace(program, axes=(ring,), lies=lies)
    yield there
    for move in there.moves:
        if move.before == PARTIAL:
            yield _with_lines(there, {move: replace(move, in_turns=True)})


def _with_another_given(program: Program) -> Iterator[Program]:
    """With another value that is given, and lies as that does."""
    gives, lies = program.gives, program.lies
    made = (line.makes for line in program.forward if line.makes != gives)
    alike = (value for value in made if value.indices == gives.indices and lies[value] == lies[gives])
    yield replace(program, gives=next(alike))


def _with_other_moves(program: Program) -> Iterator[Program]:
    """With a move along no axis, or of slices of another index; and with copies that are summed."""
    (axis,) = program.axes
    for move in program.moves:
        yield _brought(program, move.makes, [Way("nowhere", PARTIAL, WHOLE)])
        for index in (i for i in move.value.indices if move.before.index not in ("", i)):
            yield _with_lines(program, {move: replace(move, before=along(index))})
    there_and_back = Way(axis.name, WHOLE, PARTIAL), Way(axis.name, PARTIAL, WHOLE)
    for value in (line.makes for line in program.forward):
        if program.lies[value][axis.name] == WHOLE:
            yield _brought(program, value, there_and_back)


def with_other_gradients(program: Program) -> Iterator[Program]:
    """With the gradient of the next weight in place of one's own."""
    weights = [*program.gradients]
    for one, other in zip(weights, weights[1:] + weights[:1], strict=True):
        yield replace(program, gradients={**program.gradients, one: program.gradients[other]})


def with_less_kept(program: Program) -> Iterator[Program]:
    """Without one of the values that backward reads, which may be said to be weights."""
    for some in (program, _with_role(program, Role.WEIGHT)):
        for value in some.kept:
            yield replace(some, kept=tuple(other for other in some.kept if other != value))


def with_other_functions(program: Program) -> Iterator[tuple[Line, Program]]:
    """With another function in a line, and that line."""
    for line in program.lines:
        if isinstance(line, Operation) and line.does in (Does.APPLY, Does.NORMALISE):
            other = replace(line, function="another")
            yield other, _with_lines(program, {line: other})


def _with_terms_apart(program: Program) -> Iterator[Program]:
    """With products that are not summed in what it returns, if an operation makes that."""
    for line in program.backward:
        if isinstance(line, Operation) and line.makes == program.returns:
            indices = dict.fromkeys(index for value in line.reads for index in value.indices)
            returns = replace(line.makes, indices=tuple(indices))
            other = _with_lines(program, {line: line.on(line.reads, returns)})
            yield replace(other, returns=returns)


def with_another_added(program: Program) -> Program:
    """With y + (x + y) in place of x + (x + y)."""
    first, second = (
        line for line in program.forward if isinstance(line, Operation) and line.does is Does.ADD
    )
    return _with_lines(program, {second: second.on((first.reads[1], first.makes), second.makes)})


def _with_another_total(program: Program) -> Iterator[Program]:
    """With one more log-sum-exp, which merges by the first, and not by itself; with one of other
    scores, by which all else merges; and with terms that merge by what is whole.
    """
    of, by = (move for move in program.moves if move.by)
    made = {line.makes: line for line in program.forward}
    total, again = made[by.value], replace(by.value, name=f"{by.value.name}_again")
    assert isinstance(total, Operation)
    scores = total.reads
    more: dict[Line, tuple[Line, ...]] = {by: (by, replace(by, value=again))}
    yield _with_more_lines(program, {total: (total, total.on(scores, again)), **more})
    others: dict[Line, tuple[Line, ...]] = {of: (replace(of, by=again),)}
    of_others = total.on(made[scores[0]].reads[:1], again)
    yield _with_more_lines(program, {total: (total, of_others), **others})
    for move in program.moves:
        if move.collective == "accumulate":
            yield _with_lines(program, {move: replace(move, by=by.makes)})


def _with_a_total_made_again(program: Program) -> Program:
    """On two rings, with a log-sum-exp made again in one more loop over the inner turns, by which what
    the first one gave merges in the outer loop.
    """
    lines, lies, (_, inner) = program.forward, program.lies, program.turns
    of, by = (line for line in lines if isinstance(line, Move) and line.by and line.turns == inner)
    merge = next(line for line in lines if isinstance(line, Move) and line.value == of.makes)
    of_outer = next(line for line in lines if isinstance(line, Move) and line.in_turns)
    needed = {by.value}
    for line in lines[::-1]:
        needed |= {*line.reads} if line.makes in needed and lies[line.makes][inner] != WHOLE else set()
    again = {v: replace(v, name=f"{v.name} again") for v in needed if lies[v][inner] != WHOLE}
    others = tuple(_reading(line, again) for line in lines if line.makes in again)
    apart = replace(of_outer, makes=replace(of_outer.makes, name="once more"))
    here = apart, *others, replace(merge, by=again[by.value])
    return _with_more_lines(program, {merge: here})


def _reading(line: Line, others: Mapping[Value, Value]) -> Line:
    """A line that reads, and makes, other values."""
    reads, makes = (others.get(value, value) for value in line.reads), others[line.makes]
    if isinstance(line, Operation):
        return line.on(tuple(reads), makes)
    return replace(line, value=next(reads), makes=makes)


def _with_more_lines(program: Program, others: Mapping[Line, tuple[Line, ...]]) -> Program:
    """With several lines of forward in place of some."""
    lines = (each for line in program.forward for each in others.get(line, (line,)))
    return replace(program, forward=tuple(lines))


def with_operands_turned(program: Program) -> Program:
    """With the operands of every product in the other order, which is as right as it was."""
    lines = (line for line in program.lines if isinstance(line, Operation))
    products = [line for line in lines if line.does is Does.CONTRACT]
    return _with_lines(program, {line: replace(line, reads=line.reads[::-1]) for line in products})


def _with_squares(program: Program) -> Iterator[Program]:
    """With an operand twice in a product of two that have the same indices."""
    for line in program.lines:
        if isinstance(line, Operation) and line.does is Does.CONTRACT:
            one, other = line.reads
            if one.indices == other.indices:
                for twice in (one, other):
                    yield _with_lines(program, {line: replace(line, reads=(twice, twice))})


def _with_other_rows(program: Program) -> Iterator[Program]:
    """With another number for each row, one more, or one for several, in a softmax that reads one."""
    of_rows = [line for line in program.backward if isinstance(line, Operation) and _reads_rows(line)]
    rows = dict.fromkeys(line.reads[-1] for line in of_rows)
    for line in of_rows:
        *reads, own = line.reads
        for last in ((own, own), *((other,) for other in rows if other != own)):
            yield _with_lines(program, {line: replace(line, reads=(*reads, *last))})
    operations = (line for line in program.backward if isinstance(line, Operation))
    for made in (line for line in operations if line.makes in rows):
        fewer = replace(made.makes, indices=made.makes.indices[1:])
        yield _with_lines(program, _making_another(program, made, fewer))
        for other in (other for other in rows if other != made.makes):
            yield _with_lines(program, {made: replace(made, reads=(made.reads[0], other))})


def _making_another(program: Program, line: Line, made: Value) -> dict[Line, Line]:
    """A line that makes another value, and the operations that read that."""
    readers = (r for r in program.lines if isinstance(r, Operation) and line.makes in r.reads)
    others: dict[Line, Line] = {
        r: replace(r, reads=tuple(made if v == line.makes else v for v in r.reads)) for r in readers
    }
    return others | {line: replace(line, makes=made)}


def _reads_rows(line: Operation) -> bool:
    """Whether it is a softmax, or its derivative, from a number for each row."""
    return line.function == "softmax" and line.reads[-1].indices != line.makes.indices


def _with_lines(program: Program, others: dict[Line, Line]) -> Program:
    """With other lines in place of some."""
    forward, backward = (
        tuple(others.get(line, line) for line in lines) for lines in (program.forward, program.backward)
    )
    return replace(program, forward=forward, backward=backward)


def _brought(program: Program, value: Value, ways: Sequence[Way]) -> Program:
    """With a value moved, as soon as it is made; all that read it read what is made then."""
    moves: list[Move] = []
    for number, (axis, before, after, in_turns) in enumerate(ways):
        last = moves[-1].makes if moves else value
        makes = replace(value, name=f"{value.name} moved {number}", form_of=value.plain_name)
        moves.append(Move(axis, last, makes, before, after, in_turns))
    moved = moves[-1].makes

    def now(found: Value) -> Value:
        return moved if found == value else found

    def reading(line: Line) -> Line:
        if isinstance(line, Operation):
            return replace(line, reads=tuple(map(now, line.reads)))
        return replace(line, value=now(line.value), by=line.by and now(line.by))

    def with_moves(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        found: list[Line] = []
        for line in lines:
            found += [line, *moves] if line.makes == value else [reading(line)]
        return tuple(found)

    return replace(
        program,
        forward=with_moves(program.forward),
        backward=with_moves(program.backward),
        gives=now(program.gives),
        returns=program.returns and now(program.returns),
        gradients={weight: now(gradient) for weight, gradient in program.gradients.items()},
        kept=tuple(map(now, program.kept)),
        lies={**program.lies, **{move.makes: program.lies[value] for move in moves}},
    )


def _with_slices(program: Program, weight: Value) -> Program:
    """The program that leaves slices of a weight's gradient where the weight is whole."""
    (axis,), gradient = program.axes, program.gradients[weight]
    after = along(weight.indices[0])
    move = Move(axis.name, gradient, replace(gradient, name="slices"), PARTIAL, after)
    return replace(
        program,
        backward=(*program.backward, move),
        gradients={**program.gradients, weight: move.makes},
    )


def _with_terms(program: Program, weight: Value) -> Program:
    """The program that leaves terms of a weight's gradient, each of some samples, where it is cut."""
    (axis,), gradient = program.axes, program.gradients[weight]
    (line,) = (line for line in program.backward if line.makes == gradient)
    assert isinstance(line, Operation)
    samples = along(line.reads[0].indices[0])
    moves = [
        Move(axis.name, value, replace(value, name=f"{value.name} of some"), lie, samples)
        for value in line.reads
        for lie in [program.lies[value][axis.name]]
        if lie != samples
    ]
    some = {move.value: move.makes for move in moves}
    terms = replace(line, reads=tuple(some.get(value, value) for value in line.reads))
    at = program.backward.index(line)
    return replace(
        program, backward=(*program.backward[:at], *moves, terms, *program.backward[at + 1 :])
    )


def damaged_loops(program: Program) -> Iterator[Program]:
    """A program on two rings, one in the other: turned, with loops cut, with other totals."""
    yield replace(program, axes=program.axes[::-1])
    yield _with_a_total_made_again(program)
    yield from _with_loops_cut(program)
    merges = [move for move in program.moves if move.by]
    totals = {form for move in merges if move.by == move.value for form in (move.value, move.makes)}
    for move in merges:
        for by in {None, *totals} - {move.by}:
            yield _with_lines(program, {move: replace(move, by=by)})


def merged_in_slices(program: Program, axis: Axis) -> tuple[Program, Program, Program]:
    """A program on one more axis, along which what merges is in slices of features; and two along which
    just it, or just what it merges by, is in slices of rows.
    """
    more = {axis.name: WHOLE}
    lies = {value: found | more for value, found in program.lies.items()}
    there = replace(program, axes=(axis, *program.axes), lies=lies)
    of, by = (move for move in program.moves if move.by)
    after = _with_lines(there, {of: by, by: of})
    features, rows = of.value.indices[-1], by.value.indices[0]

    def in_slices(each: Program, move: Move, index: str) -> Program:
        away, home = (Way(axis.name, *w) for w in ((WHOLE, along(index)), (along(index), WHOLE)))
        return _brought(_brought(each, move.value, [away]), move.makes, [home])

    return in_slices(after, of, features), in_slices(after, of, rows), in_slices(there, by, rows)


def _with_loops_cut(program: Program) -> Iterator[Program]:
    """With a line within a loop that is of no turn of its: there the loop ends, and another begins.

    What lines make is in turn an activation, what layers hand on, and a weight.
    """
    roles = cycle([_with_role(program, role) for role in Role if role is not Role.CONSTANT])
    for turns in program.turns:
        for at in [*_cuts(program, program.forward, turns)][::CUT_AT]:
            other = next(roles)
            yield replace(other, forward=_with_one_more(other, other.forward, at, turns))
        for at in [*_cuts(program, program.backward, turns)][::CUT_AT]:
            other = next(roles)
            yield replace(other, backward=_with_one_more(other, other.backward, at, turns))


def _with_role(program: Program, role: Role) -> Program:
    """With another role of all that lines make."""
    makes = {line.makes for line in program.lines}

    def now(value: Value) -> Value:
        return replace(value, role=role) if value in makes else value

    def of(line: Line) -> Line:
        if isinstance(line, Operation):
            return line.on(tuple(map(now, line.reads)), now(line.makes))
        return replace(line, value=now(line.value), makes=now(line.makes), by=line.by and now(line.by))

    return replace(
        program,
        forward=tuple(map(of, program.forward)),
        backward=tuple(map(of, program.backward)),
        gives=now(program.gives),
        returns=program.returns and now(program.returns),
        gradients={weight: now(gradient) for weight, gradient in program.gradients.items()},
        kept=tuple(map(now, program.kept)),
        lies={now(value): lies for value, lies in program.lies.items()},
    )


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
