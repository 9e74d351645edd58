"""Is a program right: does every line do on slices and terms what it does on whole values?

And does backward find the gradients of what forward computes, as the chain rule says? The type of a
value answers both: which value of a single device it is, and how it lies along each axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, Lies, along
from spec.language.moves import Axis, Move
from spec.language.programs import Line, Program, result
from spec.language.turns import check_loops, is_in_turns, nested
from spec.meaning.terms import SEED, Terms, differentiated, given_to, gradient_of
from spec.models.values import LOG_TOTAL, Does, Role, Value


class Type(NamedTuple):
    """What is known of a value: which one of a single device's it is, and how it lies on each axis."""

    term: int
    lies: Lies


Types = dict[Value, Type]


class Typed(NamedTuple):
    """The types of what forward has, and of what backward has of that and makes."""

    forward: Types
    backward: Types

    @property
    def lies(self) -> dict[Value, Lies]:
        """How all values lie."""
        return {value: type_.lies for value, type_ in (self.forward | self.backward).items()}


def check_program(program: Program) -> Program:
    """The program, with how all its values lie.

    Raises LayoutError, with the line, if one is wrong on slices or terms, or if backward does not find
    the gradients of what forward computes. A sum may be made in any order, of any of its terms.
    """
    terms = Terms()
    right = differentiated(program.part, terms)
    known = len(terms.numbers)
    typed = types_of(program, terms)
    if results(program, typed) != right:
        raise _wrong_gradient(program, typed, terms, known, right)
    return replace(program, lies=typed.lies)


def types_of(program: Program, terms: Terms) -> Typed:
    """The type of every value. Raises LayoutError, with the line, if one is wrong on slices."""
    forward = _of_forward(program, terms)
    typed = Typed(forward, _of_backward(program, forward, terms))
    for turns in nested(program.turns):
        check_loops(program.forward, Typed(forward, {}).lies, turns)
        check_loops(program.backward, typed.lies, turns)
    return typed


def on_whole_values(program: Program, terms: Terms) -> dict[str, int]:
    """What a program computes on whole values. Raises LayoutError as `types_of` does."""
    return results(program, types_of(program, terms))


def results(program: Program, typed: Typed) -> dict[str, int]:
    """The terms of what a program gives, returns, and finds of each weight."""
    found = {"gives": typed.forward[program.gives].term}
    of = ((weight, program.gradients[weight]) for weight in program.part.weights)
    found |= {gradient_of(weight): typed.backward[gradient].term for weight, gradient in of}
    return found | ({"returns": typed.backward[program.returns].term} if program.returns else {})


def _of_forward(program: Program, terms: Terms) -> Types:
    """Of what comes in, and of what forward makes of it."""
    part, has = program.part, Types()
    for value, lies in program.lies.items():
        if value.role is Role.CONSTANT:
            has[value] = Type(terms.given(value), lies)
    for value in given_to(part):
        rests = {axis.name: axis.rest(value, part) for axis in program.every_axis}
        has[value] = Type(terms.given(value), rests)
    for line in program.forward:
        if line.makes in has:
            raise LayoutError(f"{line.makes.name} is there already", line)
        has[line.makes] = _made(program, line, has, terms)
    _require(has, program.gives, _home(program, part.gives), (part.name, "gives"))
    return has


def _of_backward(program: Program, found: Types, terms: Terms) -> Types:
    """Of what backward has of forward, and of what it makes."""
    part, has = program.part, _at_hand(program, found)
    has[program.seed] = Type(terms.number(SEED), _home(program, part.gives))
    for line in program.backward:
        if line.makes in found:  # and masks drawn again
            has |= {value: found[value] for value in line.reads if value.role is Role.CONSTANT}
        made = _made(program, line, has, terms)
        if has.get(line.makes, found.get(line.makes, made)) != made:
            raise LayoutError(f"{line.makes.name} is made again, and is not the same", line)
        has[line.makes] = made
    if part.takes:
        if program.returns is None:
            raise LayoutError(f"{part.name}: no cotangent of {part.takes.name} is returned")
        _require(has, program.returns, _home(program, part.takes), (part.name, "returns"))
    for weight in part.weights:
        if weight not in program.gradients:
            raise LayoutError(f"{weight.name} has no gradient")
    for weight, gradient in program.gradients.items():
        if weight not in part.weights:
            raise LayoutError(f"{weight.name} is no weight, and has a gradient")
        over = [axis.name for axis in program.axes]
        _require(has, gradient, has[weight].lies, (part.name, weight.name), over)
    return has


def _home(program: Program, value: Value) -> Lies:
    """How a value lies that parts hand on, and its cotangent."""
    return {axis.name: axis.home(value, program.part) for axis in program.every_axis}


def _at_hand(program: Program, types: Types) -> Types:
    """What backward has: what is kept, weights, and constants that take no room, or that turns draw."""
    found = Types()
    for value in program.kept:
        where = next((line for line in program.backward if value in line.reads), None)
        if value not in types:
            raise LayoutError(f"{value.name} is not there", where)
        if is_in_turns(types[value].lies, program.turns):
            raise LayoutError(f"{value.name} is of one turn of forward, which is over", where)
        found[value] = types[value]
    for value, type_ in types.items():
        is_drawn = not value.width or is_in_turns(type_.lies, program.turns)
        if value in program.part.weights or (value.role is Role.CONSTANT and is_drawn):
            found[value] = type_
    return found


