"""M9: what passes while each operation runs, of units that are not alike: unit by unit, slot by slot.

What lives while an operation runs is what `proofs.costs.buffer_lives` finds. Operations between which
something is held by the unit make a round, which each unit goes through, one after the other. What is
there in two rounds, or while a number of all elements is found, is there of all units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import NamedTuple

from proofs.checking.matching_schedules import accepted_schedules, tied_parameters
from proofs.checking.witnesses import meant
from proofs.costs.buffer_lives import lives
from proofs.costs.passing import gathered_whole, view_of_the_step_before, with_moments
from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.memory import (
    Sizes,
    Unit,
    Vector,
    gathered_ahead,
    live_bytes,
    live_results,
    peak,
    room,
    room_ahead,
    total_resting,
)
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Op, Phase, Schedule, Span
from spec.models.states import BytePolicy
from spec.numbers.arithmetic import ceil_div
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES

UNITS = (
    Unit((Vector(5, 3), Vector(2))),
    Unit((Vector(4, 2),)),
    Unit((Vector(9), Vector(1, 7))),
    Unit((Vector(4, 2),)),
    Unit((Vector(3, 4),)),
)
PSI = sum(vector.rows * vector.row for unit in UNITS for vector in unit.vectors)
POLICY = BytePolicy(2, 3, 7)
TYPES, COPIED = replace(POLICY, gathered=5, reduced=11, quantised=1), replace(POLICY, copied=True)


class Held(NamedTuple):
    """What an operation makes, by its number; none: what is there when the step begins."""

    buffer: Buffer
    number: int | None


def units_go_through_rounds(k: Kernel) -> None:
    """Raise KernelError unless so much passes while each operation runs, and at the fullest moment."""
    for schedule in dict.fromkeys(_schedules()):
        mesh = {axis: 2 + number for number, axis in enumerate(schedule.axes)}
        run = Run(schedule)
        for policy, ahead in ((POLICY, 2), (TYPES, 1), (COPIED, 0)):
            sizes = Sizes(PSI, mesh, policy, None, cut=schedule.cut, units=UNITS, ahead=ahead)
            passing = run.moments(sizes)
            if [*_there(schedule, sizes)] != passing:
                raise KernelError(f"{k.claim}: {passing} bytes pass, and so many are not counted")
            rests = total_resting(schedule, sizes)
            if peak(schedule, sizes) != rests - run.views(sizes) + max(passing):
                raise KernelError(f"{k.claim}: beside {rests} bytes so many are not counted: {passing}")


def _there(schedule: Schedule, sizes: Sizes) -> Iterator[int]:
    turns = sizes.by_turn
    for moment, gather in zip(live_results(schedule), gathered_ahead(schedule), strict=True):
        rooms = (live_bytes(moment, partial(room, sizes=each)) for each in turns if moment)
        beside = (room_ahead(gather, each) for each in turns)
        yield max(map(sum, zip(rooms, beside, strict=False)), default=0)


def _schedules() -> Iterator[Schedule]:
    """What is accepted, and steps that hold units longer, or in two places."""
    zero2, zero3 = (schedule_of(STRATEGIES[name]) for name in ("zero2", "zero3"))
    yield from (each.schedule for each in accepted_schedules())
    yield from map(schedule_of, (on_batch("R", "S*", "R", "S"), on_batch("S*+O", "S+O", "S+O")))
    yield from (schedule_of(replace(STRATEGIES[name], stays=True)) for name in ("zero3", "fsdp-hold"))
    yield clipped(meant(zero2, clip=True))
    yield from (tied_parameters(zero3), with_moments(tied_parameters(zero2)))
    yield from (view_of_the_step_before(zero3), gathered_whole(zero3))


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
        for number, (op, alive) in enumerate(zip(self.ops, lives(self.schedule), strict=True)):
            before = {Held(op.source, made[op.source])} if op.source in made else set[Held]()
            if op.takes_room:
                made[op.target] = number
            if op.kind is Kind.BACKWARD and self.schedule.training.tied:
                made[Buffer.TIED] = number
            staying |= {op.target} if op.takes_room and self.schedule.stays else set()
            staying |= {buffer for buffer in self.schedule.start if made[buffer] is not None}
            there = {Held(buffer, made[buffer]) for buffer in alive | staying}
            yield there | before if op.takes_room and op.source is op.target else there
            staying -= {op.target} if op.kind is Kind.RELEASE else set()

    def _maker(self, held: Held) -> Op:
        made = (op for op in self.ops if op.target is held.buffer and op.takes_room)
        return next(made) if held.number is None else self.ops[held.number]

    def _rounds(self) -> Iterator[range]:
        start = 0
        for number, (op, after) in enumerate(pairwise(self.ops), 1):
            both = self.held[number - 1] & self.held[number] & self.by_unit
            if not both or op.of_a_number or after.of_a_number:
                yield range(start, number)
                start = number
        yield range(start, len(self.ops))

    def _in_two_rounds(self) -> set[Held]:
        there = [{held for number in each for held in self.held[number]} for each in self.rounds]
        return {held for one, other in pairwise(there) for held in one & other}

    def views(self, sizes: Sizes) -> int:
        """Bytes of the views that are there when the step begins."""
        return sum(self._room(Held(buffer, None), sizes, UNITS) for buffer in self.schedule.start)

    def moments(self, sizes: Sizes) -> list[int]:
        """While each operation runs, bytes of what passes in the turn for which it is most."""
        found = list[int]()
        for numbers in self.rounds:
            there, backward = set[Held](), any(self.ops[n].phase is Phase.BACKWARD for n in numbers)
            for number in numbers:
                there |= self.held[number]
                whole = sum(self._room(held, sizes, UNITS) for held in there - self.by_unit)
                turns = (
                    self._in_turn(there, number, sizes, of) for of in _turns(sizes.ahead, backward)
                )
                found.append(whole + max(turns))
        return found

    def _in_turn(self, there: set[Held], number: int, sizes: Sizes, units: Sequence[Unit]) -> int:
        """Bytes of what is held by the unit in the first one's turn, with views of the next."""
        total = 0
        for held in there & self.by_unit:
            is_view, gathers = held.buffer is Buffer.VIEW, self._maker(held).kind is Kind.ALL_GATHER
            own = (
                units[-1] if is_view and not gathers else units[0]
            )  # the last, which is to be gathered
            total += self._room(held, sizes, [own]) if held in self.held[number] else 0
            total += self._room(held, sizes, units[1:]) if is_view and gathers else 0
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


def _turns(ahead: int, backward: bool) -> Iterator[Sequence[Unit]]:
    """Each unit in its turn, and those whose views are there; at the first turn fewer are, too."""
    order = UNITS[:: -1 if backward else 1]
    yield from (order[turn : turn + 1 + ahead] for turn in range(len(order)))
    yield from (order[: 1 + few] for few in range(ahead))


def _slots(unit: Unit, sizes: Sizes, within: Sequence[str], padded: bool) -> int:
    """How many slots a device has of a unit's slice along some axes; of what is whole, elements."""
    if not within and not padded:
        return sum(vector.rows * vector.row for vector in unit.vectors)
    cells = [*product(*(range(sizes.mesh[axis]) for axis in sizes.cut))]
    places = [sizes.cut.index(axis) for axis in within]
    own = [cell for cell in cells if not any(cell[place] for place in places)]
    return len(own) * sum(ceil_div(vector.rows, len(cells)) * vector.row for vector in unit.vectors)
