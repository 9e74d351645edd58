"""K2, C6, C7: reductions and gathers level by level, and over all devices at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from proofs.claim import claim
from proofs.tools.sums import Sum, by_rows, equal_terms, of_sums, total
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, IntSort, RealSort
from spec.devices import operators
from spec.devices.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from spec.devices.hierarchy import (
    HIERARCHICAL,
    INNER,
    ONE_AFTER_THE_OTHER,
    OPERATORS,
    OUTER,
    OUTER_FIRST,
    LevelMoves,
    device_number,
    volumes,
)
from spec.devices.mesh import first_element, shard_contains
from spec.devices.operators import ALL, PerDevice

INT, REAL = IntSort(), RealSort()


class _Levels:
    """m groups of n devices each, a value on each device, and one element's owner on each level."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        i, j, d = k.integers("i j d")
        self.m, self.n = k.fixed("m", INT), k.fixed("n", INT)
        self.sizes = k.suppose("sizes", [], And(self.m >= 1, self.n >= 1))
        self.here: Mapping[str, Any] = {OUTER: i, INNER: j}
        self.size = {OUTER: self.m, INNER: self.n}
        self.owner = {level: k.fixed(f"{level}_owner", INT) for level in (OUTER, INNER)}
        self.at = k.function("value", INT, REAL)  # of the device of that number
        self.flat = total(k, "flat", [], d, self.at(d))
        self.sums: list[Sum] = []

    def value(self, device: Mapping[str, Any]) -> Any:
        """The value of the device at these coordinates."""
        return self.at(device_number(device[INNER], device[OUTER], self.n))

    def after(self, moves: LevelMoves) -> Any:
        """What a device has after some moves: the specification's definitions."""
        value: PerDevice = self.value
        for level, collective in moves:
            operator = OPERATORS[collective.name]
            if operator.of == ALL:
                value = self.summed(value, level)
            else:
                value = operators.owners(value, level, self.owner[level])
            if operator.to != ALL:
                value = operators.sliced(value, level, self.owner[level], If)
        return value(self.here)

    def summed(self, value: PerDevice, level: str) -> PerDevice:
        """The sum along a level, a new symbol: a function of the coordinate on the other level."""
        (other,) = {OUTER, INNER} - {level}
        index, across = self.here[level], self.here[other]

        def new(size: Any, terms: Callable[[Any], Any]) -> Any:
            self.sums.append(total(self.k, f"sum{len(self.sums)}", [across], index, terms(index)))
            return self.sums[-1](across, size)

        here = operators.summed(value, level, self.size[level], new)(self.here)
        return lambda device: substitute(here, (across, device[other]))

    def is_flat(self, moves: LevelMoves) -> Theorem:
        """After the moves, every device has the sum over all devices, by number."""
        k, i, j, m, n = self.k, self.here[OUTER], self.here[INNER], self.m, self.n
        has = self.after(moves)
        first, second = self.sums
        inner_first, turned = first.index is j, []
        if inner_first:
            by_row, rows = by_rows(k, "all", i, j, self.value(self.here), [])
            whole, part = rows, by_row
        else:
            by_row, rows, part, whole, exchanged = of_sums(k, "all", i, j, self.value(self.here), [])
            turned.append(exchanged.at(i=m, j=n))
        within = k.induct(
            "a_group_is_a_run_of_numbers",
            j,
            self.flat(device_number(j, i, n)) == self.flat(device_number(0, i, n)) + by_row(i, j),
            given=[i >= 0],
            base=[by_row.start],
            step=[self.flat.next.at(d=device_number(j, i, n)), by_row.next, self.sizes],
        )
        groups = k.induct(
            "groups_follow_one_another",
            i,
            self.flat(device_number(0, i, n)) == rows(n, i),
            base=[self.flat.start, rows.start.at(j=n)],
            step=[within.at(j=n), rows.next.at(j=n), self.sizes],
        )
        index, across, size, bound = (i, j, m, n) if inner_first else (j, i, n, m)
        own = self.owner[INNER if inner_first else OUTER]
        place = own if moves[-1][1] is ALL_GATHER else across
        same = equal_terms(k, "the_first_sums", first, part)
        outside = k.induct(
            "the_sums_of_sums",
            index,
            second(place, index) == whole(bound, index),
            base=[second.start.at(**{str(across): place}), whole.start.at(**{str(across): bound})],
            step=[
                second.next.at(**{str(across): place}),
                whole.next.at(**{str(across): bound}),
                same.at(**{str(across): bound}),
                self.sizes,
            ],
        )
        return k.prove(
            "every_device_has_the_sum_over_all_numbers",
            has == self.flat(device_number(0, m, n)),
            uses=[outside.at(**{str(index): size}), groups.at(i=m), *turned, self.sizes],
        )


OUTERMOST = "outermost"  # a third level


@claim("K2")
def reduction_over_two_axes_is_over_their_product(k: Kernel) -> tuple[Theorem, ...]:
    """Sums along one axis and then the other, in either order, are sums over all device numbers.

    For any two sizes; with an axis that is a product itself, for any number of axes. All-gathers along
    both give what the device has whose number is the owners' coordinates; and slices of slices are the
    slices of the product, in the order of device numbers. (Claim K2; design 2.9)
    """
    reversed_ = tuple(reversed(ONE_AFTER_THE_OTHER))
    return (
        _Levels(k.part("inner_first")).is_flat(ONE_AFTER_THE_OTHER),
        _Levels(k.part("outer_first")).is_flat(reversed_),
        _gathers(k.part("gathers")),
        *_slices(k.part("slices")),
    )


