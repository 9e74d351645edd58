"""Is a program right: does every line do on slices and terms what it does on whole values?

And does backward find the gradients of what forward computes, as the chain rule says? The types of
`language.programs` answer the one, the terms of `meaning.terms` the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spec.devices.layouts import PARTIAL, WHOLE, Contraction, LayoutError, Lies, along, contract
from spec.language.moves import Move
from spec.language.programs import Line, Program, of_cotangent, result
from spec.language.turns import check_loops, is_in_turns
from spec.meaning.terms import Terms, differentiated, executed, gradient_of
from spec.models.values import LOG_TOTAL, Does, Operation, Role, Value


def check_program(program: Program) -> dict[Value, Lies]:
    """How every value lies. Raises LayoutError, with the line, if one is wrong on slices or terms."""
    part, lies = program.part, {v: at for v, at in program.lies.items() if v.role is Role.CONSTANT}
    for value in (*part.weights, *([part.takes] if part.takes else [])):
        lies[value] = {axis.name: axis.rest(value, part) for axis in program.every_axis}
    for line in program.forward:
        lies[line.makes] = _made(program, line, lies)
    home = {axis.name: axis.home(part.gives, part) for axis in program.every_axis}
    _require(lies, program.gives, home, (part.name, "gives"))
    # from here on there is what was kept, what is made again, and what can be had at any time
    forward = {line.makes: line for line in program.forward}
    found, lies = lies, _at_hand(program, lies)
    lies[program.seed] = of_cotangent(home)
    for line in program.backward:
        if isinstance(line, Operation) and forward.get(line.makes) == line:  # and masks drawn again
            lies |= {v: program.lies[v] for v in line.reads if v.role is Role.CONSTANT}
        lies[line.makes] = _made(program, line, lies)
    if part.takes:
        if program.returns is None:
            raise LayoutError(f"{part.name}: no cotangent of {part.takes.name} is returned")
        home = {axis.name: axis.home(part.takes, part) for axis in program.every_axis}
        _require(lies, program.returns, of_cotangent(home), (part.name, "returns"))
    for weight in part.weights:
        if weight not in program.gradients:
            raise LayoutError(f"{weight.name} has no gradient")
    for weight, gradient in program.gradients.items():
        over = [axis.name for axis in program.axes]
        _require(lies, gradient, lies[weight], (part.name, weight.name), over)
    for turns in program.turns:
        check_loops(program.forward, found, turns)
        check_loops(program.backward, {**found, **lies}, turns)
    return {**found, **lies}


def _at_hand(program: Program, lies: Mapping[Value, Lies]) -> dict[Value, Lies]:
    """What backward has: what is kept, weights, and constants that take no room, or that turns draw."""
    found, kept, weights = {}, {*program.kept}, {*program.part.weights}
    for value, at in lies.items():
        in_turns = is_in_turns(at, program.turns)
        if value in kept and in_turns:
            where = next((line for line in program.backward if value in line.reads), None)
            raise LayoutError(f"{value.name} is of one turn of forward, which is over", where)
        free = value.role is Role.CONSTANT and (in_turns or not value.width)
        if value in kept or value in weights or free:
            found[value] = at
    return found


def _made(program: Program, line: Line, lies: Mapping[Value, Lies]) -> Lies:
    """How the result of a line lies."""
    for value in line.reads:
        if value not in lies:
            raise LayoutError(f"{value.name} is not there", line)
    if isinstance(line, Operation):
        found = {}
        for axis in program.every_axis:
            try:
                found[axis.name] = result(line, axis, *(lies[v][axis.name] for v in line.reads))
            except LayoutError as error:
                raise LayoutError(f"along {axis.name}: {error}", line) from None
        return found
    has = lies[line.value].get(line.axis, WHOLE).plain
    if has != line.before or line.after.index not in ("", *line.value.indices):
        raise LayoutError(
            f"{line.value.name} is {has.words}, and is moved as if it were {line.before.words}", line
        )
    if not line.collective or line.before == line.after:
        raise LayoutError(f"{line.value.name} is {line.before.words} already", line)
    apart = [axis.turns for axis in program.axes if axis.ring and axis.name == line.axis]
    apart = [turns for turns in apart if lies[line.value][turns] != WHOLE]
    if not line.in_turns and (apart or line.axis in program.turns):
        where = f"devices along {line.axis} have other slices" if apart else f"{line.axis} are no axis"
        raise LayoutError(f"{line.collective} of {line.value.name}: {where}", line)
    found = {**lies[line.value], line.axis: line.after}
    return found | (_moved_in_turns(program, line, lies) if line.in_turns else {})


def _moved_in_turns(program: Program, line: Move, lies: Mapping[Value, Lies]) -> Lies:
    """How a value lies along turns, that goes round a ring, is sent home, or is summed over them."""
    value, index = line.value, line.before.index or line.after.index
    if not index:  # over the turns themselves
        fits = _merges(program, line, line.by, lies) if line.by else lies[value][line.axis] == PARTIAL
        if line.axis not in program.turns or not fits:
            raise LayoutError(f"{value.name} is not summed so over {line.axis}", line)
        return {}
    rings = [axis.turns for axis in program.axes if axis.ring == index and axis.name == line.axis]
    to, back = (WHOLE, along(index)) if line.after == WHOLE else (along(index), WHOLE)
    if not rings or lies[value][rings[0]] != to:
        raise LayoutError(f"{value.name} cannot go round a ring over {line.axis}", line)
    return {rings[0]: back}


def _merges(program: Program, line: Move, by: Value, lies: Mapping[Value, Lies]) -> bool:
    """Whether partial results merge by this log-sum-exp, which has a number for each of their rows."""
    of, has, total = line.value, lies[line.value], lies[by]
    scaled = Contraction(of.indices, by.indices, of.indices)
    open_ones = [name for name in program.turns if has[name].shares_of]
    alike = all(total[name] == replace(has[name], log_total=True) for name in open_ones)
    is_itself = all(has[name].log_total == (of == by) for name in open_ones)
    return (
        line.axis in open_ones
        and alike
        and is_itself
        and {*by.indices} <= {*of.indices}
        and all(
            contract(scaled, has[axis.name].plain, total[axis.name]) == has[axis.name]
            for axis in program.every_axis
            if axis.name not in open_ones
        )
    )


def _require(
    lies: Mapping[Value, Lies],
    value: Value,
    needed: Lies,
    at: tuple[str, str],
    in_terms: Sequence[str] = (),
) -> None:
    """`in_terms`: axes along which terms of what must be whole will do."""
    if value not in lies:
        raise LayoutError(f"{value.name} is not there", at)
    for axis, lie in needed.items():
        has = lies[value][axis]
        if has != lie and not (axis in in_terms and has == PARTIAL and lie == WHOLE):
            words = f"{value.name} is {has.words} along {axis}; needs to be {lie.words}"
            raise LayoutError(words, at)


def _beside(line: Line) -> tuple[Value, ...]:
    """What a softmax reads beside its operands, and the log-sum-exp that is made of them."""
    if isinstance(line, Move) or line.does is not Does.NORMALISE:
        return ()
    return (line.makes,) if line.function == LOG_TOTAL else line.reads[1 + line.backward :]


def check_gradients(program: Program) -> None:
    """Raise LayoutError, with the line, unless backward finds the gradients of what forward computes.

    Of a program whose lines read what is there. A sum may be made in any order, of any of its terms.
    """
    terms = Terms()
    right = differentiated(program.part, terms)
    sums = [terms.of(number) for number in range(len(terms.numbers))]
    made, found = executed(program, terms)
    if found == right:
        return
    numbers = {line.makes: number for line, number in made}
    aside = {numbers.get(value) for line in program.lines for value in _beside(line)}
    for line, number in made:
        if number not in aside and not any(terms.of(number) <= whole for whole in sums):
            raise LayoutError("the chain rule gives no such term", line)
    part = program.part
    names = {gradient_of(weight): weight.name for weight in part.weights}
    wrong = [name for gradient, name in names.items() if found.get(gradient) != right[gradient]]
    of = wrong[0] if wrong else part.takes.name if part.takes else ""
    what = f"the gradient of {of} is not the sum of what its uses contribute"
    raise LayoutError(what, (part.name, of if wrong else "returns"))
