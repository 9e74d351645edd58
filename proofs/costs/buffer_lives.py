"""When buffers live: from the operation that writes one to the last that reads it, as a step runs.

What an operation reads and writes is what `spec.meaning.semantics.execute` does; of releases, spans and
sizes nothing is looked at. So it is another definition than that of `spec.costs.memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from proofs.checking.further_schedules import further_schedules
from proofs.checking.matching_schedules import accepted_schedules, along
from proofs.checking.witnesses import around, operation
from proofs.trusted.kernel import KernelError
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import Axes
from spec.language.schedule import RESTING, STATE_OF, Buffer, Kind, Op, Rest, Schedule, Span, takes_room
from spec.meaning.semantics import CONTENT, Store, execute, initial
from spec.models.states import State
from spec.plans.strategies import STRATEGIES

Place = tuple[Buffer, str]
SUMMED = {Buffer.FRESH, Buffer.TIED, Buffer.TOKENS, Buffer.TOTAL_TOKENS}  # what may start at zero


class Anything:
    """A domain whose values are of no interest.

    `cut`: the axes along which slices were taken; `of_all`: those along which backward had all samples.
    """

    master, zero = True, None

    def __init__(self) -> None:
        self.cut, self.of_all = set[str](), set[str]()

    def owners(self, _: None, axis: str, __: int) -> None:
        self.cut.add(axis)

    def replace(self, _: None, __: None, axes: Axes, ___: int = 0) -> None:
        self.cut |= {*axes}

    def update(self, *_: Any) -> tuple[None, None]:
        return None, None

    def gradient(self, _: None, __: None, ___: int, axes: Axes, tied: bool = False) -> None:
        self.of_all |= {*axes}

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


class Watched(dict[Place, tuple[bool, Any]]):
    """A store that notes which buffers of a device, not of its host, are read and written."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read: set[Buffer] = set()
        self.written: set[Buffer] = set()
        self.missed: set[Buffer] = set()  # asked for, and not there
        self.cut: set[str] = set()  # axes along which something is sliced, until now
        self.of_all: set[str] = set()  # and along which a backward had all samples

    def __contains__(self, place: object) -> bool:
        there = super().__contains__(place)
        if not there and isinstance(place, tuple) and place[1] == CONTENT:
            self.missed.add(place[0])
        return there

    def __getitem__(self, place: Place) -> tuple[bool, Any]:
        host, value = super().__getitem__(place)
        if not host:
            self.read.add(place[0])
        return host, value

    def __setitem__(self, place: Place, value: tuple[bool, Any]) -> None:
        super().__setitem__(place, value)
        if not value[0]:
            self.written.add(place[0])


def watched(schedule: Schedule) -> Iterator[tuple[Op, Watched]]:
    """Each operation of a step, as it runs, and what it did to the store."""
    domain: Any = Anything()
    store = Watched(initial(schedule, domain, None, None))
    store.cut, store.of_all = domain.cut, domain.of_all
    for micro_step, op in schedule.flat(1):
        store.read, store.written, store.missed = set(), set(), set()
        execute(op, schedule, domain, store, micro_step)
        yield op, store


def touched(schedule: Schedule) -> list[tuple[set[Buffer], set[Buffer]]]:
    """The buffers that each operation of a step reads, and those that it writes."""
    return [(store.read | _reads_besides(op), store.written) for op, store in watched(schedule)]


def read_first(schedule: Schedule) -> tuple[set[Buffer], Watched]:
    """The buffers that a step reads before it has written them, whether they are there or not; and the
    store at its end.
    """
    found, written = set[Buffer](), set[Buffer]()
    for _, store in watched(schedule):
        found |= (store.read | store.missed) - written
        written |= store.written
    return found, store


def _reads_besides(op: Op) -> set[Buffer]:
    """What forward reads, if what it makes is not kept."""
    return {op.source} if op.kind is Kind.FORWARD else set()


def lives(schedule: Schedule) -> list[set[Buffer]]:
    """While each operation of a step runs, the buffers that do not rest and are read later, or now."""
    resting = {buffer for buffer in RESTING if schedule.rest(STATE_OF[buffer]).stored}
    steps = touched(schedule)
    found: list[set[Buffer]] = []
    later = set[Buffer]()
    for read, written in reversed(steps):
        found.append(later | read | written)
        later = (later - (written - read)) | read
    counted = {buffer for buffer in STATE_OF if STATE_OF[buffer] is not State.ACTIVATIONS}
    return [(each & counted) - resting for each in reversed(found)]


def require_zeros() -> None:
    """Raise KernelError unless sums start at zero that a step reads before it writes, and no others;
    and unless what is sliced along some axes, and all samples of a backward, are as it runs.
    """
    accepted = [each.schedule for each in accepted_schedules()]
    further = [each.schedule for each in further_schedules()]
    for schedule in (*accepted, *further, *_others()):
        first, store = read_first(schedule)
        if {*schedule.sums} != first & SUMMED:
            raise KernelError(f"{schedule.sums} start at zero, not {first}")
        for found, has in ((schedule.cut, store.cut), (schedule.samples_of_all, store.of_all)):
            if found != tuple(axis for axis in schedule.axes if axis in has):
                raise KernelError(f"{schedule.ops}: along {found}, not {has}, slices or all samples")


def _others() -> Iterator[Schedule]:
    """Data parallelism with operations that no other schedule has, right or not."""
    total, tokens, into = Buffer.TOTAL_TOKENS, Buffer.TOKENS, Buffer.FRESH
    dp = schedule_of(STRATEGIES["dp"])
    add = operation(Kind.ACCUMULATE, tokens, total)
    for first in (
        (operation(Kind.RELEASE, tokens),),
        (operation(Kind.RESET, total), add),  # before any are counted
        (operation(Kind.RESET, tokens), add),
        (operation(Kind.KEEP, Buffer.GRADIENTS, into, within=dp.axes, span=Span.UNIT),),
        (operation(Kind.DIVIDE, Buffer.GRADIENTS, by=total),),
    ):
        yield around(dp, first=first)
    yield around(dp, before=(operation(Kind.ACCUMULATE, Buffer.TIED, Buffer.GRADIENTS),))
    yield from (dp.with_rest(state, Rest(dp.axes)) for state in State)
    three = schedule_of(along(("outer", "middle", "inner"), "dp"))
    forward, backward = three.micro_step
    some = three.axes[:0:-1]  # the other way round
    last = replace(backward, axes=some), *three.finish  # after all micro-steps
    yield replace(three, micro_step=(forward,), finish=last)
    for kind in (Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.KEEP):
        span = Span.UNIT if takes_room(kind, into, into) else Span.NONE
        axes, within = ((), some) if kind is Kind.KEEP else (three.axes[::-1], ())
        yield around(three, last=(operation(kind, into, axes=axes, within=within, span=span),))
