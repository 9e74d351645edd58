"""B9, B10: how long DualPipeV idles, and what its stages hold, for all sizes.

Start times in closed form keep every dependency and every stage's order, and end with the span; and no
start times that keep the order end before it.
"""

from __future__ import annotations

from typing import Any

from proofs.claim import claim
from proofs.pipelines.dual_pipe_timetable import Timetable
from proofs.pipelines.pipeline import TERMS
from proofs.pipelines.pipeline_limits import INT, REAL
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, If, Implies, Or
from spec.pipelines.dual_pipe import (
    backward_of_first,
    backward_of_second,
    first_in_warm_up,
    forward_of_first,
    forward_of_second,
    rounds_before,
    rounds_without,
)
from spec.pipelines.idle_and_held import (
    boundaries,
    bubble,
    bubble_of_ideal,
    bubble_of_makespan,
    bubble_repeated,
    ideal,
    in_flight,
    makespan,
)
from spec.pipelines.pipeline import (
    Order,
    Pipeline,
    delay,
    least_micro_batches,
    virtual_stage,
    weights_done,
)


class AnyTimes:
    """Any start times that keep the dependencies and the order of the first and the last stage.

    `together`: by stage, of the first chunk's backward of a micro-batch, one work with a forward of the
    second. Stages and micro-batches are whole numbers, times any real ones.
    """

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.stage, self.unit, self.x = k.integers("stage unit x")
        self.p, self.m = k.fixed("p", INT), k.fixed("m", INT)
        self.t, self.w, self.end = (k.fixed(name, REAL) for name in ("t", "w", "end"))
        self.pipe = Pipeline(
            Order.DUALPIPE_V, self.p, self.m, 2, self.t, self.t + self.w, of_weights=self.w
        )
        self.both = self.pipe.forward + self.pipe.backward
        enough = self.m >= least_micro_batches(self.pipe)
        self.sizes = k.suppose("sizes", [], And(self.p >= 1, enough))
        # the last micro-batch whose backward through a first chunk is one work with a forward
        self.last = self.m - self.p - 1

    def bounds(self) -> tuple[Theorem, ...]:
        """The end is no earlier than the span says, nor stage 0's own."""
        k, p, t, w, both = self.k, self.p, self.t, self.w, self.both
        stage, unit, x = self.stage, self.unit, self.x
        first = k.function("first_forward_of_all", INT, REAL)
        between = And(stage >= 0, stage < p - 1)
        arrives = k.induct(
            "forwards_arrive_one_by_one",
            stage,
            first(stage) >= stage * t,
            given=[stage <= p - 1],
            base=[k.suppose("nothing_before_0", [], first(0) >= 0)],
            step=[
                k.suppose(
                    "forwards_follow", [stage], Implies(between, first(stage) + t <= first(stage + 1))
                )
            ],
        )
        # the last stage: its warm-up, and in each round a forward and a backward, twice
        warm = k.function("warm_up", INT, REAL)
        turn, together = k.function("turn", INT, REAL), k.function("together", INT, INT, REAL)
        works = rounds_before(p, p - 1) + p  # each chunk's forwards of the rounds before 0
        warms = k.induct(
            "the_last_stage_warms_up",
            x,
            warm(x) >= (p - 1 + x) * t,
            given=[x < works],
            base=[
                arrives.at(stage=p - 1),
                k.suppose("its_first_work", [], warm(0) >= first(p - 1)),
            ],
            step=[
                k.suppose(
                    "one_after_the_other",
                    [x],
                    Implies(And(x >= 0, x + 1 < works), warm(x) + t <= warm(x + 1)),
                )
            ],
        )
        steady = And(unit >= 0, unit <= self.last)
        within = k.suppose(
            "in_a_round_one_after_the_other",
            [unit],
            Implies(steady, turn(unit) + both <= together(p - 1, unit)),
        )
        rounds = k.induct(
            "the_last_stage_never_pauses",
            unit,
            turn(unit) >= (p - 1 + works) * t + unit * (2 * both),
            given=[unit <= self.last],
            base=[
                warms.at(x=works - 1),
                k.suppose("a_round_after_the_warm_up", [], warm(works - 1) + t <= turn(0)),
                self.sizes,
            ],
            step=[
                within,
                k.suppose(
                    "a_round_after_the_one_before",
                    [unit],
                    Implies(
                        And(unit >= 0, unit < self.last), together(p - 1, unit) + both <= turn(unit + 1)
                    ),
                ),
            ],
        )
        back = k.suppose(
            "together_backwards_return",
            [stage],
            Implies(between, together(stage + 1, self.last) + both <= together(stage, self.last)),
        )
        returns = k.induct(
            "together_they_leave_one_by_one",
            stage,
            together(p - 1 - stage, self.last) >= together(p - 1, self.last) + stage * both,
            given=[stage <= p - 1],
            base=[],
            step=[back.at(stage=p - 2 - stage)],
        )
        # the last micro-batch: through the second chunks, each but stage 0's in a first part alone
        passed, left = k.function("passed", INT, REAL), k.function("left", INT, REAL)
        down = k.induct(
            "the_last_goes_back_through_the_second_chunks",
            stage,
            passed(stage) >= together(0, self.last) + both + t + w + stage * t,
            given=[stage <= p - 1],
            base=[
                k.suppose(
                    "on_stage_0_after_them_with_its_second_part",
                    [],
                    passed(0) >= together(0, self.last) + both + self.pipe.backward,
                )
            ],
            step=[
                k.suppose(
                    "second_backwards_follow",
                    [stage],
                    Implies(between, passed(stage) + t <= passed(stage + 1)),
                )
            ],
        )
        up = k.induct(
            "and_through_the_first_chunks",
            stage,
            left(p - 1 - stage) >= passed(p - 1) + (stage + 1) * t,
            given=[stage <= p - 1],
            base=[k.suppose("where_it_turns", [], left(p - 1) >= passed(p - 1) + t)],
            step=[
                k.suppose(
                    "first_backwards_return",
                    [stage],
                    Implies(between, left(stage + 1) + t <= left(stage)),
                ).at(stage=p - 2 - stage),
            ],
        )
        ends = k.suppose("the_second_part_in_the_end", [], left(0) + w <= self.end)
        every = [
            rounds.at(unit=self.last),
            within.at(unit=self.last),
            returns.at(stage=p - 1),
            down.at(stage=p - 1),
            up.at(stage=p - 1),
            ends,
            self.sizes,
        ]
        return (
            k.prove("no_start_times_end_earlier", self.end >= makespan(self.pipe, TERMS), uses=every),
        )


