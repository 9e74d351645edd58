"""T3: schedules along three axes, and what is left of them without one axis of a line, beside runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from proofs.checking.matching_schedules import along
from proofs.checking.witnesses import meant
from proofs.trusted.kernel import KernelError
from spec.checking.verdict import check
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Op, Schedule
from spec.meaning.reference import first_divergence, primes
from spec.plans.compose import factor

AXES = "a", "b", "c"
DATA = cache(primes)  # of every run


def require_three_axes(claim: str) -> None:
    """Raise KernelError unless verdicts on two devices along each of three axes are those of runs."""
    for right in _schedules():
        for schedule in (right, *_without_an_axis(right)):
            mesh = dict.fromkeys(AXES, 2)
            accepted = check(schedule, mesh).accepted
            matches = first_divergence(schedule, mesh, data=DATA) is None
            if accepted is not matches or (schedule is right and not accepted):
                said = "accepted" if accepted else "rejected"
                raise KernelError(f"{claim}: along three axes {said}, and is otherwise: {schedule.ops}")


def _schedules() -> Iterator[Schedule]:
    """States in slices along all three, clipped; in slices along two, with samples along three."""
    yield clipped(meant(schedule_of(along(AXES)), clip=True))
    yield schedule_of((factor("zero3", "a") * factor("dp", "b") * factor("zero1", "c")).states)


def _without_an_axis(schedule: Schedule) -> Iterator[Schedule]:
    """The schedule, with a line that is not along the last of its axes, or slices."""
    for at, op in enumerate(schedule.ops):
        for other in _along_fewer(op):
            ops, each = (*schedule.ops[:at], other, *schedule.ops[at + 1 :]), len(schedule.micro_step)
            yield replace(schedule, micro_step=ops[:each], finish=ops[each:])


def _along_fewer(op: Op) -> Iterator[Op]:
    if op.axes:
        yield replace(op, axes=op.axes[:-1])
    if op.within:
        yield replace(op, within=op.within[:-1])
