"""Schedules of operations that no strategy needs, whose verdict is compared with runs: T3's alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from proofs.checking.further_schedules import (
    ADD,
    EVERYONE,
    FRESH,
    GRADIENTS,
    PARAMETERS,
    RELEASE,
    VIEW,
    Further,
    scaled,
)
from proofs.checking.witnesses import around, operation
from proofs.trusted.terms import KernelError
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Rest, Schedule, Span
from spec.models.states import State
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

IN_EACH = "each_micro_step_updates_a_view_of_the_state"
SEVERAL = 11  # micro-steps, more than are always looked at one by one
OPTIMIZER, OWN, TIED = Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW, Buffer.TIED


def rare_schedules() -> Iterator[Further]:
    """Views, gradients and updates beside those of a step, of which most do no harm."""
    yield Further("views_on_the_device_of_weights_on_the_host", _of_kept_views(), right=True)
    yield Further("a_backward_of_the_first_devices_view_is_for_nothing", _for_nothing(), right=True)
    yield Further(IN_EACH, _of_updated_views())
    yield Further("what_a_backward_of_zeros_adds_is_taken_off", _taken_off())
    yield Further("what_activations_that_are_gone_add_is_taken_off", _gone_and_taken_off())
    yield Further("old_weights_and_views_change_places_in_every_step", _of_swaps(), right=True)
    yield Further("what_is_not_known_grows_in_one_sum_after_another", _of_two_sums(), right=True)
    yield Further("right_from_two_micro_steps_on", _right_from_two())
    for slices in ((), EVERYONE):
        yield Further(f"weights_on_the_wrong_side_{len(slices)}", _on_the_wrong_side(*slices))


def require_updates_in_each() -> None:
    """Raise KernelError unless updates in each micro-step are accepted, of one and of several."""
    for micro_steps in (1, SEVERAL):
        if not check(_of_updated_views(), {BATCH: 2}, micro_steps).accepted:
            raise KernelError(f"{IN_EACH}: {micro_steps} are rejected")


def require_used_once() -> None:
    """Raise KernelError unless a backward uses up the activations of a group, for any other one.

    A half of what two backwards leave would be right.
    """
    dp, half = schedule_of(STRATEGIES["dp"]), Monomial(Fraction(1, 2))
    forward, backward = dp.micro_step
    gather = operation(Kind.ALL_GATHER, Buffer.ACTIVATIONS, axes=EVERYONE)
    of_all = (replace(backward, axes=EVERYONE),) * 2
    finish = operation(Kind.SCALE, GRADIENTS, by=half), *dp.finish[1:]
    if check(replace(dp, micro_step=(forward, gather, *of_all), finish=finish), {BATCH: 2}).accepted:
        raise KernelError("activations of a group are used twice")


def _of_kept_views() -> Schedule:
    """Weights on the host, and views that stay from step to step, and are not brought up to date."""
    placed = schedule_of(on_batch("O", "R", "R"))
    gone = Kind.FETCH, Kind.RELEASE
    micro_step, finish = (
        tuple(op for op in ops if not (op.kind in gone and op.target is VIEW)) for ops in placed.bodies
    )
    return replace(placed, micro_step=micro_step, finish=finish, start=(VIEW,))


def _for_nothing() -> Schedule:
    """A backward of what the first device has of the optimizer's view, where there is none."""
    dp = schedule_of(STRATEGIES["dp"])
    forward, backward = dp.micro_step
    seen = (
        operation(Kind.ZERO, VIEW, span=Span.UNIT),
        operation(Kind.KEEP, OWN, VIEW, within=EVERYONE, span=Span.UNIT),
        operation(Kind.BROADCAST, VIEW, axes=EVERYONE),
    )
    of_it = replace(backward, source=VIEW, into=FRESH, span=Span.UNIT)
    return around(dp, first=(*seen, forward, of_it, RELEASE, operation(Kind.RELEASE, VIEW)))


def _of_updated_views() -> Schedule:
    """Each micro-step updates a view of the state by all gradients so far: the last one's is kept."""
    placed = schedule_of(on_batch("M", "R", "R"))
    each = (
        operation(Kind.ALL_REDUCE, GRADIENTS, FRESH, axes=EVERYONE, span=Span.ALL_UNITS),
        operation(Kind.RECOMPUTE, OPTIMIZER, OWN, span=Span.UNIT),
        operation(Kind.UPDATE, FRESH, OWN),
    )
    last = operation(Kind.KEEP, OWN, OPTIMIZER), operation(Kind.RESET, GRADIENTS), RELEASE
    micro_step = (*placed.micro_step, *each)
    return replace(placed, micro_step=micro_step, finish=(*last, operation(Kind.RELEASE, OWN)))


