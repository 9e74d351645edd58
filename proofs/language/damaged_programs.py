"""Programs that are wrong in one place, which the checker is to reject."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from proofs.language.made_twice import with_values_twice
from proofs.trusted.kernel import KernelError
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, Lie, along
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import Does, Operation, Role, Value

NOWHERE = along("nowhere")  # slices of an index that no value has


class Way(NamedTuple):
    """Of a move: from how a value lies along an axis to how it lies then."""

    axis: str
    before: Lie
    after: Lie
    in_turns: bool = False


def must_reject(accepts: Callable[..., object], *damaged: object) -> object:
    """What is said to be wrong. Raises KernelError if what is damaged is accepted."""
    try:
        accepts(*damaged)
    except LayoutError as error:
        return error.at
    raise KernelError(f"{accepts.__name__} accepts what is damaged")


def without(program: Program, move: Move) -> Program:
    """The program without a move. Raises KernelError unless it has all else, as it was."""
    found = program.without(move)
    ends = found.gives, found.returns, *found.gradients.values(), *found.kept
    rest = [line.reads for line in program.lines if line != move]
    reads = [tuple(move.value if value == move.makes else value for value in some) for some in rest]
    others = [line for line in program.lines if line != move and move.makes not in line.reads]
    before = program.gives, program.returns, *program.gradients.values()
    if {*before} - {move.makes} - {*ends}:
        raise KernelError(f"{move}: without it other values are left")
    if [line.reads for line in found.lines] != reads:
        raise KernelError(f"{move}: it is not forgotten")
    kept = [*dict.fromkeys(move.value if value == move.makes else value for value in program.kept)]
    if move.makes in ends or {*others} - {*found.lines} or [*found.kept] != kept:
        raise KernelError(f"{move}: more is forgotten, or less")
    if found.waiting != len([line for line in program.parts_of_backward[1] if line != move]):
        raise KernelError(f"{move}: without it {found.waiting} lines wait")
    return found


def without_moves(program: Program) -> Iterator[Program]:
    """Without each of its moves."""
    yield from map(program.without, program.moves)


def damaged_programs(program: Program) -> Iterator[Program]:
    """A program on one axis with one thing wrong: a move, a gradient, or what is kept."""
    (axis,) = program.axes
    yield from without_moves(program)
    for move in program.moves:
        yield brought(program, move.makes, [Way(move.axis, move.before, move.after, move.in_turns)])
        yield with_lines(program, {move: replace(move, in_turns=not move.in_turns)})
    for line in program.lines:
        if program.lies[line.makes][axis.name] == WHOLE:
            there = Way(axis.name, WHOLE, NOWHERE)
            yield brought(program, line.makes, [there, Way(axis.name, NOWHERE, WHOLE)])
        else:
            lie = program.lies[line.makes][axis.name]
            yield brought(program, line.makes, [Way(axis.name, lie, lie)])  # slices change places
    yield from _with_terms_apart(program)
    yield from _with_other_moves(program)
    yield from with_other_gradients(program)
    yield from with_less_kept(program)
    yield from with_values_twice(program)
    yield from _with_more_gradients(program)
    for weight in program.part.weights:
        if program.summed_over(weight):
            yield _with_slices(program, weight)
        if program.lies[weight][axis.name] != WHOLE:
            yield _with_terms(program, weight)


def _with_other_moves(program: Program) -> Iterator[Program]:
    """With a move along no axis, or of slices of another index; and with copies that are summed."""
    (axis,) = program.axes
    for move in program.moves:
        yield brought(program, move.makes, [Way("nowhere", PARTIAL, WHOLE)])
        for index in (i for i in move.value.indices if move.before.index not in ("", i)):
            yield with_lines(program, {move: replace(move, before=along(index))})
    there_and_back = Way(axis.name, WHOLE, PARTIAL), Way(axis.name, PARTIAL, WHOLE)
    for value in (line.makes for line in program.forward):
        if program.lies[value][axis.name] == WHOLE:
            yield brought(program, value, there_and_back)


def with_other_gradients(program: Program) -> Iterator[Program]:
    """With the gradient of the next weight in place of one's own."""
    weights = [*program.gradients]
    for one, other in zip(weights, weights[1:] + weights[:1], strict=True):
        yield replace(program, gradients={**program.gradients, one: program.gradients[other]})


def with_less_kept(program: Program) -> Iterator[Program]:
    """Without one of the values that backward reads, which may be said to be weights."""
    for some in (program, with_role(program, Role.WEIGHT)):
        for value in some.kept:
            yield replace(some, kept=tuple(other for other in some.kept if other != value))


def without_made_again(program: Program) -> Iterator[Program]:
    """Without a line of backward that makes again what forward did, inside a kernel."""
    made = {line.makes for line in program.forward if not line.makes.width}
    for line in program.backward:
        if line.makes in made:
            yield replace(program, backward=tuple(one for one in program.backward if one != line))


def _with_more_gradients(program: Program) -> Iterator[Program]:
    """With a gradient of a value that is kept, which is said to be a weight."""
    some = with_role(program, Role.WEIGHT)
    for value in some.kept:
        yield replace(some, gradients={**some.gradients, value: value})


def with_other_functions(program: Program) -> Iterator[tuple[Line, Program]]:
    """With another function in a line, and that line."""
    for line in program.lines:
        if isinstance(line, Operation) and line.does in (Does.APPLY, Does.NORMALISE):
            other = replace(line, function="another")
            yield other, with_lines(program, {line: other})


def _with_terms_apart(program: Program) -> Iterator[Program]:
    """With products that are not summed in what it returns, if an operation makes that."""
    for line in program.backward:
        if isinstance(line, Operation) and line.makes == program.returns:
            indices = dict.fromkeys(index for value in line.reads for index in value.indices)
            returns = replace(line.makes, indices=tuple(indices))
            other = with_lines(program, {line: line.on(line.reads, returns)})
            yield replace(other, returns=returns)


def with_another_added(program: Program) -> tuple[Line, Program]:
    """With y + (x + y) in place of x + (x + y): that line, and the program."""
    first, second = (
        line for line in program.forward if isinstance(line, Operation) and line.does is Does.ADD
    )
    other = second.on((first.reads[1], first.makes), second.makes)
    return other, with_lines(program, {second: other})


def with_operands_turned(program: Program) -> Program:
    """With the operands of every product in the other order, which is as right as it was."""
    lines = (line for line in program.lines if isinstance(line, Operation))
    products = [line for line in lines if line.does is Does.CONTRACT]
    return with_lines(program, {line: replace(line, reads=line.reads[::-1]) for line in products})


def with_lines(program: Program, others: dict[Line, Line]) -> Program:
    """With other lines in place of some."""
    forward, backward = (
        tuple(others.get(line, line) for line in lines) for lines in (program.forward, program.backward)
    )
    return replace(program, forward=forward, backward=backward)


def brought(program: Program, value: Value, ways: Sequence[Way]) -> Program:
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


def with_role(program: Program, role: Role) -> Program:
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
