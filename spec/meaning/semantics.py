"""What each operation does to the devices' values.

A store gives, for each buffer, its value on every device: of each element a number, or nothing known.
Not known is what was never written, was overwritten by a shard, was released, is on the other side of
the host link, or lies outside a place's room; it is another value at each read, and no zero. Zeros are
written (`zero`, `reset`), and sums start at zero. Moves act on local buffers, element by element.

`execute` is written over a domain of values, of which there are three: numbers of few devices
(`reference.Reference`), terms of Z3 for any number of devices (`Devices`, below), and normal forms of
either (`forms.Forms`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

from spec.devices.mesh import Axes, along_devices
from spec.devices.operators import PerDevice, owners, sliced, zero
from spec.language.schedule import (
    COLLECTIVE_KINDS,
    REDUCTIONS,
    RESTING,
    STATE_OF,
    Buffer,
    Kind,
    Monomial,
    Op,
    Rest,
    Schedule,
    neighbour,
)
from spec.models.states import State
from spec.numbers.arithmetic import Number

CONTENT, MOMENT = "content", "moment"  # the optimizer's content is its weights, if it has a copy
BufferPart = tuple[Buffer, str]
Store = dict[BufferPart, tuple[bool, Any]]  # where -> (on the host, value)

_REST_OF = {STATE_OF[buffer]: buffer for buffer in RESTING}
_COPY = (Kind.FETCH, Kind.OFFLOAD, Kind.KEEP, Kind.RECOMPUTE)

# why nothing is known of an element
OWN_SLICE_ONLY = "each device has its own slice only"
NO_COPY = "the optimizer state has no copy of the weights"
NO_STATE = "no optimizer state is kept"


def absent(buffer: Buffer) -> str:
    """Why nothing is known of a buffer that is not there."""
    return f"no {buffer.value} there: not written, or released"


def other_side(buffer: Buffer) -> str:
    """Why nothing is known of a buffer that is in the other memory."""
    return f"no {buffer.value} on this side of the host link"


def outside(shift: int) -> str:
    """Why nothing is known outside the slices that devices take with a shift."""
    return f"each device has only the slice of {neighbour(shift)}" if shift else OWN_SLICE_ONLY


class Domain(Protocol):
    """A kind of value that operations act on. A number on each device is a value, too."""

    master: bool  # whether the optimizer state contains a copy of the weights

    @property
    def zero(self) -> Any:
        """Zero of each element, on every device."""

    def unknown(self, why: str) -> Any:
        """A value of which nothing is known on any device, another one at each call."""

    def require_a_slice(self, value: Any, axes: Axes) -> None:
        """Refuse what devices have more of than their own slices along `axes`."""

    def sum(self, value: Any, axis: str) -> Any:
        """The sum over the group along `axis`, on every device."""

    def owners(self, value: Any, axis: str, shift: int = 0) -> Any:
        """The owner's value along `axis`, on every device.

        With a shift, devices take the slice of the one that many places further on for their own.
        """

    def first(self, value: Any, axis: str) -> Any:
        """The value of the group's first device along `axis`, on every device."""

    def replace(self, old: Any, new: Any, axes: Axes, shift: int = 0) -> Any:
        """`new` on the devices that own the element along `axes`, `old` elsewhere."""

    def add(self, value: Any, other: Any) -> Any:
        """The sum of two values on each device."""

    def scale(self, value: Any, factor: Monomial) -> Any:
        """A multiple of a value."""

    def divide(self, value: Any, count: Any) -> Any:
        """A value over a number that each device has; not known where that is zero."""

    def square_norm(self, gradient: Any) -> Any:
        """The sum of the squares of all elements that a device has."""

    def clip(self, gradient: Any, square_norm: Any) -> Any:
        """A gradient, scaled down where its norm is larger than allowed."""

    def forward(self, view: Any, axes: Axes) -> Any:
        """Activations: all that backward needs of the parameters that forward read.

        Along `axes` those of the whole group's samples; along others of a device's own.
        """

    def of_group(self, activations: Any, axes: Axes) -> Any:
        """The activations of all samples of a group, each as its own device's forward left them."""

    def gradient(
        self, view: Any, activations: Any, micro_step: int, axes: Axes, tied: bool = False
    ) -> Any:
        """What a device's samples contribute in one micro-step.

        Along `axes` a device has the samples of the whole group. `tied`: by way of the second place
        where parameters are used.
        """

    def tokens(self, micro_step: int) -> Any:
        """How many tokens there are in each device's samples of one micro-step."""

    def statistic(self, micro_step: int) -> Any:
        """What each device's samples of one micro-step add to the statistics."""

    def update(self, weight: Any, moment: Any, gradient: Any) -> tuple[Any, Any]:
        """The next weight and moment."""


