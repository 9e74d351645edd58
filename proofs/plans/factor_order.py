"""K8: products may be bracketed in any way; the order of their factors nests shards, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from typing import Any

from proofs.claim import claim
from proofs.tools.encoding import ModeSort, Symbolic
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And
from spec.costs.communication import elements_sent
from spec.costs.memory import Sizes
from spec.derivation.schedules import schedule_of
from spec.devices.hierarchy import device_number
from spec.devices.mesh import Axes
from spec.language.schedule import Buffer, Kind, Op, Phase, Rest, Schedule, Span
from spec.models.states import BytePolicy, State
from spec.plans.compose import (
    Factor,
    HoldError,
    OverAllError,
    OverlapError,
    Product,
    combined,
    factor,
    restricted,
)
from spec.plans.modes import Mode
from spec.plans.placement import Placement, place_states
from spec.plans.strategies import STRATEGIES

AXES: Axes = ("a", "b", "c")
NAMES = [*{placed: name for name, placed in STRATEGIES.items() if len(placed.axes) == 1}.values()]


@claim("K8")
def order_of_factors_nests_shards_only(k: Kernel) -> tuple[Theorem, ...]:
    """Merging is associative, and commutative but for the order of axes, in which shards are nested.

    Whatever the modes: they are symbols here. In any order, products of two and three of the named
    strategies do the same operations, along the same sets of axes, within slices of the same; these
    send and hold as much, and operators of different axes commute (T1). What differs is which slice is
    a device's: a counterexample. (Claim K8; design 2.9)
    """
    _schedules_are_alike(k)
    _require_refused(k)
    _require_alike(k)
    _require_in_any_order(k)
    return (
        _modes_are_the_factors(k.part("merging")),
        _costs_are_alike(k.part("costs")),
        _slices_differ(k.part("slices")),
    )


def _modes_are_the_factors(k: Kernel) -> Theorem:
    """However they are merged, along each axis each state has the mode of the placement on it."""
    symbols = {axis: {s: k.constant(f"{s.value}_{axis}", ModeSort) for s in State} for axis in AXES}

    def one(axis: str, hold: bool) -> Placement:
        return place_states((axis,), {s: {axis: mode} for s, mode in symbols[axis].items()}, hold)

    alike = []
    for order, holds in product(permutations(AXES), product((False, True), repeat=len(AXES))):
        first, second, third = (one(axis, hold) for axis, hold in zip(order, holds, strict=True))
        for merged in (
            combined((first, second, third)),
            combined((combined((first, second)), third)),
            combined((first, combined((second, third)))),
        ):
            if merged.axes != order or merged.hold is not any(holds):
                raise KernelError(f"{k.claim}: merged on {merged.axes}, not on {order}")
            alike += [merged.mode(s, axis) == symbols[axis][s] for axis in AXES for s in State]
    return k.prove("merged_modes_are_each_placements_own", And(*dict.fromkeys(alike)))


def _schedules_are_alike(k: Kernel) -> None:
    """Of products of the same strategies, bracketed and ordered in any way."""
    for count in (2, 3):
        for names in combinations_with_replacement(NAMES, count):
            factors = tuple(map(factor, names, AXES))
            orders = [*permutations(factors)]
            try:
                placed = [Product(order).states for order in orders]
                alike = {(states.modes, _unordered(schedule_of(states))) for states in placed}
            except HoldError:
                continue
            bracketed = {_bracketed(order) == Product(order) for order in orders}
            if len(alike) != 1 or bracketed != {True}:
                raise KernelError(f"{k.claim}: {' * '.join(names)} depends on the order")


def _require_refused(k: Kernel) -> None:
    """Raise KernelError unless these products are refused, and no others of three of these factors.

    Of which two place states along one axis, or cut a model; hold, and release; or are over all axes.
    """
    some = [("pp", "a"), ("tp", "a"), ("tp", "b"), ("dp", "a"), ("zero3", "b"), ("fsdp-hold", "c")]
    over_all = ("zero1+all", "c"), ("zero1+all", "b"), ("zero3+all", "a")
    for factors in permutations((*some, *over_all), 3):
        names, axes = zip(*factors, strict=True)
        cuts = [(axis, True) for name, axis in factors if name in ("pp", "tp")]
        places = [*cuts, *((axis, False) for name, axis in factors if name != "tp")]
        refused = len({*places}) < len(places) or {*names} >= {"zero3", "fsdp-hold"}
        refused |= {*names} >= {"zero3+all", "fsdp-hold"}
        refused |= sum(name.endswith("+all") for name in names) > 1
        try:
            Product(tuple(map(factor, names, axes)))
        except (OverlapError, HoldError, OverAllError):
            refused = not refused
        if refused:
            raise KernelError(f"{k.claim}: {' * '.join(names)} on {axes} is refused, or is not")


def _require_alike(k: Kernel) -> None:
    """Raise KernelError unless states over all axes are placed as along their strategy's last axis.

    Along its own axes they are as that strategy's; also if another cuts one of these.
    """
    (outer, inner), one = STRATEGIES["hsdp"].axes, STRATEGIES["hsdp"]
    if [one.mode(State.PARAMETERS, axis) for axis in one.axes] != [Mode.REPLICATED, Mode.GATHERED]:
        raise KernelError(f"{k.claim}: replicas are not the outer axis of {one.axes}")
    placed = (factor("hsdp+all", "a", "b") * factor("cp", "c")).states_of(("c",))
    alone = (factor("hsdp+all", "a", "b") * factor("tp", "b")).states_of(())
    for state in State:
        of_three = [placed.mode(state, axis) for axis in AXES]
        if of_three != [one.mode(state, axis) for axis in (outer, inner, inner)]:
            raise KernelError(f"{k.claim}: {state.value} is placed otherwise along another axis")
        if alone.axes != ("a",) or alone.mode(state, "a") is not one.mode(state, outer):
            raise KernelError(f"{k.claim}: {state.value} is placed otherwise where an axis is cut")
        if restricted(STRATEGIES["zero-offload"], ()).rest(state).host:
            raise KernelError(f"{k.claim}: {state.value} is on the host, along no axis")


def _require_in_any_order(k: Kernel) -> None:
    """Raise KernelError unless axes are what their factors say, wherever in a product these stand.

    Axes that cut samples alone are in its order. States over all axes are so along those that no factor
    places them on, but for stages.
    """
    some = [("dp", "z"), ("hsdp+all", "n", "m"), ("pp", "p"), ("tp", "a"), ("cp", "b"), ("ep", "c")]
    some.append(("zero1", "c"))
    own = {"z": "dp", "c": "zero1", "p": "dp"}
    for first in range(len(some)):
        order = some[first:] + some[:first]
        placed = Product(tuple(factor(*each) for each in order))
        samples = tuple(a for name, *axes in order if name in ("dp", "hsdp+all") for a in axes)
        if (placed.pipe, placed.batch_axes) != ("p", samples):
            raise KernelError(f"{k.claim}: stages {placed.pipe}, samples {placed.batch_axes}: {order}")
        states = placed.states_of(("a", "b", "c", "p"))
        for axis, state in product("zmnabcp", State):
            one = STRATEGIES[own.get(axis, "hsdp")]
            if states.mode(state, axis) is not one.mode(state, one.axes[0 if axis == "n" else -1]):
                raise KernelError(f"{k.claim}: {state.value} is placed otherwise along {axis}: {order}")
    cut = [("fsdp-hold", "z"), ("tp", "a"), ("tp", "b"), ("zero1", "a"), ("zero1", "b")]
    whole = Product(tuple(factor(*each) for each in cut)).states_of((), ("a", "b"))
    if (whole.axes, whole.whole, whole.hold) != (("z", "a", "b"), ("a", "b"), True):
        raise KernelError(f"{k.claim}: of gradients that are whole along two axes {whole} is said")
    for name in ("pp", "tp", "dp"):
        with suppress(ValueError):
            factor(name, "a", "b")
            raise KernelError(f"{k.claim}: {name} is along two axes")


def _bracketed(factors: Sequence[Factor]) -> Product:
    """The same product, from the right."""
    *others, last = factors
    found = Product((last,))
    for one in reversed(others):
        found = one * found
    return found


def _ordered(axes: Axes) -> Axes:
    return tuple(sorted(axes))


def _unordered(schedule: Schedule) -> Schedule:
    """The same, with all axes named in one order."""

    def rest(found: Rest) -> Rest:
        return replace(found, sharded=_ordered(found.sharded))

    def op(found: Op) -> Op:
        if len(found.axes) < 2 and len(found.within) < 2:
            return found
        return replace(found, axes=_ordered(found.axes), within=_ordered(found.within))

    return replace(
        schedule,
        axes=_ordered(schedule.axes),
        rests=tuple((state, rest(found)) for state, found in schedule.rests),
        micro_step=tuple(map(op, schedule.micro_step)),
        finish=tuple(map(op, schedule.finish)),
    )


def _costs_are_alike(k: Kernel) -> Theorem:
    """What a collective sends, and a slice holds, is the same in whichever order its axes are named."""
    psi, cell, *lengths = k.reals("psi cell l m n")
    mesh = dict(zip(AXES, lengths, strict=True))
    schedule = schedule_of(STRATEGIES["dp"])

    def sent(kind: Kind, axes: Axes, within: Axes, cut: Axes) -> Any:
        sizes = Sizes(psi, mesh, BytePolicy(2, 2, 12), None, Symbolic([(psi, cell)]), cut)
        span = Span.UNIT if kind is Kind.ALL_GATHER else Span.NONE
        op = Op(kind, Phase.REDUCE, Buffer.FRESH, None, axes, within, span)
        return elements_sent(op, schedule, sizes) + sizes.slice(axes)

    alike: dict[Any, None] = {}
    kinds = (Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_REDUCE)
    for kind, cut, count in product(kinds, permutations(AXES), range(1, len(AXES) + 1)):
        axes, within = cut[:count], cut[count:]
        named = sent(kind, _ordered(axes), _ordered(within), AXES)
        alike[sent(kind, axes, within, cut) == named] = None
    return k.prove("no_cost_depends_on_the_order_of_axes", And(*alike))


def _slices_differ(k: Kernel) -> Theorem:
    """The slice of a device at these coordinates, with n columns inside m rows, and rows inside."""
    unknowns = k.integers("row column m n")

    def same(row: Any, column: Any, m: Any, n: Any) -> Any:
        return device_number(column, row, n) == device_number(row, column, m)

    def replay(**values: Fraction) -> bool:
        return bool(same(**values))

    row, column, m, n = unknowns
    on_mesh = [row >= 0, row < m, column >= 0, column < n, m <= 4, n <= 4]
    return k.refute("a_device_has_one_slice_in_any_order", same(*unknowns), unknowns, replay, on_mesh)
