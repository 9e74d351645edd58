"""Programs: a model's operations on several devices, with the moves between them, and their types.

The type of a value is how it lies along each axis. A program is right if every operation does on
slices and terms what it does on whole values, which the layout rule says, and if in the end every
weight has its gradient where the weight is: whole, or in terms, which are summed where its states are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from spec.devices.layouts import (
    PARTIAL,
    WHOLE,
    Contraction,
    Layout,
    LayoutError,
    Lie,
    Lies,
    along,
    contract,
    linear,
    nonlinear,
    normalised,
)
from spec.language.moves import COLLECTIVE, Axis, Move, with_turns
from spec.language.turns import check_loops, in_turns, is_in_turns, loops
from spec.models.values import Does, Operation, Part, Role, Value

_R, _S, _P = Layout
Line = Operation | Move


@dataclass(frozen=True)
class Program:
    """A part on several devices. `kept`: what is kept from forward to backward.

    `waiting`: how many of backward's lines, the last, are a second part of it that may run later.
    `backward` starts from the cotangent of what the part gives. Along the axes over which a gradient is
    to be summed it leaves a term on each device: the states' schedule sums them.
    """

    part: Part
    axes: tuple[Axis, ...]
    forward: tuple[Line, ...]
    backward: tuple[Line, ...]
    gives: Value
    seed: Value  # the cotangent of what it gives
    returns: Value | None  # that of what it takes
    gradients: Mapping[Value, Value]  # of each weight
    kept: tuple[Value, ...]
    lies: Mapping[Value, Lies]  # of constants, and of what each line makes
    waiting: int = 0

    @cached_property
    def every_axis(self) -> tuple[Axis, ...]:
        """Its axes, and the turns of their rings."""
        return with_turns(self.axes)

    @property
    def turns(self) -> tuple[str, ...]:
        """The turns of rings, the outer loop's first."""
        return tuple(axis.name for axis in self.every_axis if axis.in_time)

    def loops(self, lines: Sequence[Line], turns: str) -> list[range]:
        """The bodies of the loops over some turns among some of its lines, by their numbers."""
        return loops(lines, self.lies, turns)

    def is_in_turns(self, value: Value) -> bool:
        """Whether a value is not the same in each turn of some ring."""
        return is_in_turns(self.lies[value], self.turns)

    @property
    def stored(self) -> tuple[Value, ...]:
        """What is kept in room of its own."""
        return self.in_own_room(self.kept)

    def in_own_room(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Those that backward does not have from others."""
        return tuple(value for value in values if value.plain_name not in self.part.merged)

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.forward + self.backward

    @cached_property
    def parts_of_backward(self) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
        """What makes the cotangent that goes on, and what may wait."""
        first = len(self.backward) - self.waiting
        return self.backward[:first], self.backward[first:]

    @cached_property
    def held_between(self) -> tuple[Value, ...]:
        """What the second part of backward reads and does not make: it is held from the first on."""
        _, second = self.parts_of_backward
        made = {line.makes for line in second}
        read = dict.fromkeys(value for line in second for value in line.reads if value not in made)
        return tuple(v for v in read if v.role is not Role.CONSTANT or v in self.kept)

    @property
    def stored_between(self) -> tuple[Value, ...]:
        """That, in room of its own."""
        return self.in_own_room(self.held_between)

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(line for line in self.lines if isinstance(line, Move))

    def is_at_once(self, move: Move) -> bool:
        """Whether a ring's slices are all gathered before its first turn, and none arrives later."""
        gathers = move.in_turns and bool(move.before.index) and move.axis != move.turns
        return gathers and any(axis.at_once for axis in self.axes if axis.name == move.axis)

    def sent_by(self, move: Move) -> str:
        """The name of the collective that sends what a move needs."""
        return COLLECTIVE[_S, _R] if self.is_at_once(move) else move.collective

    def over(self, move: Move) -> tuple[str, ...]:
        """The axes that a move is over: its own, but for a sum that is one of two."""
        return self.joined.get(move, (move.axis,))

    @cached_property
    def joined(self) -> dict[Move, tuple[str, ...]]:
        """Sums over an axis, and then within it: they are one over both, and the first sends nothing.

        (Reducing along two axes is reducing over their product: claim K2.)
        """
        found: dict[Move, tuple[str, ...]] = {}
        outside = {axis.name: axis.within for axis in self.axes if axis.within}
        sums = [move for move in self.moves if outside and move.collective == COLLECTIVE[_P, _R]]
        for after in sums:
            for move in sums:
                nested = move.makes == after.value and move.axis == outside.get(after.axis)
                if nested and {line for line in self.lines if move.makes in line.reads} == {after}:
                    found[move], found[after] = (), (move.axis, after.axis)
        return found

    def summed(self, weight: Value) -> tuple[str, ...]:
        """The axes along which a weight's gradient comes out partial: it is to be summed over them."""
        lies = self.lies[self.gradients[weight]]
        return tuple(axis.name for axis in self.axes if lies[axis.name] == PARTIAL)

    def without(self, move: Move) -> Program:
        """The program that forgets a move: what it moved is used as it lies."""

        def forget(lines: tuple[Line, ...]) -> tuple[Line, ...]:
            return tuple(_reading(line, move.makes, move.value) for line in lines if line != move)

        def now(value: Value | None) -> Value | None:
            return move.value if value == move.makes else value

        return replace(
            self,
            forward=forget(self.forward),
            backward=forget(self.backward),
            gives=now(self.gives) or self.gives,
            returns=now(self.returns),
            gradients={weight: now(g) or g for weight, g in self.gradients.items()},
            kept=tuple(dict.fromkeys(now(v) or v for v in self.kept)),
            waiting=len(forget(self.parts_of_backward[1])),
        )


def _reading(line: Line, old: Value, new: Value) -> Line:
    if isinstance(line, Move):
        by = new if line.by == old else line.by
        return replace(line, value=new if line.value == old else line.value, by=by)
    return replace(line, reads=tuple(new if value == old else value for value in line.reads))


def of_cotangent(lies: Lies) -> Lies:
    """How a cotangent must lie: as its value does; that of a partial sum is the same for each term.

    `layouts.cotangent` says how it comes out, before devices have summed what their copies add to it.
    """
    return {axis: WHOLE if lie.layout is _P else lie.plain for axis, lie in lies.items()}


def result(operation: Operation, axis: Axis, *lies: Lie) -> Lie:
    """How an operation's result lies along an axis. Raises LayoutError if it would not be right."""
    does, first = operation.does, lies[0]
    found = in_turns(operation, *lies) if axis.in_time else None
    if found:
        return found
    if does is Does.CONTRACT:
        return contract(operation.contraction, *lies)
    if does is Does.ADD:
        return linear(*lies)
    if does is Does.RENAME:
        return _require_index(operation, _renamed(operation, axis, first))
    if not operation.backward:
        return normalised(nonlinear(*lies), operation.over)
    # a cotangent times a derivative: linear in the one, not in what the other is computed from
    if operation.over and along(operation.over) in lies:
        raise LayoutError(f"{operation.over} is needed whole, and is cut")
    indices = operation.makes.indices
    if any(lie != first for lie in lies[2:]):
        raise LayoutError(f"a product that lies otherwise than what is {first.words}")
    return contract(Contraction(indices, indices, indices), first, nonlinear(lies[1]))


def _renamed(operation: Operation, axis: Axis, lie: Lie) -> Lie:
    """Where several indices become one, or one several, the one that is cut is the axis's own."""
    to = [new for old, new in operation.renamed if old == lie.index]
    if not to:
        return lie
    become_one = [old for old, new in operation.renamed if new == to[0]]
    own = axis.stream in to if len(to) > 1 else axis.stream == lie.index
    if len(to) + len(become_one) > 2 and not own:
        raise LayoutError(f"{lie.index} is cut, and not what is the axis's own")
    return along(axis.stream if len(to) > 1 else to[0])


def _require_index(operation: Operation, lie: Lie) -> Lie:
    if lie.index and lie.index not in operation.makes.indices:
        raise LayoutError(f"{lie.index} is cut, and the result has none")
    return lie


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
