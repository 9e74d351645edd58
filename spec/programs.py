"""Programs: a model's operations on several devices, with the moves between them, and their types.

The type of a value is how it lies along each axis. A program is right if every operation does on
slices and terms what it does on whole values, which the layout rule says, and if in the end every
weight has its gradient where the weight is: whole, or in terms, which are summed where its states are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import or_

from spec.collectives import COLLECTIVES
from spec.layouts import (
    PARTIAL,
    WHOLE,
    Contraction,
    Layout,
    LayoutError,
    Lie,
    along,
    contract,
    linear,
    nonlinear,
    normalised,
)
from spec.values import Does, Operation, Part, Role, Value

Lies = dict[str, Lie]  # how a value lies along each axis
R, S, _ = Layout


@dataclass(frozen=True)
class Axis:
    """What one axis of the mesh cuts.

    `weights`: indices; every weight that has one of them is cut along it.
    `stream`: the index along which samples, and what layers hand on, are cut; "": each device has all.
    `brought`: operations whose operands are brought to lie along an index, and which.
    `held`: what is gathered in forward is kept for backward, rather than gathered again.
    """

    name: str
    weights: tuple[str, ...] = ()
    stream: str = ""
    brought: tuple[tuple[str, str], ...] = ()
    held: bool = False

    def home(self, value: Value, part: Part) -> Lie:
        """Along the stream's index, under whichever name the value has it."""
        names = part.names_of(self.stream)
        return next((along(i) for i in value.indices if i in names), WHOLE)

    def rest(self, value: Value, part: Part) -> Lie:
        """Where a weight is, or what a part takes."""
        if value.role is not Role.WEIGHT:
            return self.home(value, part)
        return next((along(i) for i in value.indices if i in self.weights), WHOLE)


@dataclass(frozen=True)
class Move:
    """A value, brought to lie otherwise along one axis."""

    axis: str
    value: Value
    makes: Value
    before: Lie
    after: Lie

    @property
    def reads(self) -> tuple[Value]:
        """What it moves."""
        return (self.value,)

    @property
    def collective(self) -> str:
        """Its name; "slice" where each device only forgets what is not its own."""
        kinds = self.before.layout, self.after.layout
        if kinds not in COLLECTIVE:
            raise LayoutError(f"nothing brings what is {self.before.words} to be {self.after.words}")
        return COLLECTIVE[kinds]

    def __str__(self) -> str:
        return f"{self.makes} = {self.collective} over {self.axis} of {self.value.name}"


COLLECTIVE = {(c.before, c.after): c.name for c in COLLECTIVES.values()} | {(R, S): "slice"}
Line = Operation | Move


