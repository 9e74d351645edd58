"""The specification's small run again, in the simulator: same start, samples, model and update rule.

Only what moves and changes the values is the simulator's own: its buffers, rings and operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from psem_model.simulator import Arithmetic, models
from psem_model.simulator.arithmetic import Array, Poison
from psem_model.simulator.layout import Cluster, cluster_of
from psem_model.simulator.models import STATISTICS, Backward
from psem_model.simulator.rests import flat
from psem_model.simulator.run import Scheduled
from spec.language.schedule import Buffer, Schedule
from spec.meaning.match import Divergence, divergences
from spec.meaning.reference import (
    DECAY,
    READS_EVERYTHING,
    UNKNOWN,
    Data,
    Losses,
    Reference,
    Values,
    primes,
)
from spec.meaning.semantics import absent
from spec.models.states import BytePolicy


class SameRule(Arithmetic):
    """Fractions, and the update of `Reference.next`."""

    rate, friction, decay = Fraction(1), Fraction(1), Fraction(DECAY)


class SamePoison(Poison):
    """What is not known, as the reference has it."""

    def __call__(self, *shape: int) -> Array:
        return np.full(shape, UNKNOWN, object)


class SameData(models.Data):
    """The reference's weights, moments, tokens and statistics."""

    def __init__(self, cluster: Cluster, world: Reference) -> None:
        super().__init__(0, cluster, SameRule())
        self.world, self.unknown = world, SamePoison(0, self.arithmetic)

    def random(self, what: str, shape: tuple[int, ...], *when: int) -> Array:
        start = [self.world.data("start", j) for j in range(self.world.elements)]
        return np.array([start], object)

    def moments(self, unit: int, length: int, stateful: bool) -> Array:
        first = [self.world.data("moment", j) for j in range(self.world.elements)]
        return np.array([[first]] if stateful else np.zeros((0, 1, length)), object)

    def tokens(self, step: int, micro_step: int) -> Array:
        counts = [[self.world.data("tokens", step, micro_step, d)] for d in self.world.devices]
        return np.array(counts, object)

    def statistic(self, step: int, micro_step: int) -> Array:
        seen = [[self.world.data("statistic", step, micro_step, d)] for d in self.world.devices]
        return np.repeat(np.array(seen, object), STATISTICS, axis=1)


class SameModel(models.Model):
    """The reference's gradients of its samples, of one unit that is the whole model."""

    def __init__(self, world: Reference, tied: bool) -> None:
        self.world, self.uses = world, (False, True) if tied else (False,)

    def _values(self, rows: Array | None) -> Values:
        if rows is None:
            return self.world.unknown(absent(Buffer.ACTIVATIONS))
        each = np.broadcast_to(rows, (len(self.world.devices), self.world.elements))
        return {
            (j, d): value
            for d, row in zip(self.world.devices, each, strict=True)
            for j, value in enumerate(row)
        }

    def backward(self, of: Backward) -> list[Array]:
        world = self.world
        kept = world.of_group(
            world.forward(self._values(of.activations), world.axes), tuple(of.gathered)
        )
        world.step, micro_step = of.when
        found = []
        for tied in self.uses:
            sums = world.gradient(self._values(of.view), kept, micro_step, of.everyones, tied)
            rows = [[sums[j, d] for j in range(world.elements)] for d in world.devices]
            found.append(np.array(rows, object))
        return found

    def whole(self, weights: Sequence[Array], step: int) -> list[Array]:
        self.world.step = step
        return [np.array([self.world.single_sum(list(row[0]))], object) for row in weights]


def replay(
    schedule: Schedule,
    mesh: Mapping[str, int],
    micro_steps: int,
    elements: int,
    policy: BytePolicy,
    steps: int,
    expected: Divergence,
    losses: Losses = READS_EVERYTHING,
    data: Data = primes,
) -> Divergence | None:
    """Where the run of `spec.meaning.reference` at these sizes diverges in the simulator.

    At the copy that is `expected` to, if that differs there as well; else wherever it first does. (On
    several axes the simulator cuts along those only along which anything is sliced, so that other
    devices may own an element.)
    """
    sizes, stateful = {a: mesh[a] for a in schedule.axes}, bool(policy.k > 0)
    tied = schedule.training.tied
    world = Reference(schedule, sizes, micro_steps, elements, data, stateful, policy.master, losses)
    same = SameData(cluster_of(tuple(sizes.items())), world)
    run = Scheduled(schedule, [flat(elements)], micro_steps, policy, SameModel(world, tied), [same])
    for _ in range(steps):
        run.step()
        found = list(divergences(run.beside(), run.numbers.unequal))
        there = (d for d in found if (d.place, d.state) == (expected.place, expected.state))
        if found:
            return next(there, found[0])
    return None
