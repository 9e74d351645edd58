"""The lines of a schedule, each as the specification executes it: on normal forms and on devices.

Along one axis of n devices. A normal form's coefficients, and what devices hold, are Z3 terms here;
`spec.semantics.execute` runs on both, so that nothing of a line is said a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import z3

from proofs.smtlib import KernelError
from spec.forms import Forms, Need, Rejected
from spec.operators import (
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
from spec.schedule import Buffer, Kind, Monomial, Op, Phase, Rest, Schedule, Span
from spec.semantics import CONTENT, MOMENT, Devices, execute, initial
from spec.states import MIXED_ADAM, State
from spec.verdict import require_agreed
from spec.words import Position, Symbol

AXIS, FACTOR = "axis", "factor"
OWNER, FIRST = 0, 1  # places: the element's owner, and the first device, if that is another
NAMED = {0: (OWNER,), 1: (OWNER, FIRST)}  # by the place of the first device: which have names
PLACES: tuple[Offset, ...] = (OWNER, FIRST, OTHER)
WHO = (ALL, OWNER, FIRST)
OPERATORS = (KEEP, *(Operator(to, of) for to in WHO for of in WHO))
OnDevice = Callable[[Any], Any]
ANYONE = "any device"
Coefficients = list[Any]  # of a normal form, one real term for each of OPERATORS

NOW = 0  # the step in which a line is executed
GRADIENT, UNKNOWN = Symbol("gradient", NOW), Symbol("unknown", 0, made_of="it is not known")
REAL = z3.RealSort()


def of_place(operator: Operator, place: int) -> bool:
    """Whether an operator speaks of the device at a place."""
    return place in operator


# ------------------------------------------------------------------- the domains
class Checker(Forms):
    """The checker's normal forms on one axis, any of whose coefficients may be terms.

    Its comparisons are recorded, by place, and come out as it is said: unmet at the places `unmet`.
    """

    def __init__(self, n: Any, first: int, schedule: Schedule, factor: Any = 1) -> None:
        mesh = {AXIS: n, FACTOR: factor}
        super().__init__(schedule, mesh, 2, MIXED_ADAM, None, {AXIS: first}, True)
        self.compared: list[tuple[Offset, Need, dict[Any, Any]]] = []
        self.unmet_at: tuple[Offset, ...] = ()

    def unmet(self, *needs: Need) -> list[tuple[Need, Any]]:
        return [(need, add(need.has, scale(need.needs, -1))) for need in needs]

    def reason(self, position: Position, unmet: Any) -> Rejected | None:
        (place,) = position
        self.compared += [(place, need, difference) for need, difference in unmet]
        return Rejected("", "", "", None, 0) if place in self.unmet_at else None

    def only_at(self, place: Offset) -> Coefficients:
        """The coefficients of a value on the device at a place, and nothing elsewhere."""
        return coefficients(self._only_at(self.symbol(GRADIENT.kind, NOW), (place,)), GRADIENT.kind)

    def sees(self, form: Mapping[Any, Any], place: Offset) -> Iterator[tuple[Any, Any]]:
        """What a device at a place sees of a form: whether it is there to be seen, and how often."""
        for (_, sources), amount in self.at(form, (place,)).items():
            there: Any = z3.BoolVal(True)
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
    return [z3.simplify(real(sums.get(op, 0))) for op in OPERATORS]


def real(number: Any) -> Any:
    """A number as a real term."""
    return z3.RealVal(str(number)) if isinstance(number, int | Fraction) else number


def one(amount: Any = 1) -> Coefficients:
    """The coefficients of a symbol in its original form."""
    return [real(amount if op == KEEP else 0) for op in OPERATORS]


class AnyDevices(Devices):
    """The specification's devices on one axis, any of whose values may be terms."""

    def __init__(self, owner: Any, junk: Any, total: Total | None = None, factor: Any = 1) -> None:
        super().__init__({AXIS: 1, FACTOR: factor}, {AXIS: owner}, z3.If, lambda: lambda _: junk)
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
    """A kind of line that moves values: an operation of a schedule, from `source` into `target`."""

    name: str
    op: Op

    def forms(
        self, x: Coefficients, z: Coefficients, symbol: Symbol, n: Any, first: int, f: Any
    ) -> Any:
        """The form in the target after the line; before it x is in the source, z in the target."""
        checker = Checker(n, first, schedule(), f)
        store = {(self.op.source, CONTENT): (False, form(symbol, x))}
        store[self.op.target, CONTENT] = (False, form(symbol, z))
        execute(self.op, schedule(), checker, store, 0)
        absent = (False, checker.unknown("it is not known"))
        return store.get((self.op.target, CONTENT), absent)[1]

    def value(self, d: Any, owner: Any, x: OnDevice, z: OnDevice, total: Any, junk: Any, f: Any) -> Any:
        """What device d has in the target after the line, where x and z are what devices had before.

        `total` is the sum of x over devices, `junk` what is not known.
        """

        def added_up(_: Any, terms: OnDevice) -> Any:
            if terms(ANYONE) is not x(ANYONE):
                raise KernelError(f"{self.name} sums up something else than its source")
            return total

        devices: Any = AnyDevices(owner, junk, added_up, f)
        store: Any = {(self.op.source, CONTENT): (False, lambda device: x(device[AXIS]))}
        store[self.op.target, CONTENT] = (False, lambda device: z(device[AXIS]))
        execute(self.op, schedule(), devices, store, 0)
        after: PerDevice = store.get((self.op.target, CONTENT), (False, devices.unknown("")))[1]
        return z3.simplify(real(after({AXIS: d})))


