"""Memory of a schedule: what rests, what it takes for a while, the peak, and what the host holds.

Bytes per device. Activations are not counted here: their size is the model's, not Psi's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial

from spec.costs.owners import Owners
from spec.devices.mesh import Mesh, group_size, numbers_at
from spec.language.schedule import (
    HOST_TRANSFERS,
    PASSING,
    REDUCTIONS,
    SCALARS,
    Buffer,
    Kind,
    Op,
    Phase,
    Schedule,
    Span,
)
from spec.models.states import BytePolicy, State
from spec.numbers.arithmetic import EXACT, Arithmetic, Number

RoomOf = Callable[[Op], Number]
SCALAR_BYTES = 4  # of a norm, or a count of tokens
MODEL_STATES = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)


@dataclass(frozen=True)
class Vector:
    """What is cut by rows that are never cut: so many, of so many elements. `owner`: if it is whole,
    the number of the device that has it.
    """

    rows: Number
    row: Number = 1
    owner: int | None = None


@dataclass(frozen=True)
class Unit:
    """What is gathered or reduced at a time: vectors, each padded to as many rows on each device."""

    vectors: tuple[Vector, ...]
    times: int = 1  # as many units, one after the other, are alike


def _most_owned(unit: Unit, slice_: Number | None) -> Number:
    """Elements of units that a device owns, at most: whole vectors, or what a slice has room for."""
    held = Counter[int | None]()
    for vector in unit.vectors:
        held[vector.owner] += vector.rows * vector.row
    return unit.times * (max(held.values()) if slice_ is None else min(held.total(), slice_))


@dataclass(frozen=True)
class Turn:
    """A unit's turn. `after`, `before`: the units next to it, the nearest first, whose views are there.

    Forward goes from the first unit to the last, backward from the last to the first.
    """

    unit: Unit
    after: tuple[Unit, ...] = ()
    before: tuple[Unit, ...] = ()

    def ahead(self, op: Op) -> tuple[Unit, ...]:
        """The units whose views are there when an operation's phase has this one's turn."""
        return self.before if op.phase is Phase.BACKWARD else self.after


@dataclass(frozen=True)
class Sizes:
    """The numbers a cost depends on: Psi parameters in units of `unit`, a mesh, bytes per element.

    A smaller unit, where `unit` does not divide Psi, has its turn before the others: a full one passes
    when all that is held whole is there.
    `cut`: the axes along which anything is sliced. Each unit is cut in equal, padded cells along all
    of them, so that who owns an element along one axis does not depend on the others.
    `units`: if they are not all of `unit`, in the order in which forward uses them; `ahead`: as many
    are gathered before their turn. `turn`: the one that passes now.
    `unpadded`: states of which a device has its own rows alone, if there are `units`: at `device`, or
    else of the first one. `beside`: elements of states that rest whole, more than Psi; or fewer.
    `owners`: if slices are whole weights, each of its owner, or of all units as one vector.
    """

    psi: Number
    mesh: Mesh
    policy: BytePolicy
    unit: Number | None = None  # default: one unit of Psi
    arithmetic: Arithmetic = EXACT
    cut: tuple[str, ...] = ()
    units: tuple[Unit, ...] = ()
    ahead: int = 0
    turn: Turn | None = None
    unpadded: frozenset[State] = frozenset()
    device: Mapping[str, int] = field(default_factory=dict)
    owners: Owners | None = None
    beside: Mapping[State, Number] = field(default_factory=dict)

    def at_rest(self, state: State, axes: tuple[str, ...]) -> Number:
        """Elements that a device keeps of a state that is sharded over `axes`."""
        if not axes and state in self.beside:
            return self.psi + self.beside[state]
        if self.owners and self.owners.has_slices_along(axes):
            return self.owners.slice_elements(axes)
        if not self.units or state not in self.unpadded or not axes:
            return self.slice(axes)
        vectors = ((vector, unit.times) for unit in self.units for vector in unit.vectors)
        return sum(times * self._own_rows(v.rows, axes) * v.row for v, times in vectors)

    def _own_rows(self, rows: Number, axes: tuple[str, ...]) -> Number:
        """Rows of a device's own cells, which are as many as there are devices along other axes."""
        cut = [axis for axis in self.mesh if axis in self.cut]
        most = self.arithmetic.shard(rows, rows, group_size(self.mesh, cut))
        places = (self.device.get(axis, 0) if axis in axes else None for axis in cut)
        own = numbers_at(tuple(self.mesh[axis] for axis in cut), tuple(places))
        full, left = divmod(rows, most)  # cells that are full, and the rows of the one after them
        return most * bisect_left(own, full) + left * (full in own)

    @cached_property
    def by_turn(self) -> tuple[Sizes, ...]:
        """With each unit's turn, where they are not all alike. At the ends there are fewer units ahead:
        that is so, too, while the first of them are gathered.
        """
        if not self.units:
            return (self,)
        beside = self.ahead
        every = [
            replace(unit, times=1) for unit in self.units for _ in range(min(unit.times, beside + 1))
        ]
        found = [
            Turn(unit, tuple(every[i + 1 : i + 1 + beside]), tuple(every[max(i - beside, 0) : i][::-1]))
            for i, unit in enumerate(every)
        ]
        first, last = found[0], found[-1]
        for few in range(beside):
            found.append(replace(first, after=first.after[:few]))
            found.append(replace(last, before=last.before[:few]))
        return tuple(replace(self, turn=turn) for turn in dict.fromkeys(found))

    def slice(
        self, axes: tuple[str, ...], span: Span = Span.ALL_UNITS, passing: tuple[Unit, ...] = ()
    ) -> Number:
        """Elements each device has of a whole state, or of one unit, that is sharded over `axes`.

        Of units of several sizes, of those that are `passing`.
        """
        if self.owners and self.owners.has_slices_along(axes):
            cells, _ = self._cells(axes)
            if span is not Span.UNIT or not passing:
                return min(self.owners.slice_elements(axes), cells * self.psi)
            return cells * sum(_most_owned(unit, self.owners.slice) for unit in passing)
        if self.units:
            return self._slice_of_units(axes, passing if span is Span.UNIT else self.units)
        unit = self.psi if self.unit is None else self.unit
        elements = unit if span is Span.UNIT else self.psi
        if not axes:
            return elements
        others, cells = self._cells(axes)
        return others * self.arithmetic.shard(elements, unit, cells)

    def copied(self, within: tuple[str, ...], span: Span, passing: tuple[Unit, ...]) -> Number:
        """Bytes of the copy in which gradients of a slice are summed, while they are there.

        One that is made whatever the types (`policy.copied`) has room for the padding of all slices;
        owners' have none.
        """
        axes = () if within or self.owners or not self.policy.copied else self.cut
        slices = group_size(self.mesh, axes)
        return slices * self.slice(within + axes, span, passing) * self.policy.bytes_copied

    def _cells(self, axes: tuple[str, ...]) -> tuple[Number, Number]:
        """Cells that a device has of what is sharded over `axes`, and in all; none of what is whole."""
        is_whole = not {*axes} & {*self.cut}
        others = () if is_whole else tuple(a for a in self.cut if a not in axes)
        return group_size(self.mesh, others), group_size(self.mesh, axes + others)

    def _slice_of_units(self, axes: tuple[str, ...], units: tuple[Unit, ...]) -> Number:
        """By rows along the axes that slices lie along; what only passes along others, by elements."""
        others, cells = self._cells(tuple(axis for axis in axes if axis in self.cut))
        passing = group_size(self.mesh, [axis for axis in axes if axis not in self.cut])
        shard = self.arithmetic.shard

        def of(unit: Unit) -> Number:
            if not axes:
                return sum(vector.rows * vector.row for vector in unit.vectors)
            of_vectors = (shard(v.rows, v.rows, cells) * v.row for v in unit.vectors)
            cell = sum(of_vectors)
            return others * (cell if passing == 1 else shard(cell, cell, passing))

        return sum(count * unit.times * of(unit) for unit, count in Counter(units).items())

    def is_empty(self, state: State) -> bool:
        """Whether the state has no elements: that of an optimizer without state."""
        width = self.policy.of(state)
        return isinstance(width, int | Fraction) and width == 0

    def width(self, op: Op) -> Number:
        """Bytes per element of what `op` writes; 0 for what is not counted in parameters."""
        policy = self.policy
        if op.target is Buffer.VIEW:  # what is quantised is there before what is made of it
            has_both = policy.quantised is not None and op.kind is Kind.ALL_GATHER
            return policy.computed + policy.bytes_sent if has_both else policy.computed
        if op.target in (Buffer.FRESH, Buffer.TIED):
            return policy.fresh
        return self.width_sent(op)

    def width_sent(self, op: Op) -> Number:
        """Bytes per element of what `op` moves."""
        if op.target in SCALARS:
            return SCALAR_BYTES
        if op.target is Buffer.VIEW and op.kind not in HOST_TRANSFERS:  # which pass on what rests
            return self.policy.bytes_sent if op.kind is Kind.ALL_GATHER else self.policy.computed
        if op.state is State.GRADIENTS and op.kind in REDUCTIONS:
            has = self.policy.g if op.target is Buffer.GRADIENTS else self.policy.fresh
            return self.policy.summed_in(op.axes, has)
        return self.policy.of(op.state) if op.state in MODEL_STATES else 0


