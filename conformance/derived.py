"""What psem derives of a case: by the book, under PyTorch's profile, and what is known to be otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from conformance.cases import Case, Decoder
from conformance.figures import Figure, Values, predicted, together
from conformance.logs import Log
from conformance.plans import Cut, book_of
from conformance.realised import kept_of, local_shapes, sent_between
from conformance.states import States
from spec.arithmetic import Number
from spec.states import State

KEPT, COUNTS, BUCKETS = Figure("kept"), Figure("counts"), Figure("buckets")
PARAMETERS, MOMENTS = Figure("parameters"), Figure("moments")
GRADIENTS, WAITING = Figure("gradients"), Figure("waiting")
WHOLE_MODEL = ("ddp", "zero redundancy", "fsdp2", "hsdp")  # strategies that cut no layer


@dataclass(frozen=True)
class Known:
    """A difference that a formula predicts: values rank by rank, and why."""

    values: tuple[Number, ...]
    reason: str


@dataclass(frozen=True)
class Derived:
    """Figures of a case. `outside`: those of which psem says nothing."""

    textbook: Values
    profile: Values
    known: Mapping[Figure, Known]
    outside: frozenset[Figure] = frozenset()


def derived(case: Case, log: Log) -> Derived:
    """All figures of a case, for the ranks of its log."""
    ranks = tuple(log.ranks)
    cut = Cut(case, case.model) if isinstance(case.model, Decoder) else None
    staged = "pipe" in case.sizes
    states = States(case, local_shapes(case, log.shapes))
    if cut and case.strategy not in WHOLE_MODEL:
        textbook = [book_of(cut.stage(cut.textbook, rank)) for rank in ranks]
        profile = [_of_plan(cut, states, rank) for rank in ranks]
    else:
        textbook = [predicted([states.by_the_book])] * len(ranks)
        profile = [_of_states(states, rank) for rank in ranks]
        if cut and not states.is_cut:
            kept = {KEPT: cut.textbook.stage(0).activations}
            textbook = [{**each, **kept} for each in textbook]
            profile = [{**each, **kept} for each in profile]
    for each in (*textbook, *profile):
        each[WAITING] = each[GRADIENTS] if case.micro_steps > 1 and not staged else 0
    known = dict(_differences(case, log, states, cut, together(profile)))
    return Derived(together(textbook), together(profile), known, frozenset(_outside(case, states)))


def _outside(case: Case, states: States) -> Iterator[Figure]:
    """What is not compared."""
    if not states.reduces_in_buckets:
        yield BUCKETS
    if states.is_cut or not isinstance(case.model, Decoder):
        yield KEPT


def _of_states(states: States, rank: int) -> dict[Figure, Number]:
    """Of what cuts no layer: in PyTorch's units; moments are of a rank's own rows."""
    padded = predicted(states.prediction(unit) for unit in states.units())
    own = predicted(states.prediction(unit) for unit in states.units(states.place_of(rank)))
    return {**padded, MOMENTS: own[MOMENTS]}


def _of_plan(cut: Cut, states: States, rank: int) -> dict[Figure, Number]:
    """Of what cuts layers; states that are sharded beside it are in PyTorch's units."""
    stage = cut.stage(cut.profile, rank)
    found = {figure: value for figure, value in book_of(stage).items() if not figure.axis}
    found |= sent_between(cut, stage)
    return found | _of_states(states, rank) if states.is_cut or cut.case.strategy == "cp" else found


# ------------------------------------------------------------------------------ known differences
def _differences(
    case: Case, log: Log, states: States, cut: Cut | None, profile: Values
) -> Iterator[tuple[Figure, Known]]:
    ranks = tuple(log.ranks)
    n = len(ranks)
    if case.optimizer == "adam":
        counts = tuple(4 * _updated(case, log, states, rank) for rank in ranks)
        yield COUNTS, Known(counts, "Adam counts the steps of each weight: 4 bytes")
    if states.reduces_in_buckets:
        beside = 0 if case.views and case.strategy == "ddp" else 4 * states.psi
        beside = 2 * states.psi if case.mixed else beside
        yield BUCKETS, Known((beside,) * n, "DDP sums copies of gradients, in buckets")
    if case.strategy == "zero redundancy":
        yield from _of_owners(states, ranks)
    if case.micro_steps > 1 and case.each and case.strategy in ("ddp", "hsdp"):
        axis = "batch" if case.strategy == "ddp" else "replica"
        figure, m = Figure("all_reduce", axis), case.micro_steps
        values = tuple((m * elements, m * size) for elements, size in profile[figure])
        yield figure, Known(values, "without no_sync copies are summed in each micro-step")
    if case.strategy == "ddp" and case.mixed:
        figure = Figure("all_reduce", "batch")
        values = tuple((elements, 2 * elements) for elements, _ in profile[figure])
        yield figure, Known(values, "the hook compresses gradients to 2 bytes on their way")
    if states.is_cut and not case.each:
        own = [predicted(states.reduced(u) for u in states.units()) for _ in ranks]
        values = tuple(each[GRADIENTS] for each in own)
        yield GRADIENTS, Known(values, "the last micro-step leaves the sum in slices")
    if case.strategy in ("tp", "tp+sp") and cut:
        t, words = case.sizes["tensor"], cut.shape.vocabulary * cut.shape.hidden
        whole = 4 * (words - words // t)
        reason = "the gradient of the embedding's words is whole on each rank"
        yield GRADIENTS, Known(tuple(g + whole for g in profile[GRADIENTS]), reason)
        if case.micro_steps > 1:
            yield WAITING, Known(tuple(g + whole for g in profile[GRADIENTS]), reason)
        if case.optimizer == "momentum":
            reason = "momentum begins as a copy of the gradient, which is whole for the embedding's words"
            yield MOMENTS, Known(tuple(m + whole for m in profile[MOMENTS]), reason)
    if cut and not states.is_cut:
        kept = tuple(kept_of(cut, rank) for rank in ranks)
        yield KEPT, Known(kept, "each operation keeps what its own backward reads")


def _of_owners(states: States, ranks: tuple[int, ...]) -> Iterator[tuple[Figure, Known]]:
    """Of ZeroRedundancyOptimizer."""
    sizes = [prod(states.shapes[name]) for names in states.owned for name in names]
    if states.case.views:
        sizes += [1] * sum(not names for names in states.owned)
    reason, n = "each weight has one owner, which updates it and sends it to the others", len(ranks)
    yield Figure("broadcast", "batch"), Known(((sum(sizes), 4 * sum(sizes)),) * n, reason)
    width = states.policy.of(State.OPTIMIZER)
    mine = (sum(prod(states.shapes[w]) for w in states.owned[rank]) for rank in ranks)
    yield MOMENTS, Known(tuple(width * size for size in mine), "each weight has one owner")


def _updated(case: Case, log: Log, states: States, rank: int) -> int:
    """How many weights a rank updates."""
    if case.strategy == "zero redundancy":
        return len(states.owned[rank])
    if "pipe" not in case.sizes or not isinstance(case.model, Decoder):
        return len(log.shapes)
    counts = Cut(case, case.model).textbook.stage(rank).counts
    of_parts = {"embedding": 1, "layer": 9, "head": 2}
    return sum(of_parts[name] * count for name, count in counts.items())
