"""Figures of a case, each a value for every rank: what was recorded, and what psem derives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from conformance.case import Case
from conformance.logs import Collective, Log, Rank
from spec.devices.collectives import COLLECTIVES
from spec.models.states import BytePolicy
from spec.numbers.arithmetic import Number, quotient

WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2, "int64": 8}
OWN = ("all_gather", "reduce_scatter")  # what is logged of them is a rank's slice
MEMORY = (
    "parameters",
    "gradients",
    "moments",
    "host",
    "pinned",
    "waiting",
    "buckets",
    "counts",
    "kept",
)


@dataclass(frozen=True, order=True)
class Figure:
    """What is counted: bytes that rest, or elements and bytes that a rank sends along an axis."""

    what: str
    axis: str = ""

    def __str__(self) -> str:
        return f"{self.what} over {self.axis}" if self.axis else self.what


KEPT, COUNTS, BUCKETS = Figure("kept"), Figure("counts"), Figure("buckets")
ON_HOST, PINNED = Figure("host"), Figure("pinned")
GRADIENTS, WAITING, MOMENTS = Figure("gradients"), Figure("waiting"), Figure("moments")
Values = dict[Figure, tuple[Number, ...]]  # rank by rank; of what is sent (elements, bytes)


def sent(moved: Collective, devices: int) -> int:
    """Elements that a rank sends, by ring or by pairwise exchange (claims C1 to C4)."""
    if moved.kind in COLLECTIVES:
        chunk = moved.elements if moved.kind in OWN else quotient(moved.elements, devices)
        return int(moved.times * COLLECTIVES[moved.kind].volume(devices, chunk))
    return moved.times * moved.elements


def traffic_of(rank: Rank, sizes: Mapping[str, int]) -> dict[Figure, tuple[int, int]]:
    """What a rank sent, by kind and axis."""
    found: dict[Figure, tuple[int, int]] = {}
    for moved in rank.collectives:
        if moved.kind == "recv":
            continue
        elements = sent(moved, prod(sizes.get(axis, 1) for axis in moved.axis.split(" x ")))
        figure = Figure(moved.kind, moved.axis)
        before = found.get(figure, (0, 0))
        found[figure] = before[0] + elements, before[1] + elements * WIDTHS[moved.dtype]
    return found


def measured(case: Case, log: Log) -> Values:
    """All figures of a log, for the ranks that were recorded."""
    by_rank = [_of_rank(rank, case.sizes) for rank in log.ranks.values()]
    return together(by_rank)


def _of_rank(rank: Rank, sizes: Mapping[str, int]) -> dict[Figure, Number]:
    memory = {Figure(name): getattr(rank, name) for name in MEMORY}
    return {**memory, **traffic_of(rank, sizes)}


def together(by_rank: list[dict[Figure, Number]]) -> Values:
    """Rank by rank, where any has it; 0, or nothing sent, where one has not."""
    names = sorted({figure for each in by_rank for figure in each})
    return {f: tuple(each.get(f, (0, 0) if f.axis else 0) for each in by_rank) for f in names}


def master(policy: BytePolicy) -> Number:
    """How much of the optimizer's state is a copy of the weights: of its bytes, so many."""
    from fractions import Fraction

    copies = sum(size for size, what in policy.sources[2] if "master weight" in what)
    return Fraction(copies, policy.k) if policy.k else 0
