"""Known differences: formulas of what PyTorch does beside what psem derives, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.figures import GRADIENTS, Figure, Values
from conformance.plans import Planned, sent_of
from spec.language.schedule import Kind
from spec.models.states import State
from spec.numbers.arithmetic import Number

WIDTH = 4  # bytes of a value
Ranks = tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """A difference that a formula predicts: values rank by rank, and why."""

    values: tuple[Number, ...]
    reason: str


Differences = Iterator[tuple[Figure, Known]]


def differences(planned: Planned, ranks: Ranks, profile: Values) -> Differences:
    """All of a case, where the profile says otherwise."""
    case = planned.case
    if case.strategy == "zero redundancy" and case.views:
        yield from _of_empty_buckets(planned, ranks, profile)
    if case.strategy in ("fsdp2", "hsdp") and not case.each:
        yield from _of_last_micro_step(planned, ranks)
    if case.rotate == "all-gather":
        yield from _of_rotation(planned, ranks)


def _of_empty_buckets(planned: Planned, ranks: Ranks, profile: Values) -> Differences:
    """Of ZeroRedundancyOptimizer with parameters as views of buckets."""
    figure = Figure("broadcast", "batch")
    empty = sum(not planned.stage(planned.profile, rank).step_counts for rank in ranks)
    values = tuple((n + empty, size + WIDTH * empty) for n, size in profile[figure])
    yield figure, Known(values, "an empty bucket has an element")


def _of_last_micro_step(planned: Planned, ranks: Ranks) -> Differences:
    """Of FSDP2 and HSDP with no_sync, whose gradients are whole before the last micro-step."""
    stage, size = planned.stage(planned.profile, ranks[0]), 0
    for group in stage.groups:
        update = next(op for op in group.costs.schedule.finish if op.kind is Kind.UPDATE)
        size += group.costs.sizes.slice(update.within) * stage.plan.policy.of(State.GRADIENTS)
    yield GRADIENTS, Known((size,) * len(ranks), "the last micro-step leaves the sum in slices")


def _of_rotation(planned: Planned, ranks: Ranks) -> Differences:
    """Of ring attention whose keys and values are gathered at once; gradients go round."""
    moved = (planned.stage(planned.profile, rank).moved for rank in ranks)
    sent = [sent_of(each, kinds={"ring_gather": "all_gather"}) for each in moved]
    for kind in ("all_gather", "permute"):
        figure = Figure(kind, "context")
        values = tuple(each.get(figure, (0, 0)) for each in sent)
        yield figure, Known(values, "rotate all-gather gathers keys and values at once")
