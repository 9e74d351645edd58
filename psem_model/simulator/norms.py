"""The end of a step: what schedules do after all micro-batches, and the norm of all gradients.

What has to do with a norm in a micro-step comes when all groups have done its backward.

Each group of weights has a norm of its own on every device of every stage, also where a stage has none
of the weights: then it is zero. Where one is summed over all weights, groups wait for one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby, islice

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.functions import Functions
from psem_model.simulator.layout import cluster_of
from psem_model.simulator.network import Network, OpKey, moved
from psem_model.simulator.placed import Ops, Placed
from psem_model.simulator.store import NUMBER_BYTES
from spec.language.schedule import Buffer, Kind, Op, Schedule

Execute = Callable[[Placed, Ops], None]  # executes operations on the weights of one placing


class Ends:
    """The groups of a model's weights, each on the stages that have some, at the end of a step.

    `stages`: the axis of the stages. `networks`: what the devices of all stages send of numbers, by
    group: device number = stage * devices of a stage + own.
    """

    def __init__(
        self,
        placed: Sequence[Placed],
        stages: tuple[str, int],
        mesh: Mapping[str, int],
        numbers: Functions,
    ) -> None:
        groups: dict[tuple[int, Schedule], list[Placed]] = {}
        for each in placed:
            groups.setdefault((each.placing.group, each.placing.schedule), []).append(each)
        self.groups = [*groups.values()]
        self.cluster, self.numbers = cluster_of((stages, *mesh.items())), numbers
        self.inner = self.cluster.devices // stages[1]
        self.networks = [Network(self.cluster.devices) for _ in self.groups]
        self.norms: list[Array | None] = [None for _ in self.groups]

    def late(self, step: int) -> None:
        """What comes after backward, from a norm on, of micro-batches that all groups have done."""
        late = [placed for group in self.groups for placed in group if placed.halves.late]
        while late and all(placed.left for placed in late):
            (micro_batch, *_) = {placed.left.pop(0) for placed in late}

            def go_on(placed: Placed, ops: Ops, micro_batch: int = micro_batch) -> None:
                placed.go_on(ops, step, micro_batch)

            self._together(lambda placed: placed.halves.late, go_on)

    def finish(self, step: int) -> None:
        """What comes after all micro-batches."""
        self._together(
            lambda placed: placed.halves.finish, lambda placed, ops: placed.finish(ops, step)
        )
        self.norms = [None for _ in self.groups]

    def _together(self, ops: Callable[[Placed], Ops], execute: Execute) -> None:
        """Some of each group's operations: where norms are added up, groups wait for one another.

        Of one that does not come it is the norm that it has.
        """
        runs = [self._run(number, ops(group[0]), execute) for number, group in enumerate(self.groups)]
        while joined := [found for run in runs for found in islice(run, 1)]:
            norms = [norm for norm in self.norms if norm is not None]
            first, total = norms[0].copy(), reduce(self.numbers.add, norms)
            for norm, op in joined:
                norm[...] = first if op.kind is Kind.BROADCAST else total

    def _run(self, number: int, ops: Ops, execute: Execute) -> Iterator[tuple[Array, Op]]:
        """What one group does. Yields its norm where all are added up, and the line that does so."""
        group, network, norms = self.groups[number], self.networks[number], self.norms
        for of_norm, some in groupby(ops, lambda each: each[1].of_a_number):
            if not of_norm:
                _execute(group, [*some], execute)
                continue
            for key, op in some:
                norm = norms[number]
                if op.source is Buffer.NORM:
                    norm = norms[number] = self._moved(norm, key, op, network)
                    of_all = any(axis not in self.cluster.sizes for axis in op.axes)
                    if norm is not None and of_all:
                        yield norm, op
                    continue
                self._give(norm, group)
                _execute(group, [(key, op)], execute)
                norms[number] = self._taken(group) if op.target is Buffer.NORM else norm

    def _moved(self, norm: Array | None, key: OpKey, op: Op, network: Network) -> Array | None:
        """A norm (devices, 1) after an operation on it alone."""
        if norm is None or op.kind is Kind.RELEASE:
            return None
        if op.kind is Kind.RESET:
            return self.numbers.zeros(norm.shape)
        network.serve(key, width=NUMBER_BYTES)
        return moved(op, norm, self.cluster.group(op.axes), self.numbers, network)

    def _taken(self, group: Iterable[Placed]) -> Array:
        """The norm of what each device has of a group's weights."""
        norm = self.numbers.zeros((self.cluster.devices, 1))
        for placed, stage, here in self._places(group):
            norm[here] = placed.run.numbers[Buffer.NORM][placed.rows(stage)]
        return norm

    def _give(self, norm: Array | None, group: Iterable[Placed]) -> None:
        for placed in group:
            placed.run.numbers.pop(Buffer.NORM, None)
        if norm is None:
            return
        for placed, stage, here in self._places(group):
            shape = (placed.cluster.devices, 1)
            own = placed.run.numbers.setdefault(Buffer.NORM, self.numbers.zeros(shape))
            own[placed.rows(stage)] = norm[here]

    def _places(self, group: Iterable[Placed]) -> Iterator[tuple[Placed, int, slice]]:
        """Where a group's weights are: on which stage, and its devices among all."""
        for placed in group:
            for stage in placed.placing.stages:
                yield placed, stage, slice(stage * self.inner, (stage + 1) * self.inner)


def _execute(group: Iterable[Placed], ops: Ops, execute: Execute) -> None:
    for placed in group:
        execute(placed, ops)
