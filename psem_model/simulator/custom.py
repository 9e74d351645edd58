"""A model of given parts on one device: its operations one after the other, on whole values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.functions import Functions
from psem_model.simulator.routes import to_slots, to_tokens
from psem_model.simulator.single_model import Pass, SingleModel
from psem_model.simulator.slices import Slices, lettered
from psem_model.simulator.tables import OUTSIDE, Moment, Tables
from psem_model.simulator.tape import Node
from spec.models.custom import Custom
from spec.models.transformer import is_layer
from spec.models.values import LOG_TOTAL, Does, Operation, Part, Role, Value

NORMALISED = ("softmax", "layer_norm", "rms_norm", LOG_TOTAL)


def require_known(model: Custom, numbers: Functions) -> None:
    """Raise ValueError for a function that these numbers do not have."""
    for part in model.parts:
        for line in part.operations:
            if line.does in (Does.APPLY, Does.NORMALISE):
                known = [*numbers.names] if line.does is Does.APPLY else [*NORMALISED]
                if line.function not in known:
                    names = ", ".join(known)
                    raise ValueError(f"{line.does.value} by {line.function}; expected one of {names}")


def is_route(operation: Operation) -> bool:
    """Whether it brings tokens into slots of experts, or back: indices become one, or one several."""
    ends = zip(*operation.renamed, strict=True)
    return any(len({*names}) < len(names) for names in ends)


def sends(model: Custom) -> bool:
    """Whether tokens are sent to experts."""
    return any(is_route(operation) for part in model.parts for operation in part.operations)


class SingleCustom(SingleModel):
    """It trains a model of given parts."""

    def __init__(
        self,
        model: Custom,
        tables: Tables,
        micro_batches: int,
        stateful: bool = True,
        clips: bool = False,
    ) -> None:
        super().__init__(tables, micro_batches, stateful, clips)
        self.model = model

    def forward(self, moment: Moment) -> Chain:
        return Chain(self, moment)


class Chain(Pass):
    """One micro-batch's way through the parts. The axes of arrays are in the order of indices."""

    def __init__(self, device: SingleCustom, moment: Moment) -> None:
        super().__init__(device, moment)
        self.model = device.model

    def loss(self) -> Node:
        given: Node | None = None
        for part, layer in self.parts():
            given = self.through(part, layer, given)
        if given is None:
            raise ValueError("a model without parts")
        return given

    def parts(self) -> Iterator[tuple[Part, int]]:
        """Every part, and the number of the layer that it is."""
        for part in self.model.parts:
            for layer in range(self.model.layers) if is_layer(part.name) else (OUTSIDE,):
                yield part, layer

    def through(self, part: Part, layer: int, given: Node | None) -> Node:
        """What a part makes of what it is given."""
        values: dict[Value, Node] = {}
        if part.takes and given:
            values[part.takes] = given
        for operation in part.operations:
            reads = [self.read(value, layer, values) for value in operation.reads]
            if is_route(operation):
                values[operation.makes] = self.routed(operation, reads[0], layer)
            else:
                values[operation.makes] = self.made(operation, reads)
        return values[part.gives]

    def read(self, value: Value, layer: int, values: dict[Value, Node]) -> Node:
        """A value that is there, a weight, or a constant."""
        if value in values:
            return values[value]
        if value.role is Role.WEIGHT:
            return self.leaf((layer, value.name), value.indices)
        table = self.device.tables.constant(value.name, value.indices, layer, self.moment)
        return values.setdefault(value, Node(table, fixed=True))

    def made(self, operation: Operation, reads: Sequence[Node]) -> Node:
        """What an operation makes of these."""
        first, makes, of = reads[0], operation.makes.indices, operation.reads[0].indices
        match operation.does:
            case Does.CONTRACT:
                left, right, out = lettered(of, operation.reads[1].indices, makes)
                return self.tape.einsum(f"{left},{right}->{out}", first, reads[1])
            case Does.ADD:
                second = self.ordered(reads[1], operation.reads[1].indices, makes)
                return self.tape.add(self.ordered(first, of, makes), second)
            case Does.APPLY:
                return self.tape.apply(operation.function, self.ordered(first, of, makes))
            case Does.RENAME:
                new = dict(operation.renamed)
                return self.ordered(first, [new.get(index, index) for index in of], makes)
        rows = [index for index in of if index != operation.over]
        last = self.ordered(first, of, [*rows, operation.over])
        if operation.function == LOG_TOTAL:
            return self.ordered(self.tape.log_total(last), rows, makes)
        found = self.tape.normalise(operation.function, last)
        return self.ordered(found, [*rows, operation.over], makes)

    def routed(self, operation: Operation, node: Node, layer: int) -> Node:
        """Tokens in the slots of their experts, or back: each is the transpose of the other."""
        slots, numbers = self.device.tables.slots(layer, self.moment), self.tape.numbers
        of, makes = operation.reads[0].indices, operation.makes.indices

        def whole(array: Array, indices: tuple[str, ...]) -> Slices:
            where = {i: np.arange(n)[None] for i, n in zip(indices, array.shape, strict=True)}
            return Slices(indices, array[None], where)

        def moved(array: Array, has: tuple[str, ...], needs: tuple[str, ...]) -> Array:
            value = whole(array, has)
            if "c" in needs:
                return np.asarray(to_slots(value, needs, slots).array[0])
            return np.asarray(to_tokens(value, needs, slots, numbers).array[0])

        return self.tape.linear(node, lambda a: moved(a, of, makes), lambda g: moved(g, makes, of))

    def ordered(self, node: Node, has: Sequence[str], needs: Sequence[str]) -> Node:
        """With its axes in the order of other indices."""
        axes = [list(has).index(index) for index in needs]
        return node if axes == [*range(len(axes))] else self.tape.transpose(node, axes)
