"""T1: the operator algebra is what operators do to values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product as pairs
from operator import mul
from typing import Any

from proofs.claim import claim
from proofs.tools.sums import Sum, closed_form, equal_terms, of_sums, partition, total
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And, Distinct, If, Implies, IntSort, RealSort, RealVal, Term, ToReal
from spec.devices import operators as spec
from spec.devices.operators import (
    ALL,
    IDENTITY,
    OTHER,
    OWNER,
    SLICE,
    SUM_ALL,
    SUM_SLICE,
    Operator,
    PerDevice,
    Source,
)
from spec.meaning.semantics import Devices

AXIS = "axis"


@dataclass
class Axis:
    """One axis of n >= 1 devices, with an owner, and the sums that were needed along it."""

    k: Kernel
    n: Any
    owner: Any
    other: Any  # the device one place after the owner
    sizes: Theorem
    sums: list[Sum] = field(default_factory=list)

    def total(self, _: Any, terms: Callable[[Any], Any]) -> Any:
        """The sum of terms(i) over the axis, as a new symbol."""
        i = self.k.integers(f"i{len(self.sums)}")
        made = total(self.k, f"sum{len(self.sums)}", [], i, _real(terms(i)))
        self.sums.append(made)
        return made(self.n)

    def meaning(self, operator: Operator, value: PerDevice) -> PerDevice:
        """What an operator makes of a value: the specification's definition."""
        if operator == IDENTITY:
            return value
        if operator.of == ALL:
            everywhere = spec.summed(value, AXIS, self.n, self.total)({AXIS: self.owner})
            value = lambda device: everywhere  # noqa: E731
        else:
            value = spec.owners(value, AXIS, self.place(operator.of))
        return value if operator.to == ALL else spec.sliced(value, AXIS, self.place(operator.to), If)

    def place(self, who: spec.Who) -> Any:
        """The device that a place is."""
        return {0: self.owner, 1: self.other}[int(who)]


def _real(term: Any) -> Any:
    return term if isinstance(term, Term) else RealVal(term)


def one_axis(k: Kernel) -> Axis:
    n, owner, other = (k.fixed(v, IntSort()) for v in ("n", "owner", "other"))
    are = And(owner >= 0, owner < n, other >= 0, other < n)
    return Axis(k, n, owner, other, k.suppose("owner_and_other_are_of_n", [], are))


# one operator for each way in which two can meet: over all, at the owner, at another device
LEFT = (SUM_ALL, OWNER, SLICE, SUM_SLICE)
RIGHT = (*LEFT, Operator(1, 1), Operator(1, ALL), Operator(ALL, 1))
OPERATORS = (IDENTITY, *RIGHT, Operator(0, 1), Operator(1, 0))
FEW = 3  # devices on which matrices are multiplied


def name(operator: Operator) -> str:
    """An operator in a theorem's name."""
    words = {0: "owner", 1: "other"}
    to, of = (words.get(who, who) if isinstance(who, int) else who for who in operator)
    return f"{to}_of_{of}"


@claim("T1")
def operations_do_what_their_types_say(k: Kernel) -> tuple[Theorem, ...]:
    """How operators multiply, their linearity and commutation across axes hold for every n.

    So do what each reads on the owner, on another device and elsewhere, as tabulated, and that the
    square norms of slices add up. Which operators an operation is, is not proved here. (Claim T1)
    """
    _require_matrices(k)
    _require_slices_along_two(k)
    products = tuple(
        _product(k.part(f"{name(left)}_{name(right)}"), left, right)
        for left, right in pairs(LEFT, RIGHT)
    )
    return (
        *products,
        *_linear(k.part("linear")),
        *_commute(k.part("commute")),
        *_positions(k.part("positions"), (0,)),
        *_positions(k.part("positions_told_apart"), (0, 1)),
        *_parts_of_a_norm(k.part("norms")),
        _parts_of_other_devices(k.part("parts")),
    )


def _matrix(operator: Operator) -> list[list[int]]:
    """Of each of a few devices, how often it gets what each of them has."""
    devices, (to, of) = range(FEW), operator
    if operator == IDENTITY:
        return [[int(d == i) for i in devices] for d in devices]
    return [[int(to in (d, ALL) and of in (i, ALL)) for i in devices] for d in devices]


