"""The lines of a schedule: what the specification does to values, on normal forms and on devices.

Along one axis of n devices. A line is one operation of a domain of values, of those that
`spec.meaning.semantics.execute` is written over: an operation of a schedule is several
(`operation_lines`). A normal form's coefficients, and what devices hold, are Z3 terms here; the
specification's domains run on both, so that nothing of a line is said a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from proofs.trusted.terms import And, BoolVal, If, Implies, KernelError, Real, RealSort, RealVal
from spec.checking.forms import Forms, Need, Rejected
from spec.checking.verdict import require_agreed
from spec.checking.words import Position, Symbol
from spec.devices.operators import (
    ALL,
    KEEP,
    OTHER,
    Offset,
    Operator,
    PerDevice,
    Source,
    Total,
    add,
    owners,
    rest,
    scale,
    summed,
)
from spec.language.schedule import Buffer, Monomial, Rest, Schedule
from spec.meaning.semantics import CONTENT, MOMENT, Devices, initial
from spec.models.states import MIXED_ADAM, State

AXIS, FACTOR = "axis", "factor"
OWNER, FIRST = 0, 1  # places: the element's owner, and the first device, if that is another
NAMED = {0: (OWNER,), 1: (OWNER, FIRST)}  # by the place of the first device: which have names
PLACES: tuple[Offset, ...] = (OWNER, FIRST, OTHER)
WHO = (ALL, OWNER, FIRST)
OPERATORS = (KEEP, *(Operator(to, of) for to in WHO for of in WHO))
OnDevice = Callable[[Any], Any]
Form = dict[Any, Any]
ANYONE = "any device"
Coefficients = list[Any]  # of a normal form, one real term for each of OPERATORS

NOW = 0  # the step in which a line is executed
GRADIENT, UNKNOWN = Symbol("gradient", NOW), Symbol("unknown", 0, made_of="it is not known")
REAL = RealSort()


def of_place(operator: Operator, place: int) -> bool:
    """Whether an operator speaks of the device at a place."""
    return place in operator


# ------------------------------------------------------------------- the domains
class Checker(Forms):
    """The checker's normal forms on one axis, any of whose coefficients may be terms.

    Its comparisons are recorded, by place, and taken for equal.
    """

    def __init__(self, n: Any, first: int, schedule: Schedule, factor: Any = 1) -> None:
        mesh = {AXIS: n, FACTOR: factor}
        super().__init__(schedule, mesh, 2, MIXED_ADAM, None, {AXIS: first}, True)
        self.compared: list[tuple[Offset, Need, dict[Any, Any]]] = []

    def unmet(self, *needs: Need) -> list[tuple[Need, Any]]:
        return [(need, add(need.has, scale(need.needs, -1))) for need in needs]

    def reason(self, position: Position, unmet: Any) -> Rejected | None:
        (place,) = position
        self.compared += [(place, need, difference) for need, difference in unmet]
        return None

    def only_at(self, place: Offset) -> Coefficients:
        """The coefficients of a value on the device at a place, and nothing elsewhere."""
        return coefficients(self._only_at(self.symbol(GRADIENT.kind, NOW), (place,)), GRADIENT.kind)

    def sees(self, form: Mapping[Any, Any], place: Offset) -> Iterator[tuple[Any, Any]]:
        """What a device at a place sees of a form: whether it is there to be seen, and how often."""
        for (_, sources), amount in self.at(form, (place,)).items():
            there: Any = BoolVal(True)
            if Source.REST in sources:
                there = rest(place, self.named[0], self.sizes[0]) > 0
            yield there, real(amount)


def schedule(sharded: bool = False) -> Schedule:
    """A schedule without operations, whose resting places have room for slices only, or for all."""
    rests = Rest((AXIS,) if sharded else ())
    free = {State.ACTIVATIONS: Rest((AXIS,))}  # a device has those of its own samples
    return Schedule((AXIS,), tuple((state, free.get(state, rests)) for state in State), (), ())


def form(symbol: Symbol, amounts: Sequence[Any]) -> dict[Any, Any]:
    """A normal form of one symbol."""
    return {(symbol, (op,)): amount for op, amount in zip(OPERATORS, amounts, strict=True)}


def coefficients(found: Mapping[Any, Any], kind: str) -> Coefficients:
    """What a form has of the symbols of a kind, all together."""
    sums: dict[Operator, Any] = {}
    for (symbol, (op,)), amount in found.items():
        if symbol.kind == kind:
            sums[op] = sums.get(op, 0) + real(amount)
    if not set(sums) <= set(OPERATORS):
        raise KernelError("an operator that is not listed")
    return [real(sums.get(op, 0)) for op in OPERATORS]


def real(number: Any) -> Any:
    """A number as a real term."""
    return RealVal(str(number)) if isinstance(number, int | Fraction) else number


def one(amount: Any = 1) -> Coefficients:
    """The coefficients of a symbol in its original form."""
    return [real(amount if op == KEEP else 0) for op in OPERATORS]


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
        return lambda device: factor.value(self.mesh, 1) * value(device)


# --------------------------------------------------------------------- the lines
@dataclass(frozen=True)
class Line:
    """A kind of line that moves values. `of`: what a domain makes of what is in source and target."""

    name: str
    of: Callable[[Any, Any, Any], Any]

    def after(self, source: Form, target: Form, n: Any, first: int, f: Any) -> Form:
        """The form in the target after the line, in those before."""
        found: Form = self.of(Checker(n, first, schedule(), f), source, target)
        return found

    def forms(
        self, x: Coefficients, z: Coefficients, symbol: Symbol, n: Any, first: int, f: Any
    ) -> Form:
        """The form in the target after the line; before it x is in the source, z in the target."""
        return self.after(form(symbol, x), form(symbol, z), n, first, f)

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
    Line("all_reduce", lambda domain, x, _: domain.sum(x, AXIS)),
    Line("all_gather", lambda domain, x, _: domain.owners(x, AXIS)),
    Line("broadcast", lambda domain, x, _: domain.first(x, AXIS)),
    Line("copy", lambda _domain, x, _: x),
    Line("keep", lambda domain, x, z: domain.replace(z, x, (AXIS,))),
    Line("accumulate", lambda domain, x, z: domain.add(z, x)),
    Line("scale", lambda domain, x, _: domain.scale(x, Monomial(sizes=((FACTOR, 1),)))),
    Line("zero", lambda domain, *_: domain.zero),
    Line("release", lambda domain, *_: domain.unknown("it is not known")),
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


def started(start: str, n: Any, first: int) -> dict[Any, Any]:
    """The form of a place at first."""
    place, sharded = STARTS[start]
    checker = Checker(n, first, schedule(sharded))
    states = (checker.symbol(kind, NOW) for kind in ("weight", "moment"))
    found: dict[Any, Any] = initial(schedule(sharded), checker, *states)[place][1]
    return found


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
READS = {BACKWARD: 2, UPDATE: 3}  # how many values


Compared = dict[Offset, list[Any]]  # by place, for each need the checker's comparison: a formula


def compared(
    line: Computation, n: Any, first: int, symbol: Symbol, has: Sequence[Coefficients]
) -> Compared:
    """What backward or an update compares, of one symbol; of each value read, the coefficients."""
    checker = Checker(n, first, schedule())
    line.of(checker, *(form(symbol, amounts) for amounts in has))
    return _formulas(checker, symbol)


def computed(line: Computation, n: Any, first: int) -> list[Form]:
    """The forms that backward or an update makes of what compares equal."""
    return list(line.of(Checker(n, first, schedule()), *([{}] * READS[line])))


def agreed(start: str, n: Any, first: int, symbol: Symbol, has: Coefficients) -> Compared:
    """What is compared at the end of a step, of one symbol, for a place that holds a state."""
    place, sharded = STARTS[start]
    checker = Checker(n, first, schedule(sharded))
    store = {place: (False, form(symbol, has))}
    require_agreed(checker, store, schedule(sharded))
    checker.compared = [each for each in checker.compared if each[1].has is store[place][1]]
    return _formulas(checker, symbol)


def _formulas(checker: Checker, symbol: Symbol) -> Compared:
    found: Compared = {}
    for place, _, difference in checker.compared:
        of_it = {term: amount for term, amount in difference.items() if term[0] == symbol}
        said = [Implies(there, amount == 0) for there, amount in checker.sees(of_it, place)]
        found.setdefault(place, []).append(And(*said))
    return found


def only_at(place: Offset, first: int) -> Coefficients:
    """The coefficients of what the devices at a place have, and nothing elsewhere."""
    return Checker(Real("any_size"), first, schedule()).only_at(place)
