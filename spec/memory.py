"""Memory of a schedule: what rests, what it takes for a while, the peak, and what the host holds.

Bytes per device. Activations are not counted here: their size is the model's, not Psi's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from spec.arithmetic import EXACT, Arithmetic, Number
from spec.mesh import Mesh, group_size
from spec.schedule import Buffer, Kind, Op, Schedule, Span
from spec.states import BytePolicy, State

RoomOf = Callable[[Op], Number]
MODEL_STATES = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)


@dataclass(frozen=True)
class Sizes:
    """The numbers a cost depends on: Psi parameters in units of `unit`, a mesh, bytes per element."""

    psi: Number
    mesh: Mesh
    policy: BytePolicy
    unit: Number | None = None  # default: one unit of Psi
    arithmetic: Arithmetic = EXACT

    def slice(self, axes: tuple[str, ...], span: Span = Span.WHOLE) -> Number:
        """Elements each device has of a whole state, or of one unit, that is sharded over `axes`."""
        unit = self.psi if self.unit is None else self.unit
        elements = unit if span is Span.UNIT else self.psi
        if not axes:
            return elements
        return self.arithmetic.shard(elements, unit, group_size(self.mesh, axes))


def resting(schedule: Schedule, state: State, sizes: Sizes, host: bool = False) -> Number:
    """Bytes of `state` that a device (or its part of the host) keeps between steps."""
    rest = schedule.rest(state)
    if not rest.stored or rest.host is not host:
        return 0 * sizes.psi
    return sizes.slice(rest.sharded) * sizes.policy.of(state)


def total_resting(schedule: Schedule, sizes: Sizes, host: bool = False) -> Number:
    """Bytes of all model states between steps."""
    parameters, optimizer, gradients = (resting(schedule, state, sizes, host) for state in MODEL_STATES)
    return parameters + optimizer + gradients


def room(op: Op, sizes: Sizes) -> Number:
    """Bytes an operation's result takes for itself, until its buffer is released."""
    devices = group_size(sizes.mesh, op.axes) if op.kind is Kind.ALL_GATHER else 1
    axes = op.within + op.axes if op.kind is Kind.ALL_GATHER else op.within
    return devices * sizes.slice(axes, op.span) * sizes.policy.of(op.state)


@lru_cache(maxsize=4096)
def moments(schedule: Schedule) -> tuple[tuple[Op, ...], ...]:
    """After each operation, those whose results take room of their own at that time."""
    live: dict[Buffer, tuple[Op, ...]] = {}
    found = []
    for _, op in schedule.flat(1):
        if op.kind is Kind.RELEASE:
            live.pop(op.target, None)
        if op.span is not Span.NONE:
            live[op.target] = (*live.get(op.target, ()), op)
        found.append(tuple(taken for ops in live.values() for taken in ops))
    return tuple(found)


def held(moment: tuple[Op, ...], room_of: RoomOf) -> Number:
    """Bytes of the buffers that are live at one moment and do not rest."""
    return sum(room_of(op) for op in moment)


def transient(schedule: Schedule, sizes: Sizes) -> Number:
    """Bytes of the largest set of buffers that are live together and do not rest."""
    distinct = dict.fromkeys(m for m in moments(schedule) if m)
    rooms = (held(moment, lambda op: room(op, sizes)) for moment in distinct)
    return sizes.arithmetic.maximum(0 * sizes.psi, *rooms)


def ledger(schedule: Schedule, resting_: Number, room_of: RoomOf) -> list[Number]:
    """Bytes on the device after each operation: what it takes is added, what it releases is not."""
    balance = resting_
    owed: dict[Buffer, Number] = {}
    entries = []
    for _, op in schedule.flat(1):
        if op.kind is Kind.RELEASE and op.target in owed:
            balance = balance - owed.pop(op.target)
        if op.span is not Span.NONE:
            taken = room_of(op)
            owed[op.target] = owed[op.target] + taken if op.target in owed else taken
            balance = balance + taken
        entries.append(balance)
    return entries


def peak(schedule: Schedule, sizes: Sizes) -> Number:
    """Bytes at the fullest moment of a step."""
    before = total_resting(schedule, sizes)
    return sizes.arithmetic.maximum(before, *ledger(schedule, before, lambda op: room(op, sizes)))
