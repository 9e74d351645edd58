"""M9: what passes while each operation runs, of units that are not alike: unit by unit, slot by slot.

What lives while an operation runs is what `proofs.costs.buffer_lives` finds. Operations between which
something is held by the unit make a round, which each unit goes through, one after the other. What is
there in two rounds, or while a number of all elements is found, is there of all units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from math import prod
from typing import NamedTuple

from proofs.checking.matching_schedules import accepted_schedules, after, along, tied_parameters
from proofs.checking.witnesses import around, meant, operation
from proofs.costs.buffer_lives import lives
from proofs.costs.passing import gathered_whole, view_of_the_step_before, with_moments
from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.memory import (
    MODEL_STATES,
    Sizes,
    Unit,
    Vector,
    gathered_ahead,
    live_results,
    peak,
    total_resting,
    transient_at,
)
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Op, Phase, Schedule, Span
from spec.models.states import BytePolicy, State
from spec.numbers.arithmetic import ceil_div
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

UNITS = (
    Unit((Vector(5, 3), Vector(2))),
    Unit((Vector(13, 4),)),
    Unit((Vector(9), Vector(1, 7))),
    Unit((Vector(4, 2),), times=3),
    Unit((Vector(9), Vector(1, 7))),
)
POLICY = BytePolicy(2, 3, 7)
BESIDE = 5  # elements of gradients that rest whole, more than there are weights
TYPES, COPIED = replace(POLICY, gathered=5, reduced=11, quantised=1), replace(POLICY, copied=True)
ENDS = UNITS[1::2]  # the largest is the first, or the last: its slice is there before anything is ahead
CASES = (
    *((COPIED, 2, UNITS), (TYPES, 2, UNITS[::-1])),
    *((POLICY, 1, ENDS), (POLICY, 1, ENDS[::-1]), (POLICY, 2, (replace(UNITS[1], times=3), UNITS[0]))),
)


class Held(NamedTuple):
    """What an operation makes, by its number; none: what is there when the step begins."""

    buffer: Buffer
    number: int | None


def units_go_through_rounds(k: Kernel) -> None:
    """Raise KernelError unless so much passes while each operation runs, and at the fullest moment."""
    for schedule in dict.fromkeys(_schedules()):
        mesh = {axis: 2 + number for number, axis in enumerate(schedule.axes)}
        run = Run(schedule)
        for policy, ahead, units in CASES:
            psi = sum(map(_elements, _each(units)))
            sizes = Sizes(psi, mesh, policy, None, cut=schedule.cut, units=units, ahead=ahead)
            sizes = replace(sizes, beside={State.GRADIENTS: BESIDE})
            passing = run.moments(sizes)
            here = zip(live_results(schedule), gathered_ahead(schedule), strict=True)
            if [transient_at(*moment, sizes) for moment in here] != passing:
                raise KernelError(f"{k.claim}: {passing} bytes pass, and so many are not counted")
            rests, views = run.rests(sizes, on_host=False), run.views(sizes)
            has = total_resting(schedule, sizes), total_resting(schedule, sizes, host=True)
            if has != (rests + views, run.rests(sizes, on_host=True)):
                raise KernelError(f"{k.claim}: {rests} bytes rest, and {views} of views, not {has}")
            if peak(schedule, sizes) != rests + max(passing):
                raise KernelError(f"{k.claim}: beside {rests} bytes so many are not counted: {passing}")


def slices_are_cells(k: Kernel) -> None:
    """Raise KernelError unless a slice is the cells that a device has, each cut again where it passes.

    What rests whole has so many elements more beside.
    """
    mesh = {"a": 2, "b": 3, "c": 2}
    sets = [axes for count in range(3) for axes in combinations(mesh, count)]
    for cut, axes, unit in product(sets, sets, UNITS):
        apart = prod(mesh[axis] for axis in axes if axis not in cut)
        cells = [*product(*(range(mesh[axis]) for axis in cut))]
        own = [
            cell
            for cell in cells
            if not any(at for at, axis in zip(cell, cut, strict=True) if axis in axes)
        ]
        unit, psi = replace(unit, times=1), 73
        has, sizes = _elements(unit), Sizes(psi, mesh, POLICY, cut=cut, units=(unit,))
        size = sum(ceil_div(vector.rows, len(cells)) * vector.row for vector in unit.vectors)
        is_cut = len(own) < len(cells)
        expected = len(own) * ceil_div(size, apart) if is_cut else ceil_div(has, apart)
        whole = replace(sizes, units=(), beside={State.OPTIMIZER: 5})
        padded = len(own) * ceil_div(psi, len(cells) * apart) if is_cut else ceil_div(psi, apart)
        rests = whole.at_rest(State.OPTIMIZER, axes), whole.at_rest(State.GRADIENTS, axes)
        if (
            rests != (padded + 5 * (not axes), padded)
            or sizes.slice(axes, Span.UNIT, (unit,)) != expected
        ):
            raise KernelError(f"{k.claim}: cut along {cut}, {rests} rest along {axes}")


def _elements(unit: Unit) -> int:
    return sum(vector.rows * vector.row for vector in unit.vectors)


def _each(units: Sequence[Unit]) -> list[Unit]:
    """Units, one by one."""
    return [replace(unit, times=1) for unit in units for _ in range(unit.times)]


def _schedules() -> Iterator[Schedule]:
    """What is accepted, and steps that hold units longer, or in two places."""
    zero2, zero3 = (schedule_of(STRATEGIES[name]) for name in ("zero2", "zero3"))
    yield from (each.schedule for each in accepted_schedules())
    modes = "R S* R S", "S*+O S+O S+O", "M S R S", "M S+O S+O", "R S S+O"
    yield from (schedule_of(on_batch(*each.split())) for each in modes)
    yield from (schedule_of(on_batch(*each.split())).held_whole for each in ("M S+O S+O", "M O R"))
    yield from (schedule_of(replace(STRATEGIES[name], stays=True)) for name in ("zero3", "fsdp-hold"))
    yield schedule_of(replace(STRATEGIES["zero2"], whole=(BATCH,)))
    norm = operation(Kind.SQUARE_NORM, Buffer.FRESH, Buffer.NORM, within=(BATCH,))
    yield from (clipped(meant(zero2, clip=True)), after(zero2, Kind.BACKWARD, lambda _: (norm,)))
    yield from (tied_parameters(zero3), with_moments(tied_parameters(zero2)))
    yield from (view_of_the_step_before(zero3), gathered_whole(zero3))
    yield _within_slices(schedule_of(STRATEGIES["hsdp"]))
    yield _gathered_twice(schedule_of(along(("outer", "inner"), "zero3")))
    offload = schedule_of(STRATEGIES["zero-offload"])
    yield after(offload, Kind.OFFLOAD, lambda op: (replace(norm, within=op.within),))
    yield after(gathered_whole(zero3), Kind.REDUCE_SCATTER, lambda _: (norm,))
    unused = operation(
        Kind.ALL_GATHER, Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW, axes=(BATCH,), span=Span.UNIT
    )
    yield after(zero2, Kind.BACKWARD, lambda _: (norm, unused, norm))
    down, held = operation(Kind.OFFLOAD, Buffer.FRESH), schedule_of(STRATEGIES["fsdp-hold"])
    yield after(held, Kind.REDUCE_SCATTER, lambda _: (down,))
    yield from (_norm_of_all(gathered_whole(zero3)), _view_made_twice(zero3), _two_views(zero2))
    yield _summed_into_another(schedule_of(STRATEGIES["dp"]))
    yield _to_the_host_first(schedule_of(on_batch("R+O", "S", "S")))


def _to_the_host_first(schedule: Schedule) -> Schedule:
    """Slices of what is updated go to the host, too, before they are gathered."""
    down = next(op for op in schedule.finish if op.kind is Kind.OFFLOAD)
    slices = replace(down, within=schedule.axes)
    gathered = [(slices, op) if op.kind is Kind.ALL_GATHER else (op,) for op in schedule.finish]
    return replace(schedule, finish=tuple(op for ops in gathered for op in ops))


def _summed_into_another(schedule: Schedule) -> Schedule:
    """Gradients of all micro-steps are summed where those of one are, and are applied there."""
    sums = operation(
        Kind.ALL_REDUCE, Buffer.GRADIENTS, Buffer.FRESH, axes=schedule.axes, span=Span.UNIT
    )

    def other(op: Op) -> Op:
        if op.kind is Kind.ALL_REDUCE:
            return sums
        return replace(op, source=Buffer.FRESH) if op.kind is Kind.UPDATE else op

    return replace(schedule, finish=tuple(map(other, schedule.finish)))


def _norm_of_all(schedule: Schedule) -> Schedule:
    """What is gathered of fresh gradients, twice, has a norm."""
    norm = operation(Kind.SQUARE_NORM, Buffer.FRESH, Buffer.NORM)
    return after(schedule, Kind.ALL_GATHER, lambda op: (op, norm) * (op.target is Buffer.FRESH))


def _view_made_twice(schedule: Schedule) -> Schedule:
    """A view of the step before, which is sent whole, gathered in its place, and made alike.

    And one of the optimizer's state.
    """
    before = view_of_the_step_before(schedule)
    way, whole = (Buffer.PARAMETERS, Buffer.VIEW), Span.ALL_UNITS
    sent = operation(Kind.BROADCAST, *way, axes=(BATCH,), span=whole)
    alike = operation(Kind.BROADCAST, Buffer.VIEW, axes=(BATCH,))
    *rest, gather = before.finish
    of_state = replace(gather, source=Buffer.OPTIMIZER, into=Buffer.OPTIMIZER_VIEW)
    kept = operation(Kind.KEEP, Buffer.OPTIMIZER_VIEW, Buffer.OPTIMIZER, within=(BATCH,))
    step = replace(before, finish=(*rest, sent, gather, alike, of_state))
    return replace(around(step, first=(kept,)), start=(*step.start, Buffer.OPTIMIZER_VIEW))


def _within_slices(schedule: Schedule) -> Schedule:
    """What is gathered along shards is a slice of each replica's own."""
    gathers = (Kind.ALL_GATHER,)
    ops = (replace(op, within=("replica",)) if op.kind in gathers else op for op in schedule.micro_step)
    return replace(schedule, micro_step=tuple(ops))


