"""Start times in closed form of pipelines whose backwards are in two parts, for all sizes and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from operator import eq
from typing import Any

from proofs.pipelines.pipeline import TERMS
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import name_of, substitute
from proofs.trusted.terms import And, Not, RealVal
from spec.pipelines.idle_and_held import bubble_repeated, ideal, makespan, warm_up_start
from spec.pipelines.pipeline import (
    STRETCH,
    Order,
    Pipeline,
    delay,
    least_micro_batches,
    runs_forward,
    warm_up,
    weights_done,
)
from spec.pipelines.zero_bubble import (
    after_the_last,
    behind,
    between_backwards,
    first_part_start,
    followed,
    paired_forward_start,
    second_part_start,
    unpaired,
)


class Timetable:
    """The closed start times of one schedule, at any of its stages and units: any real numbers."""

    def __init__(self, k: Kernel, kind: Order) -> None:
        self.k = k
        self.p, self.m, self.f, self.b, self.w = k.reals("p m f b w")
        self.pipe = Pipeline(kind, self.p, self.m, 1, self.f, self.b + self.w, of_weights=self.w)
        # a stage, one of its units, and a `later` one
        self.stage, self.unit, self.later, self.more = k.reals("stage unit later more")
        self.x, self.y, self.z = k.reals("x y z")
        self.here = And(self.stage >= 0, self.stage <= self.p - 1)
        self.enough = self.m >= least_micro_batches(self.pipe)
        self.is_longer = kind is Order.ZB_H2  # its warm-up
        self.ahead = STRETCH[kind]
        # the time between last backwards, and by how much later the first is on the stage before
        self.paused = between_backwards(self.pipe, TERMS)
        self.behind = behind(self.pipe, TERMS)

    def warm(self, stage: Any, unit: Any) -> Any:
        return warm_up_start(self.pipe, stage, unit)

    def forward(self, stage: Any, unit: Any) -> Any:
        return paired_forward_start(self.pipe, stage, unit, TERMS)

    def backward(self, stage: Any, unit: Any) -> Any:
        return first_part_start(self.pipe, stage, unit, TERMS)

    def weights(self, stage: Any, unit: Any) -> Any:
        return second_part_start(self.pipe, stage, unit, TERMS)

    def alone(self, stage: Any, unit: Any) -> Any:
        """Backwards up to this one that follow no forward."""
        return unpaired(self.pipe, stage, unit, TERMS)

    def waited(self, stage: Any, unit: Any) -> Any:
        """Those that follow a forward, and which a second part follows before the next."""
        return followed(self.pipe, stage, unit, TERMS)

    def keeps(self) -> tuple[Theorem, ...]:
        """The timetable keeps the dependencies, and a stage does one thing at a time."""
        return *self._follows(), *self._in_turn(), *self._second_parts(), *self._ends()

    @cached_property
    def positive(self) -> Theorem:
        x, y = self.x, self.y
        return self.k.prove("what_is_not_negative_multiplies", x * y >= 0, [x >= 0, y >= 0])

    @cached_property
    def grows(self) -> Theorem:
        """First parts leave time for those between."""
        k, stage, unit, more = self.k, self.stage, self.unit, self.more
        alone = self.alone(stage, unit + more) - self.alone(stage, unit)
        waited = self.waited(stage, unit + more) - self.waited(stage, unit)
        return k.prove(
            "first_parts_leave_time_for_first_parts",
            self._later(self.b),
            [self.f > 0, self.w > 0, more >= 0],
            [
                self.positive.at(x=more - alone, y=self.f),
                self.positive.at(x=alone, y=self.paused),
                self.positive.at(x=waited, y=self.w),
            ],
        )

    def _later(self, each: Any) -> Bool:
        """Backward number unit + more starts so much later than number `unit`, for each between."""
        following = self.backward(self.stage, self.unit + self.more)
        return self.backward(self.stage, self.unit) + self.more * each <= following

    @cached_property
    def multiply_alike(self) -> Theorem:
        x, y, z = self.x, self.y, self.z
        return self.k.prove("equal_numbers_multiply_alike", x * z == y * z, [x == y])

    @cached_property
    def grows_more(self) -> Theorem:
        """From the delay on, for a second part each: all that follow a forward have waited."""
        k, stage, unit, more, f, w = self.k, self.stage, self.unit, self.more, self.f, self.w
        alone, next_alone = (self.alone(stage, u) for u in (unit, unit + more))
        waited, next_waited = (self.waited(stage, u) for u in (unit, unit + more))
        given = [unit >= delay(self.pipe, stage), more >= 0]
        paired = more - (next_alone - alone)
        alike = k.prove("from_the_delay_on_as_many_second_parts", next_waited - waited == paired, given)
        return k.prove(
            "from_the_delay_on_they_leave_time_for_both_parts",
            self._later(self.b + w),
            [f > 0, *given],
            [
                self.multiply_alike.at(x=next_waited - waited, y=paired, z=w),
                alike,
                self.positive.at(x=paired, y=f),
                self.positive.at(x=next_alone - alone, y=self.paused - w),
            ],
        )

    def _follows(self) -> tuple[Theorem, ...]:
        """Works follow those of other stages that they need."""
        k, stage, unit, f, b = self.k, self.stage, self.unit, self.f, self.b
        warm, next_warm = warm_up(self.pipe, stage), warm_up(self.pipe, stage + 1)
        before_last = And(stage >= 0, stage + 1 <= self.p - 1)
        alone, alone_behind = (self.alone(x, unit) for x in (stage, stage + 1))
        waited, waited_behind = (self.waited(x, unit) for x in (stage, stage + 1))
        ahead, paused, longer = self.ahead, self.paused, self.behind
        return (
            k.prove(
                "warm_up_forwards_follow_the_stage_before",
                self.warm(stage, unit) + f <= self.warm(stage + 1, unit),
            ),
            k.prove(
                "forwards_after_a_warm_up_follow_those_in_one",
                self.warm(stage, unit) + f <= self.forward(stage + 1, unit),
                given=[
                    *(b > 0, before_last, unit <= warm, unit >= next_warm + 1),
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
                uses=[
                    self.positive.at(x=waited - waited_behind, y=self.w),
                    self.positive.at(x=alone - alone_behind, y=paused - f + (longer - b) / ahead),
                    self.positive.at(x=ahead - alone + alone_behind, y=longer - b),
                ],
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
        inside = And(unit >= 0, later <= last)
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
                uses=[
                    self.grows.at(more=later - unit),
                    self.positive.at(x=later - unit - 1, y=b),
                ],
            ),
            k.prove(
                "forwards_follow_the_first_parts_before",
                self.backward(stage, unit) + b <= self.forward(stage, warm + later),
                given=[times, next_ones, *([has_forward] if self.is_longer else [])],
            ),
            k.prove(
                "forwards_follow_the_second_parts_before",
                self.weights(stage, unit) + w <= self.forward(stage, warm + later),
                given=[times, inside, after_wait, has_forward],
            ),
        )

    def _second_parts(self) -> tuple[Theorem, ...]:
        """A stage does second parts one after the other, when the first parts before have ended."""
        k, stage, unit, later, b, w = self.k, self.stage, self.unit, self.later, self.b, self.w
        wait, last, more = delay(self.pipe, stage), self.m - 1, self.more
        times, next_one = And(self.f > 0, b > 0, w > 0), unit + 1 + more
        # first parts that second parts follow, and how many more there would have to be
        beyond = after_the_last(self.pipe, stage, unit, TERMS)
        met, met_next, met_later = (
            each + wait - after_the_last(self.pipe, stage, each, TERMS)
            for each in (unit, next_one, later)
        )
        return (
            k.prove(
                "second_parts_follow_the_first_parts_before",
                self.backward(stage, unit) + b <= self.weights(stage, later),
                given=[times, unit <= last, unit <= later + wait],
                uses=[
                    self.grows.at(more=met_later - unit),
                    self.positive.at(x=met_later - unit, y=b),
                    self.positive.at(x=later + wait - met_later, y=w),
                ],
            ),
            k.prove(
                "second_parts_take_turns",
                self.weights(stage, unit) + w <= self.weights(stage, next_one),
                given=[times, unit >= 0, more >= 0],
                uses=[
                    self.grows_more.at(unit=met, more=met_next - met),
                    self.positive.at(x=met_next - met, y=b),
                    self.positive.at(x=more, y=w),
                ],
            ),
            k.prove(
                "first_parts_follow_the_second_parts_before",
                self.weights(stage, unit) + w <= self.backward(stage, later),
                given=[times, unit >= 0, later <= last, later >= unit + wait + 1],
                uses=[
                    self.grows_more.at(unit=met, more=later - met),
                    self.positive.at(x=later - met - 1, y=b + w),
                    self.positive.at(x=-beyond, y=w),
                ],
            ),
        )

    def _ends(self) -> tuple[Theorem, ...]:
        """Each stage idles as many times the idle time of two as stages come after it."""
        k, stage, p, f, b, w = self.k, self.stage, self.p, self.f, self.b, self.w
        here = [self.here, self.enough]
        ends = self.weights(stage, self.m - 1) + w
        own, after = ends - self.warm(stage, 0), p - 1 - stage
        of_two = bubble_repeated(replace(self.pipe, stages=2), TERMS)
        ahead, paused, alike = self.ahead, self.paused, self.multiply_alike
        warm, wait, last = warm_up(self.pipe, stage), delay(self.pipe, stage), self.m - 1
        beyond = after_the_last(self.pipe, stage, last, TERMS)
        alone, waited = (of(stage, last + wait - beyond) for of in (self.alone, self.waited))
        idle = f + self.behind - ahead * (f + w - paused)
        numbers = [
            k.prove("as_many_second_parts_as_the_delay_are_left", beyond == wait, [stage >= 0]),
            k.prove("as_many_first_parts_as_a_warm_up_follow_no_forward", alone == warm, [self.here]),
            k.prove("others_wait_for_second_parts", waited == last - warm - wait, here),
            k.prove("what_a_stage_idles_for_each_after_it", idle == of_two),
        ]
        times, takes = (w - f - b, paused - f, w, after), ideal(self.pipe) + after * of_two
        cases = beyond, alone, waited, self.behind, paused, of_two
        idles = k.prove(
            "from_its_first_start_a_stage_idles_for_those_after_it",
            own == takes,
            given=here,
            uses=[*self._differ_by_products(own, takes, numbers, times, cases), *numbers],
        )
        multiple = k.prove(
            "the_first_stage_idles_for_all_after_it",
            bubble_repeated(self.pipe, TERMS) == (p - 1) * of_two,
            given=[p >= 1],
            uses=[
                fact
                for one in (RealVal(0), b - (ahead - 1) * f, f + b - ahead * w)
                for fact in (
                    self.positive.at(x=p - 1, y=of_two - one),
                    alike.at(x=of_two, y=one, z=p - 1),
                )
            ],
        )
        return (
            k.prove(
                "nothing_starts_before_0",
                self.warm(stage, self.unit) >= 0,
                given=[f > 0, stage >= 0, self.unit >= 0],
            ),
            idles,
            multiple,
            k.prove(
                "nothing_ends_after_the_span",
                ends <= makespan(self.pipe, TERMS),
                given=here,
                uses=[
                    idles,
                    multiple,
                    self.positive.at(x=stage, y=of_two - f),
                    self.positive.at(x=after, y=f - of_two),
                ],
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

    def _differ_by_products(
        self,
        own: Any,
        takes: Any,
        numbers: Sequence[Theorem],
        times: Sequence[Any],
        cases: Sequence[Any],
    ) -> list[Theorem]:
        """Two times are equal if they differ by equal numbers times these times alone.

        That they do is shown of any numbers in place of those that are given by cases.
        """
        k, alike = self.k, self.multiply_alike
        products = [
            alike.at(x=x, y=y, z=time)
            for (x, y), time in zip((n.goal.args for n in numbers), times, strict=True)
        ]
        sides = [side for product in products for side in product.goal.args]
        any_cases = k.reals(" ".join(f"case_{i}" for i in range(len(cases))))
        differ = k.prove(
            "what_a_stage_takes_is_more_by_products",
            substitute(own - takes == _apart(sides), *zip(cases, any_cases, strict=True)),
        )
        x, y, *any_sides = k.reals(" ".join(f"time_{i}" for i in range(2 + len(sides))))
        equal = k.prove(
            "what_is_more_by_differences_of_equal_times_is_equal",
            x == y,
            [x - y == _apart(any_sides), *map(eq, any_sides[::2], any_sides[1::2])],
        )
        of_cases, of_sides = (
            {name_of(any_): term for any_, term in zip(named, terms, strict=True)}
            for named, terms in ((any_cases, cases), ((x, y, *any_sides), (own, takes, *sides)))
        )
        return [equal.at(**of_sides), differ.at(**of_cases), *products]


def _apart(sides: Sequence[Any]) -> Any:
    """By how much sides are apart: each from the next, added up."""
    return sum(one - other for one, other in zip(sides[::2], sides[1::2], strict=True))
