"""A run of a placement's step on N devices: the owner of an element, and others that are all alike.

`execute` runs over a domain of values that are two numbers: the owner's, and each other device's. They
are polynomials in N. So a run is one of any number of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any, NoReturn

from spec.checking.verdict import kept_copies
from spec.choosing.regimes import Kept, Regime
from spec.devices.mesh import Axes
from spec.language.schedule import Schedule
from spec.meaning.conditions import Condition, agreement, freshness, gradient_integrity, match, progress
from spec.meaning.reference import DECAY
from spec.meaning.semantics import execute, initial
from spec.models.training import momentum, sgd
from spec.numbers.any_size import any_size
from spec.numbers.arithmetic import Number

MORE = any_size("more")  # devices than two
OTHERS = MORE + 1
N = MORE + 2
OWNER, OTHER = POSITIONS = (0, 1)
STEPS = 2
Both = tuple[Number, Number]  # the owner's value, and another device's
Said = Callable[[Number], Any]  # a number, in words in which equal ones can be told
OWN = "own"  # of samples: a device's own, the owner's, another device's
WEIGHT, MOMENTUM = 3, 7  # at first
VIEWED, ACTIVATED = 2, 5  # by which a sample's gradient grows


@dataclass(frozen=True)
class Applied:
    """What an update read, and what it left."""

    weight: Both
    moment: Both
    gradient: Both
    weight_left: Both
    moment_left: Both


@dataclass(frozen=True)
class Seen:
    """What devices read, computed and applied in a step. `computed`: of their own samples.

    `views`: what forwards and backwards read before anything was updated, and of whose forward
    backwards read the activations.
    """

    views: tuple[Both, ...] = ()
    computed: Both = (0, 0)
    updates: tuple[Applied, ...] = ()


class OwnerAndOthers:
    """The domain (`spec.meaning.semantics.Domain`). What is not known is another number each time."""

    zero: Both = (0, 0)

    def __init__(self, regime: Regime) -> None:
        self.master = regime.optimizer is Kept.MASTER_COPY
        self.stateful = regime.optimizer is not Kept.NO_STATE
        self.step, self.seen, self.numbers = 0, Seen(), count(1)

    def unknown(self, _: str) -> Both:
        return _unlike(next(self.numbers))

    def require_a_slice(self, *_: Any) -> None:
        """Of derived steps none is refused for that."""

    def sum(self, value: Both, axis: str) -> Both:
        return (self.total(value),) * 2

    def owners(self, value: Both, axis: str, shift: int = 0) -> Both:
        return (value[OWNER],) * 2

    def replace(self, old: Both, new: Both, axes: Axes, shift: int = 0) -> Both:
        return (new[OWNER], old[OTHER]) if axes else new

    def add(self, value: Both, other: Both) -> Both:
        return value[OWNER] + other[OWNER], value[OTHER] + other[OTHER]

    def total(self, value: Both) -> Number:
        """The sum over all devices."""
        return value[OWNER] + OTHERS * value[OTHER]

    # ------------------------------------------------------------------ the model
    def data(self, micro_step: int, device: int) -> Number:
        """What a device's samples add to a gradient, whatever the parameters."""
        return (11, 17)[device] * (1 + micro_step + 2 * self.step)

    def sample(self, view: Number, kept: Number, micro_step: int, device: int) -> Number:
        """The gradient of a device's samples."""
        return VIEWED * view + ACTIVATED * kept + self.data(micro_step, device)

    def _see(self, *views: Both) -> None:
        if not self.seen.updates:
            self.seen = replace(self.seen, views=(*self.seen.views, *views))

    def forward(self, view: Both, axes: Axes) -> tuple[Mapping[Any, Number], ...]:
        """On the owner and on another device: by whose samples, the view that forward read."""
        self._see(view)
        missing = self.unknown("others' samples")
        others = view if axes else missing
        return tuple({OWN: view[c], **dict.fromkeys(POSITIONS, others[c])} for c in POSITIONS)

    def of_group(self, activations: Any, axes: Axes) -> Any:
        if not isinstance(activations[OWNER], Mapping):
            return activations
        own = {c: activations[c][OWN] for c in POSITIONS}
        return tuple({OWN: own[c], **own} for c in POSITIONS)

    def gradient(
        self, view: Both, activations: Any, micro_step: int, axes: Axes, tied: bool = False
    ) -> Both:
        kept = [_by_samples(each) for each in activations]
        owner, other = (each[OWN] for each in kept)
        self._see(view, (owner, other))
        own: Any = tuple(self.sample(view[c], kept[c][OWN], micro_step, c) for c in POSITIONS)
        self.seen = replace(self.seen, computed=self.add(self.seen.computed, own))
        if not axes:
            return own

        def others(c: int, of: int) -> Number:
            return self.sample(view[c], kept[c][of], micro_step, of)

        of_owner = own[OWNER] + OTHERS * others(OWNER, OTHER)
        return of_owner, own[OTHER] + others(OTHER, OWNER) + MORE * others(OTHER, OTHER)

    def next(self, weight: Number, moment: Number, gradient: Number) -> tuple[Number, Number]:
        """Momentum, or gradient descent, of weights that decay."""
        decayed = gradient + DECAY * weight
        if self.stateful:
            return momentum(weight, moment, decayed, 1, 1)
        return sgd(weight, decayed, 1), 0

    def update(self, weight: Both, moment: Both, gradient: Both) -> tuple[Both, Both]:
        left = [self.next(*each) for each in zip(weight, moment, gradient, strict=True)]
        weights, moments = ((a, b) for a, b in zip(*left, strict=True))
        applied = Applied(weight, moment, gradient, weights, moments)
        self.seen = replace(self.seen, updates=(*self.seen.updates, applied))
        return weights, moments

    def _in_no_placement(self, *_: Any) -> NoReturn:
        raise ValueError("no placement scales, divides, clips, broadcasts or counts")

    scale = divide = square_norm = clip = first = tokens = statistic = _in_no_placement


