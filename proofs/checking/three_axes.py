"""T3: schedules along three axes, and what is left of them without one axis of a line, beside runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from proofs.checking.matching_schedules import (
    along,
    counted_at_once,
    mean_loss,
    token_mean,
    with_statistics,
)
from proofs.checking.witnesses import meant
from proofs.trusted.kernel import KernelError
from spec.checking.verdict import check
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import Axes
from spec.language.schedule import Buffer, Kind, Op, Schedule
from spec.meaning.reference import first_divergence, primes
from spec.models.states import State
from spec.models.training import Statistics
from spec.plans.compose import factor, with_all_samples
from spec.plans.modes import Mode
from spec.plans.placement import place_states

AXES = "a", "b", "c"
MESH = dict.fromkeys(AXES, 2)
DATA = cache(primes)  # of every run


def require_three_axes(claim: str) -> None:
    """Raise KernelError unless verdicts on two devices along each of three axes are those of runs.

    Steps are right, or wrong at once; of slices along two, also without the last axis of any line,
    which may not be.
    """
    clipped_slices, of_two = _in_slices()
    right, wrong = (clipped_slices, of_two, *_of_all()), (*_of_one(),)
    for schedule in (*right, *wrong, *_along_fewer(of_two)):
        verdict = check(schedule, MESH)
        accepted = verdict.accepted
        matches = first_divergence(schedule, MESH, data=DATA) is None
        late = schedule in wrong and verdict.step != 0  # it is wrong in the first step
        if accepted is not matches or late or schedule in (wrong if accepted else right):
            said = "accepted" if accepted else "rejected"
            raise KernelError(f"{claim}: along three axes {said}, and is otherwise: {schedule.ops}")


def _in_slices() -> Iterator[Schedule]:
    """States in slices along all three, clipped; in slices along two, with samples along three."""
    yield clipped(meant(schedule_of(along(AXES)), clip=True))
    yield schedule_of((factor("zero3", "a") * factor("dp", "b") * factor("zero1", "c")).states)


def _of_all() -> Iterator[Schedule]:
    """States that are whole, and what is counted, seen, summed or in others' slices along all three."""
    placed = along(AXES, "dp")
    dp = schedule_of(placed)
    total, *rest = dp.finish
    both = (replace(total, kind=kind, shift=1) for kind in (Kind.REDUCE_SCATTER, Kind.ALL_GATHER))
    yield from (mean_loss(dp), token_mean(dp), counted_at_once(replace(dp, finish=(*both, *rest))))
    yield from (with_statistics(dp, whose) for whose in (Statistics.ALL, Statistics.FIRST))
    yield schedule_of(with_all_samples(placed, AXES))
    kept = dict(
        zip(State, (Mode.REPLICATED, Mode.REPLICATED, Mode.GATHERED, Mode.SHARDED), strict=True)
    )
    gathered = place_states(AXES, {state: dict.fromkeys(AXES, mode) for state, mode in kept.items()})
    yield clipped(meant(schedule_of(gathered), clip=True))


def _of_one() -> Iterator[Schedule]:
    """Slices along one axis that are summed along all three; backwards of others' samples along one,
    whose activations are not there; states that are whole along one in the room for slices; and
    parameters that are not gathered along one.
    """
    dp = schedule_of(along(AXES, "dp"))
    total, *rest = dp.finish
    forward, backward = dp.micro_step
    for axis in (AXES[0], AXES[-1]):
        gather = replace(total, kind=Kind.ALL_GATHER, axes=(axis,))
        yield replace(dp, finish=(replace(total, within=(axis,)), gather, *rest))
        others = replace(total, axes=tuple(other for other in AXES if other != axis))
        of_others = replace(backward, axes=(axis,))
        yield replace(dp, micro_step=(forward, of_others), finish=(others, *rest))
        yield _of_room_for_slices(axis)
        zero3 = schedule_of(along(AXES))
        yield replace(zero3, micro_step=tuple(_gathered(op, others.axes) for op in zero3.micro_step))


def _gathered(op: Op, axes: Axes) -> Op:
    """What is gathered, along some axes alone."""
    return replace(op, axes=axes) if op.kind is Kind.ALL_GATHER else op


def _of_room_for_slices(axis: str) -> Schedule:
    """Optimizer states that are whole along an axis go where there is room for a slice; and parameters
    are made from there.
    """
    kept = {other: Mode.GATHERED if other == axis else Mode.SHARDED for other in AXES}
    whole = dict.fromkeys(AXES, Mode.REPLICATED)
    modes = {**dict.fromkeys(State, whole), State.OPTIMIZER: kept}
    modes[State.ACTIVATIONS] = dict.fromkeys(AXES, Mode.SHARDED)
    schedule = schedule_of(place_states(AXES, modes))
    finish: list[Op] = []
    for op in schedule.finish:
        others = tuple(other for other in op.within if other != axis)
        finish.append(replace(op, within=others))
        if op.kind is Kind.KEEP:
            made = replace(op, kind=Kind.RECOMPUTE, source=Buffer.OPTIMIZER, into=Buffer.PARAMETERS)
            finish.append(replace(made, within=others))
    return replace(schedule, finish=tuple(finish))


def _along_fewer(schedule: Schedule) -> Iterator[Schedule]:
    """The schedule, with a line that is not along the last of its axes, or slices."""
    for at, op in enumerate(schedule.ops):
        for other in _fewer(op):
            ops, each = (*schedule.ops[:at], other, *schedule.ops[at + 1 :]), len(schedule.micro_step)
            yield replace(schedule, micro_step=ops[:each], finish=ops[each:])


def _fewer(op: Op) -> Iterator[Op]:
    if op.axes:
        yield replace(op, axes=op.axes[:-1])
    if op.within:
        yield replace(op, within=op.within[:-1])
