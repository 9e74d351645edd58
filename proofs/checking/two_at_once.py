"""T4: schedules in which two rules of what operations do meet: sides of the host link, slices, sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from proofs.checking.further_schedules import ADD, FRESH, GRADIENTS, PARAMETERS, RELEASE, VIEW, scaled
from proofs.checking.matching_schedules import along, token_mean
from proofs.checking.witnesses import around, meant, operation
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Op, Rest, Schedule, Span
from spec.models.states import State
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES

TWO = ("outer", "inner")
TIED, OPTIMIZER, OWN = Buffer.TIED, Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW


def two_at_once() -> Iterator[tuple[str, Schedule, str]]:
    """A name, a schedule, and the rule that it breaks, if any."""
    yield "gradients_one_micro_step_later_and_tokens", _of_two_sums(), ""
    yield "gradients_are_added_beside_those_on_the_host", _beside_the_host(), ""
    yield "a_view_of_the_state_becomes_the_state", _of_a_view_of_the_state(), ""
    yield "slices_along_two_axes_are_gathered_along_one", _kept_along_one(), "fresh"
    yield "sums_of_slices_along_two_axes_are_gathered_along_one", _gathered_along_one(), "whole"
    fetched, zero1 = schedule_of(on_batch("O", "R", "R", "S")), schedule_of(STRATEGIES["zero1"])
    for kind in (Kind.FORWARD, Kind.BACKWARD):
        ops = fetched.micro_step
        there = tuple(replace(op, source=PARAMETERS) if op.kind is kind else op for op in ops)
        yield f"{kind.value}_reads_the_host", replace(fetched, micro_step=there), "fresh"
    for number, across in enumerate(_across_the_link()):
        yield f"gradients_cross_the_host_link_{number}", across, "whole"
    yield "tied_gradients_of_slices_alone", _tied_slices(), "whole"
    scatter, *rest = zero1.finish
    mixed = replace(scatter, within=scatter.axes), *rest
    yield "slices_are_scattered_along_their_own_axis", replace(zero1, finish=mixed), "whole"


def _of_two_sums() -> Schedule:
    """Two sums start at zero: of gradients that are added one micro-step later, and of tokens."""
    mean = token_mean(schedule_of(STRATEGIES["dp"]))
    *count, forward, backward = mean.micro_step
    late = *count, ADD, forward, replace(backward, into=FRESH, span=Span.UNIT)
    return replace(mean, micro_step=late, finish=(ADD, *mean.finish, operation(Kind.RESET, FRESH)))


def _on_the_host() -> tuple[Schedule, Op, Op, Op]:
    """Data parallelism whose gradients rest on the host, its forward, and two backwards."""
    dp = schedule_of(STRATEGIES["dp"]).with_rest(State.GRADIENTS, Rest(host=True))
    forward, backward = dp.micro_step
    return dp, forward, backward, replace(backward, into=FRESH, span=Span.UNIT)


def _beside_the_host() -> Schedule:
    """Gradients go to the host twice, and are added there to each other, less half of that."""
    dp, forward, _, fresh = _on_the_host()
    aside = operation(Kind.KEEP, FRESH, TIED, span=Span.UNIT)
    away = (operation(Kind.OFFLOAD, buffer) for buffer in (FRESH, TIED))
    added = replace(ADD, into=TIED), scaled(FRESH, -1), replace(ADD, source=TIED), ADD
    gone = RELEASE, replace(RELEASE, source=TIED)
    micro_step = forward, fresh, aside, *away, *added, *gone
    return replace(dp, micro_step=micro_step, finish=(operation(Kind.FETCH, GRADIENTS), *dp.finish))


def _across_the_link() -> Iterator[Schedule]:
    """Gradients of the device are added to those on the host; and by a backward. And on the host only
    slices are reset.
    """
    dp, forward, backward, fresh = _on_the_host()
    fetched = operation(Kind.FETCH, GRADIENTS), *dp.finish
    yield replace(dp, micro_step=(forward, fresh, ADD, RELEASE), finish=fetched)
    yield replace(dp, micro_step=(forward, backward))
    away = operation(Kind.OFFLOAD, FRESH)
    *ops, reset = fetched
    of_slices = *ops, replace(reset, within=dp.axes)
    yield replace(dp, micro_step=(forward, fresh, away, ADD, RELEASE), finish=of_slices)


def _tied_slices() -> Schedule:
    """Gradients of one use are of a backward that leaves slices, those of the other of another one."""
    dp = meant(schedule_of(STRATEGIES["dp"]), tied=True)
    forward, backward = dp.micro_step
    fresh = replace(backward, into=FRESH, span=Span.UNIT)
    of_slices = replace(fresh, within=dp.axes), replace(ADD, source=TIED)
    return replace(dp, micro_step=(forward, *of_slices, forward, fresh, ADD, RELEASE))


def _of_a_view_of_the_state() -> Schedule:
    """After the update the state is made of a view of it, with its moments."""
    view = operation(Kind.KEEP, OPTIMIZER, OWN, span=Span.UNIT)
    made = operation(Kind.RECOMPUTE, OWN, OPTIMIZER)
    return around(schedule_of(STRATEGIES["dp"]), last=(view, made, operation(Kind.RELEASE, OWN)))


def _kept_along_one() -> Schedule:
    """Whole weights go where there are slices along two axes, cut along one of them, and are gathered
    along that one.
    """
    zero3 = schedule_of(along(TWO))
    keep = operation(Kind.KEEP, VIEW, PARAMETERS, within=TWO[:1])
    gather = operation(Kind.ALL_GATHER, PARAMETERS, VIEW, axes=TWO[:1], span=Span.UNIT)
    at = next(i for i, op in enumerate(zero3.micro_step) if op.kind is Kind.FORWARD)
    return replace(zero3, micro_step=(*zero3.micro_step[:at], keep, gather, *zero3.micro_step[at:]))


def _gathered_along_one() -> Schedule:
    """Gradients are summed in slices along two axes, which are gathered along one."""
    dp = schedule_of(along(TWO, "dp"))
    reduction, *rest = dp.finish
    scatter = replace(reduction, kind=Kind.REDUCE_SCATTER)
    gather = replace(reduction, kind=Kind.ALL_GATHER, axes=TWO[:1])
    return replace(dp, finish=(scatter, gather, *rest))