@cache
def _unlike(number: int) -> Both:
    return (200 + number) * N, (300 + number) * N


def _by_samples(activations: Any) -> Mapping[Any, Number]:
    """Activations by whose samples they are; what is not known is so of all."""
    if isinstance(activations, Mapping):
        return activations
    return dict.fromkeys((OWN, *POSITIONS), activations)


# ---------------------------------------------------------------------- what is found
@dataclass(frozen=True)
class Copy:
    """What a device keeps after a step, weights or moments, and what a single device has."""

    device: int
    of: str
    has: Number
    single: Number


@dataclass(frozen=True)
class Found:
    """What is seen in the first step; what is kept after it, and after the last.

    The last is the first that leaves something else than a single device has, or the second.
    """

    stateful: bool
    seen: Seen
    kept: tuple[Copy, ...]
    kept_at_last: tuple[Copy, ...]

    @property
    def once(self) -> Number:
        """Every sample's gradient of the first step, once, as it was computed."""
        owners, others = self.seen.computed
        return owners + OTHERS * others

    def keeps(self, device: int) -> bool:
        """Whether a device keeps what its own update left."""
        last = self.seen.updates[-1]
        left = {"weight": last.weight_left, "moment": last.moment_left}
        return any(copy.has == left[copy.of][device] for copy in self.kept if copy.device == device)

    def integrity(self, device: int, said: Said) -> Iterator[Condition]:
        """Gradient integrity, of what a device applies, if it keeps what that leaves."""
        for update in self.seen.updates:
            yield gradient_integrity(self.keeps(device), said(update.gradient[device]), said(self.once))

    def consistency(self, device: int, said: Said) -> Iterator[Condition]:
        """State consistency, of what a device reads, and keeps: the owner's first copy is what its
        update left, and other copies agree with it.
        """
        for view in self.seen.views:
            yield freshness(True, said(view[device]), said(WEIGHT))
        first, last = self.seen.updates[0], self.seen.updates[-1]
        kept = self.keeps(device)
        yield freshness(kept, said(first.weight[device]), said(WEIGHT))
        yield freshness(kept and self.stateful, said(first.moment[device]), said(MOMENTUM))
        left = {"weight": last.weight_left[OWNER], "moment": last.moment_left[OWNER]}
        current = {copy.of: copy.has for copy in reversed(self.kept) if copy.device == OWNER}
        for kind, has in current.items():
            yield progress(device == OWNER, said(has), said(left[kind]))
        for copy in self.kept:
            here = copy.device == device
            yield agreement(here, here, said(copy.has), said(current[copy.of]))

    @property
    def has_keeper(self) -> bool:
        """Whether some device keeps the weight."""
        return any(copy.of == "weight" for copy in self.kept)

    def match(self, said: Said) -> Iterator[Condition]:
        """Whether what is kept is a single device's."""
        return (match(True, said(copy.has), said(copy.single)) for copy in self.kept_at_last)


@cache
def run(schedule: Schedule, regime: Regime) -> Found:
    """A step of a schedule, of two micro-steps if there are several; and the next, if that is right."""
    devices, micro_steps = OwnerAndOthers(regime), 2 if regime.several else 1
    store = initial(schedule, devices, (WEIGHT,) * 2, (MOMENTUM,) * 2)
    weight, moment = WEIGHT, MOMENTUM
    steps: list[tuple[Seen, tuple[Copy, ...]]] = []
    for devices.step in range(STEPS):
        devices.seen = Seen()
        for m, op in schedule.flat(micro_steps):
            execute(op, schedule, devices, store, m)
        each = [[devices.sample(weight, weight, m, c) for c in POSITIONS] for m in range(micro_steps)]
        whole = sum(devices.total((owner, other)) for owner, other in each)
        weight, moment = devices.next(weight, moment, whole)
        single = {"weight": weight, "moment": moment}
        copies = tuple(
            Copy(c, kind, value[c], single[kind])
            for state, kind, value in kept_copies(devices, store, schedule, regime.policy)
            for c in (POSITIONS if not schedule.rest(state).sharded else (OWNER,))
        )
        steps.append((devices.seen, copies))
        if any(copy.has != copy.single for copy in copies):
            break
    (seen, kept), (_, kept_at_last) = steps[0], steps[-1]
    return Found(devices.stateful, seen, kept, kept_at_last)