@dataclass(frozen=True)
class Program:
    """A part on several devices. `kept`: what is kept from forward to backward.

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

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.forward + self.backward

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(line for line in self.lines if isinstance(line, Move))

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
        )


def _reading(line: Line, old: Value, new: Value) -> Line:
    if isinstance(line, Move):
        return replace(line, value=new) if line.value == old else line
    return replace(line, reads=tuple(new if value == old else value for value in line.reads))


def live(lines: tuple[Line, ...], first: Value | None, last: Value | None) -> list[set[Value]]:
    """While each line runs, what is there: made or read by then, and from then on.

    `first` is there from the start, `last` to the end. No result takes the place of an operand.
    """
    touched = [{line.makes, *line.reads} for line in lines]
    started, needed = ({value} if value else set() for value in (first, last))
    by_then = [*accumulate(touched, or_, initial=started)][1:]
    from_then = [*accumulate(reversed(touched), or_, initial=needed)][:0:-1]
    return [past & to_come for past, to_come in zip(by_then, from_then, strict=True)]


def of_cotangent(lies: Lies) -> Lies:
    """How a cotangent must lie: as its value does; that of a partial sum is the same for each term.

    `layouts.cotangent` says how it comes out, before devices have summed what their copies add to it.
    """
    return {axis: WHOLE if lie == PARTIAL else lie for axis, lie in lies.items()}


def result(operation: Operation, axis: Axis, *lies: Lie) -> Lie:
    """How an operation's result lies along an axis. Raises LayoutError if it would not be right."""
    does, first = operation.does, lies[0]
    if does is Does.CONTRACT:
        return contract(operation.contraction, *lies)
    if does is Does.ADD:
        return linear(*lies)
    if does is Does.RENAME:
        return _require_index(operation, _renamed(operation, axis, first))
    if not operation.backward:
        return normalised(first, operation.over)
    # a cotangent times a derivative: linear in the one, not in what the other is computed from
    if operation.over and along(operation.over) in lies:
        raise LayoutError(f"{operation.over} is needed whole, and is cut")
    indices = operation.makes.indices
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
        lies[value] = {axis.name: axis.rest(value, part) for axis in program.axes}
    for line in program.forward:
        lies[line.makes] = _made(program, line, lies)
    home = {axis.name: axis.home(part.gives, part) for axis in program.axes}
    _require(lies, program.gives, home, (part.name, "gives"))
    # from here on there is what was kept, what is made again, and what can be had at any time
    kept, forward = {*program.kept}, {line.makes: line for line in program.forward}
    found, lies = lies, {v: at for v, at in lies.items() if v in kept or _at_hand(v)}
    lies[program.seed] = of_cotangent(home)
    for line in program.backward:
        if isinstance(line, Operation) and forward.get(line.makes) == line:  # and masks drawn again
            lies |= {v: program.lies[v] for v in line.reads if v.role is Role.CONSTANT}
        lies[line.makes] = _made(program, line, lies)
    if part.takes:
        if program.returns is None:
            raise LayoutError(f"{part.name}: no cotangent of {part.takes.name} is returned")
        home = {axis.name: axis.home(part.takes, part) for axis in program.axes}
        _require(lies, program.returns, of_cotangent(home), (part.name, "returns"))
    for weight in part.weights:
        if weight not in program.gradients:
            raise LayoutError(f"{weight.name} has no gradient")
    for weight, gradient in program.gradients.items():
        _require(lies, gradient, lies[weight], (part.name, weight.name), in_terms=True)
    return {**found, **lies}


def _at_hand(value: Value) -> bool:
    return value.role is Role.WEIGHT or (value.role is Role.CONSTANT and not value.width)


def _made(program: Program, line: Line, lies: Mapping[Value, Lies]) -> Lies:
    """How the result of a line lies."""
    reads = (line.value,) if isinstance(line, Move) else line.reads
    for value in reads:
        if value not in lies:
            raise LayoutError(f"{value.name} is not there", line)
    if isinstance(line, Operation):
        found = {}
        for axis in program.axes:
            try:
                found[axis.name] = result(line, axis, *(lies[v][axis.name] for v in reads))
            except LayoutError as error:
                raise LayoutError(f"along {axis.name}: {error}", line) from None
        return found
    has = lies[line.value][line.axis]
    if has != line.before or line.after.index not in ("", *line.value.indices):
        raise LayoutError(
            f"{line.value.name} is {has.words}, and is moved as if it were {line.before.words}", line
        )
    if not line.collective or line.before == line.after:
        raise LayoutError(f"{line.value.name} is {line.before.words} already", line)
    return {**lies[line.value], line.axis: line.after}


def _require(
    lies: Mapping[Value, Lies],
    value: Value,
    needed: Lies,
    at: tuple[str, str],
    in_terms: bool = False,
) -> None:
    """`in_terms`: terms of what must be whole will do."""
    if value not in lies:
        raise LayoutError(f"{value.name} is not there", at)
    for axis, lie in needed.items():
        has = lies[value][axis]
        if has != lie and not (in_terms and has == PARTIAL and lie == WHOLE):
            words = f"{value.name} is {has.words} along {axis}; needs to be {lie.words}"
            raise LayoutError(words, at)
