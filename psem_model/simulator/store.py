"""What the devices have in memory: blocks, and the meter of the room that they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psem_model.simulator.arithmetic import Arithmetic, Array, Number
from psem_model.simulator.layout import Layout, Slice, common, covers, meet
from spec.schedule import RESTING, STATE_OF, Buffer, Schedule
from spec.states import BytePolicy, State

RESTS = {STATE_OF[buffer]: buffer for buffer in RESTING}
RECORDS = (Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW)
ALL = slice(None)


@dataclass
class Block:
    """One unit of a buffer on all devices: `array` (parts, devices, elements), holding `held`.

    An optimizer's parts are its weights, if it has a copy, and its moments; others have one part.
    """

    array: Array
    held: Slice
    host: bool


@dataclass(frozen=True)
class Piece:
    """A value to write: nothing outside a slice. A fresh one's array is nobody else's."""

    array: Array
    held: Slice
    fresh: bool = False


class Meter:
    """Elements live in each state, on the device and on the host, and the fullest moment.

    Rows of a block have the same length on all devices, so that one number is every device's.
    """

    def __init__(self, policy: BytePolicy) -> None:
        self.widths: dict[State | None, Number] = {state: policy.of(state) for state in RESTS}
        self.live = {host: dict.fromkeys(RESTS, 0) for host in (False, True)}
        self.peak: Number = 0
        self.peak_parts = self.bytes(False)

    def bytes(self, host: bool) -> dict[State, Number]:
        """Bytes of each state on each device, or on its part of the host."""
        return {state: n * self.widths[state] for state, n in self.live[host].items()}

    def add(self, state: State, host: bool, elements: int) -> None:
        self.live[host][state] += elements
        if elements > 0 and not host:
            total = sum(n * self.widths[s] for s, n in self.live[False].items())
            if total > self.peak:
                self.peak, self.peak_parts = total, self.bytes(False)


class Store:
    """All blocks, by buffer and unit. A buffer is on one side of the host link at a time."""

    def __init__(
        self,
        schedule: Schedule,
        layouts: Sequence[Layout],
        arithmetic: Arithmetic,
        policy: BytePolicy,
    ) -> None:
        self.layouts, self.arithmetic = layouts, arithmetic
        self.master = bool(policy.master and policy.k > 0)
        self.parts = self.master + arithmetic.moments if policy.k > 0 else 0
        self.rests = {buffer: schedule.rest(state) for state, buffer in RESTS.items()}
        self.meter = Meter(policy)
        self.blocks: dict[tuple[Buffer, int], Block] = {}
        self.at_once = False  # whether what is dropped stays until all units are done
        self.anew = False  # whether results are new blocks, even where there is room
        self.dropped: list[tuple[State, Block]] = []
        self.sides: dict[tuple[Buffer, int], bool] = {}

    def start(self, weights: Sequence[Array], moments: Sequence[Array]) -> None:
        """What stored resting copies hold: weights (1 or devices, elements) of each unit, and moments
        (how many, 1, elements). One row is every device's.
        """
        for unit, (row, beside) in enumerate(zip(weights, moments, strict=True)):
            of_each = np.broadcast_to(beside, (len(beside), *row.shape))
            record = np.concatenate((row[None], of_each)) if self.master else beside
            starts = {Buffer.PARAMETERS: row[None], Buffer.OPTIMIZER: record}
            devices = self.layouts[unit].cluster.devices
            for buffer, rest in self.rests.items():
                if rest.stored:
                    self.reset(buffer, unit)
                    parts = starts.get(buffer)
                    if parts is not None:
                        each = np.broadcast_to(parts, (len(parts), devices, parts.shape[-1]))
                        self.write(buffer, unit, rest.host, (), Piece(each, ()))

    def side(self, buffer: Buffer, unit: int) -> bool:
        """Whether a buffer is on the host."""
        return self.sides.get((buffer, unit), False)

    def own(self, buffer: Buffer, unit: int) -> Slice:
        """The slice that a buffer has room for: of a resting one, where it is sharded."""
        rest = self.rests.get(buffer)
        return self.layouts[unit].slice(rest.sharded) if rest else ()

    def read(self, buffer: Buffer, unit: int, host: bool = False) -> Block | None:
        """A buffer's block on one side, if there is anything there."""
        block = self.blocks.get((buffer, unit))
        return block if block is not None and block.host is host else None

    def slab(self, buffer: Buffer, unit: int, host: bool, wanted: Slice) -> Array:
        """A buffer's elements of a slice (parts, devices, size); zeros where it has none."""
        layout, block = self.layouts[unit], self.read(buffer, unit, host)
        if block is None:
            return self.empty(buffer, unit, wanted)
        return layout.take(block.array, block.held, wanted)

    def empty(self, buffer: Buffer, unit: int, held: Slice) -> Array:
        """A block's array with nothing in it."""
        layout = self.layouts[unit]
        parts = self.parts if buffer in RECORDS else 1
        return self.arithmetic.zeros((parts, layout.cluster.devices, layout.size(held)))

    def reset(self, buffer: Buffer, unit: int) -> None:
        """Nothing, on the side where the buffer's state rests; room for it, if it does."""
        rest = self.rests.get(buffer)
        host, held = rest is not None and rest.host, self.own(buffer, unit)
        block = self.read(buffer, unit, host)
        self.sides[buffer, unit] = host
        if rest is None or not rest.stored or (block and block.held == held):
            self.write(buffer, unit, host, (), None)
        elif self.parts or buffer not in RECORDS:
            self._place(buffer, unit, Block(self.empty(buffer, unit, held), held, host))

    def release(self, buffer: Buffer, unit: int) -> None:
        """Drop a buffer's block."""
        self.sides.pop((buffer, unit), None)
        self._drop(buffer, unit)

    def _drop(self, buffer: Buffer, unit: int) -> None:
        block = self.blocks.pop((buffer, unit), None)
        if block is not None and self.at_once:
            self.dropped.append((STATE_OF[buffer], block))
        elif block is not None:
            self.meter.add(STATE_OF[buffer], block.host, -block.array.shape[-1])

    def settle(self) -> None:
        """Drop what an operation on all units at once has dropped."""
        for state, block in self.dropped:
            self.meter.add(state, block.host, -block.array.shape[-1])
        self.dropped.clear()

    def _place(self, buffer: Buffer, unit: int, block: Block) -> None:
        """A new block, for which there is room before what it replaces is dropped."""
        self.meter.add(STATE_OF[buffer], block.host, block.array.shape[-1])
        self._drop(buffer, unit)
        self.blocks[buffer, unit] = block

    def write(
        self,
        buffer: Buffer,
        unit: int,
        host: bool,
        within: Slice,
        piece: Piece | None,
        parts: slice = ALL,
    ) -> None:
        """Write a value to the slice `within` of a buffer on one side; outside, it keeps its own.

        A resting buffer has room for its own slice only. No piece is nothing. In place where the
        buffer is there with room for it; otherwise in a new block of what is written and kept.
        """
        if buffer in RECORDS and not self.parts:
            self.sides[buffer, unit] = host
            return
        self.sides[buffer, unit] = host
        layout, here = self.layouts[unit], self.read(buffer, unit, host)
        region = meet(within, self.own(buffer, unit))
        support = None if piece is None or region is None else meet(region, piece.held)
        if here is None:
            if support is None:
                self._drop(buffer, unit)
        elif region is not None and support is None:
            layout.clear(here.array[parts], here.held, region)
        if piece is None or region is None or support is None:
            return
        fresh = piece.fresh or support != piece.held
        values = layout.take(piece.array, piece.held, support) if support != piece.held else piece.array
        if here is not None and covers(here.held, support) and not self.anew:
            if region != support:
                kept_apart = not np.may_share_memory(values, here.array)
                values = values if kept_apart else values.copy()
                layout.clear(here.array[parts], here.held, region)
            layout.put(here.array[parts], here.held, support, values)
            return
        replaced = here is None or (not region and parts == ALL)
        held = support if here is None or replaced else common(here.held, support)
        if fresh and replaced and parts == ALL:
            array = values
        else:
            array = self.empty(buffer, unit, held)
            if here is not None and not replaced:
                layout.put(array, held, here.held, here.array)
                layout.clear(array[parts], held, region)
            layout.put(array[parts], held, support, values)
        self._place(buffer, unit, Block(array, held, host))