def initial(schedule: Schedule, domain: Domain, weight: Any, moment: Any) -> Store:
    """The store before the first step: every resting copy holds the same initial values."""
    store: Store = {}
    for state, content, extra in (
        (State.PARAMETERS, weight, None),
        (State.OPTIMIZER, weight if domain.master else domain.unknown(NO_COPY), moment),
        (State.GRADIENTS, domain.zero, None),
    ):
        rest = schedule.rest(state)
        if rest.stored:
            parts = {CONTENT: content} if extra is None else {CONTENT: content, MOMENT: extra}
            for part, value in parts.items():
                own = _slices(domain, value, rest.sharded, OWN_SLICE_ONLY)
                store[_REST_OF[state], part] = (rest.host, own)
    store |= {(buffer, CONTENT): (False, domain.zero) for buffer in schedule.sums}
    store |= {(buffer, CONTENT): (False, weight) for buffer in schedule.start}
    if schedule.training.statistics:
        store[Buffer.STATISTICS, CONTENT] = (False, domain.zero)
    return store


def updates_on_host(op: Op, schedule: Schedule) -> bool:
    """Whether an update runs in the host's memory: where the optimizer state is."""
    if op.target is Buffer.OPTIMIZER_VIEW:
        return False
    stored = schedule.rest(State.OPTIMIZER).stored
    return schedule.rest(State.OPTIMIZER if stored else State.PARAMETERS).host


# one branch for each kind of operation
def execute(  # noqa: C901
    op: Op, schedule: Schedule, domain: Domain, store: Store, micro_step: Any
) -> None:
    """Run one operation on every device, in place."""
    source, target = op.source, op.target
    if op.kind is Kind.RELEASE:
        store.pop((target, CONTENT), None)
        store.pop((target, MOMENT), None)
        return

    def read(buffer: Buffer, on_host: bool = False, part: str = CONTENT) -> Any:
        if (buffer, part) not in store:
            return domain.unknown(absent(buffer))
        host, value = store[buffer, part]
        return value if host is on_host else domain.unknown(other_side(buffer))

    def cut(buffer: Buffer) -> Axes:
        """The axes along which a place has room for slices, and the operation does not say which."""
        room, said = schedule.slices(buffer), op.within if op.shift == 0 else ()
        return tuple(a for a in room if a not in said)

    def fitting(value: Any, slices: Axes) -> Any:
        """A value that goes into a place: only `keep`, and an update, cut whole values to its room.

        And zero times slices, which is zero everywhere.
        """
        if slices and op.kind not in (Kind.KEEP, Kind.UPDATE, Kind.SCALE):
            domain.require_a_slice(value, slices)
        return value

    def write(buffer: Buffer, value: Any, on_host: bool = False, part: str = CONTENT) -> None:
        """Each device writes its own slices, and a resting place has room for its own only.

        Where the optimizer state has no copy of the weights, there is no room for them.
        """
        if part == CONTENT and STATE_OF.get(buffer) is State.OPTIMIZER and not domain.master:
            value = domain.unknown(NO_COPY)
        value = fitting(value, slices := cut(buffer))
        if op.within or slices:
            old = read(buffer, on_host, part)
            value = domain.replace(old, value, op.within, op.shift) if op.within else value
            value = domain.replace(old, value, slices) if slices else value
        store[buffer, part] = (on_host, value)

    present = store.get((source, CONTENT), (False, None))[0]  # the side where the source is
    if op.kind in COLLECTIVE_KINDS:
        for part in _parts(source, target):
            write(target, _collect(op, domain, read(source, False, part)), False, part)
    elif op.kind is Kind.FORWARD or (target is Buffer.ACTIVATIONS and op.kind is Kind.RECOMPUTE):
        rest = schedule.rest(State.ACTIVATIONS)
        everyones = tuple(a for a in schedule.axes if a not in rest.sharded)
        if rest.stored or op.kind is Kind.RECOMPUTE:
            write(target, domain.forward(read(source), everyones))
        if schedule.training.statistics and op.kind is Kind.FORWARD:
            seen = domain.add(read(Buffer.STATISTICS), domain.statistic(micro_step))
            store[Buffer.STATISTICS, CONTENT] = (False, seen)
    elif op.kind is Kind.RECOMPUTE and source is target is Buffer.OPTIMIZER:
        host = schedule.rest(State.PARAMETERS).host  # an optimizer without state has the weights
        write(target, read(Buffer.PARAMETERS, host), host)
        write(target, domain.unknown(NO_STATE), host, MOMENT)
    elif op.kind in _COPY:
        here = {Kind.FETCH: True, Kind.OFFLOAD: False}.get(op.kind, present)
        there = here if op.kind in (Kind.KEEP, Kind.RECOMPUTE) else not here
        for part in _parts(source, target):
            write(target, read(source, here, part), there, part)
    elif op.kind is Kind.BACKWARD:
        reads = read(source), read(Buffer.ACTIVATIONS), micro_step, op.axes
        store.pop((Buffer.ACTIVATIONS, CONTENT), None)
        value = domain.gradient(*reads)
        if schedule.training.tied:
            write(Buffer.TIED, domain.gradient(*reads, tied=True))
        adds = target is Buffer.GRADIENTS
        write(target, domain.add(read(target), fitting(value, cut(target))) if adds else value)
    elif op.kind is Kind.COUNT:
        value = domain.tokens(micro_step)
        for axis in op.axes:
            value = domain.sum(value, axis)
        write(target, value)
    elif op.kind is Kind.ACCUMULATE:
        rests = target is Buffer.GRADIENTS
        host = schedule.rest(State.GRADIENTS).host if rests else present
        write(target, domain.add(read(target, host), fitting(read(source, host), cut(target))), host)
    elif op.kind is Kind.SCALE and isinstance(op.by, Monomial):
        write(target, domain.scale(read(source, present), op.by), present)
    elif op.kind is Kind.DIVIDE and isinstance(op.by, Buffer):
        write(target, domain.divide(read(source, present), read(op.by)), present)
    elif op.kind is Kind.SQUARE_NORM:
        own = domain.replace(domain.zero, read(source, present), op.within, op.shift)
        slices = tuple(a for a in schedule.slices(source) if a not in op.within)
        own = domain.replace(domain.zero, own, slices)
        store[target, CONTENT] = (False, domain.square_norm(own))
    elif op.kind is Kind.CLIP and isinstance(op.by, Buffer):
        write(target, domain.clip(read(source, present), read(op.by)), present)
    elif op.kind is Kind.UPDATE:
        _update(op, schedule, domain, read, write)
    elif op.kind is Kind.RESET:
        host = target in RESTING and schedule.rest(STATE_OF[target]).host
        zeros = _slices(domain, domain.zero, schedule.slices(target), OWN_SLICE_ONLY)
        if op.within:
            zeros = domain.replace(read(target, host), zeros, op.within, op.shift)
        store[target, CONTENT] = (host, zeros)
    elif op.kind is Kind.ZERO:
        write(target, domain.zero)
    weights_alone = op.kind is Kind.ZERO or MOMENT not in _parts(source, target)
    if op.takes_room and weights_alone and (target, MOMENT) in store:  # moments are not made anew
        write(target, domain.unknown(absent(target)), False, MOMENT)


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
    )
    if domain.master:
        write(op.target, weight, host)
    write(op.target, moment, host, MOMENT)
    theta: Rest = schedule.rest(State.PARAMETERS)
    if theta.stored and theta.host is host:
        write(Buffer.PARAMETERS, weight, host)


