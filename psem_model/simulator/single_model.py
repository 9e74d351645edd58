"""A model whose forward is known, trained on a single device by differentiation in reverse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.single import Single
from psem_model.simulator.tables import Key, Moment, Tables
from psem_model.simulator.tape import Node, Tape


class SingleModel(Single):
    """It trains a model. `stateful`: its optimizer keeps moments.

    Its weights are those that its forward reads: each is made when it is first read.
    `losses`: of each micro-batch of the last step.
    """

    def __init__(
        self, tables: Tables, micro_batches: int, stateful: bool = True, clips: bool = False
    ) -> None:
        super().__init__(tables.numbers, clips)
        self.tables, self.micro_batches = tables, micro_batches
        self.kept = tables.numbers.moments if stateful else 0
        self.losses: list[Array] = []

    @abstractmethod
    def forward(self, moment: Moment) -> Pass:
        """A micro-batch's way through the model."""

    def weight(self, key: Key, indices: Sequence[str]) -> Array:
        """A weight as it is now."""
        if key not in self.weights:
            layer, name = key
            first = self.weights[key] = self.tables.weight(name, indices, layer)
            self.moments[key] = self.arithmetic.zeros((self.kept, *first.shape))
        return self.weights[key]

    def gradients(self, step: int) -> dict[Key, Array]:
        """Those of the summed loss of all samples of its micro-batches."""
        numbers, found = self.arithmetic, dict[Key, Array]()
        self.losses = []
        for micro_batch in range(self.micro_batches):
            work = self.forward(Moment(step, micro_batch))
            loss = work.loss()
            self.losses.append(loss.value)
            work.tape.backward(loss, numbers.count(np.ones(loss.value.shape, np.int64)))
            for key, node in work.leaves.items():
                if node.gradient is not None:
                    had = found.get(key)
                    found[key] = node.gradient if had is None else numbers.add(had, node.gradient)
        return found


class Pass(ABC):
    """One micro-batch's way through a model; `leaves`: the weights that it reads."""

    def __init__(self, device: SingleModel, moment: Moment) -> None:
        self.device, self.moment = device, moment
        self.tape = Tape(device.tables.numbers)
        self.leaves: dict[Key, Node] = {}

    @abstractmethod
    def loss(self) -> Node:
        """What is to be as small as it can: its elements are summed."""

    def leaf(self, key: Key, indices: Sequence[str]) -> Node:
        """A weight, once."""
        return self.leaves.setdefault(key, Node(self.device.weight(key, indices)))
