"""The links between devices, and collectives as messages over them.

Values are arrays (parts, devices, ...): each device's are its own. The parts of a record travel in
one message, whose size is counted in elements of one part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from psem_model.simulator.arithmetic import Arithmetic, Array, Number
from psem_model.simulator.layout import Group
from spec.language.schedule import Kind, Op

OpKey = tuple[str, int]  # the part of the schedule, and the index in it


@dataclass
class Network:
    """Counts every message, in elements, by operation.

    `sent[op]`, `hosted[op]` (devices,): by each sender, to others or over its host link.
    `widths[op]`: bytes of an element of what an operation sends. `carried`: messages of all networks
    there ever were.
    """

    carried: ClassVar[int] = 0

    devices: int
    sent: dict[OpKey, Array] = field(default_factory=dict)
    hosted: dict[OpKey, Array] = field(default_factory=dict)
    widths: dict[OpKey, Number] = field(default_factory=dict)
    messages: int = 0

    @property
    def elements(self) -> Array:
        """Elements that each device has sent to others (devices,)."""
        return sum(self.sent.values(), start=np.zeros(self.devices, np.int64))

    @property
    def bytes(self) -> Array:
        """Bytes that each device has sent to others (devices,)."""
        sums = (elements * self.widths[op] for op, elements in self.sent.items())
        return sum(sums, start=np.zeros(self.devices, np.int64))

    @property
    def host_bytes(self) -> Number:
        """Bytes over a device's host link, both ways: of each operation, where it moves most."""
        return sum(int(elements.max()) * self.widths[op] for op, elements in self.hosted.items())

    def serve(self, op: OpKey, counted: bool = True, width: Number = 0) -> None:
        """Count what follows as sent by an operation.

        What statistics move is not counted: how many there are is the model's matter. Raises
        ValueError for an operation that sends elements of two widths.
        """
        self._op, self._counted = op, counted
        if self.widths.setdefault(op, width) != width:
            raise ValueError(f"{op}: sends {self.widths[op]} bytes an element, and {width}")

    def clear(self) -> None:
        """Count anew."""
        self.sent.clear()
        self.hosted.clear()
        self.messages = 0

    def move(
        self, payload: Array, senders: Array, receivers: Array, sizes: Array | None = None
    ) -> Array:
        """What each sender has in `payload` (parts, devices, ...), as its receiver gets it.

        One message for each pair; no device sends twice. `sizes` (devices,): elements of each sender's
        message, if the rest of its payload is padding that it does not send.
        """
        if not self._counted:
            return payload.take(senders, 1)
        if self._op not in self.sent:
            self.sent[self._op] = np.zeros(self.devices, np.int64)
        self.sent[self._op][senders] += payload[0, 0].size if sizes is None else sizes[senders]
        self.messages += len(senders)
        Network.carried += len(senders)
        return payload.take(senders, 1)

    def to_host(self, elements: int | Array, beside: str = "", width: Number = 0) -> None:
        """So many elements of each device go to the other side of its host link.

        `beside`: what an operation does there besides, with elements of a `width` of its own.
        """
        part, number = self._op
        op = (f"{part} {beside}", number) if beside else self._op
        if beside:
            self.widths[op] = width
        self.hosted[op] = self.hosted.get(op, np.zeros(self.devices, np.int64)) + elements


Add = Callable[[Array, Array], Array]


def reduce_scatter(
    chunks: Array, group: Group, add: Add, network: Network, sizes: Array | None = None
) -> Array:
    """The sum over the group of each device's own chunk (parts, devices, size), around a ring.

    `chunks` (parts, devices, n, size): chunk i is for the group's i-th device. A partial sum sets
    out from the device after its owner and passes each of the others. `sizes` (devices,): elements of
    each device's own chunk, if the rest of it is padding that is not sent.
    """
    n, here = group.size, group.devices
    partial = np.asarray(chunks[:, here, (group.position - 1) % n])
    for step in range(2, n + 1):
        of = None if sizes is None else sizes[group.other(1 - step)]
        received = network.move(partial, group.previous, here, of)
        partial = add(received, chunks[:, here, (group.position - step) % n])
    return partial