def _require_matrices(k: Kernel) -> None:
    """Raise KernelError unless products and transposes are those of matrices, on a few devices."""
    for left, right in pairs(OPERATORS, repeat=2):
        rows, columns = _matrix(left), [*zip(*_matrix(right), strict=True)]
        product = [[sum(map(mul, row, column)) for column in columns] for row in rows]
        times, made = spec.composed(left, right, FEW)
        if product != [[times * amount for amount in row] for row in _matrix(made)]:
            raise KernelError(f"{k.claim}: {name(left)} after {name(right)} is {times} {name(made)}")
    for operator in OPERATORS:
        turned = [[*column] for column in zip(*_matrix(operator), strict=True)]
        if turned != _matrix(spec.transpose(operator)):
            raise KernelError(f"{k.claim}: {name(operator)} has another transpose")


def _require_slices_along_two(k: Kernel) -> None:
    """Raise KernelError unless just those who own an element along both of two axes take another."""
    owner = {"outer": 1, "inner": 2}
    devices = Devices(
        dict.fromkeys(owner, FEW), owner, lambda is_so, yes, no: yes if is_so else no, lambda: spec.zero
    )
    taken = devices.replace(lambda _: "old", lambda _: "new", ("outer", "inner"))
    for device in (dict(zip(owner, at, strict=True)) for at in pairs(range(FEW), repeat=2)):
        if taken(device) != ("new" if device == owner else "old"):
            raise KernelError(
                f"{k.claim}: {device} takes a slice that is not its own, or keeps its own"
            )


def _product(k: Kernel, left: Operator, right: Operator) -> Theorem:
    """left after right is what the product says."""
    axis = one_axis(k)
    d = k.integers("d")
    x = k.function("x", IntSort(), RealSort())
    value: PerDevice = lambda device: x(device[AXIS])  # noqa: E731
    inner = axis.meaning(right, value)
    here = {AXIS: d}
    twice = axis.meaning(left, inner)(here)
    factor, result = spec.composed(left, right, axis.n)
    once = axis.meaning(result, value)(here)
    facts = [axis.sizes] if axis.sums and not _is_zero(factor) else []
    if left.of == ALL:
        # a sum of an even part and one device's part
        outer = axis.sums[-2] if right.of == ALL else axis.sums[-1]
        place = axis.owner if right.to == ALL else axis.place(right.to)
        even = inner({AXIS: place - 1})
        extra = inner({AXIS: place}) - even
        base = [axis.sizes] if right.to != ALL else []
        summed = outer.index * even + If(place < outer.index, extra, RealVal(0))
        facts.append(
            closed_form(k, "the_sum_over_devices", outer, summed, base=base).at(
                **{str(outer.index): axis.n}
            )
        )
    if len(axis.sums) > 1 and right.of == ALL and not _is_zero(factor):
        first, again = axis.sums[0], axis.sums[-1]
        facts.append(
            closed_form(
                k,
                "the_same_sum",
                first,
                again(first.index),
                base=[again.start],
                uses=[again.next.at(**{str(again.index): first.index})],
            ).at(**{str(first.index): axis.n})
        )
    apart = [axis.owner != axis.other] if _is_zero(factor) else []
    return k.prove(f"{name(left)}_after_{name(right)}", twice == factor * once, apart, facts)


def _is_zero(factor: Any) -> bool:
    return isinstance(factor, int) and factor == 0


def _linear(k: Kernel) -> tuple[Theorem, ...]:
    """Sum, owner and slice respect sums and multiples; replacing a slice is adding a difference."""
    axis = one_axis(k)
    d, i = k.integers("d i")
    x, y = (k.function(v, IntSort(), RealSort()) for v in "xy")
    a, b = (k.fixed(v, RealSort()) for v in "ab")
    of_x, of_y = total(k, "of_x", [], i, x(i)), total(k, "of_y", [], i, y(i))
    of_both = total(k, "of_both", [], i, a * x(i) + b * y(i))
    summed = closed_form(
        k,
        "sums_are_linear",
        of_both,
        a * of_x(i) + b * of_y(i),
        base=[of_x.start, of_y.start],
        uses=[of_x.next, of_y.next],
    )
    here = {AXIS: d}
    fx: PerDevice = lambda v: x(v[AXIS])  # noqa: E731
    fy: PerDevice = lambda v: y(v[AXIS])  # noqa: E731
    both: PerDevice = lambda v: a * fx(v) + b * fy(v)  # noqa: E731
    owned = k.prove(
        "owner_and_slice_are_linear",
        And(
            *(
                axis.meaning(op, both)(here)
                == a * axis.meaning(op, fx)(here) + b * axis.meaning(op, fy)(here)
                for op in (OWNER, SLICE, Operator(1, 0))
            )
        ),
    )
    replaced = k.prove(
        "replacing_a_slice_adds_the_difference",
        And(
            *(
                spec.sliced(fx, AXIS, axis.place(who), If, fy)(here)
                == fy(here) + axis.meaning(Operator(who, who), lambda v: fx(v) - fy(v))(here)
                for who in (0, 1)
            )
        ),
    )
    return summed, owned, replaced


