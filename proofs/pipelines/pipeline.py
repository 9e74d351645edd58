"""B1-B3: how long pipeline schedules idle, for every number of stages and micro-batches.

Start times in closed form that keep every dependency and every stage's order show how long a step
takes. Stages, units and times are any real numbers here; whole numbers are among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.claim import claim
from proofs.pipelines.executed import require_executed
from proofs.tools.encoding import Symbolic
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.terms import And, If, Not, Or, RealVal
from spec.pipelines.idle_and_held import (
    backward_start,
    bubble,
    bubble_of_ideal,
    bubble_of_makespan,
    forward_start,
    makespan,
    warm_up_start,
)
from spec.pipelines.pipeline import Order, Pipeline, backward_unit, forward_unit, runs_forward, warm_up

TERMS = Symbolic()


class Timetable:
    """The closed start times of one schedule, at any of its stages and units."""

    def __init__(self, k: Kernel, kind: Order) -> None:
        self.k = k
        self.p, self.m, self.f, self.b = k.reals("p m f b")
        self.v = k.reals("v") if kind is Order.INTERLEAVED else RealVal(1)
        self.pipe = Pipeline(kind, self.p, self.m, self.v, self.f, self.b)
        self.n = self.pipe.forwards
        # a stage, its forward `unit` and backward `back`, and a `later` one of either
        self.stage, self.unit, self.back, self.later = k.reals("stage unit back later")
        self.forwards, self.backwards = k.reals("forwards backwards")  # done so far

    def forward(self, stage: Any, unit: Any) -> Any:
        return forward_start(self.pipe, stage, unit, TERMS)

    def forward_ends(self, stage: Any, unit: Any) -> Any:
        return self.forward(stage, unit) + self.f

    def backward(self, stage: Any, unit: Any) -> Any:
        return backward_start(self.pipe, stage, unit, TERMS)

    def backward_ends(self, stage: Any, unit: Any) -> Any:
        return self.backward(stage, unit) + self.b

    def before(self, unit: Any, back: Any) -> Bool:
        """A stage runs this forward before this backward; else after it."""
        return unit <= warm_up(self.pipe, self.stage) + back

    def after(self, unit: Any, back: Any) -> Bool:
        """The same, denied of whole numbers."""
        return unit >= warm_up(self.pipe, self.stage) + back + 1

    def goals(self) -> dict[str, Bool]:
        """What makes start times a timetable of these orders, and what it says of idle time."""
        stage, unit, back, later = self.stage, self.unit, self.back, self.later
        forward, forward_ends = self.forward, self.forward_ends
        backward, backward_ends = self.backward, self.backward_ends
        work = self.n * (self.f + self.b)
        idle = backward_ends(0, self.n - 1) - work

        def part(time: Any) -> Any:
            """The idle part of a time: every stage idles for `bubble`."""
            return bubble(self.pipe) / time

        return {
            "forwards_follow_the_stage_before": forward_ends(stage, unit) <= forward(stage + 1, unit),
            "backwards_follow_the_stage_after": (
                backward_ends(stage + 1, back) <= backward(stage, back)
            ),
            "forwards_take_turns": forward_ends(stage, unit) <= forward(stage, later),
            "backwards_take_turns": backward_ends(stage, back) <= backward(stage, later),
            "forwards_before_a_backward_have_ended": forward_ends(stage, unit) <= backward(stage, back),
            "backwards_before_a_forward_have_ended": (
                backward_ends(stage, back) <= forward(stage, later)
            ),
            "nothing_starts_before_0": forward(stage, unit) >= 0,
            "nothing_ends_after_the_span": backward_ends(stage, back) <= makespan(self.pipe),
            "the_span_is_taken": And(
                forward(0, 0) == 0, backward_ends(0, self.n - 1) == makespan(self.pipe)
            ),
            "every_stage_idles": And(
                idle == (self.p - 1) * (self.f + self.b), idle == bubble(self.pipe)
            ),
            "idle_part_of_the_work": And(
                part(work) == (self.p - 1) / (self.v * self.m),
                part(work) == bubble_of_ideal(self.pipe),
            ),
            "idle_part_of_the_whole": And(
                part(makespan(self.pipe)) == (self.p - 1) / (self.v * self.m + self.p - 1),
                part(makespan(self.pipe)) == bubble_of_makespan(self.pipe),
            ),
        }

    def keeps(self, **given: Sequence[Bool]) -> tuple[Theorem, ...]:
        """All goals, each from what it needs; and that the rule orders work as they take it."""
        goals = self.goals()
        if self.pipe.order is Order.GPIPE:  # no forward follows a backward
            del goals["backwards_before_a_forward_have_ended"]
        if goals.keys() != given.keys():
            raise KernelError(f"{self.k.claim}: shown are {', '.join(given)}")
        runs = And(*runs_forward(self.pipe, self.stage, self.forwards, self.back))
        rule = self.k.prove(
            "before_a_backward_these_forwards_are_done",
            self.unit < self.forwards,
            given=[Not(runs), self.unit < self.n, self.before(self.unit, self.back)],
        )
        _, in_turn = runs_forward(self.pipe, self.stage, self.unit, self.backwards)
        other = self.k.prove(
            "before_a_forward_these_backwards_are_done",
            self.back < self.backwards,
            given=[in_turn, self.after(self.unit, self.back)],
        )
        return rule, other, *(self.k.prove(name, goals[name], given[name]) for name in goals)


@claim("B1")
def gpipe_idles(k: Kernel) -> tuple[Theorem, ...]:
    """GPipe idles for p - 1 forwards and backwards: (p-1)/m of the work, (p-1)/(m+p-1) of the whole.

    (Claim B1; GPipe 1811.06965 section 2.3, 2104.04473 section 2.2.1)
    """
    t = Timetable(k, Order.GPIPE)
    f, b, several = t.f > 0, t.b > 0, t.m >= 1
    loss = k.prove(
        "backwards_follow_the_loss",
        t.forward_ends(t.p - 1, t.unit) <= t.backward(t.p - 1, t.unit),
        given=[f, b, t.unit >= 0, t.unit <= t.n - 1],
    )
    found = t.keeps(
        forwards_follow_the_stage_before=[],
        backwards_follow_the_stage_after=[],
        forwards_take_turns=[f, t.later >= t.unit + 1],
        backwards_take_turns=[b, t.later >= t.back + 1],
        forwards_before_a_backward_have_ended=[
            *(f, b, t.stage <= t.p - 1, t.unit <= t.n - 1, t.back >= 0)
        ],
        nothing_starts_before_0=[f, t.stage >= 0, t.unit >= 0],
        nothing_ends_after_the_span=[b, t.stage >= 0, t.back <= t.n - 1],
        the_span_is_taken=[],
        every_stage_idles=[],
        idle_part_of_the_work=[f, b, several],
        idle_part_of_the_whole=[f, b, several, t.p >= 1],
    )
    require_executed()
    return loss, *found


@claim("B2")
def one_forward_one_backward_idles(k: Kernel) -> tuple[Theorem, ...]:
    """1F1B idles as long as GPipe; and its first p - k forwards may start at (k + i) f.

    With p = n/d stages and m = B'/d micro-batches that is (n - d)/B' of the work. (Claim B2;
    2104.04473 sections 2.2.1 and 3.3.1)
    """
    t = Timetable(k, Order.ONE_F_ONE_B)
    f, b, several = t.f > 0, t.b > 0, t.m >= 1
    loss = k.prove(
        "backwards_follow_the_loss",
        t.forward_ends(t.p - 1, t.unit) <= t.backward(t.p - 1, t.unit),
    )
    kept = t.keeps(
        forwards_follow_the_stage_before=[],
        backwards_follow_the_stage_after=[],
        forwards_take_turns=[f, b, t.later >= t.unit + 1],
        backwards_take_turns=[f, b, t.later >= t.back + 1],
        forwards_before_a_backward_have_ended=[f, b, t.before(t.unit, t.back)],
        backwards_before_a_forward_have_ended=[f, b, t.after(t.later, t.back)],
        nothing_starts_before_0=[f, b, t.stage >= 0, t.unit >= 0],
        nothing_ends_after_the_span=[f, b, t.stage >= 0, t.back <= t.n - 1],
        the_span_is_taken=[],
        every_stage_idles=[],
        idle_part_of_the_work=[f, b, several],
        idle_part_of_the_whole=[f, b, several, t.p >= 1],
    )
    devices, batch, d = k.reals("devices batch d")
    cut = Pipeline(Order.ONE_F_ONE_B, devices / d, batch / d)
    identity = k.prove(
        "idle_part_with_d_replicas",
        bubble_of_ideal(cut) == (devices - d) / batch,
        given=[d >= 1, batch >= 1],
    )
    return loss, *kept, *_as_early_as_possible(t), identity


def _as_early_as_possible(t: Timetable) -> tuple[Theorem, ...]:
    """The forwards of 1F1B's warm-up may start as soon as they arrive; all else stays."""
    f, b, unit, later = t.f > 0, t.b > 0, t.unit, t.later

    def early(stage: Any, i: Any) -> Any:
        warm = i <= t.p - 1 - stage
        return If(warm, warm_up_start(t.pipe, stage, i), t.forward(stage, i))

    stage, some = t.stage, unit >= 0
    return (
        t.k.prove(
            "early_forwards_follow_the_stage_before",
            early(stage, unit) + t.f <= early(stage + 1, unit),
            given=[b, some],
        ),
        t.k.prove(
            "early_forwards_take_turns",
            early(stage, unit) + t.f <= early(stage, later),
            given=[f, b, some, later >= unit + 1],
        ),
        t.k.prove(
            "no_early_forward_starts_before_0",
            early(stage, unit) >= 0,
            given=[f, b, stage >= 0, some],
        ),
        t.k.prove(
            "early_forwards_are_not_late", early(stage, unit) <= t.forward(stage, unit), given=[b, some]
        ),
        t.k.prove(
            "forwards_after_a_backward_are_not_early",
            early(stage, unit) == t.forward(stage, unit),
            given=[t.after(unit, t.back), t.back >= 0],
        ),
    )