def _gathered_twice(schedule: Schedule) -> Schedule:
    """Views are gathered along the inner axis, and then along the other."""

    def gathers(op: Op) -> tuple[Op, ...]:
        if op.kind is not Kind.ALL_GATHER:
            return (op,)
        first = replace(op, axes=op.axes[1:], within=op.axes[:1])
        return first, replace(op, source=Buffer.VIEW, axes=op.axes[:1])

    ops = (each for op in schedule.micro_step for each in gathers(op))
    return replace(schedule, micro_step=tuple(ops))


def _two_views(schedule: Schedule) -> Schedule:
    """Before the update parameters are gathered beside the optimizer's state, unit by unit."""
    ways = (Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW), (Buffer.PARAMETERS, Buffer.VIEW)
    gathers = (operation(Kind.ALL_GATHER, *way, axes=(BATCH,), span=Span.UNIT) for way in ways)
    kept = operation(Kind.KEEP, Buffer.OPTIMIZER_VIEW, Buffer.OPTIMIZER, within=(BATCH,))
    return around(schedule, before=(*gathers, kept))


class Run:
    """A step on one device, in rounds."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.ops = schedule, [op for _, op in schedule.flat(1)]
        self.held = [*self._held()]
        in_turns = (held for here in self.held for held in here if held.buffer not in schedule.start)
        self.by_unit = {held for held in in_turns if self._maker(held).span is Span.UNIT}
        self.rounds = [*self._rounds()]
        while across := self.by_unit & self._in_two_rounds():
            self.by_unit -= across
            self.rounds = [*self._rounds()]

    def _held(self) -> Iterator[set[Held]]:
        """While each operation runs, what lives; and what stays until it is released."""
        made: dict[Buffer, int | None] = dict.fromkeys(self.schedule.start)
        staying = set[Buffer]()
        alive_before = {*made}
        for number, (op, alive) in enumerate(zip(self.ops, lives(self.schedule), strict=True)):
            before = {Held(op.source, made[op.source])} if op.source in alive_before else set[Held]()
            if op.takes_room:
                made[op.target] = number
            if op.kind is Kind.BACKWARD and self.schedule.training.tied:
                made[Buffer.TIED] = number
            staying |= {op.target} if op.takes_room and self.schedule.stays else set()
            staying |= {buffer for buffer in self.schedule.start if made[buffer] is not None}
            there = {Held(buffer, made[buffer]) for buffer in alive | staying}
            yield there | before if op.takes_room and op.source is op.target else there
            staying -= {op.target} if op.kind is Kind.RELEASE else set()
            alive_before = alive & made.keys()

    def _maker(self, held: Held) -> Op:
        made = [op for op in self.ops if op.target is held.buffer and op.takes_room]
        return made[-1] if held.number is None else self.ops[held.number]

    def _rounds(self) -> Iterator[range]:
        start = 0
        for number, (op, following) in enumerate(pairwise(self.ops), 1):
            both = self.held[number - 1] & self.held[number] & self.by_unit
            if not both or op.of_a_number or following.of_a_number:
                yield range(start, number)
                start = number
        yield range(start, len(self.ops))

    def _in_two_rounds(self) -> set[Held]:
        there = [{held for number in each for held in self.held[number]} for each in self.rounds]
        return {held for one, other in pairwise(there) for held in one & other}

    def views(self, sizes: Sizes) -> int:
        """Bytes of the views that are there when the step begins."""
        units = _each(sizes.units)
        return sum(self._room(Held(buffer, None), sizes, units) for buffer in self.schedule.start)

    def rests(self, sizes: Sizes, on_host: bool) -> int:
        """Bytes of states between steps."""
        total, units = 0, _each(sizes.units)
        for state, width in zip(MODEL_STATES, (POLICY.w, POLICY.k, POLICY.g), strict=True):
            rest = self.schedule.rest(state)
            if rest.stored and rest.host is on_host:
                total += width * sum(_slots(each, sizes, rest.sharded, False) for each in units)
                is_more = state is State.GRADIENTS and not rest.sharded
                total += width * BESIDE * is_more
        return total

    def moments(self, sizes: Sizes) -> list[int]:
        """While each operation runs, bytes of what passes in the turn for which it is most."""
        found, units = list[int](), _each(sizes.units)
        for numbers in self.rounds:
            there, backward = set[Held](), any(self.ops[n].phase is Phase.BACKWARD for n in numbers)
            for number in numbers:
                there |= self.held[number]
                whole = sum(self._room(held, sizes, units) for held in there - self.by_unit)
                order = units[:: -1 if backward else 1]
                turns = (self._in_turn(there, number, sizes, of) for of in _turns(order, sizes.ahead))
                found.append(whole + max(turns))
        return found

    def _in_turn(self, there: set[Held], number: int, sizes: Sizes, units: Sequence[Unit]) -> int:
        """Bytes of what is held by the unit in the first one's turn, with the last views of others."""
        views = {h for h in there & self.by_unit if h.buffer is Buffer.VIEW}
        gathered = {held for held in views if self._maker(held).kind is Kind.ALL_GATHER}
        total = self._room(max(gathered), sizes, units[1:]) if gathered else 0
        for held in self.held[number] & self.by_unit:
            own = units[-1] if held in views - gathered else units[0]  # the last is to be gathered
            total += self._room(held, sizes, [own])
        return total

    def _room(self, held: Held, sizes: Sizes, units: Sequence[Unit]) -> int:
        """Bytes of what an operation makes of some units."""
        op, policy = self._maker(held), sizes.policy
        gathers = op.kind is Kind.ALL_GATHER
        own = sum(_slots(unit, sizes, op.within, gathers) for unit in units)
        if held.buffer is Buffer.OPTIMIZER_VIEW:
            return own * policy.k
        if held.buffer is Buffer.VIEW:
            return own * (policy.computed + (policy.quantised or 0) * gathers)
        copies = sum(_slots(unit, sizes, op.within, policy.copied) for unit in units)
        return own * policy.fresh + copies * policy.bytes_copied


def _turns(order: Sequence[Unit], ahead: int) -> Iterator[Sequence[Unit]]:
    """Each unit in its turn, and those whose views are there; at the first turn fewer are, too."""
    yield from (order[turn : turn + 1 + ahead] for turn in range(len(order)))
    yield from (order[: 1 + few] for few in range(ahead))


def _slots(unit: Unit, sizes: Sizes, within: Sequence[str], padded: bool) -> int:
    """How many slots a device has of a unit's slice along some axes; of what is whole, elements."""
    if not within and not padded:
        return _elements(unit)
    cells = [*product(*(range(sizes.mesh[axis]) for axis in sizes.cut))]
    places = [sizes.cut.index(axis) for axis in within]
    own = [cell for cell in cells if not any(cell[place] for place in places)]
    return len(own) * sum(ceil_div(vector.rows, len(cells)) * vector.row for vector in unit.vectors)
