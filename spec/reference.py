"""A reference run: a schedule on a few devices beside the same training on one device.

Values may be fractions or terms: the run that refutes a schedule is found, and checked, with the
same definitions. The model is small but reads everything: an element's gradient depends on its own
activation and on another element's parameter, on every device and micro-step differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from spec.arithmetic import ceil_div
from spec.mesh import group_size
from spec.schedule import Buffer, Schedule
from spec.semantics import CONTENT, MOMENT, Axes, Store, execute, initial
from spec.states import State
from spec.training import momentum, sgd

Coordinate = tuple[int, ...]
Values = dict[tuple[int, Coordinate], Any]  # (element, device) -> value
Data = Callable[
    ..., Any
]  # data(what, *index): "start" (element) or "sample" (step, micro, device, element)


def primes(what: str, *index: Any) -> Fraction:
    """Data that are all different: no sum of some is a sum of others."""
    flat = [n for part in index for n in (part if isinstance(part, tuple) else (part,))]
    code = sum((n + 1) * 7 ** (i + 1) for i, n in enumerate(flat))
    return Fraction(code + (1 if what == "start" else 5), 1)


@dataclass(frozen=True)
class Divergence:
    """Where a run first differs from the single device."""

    step: int
    device: Coordinate
    element: int
    state: str
    has: Any
    single: Any

    def __str__(self) -> str:
        where = ",".join(map(str, self.device))
        return (
            f"after step {self.step + 1}, element {self.element} of the {self.state} on device "
            f"({where}) is {self.has}; on a single device it is {self.single}"
        )


class Reference:
    """The values that each device holds of each element."""

    def __init__(
        self,
        schedule: Schedule,
        sizes: dict[str, int],
        elements: int,
        data: Data,
        stateful: bool,
        master: bool,
    ) -> None:
        self.master = master
        self.axes, self.sizes, self.elements = schedule.axes, sizes, elements
        self.data, self.stateful, self.step = data, stateful, 0
        self.devices: list[Coordinate] = list(product(*(range(sizes[a]) for a in schedule.axes)))
        self.nothing: Values = {(j, d): 0 for j in range(elements) for d in self.devices}
        world = group_size(sizes, schedule.axes)
        self.owner: dict[int, Coordinate] = {}
        for j in range(elements):
            self.owner[j] = self.devices[(j // ceil_div(elements, world)) % world]

    def constant(self, value: Callable[[int], Any]) -> Values:
        """The same value of an element on every device."""
        return {(j, d): value(j) for j in range(self.elements) for d in self.devices}

    def sum(self, value: Values, axis: str) -> Values:
        a = self.axes.index(axis)

        def group(d: Coordinate) -> Iterator[Coordinate]:
            return ((*d[:a], i, *d[a + 1 :]) for i in range(self.sizes[axis]))

        return {(j, d): sum(value[j, other] for other in group(d)) for j, d in value}

    def owners(self, value: Values, axis: str) -> Values:
        a = self.axes.index(axis)
        return {(j, d): value[j, (*d[:a], self.owner[j][a], *d[a + 1 :])] for j, d in value}

    def owns(self, j: int, d: Coordinate, axes: Axes) -> bool:
        """Whether a device owns an element along all of some axes."""
        return all(d[a] == self.owner[j][a] for a in map(self.axes.index, axes))

    def replace(self, old: Values, new: Values, axes: Axes) -> Values:
        return {(j, d): (new if self.owns(j, d, axes) else old)[j, d] for j, d in old}

    def add(self, value: Values, other: Values) -> Values:
        return {key: value[key] + other[key] for key in value}

    def forward(self, view: Values) -> Values:
        return view

    def sample(self, micro_step: int, d: Coordinate, j: int, own: Any, other: Any) -> Any:
        """The gradient of one device's sample in one micro-step."""
        slope = 1 + self.devices.index(d)
        return slope * own + 2 * other + self.data("sample", self.step, micro_step, d, j)

    def gradient(self, view: Values, activations: Values, micro_step: int) -> Values:
        return {
            (j, d): self.sample(micro_step, d, j, activations[j, d], view[(j + 1) % self.elements, d])
            for j, d in view
        }

    def next(self, weight: Any, moment: Any, gradient: Any) -> tuple[Any, Any]:
        """Gradient descent; with state, momentum with weight decay, so that all depends on all."""
        if self.stateful:
            return momentum(weight, moment, gradient + weight, 1, 1)
        return sgd(weight, gradient, 1), 0

    def update(
        self, weight: Values, moment: Values, gradient: Values, axes: Axes
    ) -> tuple[Values, Values]:
        pairs = {
            key: self.next(weight[key], moment[key], gradient[key])
            if self.owns(*key, axes)
            else (weight[key], moment[key])
            for key in weight
        }
        return {k: v[0] for k, v in pairs.items()}, {k: v[1] for k, v in pairs.items()}


def run(
    schedule: Schedule,
    sizes: dict[str, int],
    steps: int = 2,
    micro_steps: int = 1,
    elements: int | None = None,
    data: Data = primes,
    stateful: bool = True,
    master: bool = True,
) -> Iterator[Divergence]:
    """Compare every resting copy with the single device's value, step by step.

    Yields every comparison, in order; those that differ are the divergences. `stateful`: the
    optimizer keeps a moment; `master`: and a copy of the weights.
    """
    elements = elements or max(2, group_size(sizes, schedule.axes))
    world = Reference(schedule, sizes, elements, data, stateful, master)
    theta = [data("start", j) for j in range(elements)]
    omega: list[Any] = [0] * elements
    store = initial(schedule, world, world.constant(theta.__getitem__), world.nothing)
    for step in range(steps):
        world.step = step
        for m, op in schedule.flat(micro_steps):
            execute(op, schedule, world, store, m)
        whole = [
            sum(
                world.sample(m, d, j, theta[j], theta[(j + 1) % elements])
                for m in range(micro_steps)
                for d in world.devices
            )
            for j in range(elements)
        ]
        after = [world.next(*state) for state in zip(theta, omega, whole, strict=True)]
        theta, omega = [w for w, _ in after], [m for _, m in after]
        yield from _compare(schedule, world, store, theta, omega)


def _compare(
    schedule: Schedule, world: Reference, store: Store, theta: list[Any], omega: list[Any]
) -> Iterator[Divergence]:
    """Each resting copy beside the single device's value."""
    kept = [
        (State.PARAMETERS, Buffer.PARAMETERS, CONTENT, "parameters", theta),
    ]
    if world.master:
        kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, CONTENT, "master weights", theta))
    if world.stateful:
        kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, MOMENT, "optimizer state", omega))
    if not any(schedule.rest(s).stored for s, _, _, _, single in kept if single is theta):
        for j, weight in enumerate(theta):
            yield Divergence(world.step, world.owner[j], j, "parameters", None, weight)
    for state, buffer, part, words, single in kept:
        rest = schedule.rest(state)
        if not rest.stored:
            continue
        host, value = store.get((buffer, part), (rest.host, world.nothing))
        value = value if host is rest.host else world.nothing
        for (j, d), has in value.items():
            if world.owns(j, d, rest.sharded):
                yield Divergence(world.step, d, j, words, has, single[j])


def first_divergence(schedule: Schedule, sizes: dict[str, int], **options: Any) -> Divergence | None:
    """The first copy of a run that differs from the single device's value, in exact arithmetic."""
    compared = run(schedule, sizes, **options)
    return next((d for d in compared if d.has != d.single), None)
