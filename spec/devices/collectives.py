"""Collectives: layouts before and after, meaning, and what a device sends.

The ring algorithms are given step by step. A buffer maps (device, chunk) to that chunk's content on
that device; devices and chunks are numbered modulo n. In every step each device sends one chunk, in a
ring to device + 1. Volumes are the number of steps times the chunk, never postulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spec.devices.layouts import Layout
from spec.numbers.arithmetic import Number

Chunks = Callable[[Number, Number], Number]
Travelling = Callable[[Number], Number]  # what each device has in a turn
Select = Callable[[object, Number, Number], Number]  # (condition, then, otherwise)
SameChunk = Callable[[Number, Number], object]  # equal modulo n

_R, _S, _P = Layout


def reduce_scatter_sends(device: Number, step: Number) -> Number:
    """The chunk that `device` sends in `step` of a ring reduce-scatter."""
    return device - 1 - step


def reduce_scatter_step(buffer: Chunks, step: Number, same: SameChunk, select: Select) -> Chunks:
    """After one step: the chunk that arrives from the left is added to one's own."""

    def after(device: Number, chunk: Number) -> Number:
        arrives = same(chunk, reduce_scatter_sends(device - 1, step))
        return select(arrives, buffer(device, chunk) + buffer(device - 1, chunk), buffer(device, chunk))

    return after


def all_gather_sends(device: Number, step: Number) -> Number:
    """The chunk that `device` sends in `step` of a ring all-gather: first its own."""
    return device - step


def all_gather_step(buffer: Chunks, step: Number, same: SameChunk, select: Select) -> Chunks:
    """After one step: the chunk that arrives from the left is kept."""

    def after(device: Number, chunk: Number) -> Number:
        arrives = same(chunk, all_gather_sends(device - 1, step))
        return select(arrives, buffer(device - 1, chunk), buffer(device, chunk))

    return after


def ring_gather_step(slot: Travelling) -> Travelling:
    """After a turn: the slice that the device on the left had."""
    return lambda device: slot(device - 1)


def ring_reduce_step(sums: Travelling, terms: Chunks, turn: Number) -> Travelling:
    """After a turn: the sum that the device on the left had, and one's own term of the turn's slice."""
    return lambda device: sums(device - 1) + terms(device, all_gather_sends(device, turn))


def all_to_all_sends(device: Number, step: Number) -> Number:
    """The device that `device` sends its chunk to in `step` of an all-to-all: one further each step."""
    return device + 1 + step


def all_to_all_step(
    sent: Chunks, received: Chunks, step: Number, same: SameChunk, select: Select
) -> Chunks:
    """After one step: the chunk that arrives takes the place numbered as the device it comes from.

    What is sent stays in a buffer of its own; what is received begins as it.
    """

    def after(device: Number, chunk: Number) -> Number:
        arrives = same(device, all_to_all_sends(chunk, step))
        return select(arrives, sent(chunk, device), received(device, chunk))

    return after


def ring_steps(n: Number) -> Number:
    """Steps of one pass round a ring of n devices."""
    return n - 1


@dataclass(frozen=True)
class Collective:
    """One kind of data movement along a group of n devices."""

    name: str
    before: Layout
    after: Layout
    meaning: str
    messages: Callable[[Number], Number]  # messages of one chunk that each device sends

    def volume(self, n: Number, chunk: Number) -> Number:
        """Elements each device sends, when each device's slice has `chunk` elements."""
        return self.messages(n) * chunk


ALL_GATHER = Collective("all_gather", _S, _R, "every device receives every device's slice", ring_steps)
REDUCE_SCATTER = Collective(
    "reduce_scatter", _P, _S, "every device receives the sum of its slice", ring_steps
)
ALL_REDUCE = Collective(
    "all_reduce",
    _P,
    _R,
    "every device receives the sum: reduce_scatter, then all_gather",
    lambda n: REDUCE_SCATTER.messages(n) + ALL_GATHER.messages(n),
)
# its chunk is 1/n of what a device has
ALL_TO_ALL = Collective(
    "all_to_all",
    _S,
    _S,
    "every device receives every device's chunk for it: sharded along another index",
    ring_steps,
)
COLLECTIVES = {c.name: c for c in (ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, ALL_TO_ALL)}

# the same turn by turn: where a collective has all at once, a ring has one slice at a time
RING_GATHER = Collective(
    "ring_gather", _S, _R, "every device has every device's slice, each in one turn", ring_steps
)
# a slice's sum sets out from its owner with the slice, and is one hop from home when all have added
RING_REDUCE = Collective(
    "ring_reduce",
    _P,
    _S,
    "every device receives the sum of its slice, to which each adds in the slice's turn",
    lambda n: 0 if n == 1 else n,
)
RING = {c.name: c for c in (RING_GATHER, RING_REDUCE)}
