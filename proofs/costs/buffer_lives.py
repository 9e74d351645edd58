"""When buffers live: from the operation that writes one to the last that reads it, as a step runs.

What an operation reads and writes is what `spec.meaning.semantics.execute` does; of releases, spans and
sizes nothing is looked at. So it is another definition than that of `spec.costs.memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from proofs.checking.further_schedules import further_schedules
from proofs.checking.matching_schedules import accepted_schedules
from proofs.checking.witnesses import around, operation
from proofs.trusted.kernel import KernelError
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import Axes
from spec.language.schedule import RESTING, STATE_OF, Buffer, Kind, Op, Schedule
from spec.meaning.semantics import CONTENT, Store, execute, initial
from spec.models.states import State
from spec.plans.strategies import STRATEGIES

Place = tuple[Buffer, str]
SUMMED = {Buffer.FRESH, Buffer.TIED, Buffer.TOKENS, Buffer.TOTAL_TOKENS}  # what may start at zero


class Anything:
    """A domain whose values are of no interest. `cut`: the axes along which slices were taken."""

    master, zero = True, None

    def __init__(self) -> None:
        self.cut = set[str]()

    def owners(self, _: None, axis: str, __: int) -> None:
        self.cut.add(axis)

    def replace(self, _: None, __: None, axes: Axes, ___: int = 0) -> None:
        self.cut |= {*axes}

    def update(self, *_: Any) -> tuple[None, None]:
        return None, None

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
    store.cut = domain.cut
    for micro_step, op in schedule.flat(1):
        store.read, store.written, store.missed = set(), set(), set()
        execute(op, schedule, domain, store, micro_step)
        yield op, store


def touched(schedule: Schedule) -> list[tuple[set[Buffer], set[Buffer]]]:
    """The buffers that each operation of a step reads, and those that it writes."""
    return [(store.read | _reads_besides(op), store.written) for op, store in watched(schedule)]


def read_first(schedule: Schedule) -> set[Buffer]:
    """The buffers that a step reads before it has written them, whether they are there or not."""
    found, written = set[Buffer](), set[Buffer]()
    for _, store in watched(schedule):
        found |= (store.read | store.missed) - written
        written |= store.written
    return found


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
    """Raise KernelError unless sums start at zero that a step reads before it writes, and no others."""
    accepted = [each.schedule for each in accepted_schedules()]
    further = [each.schedule for each in further_schedules()]
    divide = operation(Kind.DIVIDE, Buffer.GRADIENTS, by=Buffer.TOTAL_TOKENS)
    never_counted = around(schedule_of(STRATEGIES["dp"]), before=(divide,))
    released = around(schedule_of(STRATEGIES["dp"]), first=(operation(Kind.RELEASE, Buffer.TOKENS),))
    for schedule in (*accepted, *further, never_counted, released):
        first = read_first(schedule) & SUMMED
        if {*schedule.sums} != first:
            raise KernelError(f"{schedule.sums} start at zero, not {first}")
