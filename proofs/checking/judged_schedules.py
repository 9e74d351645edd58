"""T4: schedules, most of them of T3's lists, run by lines, and by the checker beside them (`beside`).

So a rule of the checker, or of what operations do, that is another one than lines have is noticed here;
and one that is changed for both, as what matches must be accepted, and what diverges rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from proofs.checking.beside import judged
from proofs.checking.further_schedules import further_schedules
from proofs.checking.matching_schedules import accepted_schedules
from proofs.checking.operation_lines import NotCovered
from proofs.checking.room_for_slices import values_for_slices
from proofs.checking.two_at_once import two_at_once
from proofs.checking.witnesses import around, broken_schedules, meant, operation
from proofs.trusted.terms import KernelError
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Schedule, Span
from spec.models.states import MIXED_ADAM, POLICIES, BytePolicy
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

STEPS = 2
DEVICES = {1: (4,), 2: (2, 3)}  # along each of so many axes
RIGHT = ""  # the rule that a schedule breaks which breaks none
LEFT_OUT = {  # by what T4 does not cover
    "shifts": {
        "slices_of_the_next_device",
        "moments_are_wrong_between_steps",
        "a_slices_room_keeps_anothers",
        "slices_are_scattered_to_the_device_before",
        "right_on_three_devices_and_more",
        "slices_reset_one_after_the_other",
        "a_norm_of_the_next_devices_slices",
        "parts_of_it",
        "two_devices_gradients_are_a_sum_of_two",
    },
    "statistics": {
        "statistics_of_all",
        "statistics_of_the_first",
        "statistics_of_the_firsts_copy",
        "statistics_of_copy_that_begin_as_a_mean",
        "statistics_where_forward_runs_again",
        "statistics_are_each_devices_own",
    },
    "samples that several devices share": {
        "every_device_does_all_samples",
        "others_activations_are_taken_for_ones_own",
        "a_group_lacks_the_samples_of_others",
        "activations_of_a_group_are_gathered",
        "activations_of_a_group_are_lost",
        "activations_of_a_group_are_made_again",
    },
    "other uses of a gradient that is divided or clipped than an update": {
        "tokens_that_are_counted_twice_multiply",
        "tokens_that_are_summed_twice_and_gradients_too",
        "zero_over_a_count_that_is_gone",
        "gradients_over_a_count_that_is_gone",
        "gradients_over_no_count_are_added",
        "a_norm_of_the_first_devices_elements",
    },
    "sums of norms of whole gradients, or of norms that are summed already": {
        "a_halved_gradients_square_norm_is_half"
    },
    "gradients that are divided or clipped again": {
        "means_of_gradients_that_are_clipped_by_the_norm_of_their_mean"
    },
    "norms of clipped gradients": {"a_clip_by_a_norm_that_is_not_there"},
}


def require_judged() -> None:
    """That lines and the checker have the same forms after each operation, and the same verdict.

    Schedules that match are accepted; those that diverge are rejected, by the rule that is named. None
    is left out but for what is said of it. Raises KernelError.
    """
    left_out: dict[str, set[str]] = {}
    for name, schedule, micro_steps, policy, rule in _schedules():
        mesh = dict(zip(schedule.axes, DEVICES[len(schedule.axes)], strict=True))
        try:
            verdict = judged(schedule, mesh, micro_steps, policy, STEPS, after=False)
        except KernelError as no:
            raise KernelError(f"{name}: {no}") from no
        except NotCovered as no:
            left_out.setdefault(str(no), set()).add(name)
            continue
        if rule is not None and verdict.rule != rule:
            raise KernelError(f"{name}: expected {rule or 'to be accepted'}, got {verdict}")
    if left_out != LEFT_OUT:
        raise KernelError(f"other schedules are left out than are said to be: {left_out}")


Case = tuple[str, Schedule, int, BytePolicy, str | None]


def _schedules() -> Iterator[Case]:
    """A name, a schedule, its micro-steps, an optimizer, and the rule that it breaks: None where it is
    not said.
    """
    adam, without_moments = MIXED_ADAM, POLICIES["fp32-sgd"]
    for accepted in accepted_schedules():
        yield accepted.name, accepted.schedule, accepted.micro_steps, adam, RIGHT
    for broken in broken_schedules():
        yield broken.name, broken.schedule, broken.micro_steps, adam, broken.rule
        if broken.rule == "current":  # what is out of date may be moments
            yield broken.name, broken.schedule, broken.micro_steps, without_moments, None
    for further in further_schedules():
        for micro_steps in (1, 2) if len(further.schedule.axes) == 1 else ():
            right = RIGHT if further.right else None
            yield further.name, further.schedule, micro_steps, adam, right
    for schedule, fit in values_for_slices():
        yield "values_for_slices", schedule, 1, adam, RIGHT if fit else "room"
    for name, schedule, rule in two_at_once():
        yield name, schedule, 1, adam, rule
    yield "moments_are_released_before_the_update", _released(), 1, POLICIES["fp32-adam"], "current"
    yield "a_count_that_nothing_reads_grows", _growing(), 1, adam, RIGHT
    yield "a_second_backward_has_no_activations", _backward_again(), 1, adam, "fresh"
    yield "slices_among_zeros_are_clipped_by_what_is_gone", _clipped_by_nothing(), 1, adam, "whole"


def _released() -> Schedule:
    """Optimizer state is gathered for the update, and released before it: its weights are kept."""
    gathered = schedule_of(on_batch("R", "S*", "R", "S"))
    sum_, gather, *others = gathered.finish
    gone = operation(Kind.RELEASE, Buffer.OPTIMIZER_VIEW)
    return replace(gathered, finish=(sum_, gather, gone, *others))


def _growing() -> Schedule:
    """Data parallelism that adds up tokens of all steps, for nobody: no two steps leave the same."""
    tokens, total = Buffer.TOKENS, Buffer.TOTAL_TOKENS
    counted = operation(Kind.COUNT, tokens), operation(Kind.ACCUMULATE, tokens, total)
    return around(schedule_of(STRATEGIES["dp"]), first=counted)


def _backward_again() -> Schedule:
    """Two backwards after one forward, whose activations the first has used up; half of their sum."""
    dp = schedule_of(STRATEGIES["dp"])
    half = operation(Kind.SCALE, Buffer.GRADIENTS, by=Monomial(Fraction(1, 2)))
    again = replace(dp, micro_step=(*dp.micro_step, dp.micro_step[-1]))
    return around(again, before=(half,))


def _clipped_by_nothing() -> Schedule:
    """Own slices among zeros are clipped by a norm that is not known: zeros stay zeros."""
    dp, gradients, fresh = schedule_of(STRATEGIES["dp"]), Buffer.GRADIENTS, Buffer.FRESH
    reduced, update, *last = dp.finish
    finish = (
        operation(Kind.ZERO, fresh, span=Span.UNIT),
        operation(Kind.KEEP, gradients, fresh, within=(BATCH,), span=Span.UNIT),
        operation(Kind.SQUARE_NORM, gradients, Buffer.NORM),
        operation(Kind.RELEASE, Buffer.NORM),
        operation(Kind.CLIP, fresh, by=Buffer.NORM),
        replace(update, source=fresh),
        operation(Kind.RELEASE, fresh),
    )
    return replace(meant(dp, clip=True), finish=(reduced, *finish, *last))
