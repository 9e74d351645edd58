"""Programs: a model's operations on several devices, with the moves between them, and their types.

The type of a value is how it lies along each axis. A program is right if every operation does on
slices and terms what it does on whole values, which the layout rule says, and if in the end every
weight has its gradient where the weight is: whole, or in terms, which are summed where its states are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from spec.devices.collectives import COLLECTIVES, RING
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
from spec.language.turns import check_loops, in_turns, is_in_turns, loops
from spec.models.values import Does, Operation, Part, Role, Value, formed

R, S, P = Layout
VOCABULARY = "v"  # the index of words


@dataclass(frozen=True)
class Axis:
    """What one axis of the mesh cuts.

    `weights`: indices; every weight that has one of them is cut along it.
    `stream`: the index along which samples, and what layers hand on, are cut; "": each device has all.
    `brought`: operations whose operands are brought to lie along an index, and which.
    `held`: what is gathered in forward is kept for backward, rather than gathered again.
    `ring`: an index whose slices, where all are needed, go round in turns. `in_time`: it is such turns.
    """

    name: str
    weights: tuple[str, ...] = ()
    stream: str = ""
    brought: tuple[tuple[str, str], ...] = ()
    held: bool = False
    ring: str = ""
    in_time: bool = False

    @property
    def turns(self) -> str:
        """The turns of its ring, along which values lie as along an axis."""
        return turns_of(self.name)

    def home(self, value: Value, part: Part) -> Lie:
        """Along the stream's index, under whichever name the value has it."""
        if value.plain_name in part.whole and VOCABULARY in self.weights:
            return WHOLE
        names = part.names_of(self.stream)
        return next((along(i) for i in value.indices if i in names), WHOLE)

    def rest(self, value: Value, part: Part) -> Lie:
        """Where a weight is, or what a part takes."""
        if value.role is not Role.WEIGHT:
            return self.home(value, part)
        return next((along(i) for i in value.indices if i in self.weights), WHOLE)


def turns_of(axis: str) -> str:
    """The name of the turns of a ring over an axis."""
    return f"{axis} turns"


def with_turns(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes, and the turns of their rings: all along which values lie."""
    return *axes, *(Axis(axis.turns, in_time=True) for axis in axes if axis.ring)


@dataclass(frozen=True)
class Move:
    """A value, brought to lie otherwise along one axis.

    `in_turns`: round a ring, slice by slice, or along its turns. `by`: the log-sum-exp of each turn's
    keys, by which partial results merge; its own merge is by itself.
    """

    axis: str
    value: Value
    makes: Value
    before: Lie
    after: Lie
    in_turns: bool = False
    by: Value | None = None

    @property
    def reads(self) -> tuple[Value, ...]:
        """What it moves."""
        return (self.value,) if self.by in (None, self.value) else (self.value, self.by)

    @property
    def collective(self) -> str:
        """Its name; "slice" where each device only forgets what is not its own."""
        kinds, known = (
            (self.before.layout, self.after.layout),
            IN_TURNS if self.in_turns else COLLECTIVE,
        )
        if kinds not in known:
            raise LayoutError(f"nothing brings what is {self.before.words} to be {self.after.words}")
        return "merge" if self.by else known[kinds]

    @property
    def turns(self) -> str:
        """The turns of its ring, or over which it sums; "": of none."""
        return (
            turns_of(self.axis) if self.before.index or self.after.index else self.axis
        ) * self.in_turns

    @property
    def is_sent(self) -> bool:
        """Whether devices send anything."""
        return self.collective in COLLECTIVES or self.collective in RING

    @property
    def rank(self) -> int:
        """What leaves less comes first: turns end before anything, and begin after everything."""
        if self.in_turns:
            return len(ORDER) if self.after == WHOLE and self.before.index else -1
        return ORDER.index(self.collective)

    def __str__(self) -> str:
        return f"{self.makes} = {self.collective} over {self.axis} of {self.value.name}"


ORDER = ("slice", "reduce_scatter", "all_to_all", "all_reduce", "all_gather")  # of moves


def move_of(
    value: Value, axis: str, before: Lie, after: Lie, in_turns: bool = False, by: Value | None = None
) -> Move:
    """The move that brings a value to lie so, and what it makes, by a name of its own."""
    lies = f"{axis} turns:{before}" if in_turns and before.index else f"{axis}:{after}"
    return Move(axis, value, formed(value, lies), before, after, in_turns, by)


COLLECTIVE = {(c.before, c.after): c.name for c in COLLECTIVES.values()} | {(R, S): "slice"}
IN_TURNS = {(c.before, c.after): c.name for c in RING.values()} | {(P, R): "accumulate"}
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
        return tuple(value for value in self.kept if value.plain_name not in self.part.merged)

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
        by = new if line.by == old else line.by
        return replace(line, value=new if line.value == old else line.value, by=by)
    return replace(line, reads=tuple(new if value == old else value for value in line.reads))


def of_cotangent(lies: Lies) -> Lies:
    """How a cotangent must lie: as its value does; that of a partial sum is the same for each term.

    `layouts.cotangent` says how it comes out, before devices have summed what their copies add to it.
    """
    return {axis: WHOLE if lie.layout is P else lie.plain for axis, lie in lies.items()}


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
