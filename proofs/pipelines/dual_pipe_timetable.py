"""Start times in closed form of DualPipeV, for all sizes, where forward takes b, and b >= w."""

from __future__ import annotations

from typing import Any

from proofs.pipelines.pipeline import TERMS
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, If
from spec.pipelines.dual_pipe import (
    backward_of_first,
    backward_of_second,
    first_in_warm_up,
    forward_of_first,
    forward_of_second,
    rounds_without,
)
from spec.pipelines.dual_pipe_times import (
    all_first_parts_ended,
    closing_round,
    closing_start,
    last_start,
    opening_start,
    steady_start,
    together,
    warming_start,
)
from spec.pipelines.idle_and_held import makespan
from spec.pipelines.pipeline import Order, Pipeline, least_micro_batches, weights_done


class Timetable:
    """The closed start times, at any stage and round: any real numbers. `here`, `after`: two stages."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.p, self.m, self.t, self.w = k.reals("p m t w")
        self.pipe = Pipeline(
            Order.DUALPIPE_V, self.p, self.m, 2, self.t, self.t + self.w, of_weights=self.w
        )
        self.here, self.round = k.reals("stage round")
        self.after = self.here + 1
        self.without = rounds_without(self.p, self.here)
        self.both, self.backward = together(self.pipe), self.pipe.backward
        self.some, self.fits = self.w > 0, self.w <= self.t
        self.first = self.here >= 0
        self.inside = And(self.here >= 0, self.here <= self.p - 1)
        self.enough = self.m >= least_micro_batches(self.pipe)
        self.is_closing = closing_round(self.pipe, self.here, self.round)

    # ------------------------------------------------------------------- starts, by stage and round
    def warm(self, stage: Any, number: Any) -> Any:
        return warming_start(self.pipe, stage, number, TERMS)

    def opening(self, stage: Any, number: Any) -> Any:
        return opening_start(self.pipe, stage, number)

    def steady(self, stage: Any, number: Any) -> Any:
        return steady_start(self.pipe, stage, number)

    def closing(self, stage: Any, number: Any, chunk: int) -> Any:
        return closing_start(self.pipe, stage, number, chunk, TERMS)

    def takes(self, stage: Any, number: Any, chunk: int) -> Any:
        """A backward of a closing round, until it passes on what it makes."""
        among = closing_round(self.pipe, stage, number)
        at_once = 2 * among + 1 - chunk <= stage
        return If(at_once, self.backward, self.pipe.backward_times[0])

    def last(self, stage: Any, number: Any) -> Any:
        return last_start(self.pipe, stage, number)

    # -------------------------------------------------------------------------------- what is shown
    def keeps(self) -> tuple[Theorem, ...]:
        """The timetable keeps the dependencies, and a stage does one thing at a time."""
        return (
            *self._first_forwards(),
            *self._second_forwards(),
            *self._second_backwards(),
            *self._first_backwards(),
            *self._in_turn(),
            *self._ends(),
        )

    def _show(self, name: str, goal: Bool, *given: Bool) -> Theorem:
        return self.k.prove(name, goal, given=given)

    def _first_forwards(self) -> tuple[Theorem, ...]:
        """Forwards of the first chunk follow those of the stage before."""
        p, t, here, after, r = self.p, self.t, self.here, self.after, self.round
        before_last = self.without - 1
        return (
            self._show(
                "warm_up_forwards_follow_the_stage_before",
                And(
                    first_in_warm_up(p, here, r) == first_in_warm_up(p, after, r + 1),
                    self.warm(here, r) + t <= self.warm(after, r + 1),
                ),
                t > 0,
            ),
            self._show(
                "the_first_after_a_warm_up_follows_the_stage_before",
                And(
                    first_in_warm_up(p, here, -1) == forward_of_first(p, after, before_last),
                    self.warm(here, -1) + t <= self.steady(after, before_last),
                ),
                t > 0,
                self.some,
                self.first,
                after <= p - 1,
            ),
            self._show(
                "first_forwards_follow_the_stage_before",
                And(
                    forward_of_first(p, here, r) == forward_of_first(p, after, r),
                    self.steady(here, r) + self.both <= self.steady(after, r),
                ),
            ),
        )

    def _second_forwards(self) -> tuple[Theorem, ...]:
        """Forwards of the second chunk follow the first's on the last stage, then the stage after."""
        p, t, here, after, r = self.p, self.t, self.here, self.after, self.round
        return (
            self._show(
                "on_the_last_stage_second_forwards_follow_first_ones_in_their_round",
                And(
                    first_in_warm_up(p, p - 1, r) == forward_of_second(p - 1, r),
                    forward_of_first(p, p - 1, r) == forward_of_second(p - 1, r),
                ),
            ),
            self._show(
                "second_forwards_are_of_the_round_before_on_the_stage_after",
                forward_of_second(here, r) == forward_of_second(after, r - 1),
            ),
            self._show(
                "warm_up_second_forwards_follow_the_stage_after",
                self.warm(after, r - 1) + 2 * t <= self.warm(here, r) + t,
            ),
            self._show(
                "the_first_second_forward_after_a_warm_up_follows_the_stage_after",
                self.warm(after, -1) + 2 * t <= self.opening(here, 0) + self.backward,
                self.some,
                self.first,
            ),
            self._show(
                "second_forwards_follow_the_stage_after_while_the_first_chunk_waits",
                self.opening(after, r - 1) + self.both <= self.opening(here, r) + self.backward,
                self.some,
            ),
            self._show(
                "second_forwards_follow_the_stage_after",
                self.steady(after, r - 1) + 2 * self.both <= self.steady(here, r) + self.both,
            ),
        )

    def _second_backwards(self) -> tuple[Theorem, ...]:
        """Backwards of the second chunk follow the loss, then those of the stage before."""
        p, t, here, after, r = self.p, self.t, self.here, self.after, self.round
        before_last = self.without - 1
        return (
            self._show(
                "second_backwards_follow_the_loss_of_the_round_before",
                forward_of_second(0, r) == backward_of_second(r + 1),
            ),
            self._show(
                "second_backwards_follow_the_stage_before_while_the_first_chunk_waits",
                self.opening(here, r) + t <= self.opening(after, r),
            ),
            self._show(
                "the_first_that_is_one_work_follows_the_stage_before",
                self.opening(here, before_last) + t <= self.steady(after, before_last),
                t > 0,
                after <= p - 1,
            ),
            self._show(
                "second_backwards_follow_the_stage_before",
                self.steady(here, r) + self.both <= self.steady(after, r),
            ),
            self._show(
                "without_forwards_second_backwards_follow_the_stage_before",
                self.closing(here, r, 1) + self.takes(here, r, 1) <= self.closing(after, r, 1),
                self.some,
            ),
            self._show(
                "closing_rounds_begin_as_steady_ones",
                self.closing(here, self.m - 1 - here, 1) == self.steady(here, self.m - 1 - here),
                self.first,
            ),
        )

    def _first_backwards(self) -> tuple[Theorem, ...]:
        """Backwards of the first chunk follow the second's on the last stage, then the stage after."""
        p, m, t, here, after, r = self.p, self.m, self.t, self.here, self.after, self.round
        return (
            self._show(
                "on_the_last_stage_first_backwards_follow_second_ones_in_their_round",
                backward_of_first(p, p - 1, r) == backward_of_second(r),
            ),
            self._show(
                "first_backwards_are_of_the_round_before_on_the_stage_after",
                backward_of_first(p, here, r) == backward_of_first(p, after, r - 1),
            ),
            self._show(
                "without_forwards_first_backwards_follow_the_stage_after",
                self.closing(after, r - 1, 0) + self.takes(after, r - 1, 0) <= self.closing(here, r, 0),
                t > 0,
                self.some,
            ),
            self._show(
                "the_first_of_the_last_rounds_follows_the_stage_after",
                self.closing(after, m - 1, 0) + t <= self.last(here, m),
                self.first,
            ),
            self._show(
                "in_the_last_rounds_first_backwards_follow_the_stage_after",
                self.last(after, r - 1) + t <= self.last(here, r),
            ),
        )

    def _in_turn(self) -> tuple[Theorem, ...]:
        """A stage's works, one after the other, from round to round."""
        p, m, t, w, here, r = self.p, self.m, self.t, self.w, self.here, self.round
        both, (first, _) = self.both, self.pipe.backward_times
        return (
            self._show(
                "warm_up_rounds_take_turns",
                self.warm(here, r) + t + If(r >= -here - 1, t, 0) <= self.warm(here, r + 1),
                t > 0,
            ),
            self._show(
                "a_warm_up_ends_before_the_rounds_after_it",
                And(
                    self.warm(here, -1) + 2 * t <= self.opening(here, 0),
                    self.warm(p - 1, -1) + 2 * t <= self.steady(p - 1, 0),
                ),
                self.inside,
            ),
            self._show(
                "rounds_in_which_the_first_chunk_waits_take_turns",
                self.opening(here, r) + first + w + t <= self.opening(here, r + 1),
            ),
            self._show(
                "they_end_before_the_first_steady_round",
                self.opening(here, self.without) <= self.steady(here, self.without),
                t > 0,
                here <= p - 1,
            ),
            self._show(
                "steady_rounds_take_turns", self.steady(here, r) + 2 * both <= self.steady(here, r + 1)
            ),
            self._show(
                "in_a_closing_round_the_first_chunk_is_after_the_second",
                self.closing(here, r, 1) + self.takes(here, r, 1) <= self.closing(here, r, 0),
                self.some,
            ),
            self._show(
                "closing_rounds_take_turns",
                self.closing(here, r, 0) + self.takes(here, r, 0) <= self.closing(here, r + 1, 1),
                t > 0,
                self.some,
            ),
            self._show(
                "a_second_part_fits_before_the_first_of_the_last_rounds",
                self.closing(here, m - 1, 0) + first + w <= self.last(here, m),
                self.fits,
                self.first,
            ),
            self._show(
                "a_second_part_fits_between_the_last_rounds",
                self.last(here, r) + first + w <= self.last(here, r + 1),
                self.fits,
            ),
        )

    def _ends(self) -> tuple[Theorem, ...]:
        """All first parts end before the second ones that are left, and those within the span."""
        p, m, here = self.p, self.m, self.here
        ended = all_first_parts_ended(self.pipe, here)
        first, w = self.pipe.backward_times
        return (
            self._show(
                "nothing_starts_before_0",
                self.warm(here, self.round) >= 0,
                self.t > 0,
                self.first,
                first_in_warm_up(p, here, self.round) >= 0,
            ),
            self._show(
                "the_last_first_parts",
                And(
                    self.last(here, m + self.without - 1) + first == ended,
                    self.closing(p - 1, m - 1, 0) + first == all_first_parts_ended(self.pipe, p - 1),
                ),
                p >= 1,
            ),
            self._show(
                "nothing_ends_after_the_span",
                ended + (here + 1) * w <= makespan(self.pipe, TERMS),
                self.fits,
                self.first,
            ),
            self._show(
                "the_first_stage_works_from_0_to_the_end",
                And(
                    self.warm(0, 1 - 2 * p) == 0,
                    all_first_parts_ended(self.pipe, 0) + w == makespan(self.pipe, TERMS),
                ),
                p >= 1,
            ),
        )

    def rule(self) -> tuple[Theorem, ...]:
        """That there are steady rounds, and second parts follow or wait where they are taken to."""
        p, m, here, chunk = self.p, self.m, self.here, self.k.reals("chunk")
        backwards = self.k.reals("backwards")
        # a backward of a closing round, by its number: the stages after have each one more after these
        closing = 2 * m - self.without - 2 * (here + 1) + 2 * self.is_closing + 2 - chunk
        done = weights_done(self.pipe, here, backwards, TERMS)
        return (
            self._show(
                "every_stage_has_a_round_of_four_works",
                self.without < m - p,
                self.enough,
                self.first,
            ),
            self._show(
                "second_parts_follow_at_once_until_the_last_p_backwards",
                (done >= backwards) == (backwards <= 2 * m - p),
                here > 0,
            ),
            self._show(
                "of_closing_rounds_half_of_the_backwards",
                (closing <= 2 * m - p) == (2 * self.is_closing + 1 - chunk <= here),
            ),
            self._show(
                "in_the_last_rounds_one_second_part_before_each_first",
                weights_done(self.pipe, here, 2 * m - self.without + backwards, TERMS)
                == 2 * m - self.without + backwards - here,
                backwards >= 0,
            ),
        )
