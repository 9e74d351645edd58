"""T4: schedules whose steps are right at first: what makes them wrong is moved on from step to step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from proofs.checking.witnesses import Ops, meant, operation
from proofs.trusted.terms import KernelError
from spec.checking.verdict import SETTLED_WITHIN, check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Op, Schedule, Span, takes_room
from spec.meaning.reference import first_divergence
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES

FRESH, GRADIENTS, NORM, TIED = Buffer.FRESH, Buffer.GRADIENTS, Buffer.NORM, Buffer.TIED
ADD = operation(Kind.ACCUMULATE, FRESH, GRADIENTS)
OFF = operation(Kind.SCALE, FRESH, by=Monomial(Fraction(-1))), ADD


@dataclass(frozen=True)
class Late:
    """A schedule on some devices, whose runs diverge in a step that is not before `step`."""

    name: str
    schedule: Schedule
    devices: int
    step: int


@dataclass(frozen=True)
class Line:
    """Devices that keep a value for an element, each at its place from the element's owner."""

    kept: Buffer = TIED
    through: Buffer = FRESH  # which it is taken to other devices

    def taken(self, place: int) -> Ops:
        """What the device at a place keeps, on every device."""
        return (
            operation(Kind.ZERO, self.through, span=Span.UNIT),
            self._kept(self.kept, self.through, place),
            operation(Kind.ALL_REDUCE, self.through, axes=(BATCH,)),
        )

    def put(self, place: int, value: Buffer) -> Op:
        """It keeps another value."""
        return self._kept(value, self.kept, place)

    def moved_on(self, places: int) -> Ops:
        """Each of so many devices keeps what the one before it did."""
        moved = ((*self.taken(p), self.put(p + 1, self.through)) for p in reversed(range(places - 1)))
        return tuple(op for ops in moved for op in ops)

    def _kept(self, source: Buffer, into: Buffer, place: int) -> Op:
        span = Span.UNIT if takes_room(Kind.KEEP, source, into) else Span.NONE
        return operation(Kind.KEEP, source, into, within=(BATCH,), shift=-place, span=span)


def require_late_steps() -> None:
    """That what goes wrong late is rejected, as its run diverges, then. Raises KernelError."""
    for late in late_schedules():
        mesh = {BATCH: late.devices}
        if check(late.schedule, mesh).accepted:
            raise KernelError(f"{late.name}: accepted, but wrong in step {late.step}")
        diverged = first_divergence(late.schedule, mesh, steps=late.step + 1)
        if diverged is None or diverged.step != late.step:
            raise KernelError(f"{late.name}: expected a run that diverges in step {late.step}")
    if not check(_of_zeros(SETTLED_WITHIN + 2, read=False), {BATCH: SETTLED_WITHIN + 3}).accepted:
        raise KernelError("what is moved on from step to step, and not read, is rejected")


def late_schedules() -> Iterator[Late]:
    """Up to two steps later than the checker runs before it gives up what has not repeated."""
    dp = schedule_of(STRATEGIES["dp"])
    reduced, *last = dp.finish
    fresh = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.UNIT)
    line = Line()
    for steps in range(1, SETTLED_WITHIN + 3):
        at_first = *line.taken(steps - 1), ADD, *line.taken(steps), *OFF
        late = (reduced, *at_first, *line.moved_on(steps), fresh, line.put(0, FRESH), *last)
        schedule = replace(dp, finish=late, start=(TIED,))
        yield Late(f"a_gradient_again_{steps}_steps_later", schedule, steps + 1, steps)
    yield Late(f"a_gradient_added_{steps}_steps_later", _of_zeros(steps), steps + 1, steps)
    yield Late("a_norm_of_the_first_devices_elements_is_late", _of_a_late_norm(), 4, 2)


def _of_zeros(steps: int, read: bool = True) -> Schedule:
    """What is kept begins as zeros, as gradients do: it stays so until the first gradient comes. It is
    added to a later gradient, if it is read.
    """
    dp, line = schedule_of(STRATEGIES["dp"]), Line(GRADIENTS, TIED)
    forward, backward = dp.micro_step
    gone = (operation(Kind.RELEASE, buffer) for buffer in (TIED, FRESH))
    micro_step = (
        *(forward, replace(backward, into=FRESH, span=Span.UNIT)),
        operation(Kind.ALL_REDUCE, FRESH, axes=(BATCH,)),
        *(*line.moved_on(steps + 1), line.put(0, FRESH)),
        *((*line.taken(steps), operation(Kind.ACCUMULATE, TIED, FRESH)) if read else ()),
        operation(Kind.UPDATE, FRESH, Buffer.OPTIMIZER),
    )
    return replace(dp, micro_step=(*micro_step, *gone), finish=())


def _of_a_late_norm() -> Schedule:
    """Elements that the first device does not own are clipped by a norm that is wrong, from the third
    step on, for elements that it owns; these are clipped by the right one.
    """
    dp = schedule_of(STRATEGIES["dp"])
    reduced, *last = dp.finish
    square = operation(Kind.SQUARE_NORM, GRADIENTS, NORM)
    line, of_the_first, clipped = Line(), 2, 3
    finish = (
        *(reduced, square, operation(Kind.ZERO, FRESH, span=Span.UNIT)),
        operation(Kind.KEEP, GRADIENTS, FRESH, within=(BATCH,), span=Span.UNIT),
        *(operation(Kind.BROADCAST, FRESH, axes=(BATCH,)), line.put(of_the_first, FRESH)),
        *(operation(Kind.CLIP, FRESH, by=NORM), line.put(clipped, FRESH)),
        *(*line.taken(1), ADD, square, *OFF),
        *(*line.taken(of_the_first), *OFF, operation(Kind.CLIP, GRADIENTS, by=NORM)),
        *(*line.taken(clipped), ADD, *line.moved_on(2), *line.taken(of_the_first), line.put(0, FRESH)),
    )
    return replace(meant(dp, clip=True), finish=(*finish, *last))
