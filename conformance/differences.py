"""Known differences: formulas of what PyTorch does beside what psem derives, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.cases import Case, Decoder
from conformance.figures import GRADIENTS, KEPT, MOMENTS, WAITING, Figure, Values
from conformance.plans import Planned, sent_of
from spec.language.schedule import Kind
from spec.models.states import State
from spec.numbers.arithmetic import Number, ceil_div

WIDTH = 4  # bytes of a value
WHOLE_WORDS = "the gradient of the embedding's words is whole on each rank"
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
    if case.cut_loss:
        yield from _of_cut_words(planned, ranks, profile)
    if case.strategy in ("tp", "tp+sp"):
        yield from _of_words(planned, ranks, profile)


def _added(values: tuple[Number, ...], more: Iterator[Number]) -> tuple[Number, ...]:
    return tuple(value + other for value, other in zip(values, more, strict=True))


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


def _of_cut_words(planned: Planned, ranks: Ranks, profile: Values) -> Differences:
    """Of loss_parallel, which keeps one value of each of a rank's own words, and no more of a token."""
    case = planned.case
    shape, t = _shape(case), case.sizes["tensor"]
    tokens, most = case.samples * shape.sequence, ceil_div(shape.vocabulary, t)
    more = (WIDTH * tokens * (_own_words(case, rank) - most - 1) for rank in ranks)
    yield KEPT, Known(_added(profile[KEPT], more), "loss_parallel keeps no sum of each token")


def _of_words(planned: Planned, ranks: Ranks, profile: Values) -> Differences:
    """Of parallelize_module: words of the embedding, and of the head."""
    case = planned.case
    words, row = _shape(case).vocabulary, WIDTH * _shape(case).hidden  # bytes of a word
    most = ceil_div(words, case.sizes["tensor"])
    beyond = [row * (words + _own_words(case, rank) - 2 * most) for rank in ranks]
    for figure in (GRADIENTS, WAITING):
        yield figure, Known(_added(profile[figure], iter(beyond)), WHOLE_WORDS)
    if case.optimizer == "momentum":
        reason = f"momentum begins as a copy of the gradient; {WHOLE_WORDS}"
        yield MOMENTS, Known(_added(profile[MOMENTS], iter(beyond)), reason)
    elif case.optimizer == "adam":
        padding = (4 * row * (_own_words(case, rank) - most) for rank in ranks)  # of two weights
        yield (
            MOMENTS,
            Known(_added(profile[MOMENTS], padding), "each rank's own words, without padding"),
        )


def _shape(case: Case) -> Decoder:
    assert isinstance(case.model, Decoder)
    return case.model


def _own_words(case: Case, rank: int) -> int:
    """Words of a rank: those of the last one may be fewer. Ranks along tensor are the innermost."""
    t, words = case.sizes["tensor"], _shape(case).vocabulary
    most = int(ceil_div(words, t))
    return min(most, max(0, words - rank % t * most))