def _lengths(k: Kernel) -> tuple[Theorem, ...]:
    """The idle time as published, in the times of whole stages, and in equal times."""
    p, m, f, w = k.reals("p m f w")
    pipe = Pipeline(Order.DUALPIPE_V, p, m, 2, f, f + w, of_weights=w)
    chunks, full = pipe.virtual_stages, f + w
    equal = Pipeline(Order.DUALPIPE_V, p, m, 2)
    return (
        k.prove(
            "idles_as_published",
            And(
                bubble(pipe) == (chunks / 2 - 1) * ((f + full) + full - 3 * w),
                bubble(pipe) == (p - 1) * (3 * f - w),
                bubble_repeated(pipe, TERMS) == bubble(pipe),
                makespan(pipe) == ideal(pipe) + bubble(pipe),
            ),
        ),
        k.prove(
            "idles_a_third_in_equal_times",
            And(
                bubble_of_ideal(equal) == (p - 1) / (3 * m),
                bubble_of_makespan(equal) == (p - 1) / (3 * m + p - 1),
            ),
            given=[m >= 1, p >= 1],
        ),
    )


@claim("B9")
def dual_pipe_v_idles(k: Kernel) -> tuple[Theorem, ...]:
    """DualPipeV idles (p - 1)(F&B + B - 3w), as published, where f = b >= w.

    Of p stages, of two chunks each; B is b + w, and F&B f + B. (Claim B9; 2412.19437 table 2)
    """
    timetable = Timetable(k.part("timetable"))
    return (
        *timetable.keeps(),
        *timetable.rule(),
        *_lengths(k.part("lengths")),
        *AnyTimes(k.part("any_times")).bounds(),
    )


@claim("B10")
def dual_pipe_v_holds(k: Kernel) -> tuple[Theorem, ...]:
    """DualPipeV holds 2p + 1 micro-batches of a chunk each on every stage, whole or in part.

    On stage i 2p - i of the first chunk and i + 1 of the second; at most i + 1 in part, of the last p
    backwards. And all boundaries but that where the V turns are crossed. (Claim B10; 2412.19437
    table 2)
    """
    p, m, stage, number = k.integers("p m stage round")
    pipe = Pipeline(Order.DUALPIPE_V, p, m, 2)
    sizes = [stage >= 0, stage <= p - 1, m >= least_micro_batches(pipe)]
    without = rounds_without(p, stage)

    def done(following: Any) -> Any:
        """Of m micro-batches, those before this one."""
        return If(following <= 0, 0, If(following <= m, following, m))

    forwards = done(
        If(
            number < 0,
            first_in_warm_up(p, stage, number) + 1,
            If(number < without, first_in_warm_up(p, stage, 0), forward_of_first(p, stage, number) + 1),
        )
    )
    # at its fullest a chunk has run the round's forward, and not yet its backward
    first = forwards - done(backward_of_first(p, stage, number))
    second = done(forward_of_second(stage, number)) - done(backward_of_second(number))
    full = number >= without, number < m - p
    backwards = k.integers("backwards")
    waiting = backwards - weights_done(pipe, stage, backwards, TERMS)
    virtual, other = (virtual_stage(pipe, stage + 1, 0), virtual_stage(pipe, stage, 0))
    return (
        k.prove(
            "no_chunk_holds_more_than_come_after_it_and_one",
            And(first <= 2 * p - stage, second <= stage + 1, first >= 0, second >= 0),
            given=sizes,
        ),
        k.prove(
            "in_every_steady_round_both_hold_as_many",
            And(
                first == pipe.virtual_stages - virtual_stage(pipe, stage, 0),
                second == pipe.virtual_stages - virtual_stage(pipe, stage, 1),
                first + second == in_flight(pipe, stage, TERMS),
                in_flight(pipe, stage, TERMS) == 2 * p + 1,
            ),
            given=[*sizes[:2], *full],
        ),
        k.prove(
            "so_many_wait_and_only_of_the_last_p_backwards",
            And(
                waiting <= delay(pipe, stage),
                Or(waiting <= 0, backwards > pipe.forwards - p),
                pipe.forwards - backwards + waiting <= If(waiting <= 0, pipe.forwards - backwards, p),
            ),
        ),
        k.prove(
            "a_v_turns_on_the_last_stage",
            And(
                virtual == other + 1,
                virtual_stage(pipe, stage, 1) == virtual_stage(pipe, stage + 1, 1) + 1,
                virtual_stage(pipe, p - 1, 1) == virtual_stage(pipe, p - 1, 0) + 1,
                boundaries(pipe) == 2 * (p - 1),
            ),
        ),
    )