def _op(kind: Kind, into: bool = True, **more: Any) -> Op:
    """An operation on gradients, which may be in any place."""
    target = Buffer.TIED if into else None
    span = Span.UNIT if (into and kind not in (Kind.ACCUMULATE,)) or kind is Kind.ZERO else Span.NONE
    return Op(kind, Phase.REDUCE, Buffer.FRESH, target, span=span, **more)


ALONG: Any = {"axes": (AXIS,)}
MOVES = (
    Line("all_reduce", _op(Kind.ALL_REDUCE, **ALONG)),
    Line("reduce_scatter", _op(Kind.REDUCE_SCATTER, **ALONG)),
    Line("all_gather", _op(Kind.ALL_GATHER, **ALONG)),
    Line("broadcast", _op(Kind.BROADCAST, **ALONG)),
    Line("copy", _op(Kind.KEEP)),
    Line("keep", _op(Kind.KEEP, within=(AXIS,))),
    Line("accumulate", _op(Kind.ACCUMULATE)),
    Line("scale", _op(Kind.SCALE, False, by=Monomial(sizes=((FACTOR, 1),)))),
    Line("zero", _op(Kind.ZERO, False)),
    Line("release", _op(Kind.RELEASE, False)),
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
    return z3.simplify(real(found({AXIS: d})))


# ------------------------------------------------------------ what lines compute
BACKWARD = Op(Kind.BACKWARD, Phase.BACKWARD, Buffer.VIEW, Buffer.FRESH, span=Span.UNIT)
UPDATE = Op(Kind.UPDATE, Phase.UPDATE, Buffer.GRADIENTS, Buffer.OPTIMIZER)
READS = {
    BACKWARD: ((Buffer.VIEW, CONTENT), (Buffer.ACTIVATIONS, CONTENT)),
    UPDATE: ((Buffer.OPTIMIZER, CONTENT), (Buffer.OPTIMIZER, MOMENT), (Buffer.GRADIENTS, CONTENT)),
}
WRITES = {
    BACKWARD: ((Buffer.FRESH, CONTENT),),
    UPDATE: ((Buffer.OPTIMIZER, CONTENT), (Buffer.OPTIMIZER, MOMENT)),
}


def computed(
    op: Op, n: Any, first: int, unmet: Sequence[Offset] = (), spoiled: Sequence[Offset] = ()
) -> list[dict[Any, Any]]:
    """The forms that backward or an update writes, where its needs are not met at some places.

    At those in `spoiled` because something is not known.
    """
    checker = Checker(n, first, schedule())
    checker.unmet_at = tuple(unmet)
    unknown: dict[Any, Any] = {}
    for place in spoiled:
        unknown = add(unknown, form(UNKNOWN, checker.only_at(place)))
    store = dict.fromkeys(READS[op], (False, unknown))
    execute(op, schedule(), checker, store, 0)
    return [store[place][1] for place in WRITES[op]]


Compared = dict[Offset, list[Any]]  # by place, for each need the checker's comparison: a formula


def compared(op: Op, n: Any, first: int, symbol: Symbol, has: Sequence[Coefficients]) -> Compared:
    """What backward or an update compares, of one symbol; of each value read, the coefficients."""
    checker = Checker(n, first, schedule())
    read = zip(READS[op], has, strict=True)
    execute(op, schedule(), checker, {at: (False, form(symbol, c)) for at, c in read}, 0)
    return _formulas(checker, symbol)


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
        said = [z3.Implies(there, amount == 0) for there, amount in checker.sees(of_it, place)]
        found.setdefault(place, []).append(z3.And(*said))
    return found


def only_at(place: Offset, first: int) -> Coefficients:
    """The coefficients of what the devices at a place have, and nothing elsewhere."""
    return Checker(z3.Real("any_size"), first, schedule()).only_at(place)
