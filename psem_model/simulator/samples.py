"""Numbers of tokens, and of their places, that devices have beside what programs keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from psem_model.simulator.arithmetic import Number
from psem_model.simulator.blocks import Block
from spec.models.transformer import EMBEDDING, HEAD, LAYER, is_turned

READ_BY = {EMBEDDING: "tokens", HEAD: "next_words"}
SAMPLES = "samples"
COUNT = np.zeros(1, np.float32)  # of the tokens that a loss is the mean of


@dataclass(frozen=True)
class Kept:
    """What is kept of samples, if anything. `width`: bytes of a cosine, or a sine.

    `at_once`: tokens of all micro-batches are one array, from the first forward to the last backward.
    """

    anything: bool = False
    at_once: bool = False
    width: Number = 0

    def of_chunk(self, blocks: Iterable[Block]) -> Number:
        """Bytes on a device, of one micro-batch in one chunk."""
        if not self.anything:
            return 0
        # layers of all kinds that are turned have the same cosines and sines
        found = {LAYER if is_turned(block.name) else block.name: block for block in blocks}
        tokens = 0 if self.at_once else self._of_tokens(found)
        return tokens + sum(self._of_places(block) for block in found.values())

    def of_step(self, blocks: Iterable[Block], micro_batches: int) -> Number:
        """Bytes on a device, of all micro-batches at once."""
        if not self.at_once:
            return 0
        return micro_batches * self._of_tokens({block.name: block for block in blocks})

    @staticmethod
    def _of_tokens(blocks: dict[str, Block]) -> Number:
        return sum(_tokens(block).nbytes for block in blocks.values() if block.name in READ_BY)

    def _of_places(self, block: Block) -> Number:
        tables = block.devices.tables
        if is_turned(block.name) and tables.model.turned:
            return sum(2 * table.size for table in tables.turns()) * self.width  # for both of a pair
        if block.name == EMBEDDING and tables.model.positions:
            return np.arange(tables.sizes["s"], dtype=np.int64).nbytes
        return COUNT.nbytes if block.name == HEAD else 0


def _tokens(block: Block) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The numbers of the tokens that a device reads."""
    lies, name = block.program.lies, READ_BY[block.name]
    value = next(value for value in lies if value.plain_name == name)
    where = block.devices.grid.where(("b", "s"), lies[value])
    return np.zeros(prod(at.shape[1] for at in where.values()), np.int64)