def _made(program: Program, line: Line, has: Mapping[Value, Type], terms: Terms) -> Type:
    """The type of the result of a line: a move makes the same value, lying otherwise."""
    for value in line.reads:
        if value not in has:
            raise LayoutError(f"{value.name} is not there", line)
    lies = {value: has[value].lies for value in line.reads}
    if isinstance(line, Move):
        return Type(has[line.value].term, _moved(program, line, lies))
    found = {}
    for axis in program.every_axis:
        try:
            found[axis.name] = result(line, axis, *(lies[v][axis.name] for v in line.reads))
        except LayoutError as error:
            raise LayoutError(f"along {axis.name}: {error}", line) from None
    return Type(terms.made(line, [has[value].term for value in line.reads]), found)


def _moved(program: Program, line: Move, lies: Mapping[Value, Lies]) -> Lies:
    """How a value lies that is moved."""
    has = lies[line.value].get(line.axis, WHOLE).plain
    if has != line.before or line.after.index not in ("", *line.value.indices):
        raise LayoutError(
            f"{line.value.name} is {has.words}, and is moved as if it were {line.before.words}", line
        )
    if not line.collective or line.before == line.after:
        raise LayoutError(f"{line.value.name} is {line.before.words} already", line)
    if line.in_turns:
        return {**lies[line.value], line.axis: line.after} | _moved_in_turns(program, line, lies)
    axis = next((axis for axis in program.axes if axis.name == line.axis), None)
    if axis is None or (axis.ring and lies[line.value][axis.turns] != WHOLE):
        where = f"devices along {line.axis} have other slices" if axis else f"{line.axis} are no axis"
        raise LayoutError(f"{line.collective} of {line.value.name}: {where}", line)
    return {**lies[line.value], line.axis: line.after}


def _moved_in_turns(program: Program, line: Move, lies: Mapping[Value, Lies]) -> Lies:
    """How a value lies along turns, that goes round a ring, is sent home, or is summed over them."""
    value, index = line.value, line.before.index or line.after.index
    if not index:  # over the turns themselves
        fits = _merges(program, line, line.by, lies) if line.by else lies[value][line.axis] == PARTIAL
        if line.axis not in program.turns or not fits:
            raise LayoutError(f"{value.name} is not summed so over {line.axis}", line)
        return {}
    ring = next((axis for axis in program.axes if axis.name == line.axis and axis.ring), None)
    to, back = (WHOLE, along(index)) if line.after == WHOLE else (along(index), WHOLE)
    if ring is None or lies[value][ring.turns] != to:
        raise LayoutError(f"{value.name} cannot go round a ring over {line.axis}", line)
    return {ring.turns: back}


def _merges(program: Program, line: Move, by: Value, lies: Mapping[Value, Lies]) -> bool:
    """Whether partial results merge by this log-sum-exp, which has a number for each of their rows."""
    of, has, total = line.value, lies[line.value], lies[by]

    def fits(axis: Axis) -> bool:
        lie = has[axis.name]
        if lie.shares_of:  # of the same turns' keys
            return total[axis.name] == lie._replace(log_total=True)
        return total[axis.name] == (lie if lie.index in by.indices else WHOLE)

    shares, is_total = has[line.axis].shares_of, has[line.axis].log_total
    by_itself = of == by or not is_total  # a log-sum-exp merges by itself
    return bool(shares) and by_itself and all(map(fits, program.every_axis))


def _require(
    types: Types,
    value: Value,
    needed: Lies,
    at: tuple[str, str],
    in_terms: Sequence[str] = (),
) -> None:
    """`in_terms`: axes along which terms of what must be whole will do."""
    if value not in types:
        raise LayoutError(f"{value.name} is not there", at)
    for axis, lie in needed.items():
        has = types[value].lies[axis]
        if has != lie and not (axis in in_terms and has == PARTIAL and lie == WHOLE):
            words = f"{value.name} is {has.words} along {axis}; needs to be {lie.words}"
            raise LayoutError(words, at)


def _beside(line: Line) -> tuple[Value, ...]:
    """What a softmax reads beside its operands, and the log-sum-exp that is made of them."""
    if isinstance(line, Move) or line.does is not Does.NORMALISE:
        return ()
    return (line.makes,) if line.function == LOG_TOTAL else line.reads[1 + line.backward :]


def _wrong_gradient(
    program: Program,
    typed: Typed,
    terms: Terms,
    known: int,
    right: Mapping[str, int],
) -> LayoutError:
    """The first line that makes no part of the chain rule's sums; or else the wrong gradient.

    `known`: how many terms the chain rule has.
    """
    sums = [terms.of(number) for number in range(known)]
    made = [(line, typed.forward[line.makes].term) for line in program.forward]
    made += [(line, typed.backward[line.makes].term) for line in program.backward]
    numbers = {line.makes: number for line, number in made}
    aside = {numbers.get(value) for line in program.lines for value in _beside(line)}
    for line, number in made:
        is_part = any(terms.of(number) <= whole for whole in sums)
        if number not in aside and not is_part:
            return LayoutError("the chain rule gives no such term", line)
    part, found = program.part, results(program, typed)
    names = {gradient_of(weight): weight.name for weight in part.weights}
    wrong = [name for gradient, name in names.items() if found.get(gradient) != right[gradient]]
    of = wrong[0] if wrong else part.takes.name if part.takes else ""
    what = f"the gradient of {of} is not the sum of what its uses contribute"
    return LayoutError(what, (part.name, of if wrong else "returns"))
