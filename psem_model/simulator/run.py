"""Simulated runs: a schedule on many devices beside the same training on one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import numpy as np

from psem_model.simulator.arithmetic import ARITHMETICS, Arithmetic, Array, Number
from psem_model.simulator.layout import cluster_of
from psem_model.simulator.models import Data, Model, Polynomial
from psem_model.simulator.network import Network, OpKey
from psem_model.simulator.operations import Executor
from psem_model.simulator.passes import passes
from psem_model.simulator.rests import PADDED, Cut, Rests, flat
from psem_model.simulator.single import Single, SingleOpaque, beside
from psem_model.simulator.store import Meter
from spec.language.schedule import Schedule
from spec.meaning.match import Copies, Divergence, first_difference
from spec.models.states import MIXED_ADAM, BytePolicy, State

Progress = Callable[[int], None]


class Trial(ABC):
    """Devices beside a single device, step by step.

    Of an opaque model each unit has its turn, in whatever order lines are, so that what passes is
    counted. A model's parts read weights of several schedules and units: these meet at forward
    and backward.
    `divergence`: the first, if what they keep differs after a step.
    """

    single: Single

    def __init__(self, numbers: Arithmetic, rests: Rests) -> None:
        self.numbers, self.rests, self.steps, self.works = numbers, rests, 0, 0
        self.divergence: Divergence | None = None

    def run(
        self, steps: int, progress: Progress | None = None, stop_at_divergence: bool = False
    ) -> Self:
        """So many steps."""
        for _ in range(steps):
            self.step(progress)
            if self.divergence and stop_at_divergence:
                break
        return self

    def step(self, progress: Progress | None = None) -> None:
        """One step of the devices, of which what is sent is counted, and of the single device.

        `progress` is called with the number of works done.
        """
        runs = self.executors()
        for network in (*self.links(), *(run.network for run in runs)):
            network.clear()
        waits = [run.store for run in runs] if self.rests.waits_whole else []
        for store in waits:
            store.take_whole()
        for _ in self.work():
            self.works += 1
            if progress:
                progress(self.works)
        for store in waits:
            store.leave_slices()
        self.single.step(self.steps)
        self.steps += 1
        self.divergence = self.divergence or first_difference(self.beside(), self.numbers.unequal)

    @abstractmethod
    def executors(self) -> Sequence[Executor]:
        """Those of the schedules of all weights."""

    def links(self) -> Iterable[Network]:
        """The networks over which devices send what is no schedule's."""
        return ()

    @abstractmethod
    def work(self) -> Iterator[object]:
        """The devices' step, a work at a time."""

    @abstractmethod
    def beside(self) -> Iterator[Copies]:
        """What the devices keep after the last step, beside the single device's."""


def redraw(runs: Sequence[Executor]) -> None:
    """What differs between runs that are alike but for what is not known is not known: others again."""
    for run, other in combinations(runs, 2):
        for key, block in run.store.blocks.items():
            its = other.store.blocks[key]
            block.array, its.array = _redrawn((run, block.array), (other, its.array))
        for buffer, number in run.numbers.items():
            its_number = other.numbers[buffer]
            run.numbers[buffer], other.numbers[buffer] = _redrawn((run, number), (other, its_number))
        for unit, kept in run.activations.items():
            rows, its_rows = _redrawn((run, kept.rows), (other, other.activations[unit].rows))
            run.activations[unit] = replace(kept, rows=rows)
            other.activations[unit] = replace(kept, rows=its_rows)


def _redrawn(*arrays: tuple[Executor, Array]) -> list[Array]:
    one, other = np.broadcast_arrays(*(array for _, array in arrays))
    differ = one != other
    if not differ.any():
        return [array for _, array in arrays]
    return [np.where(differ, run.data.unknown(*differ.shape), array) for run, array in arrays]


class Scheduled(Trial):
    """A schedule on devices, of a model that is a function of its units.

    `every`: the data of each run of it. Several differ in what is not known: what they differ in is
    drawn anew after each operation. `begin`: the devices' first weights from the single device's.
    """

    single: SingleOpaque

    def __init__(
        self,
        schedule: Schedule,
        cuts: Sequence[Cut],
        micro_steps: int,
        policy: BytePolicy,
        model: Model,
        every: Sequence[Data],
        begin: Callable[[Array], Array] | None = None,
        rests: Rests = PADDED,
    ) -> None:
        data, self.passes = every[0], passes(schedule, micro_steps)
        super().__init__(data.arithmetic, rests)
        lengths = [unit.length for unit in cuts]
        model.start(data, lengths, micro_steps, schedule.training.tied)
        weights = [data.random("weights", (1, n), u) for u, n in enumerate(lengths)]
        moments = [data.moments(unit, n, policy.k > 0) for unit, n in enumerate(lengths)]
        of = schedule, micro_steps, cuts, model
        self.runs = [Executor(*of, each, policy, rests) for each in every]
        for run in self.runs:
            run.store.start(weights if begin is None else [begin(row) for row in weights], moments)
        self.single = SingleOpaque(schedule.training, model, data, weights, moments, micro_steps)

    def executors(self) -> Sequence[Executor]:
        return self.runs

    def work(self) -> Iterator[object]:
        for work in self.passes:
            for _ in zip(*(run.one_by_one(work, self.steps) for run in self.runs), strict=True):
                redraw(self.runs)
            yield work

    def beside(self) -> Iterator[Copies]:
        for run in self.runs:
            yield from beside(run, self.single, self.steps - 1)


