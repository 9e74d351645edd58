"""Arrays that products leave in place of gradients that are added up elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.blocks import Block
from psem_model.simulator.slices import Slices
from spec.models.transformer import is_layer
from spec.models.values import Value

EXPERTS, CHOICES = "e", "j"
Shape = tuple[int, int]  # what a product makes, and what it reads


class Placeholders:
    """Those of one device: of layers one of each shape, from when on it is first needed; of other parts
    while they go backward. `fullest`: elements at most.
    """

    def __init__(self) -> None:
        self.staying: dict[Shape, Array] = {}
        self.fullest = 0

    def take(self, block: Block, weights: Mapping[Value, Slices]) -> None:
        """Those that a part needs to go backward."""
        needed: dict[Shape, Array] = {}
        for shape in _shapes(block, weights):
            needed[shape] = np.empty(shape, np.bool_)
        if is_layer(block.name):
            self.staying, needed = {**needed, **self.staying}, {}
        there = (*self.staying.values(), *needed.values())
        self.fullest = max(self.fullest, sum(array.size for array in there))


def _shapes(block: Block, weights: Mapping[Value, Slices]) -> Iterator[Shape]:
    """Of the products of a part: weights that read one value are one; of experts, one expert's.

    What experts are chosen by is no such product.
    """
    of_value: dict[Value, Shape] = {}
    for line in block.program.part.operations:
        for weight in (value for value in line.reads if value in weights):
            (value,) = (value for value in line.reads if value != weight)
            of = weights[weight]
            sizes = dict(zip(of.indices, of.array.shape[1:], strict=True))
            made = [sizes[i] for i in sizes if i in line.makes.indices and i != EXPERTS]
            read = [sizes[i] for i in sizes if i not in line.makes.indices]
            if made and read and CHOICES not in sizes:
                rows, _ = of_value.get(value, (0, 0))
                of_value[value] = rows + int(np.prod(made)), int(np.prod(read))
    yield from of_value.values()
