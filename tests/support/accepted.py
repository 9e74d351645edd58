"""Schedules that T3 says are rejected, but the checker accepts: none, unless a rule is broken."""

from proofs.checking.witnesses import broken_schedules
from spec.checking.verdict import check
from spec.plans.placement import BATCH


def of_t3():
    """Their names."""
    found = broken_schedules()
    return [w.name for w in found if check(w.schedule, {BATCH: 2}, w.micro_steps).accepted]