@dataclass(frozen=True)
class Run:
    """What a run took, and where it first diverged. Bytes are of each device, or of its host part.

    `meter`: memory, after the last step and at the fullest moment of all. Blocks have rows of the same
    length on all devices, so that these are every device's. `network`: what the last step sent.
    """

    meter: Meter
    network: Network
    resting: dict[State, Number]  # bytes at rest on a device, of each state
    host_parts: dict[State, Number]  # and on the host
    passing: Number  # bytes on a device, at the fullest moment, of what does not rest
    buckets: Number  # bytes of copies of gradients
    divergence: Divergence | None

    @property
    def matches(self) -> bool:
        """Whether every resting copy was the single device's after every step."""
        return self.divergence is None

    @property
    def host(self) -> Number:
        """Bytes at rest on the host."""
        return sum(self.host_parts.values())

    @property
    def peak(self) -> Number:
        """Bytes on a device at the fullest moment."""
        return self.meter.peak

    @property
    def sent_by_operation(self) -> dict[OpKey, Array]:
        """Elements that each device sends to others in a step (devices,), by operation."""
        return self.network.sent

    @property
    def messages(self) -> int:
        """Messages of a step."""
        return self.network.messages

    @property
    def most_sent(self) -> dict[OpKey, int]:
        """Elements that an operation sends in a step, on the device that sends most of it."""
        return {op: int(elements.max()) for op, elements in self.network.sent.items()}

    @property
    def sent_elements(self) -> int:
        """Elements sent in a step: of each operation on the device that sends most of it."""
        return sum(self.most_sent.values())

    @property
    def sent(self) -> Number:
        """Bytes sent in a step: of each operation on the device that sends most of it."""
        return sum(size * self.network.widths[op] for op, size in self.most_sent.items())

    @property
    def host_link(self) -> Number:
        """Bytes over each device's host link in a step, both ways."""
        return self.network.host_bytes


def simulate(
    schedule: Schedule,
    mesh: Mapping[str, int],
    psi: int,
    *,
    steps: int = 1,
    micro_steps: int = 1,
    unit: int | None = None,
    policy: BytePolicy = MIXED_ADAM,
    arithmetic: str | Arithmetic = "modular",
    model: Model | None = None,
    seed: int = 0,
    begin: Callable[[Array], Array] | None = None,
    cuts: Sequence[Cut] = (),
    rests: Rests = PADDED,
    progress: Progress | None = None,
    stop_at_divergence: bool = False,
) -> Run:
    """Run a schedule for some steps, on `psi` parameters in units of `unit`, beside a single device.

    What is not known is random. A run that reads any of it matches if two runs do, with other random
    numbers each: what differs between the two is drawn anew after each operation.

    `begin`: the devices' first weights (devices, elements) from the single device's (1, elements), if
    they are others. `cuts`: units of their own sizes, in layers; otherwise a smaller one has its turn
    before the others, backward too. `rests`: how they rest, and pass. `progress` is called with the
    number of passes done. Raises ValueError with one line if a size is not a whole number from 1, the
    mesh does not have the schedule's axes, the arithmetic is unknown, or the model does not fit.
    """
    unit = psi if unit is None else unit
    _check(schedule, mesh, psi=psi, steps=steps, micro_steps=micro_steps, unit=unit)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed is {seed}; expected a whole number from 0")
    cluster = cluster_of(tuple((a, mesh[a]) for a in schedule.axes))
    model = Polynomial(in_layers=bool(cuts)) if model is None else model
    unit = min(unit, psi)
    smaller = [psi % unit] if psi % unit else []  # the first, as no order is given
    cuts = cuts or [flat(length) for length in (*smaller, *[unit] * (psi // unit))]
    numbers = _arithmetic(arithmetic)

    def ran(*poisons: int) -> Scheduled:
        """Runs that differ in what is not known."""
        every = [Data(seed, cluster, numbers, poison) for poison in poisons]
        found = Scheduled(schedule, cuts, micro_steps, policy, model, every, begin, rests)
        return found.run(steps, progress if len(poisons) == 1 else None, stop_at_divergence)

    with np.errstate(all="ignore"):
        found = ran(0)
        (run,), divergence = found.runs, found.divergence
        if divergence is None and run.data.unknown.drawn:
            divergence = ran(1, 2).divergence
    meter = run.store.meter
    at_rest, on_host = (run.store.resting(host, rests.unpadded) for host in (False, True))
    kept = meter.bytes(host=False)
    passing = meter.peak - sum(kept.values())
    if rests.waits_whole and schedule.sliced_by_update:  # what is left of gradients has no padding
        passing += kept[State.GRADIENTS] - at_rest[State.GRADIENTS]
    return Run(meter, run.network, at_rest, on_host, passing, run.bucket_bytes, divergence)


def _check(schedule: Schedule, mesh: Mapping[str, int], **sizes: int) -> None:
    if set(mesh) != set(schedule.axes):
        given, needed = ", ".join(mesh) or "none", ", ".join(schedule.axes) or "none"
        raise ValueError(f"the mesh's axes are {given}; the schedule's are {needed}")
    sizes |= {f"axis {a}": n for a, n in mesh.items()}
    for name, n in sizes.items():
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ValueError(f"{name} is {n}; expected a whole number from 1")


def _arithmetic(name: str | Arithmetic) -> Arithmetic:
    if isinstance(name, Arithmetic):
        return name
    if name not in ARITHMETICS:
        raise ValueError(f"arithmetic is {name}; expected {' or '.join(ARITHMETICS)}")
    return ARITHMETICS[name]()
