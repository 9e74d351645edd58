"""B6, B7: how long pipelines idle whose backwards are in two parts: ZB-H1 and ZB-H2.

Start times in closed form keep every dependency and every stage's order, and end after the span; and no
start times that keep the order end before it. So the order, done as soon as it can be, takes the span.
"""

from __future__ import annotations

from proofs.claim import claim
from proofs.pipelines.pipeline import TERMS
from proofs.pipelines.pipeline_limits import INT, REAL
from proofs.pipelines.zero_bubble_limits import no_order_in_two_parts_idles_less
from proofs.pipelines.zero_bubble_timetable import Timetable
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, Implies
from spec.pipelines.idle_and_held import (
    bubble,
    bubble_of_ideal,
    bubble_of_makespan,
    bubble_repeated,
    ideal,
    makespan,
    repeated_of_ideal,
)
from spec.pipelines.pipeline import (
    STRETCH,
    Order,
    Pipeline,
    delay,
    least_micro_batches,
    warm_up,
    weights_done,
)


class AnyTimes:
    """Any start times that keep the dependencies, and in which each stage keeps its order.

    Stages and units are whole numbers, times any real ones.
    """

    def __init__(self, k: Kernel, kind: Order) -> None:
        self.k = k
        self.stage, self.unit = here = k.integers("stage unit")
        self.p, self.m = k.fixed("p", INT), k.fixed("m", INT)
        self.f, self.b, self.w, self.end = (k.fixed(name, REAL) for name in ("f", "b", "w", "end"))
        self.pipe = Pipeline(kind, self.p, self.m, 1, self.f, self.b + self.w, of_weights=self.w)
        self.forward, self.backward = (
            k.function(name, INT, INT, REAL) for name in ("forward", "backward")
        )
        positive = [self.f > 0, *([self.b > 0] if kind is Order.ZB_H2 else [])]
        enough = self.m >= least_micro_batches(self.pipe)
        self.sizes = k.suppose("sizes", [], And(self.p >= 1, enough, *positive))
        between = And(self.stage >= 0, self.stage < self.p - 1)
        self.first = k.suppose("nothing_before_0", [self.unit], self.forward(0, self.unit) >= 0)
        self.follows = k.suppose(
            "forwards_follow",
            here,
            Implies(
                between,
                self.forward(*here) + self.f <= self.forward(self.stage + 1, self.unit),
            ),
        )
        self.returns = k.suppose(
            "first_parts_return",
            here,
            Implies(
                between,
                self.backward(self.stage + 1, self.unit) + self.b <= self.backward(*here),
            ),
        )
        self.order = self._order()

    def _order(self) -> tuple[Theorem, ...]:
        """After its warm-up a stage runs a forward, a first part, and the second parts of its rule."""
        k, here, last = self.k, (self.stage, self.unit), self.m - 1
        some = And(self.stage >= 0, self.stage <= self.p - 1, self.unit >= 0)
        warm = warm_up(self.pipe, self.stage)
        done = weights_done(self.pipe, self.stage, self.unit, TERMS)
        then = weights_done(self.pipe, self.stage, self.unit + 1, TERMS)
        ended = self.backward(*here) + self.b + (then - done) * self.w
        follows, goes_on = (self.stage, self.unit + 1), self.forward(self.stage, warm + self.unit + 1)
        paired = self.forward(self.stage, warm + self.unit)
        return (
            k.suppose(
                "a_backward_after_its_forward",
                here,
                Implies(And(some, warm + self.unit <= last), paired + self.f <= self.backward(*here)),
            ),
            k.suppose(
                "a_forward_after_the_backward_before",
                here,
                Implies(And(some, warm + self.unit < last), ended <= goes_on),
            ),
            k.suppose(
                "a_backward_after_the_backward_before",
                here,
                Implies(And(some, self.unit < last), ended <= self.backward(*follows)),
            ),
            k.suppose(
                "all_second_parts_in_the_end",
                here,
                Implies(
                    And(some, self.unit == last),
                    self.backward(*here) + self.b + (self.m - done) * self.w <= self.end,
                ),
            ),
        )

    def bounds(self) -> tuple[Theorem, ...]:
        """The end is no earlier than the span says; stage 0's no earlier than in repeated steps."""
        k, p, m, f, b, w = self.k, self.p, self.m, self.f, self.b, self.w
        stage, unit, last = self.stage, self.unit, self.p - 1
        forwards_follow, goes_on, backwards_follow, ends = self.order
        arrives = k.induct(
            "forwards_arrive_one_by_one",
            stage,
            self.forward(stage, unit) >= stage * f,
            given=[stage <= last],
            base=[self.first],
            step=[self.follows],
        )
        at_last = {"stage": last}
        done = weights_done(self.pipe, last, unit, TERMS)
        filled = k.induct(
            "the_last_stage_never_pauses",
            unit,
            self.backward(last, unit) >= p * f + unit * (f + b) + done * w,
            given=[unit < m],
            base=[arrives.at(**at_last, unit=0), forwards_follow.at(**at_last, unit=0), self.sizes],
            step=[
                goes_on.at(**at_last),
                forwards_follow.at(**at_last, unit=unit + 1),
                self.sizes,
            ],
        )
        leaves = k.induct(
            "first_parts_leave_one_by_one",
            stage,
            self.backward(last - stage, unit) >= self.backward(last, unit) + stage * b,
            given=[stage <= last],
            base=[],
            step=[self.returns.at(stage=last - stage - 1)],
        )
        comes_back = leaves.at(stage=last)
        paired, begins = m - 1 - warm_up(self.pipe, 0), self.backward(0, 0)
        steady = k.induct(
            "the_first_stage_does_its_work",
            unit,
            self.backward(0, unit) >= begins + unit * (f + b + w),
            given=[unit <= paired],
            base=[],
            step=[
                goes_on.at(stage=0),
                forwards_follow.at(stage=0, unit=unit + 1),
                self.sizes,
            ],
        )
        drains = k.induct(
            "the_first_stage_does_the_rest",
            unit,
            self.backward(0, paired + unit) >= begins + paired * (f + b + w) + unit * (b + w),
            given=[paired + unit < m],
            base=[steady.at(unit=paired), self.sizes],
            step=[backwards_follow.at(stage=0, unit=paired + unit), self.sizes],
        )
        works = ideal(self.pipe)
        of_last = k.prove(
            "the_last_stage_ends_so_late",
            self.end >= works + (p - 1) * f,
            uses=[filled.at(unit=m - 1), ends.at(**at_last, unit=m - 1), self.sizes],
        )
        of_work = k.prove(
            "the_first_stage_waits_for_its_first_cotangent",
            self.end >= p * f + (p - 1) * b + works - (warm_up(self.pipe, 0) + 1) * f,
            uses=[
                comes_back.at(unit=0),
                filled.at(unit=0),
                drains.at(unit=m - 1 - paired),
                ends.at(stage=0, unit=m - 1),
                self.sizes,
            ],
        )
        of_wait = k.prove(
            "the_first_stage_waits_for_its_last_cotangent",
            self.end >= works + (p - 1) * (f + b) - delay(self.pipe, p - 1) * w,
            uses=[
                comes_back.at(unit=m - 1),
                filled.at(unit=m - 1),
                ends.at(stage=0, unit=m - 1),
                self.sizes,
            ],
        )
        every = [of_last, of_work, of_wait, self.sizes]
        return (
            k.prove("no_start_times_end_earlier", self.end >= makespan(self.pipe, TERMS), uses=every),
            k.prove(
                "the_first_stage_idles_so_long",
                self.end >= works + bubble_repeated(self.pipe, TERMS),
                uses=every,
            ),
        )


