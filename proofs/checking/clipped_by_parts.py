"""Schedules that clip gradients by norms of slices: of each device's own, and of others'."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from proofs.checking.matching_schedules import along
from proofs.checking.witnesses import operation
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Op, Schedule, Span

AXES = "outer", "inner"  # most slices are along the inner one
FRESH, TIED = Buffer.FRESH, Buffer.TIED


def clipped_by_parts() -> Iterator[tuple[str, Schedule, bool]]:
    """Gradients to which some are added that are clipped by parts of norms, and then taken off.

    They are summed over devices, so of whose slices these parts are does not matter, if all are of one
    device's; it does if some are of one's own and some of another's, or if they are of other values.
    Each with whether it is right.
    """
    dp = schedule_of(along(AXES, "dp"))
    forward, backward = dp.micro_step
    fresh = forward, replace(backward, into=FRESH, span=Span.UNIT)
    total = operation(Kind.ALL_REDUCE, FRESH, axes=AXES)
    aside = operation(Kind.KEEP, FRESH, TIED, span=Span.UNIT)
    own = operation(Kind.SQUARE_NORM, TIED, Buffer.NORM, within=AXES[1:])
    of_next, clip = replace(own, shift=1), operation(Kind.CLIP, FRESH, by=Buffer.NORM)
    summed, of_terms = (*fresh, total, aside), (*fresh, aside, total)
    add, gone = operation(Kind.ACCUMULATE, FRESH, Buffer.GRADIENTS), operation(Kind.RELEASE, FRESH)
    both = replace(clip, source=TIED), operation(Kind.ACCUMULATE, TIED, FRESH)
    once, twice = ((*summed, *(own, clip) * n) for n in (1, 2))
    own_both, next_both = ((*summed, *(replace(of, within=AXES), clip) * 2) for of in (own, of_next))
    gather = operation(Kind.ALL_GATHER, FRESH, axes=AXES[1:], span=Span.UNIT)
    of_slices, of_sums = (
        (*fresh, operation(kind, FRESH, axes=AXES[1:]), replace(own, source=FRESH), clip, gather)
        for kind in (Kind.REDUCE_SCATTER, Kind.ALL_REDUCE)
    )
    owners = (*fresh, operation(Kind.ALL_GATHER, FRESH, axes=AXES, span=Span.UNIT), aside)
    of_first = (
        operation(Kind.BROADCAST, Buffer.NORM, axes=AXES[1:]),
        operation(Kind.ALL_REDUCE, Buffer.NORM, axes=AXES[:1], mean=True),
    )
    by_first, by_both = (*summed, own, *of_first, clip), (clip, *of_first, clip)
    for name, added, taken_off, times, right in (
        ("others", (*summed, of_next, clip), once, 1, True),
        ("others_along_both_axes_twice", next_both, own_both, 1, True),
        ("others_plus_by_ones_own", (*summed, of_next, clip, own, *both), once, 2, True),
        ("others_and_ones_own", (*summed, of_next, clip, own, clip), twice, 1, False),
        ("others_of_owners_terms", (*owners, of_next, clip), (*owners, own, clip), 1, True),
        ("slices", of_slices, of_sums, 1, True),
        ("the_first_ones_next", (*summed, of_next, *of_first, clip), by_first, 1, False),
        ("others_and_the_first_ones", (*summed, of_next, *by_both), (*summed, own, *by_both), 1, False),
        ("others_of_terms_twice", (*of_terms, *(of_next, clip) * 2), twice, 1, False),
    ):
        off = operation(Kind.SCALE, FRESH, by=Monomial(Fraction(-times)))
        ops: tuple[Op, ...] = (*fresh, total, add, gone, *added, total, add, gone)
        ops += (*taken_off, total, off, add, gone)
        words = f"clipped_by_parts_of_{name}_and_taken_off_by_ones_own"
        yield words, replace(dp, micro_step=ops, finish=dp.finish[1:]), right
