"""The lines of a schedule: what the specification does to values, on normal forms and on devices.

Along one axis of n devices. A line is one operation of a domain of values, of those that
`spec.meaning.semantics.execute` is written over: an operation of a schedule is several
(`operation_lines`). A normal form's coefficients, and what devices hold, are Z3 terms here; the
specification's domains run on both, so that nothing of a line is said a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from proofs.trusted.terms import If, KernelError, RealSort, RealVal
from spec.devices.operators import (
    ALL,
    IDENTITY,
    OTHER,
    Offset,
    Operator,
    PerDevice,
    Total,
    owners,
    summed,
)
from spec.language.schedule import Buffer, Monomial, Rest, Schedule
from spec.meaning.semantics import CONTENT, MOMENT, Devices, initial
from spec.models.states import State

AXIS, FACTOR = "axis", "factor"
OWNER, FIRST = 0, 1  # places: the element's owner, and the first device, if that is another
NAMED = {0: (OWNER,), 1: (OWNER, FIRST)}  # by the place of the first device: which have names
PLACES: tuple[Offset, ...] = (OWNER, FIRST, OTHER)
WHO = (ALL, OWNER, FIRST)
OPERATORS = (IDENTITY, *(Operator(to, of) for to in WHO for of in WHO))
OnDevice = Callable[[Any], Any]
ANYONE = "any device"

NOW = 0  # the step in which a line is executed
REAL = RealSort()


# ------------------------------------------------------------------- the domains
def schedule(sharded: bool = False) -> Schedule:
    """A schedule without operations, whose resting places have room for slices only, or for all."""
    rests = Rest((AXIS,) if sharded else ())
    free = {State.ACTIVATIONS: Rest((AXIS,))}  # a device has those of its own samples
    return Schedule((AXIS,), tuple((state, free.get(state, rests)) for state in State), (), ())


def real(number: Any) -> Any:
    """A number as a real term."""
    return RealVal(str(number)) if isinstance(number, int | Fraction) else number


class AnyDevices(Devices):
    """The specification's devices on one axis, any of whose values may be terms."""

    def __init__(self, owner: Any, junk: Any, total: Total | None = None, factor: Any = 1) -> None:
        super().__init__({AXIS: 1, FACTOR: factor}, {AXIS: owner}, If, lambda: lambda _: junk)
        self.total = total

    def sum(self, value: PerDevice, axis: str) -> PerDevice:
        assert self.total
        return summed(value, axis, self.mesh[axis], self.total)

    def first(self, value: PerDevice, axis: str) -> PerDevice:
        return owners(value, axis, 0)

    def add(self, value: PerDevice, other: PerDevice) -> PerDevice:
        return lambda device: value(device) + other(device)

    def scale(self, value: PerDevice, factor: Monomial) -> PerDevice:
        return lambda device: factor.at(self.mesh, 1) * value(device)


# --------------------------------------------------------------------- the lines
@dataclass(frozen=True)
class Line:
    """A kind of line that moves values.

    `of`: what a domain makes of what is in source and target, along an axis.
    """

    name: str
    of: Callable[..., Any]

    def value(self, d: Any, owner: Any, x: OnDevice, z: OnDevice, total: Any, junk: Any, f: Any) -> Any:
        """What device d has in the target after the line, where x and z are what devices had before.

        `total` is the sum of x over devices, `junk` what is not known.
        """

        def added_up(_: Any, terms: OnDevice) -> Any:
            if terms(ANYONE) is not x(ANYONE):
                raise KernelError(f"{self.name} sums up something else than its source")
            return total

        devices: Any = AnyDevices(owner, junk, added_up, f)
        after: PerDevice = self.of(devices, lambda e: x(e[AXIS]), lambda e: z(e[AXIS]))
        return real(after({AXIS: d}))


MOVES = (
    Line("all_reduce", lambda domain, x, _, axis=AXIS: domain.sum(x, axis)),
    Line("all_gather", lambda domain, x, _, axis=AXIS: domain.owners(x, axis)),
    Line("broadcast", lambda domain, x, _, axis=AXIS: domain.first(x, axis)),
    Line("copy", lambda _domain, x, _, axis=AXIS: x),
    Line("keep", lambda domain, x, z, axis=AXIS: domain.replace(z, x, (axis,))),
    Line("accumulate", lambda domain, x, z, axis=AXIS: domain.add(z, x)),
    Line("scale", lambda domain, x, _, axis=AXIS: domain.scale(x, Monomial(powers=((FACTOR, 1),)))),
    Line("zero", lambda domain, *_, axis=AXIS: domain.zero),
    Line("release", lambda domain, *_, axis=AXIS: domain.unknown("it is not known")),
)


# what a place may hold at first: the state, and whether it is cut to slices
STARTS: dict[str, tuple[tuple[Buffer, str], bool]] = {
    "Weights": ((Buffer.PARAMETERS, CONTENT), False),
    "Weight_slices": ((Buffer.PARAMETERS, CONTENT), True),
    "Moments": ((Buffer.OPTIMIZER, MOMENT), False),
    "Moment_slices": ((Buffer.OPTIMIZER, MOMENT), True),
    "Zeros": ((Buffer.GRADIENTS, CONTENT), False),
    "Zero_slices": ((Buffer.GRADIENTS, CONTENT), True),
}


def started_on(start: str, d: Any, owner: Any, weight: Any, moment: Any, junk: Any) -> Any:
    """What device d has in a place at first."""
    place, sharded = STARTS[start]
    states = (lambda _: weight), (lambda _: moment)
    devices: Any = AnyDevices(owner, junk)
    found: PerDevice = initial(schedule(sharded), devices, *states)[place][1]
    return real(found({AXIS: d}))


# ------------------------------------------------------------ what lines compute
@dataclass(frozen=True)
class Computation:
    """A kind of line that computes. `of`: what a domain makes of what it reads, for each result."""

    name: str
    of: Callable[..., Sequence[Any]]


BACKWARD = Computation(
    "backward", lambda domain, view, activations: [domain.gradient(view, activations, 0, ())]
)
UPDATE = Computation(
    "update", lambda domain, weight, moment, gradient: domain.update(weight, moment, gradient)
)
