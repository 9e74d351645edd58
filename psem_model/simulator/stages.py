"""The devices of a pipeline's stage: they execute programs on weights that schedules place.

Programs say what each device computes and what it moves for that; schedules, where weights, gradients
and optimizer state rest, and over which devices gradients are summed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

import numpy as np

from psem_model.simulator.arithmetic import Array, Number
from psem_model.simulator.blocks import Block
from psem_model.simulator.lines import Devices, Values
from psem_model.simulator.placed import Placed
from psem_model.simulator.placeholders import Placeholders
from psem_model.simulator.slices import Slices, in_order
from psem_model.simulator.tables import Key, Moment, TransformerTables
from spec.models.states import State
from spec.models.transformer import EMBEDDING, HEAD, LAYER, is_layer, is_turned
from spec.models.values import FULL, Value
from spec.pipelines.pipeline import Half, Work

READ_BY = {EMBEDDING: "tokens", HEAD: "next_words"}
SAMPLES = "samples"
COUNT = np.zeros(1, np.float32)  # of the tokens that a loss is the mean of


@dataclass(frozen=True)
class Kept:
    """What is kept of samples, if anything. `width`: bytes of a cosine, or a sine.

    `at_once`: tokens of all micro-batches are one array, which a chunk keeps as long as it keeps any.
    `given`: what layers are given, too; `in_kernel`: attention is one kernel, which takes `masks`.
    """

    anything: bool = False
    at_once: bool = False
    width: Number = 0
    given: bool = False
    in_kernel: bool = False
    masks: bool = False

    def of_chunk(self, blocks: Iterable[Block]) -> Number:
        """Bytes on a device, of one micro-batch in one chunk."""
        if not self.anything:
            return 0
        blocks = [*blocks]
        found = {_turned_alike(block) or block.name: block for block in blocks}
        tokens = 0 if self.at_once else self._of_tokens(found)
        mask = max(map(self._of_mask, found.values()), default=0)  # of all layers
        places = sum(self._of_places(block) for block in found.values())
        return tokens + mask + places + self._of_given([b for b in blocks if is_layer(b.name)])

    def of_step(self, blocks: Iterable[Block], micro_batches: int) -> Number:
        """Bytes on a device, of all micro-batches at once."""
        if not self.at_once:
            return 0
        return micro_batches * self._of_tokens({block.name: block for block in blocks})

    @staticmethod
    def _of_tokens(blocks: dict[str, Block]) -> Number:
        return sum(_tokens(block).nbytes for block in blocks.values() if block.name in READ_BY)

    def _of_mask(self, block: Block) -> Number:
        """Bytes of the mask that layers share."""
        tables = block.devices.tables
        if not (isinstance(tables, TransformerTables) and is_layer(block.name)):
            return 0
        size = _samples(block) * prod(tables.shape("grsu"))
        return size * self.width if tables.model.shares_mask else 0

    def _of_given(self, layers: list[Block]) -> Number:
        """Bytes of arrays that some layers are given beside what they take, each once."""
        tables = layers[0].devices.tables if layers else None
        if not (isinstance(tables, TransformerTables) and self.given):
            return 0
        told = layers if self.masks or not self.in_kernel else []
        masks = {tables.model.window(layer.layer): self._mask(layer, tables) for layer in told}
        size = sum(mask.size * (1 if mask.dtype == bool else self.width) for mask in masks.values())
        return size + self._beside_masks(_samples(layers[0]), tables)

    def _mask(self, layer: Block, tables: TransformerTables) -> Array:
        """What says which pairs of tokens attention leaves out: of no size, if nothing does."""
        model, samples, tokens = tables.model, _samples(layer), tables.sizes["s"]
        left_out = tables.causal(layer.layer)
        if model.shares_mask:  # it is there already
            return left_out[:0]
        if not self.in_kernel or model.distances:
            heads = left_out if model.unread_angles else left_out.reshape(-1, tokens, tokens)[0]
            return np.broadcast_to(heads, (samples, *heads.shape))
        is_given = model.masked or model.numbered_heads or 0 < model.window(layer.layer) <= tokens
        known = np.zeros((samples if model.chunked else 1, *left_out.shape), bool)
        return known if is_given else known[:0]

    def _beside_masks(self, samples: int, tables: TransformerTables) -> Number:
        """Bytes of numbers of places, of distances, and of angles that nothing reads."""
        model, places = tables.model, np.arange(tables.sizes["s"], dtype=np.int64)
        falling = np.zeros((samples, *tables.shape("gr"), len(places)) if model.distances else 0)
        unread = [table.size for table in tables.turns()] if model.unread_angles else []
        size = (falling.size + 2 * sum(unread)) * self.width
        if model.positions:
            return size + (samples * places.nbytes if model.spare else 0)
        return size + (places.nbytes if model.turned or model.unread_angles else 0)

    def _of_places(self, block: Block) -> Number:
        tables = block.devices.tables
        if not isinstance(tables, TransformerTables):
            return 0
        if is_turned(block.name) and tables.model.turned:
            width = FULL if tables.model.angles_in_full else self.width
            times = 1 if tables.model.paired_angles else 2  # for both of a pair, or for each
            return sum(times * table.size for table in tables.turns()) * width
        if block.name == EMBEDDING and tables.model.positions:
            each = _samples(block) if tables.model.spare else 1  # counted for each sample
            return np.zeros((each, tables.sizes["s"]), np.int64).nbytes
        return COUNT.nbytes if block.name == HEAD else 0


def _turned_alike(block: Block) -> str:
    """What layers with the same cosines and sines share: those of all kinds, or that have a window."""
    tables = block.devices.tables
    if not (is_turned(block.name) and isinstance(tables, TransformerTables)):
        return ""
    has_window = tables.model.angles_of_windows and tables.model.window(block.layer)
    return f"{LAYER} with a window" if has_window else LAYER


def _samples(block: Block) -> int:
    """How many samples a device has."""
    gives = block.program.gives
    where = block.devices.grid.where(("b",), block.program.lies[gives])
    return int(where["b"].shape[1])


def _tokens(block: Block) -> Array:
    """The numbers of the tokens that a device reads."""
    lies, name = block.program.lies, READ_BY[block.name]
    value = next(value for value in lies if value.plain_name == name)
    where = block.devices.grid.where(("b", "s"), lies[value])
    return np.zeros(prod(at.shape[1] for at in where.values()), np.int64)


NOT_KEPT = Kept()


@dataclass
class Room:
    """Bytes that parts keep from forward to backward, on each device or on its part of the host.

    `held`, `peak`: now and at most, by the name of the part; `fullest`: at most, of all together.
    """

    held: dict[str, Number] = field(default_factory=dict)
    peak: dict[str, Number] = field(default_factory=dict)
    fullest: Number = 0

    def add(self, name: str, size: Number) -> None:
        self.held[name] = self.held.get(name, 0) + size
        self.peak[name] = max(self.peak.get(name, 0), self.held[name])
        self.fullest = max(self.fullest, sum(self.held.values()))


@dataclass
class Stage:
    """Devices that have some of the parts, in chunks, and what they hold.

    `weights`: as forward, or backward, of a chunk reads them, and none between. `offloads`: what a part
    keeps goes to the host after its forward, and comes back for its backward; numbers of
    `samples` stay.
    """

    number: int
    devices: Devices
    chunks: list[list[Block]]
    orders: list[Work]
    offloads: bool = False
    samples: Kept = NOT_KEPT
    weights: dict[Key, Slices] = field(default_factory=dict)
    kept: dict[tuple[int, int], list[Values]] = field(default_factory=dict)
    held: dict[tuple[int, int], list[Values]] = field(default_factory=dict)
    losses: dict[int, Slices] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    placeholders: Placeholders | None = None  # if there are any
    room: Room = field(default_factory=Room)
    host: Room = field(default_factory=Room)
    numbers: Room = field(default_factory=Room)  # of samples, where what parts keep is on the host
    in_flight: Counter[int] = field(default_factory=Counter)  # micro-batches of each chunk
    to_sum: Counter[int] = field(default_factory=Counter)  # backwards left, of chunks that have begun
    together: set[frozenset[int]] = field(default_factory=set)  # such chunks, moment by moment

    def start(self) -> dict[Key, Slices]:
        """Each weight's slice, once, however many parts read it."""
        found = {}
        for block in (block for chunk in self.chunks for block in chunk):
            for weight in block.program.part.weights:
                table = self.devices.tables.weight(weight.name, weight.indices, block.layer)
                lies = block.program.lies[weight]
                found[block.layer, weight.name] = self.devices.place(weight, lies, table)
        for block in (block for chunk in self.chunks for block in chunk if is_layer(block.name)):
            self._replace(block, {w: found[block.layer, w.name] for w in block.program.part.weights})
        return found

    def _replace(self, block: Block, weights: dict[Value, Slices]) -> None:
        """Placeholders of a part's gradients. As if a run went on, layers' are there at once."""
        if self.placeholders:
            self.placeholders.take(block, weights)

    def keys(self, chunk: int) -> set[Key]:
        """The weights of a chunk."""
        blocks = self.chunks[chunk]
        return {(block.layer, w.name) for block in blocks for w in block.program.part.weights}

    def of(self, block: Block) -> dict[Value, Slices]:
        """The weights of a part."""
        return {w: self.weights[block.layer, w.name] for w in block.program.part.weights}

    def hold(self, block: Block, made: Values) -> Values:
        """What forward leaves for backward, where it is kept."""
        self.room.add(block.name, block.bytes_kept(made))
        return self._moved(block, made, self.room, self.host) if self.offloads else made

    def take(self, block: Block, kept: Values) -> Values:
        """What is kept, on the devices."""
        return self._moved(block, kept, self.host, self.room) if self.offloads else kept

    def _moved(self, block: Block, values: Values, leaves: Room, enters: Room) -> Values:
        """Over the host link: there is room on the other side before any is free on this."""
        found = block.over_host_link(values, enters is self.host)
        enters.add(block.name, block.bytes_kept(found))
        leaves.add(block.name, -block.bytes_kept(values))
        return found

    def forward(self, work: Work, takes: Slices | None, step: int) -> Slices:
        """One micro-batch through one chunk."""
        kept, given = [], takes
        self.keep_samples(work.chunk, 1)
        with self._seen(work, step):
            for block in self.chunks[work.chunk]:
                given, values = block.forward(self.of(block), given, Moment(step, work.micro_batch))
                kept.append(self.hold(block, values))
        self.kept[work.micro_batch, work.chunk] = kept
        if given is None:
            raise ValueError("the first chunk begins with an embedding")
        return given

    def backward(self, work: Work, cotangent: Slices, step: int) -> Slices | None:
        """The cotangent of what the chunk took; each weight's gradient, to where it is placed."""
        place = work.micro_batch, work.chunk
        self.to_sum[work.chunk] = self.to_sum[work.chunk] or self.micro_batches
        self.together.add(frozenset(self.to_sum))
        kept, found, left = self.kept.pop(place), cotangent, []
        with self._seen(work, step) as used:
            for block, away in zip(self.chunks[work.chunk][::-1], kept[::-1], strict=True):
                values = self.take(block, away)
                moment = Moment(step, work.micro_batch)
                self._replace(block, self.of(block))
                gradients, returned, held = block.backward(self.of(block), values, found, moment)
                self.room.add(block.name, block.bytes_held(held) - block.bytes_kept(values))
                self._add(work, block, gradients, used)
                found = returned or found
                left.append(held)
        if self.orders[-1].half is Half.WEIGHTS:
            self.held[place] = left
        else:
            self._end(work.chunk)
        return found if returned else None

    def second_part(self, work: Work, step: int) -> None:
        """Gradients that waited, to where their weights are placed."""
        left = self.held.pop((work.micro_batch, work.chunk))
        with self._seen(work, step) as used:
            for block, held in zip(self.chunks[work.chunk][::-1], left, strict=True):
                gradients = block.second_part(held, Moment(step, work.micro_batch))
                self.room.add(block.name, -block.bytes_held(held))
                self._add(work, block, gradients, used)
        self._end(work.chunk)

    def _end(self, chunk: int) -> None:
        """All of a micro-batch is done in a chunk; of its last, gradients need not wait any more."""
        self.keep_samples(chunk, -1)
        self.to_sum[chunk] -= 1
        if not self.to_sum[chunk]:
            del self.to_sum[chunk]

    @property
    def never_together(self) -> Number:
        """Bytes of gradients that wait for their chunk's last micro-batch, but not with most others."""
        sizes = [sum(p.waiting(self.keys(c)) for p in self.placed) for c in range(len(self.chunks))]
        most = max(sum(sizes[chunk] for chunk in chunks) for chunks in self.together)
        return sum(sizes) - most if self.micro_batches > 1 else 0

    def _add(self, work: Work, block: Block, gradients: Values, used: list[Placed]) -> None:
        for weight, gradient in gradients.items():
            key = block.layer, weight.name
            (where,) = (placed for placed in used if key in placed.slices)
            array = in_order(gradient, weight.indices)
            where.add(work.micro_batch, self.number, key, array)

    def keep_samples(self, chunk: int, more: int) -> None:
        """Room for numbers of samples of one more micro-batch in a chunk; of minus one, that again."""
        blocks, has = self.chunks[chunk], self.in_flight[chunk] + more
        begins = bool(has) - bool(self.in_flight[chunk])
        self.in_flight[chunk] = has
        of_step = self.samples.of_step(blocks, self.micro_batches)
        size = more * self.samples.of_chunk(blocks) + begins * of_step
        (self.numbers if self.offloads else self.room).add(SAMPLES, size)

    @property
    def micro_batches(self) -> int:
        """Of a step: each chunk takes one forward."""
        return sum(work.half is Half.FORWARD for work in self.orders) // len(self.chunks)

    @contextmanager
    def _seen(self, work: Work, step: int) -> Iterator[list[Placed]]:
        """With the weights of a chunk, from where they are placed."""
        keys, turn = self.keys(work.chunk), (work.half, work.micro_batch)
        used = [placed for placed in self.placed if keys & placed.slices.keys()]
        for placed in used:
            self.weights |= placed.see(turn, self.number, step)
        yield used
        self.weights = {}
        for placed in used:
            placed.leave(turn, step)

    def resting(self, host: bool = False) -> dict[State, Number]:
        """Bytes of each state that rest on the first device, or on its part of the host."""
        found = [placed.resting(host, self.number) for placed in self.placed]
        sums = {state: sum(bytes[state] for bytes in found) for state in found[0]}
        sums[State.GRADIENTS] += max(placed.brought for placed in self.placed)
        return sums
