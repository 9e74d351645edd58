"""The same training on a single device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from psem_model.simulator.arithmetic import Arithmetic, Array
from psem_model.simulator.models import STATISTICS, Data, Model
from spec.models.training import Loss, Statistics, Training


class Trained:
    """Weights on one device, by their keys, and the optimizer's moments of each (how many, ...).

    `clips`: gradients are scaled down alike, by the norm of all.
    """

    def __init__(self, arithmetic: Arithmetic, clips: bool) -> None:
        self.arithmetic, self.clips = arithmetic, clips
        self.weights: dict[Any, Array] = {}
        self.moments: dict[Any, Array] = {}

    def update(self, gradients: Mapping[Any, Array], step: int) -> None:
        """The next weights and moments."""
        gradients = self._clipped(gradients) if self.clips else gradients
        for key, gradient in gradients.items():
            moved = self.arithmetic.next(self.weights[key], self.moments[key], gradient, step)
            self.weights[key], self.moments[key] = moved

    def _clipped(self, gradients: Mapping[Any, Array]) -> dict[Any, Array]:
        of = self.arithmetic
        squares = [of.total(of.mul(g, g).reshape(1, -1), 1) for g in gradients.values()]
        factor = of.clip_factor(of.total(np.stack(squares), 0))
        return {key: of.mul(gradient, factor) for key, gradient in gradients.items()}


class Single(Trained):
    """One device that has all samples. Of each unit weights (1, elements), and moments."""

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

    def step(self, step: int) -> None:
        """One step on the whole batch."""
        self._move_statistics(step)
        gradients = self.model.whole([*self.weights.values()], step)
        factor = self._share(step)
        if factor is not None:
            gradients = [self.arithmetic.mul(g, factor) for g in gradients]
        self.update(dict(enumerate(gradients)), step)

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
