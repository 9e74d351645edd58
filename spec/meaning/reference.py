"""A reference run: a schedule on a few devices beside the same training on one device.

Values may be fractions or terms: the run that refutes a schedule is found, and checked, with the
same definitions. Samples have the losses of a model that reads everything, or others.
Clipping divides by 1 + the square of the norm: any function that is 1 of no norm will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from spec.devices.mesh import Axes, group_size
from spec.language.schedule import Buffer, Monomial, Schedule
from spec.meaning.match import Copies, Divergence, Place, first_difference
from spec.meaning.semantics import CONTENT, MOMENT, Store, execute, initial, other_side
from spec.models.states import State
from spec.models.training import Loss, Statistics, momentum, sgd
from spec.numbers.arithmetic import ceil_div


class Unknown:
    """What is not known: so is all that is made of it, and it is like nothing else, nor like itself."""

    def absorb(self, *_: Any) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = absorb

    def __eq__(self, _: object) -> bool:
        return False

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return "not known"


UNKNOWN = Unknown()
DECAY = 5  # so that no two numbers of updates are alike: with 1, 2 or 3 some undo others
Coordinate = tuple[int, ...]
Values = dict[tuple[int, Coordinate], Any]  # (element, device) -> value
# data("start" or "moment", element), data("sample" or "tied", step, micro-step, device, element),
# data("tokens" or "statistic", step, micro-step, device), and of what is not known
# data("unknown", how often before, device, element)
Data = Callable[..., Any]
OfAll = Callable[[int], Any]  # a value of each element


def primes(what: str, *index: Any) -> Any:
    """Data that are all different: no sum of some is a sum of others."""
    if what == "unknown":
        return UNKNOWN
    flat = [n for part in index for n in (part if isinstance(part, tuple) else (part,))]
    code: int = sum((n + 1) * 7 ** (i + 1) for i, n in enumerate(flat))
    kinds = ("start", "tokens", "tied", "statistic", "sample", "moment")
    return code + kinds.index(what) + 1


class Losses:
    """Those of a small model that reads everything: an element's gradient depends on its own activation
    and on another element's parameter, on every device and micro-step differently.
    """

    def sample(
        self,
        world: Reference,
        micro_step: int,
        d: Coordinate,
        j: int,
        kept: OfAll,
        view: OfAll,
        tied: bool,
    ) -> Any:
        """The gradient of one device's sample in one micro-step, of what is kept of it and is read."""
        slope, what = (3, "tied") if tied else (1 + world.devices.index(d), "sample")
        other = view((j + 1) % world.elements)
        return slope * kept(j) + 2 * other + world.data(what, world.step, micro_step, d, j)


READS_EVERYTHING = Losses()


