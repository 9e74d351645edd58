"""What the devices have in memory: blocks, and the meter of the room that they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psem_model.simulator.arithmetic import Array, Number, Poison
from psem_model.simulator.layout import Layout, Slice, common, covers, meet
from spec.language.schedule import (
    GRADIENT_BUFFERS,
    HOST_TRANSFERS,
    REDUCTIONS,
    RESTING,
    SCALARS,
    STATE_OF,
    Buffer,
    Kind,
    Op,
    Phase,
    Schedule,
    Span,
)
from spec.models.states import BytePolicy, State

RESTS = {STATE_OF[buffer]: buffer for buffer in RESTING}
RECORDS = (Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW)
ALL = slice(None)
NUMBER_BYTES = 4  # of a norm, or a count of tokens


@dataclass
class Block:
    """One unit of a buffer on all devices: `array` (parts, devices, size) has the slice `held`, and of
    what is outside nothing is known.

    An optimizer's parts are its weights, if it has a copy, and its moments; others have one part.
    It takes `elements` on each device, with room for the slice `room`: none for zeros not used yet.
    `copied`: elements of the copy in which gradients are summed, if there is one.
    """

    array: Array
    held: Slice
    host: bool
    room: Slice
    elements: int
    copied: int = 0


@dataclass(frozen=True)
class Piece:
    """A value to write: not known outside a slice. A fresh one's array is nobody else's.

    `room`: the slice that it takes room for, if that is another.
    """

    array: Array
    held: Slice
    fresh: bool = False
    room: Slice | None = None


class Meter:
    """Elements live in each buffer, on the device and on the host, and the fullest moment.

    Rows of a block have the same length on all devices, so that one number is every device's. What
    passes may have another type than what rests; `summed`: that of gradients on their way, `gathered`:
    that of parameters. What is quantised is there beside what is made of it, where views are gathered.
    """

    def __init__(self, policy: BytePolicy, gathers: bool = False) -> None:
        self.widths: dict[Buffer, Number] = {b: policy.of(s) for b, s in STATE_OF.items() if s in RESTS}
        fresh, self.summed, self.summed_in = policy.fresh, policy.bytes_summed, policy.summed_in
        self.widths |= {Buffer.FRESH: fresh, Buffer.TIED: fresh}
        self.makes_copies, self.copied = policy.copied or self.summed != fresh, 0
        quantised = policy.quantised if gathers and policy.quantised is not None else 0
        self.widths[Buffer.VIEW], self.gathered = policy.computed + quantised, policy.bytes_sent
        # of a copy of gradients on the host, which is added to, and whether it is of slices
        self.added, self.adds_slices = policy.added, True
        self.live = {host: dict.fromkeys(self.widths, 0) for host in (False, True)}
        self.peak: Number = 0
        self.gathering: Number = 0  # at the fullest moment, with what views are gathered in
        self.peak_parts = self.bytes(False)

    def bytes(self, host: bool) -> dict[State, Number]:
        """Bytes of each state on each device, or on its part of the host."""
        found: dict[State, Number] = dict.fromkeys(RESTS, 0)
        for buffer, n in self.live[host].items():
            found[STATE_OF[buffer]] += n * self.width(buffer, host)
        found[State.GRADIENTS] += 0 if host else self.copied * self.summed
        return found

    def width(self, buffer: Buffer, host: bool) -> Number:
        """Bytes of an element of a buffer, and of a copy of it."""
        is_copied = host and buffer is Buffer.GRADIENTS and self.adds_slices
        copied = self.added if is_copied else 0
        return self.widths[buffer] + copied

    def adds_back(self, op: Op) -> bool:
        """Whether what an operation of a micro-step brings to the host comes back to be added to."""
        is_kept = op.kind is Kind.OFFLOAD and op.phase is Phase.BACKWARD
        return bool(self.added) and is_kept and op.state is State.GRADIENTS

    def of_a_message(self, op: Op) -> Number:
        """Bytes of an element that an operation sends; 0 for what is not counted."""
        if op.target in SCALARS:
            return NUMBER_BYTES
        if self.adds_back(op):
            return self.added
        if op.kind in HOST_TRANSFERS and op.state in RESTS:  # they pass on what rests
            return self.widths[RESTS[op.state]]
        if op.target is Buffer.VIEW:
            return self.gathered if op.kind is Kind.ALL_GATHER else self.widths[Buffer.VIEW]
        is_summed = op.target in GRADIENT_BUFFERS and op.kind in REDUCTIONS
        has = self.widths.get(op.target, 0)
        return self.summed_in(op.axes, has) if is_summed else has

    def add(self, buffer: Buffer, block: Block) -> None:
        """There is a block more."""
        self.live[block.host][buffer] += block.elements
        self.copied += block.copied
        if block.elements > 0 and not block.host:
            total = sum(n * self.widths[b] for b, n in self.live[False].items())
            total += self.copied * self.summed
            if total > self.peak:
                self.peak, self.peak_parts = total, self.bytes(False)

    def note_views(self, elements: int) -> None:
        """There are so many elements of views, with what they are gathered in, and all else."""
        more = elements - self.live[False][Buffer.VIEW]
        total = sum(n * self.widths[b] for b, n in self.live[False].items()) + self.copied * self.summed
        self.gathering = max(self.gathering, total + more * self.widths[Buffer.VIEW])

    def take(self, buffer: Buffer, block: Block) -> None:
        """There is a block less."""
        self.live[block.host][buffer] -= block.elements
        self.copied -= block.copied


class Store:
    """All blocks, by buffer and unit. A buffer is on one side of the host link at a time."""

    def __init__(
        self,
        schedule: Schedule,
        layouts: Sequence[Layout],
        poison: Poison,
        policy: BytePolicy,
    ) -> None:
        self.layouts, self.poison = layouts, poison
        self.master = bool(policy.master and policy.k > 0)
        self.moments = poison.arithmetic.moments if policy.k > 0 else 0
        self.parts = self.master + self.moments
        self.rests = {buffer: schedule.rest(state) for state, buffer in RESTS.items()}
        made = {op.target: op.kind for op in schedule.ops if op.takes_room}  # by the last of them
        self.views = {view: made.get(view) is Kind.ALL_GATHER for view in schedule.start}
        self.meter = Meter(policy, made.get(Buffer.VIEW) is Kind.ALL_GATHER)
        self.left, self.left_on_host = schedule.sliced_by_update, schedule.hosts_updates
        self.pads_copies = policy.copied
        # bytes at once of copies of gradients that rest until they are summed
        self.most_copied: Number = 0
        self.gathered: list[int] = []  # elements of the views of a pass
        self.blocks: dict[tuple[Buffer, int], Block] = {}
        self.at_once = False  # whether what is dropped stays until all units are done
        self.anew = False  # whether results are new blocks, even where there is room
        self.dropped: list[tuple[Buffer, Block]] = []
        self.sides: dict[tuple[Buffer, int], bool] = {}
        sums = [buffer for buffer in schedule.sums if buffer not in SCALARS]
        self.unused = {(buffer, unit) for buffer in sums for unit in range(len(layouts))}  # zero yet

    def start(self, weights: Sequence[Array], moments: Sequence[Array]) -> None:
        """What stored resting copies hold: weights (1 or devices, elements) of each unit, and moments
        (how many, 1, elements). One row is every device's. Sums start at zero.
        """
        for unit, (row, beside) in enumerate(zip(weights, moments, strict=True)):
            of_each = np.broadcast_to(beside, (len(beside), *row.shape))
            record = np.concatenate((row[None], of_each)) if self.master else beside
            starts = {Buffer.PARAMETERS: row[None], Buffer.OPTIMIZER: record}
            for buffer, rest in self.rests.items():
                if rest.stored:
                    if self._parts(buffer):
                        self.reset(buffer, unit)
                    if buffer in starts:
                        self._begin(buffer, unit, rest.host, starts[buffer])
            for view, is_gathered in self.views.items():
                layout = self.layouts[unit]
                padding = layout.padded - layout.length if is_gathered else 0
                zeros = np.zeros((1, len(row), padding), row.dtype)
                self._begin(view, unit, False, np.concatenate((row[None], zeros), -1))

    def _begin(self, buffer: Buffer, unit: int, host: bool, parts: Array) -> None:
        devices = self.layouts[unit].cluster.devices
        each = np.broadcast_to(parts, (len(parts), devices, parts.shape[-1]))
        self.write(buffer, unit, host, (), Piece(each.copy(), (), fresh=True))

    def side(self, buffer: Buffer, unit: int) -> bool:
        """Whether a buffer is on the host."""
        return self.sides.get((buffer, unit), False)

    def own(self, buffer: Buffer, unit: int) -> Slice:
        """The slice that a buffer has room for: of a resting one, where it is sharded."""
        rest = self.rests.get(buffer)
        return self.layouts[unit].slice(rest.sharded) if rest else ()

    def read(self, buffer: Buffer, unit: int, host: bool = False) -> Block | None:
        """A buffer's block on one side, if there is anything there."""
        if not host and (buffer, unit) in self.unused:
            self._place(buffer, unit, Block(self.zeros(buffer, unit, ()), (), host, (), 0))
        block = self.blocks.get((buffer, unit))
        return block if block is not None and block.host is host else None

    def slab(self, buffer: Buffer, unit: int, host: bool, wanted: Slice) -> Array:
        """A buffer's elements of a slice (parts, devices, size), known or not."""
        block = self.read(buffer, unit, host)
        if block is None:
            return self.unknown(buffer, unit, wanted)
        return self.layouts[unit].take(block.array, block.held, wanted, self.poison)

    def unknown(self, buffer: Buffer, unit: int, held: Slice) -> Array:
        """A slice (parts, devices, size) of which nothing is known."""
        return self.layouts[unit].unknown(self._parts(buffer), held, self.poison)

    def zeros(self, buffer: Buffer, unit: int, held: Slice) -> Array:
        """A slice (parts, devices, size) of zeros."""
        layout = self.layouts[unit]
        shape = (self._parts(buffer), layout.cluster.devices, layout.size(held))
        return self.poison.arithmetic.zeros(shape)

    def _parts(self, buffer: Buffer) -> int:
        return self.parts if buffer in RECORDS else 1

    def reset(self, buffer: Buffer, unit: int) -> None:
        """Zero, on the side where the buffer's state rests. Only a resting one takes room for it."""
        rest, own = self.rests.get(buffer), self.own(buffer, unit)
        host = rest is not None and rest.host
        block = self.read(buffer, unit, host)
        if rest is not None and rest.stored and (block is None or block.room != own):
            zeros = self.zeros(buffer, unit, own)
            self.sides[buffer, unit] = host
            elements = self._left(buffer, unit, host, own, zeros.shape[-1])
            self._place(buffer, unit, Block(zeros, own, host, own, elements))
        else:
            self.clear(buffer, unit, host, ())

    def clear(self, buffer: Buffer, unit: int, host: bool, within: Slice) -> None:
        """Zero in a slice of a buffer on one side. A buffer that is not there takes no room for it."""
        self.sides[buffer, unit] = host
        here, region = self.read(buffer, unit, host), meet(within, self.own(buffer, unit))
        if region is None:
            return
        zeros = Piece(self.zeros(buffer, unit, region), region, fresh=True)
        if here is None:
            self._place(buffer, unit, Block(zeros.array, region, host, region, 0))
        else:
            here.array, here.held = self._merged(buffer, unit, here, zeros, region, ALL)

    def leave(self, buffer: Buffer, unit: int, held: Slice, host: bool) -> None:
        """Drop what a buffer has outside a slice, and the room for it; its reset takes that again.

        On one side of the host link, whichever it was on.
        """
        here = self.read(buffer, unit)
        if here is not None and covers(here.held, held):
            own = self.layouts[unit].take(here.array, here.held, held, self.poison)
            self._drop(buffer, unit)
            elements = self._left(buffer, unit, host, held, own.shape[-1])
            self._place(buffer, unit, Block(own, held, host, held, elements))
            self.sides[buffer, unit] = host

    def note_copy(self, op: Op, unit: int, within: Slice) -> None:
        """Gradients that rest are copied to be summed, if they are: with padding, or as they are."""
        layout = self.layouts[unit]
        if self.meter.makes_copies and op.kind in REDUCTIONS and op.source is Buffer.GRADIENTS:
            is_padded = self.pads_copies and not within and not layout.owners
            size = layout.padded if is_padded else layout.size(within)
            self.most_copied = max(self.most_copied, size * self.meter.summed)

    def note_gather(self, op: Op, unit: int, first: bool, ahead: int) -> None:
        """A view is copied from what it was gathered in, which stays for as many more as are ahead."""
        block = self.blocks.get((Buffer.VIEW, unit))
        if not ahead or block is None or (op.kind, op.target) != (Kind.ALL_GATHER, Buffer.VIEW):
            return
        self.gathered = [*([] if first else self.gathered), block.elements]
        views = self.gathered if op.span is Span.ALL_UNITS else self.gathered[-1:]
        self.meter.note_views(sum(views) + sum(self.gathered[-1 - ahead :]))

    def leave_slices(self) -> None:
        """Slices alone are left of gradients that are whole until they are summed."""
        for unit, layout in enumerate(self.layouts if self.left else ()):
            self.leave(Buffer.GRADIENTS, unit, layout.slice(self.left), self.left_on_host)

    def take_whole(self) -> None:
        """Room for all of the gradients, zero, where slices were left: those go first."""
        for unit in range(len(self.layouts) if self.left else 0):
            self._drop(Buffer.GRADIENTS, unit)
            self.reset(Buffer.GRADIENTS, unit)

    def resting(
        self, host: bool, unpadded: frozenset[State], devices: slice = ALL
    ) -> dict[State, Number]:
        """Bytes of each state on the first of some devices, or on its part of the host."""
        found = self.meter.bytes(host)
        padding: dict[Buffer, Array] = {}  # on each device, in slices of what has none
        for (buffer, unit), block in self.blocks.items():
            layout = self.layouts[unit]
            is_own = buffer in RESTING and (layout.owners or STATE_OF[buffer] in unpadded)
            is_there = block.host is host and (block.room or buffer is Buffer.PARAMETERS)
            if is_own and is_there and self.rests[buffer].stored:
                more = block.elements - layout.rests(block.room)[devices]
                padding[buffer] = padding.get(buffer, 0) + more
        for buffer, more in padding.items():
            found[STATE_OF[buffer]] -= int(more.min()) * self.meter.width(buffer, host)
        return found

    def release(self, buffer: Buffer, unit: int) -> None:
        """Drop a buffer's block."""
        self.sides.pop((buffer, unit), None)
        self._drop(buffer, unit)

    def _drop(self, buffer: Buffer, unit: int) -> None:
        self.unused.discard((buffer, unit))
        block = self.blocks.pop((buffer, unit), None)
        if block is not None and self.at_once:
            self.dropped.append((buffer, block))
        elif block is not None:
            self.meter.take(buffer, block)

    def settle(self) -> None:
        """Drop what an operation on all units at once has dropped."""
        for buffer, block in self.dropped:
            self.meter.take(buffer, block)
        self.dropped.clear()

    def _left(self, buffer: Buffer, unit: int, host: bool, room: Slice, elements: int) -> int:
        """Elements that a block takes: of all units as one vector, what others leave of a slice."""
        most = self.layouts[unit].most(room)
        if most is None:
            return elements
        others = (
            block.elements
            for (of, other), block in self.blocks.items()
            if of is buffer and other != unit and block.host is host and block.room
        )
        return max(0, min(elements, most - sum(others)))

    def _place(self, buffer: Buffer, unit: int, block: Block) -> None:
        """A new block, for which there is room before what it replaces is dropped."""
        self.meter.add(buffer, block)
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

        A resting buffer has room for its own slice only. No piece: a value that is not known. In the
        same room where there is enough; otherwise in a new block of what is written and kept.
        """
        self.sides[buffer, unit] = host
        if buffer in RECORDS and not self.parts:
            return
        layout, here = self.layouts[unit], self.read(buffer, unit, host)
        region = meet(within, self.own(buffer, unit))
        support = None if piece is None or region is None else meet(region, piece.held)
        if piece is None or support is None:
            if here is None:
                self._drop(buffer, unit)
            elif region is not None:
                layout.forget(here.array[parts], here.held, region, self.poison)
            return
        assert region is not None
        needed = None if piece.room is None else meet(region, piece.room)
        needed = support if needed is None else needed
        if support != piece.held:
            taken = layout.take(piece.array, piece.held, support, self.poison)
            piece = Piece(taken, support, fresh=True, room=piece.room)
        array, held = self._merged(buffer, unit, here, piece, region, parts)
        if here and here.elements and covers(here.room, needed) and not self.anew:
            here.array, here.held = array, held
            return
        replaced = here is None or not here.elements or (not region and parts == ALL)
        room = needed if here is None or replaced else common(here.room, needed)
        as_is = piece.fresh and replaced and parts == ALL and needed == support
        elements = piece.array.shape[-1] if as_is else layout.size(room)
        elements = self._left(buffer, unit, host, room, elements)
        copied = 0
        if buffer in (Buffer.FRESH, Buffer.TIED) and self.meter.makes_copies and not host:
            is_padded = self.pads_copies and not room and not layout.owners
            copied = layout.padded if is_padded else elements
        self._place(buffer, unit, Block(array, held, host, room, elements, copied))

    def _merged(
        self, buffer: Buffer, unit: int, here: Block | None, piece: Piece, region: Slice, parts: slice
    ) -> tuple[Array, Slice]:
        """What a block has, and of which slice, once a piece is all that is known in a region."""
        values = piece.array
        its_own = here is not None and np.may_share_memory(values, here.array)
        if parts == ALL and (here is None or covers(region, here.held)):
            return values if piece.fresh or its_own else values.copy(), piece.held
        layout = self.layouts[unit]
        if here is None:
            held, array = piece.held, self.unknown(buffer, unit, piece.held)
        else:
            held = common(here.held, piece.held)
            array = layout.take(here.array, here.held, held, self.poison)
        if region != piece.held:
            values = values.copy() if its_own else values
            layout.forget(array[parts], held, region, self.poison)
        layout.put(array[parts], held, piece.held, values)
        return array, held