@claim("B3")
def interleaved_idles(k: Kernel) -> tuple[Theorem, ...]:
    """Interleaved 1F1B with v chunks idles for (p - 1)/(v m) of its work. (Claim B3; 2104.04473 2.2.2)

    Units are numbered group by group; p divides m, so that every group is full.
    """
    t = Timetable(k, Order.INTERLEAVED)
    f, b, several, chunks = t.f > 0, t.b > 0, t.m >= 1, t.v >= 1
    group, chunk, place = at = k.reals("group chunk place")
    forward, backward = forward_unit(t.pipe, *at), backward_unit(t.pipe, *at)
    following = group, chunk + 1, place
    places = [place >= 0, place <= t.p - 1]
    last = forward_unit(t.pipe, group, t.v - 1, place)
    kept = t.keeps(
        forwards_follow_the_stage_before=[b],
        backwards_follow_the_stage_after=[f],
        forwards_take_turns=[f, b, t.later >= t.unit + 1],
        backwards_take_turns=[f, b, t.later >= t.back + 1],
        forwards_before_a_backward_have_ended=[
            *(f, b, t.stage <= t.p - 1, t.unit <= t.n - 1, t.back >= 0),
            t.before(t.unit, t.back),
        ],
        backwards_before_a_forward_have_ended=[f, b, t.after(t.later, t.back)],
        nothing_starts_before_0=[f, b, t.stage >= 0, t.unit >= 0],
        nothing_ends_after_the_span=[f, b, t.stage >= 0, t.back <= t.n - 1],
        the_span_is_taken=[t.p >= 1, chunks],
        every_stage_idles=[t.p >= 1, chunks],
        idle_part_of_the_work=[f, b, several, chunks],
        idle_part_of_the_whole=[f, b, several, chunks, t.p >= 1],
    )
    between_chunks = (
        k.prove(
            "forwards_follow_the_chunk_before",
            t.forward_ends(t.p - 1, forward) <= t.forward(0, forward_unit(t.pipe, *following)),
            given=[b],
        ),
        k.prove(
            "backwards_follow_the_chunk_after",
            t.backward_ends(0, backward_unit(t.pipe, *following)) <= t.backward(t.p - 1, backward),
            given=[f],
        ),
        k.prove(
            "backwards_follow_the_loss",
            t.forward_ends(t.p - 1, last)
            <= t.backward(t.p - 1, backward_unit(t.pipe, group, t.v - 1, place)),
            given=[*places, group >= 0, chunks, last <= t.n - 1],
        ),
    )
    return *kept, *between_chunks, *_numbered(t, at)