class Reference:
    """The values that each device holds of each element; of a number, the same for each element."""

    def __init__(
        self,
        schedule: Schedule,
        sizes: dict[str, int],
        micro_steps: int,
        elements: int,
        data: Data,
        stateful: bool,
        master: bool,
        losses: Losses = READS_EVERYTHING,
    ) -> None:
        self.losses, self.master, self.training = losses, master, schedule.training
        self.micro_steps = micro_steps
        self.axes, self.sizes, self.elements = schedule.axes, sizes, elements
        self.data, self.stateful, self.step = data, stateful, 0
        self.devices: list[Coordinate] = list(product(*(range(sizes[a]) for a in schedule.axes)))
        self.zero: Values = {(j, d): 0 for j in range(elements) for d in self.devices}
        self.unknowns = 0
        self._single: list[tuple[list[Any], list[Any]]] = []
        world = group_size(sizes, schedule.axes)
        self.owner: dict[int, Coordinate] = {}
        for j in range(elements):
            self.owner[j] = self.devices[j // ceil_div(elements, world)]

    def unknown(self, _: str) -> Values:
        self.unknowns += 1
        return {(j, d): self.data("unknown", self.unknowns, d, j) for j, d in self.zero}

    def require_a_slice(self, *_: Any) -> None:
        """What is whole is cut: whether that is refused, the verdict says."""

    def constant(self, value: Callable[[int], Any]) -> Values:
        """The same value of an element on every device."""
        return {(j, d): value(j) for j in range(self.elements) for d in self.devices}

    def group(self, d: Coordinate, axes: Axes) -> Iterator[Coordinate]:
        """All devices that differ from one along some axes only."""
        chosen = [
            range(self.sizes[a]) if a in axes else (i,) for a, i in zip(self.axes, d, strict=True)
        ]
        return product(*chosen)

    def sum(self, value: Values, axis: str) -> Values:
        return {(j, d): sum(value[j, other] for other in self.group(d, (axis,))) for j, d in value}

    def taker(self, j: int, axis: str, shift: int) -> int:
        """The coordinate of the device that takes the element's slice for its own."""
        return (self.owner[j][self.axes.index(axis)] - shift) % self.sizes[axis]

    def _at(self, d: Coordinate, axis: str, i: int) -> Coordinate:
        a = self.axes.index(axis)
        return (*d[:a], i, *d[a + 1 :])

    def owners(self, value: Values, axis: str, shift: int = 0) -> Values:
        return {(j, d): value[j, self._at(d, axis, self.taker(j, axis, shift))] for j, d in value}

    def first(self, value: Values, axis: str) -> Values:
        return {(j, d): value[j, self._at(d, axis, 0)] for j, d in value}

    def owns(self, j: int, d: Coordinate, axes: Axes, shift: int = 0) -> bool:
        """Whether a device takes an element for its own along all of some axes."""
        return all(d[self.axes.index(a)] == self.taker(j, a, shift) for a in axes)

    def replace(self, old: Values, new: Values, axes: Axes, shift: int = 0) -> Values:
        return {key: (new if self.owns(*key, axes, shift) else old)[key] for key in old}

    def add(self, value: Values, other: Values) -> Values:
        return {key: value[key] + other[key] for key in value}

    def scale(self, value: Values, factor: Monomial) -> Values:
        number = factor.at(self.sizes, self.micro_steps)
        return {key: number * x if number else 0 for key, x in value.items()}

    def divide(self, value: Values, count: Values) -> Values:
        return {key: divided(x, count[key]) for key, x in value.items()}

    def square_norm(self, gradient: Values) -> Values:
        norms = {
            d: sum(gradient[j, d] * gradient[j, d] for j in range(self.elements)) for d in self.devices
        }
        return {(j, d): norms[d] for j, d in gradient}

    def clip(self, gradient: Values, square_norm: Values) -> Values:
        return {key: divided(x, 1 + square_norm[key]) for key, x in gradient.items()}

    def forward(self, view: Values, axes: Axes) -> Values:
        """On each device the activations of each device's samples: of its group along `axes`."""
        self.unknowns += 1
        return {
            (j, d): {e: self.data("unknown", self.unknowns, d, j, e) for e in self.devices}
            | dict.fromkeys(self.group(d, axes), x)
            for (j, d), x in view.items()
        }

    def of_group(self, activations: Values, axes: Axes) -> Values:
        def source(d: Coordinate, e: Coordinate) -> Coordinate:  # the one of d's group that has e's
            places = zip(self.axes, d, e, strict=True)
            return tuple(there if axis in axes else here for axis, here, there in places)

        return {
            (j, d): {e: _of_samples(activations[j, source(d, e)], e) for e in self.devices}
            for j, d in activations
        }

    def gradient(
        self, view: Values, activations: Values, micro_step: int, axes: Axes, tied: bool = False
    ) -> Values:
        def at(j: int, d: Coordinate) -> Any:
            def of(e: Coordinate) -> Any:
                def kept(i: int) -> Any:
                    return _of_samples(activations[i, d], e)

                return self.losses.sample(self, micro_step, e, j, kept, lambda i: view[i, d], tied)

            return sum(map(of, self.group(d, axes)))

        return {(j, d): at(j, d) for j, d in view}

    def tokens(self, micro_step: int) -> Values:
        return {(j, d): self.data("tokens", self.step, micro_step, d) for j, d in self.zero}

    def statistic(self, micro_step: int) -> Values:
        return {(j, d): self.data("statistic", self.step, micro_step, d) for j, d in self.zero}

    def single_sum(self, theta: list[Any]) -> list[Any]:
        """The sum of all samples' gradients, at a single device's parameters."""
        uses = (False, True) if self.training.tied else (False,)
        return [
            sum(
                self.losses.sample(self, m, d, j, theta.__getitem__, theta.__getitem__, tied)
                for m in range(self.micro_steps)
                for d in self.devices
                for tied in uses
            )
            for j in range(self.elements)
        ]

    def single_gradient(self, theta: list[Any]) -> list[Any]:
        """What a single device applies: all samples at its parameters, as the training says."""
        training, micro_steps = self.training, range(self.micro_steps)
        whole = self.single_sum(theta)
        if training.loss is Loss.MEAN:
            whole = [divided(g, len(self.devices) * self.micro_steps) for g in whole]
        if training.loss is Loss.TOKEN_MEAN:
            count = sum(self.data("tokens", self.step, m, d) for m in micro_steps for d in self.devices)
            whole = [divided(g, count) for g in whole]
        if training.clip:
            square_norm = sum(g * g for g in whole)
            whole = [divided(g, 1 + square_norm) for g in whole]
        return whole

    def single(self, step: int) -> tuple[list[Any], list[Any]]:
        """A single device's weights and moments when a step begins."""
        if not self._single:
            elements = range(self.elements)
            omega = [self.data("moment", j) for j in elements]
            self._single.append(([self.data("start", j) for j in elements], omega))
        now = self.step
        while len(self._single) <= step:
            self.step = len(self._single) - 1
            theta, omega = self._single[-1]
            states = zip(theta, omega, self.single_gradient(theta), strict=True)
            after = [self.next(*state) for state in states]
            self._single.append(([w for w, _ in after], [m for _, m in after]))
        self.step = now
        return self._single[step]

    def single_statistics(self, before: Any) -> Any:
        """What a single device's statistics are after a step."""
        for m in range(self.micro_steps):
            added = [self.data("statistic", self.step, m, d) for d in self.devices]
            all_samples = self.training.statistics is Statistics.ALL
            before = before + (divided(sum(added), len(added)) if all_samples else added[0])
        return before

    def next(self, weight: Any, moment: Any, gradient: Any) -> tuple[Any, Any]:
        """Gradient descent, or momentum, with decay."""
        decayed = gradient + DECAY * weight
        return (
            momentum(weight, moment, decayed, 1, 1) if self.stateful else (sgd(weight, decayed, 1), 0)
        )

    def update(self, weight: Values, moment: Values, gradient: Values) -> tuple[Values, Values]:
        pairs = {key: self.next(weight[key], moment[key], gradient[key]) for key in weight}
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
    losses: Losses = READS_EVERYTHING,
) -> Iterator[Copies]:
    """Every resting copy beside the single device's value, step by step.

    `stateful`: the optimizer keeps a moment; `master`: and a copy of the weights.
    """
    elements = elements or max(2, group_size(sizes, schedule.axes))
    world = Reference(schedule, sizes, micro_steps, elements, data, stateful, master, losses)
    store = initial(schedule, world, *(world.constant(each.__getitem__) for each in world.single(0)))
    statistics: Any = 0
    for step in range(steps):
        world.step = step
        for m, op in schedule.flat(micro_steps):
            execute(op, schedule, world, store, m)
        statistics = world.single_statistics(statistics)
        yield from _beside(schedule, world, store, *world.single(step + 1), statistics)


