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
from spec.language.turns import is_in_turns, layout_in_turns, loops
from spec.models.values import Does, Operation, Part, Role, Value, cotangent_of

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
    arrays: tuple[tuple[Value, Value], ...] = ()  # of views that are kept, what lies in their arrays

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
        return loops(lines, self.lies, self.turns[: self.turns.index(turns) + 1])

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

    @cached_property
    def overwriting(self) -> frozenset[Value]:
        """Cotangents that take the place of what they are of: of what is kept, and a kernel overwrites.

        A kernel makes values of no width. (Liger Kernel, ops/cross_entropy.py; Megatron-LM,
        core/fusions/fused_cross_entropy.py)
        """
        read = {value for line in self.forward if not line.makes.width for value in line.reads}
        places = [
            cotangent_of(value)
            for value in self.kept
            if value.plain_name in self.part.overwritten and value in read
        ]
        return frozenset(
            value
            for value in self.lies
            for place in places
            if value.plain_name == place.plain_name and value.name.startswith(place.name)
        )

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
        """What the second part of backward reads and does not make: it is held from the first on.

        Of constants those that are kept.
        """
        _, second = self.parts_of_backward
        made = {line.makes for line in second}
        read = dict.fromkeys(value for line in second for value in line.reads if value not in made)
        return tuple(v for v in read if v.role is not Role.CONSTANT or v in self.kept)

    @property
    def stored_between(self) -> tuple[Value, ...]:
        """That, in room of its own, and the arrays of its views."""
        arrays = (value for view, value in self.arrays if view in self.held_between)
        return self.in_own_room(tuple(dict.fromkeys((*self.held_between, *arrays))))

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        return tuple(line for line in self.lines if isinstance(line, Move))

    def is_at_once(self, move: Move) -> bool:
        """Whether a ring's slices are all gathered before its first turn, and none arrives later."""
        gathers = move.in_turns and bool(move.before.index)
        return gathers and any(axis.at_once for axis in self.axes if axis.name == move.axis)

    def sent_by(self, move: Move) -> str:
        """The name of the collective that sends what a move needs."""
        return COLLECTIVE[_S, _R] if self.is_at_once(move) else move.collective

    def axes_of(self, move: Move) -> tuple[str, ...]:
        """The axes that a move is over: its own, but for a sum that is one of two."""
        return self.joined.get(move, (move.axis,))

    @cached_property
    def joined(self) -> dict[Move, tuple[str, ...]]:
        """Sums over an axis, and then within it: they are one over both, and the first sends nothing.

        (Reducing along two axes is reducing over their product: claim K2.)
        """
        found: dict[Move, tuple[str, ...]] = {}
        outside = {axis.name: axis.copies_of for axis in self.axes if axis.copies_of}
        sums = [move for move in self.moves if outside and move.collective == COLLECTIVE[_P, _R]]
        for after in sums:
            for move in sums:
                nested = move.axis == outside.get(after.axis)
                if nested and {line for line in self.lines if move.makes in line.reads} == {after}:
                    found[move], found[after] = (), (move.axis, after.axis)
        return found

    def summed_over(self, weight: Value) -> tuple[str, ...]:
        """The axes along which a weight's gradient comes out partial: it is to be summed over them."""
        lies = self.lies[self.gradients[weight]]
        return tuple(axis.name for axis in self.axes if lies[axis.name] == PARTIAL)

    def whole_over(self, weight: Value) -> tuple[str, ...]:
        """The axes along which each device has all of a weight's gradient, summed."""
        lies = self.lies[self.gradients[weight]]
        return tuple(axis.name for axis in self.axes if lies[axis.name] == WHOLE)

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
    if old not in line.reads:
        return line
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
    found = layout_in_turns(operation, *lies) if axis.in_time else None
    if found:
        return found
    if does is Does.CONTRACT:
        return contract(operation.contraction, *lies)
    if does is Does.ADD:
        return linear(*lies)
    if does is Does.RENAME:
        return _require_index(operation, _renamed(operation, axis, first))
    if not operation.backward:
        return normalised(linear(*lies), operation.over)
    # a cotangent times a derivative: linear in the one, not in what the other is computed from
    if along(operation.over) in lies:
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