def resting(schedule: Schedule, state: State, sizes: Sizes, host: bool = False) -> Number:
    """Bytes of `state` that a device (or its part of the host) keeps between steps."""
    rest = schedule.rest(state)
    views = [] if host else [op for op in at_the_start(schedule) if op.state is state]
    viewed = 0 * sizes.psi + sum(room(op, sizes) for op in views)
    if not rest.stored or rest.host is not host:
        return viewed
    return viewed + sizes.at_rest(state, rest.sharded) * sizes.policy.of(state)


def total_resting(schedule: Schedule, sizes: Sizes, host: bool = False) -> Number:
    """Bytes of all model states between steps."""
    parameters, optimizer, gradients = (resting(schedule, state, sizes, host) for state in MODEL_STATES)
    return parameters + optimizer + gradients


def room(op: Op, sizes: Sizes) -> Number:
    """Bytes an operation's result takes for itself, until its last use."""
    units = (sizes.turn.unit,) if sizes.turn else ()
    if sizes.turn and op.target is Buffer.VIEW and not _is_gathered(op):  # to be gathered: the last one
        units = (*units, *sizes.turn.ahead(op))[-1:]
    return _room_of(op, sizes, units)


def room_ahead(op: Op | None, sizes: Sizes) -> Number:
    """Bytes of the views that an operation has gathered before their turn, if one has."""
    units = sizes.turn.ahead(op) if op and sizes.turn else ()
    return _room_of(op, sizes, units) if op and units else 0


