"""Memory of a schedule: what rests, what it takes for a while, the peak, and what the host holds.

Bytes per device. Activations are not counted here: their size is the model's, not Psi's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from spec.arithmetic import EXACT, Arithmetic, Number
from spec.mesh import Mesh, group_size
from spec.schedule import Buffer, Kind, Op, Rest, Schedule, Span
from spec.states import BytePolicy, State

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
    parameters, optimizer, gradients = (
        resting(schedule, state, sizes, host) for state in MODEL_STATES
    )
    return parameters + optimizer + gradients


def room(op: Op, sizes: Sizes) -> Number:
    """Bytes an operation's result takes for itself, until its buffer is released."""
    devices = group_size(sizes.mesh, op.axes) if op.kind is Kind.ALL_GATHER else 1
    axes = op.within + op.axes if op.kind is Kind.ALL_GATHER else op.within
    return devices * sizes.slice(axes, op.span) * sizes.policy.of(op.state)


@lru_cache(maxsize=4096)
def moments(schedule: Schedule) -> tuple[tuple[Op, ...], ...]:
    """The distinct sets of operations whose results take room of their own at the same time."""
    live: dict[Buffer, tuple[Op, ...]] = {}
    found = []
    for _, op in schedule.flat(1):
        if op.kind is Kind.RELEASE:
            live.pop(op.target, None)
        if op.span is not Span.NONE:
            live[op.target] = (*live.get(op.target, ()), op)
        moment = tuple(taken for ops in live.values() for taken in ops)
        if moment and moment not in found:
            found.append(moment)
    return tuple(found)


def transient(schedule: Schedule, sizes: Sizes) -> Number:
    """Bytes of the largest set of buffers that are live together and do not rest."""
    none = 0 * sizes.psi
    together = [sum((room(op, sizes) for op in moment), none) for moment in moments(schedule)]
    return sizes.arithmetic.maximum(none, *together)


def ledger(schedule: Schedule, sizes: Sizes) -> list[Number]:
    """Bytes on the device before the step and after each operation: taken at once, given back."""
    balance = [total_resting(schedule, sizes)]
    owed: dict[Buffer, Number] = {}
    for _, op in schedule.flat(1):
        change = 0 * sizes.psi
        if op.kind is Kind.RELEASE:
            change = change - owed.pop(op.target, 0 * sizes.psi)
        if op.span is not Span.NONE:
            taken = room(op, sizes)
            owed[op.target] = owed.get(op.target, 0 * sizes.psi) + taken
            change = change + taken
        balance.append(balance[-1] + change)
    return balance


def peak(schedule: Schedule, sizes: Sizes) -> Number:
    """Bytes at the fullest moment of a step."""
    return sizes.arithmetic.maximum(*ledger(schedule, sizes))
