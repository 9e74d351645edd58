"""Schedules that the verdict accepts: strategies, and what else a step may have, in few devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from proofs.checking.witnesses import around, meant, operation
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import Axes
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, Monomial, Op, Schedule
from spec.models.states import State
from spec.models.training import Loss, Statistics
from spec.plans.modes import M
from spec.plans.placement import BATCH, Placement, place_states
from spec.plans.strategies import STRATEGIES


@dataclass(frozen=True)
class Accepted:
    """A schedule that the verdict accepts, and how it is run."""

    name: str
    schedule: Schedule
    devices: int = 2  # along each axis
    micro_steps: int = 1
    steps: int = 1
    elements: int = 2
    stateful: bool = True


def accepted_schedules() -> tuple[Accepted, ...]:
    """Each strategy for two steps of two micro-steps; of all pieces of a step one that has it."""
    dp, zero3 = schedule_of(STRATEGIES["dp"]), schedule_of(STRATEGIES["zero3"])
    on_two = schedule_of(along(("outer", "inner"), "dp"))
    return (
        *(
            Accepted(name.replace("-", "_"), schedule_of(placement), elements=4, steps=2, micro_steps=m)
            for name, placement in STRATEGIES.items()
            for m in [1 if name == "fused-update" else 2]  # each micro-step of it updates
        ),
        Accepted("three_devices", zero3, devices=3, micro_steps=2, elements=6),
        Accepted("slices_along_two_axes", schedule_of(along(("outer", "inner"))), elements=8),
        Accepted("slices_of_the_next_device", _of_the_next(dp), devices=3, elements=6),
        Accepted("no_moment", zero3, stateful=False),
        Accepted("mean", mean_loss(dp), micro_steps=2, steps=2),
        Accepted("token_mean", token_mean(dp), devices=3, micro_steps=2, steps=2),
        Accepted("mean_over_two_axes", mean_loss(on_two), micro_steps=2),
        Accepted("tokens_counted_over_two_axes", counted_at_once(on_two), micro_steps=2),
        Accepted("slices_reset_one_after_the_other", _reset_in_turn(dp), steps=2),
        Accepted("tied", tied_parameters(dp), micro_steps=2, steps=2),
        Accepted("clip", meant(clipped(mean_loss(dp)), loss=Loss.MEAN, clip=True)),
        Accepted("clip_of_slices", clipped(meant(zero3, clip=True)), elements=4),
        Accepted(
            "statistics_of_all", with_statistics(dp, Statistics.ALL), devices=3, micro_steps=2, steps=2
        ),
        Accepted(
            "statistics_of_the_first", with_statistics(dp, Statistics.FIRST), micro_steps=2, steps=2
        ),
        Accepted("statistics_of_the_firsts_copy", meant(dp, statistics=Statistics.COPY), steps=2),
    )


def along(axes: Axes, name: str = "zero3") -> Placement:
    """A strategy along several axes."""
    of = STRATEGIES[name]
    return place_states(axes, {s: dict.fromkeys(axes, of.mode(s, BATCH) or M) for s in State})


def _of_the_next(schedule: Schedule) -> Schedule:
    """Each device sums the slice of the next one, and all gather the slices from where they are."""
    reduction, *rest = schedule.finish
    scatter = replace(reduction, kind=Kind.REDUCE_SCATTER, shift=1)
    gather = operation(Kind.ALL_GATHER, Buffer.GRADIENTS, axes=reduction.axes, shift=1)
    return replace(schedule, finish=(scatter, gather, *rest))


def _before_the_update(schedule: Schedule, *ops: Op) -> Schedule:
    """The schedule, with operations after the reduction."""
    reduction, *rest = schedule.finish
    return replace(schedule, finish=(reduction, *ops, *rest))


def after(schedule: Schedule, kind: Kind, more: Callable[[Op], tuple[Op, ...]]) -> Schedule:
    """The schedule, with operations after each of a kind in a micro-step."""
    ops = ((op, *more(op)) if op.kind is kind else (op,) for op in schedule.micro_step)
    return replace(schedule, micro_step=tuple(op for several in ops for op in several))


def mean_loss(schedule: Schedule) -> Schedule:
    """The loss is a mean over devices and micro-steps."""
    reduction, *rest = schedule.finish
    scale = operation(Kind.SCALE, Buffer.GRADIENTS, by=Monomial(powers=((MICRO_STEPS, -1),)))
    finish = (replace(reduction, mean=True), scale, *rest)
    return replace(meant(schedule, loss=Loss.MEAN), finish=finish)


def token_mean(schedule: Schedule) -> Schedule:
    """The loss is a mean over tokens, which are counted, summed and divided by."""
    total = Buffer.TOTAL_TOKENS
    counted = around(
        meant(schedule, loss=Loss.TOKEN_MEAN),
        first=(
            operation(Kind.COUNT, Buffer.TOKENS),
            operation(Kind.ACCUMULATE, Buffer.TOKENS, total),
        ),
    )
    return _before_the_update(
        counted,
        operation(Kind.ALL_REDUCE, total, axes=schedule.axes),
        operation(Kind.DIVIDE, Buffer.GRADIENTS, by=total),
        operation(Kind.RESET, total),
    )


def counted_at_once(schedule: Schedule) -> Schedule:
    """The loss is a mean over tokens, each count of which is of all devices."""
    total = Buffer.TOTAL_TOKENS
    count = operation(Kind.COUNT, Buffer.TOKENS, axes=schedule.axes)
    add = operation(Kind.ACCUMULATE, Buffer.TOKENS, total)
    counted = around(meant(schedule, loss=Loss.TOKEN_MEAN), first=(count, add))
    divide = operation(Kind.DIVIDE, Buffer.GRADIENTS, by=total)
    return _before_the_update(counted, divide, operation(Kind.RESET, total))


def _reset_in_turn(schedule: Schedule) -> Schedule:
    """On two devices each resets its own slice, and the other one's."""
    *ops, reset = schedule.finish
    own = replace(reset, within=schedule.axes)
    return replace(schedule, finish=(*ops, own, replace(own, shift=1)))


def tied_parameters(schedule: Schedule) -> Schedule:
    """Parameters are used in two places, of which the gradients are added."""
    return after(
        meant(schedule, tied=True),
        Kind.BACKWARD,
        lambda op: (operation(Kind.ACCUMULATE, Buffer.TIED, op.target),),
    )


def with_statistics(schedule: Schedule, whose: Statistics) -> Schedule:
    """Statistics are made the same after forward: their mean, or those of the first device."""
    of_all = whose is Statistics.ALL
    kind = Kind.ALL_REDUCE if of_all else Kind.BROADCAST
    same = operation(kind, Buffer.STATISTICS, axes=schedule.axes, mean=of_all)
    return after(meant(schedule, statistics=whose), Kind.FORWARD, lambda _: (same,))
