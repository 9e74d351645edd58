"""What each operation does to the devices' values.

A store gives, for each buffer, its value on every device. What a device does not keep, or keeps on
the other side of the host link, reads as nothing. `execute` is written over a domain of values, of
which there are two: what the devices hold (`Devices`, below) and its normal form (`verdict.Forms`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from spec.arithmetic import Number
from spec.operators import Total, Value, nothing, owners, sliced, summed
from spec.schedule import STATE_OF, Buffer, Kind, Op, Rest, Schedule
from spec.states import State

Axes = tuple[str, ...]
CONTENT, MOMENT = "content", "moment"  # the optimizer's content is its weights, if it has a copy
Place = tuple[Buffer, str]
Store = dict[Place, tuple[bool, Any]]  # where -> (on the host, value)

_REST_OF = {
    State.PARAMETERS: Buffer.PARAMETERS,
    State.OPTIMIZER: Buffer.OPTIMIZER,
    State.GRADIENTS: Buffer.GRADIENTS,
}
_COLLECTIVE = (Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_REDUCE)
_COPY = (Kind.FETCH, Kind.OFFLOAD, Kind.KEEP, Kind.RECOMPUTE)


class Domain(Protocol):
    """A kind of value that operations act on."""

    nothing: Any
    master: bool  # whether the optimizer state contains a copy of the weights

    def sum(self, value: Any, axis: str) -> Any:
        """The sum over the group along `axis`, on every device."""

    def owners(self, value: Any, axis: str) -> Any:
        """The owner's value along `axis`, on every device."""

    def replace(self, old: Any, new: Any, axes: Axes) -> Any:
        """`new` on the devices that own the element along `axes`, `old` elsewhere."""

    def add(self, value: Any, other: Any) -> Any:
        """The sum of two values on each device."""

    def forward(self, view: Any) -> Any:
        """Activations: all that backward needs of the parameters that forward read."""

    def gradient(self, view: Any, activations: Any, micro_step: int) -> Any:
        """What the samples of each device contribute in one micro-step."""

    def update(self, weight: Any, moment: Any, gradient: Any, axes: Axes) -> tuple[Any, Any]:
        """The next weight and moment, on the devices that own the element along `axes`."""


def initial(schedule: Schedule, domain: Domain, weight: Any, moment: Any) -> Store:
    """The store before the first step: every resting copy holds the same initial values."""
    store: Store = {}
    for state, content, extra in (
        (State.PARAMETERS, weight, None),
        (State.OPTIMIZER, weight if domain.master else domain.nothing, moment),
        (State.GRADIENTS, domain.nothing, None),
    ):
        rest = schedule.rest(state)
        if rest.stored:
            kept = domain.replace(domain.nothing, content, rest.sharded)
            store[_REST_OF[state], CONTENT] = (rest.host, kept)
            if extra is not None:
                kept = domain.replace(domain.nothing, extra, rest.sharded)
                store[_REST_OF[state], MOMENT] = (rest.host, kept)
    return store


def updates_on_host(op: Op, schedule: Schedule) -> bool:
    """Whether an update runs in the host's memory: where the optimizer state is."""
    if op.target is Buffer.OPTIMIZER_VIEW:
        return False
    stored = schedule.rest(State.OPTIMIZER).stored
    return schedule.rest(State.OPTIMIZER if stored else State.PARAMETERS).host