def _room_of(op: Op, sizes: Sizes, units: tuple[Unit, ...]) -> Number:
    devices = group_size(sizes.mesh, op.axes) if op.kind is Kind.ALL_GATHER else 1
    axes = op.within + op.axes if op.kind is Kind.ALL_GATHER else op.within
    own = devices * sizes.slice(axes, op.span, units) * sizes.width(op)
    is_copied = op.target in (Buffer.FRESH, Buffer.TIED) and sizes.policy.bytes_copied != 0
    return own + sizes.copied(op.within, op.span, units) if is_copied else own


def _is_gathered(op: Op) -> bool:
    """Whether it makes a view that may be there before its turn."""
    return op.kind is Kind.ALL_GATHER and op.target is Buffer.VIEW


def at_the_start(schedule: Schedule) -> list[Op]:
    """What takes room when a step begins, as the one before left it, and does not rest."""
    kept = (Op(Kind.KEEP, Phase.FORWARD, Buffer.PARAMETERS, buffer) for buffer in schedule.start)
    views = {op.target: op for op in kept}
    views |= {op.target: op for op in schedule.ops if op.target in views and op.takes_room}
    return [replace(view, span=Span.ALL_UNITS) for view in views.values()]


@lru_cache(maxsize=4096)
def comings_and_goings(schedule: Schedule) -> tuple[tuple[tuple[Op, ...], tuple[Op, ...]], ...]:
    """For each operation of a step, the results that take room from then on, and those that go after.

    A result goes when it is used for the last time, replaced or offloaded. While a buffer is held unit
    by unit, units take turns; what is held whole goes when all have had theirs.
    """
    steps = [(op, done) for (_, op), done in zip(schedule.flat(1), done_with(schedule), strict=True)]
    live: dict[Buffer, Op] = {result.target: result for result in at_the_start(schedule)}
    by_unit: set[Buffer] = set()
    waiting: list[Op] = []
    found = []
    for i, (op, done) in enumerate(steps):
        results = _results(op, schedule)
        replaced = {result.target for result in results}
        offloaded = {op.target} if op.kind is Kind.OFFLOAD else set()
        come = tuple(_as_held(result, steps[i:]) for result in results)
        go = [live.pop(buffer) for buffer in replaced | offloaded if buffer in live]
        live |= {result.target: result for result in come}
        go += [live.pop(buffer) for buffer in done if buffer in live]
        in_turn = {result.target for result in come if result.span is Span.UNIT}
        by_unit = (by_unit - replaced | in_turn) - done - offloaded
        waiting += [result for result in go if result.span is Span.ALL_UNITS]
        go = [result for result in go if result.span is Span.UNIT]
        if not by_unit:
            go, waiting = go + waiting, []
        found.append((come, tuple(go)))
    return tuple(found)


