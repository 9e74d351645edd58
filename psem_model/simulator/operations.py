"""What each operation does to the devices' memories, unit by unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from psem_model.simulator import network as ring
from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.layout import Group, Slice, meet
from psem_model.simulator.models import STATISTICS, Backward, Data, Model
from psem_model.simulator.network import Network
from psem_model.simulator.passes import Pass, Turn
from psem_model.simulator.rests import PADDED, Cut, Rests
from psem_model.simulator.store import ALL, RECORDS, Block, Piece, Store
from spec.language.schedule import (
    GRADIENT_BUFFERS,
    HOST_TRANSFERS,
    NUMBERS,
    REDUCTIONS,
    RESTING,
    STATE_OF,
    Buffer,
    Kind,
    Monomial,
    Op,
    Phase,
    Schedule,
)
from spec.models.states import BytePolicy, State

NOTHING = slice(0, 0)
CONTENT = slice(0, 1)  # an optimizer's weights, where it has a copy


@dataclass(frozen=True)
class Activations:
    """One unit's, of every device's samples, each device's own along the axes not gathered."""

    rows: Array
    host: bool = False
    gathered: frozenset[str] = frozenset()


class Executor:
    """Executes a schedule's passes on a store, over a network."""

    def __init__(
        self,
        schedule: Schedule,
        micro_steps: int,
        cuts: Sequence[Cut],
        model: Model,
        data: Data,
        policy: BytePolicy,
        rests: Rests = PADDED,
    ) -> None:
        self.schedule, self.micro_steps = schedule, micro_steps
        self.model, self.data = model, data
        self.arithmetic, self.cluster = data.arithmetic, data.cluster
        self.layouts = [unit.layout(data.cluster, schedule.cut) for unit in cuts]
        adds_back = micro_steps > 1 and schedule.rest(State.GRADIENTS).host
        policy = policy if adds_back else replace(policy, added=0)
        self.store = Store(schedule, self.layouts, data.unknown, policy)
        self.network = Network(self.cluster.devices)
        self.activations: dict[int, Activations] = {}
        self.rests = rests
        self.touched: int | None = None  # elements of weights that are brought back whole, if they are
        self.buckets: dict[int, Array] = {}  # copies of gradients, in which they are reduced
        self.numbers: dict[Buffer, Array] = {  # (devices, how many); sums start at zero
            buffer: self._zero_number(buffer)
            for buffer in NUMBERS
            if buffer is Buffer.STATISTICS or buffer in schedule.sums
        }
        self.step, self.micro_step, self.first = 0, 0, True
        self._execute: dict[Kind, Callable[[Op, int], None]] = {
            Kind.ALL_GATHER: self._collective,
            Kind.REDUCE_SCATTER: self._collective,
            Kind.ALL_REDUCE: self._collective,
            Kind.BROADCAST: self._collective,
            Kind.FETCH: self._copy,
            Kind.OFFLOAD: self._copy,
            Kind.KEEP: self._copy,
            Kind.RECOMPUTE: self._recompute,
            Kind.FORWARD: self._forward,
            Kind.BACKWARD: self._backward,
            Kind.ACCUMULATE: self._accumulate,
            Kind.SCALE: self._scale,
            Kind.DIVIDE: self._scale,
            Kind.CLIP: self._scale,
            Kind.SQUARE_NORM: self._square_norm,
            Kind.UPDATE: self._update,
            Kind.RESET: self._reset,
            Kind.ZERO: self._zero,
            Kind.RELEASE: self._release,
        }

    def execute(self, work: Pass, step: int) -> None:
        """All operations of a pass for one unit, then for the next."""
        _ = [*self.one_by_one(work, step)]

    def one_by_one(self, work: Pass, step: int) -> Iterator[None]:
        """The same, an operation at a time. Views of the units that follow may be made before."""
        self.step = step
        each = range(len(self.layouts))
        back = work.descending and self.model.in_layers
        units = each[:1] if work.once else each[::-1] if back else each
        gathers = work.gathers if self.rests.ahead else 0
        made = 0  # how many units have their views
        for i, unit in enumerate(units):
            while gathers and made < min(i + 1 + self.rests.ahead, len(units)):
                for turn in work.turns[:gathers]:
                    self._take_turn(turn, work, units[made], made == 0)
                    yield
                made += 1
            for turn in work.turns[gathers:]:
                self._take_turn(turn, work, unit, i == 0)
                yield
        self.store.settle()

    def _take_turn(self, turn: Turn, work: Pass, unit: int, first: bool) -> None:
        """An operation on a unit, and the buffers dropped that nothing uses after it."""
        op, self.micro_step, self.first = turn.op, turn.micro_step, first
        width = self.store.meter.of_a_message(op)
        self.network.serve(turn.key, op.target is not Buffer.STATISTICS, width)
        self.store.at_once, self.store.anew = turn.at_once, op.takes_room
        if work.once:
            self._number(op)
        else:
            self._execute[op.kind](op, unit)
            if (
                op.takes_room
                and op.target in RECORDS
                and (op.kind is Kind.ZERO or op.source not in RECORDS)
            ):
                moments = slice(int(self.store.master), None)  # are not made anew with the weights
                self.store.write(op.target, unit, False, self._within(op, unit), None, moments)
        for buffer, self.store.at_once in turn.done:
            for each in range(len(self.layouts)) if work.once else (unit,):
                self.store.release(buffer, each)

    @property
    def bucket_bytes(self) -> Number:
        """Bytes of copies of gradients, in which each device reduces them."""
        elements = sum(bucket[0, 0].size for bucket in self.buckets.values())
        return elements * self.store.meter.widths[Buffer.FRESH]

    # ------------------------------------------------------------ collectives
    def _within(self, op: Op, unit: int) -> Slice:
        return self.layouts[unit].slice(op.within, op.shift)

    def _parts(self, op: Op) -> tuple[slice, slice]:
        """The parts of a record that an operation reads and writes."""
        content = CONTENT if self.store.master else NOTHING
        records = op.source in RECORDS, op.target in RECORDS
        reads = content if records == (True, False) else ALL
        return reads, content if records == (False, True) else ALL

    def _collective(self, op: Op, unit: int) -> None:
        if op.source is Buffer.ACTIVATIONS:
            held = self.activations.pop(unit, None)
            if held and not held.host:
                self.activations[unit] = replace(held, gathered=held.gathered | {*op.axes})
            return
        reads, writes = self._parts(op)
        if writes == NOTHING:
            return
        within, piece = self._within(op, unit), None
        block = self.store.read(op.source, unit)
        mixed = self.cluster.along({*op.axes} & {*op.within})  # different elements would be summed
        if block is not None and reads != NOTHING and not mixed:
            piece = self._collected(op, unit, Piece(block.array[reads], block.held), within)
        self.store.write(op.target, unit, False, within, piece, writes)
        self.store.note_gather(op, unit, self.first, self.rests.ahead)

    def _collected(self, op: Op, unit: int, has: Piece, within: Slice) -> Piece:
        """What a collective leaves on each device of its slice."""
        layout, group = self.layouts[unit], self.cluster.group(op.axes)
        own = layout.slice(op.within + op.axes, op.shift)
        sizes = self._sent(op, unit, own)
        if op.kind is Kind.ALL_GATHER and op.axes:
            chunks = ring.all_gather(self._take(unit, has, own), group, self.network, sizes)
            return Piece(layout.join(chunks, within, op.axes, op.shift), within, fresh=True)
        rows = has.array if has.held == within else self._take(unit, has, within)
        if self.rests.copies and op.kind in REDUCTIONS and op.source in GRADIENT_BUFFERS:
            rows = self._into_bucket(unit, rows[..., : layout.size(within)])
        self.store.note_copy(op, unit, within)
        if op.kind is Kind.REDUCE_SCATTER and op.axes:
            chunks = layout.split(rows, within, op.axes, op.shift)
            return Piece(self._reduced(op, chunks, group, sizes), own, fresh=True)
        rows = rows[..., : layout.size(within)]
        if group.size == 1:
            return Piece(rows, within)
        if op.kind is Kind.BROADCAST:
            return Piece(ring.broadcast(rows, group, self.network), within, fresh=True)
        if layout.owners or not {*op.axes, *op.within} & {*layout.cut}:  # rows, not cells of them
            summed = ring.summed(rows, group, self.arithmetic.add, self.network, sizes)
            return Piece(ring.averaged(op, summed, group, self.arithmetic), within, fresh=True)
        chunks = layout.split(rows, within, op.axes)
        parts = layout.cut_cells(chunks, group.size // chunks.shape[2])
        summed = self._reduced(op, parts, group)
        whole = layout.join_cells(ring.all_gather(summed, group, self.network), chunks.shape)
        everyone = layout.join(whole, within, op.axes)[..., : rows.shape[-1]]
        return Piece(everyone, within, fresh=True)

    def _sent(self, op: Op, unit: int, own: Slice) -> Array | None:
        """Elements of each device's own chunk, where slices are whole weights; none: all are sent."""
        layout, within = self.layouts[unit], self._within(op, unit)
        if not layout.owners:
            return None
        if op.kind is Kind.ALL_REDUCE:  # weight by weight, where a device has its own alone
            return layout.in_parts(within, self.cluster.group(op.axes).size) if within else None
        sizes = layout.rests(own) if op.kind is Kind.ALL_GATHER else layout.known(own)
        if self.rests.fills and op.phase is Phase.PUBLISH and unit == 0:
            every = sum(each.rests(each.slice(op.within + op.axes)) for each in self.layouts)
            return np.asarray(sizes + (every == 0))
        return sizes

    def _into_bucket(self, unit: int, rows: Array) -> Array:
        """A copy of a unit's gradients, for which there is room from the first time on."""
        bucket = self.buckets.get(unit)
        if bucket is None or bucket.shape[-1] < rows.shape[-1]:
            bucket = self.buckets[unit] = np.empty_like(rows)
        copied = bucket[..., : rows.shape[-1]]
        copied[...] = rows
        return copied

    def _reduced(self, op: Op, chunks: Array, group: Group, sizes: Array | None = None) -> Array:
        partial = ring.reduce_scatter(chunks, group, self.arithmetic.add, self.network, sizes)
        return ring.averaged(op, partial, group, self.arithmetic)

    # ----------------------------------------------------------------- copies
    def _copy(self, op: Op, unit: int) -> None:
        crosses = op.kind in HOST_TRANSFERS
        if op.source is Buffer.ACTIVATIONS:
            held = self.activations.pop(unit, None)
            if held and held.host is (op.kind is Kind.FETCH):
                self.activations[unit] = replace(held, host=not held.host)
            return
        here = op.kind is Kind.FETCH if crosses else self.store.side(op.source, unit)
        there = here is not crosses
        reads, writes = self._parts(op)
        if writes == NOTHING:
            return
        within, piece = self._within(op, unit), None
        block = self.store.read(op.source, unit, here)
        if block is not None and reads != NOTHING:
            piece = Piece(block.array[reads], block.held, room=block.room)
            wanted = meet(within, self.store.own(op.target, unit))
            moved = None if wanted is None else meet(wanted, block.room)
            if crosses and moved is not None:
                self._to_host(op, unit, moved)
        self.store.write(op.target, unit, there, within, piece, writes)

    def _to_host(self, op: Op, unit: int, moved: Slice) -> None:
        """Over the host link go a device's own elements, if it has no others on the host."""
        layout = self.layouts[unit]
        is_own = moved and (layout.owners or op.state in self.rests.unpadded)
        elements = layout.rests(moved) if is_own else layout.size(moved)
        is_brought = self.store.meter.adds_back(op)
        brought = elements if self.touched is None else self.touched * (unit == 0)
        self.network.to_host(brought if is_brought else elements)
        if is_brought:
            if self.micro_step:
                self.network.to_host(brought, "back", self.store.meter.added)
            if self.micro_step == self.micro_steps - 1:  # once more, as they rest
                self.network.to_host(elements, "at last", self.store.meter.widths[Buffer.GRADIENTS])

    def _recompute(self, op: Op, unit: int) -> None:
        if op.target is Buffer.ACTIVATIONS:
            self._forward(op, unit)
        elif op.source is op.target is Buffer.OPTIMIZER:
            host, within = self.schedule.rest(State.PARAMETERS).host, self._within(op, unit)
            record = self.store.unknown(op.target, unit, within)
            if self.store.master:
                record[CONTENT] = self.store.slab(Buffer.PARAMETERS, unit, host, within)
            self.store.write(op.target, unit, host, within, Piece(record, within, fresh=True))
        else:
            self._copy(op, unit)

    # ------------------------------------------------------------------ model
    def _view(self, op: Op, unit: int) -> Array:
        """A unit's parameters as a device reads them (devices, elements)."""
        view: Array = self.store.slab(op.source, unit, False, ())[0]
        return view

    def _forward(self, op: Op, unit: int) -> None:
        again = op.kind is Kind.RECOMPUTE
        run = self.model.recompute if again else self.model.forward
        rows = run(unit, self._view(op, unit), self.step, self.micro_step)
        if again or self.schedule.rest(State.ACTIVATIONS).stored:
            self.activations[unit] = Activations(rows)
        if self.first and self.schedule.training.statistics and not again:
            seen = self.data.statistic(self.step, self.micro_step)
            had = self._read(Buffer.STATISTICS)
            self.numbers[Buffer.STATISTICS] = self.arithmetic.add(had, seen)

    def _backward(self, op: Op, unit: int) -> None:
        held = self.activations.pop(unit, Activations(np.empty(0), host=True))
        own = self.cluster.along(self.schedule.rest(State.ACTIVATIONS).sharded)
        lacking = any(axis in own and axis not in held.gathered for axis in op.axes)
        rows = None if held.host or lacking else held.rows
        when, view = (self.step, self.micro_step), self._view(op, unit)
        gradients = self.model.backward(Backward(unit, view, rows, when, op.axes, held.gathered))
        within = self._within(op, unit)
        gradient, *tied = (Piece(g[None], (), fresh=True) for g in gradients)
        for piece in tied:
            self.store.write(Buffer.TIED, unit, False, within, piece)
        if op.target is Buffer.GRADIENTS:
            self._add(op.target, unit, False, within, gradient)
        else:
            self.store.write(op.target, unit, False, within, gradient)

    # -------------------------------------------------------------- gradients
    def _add(self, target: Buffer, unit: int, host: bool, within: Slice, piece: Piece) -> None:
        """Add a value to a slice of a buffer, of what it has on one side."""
        here, total = self.store.read(target, unit, host), None
        part = None if here is None else meet(here.held, piece.held)
        part = None if part is None else meet(part, within)
        if here is not None and part is not None:
            terms = (self._take(unit, term, part) for term in (here, piece))
            total = Piece(self.arithmetic.add(*terms), part, fresh=True, room=piece.room)
        self.store.write(target, unit, host, within, total)

    def _take(self, unit: int, has: Block | Piece, wanted: Slice) -> Array:
        """The elements of a slice (parts, devices, size), known or not."""
        return self.layouts[unit].take(has.array, has.held, wanted, self.data.unknown)

    def _accumulate(self, op: Op, unit: int) -> None:
        rests = op.target is Buffer.GRADIENTS
        at_rest = self.schedule.rest(State.GRADIENTS).host
        host = at_rest if rests else self.store.side(op.source, unit)
        source = self.store.read(op.source, unit, host)
        if source is not None:
            piece = Piece(source.array, source.held, room=source.room)
            self._add(op.target, unit, host, self._within(op, unit), piece)
        else:
            self.store.write(op.target, unit, host, self._within(op, unit), None)

    def _scale(self, op: Op, unit: int) -> None:
        host, within = self.store.side(op.source, unit), self._within(op, unit)
        if isinstance(op.by, Monomial) and not op.by.number:
            self.store.clear(op.source, unit, host, within)
            return
        if op.kind is Kind.DIVIDE and not self._number_of(op).all():
            self.store.write(op.source, unit, host, within, None)
            return
        block = self.store.read(op.source, unit, host)
        part = None if block is None else meet(block.held, within)
        if block is None or part is None:
            return
        factor = self._factor(op)
        if part == block.held:
            block.array = self.arithmetic.mul(block.array, factor)
        else:
            scaled = self.arithmetic.mul(self._take(unit, block, part), factor)
            self.layouts[unit].put(block.array, block.held, part, scaled)

    def _factor(self, op: Op) -> Array:
        """What each device multiplies its gradient by (devices, 1)."""
        if isinstance(op.by, Monomial):
            value = self.arithmetic.number(op.by.at(self.cluster.sizes, self.micro_steps))
            return np.full((1, 1), value, self.arithmetic.dtype)
        number = self._number_of(op)
        if op.kind is Kind.CLIP:
            return self.arithmetic.clip_factor(number)
        return self.arithmetic.reciprocal(number)

    def _number_of(self, op: Op) -> Array:
        """What each device divides or clips by (devices, 1)."""
        assert isinstance(op.by, Buffer)
        return self._read(op.by)

    def _square_norm(self, op: Op, unit: int) -> None:
        if self.first:
            self.numbers[op.target] = self._zero_number(op.target)
        side = self.store.side(op.source, unit)
        rest = self.schedule.slices(op.source)
        room = self.layouts[unit].slice(tuple(a for a in rest if a not in op.within))
        own = self.store.slab(op.source, unit, side, meet(self._within(op, unit), room) or ())[0]
        squares = self.arithmetic.total(self.arithmetic.mul(own, own), 1, keepdims=True)
        self.numbers[op.target] = self.arithmetic.add(self._read(op.target), squares)

    # ----------------------------------------------------------------- update
    def _update(self, op: Op, unit: int) -> None:
        """The weights are the optimizer's own copy, if it has one, else the resting parameters."""
        store, theta = self.store, self.schedule.rest(State.PARAMETERS)
        omega = self.schedule.rest(State.OPTIMIZER)
        host = (omega if omega.stored else theta).host and op.target is Buffer.OPTIMIZER
        within = self._within(op, unit)
        gradient = store.slab(op.source, unit, host, within)[0]
        record = store.slab(op.target, unit, host, within)
        weight = record[0] if store.master else store.slab(Buffer.PARAMETERS, unit, host, within)[0]
        moments = record[int(store.master) :]
        weight, moments = self.arithmetic.next(weight, moments, gradient, self.step)
        record = np.concatenate((weight[None], moments)) if store.master else moments
        store.write(op.target, unit, host, within, Piece(record, within, fresh=True))
        if theta.stored and theta.host is host:
            store.write(Buffer.PARAMETERS, unit, host, within, Piece(weight[None], within, fresh=True))

    def _reset(self, op: Op, unit: int) -> None:
        if op.within:
            host = op.target in RESTING and self.schedule.rest(STATE_OF[op.target]).host
            self.store.clear(op.target, unit, host, self._within(op, unit))
        else:
            self.store.reset(op.target, unit)

    def _zero(self, op: Op, unit: int) -> None:
        within, writes = self._within(op, unit), ALL
        if op.target in RECORDS:
            writes = CONTENT if self.store.master else NOTHING
        zeros = Piece(self.store.zeros(op.target, unit, within)[writes], within, fresh=True)
        self.store.write(op.target, unit, False, within, zeros, writes)

    def _release(self, op: Op, unit: int) -> None:
        if op.target is Buffer.ACTIVATIONS:
            self.activations.pop(unit, None)
        else:
            self.store.release(op.target, unit)

    # ---------------------------------------------------------------- numbers
    def _zero_number(self, buffer: Buffer) -> Array:
        width = STATISTICS if buffer is Buffer.STATISTICS else 1
        return self.arithmetic.zeros((self.cluster.devices, width))

    def _read(self, buffer: Buffer) -> Array:
        """A number that each device has (devices, how many), known or not."""
        found = self.numbers.get(buffer)
        return self.data.unknown(self.cluster.devices, 1) if found is None else found

    def _number(self, op: Op) -> None:
        """An operation on a number of each device."""
        assert op.source in NUMBERS
        group = self.cluster.group(op.axes)
        if op.kind is Kind.COUNT:
            counts = self.data.tokens(self.step, self.micro_step)
            self.numbers[op.target] = self.cluster.total(counts, op.axes, self.arithmetic)
        elif op.kind is Kind.ACCUMULATE:
            both = self.arithmetic.add(self._read(op.target), self._read(op.source))
            self.numbers[op.target] = both
        elif op.kind is Kind.RESET:
            self.numbers[op.target] = self._zero_number(op.target)
        elif op.kind is Kind.RELEASE:
            self.numbers.pop(op.target, None)
        elif op.source in self.numbers:
            number = self.numbers[op.source]
            self.numbers[op.target] = ring.moved(op, number, group, self.arithmetic, self.network)
