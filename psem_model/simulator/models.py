"""Models and their data: what forward keeps, and what backward makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from psem_model.simulator.arithmetic import PRIME, Arithmetic, Array, Poison, integers
from psem_model.simulator.layout import Cluster

SAMPLES = 2  # of each device in each micro-step
STATISTICS = 3  # numbers that forward keeps count of


class Data:
    """Random numbers that depend on seed, step, micro-step, device and index, and nothing else.

    `unknown`: what the devices' memories hold where nothing is known.
    """

    def __init__(self, seed: int, cluster: Cluster, arithmetic: Arithmetic, poison: int = 0) -> None:
        self.seed, self.cluster, self.arithmetic = seed, cluster, arithmetic
        self.unknown = Poison(poison, arithmetic)

    def random(self, what: str, shape: tuple[int, ...], *when: int) -> Array:
        """Values of one kind, from 1 to PRIME - 1 where they are integers."""
        seed = (self.seed, *what.encode(), *when)
        return self.arithmetic.of(integers(seed, shape, 1, PRIME))

    def moments(self, unit: int, length: int, stateful: bool) -> Array:
        """The optimizer's first moments (how many, 1, elements): as of a run that goes on."""
        shape = (self.arithmetic.moments if stateful else 0, 1, length)
        if self.arithmetic.starts_at_zero:
            return self.arithmetic.zeros(shape)
        return self.random("moments", shape, unit)

    def tokens(self, step: int, micro_step: int) -> Array:
        """How many tokens each device's samples have (devices, 1)."""
        counts = integers((self.seed, 0, step, micro_step), (self.cluster.devices, SAMPLES), 1, 101)
        return self.arithmetic.count(counts.sum(1, keepdims=True))

    def statistic(self, step: int, micro_step: int) -> Array:
        """What each device's samples add to the statistics (devices, STATISTICS)."""
        return self.random("statistic", (self.cluster.devices, STATISTICS), step, micro_step)


@dataclass(frozen=True)
class Backward:
    """A unit's backward in a (step, micro-step): what it reads, and of whose samples it is.

    `view`: the unit's parameters (devices, elements), or one row for all. `activations`: of each
    device's samples; None where they are not known. Along `everyones` a device has the samples of its
    whole group, and along those axes that are `gathered`, too, their activations.
    """

    unit: int
    view: Array
    activations: Array | None
    when: tuple[int, int]
    everyones: tuple[str, ...]
    gathered: Collection[str]


class Model(ABC):
    """A model in units: `view` is one unit's parameters (devices, elements), or one row for all.

    `in_layers`: backward goes from the last unit to the first; otherwise units have no order. If no
    more is said, what it keeps for backward is what it reads.
    """

    in_layers = True

    def start(self, data: Data, lengths: Sequence[int], micro_steps: int, tied: bool) -> None:
        """Begin a run. Raises ValueError where the model does not fit its units."""
        self.data = data

    def forward(self, unit: int, view: Array, step: int, micro_step: int) -> Array:
        """The unit's activations of each device's samples."""
        return view

    def recompute(self, unit: int, view: Array, step: int, micro_step: int) -> Array:
        """The same again."""
        return self.forward(unit, view, step, micro_step)

    @abstractmethod
    def backward(self, of: Backward) -> list[Array]:
        """The sums (devices, elements) of the samples' gradients. With ties, a second sum, by way of
        the other place.
        """

    @abstractmethod
    def whole(self, weights: Sequence[Array], step: int) -> list[Array]:
        """The sums over all samples of a step, ties included, from rows of weights (1, elements)."""


def distinct(rows: Array) -> Array:
    """Rows that are all the same as a single one."""
    return rows[:1] if len(rows) > 1 and bool((rows == rows[:1]).all()) else rows


def _turned(rows: Array, places: int) -> Array:
    """Rows of which each element is that some places further on; after the last comes the first."""
    return np.concatenate((rows[:, places:], rows[:, :places]), 1)


class Polynomial(Model):
    """Each element's gradient is a random polynomial of its neighbours and their activations.

    No unit's depends on another's, so that they are in layers only if that is said.
    """

    TERMS = 5

    def __init__(self, in_layers: bool = False) -> None:
        self.in_layers = in_layers

    def start(self, data: Data, lengths: Sequence[int], micro_steps: int, tied: bool) -> None:
        super().start(data, lengths, micro_steps, tied)
        self.micro_steps, self.places = micro_steps, 2 if tied else 1
        self.fixed = [data.random("fixed", (1, n), u) for u, n in enumerate(lengths)]
        self._coefficients: dict[tuple[int, int], Array] = {}

    def coefficients(self, step: int, micro_step: int) -> Array:
        """The sums over each device's samples, with their weights (devices, places, TERMS)."""
        if (step, micro_step) not in self._coefficients:
            if any(s != step for s, _ in self._coefficients):
                self._coefficients.clear()
            shape = (self.data.cluster.devices, SAMPLES, 1 + 2 * self.TERMS)
            drawn = self.data.random("sample", shape, step, micro_step)
            products = self.data.arithmetic.mul(drawn[..., 1:], drawn[..., :1])
            sums = self.data.arithmetic.total(products, 1).reshape(len(drawn), 2, self.TERMS)
            self._coefficients[step, micro_step] = sums[:, : self.places]
        return self._coefficients[step, micro_step]

    def forward(self, unit: int, view: Array, step: int, micro_step: int) -> Array:
        rows = distinct(view)
        return self.data.arithmetic.mul(rows, _turned(rows, 1))

    def gradient(self, unit: int, coefficients: Array, view: Array, activations: Array) -> Array:
        """Sums of gradients (places, devices, elements) from sums of coefficients."""
        arithmetic = self.data.arithmetic
        product = arithmetic.mul(view, _turned(activations, -1))
        features = np.empty((len(product), self.TERMS, view.shape[1]), arithmetic.dtype)
        terms = (1, self.fixed[unit], activations, _turned(view, 1), product)
        for i, term in enumerate(terms):
            features[:, i] = term
        if len(features) == 1:
            return arithmetic.matmul(coefficients.swapaxes(0, 1), features)
        return arithmetic.matmul(coefficients, features).swapaxes(0, 1)

    def backward(self, of: Backward) -> list[Array]:
        cluster, arithmetic = self.data.cluster, self.data.arithmetic
        rows = distinct(of.view)
        activations = of.activations
        if activations is None:
            activations = self.data.unknown(cluster.devices, of.view.shape[1])
        others = [a for a in of.everyones if a in of.gathered] if len(activations) > 1 else []
        apart = [a for a in of.everyones if a not in others]
        coefficients = cluster.total(self.coefficients(*of.when), apart, arithmetic)
        if not others:
            return list(self.gradient(of.unit, coefficients, rows, activations))
        total = arithmetic.zeros((self.places, cluster.devices, of.view.shape[1]))
        for member in cluster.group(others).members.T:
            part = self.gradient(of.unit, coefficients[member], rows, activations[member])
            total = arithmetic.add(total, part)
        return list(total)

    def whole(self, weights: Sequence[Array], step: int) -> list[Array]:
        arithmetic = self.data.arithmetic
        every = [self.coefficients(step, m) for m in range(self.micro_steps)]
        total = arithmetic.total(np.stack(every), (0, 1, 2))[None, None]
        found = []
        for unit, row in enumerate(weights):
            activations = self.forward(unit, row, step, 0)
            found.append(self.gradient(unit, total, row, activations)[0])
        return found