def _beside(
    schedule: Schedule,
    world: Reference,
    store: Store,
    theta: list[Any],
    omega: list[Any],
    statistics: Any,
) -> Iterator[Copies]:
    """Each state that is kept, but for working copies; of the weights at least one copy."""

    def copies(state: str, has: Values, single: Callable[[int], Any]) -> Copies:
        keys, values = list(has), [single(j) for j, _ in has]

        def place(i: int) -> Place:
            j, d = keys[i]
            return Place(d, j)

        return Copies(world.step, state, list(has.values()), values, place)

    kept = [(State.PARAMETERS, Buffer.PARAMETERS, CONTENT, "parameters", theta)]
    if world.master:
        kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, CONTENT, "master weights", theta))
    if world.stateful:
        kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, MOMENT, "optimizer state", omega))
    rests = {state: schedule.rest(state) for state in State}
    kept = [place for place in kept if rests[place[0]].stored and not rests[place[0]].working]
    if not any(single is theta for *_, single in kept):
        yield Copies(world.step, "parameters", None, theta, lambda j: Place(world.owner[j], j))
    if schedule.training.statistics:
        _, seen = store[Buffer.STATISTICS, CONTENT]
        if schedule.training.statistics is Statistics.COPY:
            seen = {(j, d): has for (j, d), has in seen.items() if d == world.devices[0]}
        yield copies("statistics", seen, lambda _: statistics)
    for state, buffer, part, words, single in kept:
        rest = rests[state]
        host, value = store[buffer, part]
        value = value if host is rest.host else world.unknown(other_side(buffer))
        own = {(j, d): has for (j, d), has in value.items() if world.owns(j, d, rest.sharded)}
        yield copies(words, own, single.__getitem__)


def _of_samples(activations: Any, device: Coordinate) -> Any:
    """Those of a device's samples, or what is not known of any."""
    return activations[device] if isinstance(activations, dict) else activations


def divided(value: Any, number: Any) -> Any:
    """An exact quotient; not known over zero. Zero over what is not known is zero."""
    if isinstance(number, Unknown):
        return UNKNOWN if value != 0 else 0
    if isinstance(number, int | Fraction):
        return value * (1 / Fraction(number)) if number else UNKNOWN
    return value / number


def first_divergence(schedule: Schedule, sizes: dict[str, int], **options: Any) -> Divergence | None:
    """The first copy of a run that differs from the single device's value, in exact arithmetic."""
    return first_difference(run(schedule, sizes, **options))
