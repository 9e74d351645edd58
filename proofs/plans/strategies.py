"""E9: each named strategy's derived schedule matches a single device, for every mesh size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proofs.claim import claim
from proofs.plans.listed_runs import ListedRuns
from proofs.plans.listing import listing
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import MICRO_STEPS, Schedule
from spec.numbers.any_size import Comparison, any_size
from spec.plans.strategies import STRATEGIES


@claim("E9")
def named_strategies_match(k: Kernel) -> tuple[Theorem, ...]:
    """DP, ZeRO-1/2/3, FSDP (both settings), HSDP, ZeRO-Offload and fused updates are right.

    For every number of devices along each axis, of micro-steps (one, for fused updates) and of steps,
    every model and elementwise optimizer: after every step every kept copy is the single device's.
    (Claim E9)
    """
    schedules: dict[Schedule, str] = {}
    for name, placement in STRATEGIES.items():
        schedules.setdefault(schedule_of(placement), name)
    return (match(k, {name: schedule for schedule, name in schedules.items()}),)


def match(k: Kernel, schedules: Mapping[str, Schedule]) -> Theorem:
    """Schedules match a single device: so says T2, as what it compares comes out equal in each line.

    Raises KernelError for one that is rejected.
    """
    for schedule in schedules.values():
        require_everywhere(k, schedule)
    listed = {name.replace("-", "_"): listing(schedule) for name, schedule in schedules.items()}
    runs = ListedRuns(k, listed)
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
