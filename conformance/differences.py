"""Known differences: formulas of what PyTorch does beside what psem derives, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from conformance.cases import Case, Decoder
from conformance.figures import (
    BUCKETS,
    COUNTS,
    GRADIENTS,
    KEPT,
    MOMENTS,
    WAITING,
    Figure,
    Values,
    predicted,
    together,
)
from conformance.plans import Cut
from conformance.profiles import why
from conformance.realised import kept_of, sent_in_all
from conformance.states import States
from spec.models.states import State
from spec.numbers.arithmetic import Number, ceil_div

WEIGHTS_OF = {"embedding": 1, "layer": 9, "head": 2}  # of a decoder's parts
KEEPS = "operations keep what norms scale, copied keys and values, logits, places and tokens"
ONE_OWNER = "each weight has one owner, which updates it and sends it to the others"
WHOLE_WORDS = "the gradient of the embedding's words is whole on each rank"


@dataclass(frozen=True)
class Known:
    """A difference that a formula predicts: values rank by rank, and why."""

    values: tuple[Number, ...]
    reason: str


Differences = Iterator[tuple[Figure, Known]]


def differences(
    states: States, cut: Cut | None, ranks: tuple[int, ...], profile: Values
) -> Differences:
    """All of a case, where the profile says otherwise."""
    if states.case.optimizer == "adam":
        counts = tuple(4 * _updated(states, rank) for rank in ranks)
        yield COUNTS, Known(counts, "Adam counts the steps of each weight: 4 bytes")
    if states.reduces_in_buckets:
        yield from _of_buckets(states, ranks, profile)
    if states.case.strategy == "zero redundancy":
        yield from _of_owners(states, ranks)
    if states.is_cut:
        yield from _of_slices(states, ranks, profile)
    if cut and "tensor" in cut.case.sizes:
        yield from _of_tensors(cut, ranks, profile)
    if cut:
        yield KEPT, Known(tuple(kept_of(cut, rank) for rank in ranks), KEEPS)


def _updated(states: States, rank: int) -> int:
    """How many weights a rank updates."""
    case = states.case
    if case.strategy == "zero redundancy":
        return len(states.owned[rank])
    if "pipe" not in case.sizes or not isinstance(case.model, Decoder):
        return len(states.shapes)
    counts = Cut(case, case.model).textbook.stage(rank).counts
    return sum(WEIGHTS_OF[name] * count for name, count in counts.items())


def _in_each_micro_step(figure: Figure, case: Case, profile: Values) -> tuple[Figure, Known]:
    """A sum of copies, as often as there are micro-steps."""
    m = case.micro_steps
    values = tuple((m * elements, m * size) for elements, size in profile[figure])
    return figure, Known(values, "without no_sync copies are summed in each micro-step")


def _of_buckets(states: States, ranks: tuple[int, ...], profile: Values) -> Differences:
    """Of DistributedDataParallel."""
    case, (axis,) = states.case, states.mesh
    figure = Figure("all_reduce", axis)
    is_copied = case.mixed or case.strategy != "ddp" or not case.views
    width = 2 if case.mixed else 4
    copies = (is_copied * width * states.psi,) * len(ranks)
    yield BUCKETS, Known(copies, "DDP sums copies of gradients, in buckets")
    if case.mixed:
        compressed = tuple((elements, width * elements) for elements, _ in profile[figure])
        yield figure, Known(compressed, "the hook compresses gradients to 2 bytes on their way")
    elif case.micro_steps > 1 and case.each:
        yield _in_each_micro_step(figure, case, profile)


def _of_owners(states: States, ranks: tuple[int, ...]) -> Differences:
    """Of ZeroRedundancyOptimizer."""
    sizes = [sum(prod(states.shapes[name]) for name in names) for names in states.owned]
    empty = sizes.count(0) if states.case.views else 0  # an empty bucket has an element
    sent, width = sum(sizes) + empty, states.policy.of(State.OPTIMIZER)
    yield Figure("broadcast", "batch"), Known(((sent, 4 * sent),) * len(ranks), ONE_OWNER)
    yield MOMENTS, Known(tuple(width * sizes[rank] for rank in ranks), ONE_OWNER)


def _of_slices(states: States, ranks: tuple[int, ...], profile: Values) -> Differences:
    """Of FSDP2 and HSDP, whose gradients are in slices after the last micro-step."""
    case = states.case
    if not case.each:
        found = predicted(states.reduced(unit) for unit in states.units())[GRADIENTS]
        yield GRADIENTS, Known((found,) * len(ranks), "the last micro-step leaves the sum in slices")
    elif case.strategy == "hsdp" and case.micro_steps > 1:
        yield _in_each_micro_step(Figure("all_reduce", "replica"), case, profile)


def _of_tensors(cut: Cut, ranks: tuple[int, ...], profile: Values) -> Differences:
    """Of parallelize_module."""
    case = cut.case
    sent = together([sent_in_all(cut, cut.stage(cut.profile, rank)) for rank in ranks])
    for figure in {*sent, *(figure for figure in profile if figure.axis == "tensor")}:
        values = sent.get(figure, ((0, 0),) * len(ranks))
        yield figure, Known(values, why(case, figure))
    if case.strategy not in ("tp", "tp+sp"):
        return
    words, row = cut.shape.vocabulary, 4 * cut.shape.hidden  # bytes of a word
    most = ceil_div(words, case.sizes["tensor"])
    beyond = [row * (words + cut.words(rank) - 2 * most) for rank in ranks]
    for figure in (GRADIENTS, WAITING):
        sizes = zip(profile[figure], beyond, strict=True)
        yield figure, Known(tuple(size + other for size, other in sizes), WHOLE_WORDS)
    if case.optimizer == "momentum":
        sizes = zip(profile[MOMENTS], beyond, strict=True)
        reason = f"momentum begins as a copy of the gradient; {WHOLE_WORDS}"
        yield MOMENTS, Known(tuple(size + other for size, other in sizes), reason)
    elif case.optimizer == "adam":
        padding = (4 * row * (most - cut.words(rank)) for rank in ranks)  # two moments of two weights
        sizes = zip(profile[MOMENTS], padding, strict=True)
        reason = "each rank's own words, without padding"
        yield MOMENTS, Known(tuple(size - other for size, other in sizes), reason)