def _taken_off() -> Schedule:
    """What a backward of slices of zeros leaves is added, and taken off again."""
    dp = schedule_of(STRATEGIES["dp"])
    forward, backward = dp.micro_step
    of_zeros = (
        operation(Kind.ZERO, OWN, span=Span.UNIT),
        operation(Kind.KEEP, OWN, VIEW, within=EVERYONE, span=Span.UNIT),
        forward,
        replace(backward, source=VIEW, into=FRESH, span=Span.ALL_UNITS),
        *(ADD, scaled(FRESH, -1), ADD, RELEASE, operation(Kind.RELEASE, VIEW)),
    )
    return replace(dp, micro_step=(*dp.micro_step, *of_zeros))


def _gone_and_taken_off() -> Schedule:
    """Activations that a backward has used up are gathered; what another leaves of them is added, and
    taken off again.
    """
    dp = schedule_of(STRATEGIES["dp"])
    _, backward = dp.micro_step
    of_gone = (
        operation(Kind.ALL_GATHER, Buffer.ACTIVATIONS, axes=EVERYONE),
        replace(backward, into=FRESH, axes=EVERYONE, span=Span.ALL_UNITS),
        *(ADD, scaled(FRESH, -1), ADD, RELEASE),
    )
    return replace(dp, micro_step=(*dp.micro_step, *of_gone))


def _of_swaps() -> Schedule:
    """Working copies on the host, and a view of the step before: none is read, and they change places,
    so that both come to the other side of the host link in every step.
    """
    placed = schedule_of(on_batch("M", "R", "R")).with_rest(
        State.PARAMETERS, Rest(host=True, working=True)
    )
    aside = operation(Kind.KEEP, VIEW, OWN, span=Span.UNIT)
    made = operation(Kind.RECOMPUTE, OPTIMIZER, VIEW, span=Span.UNIT)
    back, gone = replace(aside, source=OWN, into=VIEW), operation(Kind.RELEASE, OWN)
    swap = replace(aside, source=PARAMETERS), operation(Kind.KEEP, VIEW, PARAMETERS), back, gone
    forward, backward = schedule_of(STRATEGIES["dp"]).micro_step
    read = replace(forward, source=VIEW), replace(backward, source=VIEW)
    finish = (*schedule_of(STRATEGIES["dp"]).finish, *swap)
    return replace(placed, micro_step=(aside, made, *read, back, gone), finish=finish, start=(VIEW,))


def _of_two_sums() -> Schedule:
    """A sum of gradients, and one that grows only where that is not known: nothing reads them."""
    dp = schedule_of(STRATEGIES["dp"])
    *before, reset = dp.finish
    minus, add = scaled(TIED, -1), replace(ADD, source=TIED, into=FRESH)
    own = replace(ADD, source=GRADIENTS, into=TIED)
    return replace(dp, finish=(*before, own, add, minus, add, minus, reset))


def _right_from_two() -> Schedule:
    """Sums beside the resting gradients, which are reset: of one micro-step what is added at last is
    whatever other devices have of gradients; of several it is zeros.
    """
    placed = schedule_of(on_batch("R", "S", "M"))
    forward, backward = placed.micro_step[:2]
    micro_step = (
        *(forward, replace(backward, span=Span.ALL_UNITS), replace(ADD, into=TIED)),
        operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS),
        operation(Kind.RESET, GRADIENTS, within=EVERYONE),
    )
    finish = (
        operation(Kind.REDUCE_SCATTER, TIED, axes=EVERYONE),
        replace(ADD, into=TIED, within=EVERYONE),
        operation(Kind.UPDATE, TIED, OPTIMIZER, within=EVERYONE),
        operation(Kind.ALL_GATHER, PARAMETERS, axes=EVERYONE),
        operation(Kind.RESET, TIED),
    )
    return replace(placed, micro_step=micro_step, finish=finish)


def _on_the_wrong_side(*slices: str) -> Schedule:
    """Weights that rest on the host, and are made on the device."""
    placed = schedule_of(on_batch("M", "R", "R")).with_rest(State.PARAMETERS, Rest(slices, host=True))
    return around(placed, last=(operation(Kind.RECOMPUTE, OPTIMIZER, PARAMETERS, within=slices),))
