"""T4: schedules whose steps are right at first: what makes them wrong is moved on from step to step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from proofs.checking.witnesses import Ops, meant, operation
from proofs.trusted.terms import KernelError
from spec.checking.verdict import SETTLED_WITHIN, check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Op, Schedule, Span
from spec.meaning.reference import first_divergence
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES

FRESH, GRADIENTS, NORM = Buffer.FRESH, Buffer.GRADIENTS, Buffer.NORM
ADD = operation(Kind.ACCUMULATE, FRESH, GRADIENTS)
OFF = operation(Kind.SCALE, FRESH, by=Monomial(Fraction(-1))), ADD


@dataclass(frozen=True)
class Late:
    """A schedule on some devices, whose runs diverge in a step that is not before `step`."""

    name: str
    schedule: Schedule
    devices: int
    step: int


def require_late_steps() -> None:
    """That what goes wrong late is rejected, as its run diverges, then. Raises KernelError."""
    for late in late_schedules():
        mesh = {BATCH: late.devices}
        if check(late.schedule, mesh).accepted:
            raise KernelError(f"{late.name}: accepted, but wrong in step {late.step}")
        diverged = first_divergence(late.schedule, mesh, steps=late.step + 1)
        if diverged is None or diverged.step != late.step:
            raise KernelError(f"{late.name}: expected a run that diverges in step {late.step}")


def late_schedules() -> Iterator[Late]:
    """Up to two steps later than the checker runs before it gives up what has not repeated."""
    dp = schedule_of(STRATEGIES["dp"])
    reduced, *last = dp.finish
    fresh = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.UNIT)
    for steps in range(1, SETTLED_WITHIN + 3):
        at_first = *_taken(steps - 1), ADD, *_taken(steps), *OFF
        late = (reduced, *at_first, *_moved_on(steps), fresh, _put(0), *last)
        schedule = replace(dp, finish=late, start=(Buffer.TIED,))
        yield Late(f"a_gradient_again_{steps}_steps_later", schedule, steps + 1, steps)
    yield Late("a_norm_of_the_first_devices_elements_is_late", _of_a_late_norm(), 4, 2)


def _taken(place: int) -> Ops:
    """What the device so many places from the owner keeps for it, on every device."""
    return (
        operation(Kind.ZERO, FRESH, span=Span.UNIT),
        operation(Kind.KEEP, Buffer.TIED, FRESH, within=(BATCH,), shift=-place, span=Span.UNIT),
        operation(Kind.ALL_REDUCE, FRESH, axes=(BATCH,)),
    )


def _put(place: int) -> Op:
    """It keeps another value for it."""
    return operation(Kind.KEEP, FRESH, Buffer.TIED, within=(BATCH,), shift=-place, span=Span.UNIT)


def _moved_on(places: int) -> Ops:
    """Each of so many devices keeps what the one before it did."""
    return tuple(op for p in reversed(range(places - 1)) for op in (*_taken(p), _put(p + 1)))


def _of_a_late_norm() -> Schedule:
    """Elements that the first device does not own are clipped by a norm that is wrong, from the third
    step on, for elements that it owns; these are clipped by the right one.
    """
    dp = schedule_of(STRATEGIES["dp"])
    reduced, *last = dp.finish
    square = operation(Kind.SQUARE_NORM, GRADIENTS, NORM)
    of_the_first, clipped = 2, 3
    finish = (
        *(reduced, square, operation(Kind.ZERO, FRESH, span=Span.UNIT)),
        operation(Kind.KEEP, GRADIENTS, FRESH, within=(BATCH,), span=Span.UNIT),
        *(operation(Kind.BROADCAST, FRESH, axes=(BATCH,)), _put(of_the_first)),
        *(operation(Kind.CLIP, FRESH, by=NORM), _put(clipped)),
        *(*_taken(1), ADD, square, *OFF),
        *(*_taken(of_the_first), *OFF, operation(Kind.CLIP, GRADIENTS, by=NORM)),
        *(*_taken(clipped), ADD, *_moved_on(2), *_taken(of_the_first), _put(0)),
    )
    return replace(meant(dp, clip=True), finish=(*finish, *last))
