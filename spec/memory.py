"""Memory of a schedule: what rests, what it takes for a while, the peak, and what the host holds.

Bytes per device. Activations are not counted here: their size is the model's, not Psi's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from spec.arithmetic import EXACT, Arithmetic, Number
from spec.mesh import Mesh, group_size
from spec.schedule import SCALARS, Buffer, Kind, Op, Schedule, Span
from spec.states import BytePolicy, State

RoomOf = Callable[[Op], Number]
SCALAR_BYTES = 4  # of a norm, or a count of tokens
MODEL_STATES = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)


@dataclass(frozen=True)
class Sizes:
    """The numbers a cost depends on: Psi parameters in units of `unit`, a mesh, bytes per element.

    `cut`: the axes along which anything is sliced. Each unit is cut in equal, padded cells along all
    of them, so that who owns an element along one axis does not depend on the others.
    """

    psi: Number
    mesh: Mesh
    policy: BytePolicy
    unit: Number | None = None  # default: one unit of Psi
    arithmetic: Arithmetic = EXACT
    cut: tuple[str, ...] = ()

    def slice(self, axes: tuple[str, ...], span: Span = Span.WHOLE) -> Number:
        """Elements each device has of a whole state, or of one unit, that is sharded over `axes`."""
        unit = self.psi if self.unit is None else self.unit
        elements = unit if span is Span.UNIT else self.psi
        if not axes:
            return elements
        others = tuple(a for a in self.cut if a not in axes)
        cells = group_size(self.mesh, axes + others)
        return group_size(self.mesh, others) * self.arithmetic.shard(elements, unit, cells)

    def width(self, op: Op) -> Number:
        """Bytes per element of what `op` writes; 0 for what is not counted in parameters."""
        if op.target in SCALARS:
            return SCALAR_BYTES
        return self.policy.of(op.state) if op.state in MODEL_STATES else 0


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
    return devices * sizes.slice(axes, op.span) * sizes.width(op)


def takers_of_room(schedule: Schedule) -> Iterator[tuple[Op, tuple[Op, ...]]]:
    """Each operation of a step, with those whose results take room from then on.

    A buffer that is there unit by unit is there whole if it is not released, or if a number of the
    whole gradient is needed before it is.
    """
    ops = [op for _, op in schedule.flat(1)]
    for i, op in enumerate(ops):
        taken = [op] if op.span is not Span.NONE else []
        if op.kind is Kind.BACKWARD and schedule.training.tied:
            span = Span.WHOLE if op.span is Span.NONE else op.span
            taken.append(Op(Kind.KEEP, op.phase, Buffer.FRESH, Buffer.TIED, span=span))
        yield op, tuple(t if _unit_by_unit(t, ops[i + 1 :]) else _whole(t) for t in taken)


def _whole(op: Op) -> Op:
    return replace(op, span=Span.WHOLE)


def _unit_by_unit(op: Op, later: list[Op]) -> bool:
    for other in later:
        if other.kind is Kind.RELEASE and other.target is op.target:
            return True
        if other.of_a_number:
            return False
    return False


@lru_cache(maxsize=4096)
def moments(schedule: Schedule) -> tuple[tuple[Op, ...], ...]:
    """While each operation runs, those whose results take room of their own.

    A result replaces what was in its buffer, once it is there.
    """
    live: dict[Buffer, Op] = {}
    found = []
    for op, taken in takers_of_room(schedule):
        if op.kind is Kind.RELEASE:
            live.pop(op.target, None)
        found.append((*live.values(), *taken))
        live |= {t.target: t for t in taken}
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
    """Bytes on the device while each operation runs, and at the end of the step.

    What a result takes is added; what it replaces, or is released, is taken off.
    """
    balance = resting_
    owed: dict[Buffer, Number] = {}
    entries = []
    for op, taken in takers_of_room(schedule):
        if op.kind is Kind.RELEASE and op.target in owed:
            balance = balance - owed.pop(op.target)
        for result in taken:
            balance = balance + room_of(result)
        entries.append(balance)
        for result in taken:
            if result.target in owed:
                balance = balance - owed.pop(result.target)
            owed[result.target] = room_of(result)
    return [*entries, balance]


def peak(schedule: Schedule, sizes: Sizes) -> Number:
    """Bytes at the fullest moment of a step."""
    before = total_resting(schedule, sizes)
    return sizes.arithmetic.maximum(before, *ledger(schedule, before, lambda op: room(op, sizes)))