@lru_cache(maxsize=4096)
def done_with(schedule: Schedule) -> tuple[frozenset[Buffer], ...]:
    """After each operation of a step, the passing buffers of which none that follows uses anything.

    Steps follow one another. What is released, or made anew, is not what was there before.
    """
    ops = [op for _, op in schedule.flat(1)]
    used: dict[Buffer, set[str]] = {}  # by those that follow, and the axes along whose slices
    found = []
    for op in reversed(ops + ops):
        gone = {op.target} if op.kind is Kind.RELEASE else set()
        found.append(frozenset(PASSING) - used.keys() | gone)
        made = {op.target} if op.takes_room else set()
        made |= {Buffer.TIED} if op.kind is Kind.BACKWARD and schedule.training.tied else set()
        for buffer in made & used.keys():
            is_all = {*op.within} <= used[buffer] and not (op.shift and op.within)
            gone |= {buffer} if is_all else set()
        used = {buffer: slices for buffer, slices in used.items() if buffer not in gone}
        stay = {op.target: set[str]()} if schedule.stays and op.kind is Kind.RELEASE else {}
        for buffer, slices in (_uses(op) | stay).items():
            used[buffer] = used.get(buffer, slices) & slices
    return tuple(found[::-1][: len(ops)])


def _uses(op: Op) -> dict[Buffer, set[str]]:
    """The buffers that an operation reads, or writes in place, and the axes along whose slices."""
    if op.kind is Kind.RELEASE:
        return {}
    reads_all = op.shift or op.kind is Kind.BACKWARD
    slices = set() if reads_all else {*op.within}
    found = {} if op.takes_room else {op.target: slices}
    if op.kind is not Kind.ZERO:
        own = slices | {*op.axes} if op.kind is Kind.ALL_GATHER and not reads_all else slices
        found[op.source] = own
    return found


