"""What psem derives of a case: by the book, under PyTorch's profile; and known differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.cases import Case, Decoder
from conformance.differences import Known, differences
from conformance.figures import (
    BUCKETS,
    GRADIENTS,
    KEPT,
    MOMENTS,
    WAITING,
    Figure,
    Values,
    predicted,
    together,
)
from conformance.logs import Log
from conformance.plans import Cut, book_of
from conformance.realised import local_shapes, sent_between
from conformance.states import States
from spec.numbers.arithmetic import Number

WHOLE_MODEL = ("ddp", "zero redundancy", "fsdp2", "hsdp")  # strategies that cut no layer


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
        if cut:
            kept = {KEPT: cut.textbook.stage(0).activations}
            textbook = [{**each, **kept} for each in textbook]
            profile = [{**each, **kept} for each in profile]
    for each in (*textbook, *profile):
        each[WAITING] = each[GRADIENTS] if case.micro_steps > 1 and not staged else 0
    found = together(profile)
    known = dict(differences(states, cut, ranks, found))
    return Derived(together(textbook), found, known, frozenset(_outside(case, states)))


def _outside(case: Case, states: States) -> Iterator[Figure]:
    """What is not compared."""
    if not states.reduces_in_buckets:
        yield BUCKETS
    if not isinstance(case.model, Decoder):
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
