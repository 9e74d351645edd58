"""The same training on a single device, and its values beside what devices keep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from psem_model.simulator.arithmetic import Arithmetic, Array
from psem_model.simulator.layout import Layout, Slice
from psem_model.simulator.models import STATISTICS, Data, Model
from psem_model.simulator.operations import Executor
from spec.language.schedule import Buffer
from spec.meaning.match import Copies, Place
from spec.models.training import Loss, Statistics, Training

Rows = Sequence[Array]  # of each unit (1 or devices, elements)
Index = tuple[int, int]  # a device's number, and an element's


class Single(ABC):
    """One device that has all samples: weights by their keys, and moments of each (how many, ...).

    `clips`: gradients are scaled down alike, by the norm of all.
    """

    def __init__(self, arithmetic: Arithmetic, clips: bool) -> None:
        self.arithmetic, self.clips = arithmetic, clips
        self.weights: dict[Any, Array] = {}
        self.moments: dict[Any, Array] = {}

    @abstractmethod
    def gradients(self, step: int) -> Mapping[Any, Array]:
        """Those of the batch's loss, before they are clipped."""

    def step(self, step: int) -> None:
        """One step on the whole batch: the next weights and moments."""
        gradients = self.gradients(step)
        gradients = self._clipped(gradients) if self.clips else gradients
        for key, gradient in gradients.items():
            moved = self.arithmetic.next(self.weights[key], self.moments[key], gradient, step)
            self.weights[key], self.moments[key] = moved

    def _clipped(self, gradients: Mapping[Any, Array]) -> dict[Any, Array]:
        of = self.arithmetic
        squares = [of.total(of.mul(g, g).reshape(1, -1), 1) for g in gradients.values()]
        factor = of.clip_factor(of.total(np.stack(squares), 0))
        return {key: of.mul(gradient, factor) for key, gradient in gradients.items()}


class SingleOpaque(Single):
    """It trains the units of an opaque model. Of each, weights (1, elements) and moments."""

    def __init__(
        self,
        training: Training,
        model: Model,
        data: Data,
        weights: Sequence[Array],
        moments: Sequence[Array],
        micro_steps: int,
    ) -> None:
        super().__init__(data.arithmetic, training.clip)
        self.training, self.model, self.data = training, model, data
        self.micro_steps = micro_steps
        self.weights = {unit: row.copy() for unit, row in enumerate(weights)}
        self.moments = {unit: rows.copy() for unit, rows in enumerate(moments)}
        self.statistics = data.arithmetic.zeros((STATISTICS,))

    def gradients(self, step: int) -> Mapping[int, Array]:
        """Those of each unit; the statistics move, too."""
        self._move_statistics(step)
        gradients = self.model.whole([*self.weights.values()], step)
        factor = self._share(step)
        if factor is not None:
            gradients = [self.arithmetic.mul(g, factor) for g in gradients]
        return dict(enumerate(gradients))

    def _move_statistics(self, step: int) -> None:
        arithmetic = self.arithmetic
        for m in range(self.micro_steps if self.training.statistics else 0):
            added = self.data.statistic(step, m)
            if self.training.statistics is Statistics.ALL:
                share = arithmetic.number(Fraction(1, len(added)))
                added = arithmetic.mul(arithmetic.total(added, 0)[None], share)
            self.statistics = arithmetic.add(self.statistics, added[0])

    def _share(self, step: int) -> Array | None:
        """What each sample's loss counts for in the batch's loss, if not all of it (1,)."""
        arithmetic, devices = self.arithmetic, self.data.cluster.devices
        if self.training.loss is Loss.SUM:
            return None
        if self.training.loss is Loss.MEAN:
            share = arithmetic.number(Fraction(1, devices * self.micro_steps))
            return np.array([share], arithmetic.dtype)
        counts = [self.data.tokens(step, m) for m in range(self.micro_steps)]
        return arithmetic.reciprocal(arithmetic.total(np.stack(counts), (0, 1)))


# ------------------------------------------------------------------------- beside the devices
def resting(
    run: Executor,
    weights: Rows,
    moments: Sequence[Rows],
    place: Callable[[Index], Place],
    step: int,
) -> Iterator[Copies]:
    """What the devices keep of parameters and optimizer state: of each state, unit by unit.

    `weights`, `moments[i]`: what each device must have of it. Padding must be zero; its elements'
    numbers are not below the number of elements.
    """
    store = run.store
    states = [(Buffer.PARAMETERS, 0, "parameters", weights)]
    states += [(Buffer.OPTIMIZER, 0, "master weights", weights)] * store.master
    for part, rows in enumerate(moments, int(store.master)):
        states.append((Buffer.OPTIMIZER, part, "optimizer state", rows))
    for buffer, part, state, rows in states:
        rest, start = store.rests[buffer], 0
        largest = max(np.abs(row).max() for row in rows)
        for unit, layout in enumerate(run.layouts if rest.stored and not rest.working else ()):
            held = store.own(buffer, unit)
            has = store.slab(buffer, unit, rest.host, held)[part]
            elements, single = _of_slice(layout, held, rows[unit])

            def numbered(i: Index, elements: Array = elements, start: int = start) -> Place:
                return place((i[0], start + int(elements[i])))

            yield Copies(step, state, has, single, numbered, largest)
            start += layout.length


def _of_slice(layout: Layout, held: Slice, row: Array) -> tuple[Array, Array]:
    """The elements that each device has of a slice, and what a row (1 or devices, ...) has there."""
    devices = layout.cluster.devices
    if not held:
        shape = (devices, layout.length)
        return np.broadcast_to(np.arange(layout.length), shape), np.broadcast_to(row, shape)
    elements = layout.elements(held)
    zeros = np.zeros((len(row), layout.padded - layout.length), row.dtype)
    rows = np.arange(devices)[:, None] if len(row) > 1 else 0
    return elements, np.concatenate((row, zeros), 1)[rows, elements]


def beside(run: Executor, single: SingleOpaque, step: int) -> Iterator[Copies]:
    """All that a schedule's run keeps, but for working copies; of the weights at least one copy."""

    def place(i: Index) -> Place:
        return Place(run.cluster.coordinate(i[0]), i[1])

    store = run.store
    weights = [Buffer.PARAMETERS, Buffer.OPTIMIZER] if store.master else [Buffer.PARAMETERS]
    if not any(store.rests[b].stored and not store.rests[b].working for b in weights):
        yield Copies(step, "parameters", None, single.weights[0][0], lambda i: place((0, i)))
    each = [[rows[i] for rows in single.moments.values()] for i in range(store.moments)]
    yield from resting(run, [*single.weights.values()], each, place, step)
    if run.schedule.training.statistics:
        seen = run.numbers.get(Buffer.STATISTICS, run.arithmetic.zeros((1, len(single.statistics))))
        seen = seen[:1] if run.schedule.training.statistics is Statistics.COPY else seen
        every = np.broadcast_to(single.statistics, seen.shape)
        yield Copies(step, "statistics", seen, every, place, np.abs(single.statistics).max())