def _results(op: Op, schedule: Schedule) -> list[Op]:
    """What takes room: an operation's result, and for backward the tied gradients beside it."""
    found = [op] if op.span is not Span.NONE else []
    if op.kind is Kind.BACKWARD and schedule.training.tied:
        found.append(Op(Kind.KEEP, op.phase, Buffer.FRESH, Buffer.TIED, span=op.span))
    return found


def _as_held(result: Op, steps: list[tuple[Op, frozenset[Buffer]]]) -> Op:
    """A result as it is held: whole, if a number of the whole gradient is needed while it is there.

    `steps`: from the operation that makes it on, each with the buffers that go after it.
    """
    buffer = result.target
    for i, (op, done) in enumerate(steps if result.span is Span.UNIT else []):
        if op.of_a_number:
            break
        ends = op.kind is Kind.OFFLOAD or op.span is not Span.NONE
        if buffer in done or (i and op.target is buffer and ends):
            return result
    return replace(result, span=Span.ALL_UNITS)


@lru_cache(maxsize=4096)
def live_results(schedule: Schedule) -> tuple[tuple[Op, ...], ...]:
    """While each operation runs, the results that take room of their own."""
    live = at_the_start(schedule)
    found = []
    for come, go in comings_and_goings(schedule):
        live += come
        found.append(tuple(live))
        for result in go:
            live.remove(result)
    return tuple(found)


@lru_cache(maxsize=4096)
def gathered_ahead(schedule: Schedule) -> tuple[Op | None, ...]:
    """While each operation runs, the one that has gathered views for the turns that follow, if one has.

    They are there until units no longer take turns.
    """
    live, gather, found = list[Op](), None, list[Op | None]()
    for come, go in comings_and_goings(schedule):
        in_turns = [result for result in come if result.span is Span.UNIT]
        live += in_turns
        gather = next(filter(_is_gathered, in_turns), gather)
        found.append(gather)
        live = [result for result in live if result not in go]
        gather = gather if live else None
    return tuple(found)


def live_bytes(moment: tuple[Op, ...], room_of: RoomOf) -> Number:
    """Bytes of the buffers that are live at one moment and do not rest."""
    return sum(room_of(op) for op in moment)


def transient_at(moment: tuple[Op, ...], gather: Op | None, sizes: Sizes) -> Number:
    """Bytes of what is live at one moment, in the fullest turn, with views gathered before theirs."""
    turns = [
        live_bytes(moment, partial(room, sizes=each)) + room_ahead(gather, each)
        for each in sizes.by_turn
    ]
    return sizes.arithmetic.maximum(*turns)


def transient(schedule: Schedule, sizes: Sizes) -> Number:
    """Bytes of the largest set of buffers that are live together and do not rest."""
    distinct = dict.fromkeys(zip(live_results(schedule), gathered_ahead(schedule), strict=True))
    moments = [transient_at(moment, gather, sizes) for moment, gather in distinct if moment]
    return sizes.arithmetic.maximum(0 * sizes.psi, *moments)


def ledger(schedule: Schedule, resting_: Number, room_of: RoomOf) -> list[Number]:
    """Bytes on the device while each operation runs, and at the end of the step."""
    balance = resting_
    entries = []
    for come, go in comings_and_goings(schedule):
        for result in come:
            balance = balance + room_of(result)
        entries.append(balance)
        for result in go:
            balance = balance - room_of(result)
    return [*entries, balance]


def peak(schedule: Schedule, sizes: Sizes) -> Number:
    """Bytes at the fullest moment of a step.

    Of `units` that are not alike, an upper bound: what is held whole counts as if all of it were
    there in each unit's turn. It is so in the last one.
    """
    before = total_resting(schedule, sizes)
    found = [before]
    for each in sizes.by_turn:
        *entries, _ = ledger(schedule, before, partial(room, sizes=each))
        beside = (room_ahead(gather, each) for gather in gathered_ahead(schedule))
        found += [entry + more for entry, more in zip(entries, beside, strict=True)]
    return sizes.arithmetic.maximum(*found)