def _lengths(t: Timetable) -> tuple[Theorem, ...]:
    """Where idle times are as published, where they are the least, and in equal times."""
    k, p, m, f, b, w = t.k, t.p, t.m, t.f, t.b, t.w
    ahead, kind = STRETCH[t.pipe.order], t.pipe.order
    several = p > 1
    long = w <= f if kind is Order.ZB_H1 else And(w <= f, 2 * w <= f + b)
    equal = Pipeline(kind, p, m)
    third = (p - 1) / (3 * m)
    return (
        k.prove(
            "idles_as_published_where_weights_are_short",
            (bubble_repeated(t.pipe, TERMS) == (p - 1) * (f + b - ahead * w)) == long,
            given=[several, *([b > 0] if kind is Order.ZB_H1 else [])],
        ),
        k.prove(
            "idles_least_where_first_parts_are_short",
            (bubble(t.pipe, TERMS) == (p - 1) * f) == And(b <= ahead * f, b <= ahead * w),
            given=[several, f > 0],
        ),
        k.prove(
            "idles_a_third_in_equal_times",
            And(
                bubble_of_ideal(equal) == third,
                bubble_of_makespan(equal) == (p - 1) / (3 * m + p - 1),
                repeated_of_ideal(equal) == (third if kind is Order.ZB_H1 else 0),
            ),
            given=[m >= 1, p >= 1],
        ),
    )


def _idles(k: Kernel, kind: Order) -> tuple[Theorem, ...]:
    t = Timetable(k.part("timetable"), kind)
    return *t.keeps(), *t.rule(), *_lengths(t), *AnyTimes(k.part("any_times"), kind).bounds()


@claim("B6")
def zb_h1_idles(k: Kernel) -> tuple[Theorem, ...]:
    """ZB-H1 idles (p - 1) max(f, b, f + b - w); in steps without a flush (p - 1) max(b, f + b - w).

    That is (p - 1)(f + b - w) where w <= f, as published. (Claim B6; 2401.10241 section 2.3)
    """
    return _idles(k, Order.ZB_H1)


@claim("B7")
def zb_h2_idles(k: Kernel) -> tuple[Theorem, ...]:
    """ZB-H2 idles (p - 1) max(f, b - f, f + b - 2w); in steps without a flush it may idle nothing.

    And no order of forwards and of backwards in two parts idles less than p - 1 forwards.
    (Claim B7; 2401.10241 section 2.3)
    """
    return *_idles(k, Order.ZB_H2), *no_order_in_two_parts_idles_less(k.part("any_order"))
