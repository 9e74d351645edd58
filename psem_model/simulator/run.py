"""Simulated runs: a schedule on many devices beside the same training on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np

from psem_model.simulator.arithmetic import ARITHMETICS, Arithmetic, Array, Number
from psem_model.simulator.copies import beside
from psem_model.simulator.layout import cluster_of, layout_of
from psem_model.simulator.models import Data, Model, Polynomial
from psem_model.simulator.network import Network, OpKey
from psem_model.simulator.operations import Executor, redraw
from psem_model.simulator.passes import passes
from psem_model.simulator.single import Single
from psem_model.simulator.store import NUMBER_BYTES, RESTS
from spec.language.schedule import Schedule
from spec.meaning.match import Divergence, first_difference
from spec.models.states import MIXED_ADAM, BytePolicy, State


@dataclass(frozen=True)
class Run:
    """What a run took, and where it first diverged. Bytes are of each device, or of its host part.

    `resting`, `host`: after the last step. `peak`: at the fullest moment, made of `peak_parts`.
    Blocks have rows of the same length on all devices, so that these are every device's. What
    follows is the last step's. `sent_by_state` (None: numbers and statistics) and
    `sent_by_operation`: elements that each device sends to others, as arrays (devices,);
    `host_by_state`: elements over its host link, by (state, whether to the host). `widths`,
    `widths_sent`: bytes of an element at rest, and of one that an operation sends to others. `links`:
    elements from each device to each, of each state.
    """

    devices: int
    resting: dict[State, Number]
    peak: Number
    peak_parts: dict[State, Number]
    host_parts: dict[State, Number]
    sent_by_state: dict[State | None, Array]
    sent_by_operation: dict[OpKey, Array]
    host_by_state: dict[tuple[State | None, bool], int]
    links_by_state: dict[State | None, Array]
    messages: int
    widths: dict[State | None, Number]
    widths_sent: dict[OpKey, Number]
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
    def sent_elements_per_device(self) -> Array:
        """Elements that each device sends to others in a step (devices,)."""
        return sum(self.sent_by_state.values(), start=np.zeros(self.devices, np.int64))

    @property
    def sent_per_device(self) -> Array:
        """Bytes that each device sends to others in a step (devices,)."""
        sums = (n * self.widths_sent[op] for op, n in self.sent_by_operation.items())
        return sum(sums, start=np.zeros(self.devices, np.int64))

    @property
    def sent_elements(self) -> int:
        """Elements sent in a step by the device that sends most."""
        return int(self.sent_elements_per_device.max())

    @property
    def sent(self) -> Number:
        """Bytes sent in a step by the device that sends most."""
        most: Number = self.sent_per_device.max()
        return int(most) if isinstance(most, np.integer) else most

    def over_host_link(self, offloaded: bool) -> Number:
        """Bytes from each device to its host in a step, or from its host."""
        found = {s: n for (s, to_host), n in self.host_by_state.items() if to_host is offloaded}
        return sum(n * self.widths[state] for state, n in found.items())

    @property
    def host_link(self) -> Number:
        """Bytes over each device's host link in a step, both ways."""
        return self.over_host_link(True) + self.over_host_link(False)

    @property
    def links(self) -> Array:
        """Elements from each device to each in a step (devices, devices)."""
        start = np.zeros((self.devices, self.devices), np.int64)
        return sum(self.links_by_state.values(), start=start)


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
    progress: Callable[[int], None] | None = None,
    stop_at_divergence: bool = False,
) -> Run:
    """Run a schedule for some steps, on `psi` parameters in units of `unit`, beside a single device.

    What is not known is random. A run that reads any of it matches if two runs do, with other random
    numbers each: what differs between the two is drawn anew after each operation.

    `begin`: the devices' first weights (devices, elements) from the single device's (1, elements), if
    they are others. `progress` is called with the number of passes done. Raises ValueError with one
    line if a size is not a whole number from 1, the mesh does not have the schedule's axes, the
    arithmetic is unknown, or the model does not fit.
    """
    unit = psi if unit is None else unit
    _check(schedule, mesh, psi=psi, steps=steps, micro_steps=micro_steps, unit=unit)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed is {seed}; expected a whole number from 0")
    cluster = cluster_of(tuple((a, mesh[a]) for a in schedule.axes))
    unit = min(unit, psi)
    smaller = [psi % unit] if psi % unit else []  # the first unit, if any is
    lengths = [*smaller, *[unit] * (psi // unit)]
    layouts = [layout_of(cluster, schedule.cut, (n, 1)) for n in lengths]
    numbers = _arithmetic(arithmetic)
    model = Polynomial() if model is None else model

    def executed(
        progress: Callable[[int], None], *poisons: int
    ) -> tuple[list[Executor], Divergence | None]:
        """Runs that differ in what is not known, an operation each in turn, and where one diverges."""
        every = [Data(seed, cluster, numbers, poison) for poison in poisons]
        data = every[0]
        model.start(data, lengths, micro_steps, schedule.training.tied)
        weights = [data.random("weights", (1, n), u) for u, n in enumerate(lengths)]
        moments = [data.moments(unit, n, policy.k > 0) for unit, n in enumerate(lengths)]
        runs = [Executor(schedule, mesh, micro_steps, layouts, model, each, policy) for each in every]
        for run in runs:
            run.store.start(weights if begin is None else [begin(row) for row in weights], moments)
        single = Single(schedule.training, model, data, weights, moments, micro_steps)
        divergence, done = None, count(1)
        for step in range(steps):
            for run in runs:
                run.network = Network(cluster.devices)
            for work in passes(schedule, micro_steps):
                for _ in zip(*(run.one_by_one(work, step) for run in runs), strict=True):
                    redraw(runs)
                progress(next(done))
            single.step(step)
            for run in runs:
                divergence = divergence or first_difference(
                    beside(run, single, step), run.arithmetic.unequal
                )
            if divergence and stop_at_divergence:
                break
        return runs, divergence

    with np.errstate(all="ignore"):
        (run,), divergence = executed(progress or (lambda _: None), 0)
        if divergence is None and run.data.unknown.drawn:
            _, divergence = executed(lambda _: None, 1, 2)
    meter, network = run.store.meter, run.network
    widths: dict[State | None, Number] = {None: NUMBER_BYTES, State.ACTIVATIONS: 0}
    widths |= {state: policy.of(state) for state in RESTS}
    return Run(
        cluster.devices,
        meter.bytes(False),
        meter.peak,
        meter.peak_parts,
        meter.bytes(True),
        {state: links.sum(1) for state, links in network.links.items()},
        network.sent,
        network.hosted,
        network.links,
        network.messages,
        widths,
        network.widths,
        divergence,
    )


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