def execute(op: Op, schedule: Schedule, domain: Domain, store: Store, micro_step: int) -> None:
    """Run one operation on every device, in place."""

    def read(buffer: Buffer, on_host: bool, part: str = CONTENT) -> Any:
        host, value = store.get((buffer, part), (on_host, domain.nothing))
        return value if host is on_host else domain.nothing

    def write(
        buffer: Buffer, on_host: bool, value: Any, part: str = CONTENT, within: Axes = ()
    ) -> None:
        axes = within
        if buffer in _REST_OF.values():  # a resting place has room for its own slices only
            axes += tuple(a for a in schedule.rest(STATE_OF[buffer]).sharded if a not in axes)
        old = read(buffer, on_host, part)
        store[buffer, part] = (on_host, domain.replace(old, value, axes) if axes else value)

    source, target = op.source, op.target
    if op.kind in _COLLECTIVE:
        for part in _parts(source, target):
            write(target, False, _collect(op, domain, read(source, False, part)), part)
    elif op.kind is Kind.FORWARD or (target is Buffer.ACTIVATIONS and op.kind is Kind.RECOMPUTE):
        write(target, False, domain.forward(read(source, False)))
    elif op.kind in _COPY:
        if source is target is Buffer.OPTIMIZER:  # produced again, by an optimizer without state
            host = schedule.rest(State.PARAMETERS).host
            write(target, host, read(Buffer.PARAMETERS, host), CONTENT, op.within)
            write(target, host, domain.nothing, MOMENT, op.within)
        else:
            present = store.get((source, CONTENT), (False, None))[0]
            here = {Kind.FETCH: True, Kind.OFFLOAD: False}.get(op.kind, present)
            there = here if op.kind in (Kind.KEEP, Kind.RECOMPUTE) else not here
            for part in _parts(source, target):
                write(target, there, read(source, here, part), part, op.within)
    elif op.kind is Kind.BACKWARD:
        activations = read(Buffer.ACTIVATIONS, False)
        value = domain.gradient(read(source, False), activations, micro_step)
        for axis in op.axes:
            value = domain.sum(value, axis)
        store.pop((Buffer.ACTIVATIONS, CONTENT), None)
        write(target, False, value)
    elif op.kind is Kind.ACCUMULATE:
        host = schedule.rest(State.GRADIENTS).host
        write(target, host, domain.add(read(target, host), read(source, host)))
    elif op.kind is Kind.UPDATE:
        _update(op, schedule, domain, read, write)
    elif op.kind is Kind.RESET:
        store[target, CONTENT] = (schedule.rest(STATE_OF[target]).host, domain.nothing)
    elif op.kind is Kind.RELEASE:
        store.pop((target, CONTENT), None)
        store.pop((target, MOMENT), None)


def _update(
    op: Op,
    schedule: Schedule,
    domain: Domain,
    read: Callable[..., Any],
    write: Callable[..., None],
) -> None:
    """The optimizer's weights and moments move on, and with them the parameters beside them.

    The weights are the optimizer's own copy, if it has one, else the resting parameters.
    """
    host = updates_on_host(op, schedule)
    weight, moment = domain.update(
        read(op.target if domain.master else Buffer.PARAMETERS, host),
        read(op.target, host, MOMENT),
        read(op.source, host),
        op.within,
    )
    if domain.master:
        write(op.target, host, weight, CONTENT, op.within)
    write(op.target, host, moment, MOMENT, op.within)
    theta: Rest = schedule.rest(State.PARAMETERS)
    if theta.stored and theta.host is host:
        write(Buffer.PARAMETERS, host, weight, CONTENT, op.within)


def _collect(op: Op, domain: Domain, value: Any) -> Any:
    """What a collective leaves on each device."""
    if op.target is Buffer.ACTIVATIONS:
        return value
    for axis in op.axes:
        value = domain.owners(value, axis) if op.kind is Kind.ALL_GATHER else domain.sum(value, axis)
    if op.kind is Kind.REDUCE_SCATTER:
        value = domain.replace(domain.nothing, value, op.axes)
    return value


def _parts(source: Buffer, target: Buffer) -> tuple[str, ...]:
    both = {STATE_OF[source], STATE_OF[target]} == {State.OPTIMIZER}
    return (CONTENT, MOMENT) if both else (CONTENT,)


class Devices:
    """What the devices hold of one element: a function of the device, over any arithmetic.

    `settle` may store a value's table; model and optimizer are functions of what is read.
    """

    def __init__(
        self,
        mesh: Mapping[str, Number],
        owner: Mapping[str, Any],
        total: Total,
        select: Callable[[Any, Any, Any], Any],
        settle: Callable[[Value], Value],
        master: bool = True,
    ) -> None:
        self.mesh, self.owner, self.master = mesh, owner, master
        self.total, self.select, self.settle = total, select, settle
        self.nothing: Value = nothing

    def sum(self, value: Value, axis: str) -> Value:
        return self.settle(summed(value, axis, self.mesh[axis], self.total))

    def owners(self, value: Value, axis: str) -> Value:
        return self.settle(owners(value, axis, self.owner[axis]))

    def replace(self, old: Value, new: Value, axes: Axes) -> Value:
        kept, rest = new, old
        for axis in axes:
            kept = sliced(kept, axis, self.owner[axis], self.select, rest)
        return self.settle(kept)

    def add(self, value: Value, other: Value) -> Value:
        return self.settle(lambda device: value(device) + other(device))