def _numbered(t: Timetable, at: Any) -> tuple[Theorem, ...]:
    """The numbers of forwards and of backwards are those from 0 to m v - 1, each given once."""
    groups, *other = t.k.reals("groups later_group later_chunk later_place")
    (group, chunk, place), (later_group, later_chunk, later_place) = at, other
    places, whole = [place >= 0, place <= t.p - 1], t.m == groups * t.p
    found = []
    for number, name in ((forward_unit, "forward"), (backward_unit, "backward")):
        unit, following = number(t.pipe, *at), number(t.pipe, *other)
        # forwards go through the first chunk first, backwards through the last
        low, high = (chunk, later_chunk) if number is forward_unit else (later_chunk, chunk)
        found += [
            t.k.prove(
                f"{name}s_are_numbered_in_turn",
                unit + 1 <= following,
                given=[
                    *places,
                    *(t.v >= 1, low <= t.v - 1, high >= 0, later_place >= 0),
                    Or(
                        group + 1 <= later_group,
                        And(group == later_group, low + 1 <= high),
                        And(group == later_group, chunk == later_chunk, place + 1 <= later_place),
                    ),
                ],
            ),
            t.k.prove(
                f"{name}s_are_numbered_from_0_to_the_last",
                And(unit >= 0, unit <= t.n - 1),
                given=[
                    *places,
                    *(chunk >= 0, chunk <= t.v - 1, group >= 0, group <= groups - 1, whole),
                ],
            ),
        ]
    return tuple(found)
