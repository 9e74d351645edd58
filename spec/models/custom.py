"""A model of given parts: any operations on values, as one device does them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from spec.models.transformer import is_layer
from spec.models.values import Part
from spec.numbers.arithmetic import Number


@dataclass(frozen=True)
class Custom:
    """Its parts in order, each once, but for one: the layer, if there is one, is there many times.

    `lengths`: of each index how many values it has, but for samples and positions; or the index that it
    is another name of.
    """

    parts: tuple[Part, ...]
    layers: Number
    lengths: tuple[tuple[str, Number | str], ...]

    def layers_of(self, first: int, after: int) -> Counter[str]:
        """How many layers there are, by the name of their part, from `first` to `after`."""
        return Counter({part.name: after - first for part in self.parts if is_layer(part.name)})

    def has_index(self, index: str) -> bool:
        """Whether a value has an index."""
        return any(index in part.indices for part in self.parts)

    @property
    def weighs_positions(self) -> bool:
        """Whether there is a weight with positions, so that parameters are as many as a sample has."""
        one, two = (self.sizes(1, positions) for positions in (1, 2))
        return any(one[i] != two[i] for part in self.parts for w in part.weights for i in w.indices)

    def sizes(self, micro_batch: Number, sequence: Number) -> dict[str, Number]:
        """How many values each index has."""
        found: dict[str, Number] = {"b": micro_batch, "s": sequence}
        for index, length in self.lengths:
            found[index] = found[length] if isinstance(length, str) else length
        return found