def all_gather(own: Array, group: Group, network: Network, sizes: Array | None = None) -> Array:
    """Every member's `own` (parts, devices, size), on each device, around a ring.

    Returns chunks (parts, devices, n, size), in the group's order. `sizes`: as of a reduce_scatter.
    """
    n, here = group.size, group.devices
    chunks = np.empty((*own.shape[:2], n, *own.shape[2:]), own.dtype)
    chunks[:, here, group.position] = passing = own
    for step in range(1, n):
        of = None if sizes is None else sizes[group.other(1 - step)]
        passing = network.move(passing, group.previous, here, of)
        chunks[:, here, (group.position - step) % n] = passing
    return chunks


def all_reduce(
    chunks: Array, group: Group, add: Add, network: Network, sizes: Array | None = None
) -> Array:
    """The sum over the group of `chunks` (parts, devices, n, size), on each device."""
    return all_gather(reduce_scatter(chunks, group, add, network, sizes), group, network, sizes)


def summed(
    values: Array, group: Group, add: Add, network: Network, sizes: Array | None = None
) -> Array:
    """The sum over the group of each device's values (parts, devices, ...), in padded equal chunks.

    `sizes` (devices,): elements of each chunk of a device's, if the rest is not sent.
    """
    rows = values.reshape(*values.shape[:2], -1)
    size = -(-rows.shape[-1] // group.size)
    padded = np.zeros((*rows.shape[:2], group.size * size), rows.dtype)
    padded[..., : rows.shape[-1]] = rows
    chunks = padded.reshape(*rows.shape[:2], group.size, size)
    total = all_reduce(chunks, group, add, network, sizes).reshape(padded.shape)
    return total[..., : rows.shape[-1]].reshape(values.shape)


def all_to_all(chunks: Array, group: Group, network: Network, sizes: Array | None = None) -> Array:
    """Chunk i (parts, devices, n, size) of each device, on the group's i-th, in order of senders.

    `sizes` (devices, n): elements of each chunk, if the rest of it is not sent.
    """
    n, here, position = group.size, group.devices, group.position
    received = np.empty_like(chunks)
    received[:, here, position] = chunks[:, here, position]
    for step in range(1, n):
        to = (position + step) % n
        of = None if sizes is None else sizes[here, to]
        received[:, here, (position - step) % n] = network.move(
            chunks[:, here, to], group.other(-step), here, of
        )
    return received


def broadcast(values: Array, group: Group, network: Network) -> Array:
    """The value (parts, devices, ...) of the group's first device, passed on along a chain."""
    result = values.copy()
    for place in range(1, group.size):
        receivers = np.flatnonzero(group.position == place)
        result[:, receivers] = network.move(result, group.previous[receivers], receivers)
    return result


def point_to_point(values: Array, sender: int, receiver: int, network: Network) -> Array:
    """The values with the sender's also on the receiver."""
    result = values.copy()
    result[:, [receiver]] = network.move(values, np.array([sender]), np.array([receiver]))
    return result


def averaged(op: Op, sums: Array, group: Group, arithmetic: Arithmetic) -> Array:
    """Sums over a group, or means where an operation takes those."""
    return arithmetic.mul(sums, arithmetic.number(Fraction(1, group.size))) if op.mean else sums


def moved(op: Op, number: Array, group: Group, arithmetic: Arithmetic, network: Network) -> Array:
    """A number of each device (devices, how many): the sum, the mean or the first, on every device."""
    if group.size == 1:
        return number
    if op.kind is Kind.BROADCAST:
        rows = broadcast(number[None], group, network)
    else:
        rows = summed(number[None], group, arithmetic.add, network)
    of_each: Array = rows[0]
    return averaged(op, of_each, group, arithmetic)