def _commute(k: Kernel) -> tuple[Theorem, ...]:
    """Operators along different axes commute."""
    d, e = k.integers("d e")
    n, m, own_d, own_e = (k.fixed(v, IntSort()) for v in ("n", "m", "own_d", "own_e"))
    sizes = k.suppose("sizes", [], And(n >= 1, m >= 1))
    x = k.function("x", IntSort(), IntSort(), RealSort())
    zero = RealVal(0)
    _, rows, _, columns, exchanged = of_sums(k, "xs", d, e, x(d, e), [])
    sums = k.prove("sums_commute", rows(m, n) == columns(n, m), uses=[exchanged.at(d=n, e=m), sizes])
    along = total(k, "along_d", [e], d, x(d, e))
    of_slices = total(k, "of_slices", [e], d, If(e == own_e, x(d, e), zero))
    slices = closed_form(
        k,
        "sums_and_slices_commute",
        of_slices,
        If(e == own_e, along.upto(d), zero),
        base=[along.start],
        uses=[along.next],
    )
    of_owners = total(k, "of_owners", [e], d, x(d, own_e))
    owners = closed_form(
        k,
        "sums_and_owners_commute",
        of_owners,
        along(own_e, d),
        base=[along.start.at(e=own_e)],
        uses=[along.next.at(e=own_e)],
    )
    world = {"a": d, "b": e}
    value: PerDevice = lambda v: x(v["a"], v["b"])  # noqa: E731

    def take(axis: str, owner: Any, v: PerDevice) -> PerDevice:
        return spec.owners(v, axis, owner)

    def keep(axis: str, owner: Any, v: PerDevice) -> PerDevice:
        return spec.sliced(v, axis, owner, If)

    others = k.prove(
        "owners_and_slices_commute",
        And(
            *(
                f("a", own_d, g("b", own_e, value))(world) == g("b", own_e, f("a", own_d, value))(world)
                for f, g in pairs((take, keep), repeat=2)
            )
        ),
    )
    return sums, slices, owners, others


def kinds(axis: Axis, d: Any, named: tuple[int, ...]) -> dict[spec.Offset, Any]:
    """What it means for device d to be at a place, or at none that has a name."""
    at: dict[spec.Offset, Any] = {who: d == axis.place(who) for who in named}
    return {**at, OTHER: And(*(d != axis.place(who) for who in named))}


def _positions(k: Kernel, named: tuple[int, ...]) -> tuple[Theorem, ...]:
    """What each operator comes to on a device: the values it sees, each once."""
    axis = one_axis(k)
    d, i = k.integers("d i")
    x = k.function("x", IntSort(), RealSort())
    value: PerDevice = lambda device: x(device[AXIS])  # noqa: E731
    zero, places = RealVal(0), [axis.place(who) for who in named]
    apart = [Distinct(*places)] if len(places) > 1 else []
    nameless = And(*(i != p for p in (d, *places)))
    everyone = total(k, "everyone", [], i, x(i))
    rest = total(k, "rest", [d], i, If(nameless, x(i), zero))
    split = k.induct(
        "everyone_is_oneself_the_named_and_the_rest",
        i,
        everyone(i)
        == rest(d, i)
        + If(And(d < i, kinds(axis, d, named)[OTHER]), x(d), zero)
        + sum((If(p < i, x(p), zero) for p in places), zero),
        given=[d >= 0, *apart],
        base=[everyone.start, rest.start, axis.sizes],
        step=[everyone.next, rest.next],
    )
    seen: dict[Any, Any] = {Source.SELF: x(d), Source.REST: rest(d, axis.n)}
    seen |= {who: x(axis.place(who)) for who in named}
    found = [_rest_is_as_many(k, axis, d, i, named, apart)]
    for operator in OPERATORS:
        if not {w for w in operator if isinstance(w, int)} <= set(named):
            continue
        meaning = axis.meaning(operator, value)({AXIS: d})
        uses, given = [], apart if isinstance(operator.to, int) else []
        if operator.of == ALL:
            sum_ = axis.sums[-1]
            same = equal_terms(k, f"{name(operator)}_is_everyone", sum_, everyone)
            uses = [same.at(**{str(sum_.index): axis.n}), split.at(i=axis.n), axis.sizes]
            given = [*apart, *([d >= 0, d < axis.n] if operator.to == ALL else [])]
        claims = [
            Implies(
                at, meaning == sum((seen[s] for s in spec.sources_of(operator, place, named)), zero)
            )
            for place, at in kinds(axis, d, named).items()
        ]
        found.append(k.prove(f"what_{name(operator)}_reads", And(*claims), given, uses))
    return tuple(found)


