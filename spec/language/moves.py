"""Axes, what each cuts, and moves: values brought to lie otherwise along one axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spec.devices.collectives import COLLECTIVES, RING
from spec.devices.layouts import WHOLE, Layout, LayoutError, Lie, along
from spec.models.values import FULL, Part, Value, formed

_R, _S, _P = Layout
VOCABULARY = "v"  # the index of words


@dataclass(frozen=True)
class Axis:
    """What one axis of the mesh cuts.

    `weight_indices`: indices; every weight that has one of them is cut along it.
    `stream`: the index along which samples, and what layers hand on, are cut; "": each device has all.
    `brought`: operations whose operands are brought to lie along an index, and which.
    `held`: what is gathered in forward is kept for backward, rather than gathered again.
    `ring`: an index whose slices, where all are needed, go round in turns; `at_once`: they are all
    gathered before the first turn; `in_full`: cotangents are summed in fp32 on their way home, round
    every ring if round one.
    `in_time`: it is such turns.
    `copies_of`: an axis of whose slices its devices have copies. Terms of a slice's cotangent wait for
    the sum along that axis, and are summed over both at once; those of a weight's gradient are left.
    """

    name: str
    weight_indices: tuple[str, ...] = ()
    stream: str = ""
    brought: tuple[tuple[str, str], ...] = ()
    held: bool = False
    ring: str = ""
    in_time: bool = False
    at_once: bool = False
    in_full: bool = False
    copies_of: str = ""

    @property
    def turns(self) -> str:
        """The turns of its ring, along which values lie as along an axis."""
        return turns_of(self.name)

    def leaves(self, value: Value, part: Part) -> bool:
        """Whether it cuts words, and of this value each device has all of them."""
        return VOCABULARY in self.weight_indices and value.plain_name in part.whole

    def home(self, value: Value, part: Part) -> Lie:
        """Along the stream's index, under whichever name the value has it."""
        if self.leaves(value, part):
            return WHOLE
        names = part.names_of(self.stream)
        return next((along(i) for i in value.indices if i in names), WHOLE)

    def rest(self, value: Value, part: Part) -> Lie:
        """Where a weight is, or what a part takes."""
        if value == part.takes:
            return self.home(value, part)
        if self.leaves(value, part):
            return WHOLE
        return next((along(i) for i in value.indices if i in self.weight_indices), WHOLE)


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
            return len(RANKS) if self.before.index else -1
        return RANKS.index(self.collective)

    def __str__(self) -> str:
        return f"{self.makes} = {self.collective} over {self.axis} of {self.value.name}"


RANKS = ("slice", "reduce_scatter", "all_to_all", "all_reduce", "all_gather")  # of moves


def move_of(
    value: Value, axis: str, before: Lie, after: Lie, in_turns: bool = False, by: Value | None = None
) -> Move:
    """The move that brings a value to lie so, and what it makes, by a name of its own."""
    lies = f"{axis} turns:{before}" if in_turns and before.index else f"{axis}:{after}"
    return Move(axis, value, formed(value, lies), before, after, in_turns, by)


def in_full_round(cotangent: Value, line: object, axes: Iterable[Axis]) -> Value:
    """A cotangent of what a line makes: in fp32, where a ring brings that, and rings sum this so."""
    is_round = isinstance(line, Move) and line.in_turns and bool(line.before.index)
    is_full = is_round and any(axis.in_full for axis in axes)
    return replace(cotangent, width=max(FULL, cotangent.width)) if is_full else cotangent


COLLECTIVE = {(c.before, c.after): c.name for c in COLLECTIVES.values()} | {(_R, _S): "slice"}
IN_TURNS = {(c.before, c.after): c.name for c in RING.values()} | {(_P, _R): "accumulate"}
