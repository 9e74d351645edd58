"""The same training on a single device."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from psem_model.simulator.arithmetic import Arithmetic, Array
from psem_model.simulator.models import STATISTICS, Data, Model
from spec.models.training import Loss, Statistics, Training


class Single:
    """One device that has all samples. `weights` and `moments`: a row, or rows, for each unit."""

    def __init__(
        self,
        training: Training,
        model: Model,
        data: Data,
        weights: Sequence[Array],
        moments: Sequence[Array],
        micro_steps: int,
    ) -> None:
        self.training, self.model, self.data = training, model, data
        self.micro_steps = micro_steps
        self.weights = [row.copy() for row in weights]
        self.moments = [rows.copy() for rows in moments]
        self.statistics = data.arithmetic.zeros((STATISTICS,))

    @property
    def arithmetic(self) -> Arithmetic:
        return self.data.arithmetic

    def step(self, step: int) -> None:
        """One step on the whole batch."""
        self._move_statistics(step)
        gradients = self.model.whole(self.weights, step)
        factor = self._share(step)
        if factor is not None:
            gradients = [self.arithmetic.mul(g, factor) for g in gradients]
        if self.training.clip:
            squares = [self.arithmetic.total(self.arithmetic.mul(g, g), 1) for g in gradients]
            norm = self.arithmetic.total(np.stack(squares), 0)
            clip = self.arithmetic.clip_factor(norm)
            gradients = [self.arithmetic.mul(g, clip) for g in gradients]
        for unit, gradient in enumerate(gradients):
            weight = self.weights[unit]
            if len(self.moments[unit]):
                moved = self.arithmetic.next(weight, self.moments[unit], gradient, step)
                self.weights[unit], self.moments[unit] = moved
            else:
                self.weights[unit] = self.arithmetic.descend(weight, gradient)

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