def _rest_is_as_many(
    k: Kernel, axis: Axis, d: Any, i: Any, named: tuple[int, ...], apart: list[Any]
) -> Theorem:
    """The rest of a group are as many as the specification says."""
    places = [axis.place(who) for who in named]
    one, zero = RealVal(1), RealVal(0)
    nameless = And(*(i != p for p in (d, *places)))
    many = total(k, "many", [d], i, If(nameless, one, zero))
    passed = [If(p < i, one, zero) for p in places]
    passed.append(If(And(d < i, kinds(axis, d, named)[OTHER]), one, zero))
    counted = k.induct(
        "the_rest_up_to",
        i,
        many(d, i) == ToReal(i) - sum(passed, zero),
        given=[d >= 0, *apart],
        base=[many.start, axis.sizes],
        step=[many.next],
    )
    claims = [
        Implies(at, many(d, axis.n) == ToReal(spec.unnamed(place, named, axis.n)))
        for place, at in kinds(axis, d, named).items()
    ]
    facts = [counted.at(i=axis.n), axis.sizes]
    return k.prove("the_rest_are_as_many", And(*claims), [d >= 0, d < axis.n, *apart], facts)


def _parts_of_a_norm(k: Kernel) -> tuple[Theorem, ...]:
    """The square norms of the devices' own slices add up to the norm of the whole.

    However the elements are assigned to the devices of an axis, each to one.
    """
    n, elements = k.fixed("n", IntSort()), k.fixed("elements", IntSort())
    device, element = k.integers("device element")
    owner = k.function("owner", IntSort(), IntSort())
    value = k.function("value", IntSort(), RealSort())
    owned = k.suppose(
        "each_element_has_an_owner",
        [element],
        And(owner(element) >= 0, owner(element) < n),
    )
    some = k.suppose("there_are_elements", [], elements >= 1)
    _, parts, whole, one = partition(
        k, "norm", device, element, owner, owned, n, value(element) * value(element), []
    )
    at = {"element": elements}
    return (
        k.prove(
            "norms_of_slices_add_up",
            parts(elements, n) == whole(elements),
            uses=[one.at(**at), some],
        ),
    )


def _parts_of_other_devices(k: Kernel) -> Theorem:
    """What is made, on each device, of the part of the one so many places on adds up to the same.

    `made`: of a value that all devices have, and a device's part. Devices are counted around.
    """
    n = k.fixed("n", IntSort())
    d, p = k.integers("d p")
    made = k.function("made", IntSort(), RealSort())
    some = k.suppose("there_are_devices", [], n >= 1)
    around = k.suppose("devices_are_counted_around", [d], made(d + n) == made(d))
    parts = total(k, "sum_of_made", [p], d, made(d + p))
    one_further = k.induct(
        "parts_one_place_on",
        d,
        parts(p + 1, d) + made(p) == parts(p, d + 1),
        base=[parts.start, parts.start.at(p=p + 1), parts.next.at(d=0)],
        step=[parts.next.at(p=p + 1), parts.next.at(d=d + 1)],
    )
    return k.induct(
        "parts_of_whichever_devices_add_up_to_the_same",
        p,
        parts(p, n) == parts(0, n),
        step=[one_further.at(d=n), parts.next.at(d=n), around.at(d=p), some],
    )