def _collect(op: Op, domain: Domain, value: Any) -> Any:
    """What a collective leaves on each device."""
    if op.target is Buffer.ACTIVATIONS:
        return domain.of_group(value, op.axes)
    if op.kind in REDUCTIONS:  # along an axis of slices it mixes different elements
        slices = tuple(a for a in op.axes if a in op.within)
        value = _slices(domain, value, slices, OWN_SLICE_ONLY)
    for axis in op.axes:
        if op.kind in REDUCTIONS:
            value = domain.sum(value, axis)
        elif op.kind is Kind.BROADCAST:
            value = domain.first(value, axis)
        else:
            value = domain.owners(value, axis, op.shift)
    if op.mean:
        devices = tuple((axis, -1) for axis in along_devices(op.axes))
        value = domain.scale(value, Monomial(powers=devices))
    if op.kind is Kind.REDUCE_SCATTER:
        value = _slices(domain, value, op.axes, outside(op.shift), op.shift)
    return value


def _slices(domain: Domain, value: Any, axes: Axes, why: str, shift: int = 0) -> Any:
    """A value of which devices have their slices along some axes; why nothing is known of the rest."""
    return domain.replace(domain.unknown(why), value, axes, shift) if axes else value


@cache
def _parts(source: Buffer, target: Buffer) -> tuple[str, ...]:
    both = STATE_OF.get(source) is STATE_OF.get(target) is State.OPTIMIZER
    return (CONTENT, MOMENT) if both else (CONTENT,)


class Devices:
    """What the devices hold of one element: a function of the device, over any arithmetic.

    Sums, model and optimizer are functions of what is read. `anything`: an arbitrary value, another one
    at each call.
    """

    def __init__(
        self,
        mesh: Mapping[str, Number],
        owner: Mapping[str, Any],
        select: Callable[[Any, Any, Any], Any],
        anything: Callable[[], PerDevice],
        master: bool = True,
    ) -> None:
        self.mesh, self.owner, self.master = mesh, owner, master
        self.select, self.zero, self.anything = select, zero, anything

    def unknown(self, _: str) -> PerDevice:
        return self.anything()

    def require_a_slice(self, *_: Any) -> None:
        """What is whole is cut: whether that is refused, the verdict says."""

    def owners(self, value: PerDevice, axis: str, shift: int = 0) -> PerDevice:
        return owners(value, axis, self._taker(axis, shift))

    def replace(self, old: PerDevice, new: PerDevice, axes: Axes, shift: int = 0) -> PerDevice:
        kept, rest = new, old
        for axis in axes:
            kept = sliced(kept, axis, self._taker(axis, shift), self.select, rest)
        return kept

    def _taker(self, axis: str, shift: int) -> Any:
        """The device that takes the element's slice for its own: its owner."""
        return self._in_no_named_strategy() if shift else self.owner[axis]

    def _in_no_named_strategy(self, *_: Any) -> Any:
        raise ValueError("no named strategy scales, divides, clips, broadcasts, counts or shifts")

    scale = divide = square_norm = clip = first = tokens = statistic = of_group = _in_no_named_strategy
