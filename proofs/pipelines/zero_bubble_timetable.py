"""Start times in closed form of pipelines whose backwards are in two parts, for all sizes and times."""

from __future__ import annotations

from typing import Any

from proofs.pipelines.pipeline import TERMS
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, Not
from spec.pipelines.pipeline import (
    Order,
    Pipeline,
    bubble_repeated,
    delay,
    ideal,
    least_micro_batches,
    runs_forward,
    span,
    warm_up,
    warm_up_start,
    weights_done,
)
from spec.pipelines.zero_bubble import first_part_start, paired_forward_start, second_part_start


class Timetable:
    """The closed start times of one schedule, at any of its stages and units: any real numbers."""

    def __init__(self, k: Kernel, kind: Order) -> None:
        self.k = k
        self.p, self.m, self.f, self.b, self.w = k.reals("p m f b w")
        self.pipe = Pipeline(kind, self.p, self.m, 1, self.f, self.b + self.w, weights=self.w)
        # a stage, one of its units, and a `later` one
        self.stage, self.unit, self.later = k.reals("stage unit later")
        self.here = And(self.stage >= 0, self.stage <= self.p - 1)
        self.enough = self.m >= least_micro_batches(self.pipe)
        self.is_longer = kind is Order.ZB_H2  # its warm-up

    def warm(self, stage: Any, unit: Any) -> Any:
        return warm_up_start(self.pipe, stage, unit)

    def forward(self, stage: Any, unit: Any) -> Any:
        return paired_forward_start(self.pipe, stage, unit, TERMS)

    def backward(self, stage: Any, unit: Any) -> Any:
        return first_part_start(self.pipe, stage, unit, TERMS)

    def weights(self, stage: Any, unit: Any) -> Any:
        return second_part_start(self.pipe, stage, unit, TERMS)

    def keeps(self) -> tuple[Theorem, ...]:
        """The timetable keeps the dependencies, and a stage does one thing at a time."""
        return *self._follows(), *self._in_turn(), *self._ends()

    def _follows(self) -> tuple[Theorem, ...]:
        """Works follow those of other stages that they need."""
        k, stage, unit, f, b = self.k, self.stage, self.unit, self.f, self.b
        warm, behind = warm_up(self.pipe, stage), warm_up(self.pipe, stage + 1)
        before_last = And(stage >= 0, stage + 1 <= self.p - 1)
        return (
            k.prove(
                "warm_up_forwards_follow_the_stage_before",
                self.warm(stage, unit) + f <= self.warm(stage + 1, unit),
            ),
            k.prove(
                "forwards_after_a_warm_up_follow_those_in_one",
                self.warm(stage, unit) + f <= self.forward(stage + 1, unit),
                given=[
                    *(b > 0, before_last, unit <= warm, unit >= behind + 1),
                    *([self.enough] if self.is_longer else []),
                ],
            ),
            k.prove(
                "forwards_follow_the_stage_before",
                self.forward(stage, unit) + f <= self.forward(stage + 1, unit),
                given=[b > 0, *([f > 0] if self.is_longer else [])],
            ),
            k.prove(
                "first_parts_follow_the_stage_after",
                self.backward(stage + 1, unit) + b <= self.backward(stage, unit),
                given=[self.w > 0],
            ),
            k.prove(
                "first_parts_follow_the_loss",
                self.warm(self.p - 1, 0) + f <= self.backward(self.p - 1, 0),
                given=[self.p >= 1, self.enough],
            ),
        )

    def _in_turn(self) -> tuple[Theorem, ...]:
        """A stage's works, one after the other: those of its rule before a work have ended."""
        k, stage, unit, later, f, b, w = (
            *(self.k, self.stage, self.unit, self.later),
            *(self.f, self.b, self.w),
        )
        warm, wait, last = warm_up(self.pipe, stage), delay(self.pipe, stage), self.m - 1
        times, next_ones = And(f > 0, b > 0, w > 0), later >= unit + 1
        after_wait, has_forward = later >= unit + wait + 1, warm + later <= last
        inside, more = And(unit >= 0, later <= last), k.reals("more")
        return (
            k.prove(
                "warm_up_forwards_take_turns",
                self.warm(stage, unit) + f <= self.warm(stage, later),
                given=[f > 0, next_ones],
            ),
            k.prove(
                "a_warm_up_ends_before_the_first_backward",
                self.warm(stage, warm) + f <= self.backward(stage, 0),
                given=[self.here, self.enough],
            ),
            k.prove(
                "a_backward_follows_its_forward",
                self.forward(stage, warm + unit) + f <= self.backward(stage, unit),
            ),
            k.prove(
                "first_parts_take_turns",
                self.backward(stage, unit) + b <= self.backward(stage, later),
                given=[times, next_ones],
            ),
            k.prove(
                "forwards_follow_the_first_parts_before",
                self.backward(stage, unit) + b <= self.forward(stage, warm + later),
                given=[times, next_ones, *([has_forward] if self.is_longer else [])],
            ),
            k.prove(
                "second_parts_follow_the_first_parts_before",
                self.backward(stage, unit) + b <= self.weights(stage, later),
                given=[times, unit <= last, unit <= later + wait],
            ),
            k.prove(
                "second_parts_take_turns",
                self.weights(stage, unit) + w <= self.weights(stage, unit + 1 + more),
                given=[times, unit >= 0, more >= 0],
            ),
            k.prove(
                "forwards_follow_the_second_parts_before",
                self.weights(stage, unit) + w <= self.forward(stage, warm + later),
                given=[times, inside, after_wait, has_forward],
            ),
            k.prove(
                "first_parts_follow_the_second_parts_before",
                self.weights(stage, unit) + w <= self.backward(stage, later),
                given=[times, inside, after_wait],
            ),
        )

    def _ends(self) -> tuple[Theorem, ...]:
        k, stage = self.k, self.stage
        ends = self.weights(stage, self.m - 1) + self.w
        own = ends - self.warm(stage, 0)
        return (
            k.prove(
                "nothing_starts_before_0",
                self.warm(stage, self.unit) >= 0,
                given=[self.f > 0, stage >= 0, self.unit >= 0],
            ),
            k.prove(
                "nothing_ends_after_the_span",
                ends <= span(self.pipe, TERMS),
                given=[self.here, self.enough],
            ),
            k.prove(
                "from_its_first_start_no_stage_idles_longer",
                own <= ideal(self.pipe) + bubble_repeated(self.pipe, TERMS),
                given=[self.here, self.enough],
            ),
        )

    def rule(self) -> tuple[Theorem, ...]:
        """That the order's rule runs before a work what the timetable takes to be before it."""
        k, stage, unit, later = self.k, self.stage, self.unit, self.later
        forwards, backwards = k.reals("forwards backwards")
        runs = And(*runs_forward(self.pipe, stage, forwards, later))
        _, in_turn = runs_forward(self.pipe, stage, unit, backwards)
        warm, wait = warm_up(self.pipe, stage), delay(self.pipe, stage)
        done = weights_done(self.pipe, stage, backwards, TERMS)
        return (
            k.prove(
                "before_a_backward_these_forwards_are_done",
                unit < forwards,
                given=[Not(runs), unit < self.m, unit <= warm + later],
            ),
            k.prove(
                "before_a_forward_these_backwards_are_done",
                later < backwards,
                given=[in_turn, unit >= warm + later + 1],
            ),
            k.prove(
                "after_backwards_these_second_parts_are_done",
                (unit < done) == (unit + wait < backwards),
                given=[unit >= 0],
            ),
        )