def _gathers(k: Kernel) -> Theorem:
    levels = _Levels(k)
    moves: LevelMoves = ((INNER, ALL_GATHER), (OUTER, ALL_GATHER))
    owners = levels.value(levels.owner)
    has = And(*(levels.after(order) == owners for order in (moves, (moves[1], moves[0]))))
    return k.prove("gathers_in_either_order_take_the_owners_value", has)


def _slices(k: Kernel) -> tuple[Theorem, ...]:
    i, j, n, e, chunk = k.reals("i j n e chunk")  # and so of whole numbers
    group = n * chunk  # elements of the devices of one group together
    nested = [
        *shard_contains(i, e, group),
        *shard_contains(j, e - first_element(i, group), chunk),
    ]
    begins, ends = shard_contains(device_number(j, i, n), e, chunk)
    return (
        k.prove("a_slice_of_a_slice_begins_as_the_products", begins == nested[2]),
        k.prove("a_slice_of_a_slice_ends_as_the_products", ends == nested[3]),
        k.prove(
            "the_products_slice_begins_in_the_groups",
            nested[0],
            given=[begins, j >= 0, chunk >= 1],
        ),
        k.prove(
            "the_products_slice_ends_in_the_groups",
            nested[1],
            given=[ends, j + 1 <= n, chunk >= 1],
        ),
    )


@claim("C6")
def hierarchical_all_reduce_is_an_all_reduce(k: Kernel) -> tuple[Theorem, ...]:
    """Reduce-scatter inside, all-reduce outside, all-gather inside: every device has the sum over all.

    For m groups of n devices and M elements each device sends 2(n-1)/n M inside and 2(m-1)/m M/n
    outside: as much as a flat all-reduce, 2(nm-1)/(nm) M, and at most what an all-reduce along each
    level in turn sends. Over the other level go slices only. Outside first means the same, and sends as
    much in all. (Claim C6; design 2.5)
    """
    return (
        _Levels(k.part("inner_first")).is_flat(HIERARCHICAL),
        _Levels(k.part("outer_first")).is_flat(OUTER_FIRST),
        _slices_between(k.part("slices_inside"), HIERARCHICAL),
        _slices_between(k.part("slices_outside"), OUTER_FIRST),
        *_volumes(k.part("volumes")),
    )


def _slices_between(k: Kernel, moves: LevelMoves) -> Theorem:
    """After the first stage, a device that does not own an element on that level has nothing of it."""
    levels, (level, _) = _Levels(k), moves[0]
    return k.prove(
        "only_slices_are_sent_to_the_other_level",
        levels.after(moves[:1]) == 0,
        given=[levels.here[level] != levels.owner[level]],
    )


def _volumes(k: Kernel) -> tuple[Theorem, ...]:
    n, m, cell, some = k.reals("n m cell some")
    sizes = {INNER: n, OUTER: m}
    down, up = ([(level, half) for level in (INNER, OUTER)] for half in (REDUCE_SCATTER, ALL_GATHER))
    of_three = (*down, (OUTERMOST, ALL_REDUCE), *reversed(up))
    on_three = volumes(of_three, {**sizes, OUTERMOST: some}, cell)
    sent, other, in_turn = (
        volumes(moves, sizes, cell) for moves in (HIERARCHICAL, OUTER_FIRST, ONE_AFTER_THE_OTHER)
    )
    halves = tuple(
        (level, half) for level, _ in ONE_AFTER_THE_OTHER for half in (REDUCE_SCATTER, ALL_GATHER)
    )
    by_halves = volumes(halves, sizes, cell)
    whole = cell * (n * m)
    return (
        k.prove(
            "volumes_of_each_level",
            And(
                sent[INNER] * n == 2 * (n - 1) * whole,
                sent[OUTER] * (n * m) == 2 * (m - 1) * whole,
            ),
        ),
        k.prove(
            "in_sum_that_of_a_flat_all_reduce",
            sent[INNER] + sent[OUTER] == ALL_REDUCE.volume(n * m, cell),
        ),
        k.prove(
            "of_three_levels_too",
            on_three[INNER] + on_three[OUTER] + on_three[OUTERMOST]
            == ALL_REDUCE.volume(n * m * some, cell),
        ),
        k.prove(
            "outside_first_sends_as_much_in_sum",
            sent[INNER] + sent[OUTER] == other[INNER] + other[OUTER],
        ),
        k.prove(
            "never_more_than_one_after_the_other",
            And(sent[INNER] <= in_turn[INNER], sent[OUTER] <= in_turn[OUTER]),
            given=[n >= 1, m >= 1, cell >= 0],
        ),
        k.prove(
            "a_level_is_whole_again_after_its_gather",
            And(by_halves[INNER] == in_turn[INNER], by_halves[OUTER] == in_turn[OUTER]),
        ),
    )


@claim("C7")
def order_of_levels_does_not_matter_to_a_link(k: Kernel) -> tuple[Theorem, ...]:
    """What a hierarchical all-reduce sends over each level does not depend on which is reduced first.

    Refuted: composition commutes in meaning, not in the volume per level. What is reduced inside groups
    of n first is sent across them in slices, 1/n of what is sent otherwise. (Claim C7)
    """
    unknowns = k.integers("n m cell")

    def same(n: Any, m: Any, cell: Any) -> Any:
        first, other = (
            volumes(moves, {INNER: n, OUTER: m}, cell) for moves in (HIERARCHICAL, OUTER_FIRST)
        )
        return first[OUTER] == other[OUTER]

    def replay(**values: Fraction) -> bool:
        return bool(same(**values))

    n, m, cell = unknowns
    some = [n >= 2, m >= 2, cell >= 1, n <= 4, m <= 4, cell <= 4]
    return (k.refute("outside_first_sends_more_outside", same(n, m, cell), unknowns, replay, some),)
