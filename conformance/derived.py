"""What psem derives of a case: by the book, and under PyTorch's profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.case import Case
from conformance.figures import (
    BUCKETS,
    KEPT,
    MEMORY,
    ON_HOST,
    PINNED,
    WAITING,
    Figure,
    Values,
    together,
)
from conformance.plans import Planned, figures_of, planned
from conformance.profiles import REPLICATED, changes
from conformance.shapes import Decoder
from psem_model.predict.plan import Plan
from spec.devices.mesh import HOST


@dataclass(frozen=True)
class Derived:
    """Figures of a case. `named`: by a profile's name alone. `outside`: of which psem says nothing."""

    textbook: Values
    profile: Values
    named: Values
    outside: frozenset[Figure] = frozenset()


def derived(case: Case, ranks: Iterable[int]) -> Derived:
    """All figures of a case, for the ranks of which it was recorded."""
    of = planned(case)
    textbook, profile = (_figures(of, plan, ranks) for plan in (of.textbook, of.profile))
    named = _figures(of, of.named, ranks) if changes(case) else profile
    return Derived(textbook, profile, named, frozenset(_outside(case)))


def _figures(of: Planned, plan: Plan, ranks: Iterable[int]) -> Values:
    """Of a plan, rank by rank."""
    waits = of.case.micro_steps > 1
    stages = [of.stage(plan, rank) for rank in ranks]
    found = [figures_of(stage) for stage in stages]
    for stage, each in zip(stages, found, strict=True):
        each[WAITING] = stage.before_the_last if waits else 0
    return together(found)


def _outside(case: Case) -> Iterator[Figure]:
    """What is not compared."""
    if case.strategy not in REPLICATED:
        yield BUCKETS
    if case.strategy == "eager":
        yield from (Figure(name) for name in MEMORY if name != KEPT.what)
    elif not isinstance(case.model, Decoder):
        yield KEPT
    if case.offload and not case.is_beside:
        yield from (ON_HOST, PINNED, Figure("fetch", HOST), Figure("offload", HOST))
