"""Listed schedules match a single device, as T2 says, and the verdict accepts them for all sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proofs.plans.listed_language import WhyListed
from proofs.plans.listed_runs import ListedRuns
from proofs.plans.listing import Listing
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from spec.checking.verdict import check
from spec.language.schedule import MICRO_STEPS, Schedule
from spec.numbers.any_size import Comparison, any_size


def match(k: Kernel, listed: Mapping[str, Listing], why: WhyListed | None = None) -> Theorem:
    """Schedules match a single device: so says T2, as what it compares comes out equal in each line.

    `why`: why the schedule is one of them, if that is not supposed. Raises KernelError.
    """
    runs = ListedRuns(k, listed, why)
    return runs.at_the_end(runs.always())


def require_everywhere(k: Kernel, schedule: Schedule) -> None:
    """Raise KernelError unless a schedule is accepted on every mesh, for every number of micro-steps.

    Of any number of each; of one or two along an axis, or of micro-steps, and any number of the rest;
    and of one or two of all.
    """
    for mesh, micro_steps in _sizes(schedule):
        comparison = Comparison()
        verdict = check(schedule, mesh, micro_steps, comparison=comparison)
        if not verdict.accepted or any(comparison.exempt.values()):
            raise KernelError(f"{k.claim}: rejected on {mesh}: {verdict.rule}, {verdict.op}")


def _sizes(schedule: Schedule) -> Iterator[tuple[dict[str, Any], Any]]:
    """Devices along each axis, and micro-steps: one, where gradients do not wait."""
    names = (*schedule.axes, *((MICRO_STEPS,) if schedule.finish else ()))
    general = {name: any_size(name) for name in names}
    those = dict.fromkeys((*((name,) for name in names), names))
    for few in ({}, *(dict.fromkeys(some, n) for some in those for n in (1, 2))):
        numbers = general | few
        yield numbers, numbers.pop(MICRO_STEPS, 1)
