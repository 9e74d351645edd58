"""B4, B5: what pipeline stages hold at most, and that no order of work idles less."""

from __future__ import annotations

from proofs.claim import claim
from proofs.pipelines.pipeline import TERMS, Timetable
from proofs.tools.sums import total
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, BoolSort, If, Implies, IntSort, IntVal, RealSort, ToReal
from spec.pipelines.idle_and_held import ideal, in_flight, makespan
from spec.pipelines.pipeline import Order, Pipeline, runs_forward, warm_up

INT, REAL = IntSort(), RealSort()
IN_ONE_PART = [Order.GPIPE, Order.ONE_F_ONE_B, Order.INTERLEAVED]


@claim("B4")
def stages_hold_no_more_than_their_warm_up_and_one(k: Kernel) -> tuple[Theorem, ...]:
    """GPipe holds m micro-batches, 1F1B min(m, p - k) on stage k, interleaved p v + p - 1 chunks.

    Each at most that many, and once that many; interleaved on stage 0, where m v is enough.
    (Claim B4; 2205.05198 section 4.2.3, 2104.04473 section 2.2)
    """
    found: list[Theorem] = []
    for kind in IN_ONE_PART:
        found += Following(k.part(kind.name.lower()), kind).holds
    t = Timetable(k.part("formulas"), Order.INTERLEAVED)
    layers = t.k.reals("layers")
    gpipe = Pipeline(Order.GPIPE, t.p, t.m)
    one_f_one_b = Pipeline(Order.ONE_F_ONE_B, t.p, t.m)
    first = in_flight(t.pipe, 0, TERMS)
    enough = t.n >= t.p * t.v + t.p - 1
    return (
        *found,
        t.k.prove("gpipe_holds_all", in_flight(gpipe, t.stage, TERMS) == t.m),
        t.k.prove(
            "one_f_one_b_holds_one_for_each_stage_after",
            in_flight(one_f_one_b, t.stage, TERMS) == If(t.m <= t.p - t.stage, t.m, t.p - t.stage),
        ),
        t.k.prove(
            "interleaved_holds_these_layers",
            first * layers / (t.p * t.v) == layers * (1 + (t.p - 1) / (t.p * t.v)),
            given=[enough, t.p >= 1, t.v >= 1],
        ),
    )


class Following:
    """A stage that follows the rule for x forwards and backwards, over whole numbers."""

    def __init__(self, k: Kernel, kind: Order) -> None:
        p, m, stage = (k.fixed(name, INT) for name in ("p", "m", "stage"))
        v = k.fixed("v", INT) if kind is Order.INTERLEAVED else IntVal(1)
        self.k, self.stage, self.m = k, stage, m
        self.pipe, self.x = Pipeline(kind, p, m, v), k.integers("x")
        pipe, x = self.pipe, self.x
        n, most = pipe.forwards, in_flight(pipe, stage, TERMS)
        chunks = [v >= 1] if kind is Order.INTERLEAVED else []
        self.sizes = k.suppose("sizes", [], And(stage >= 0, stage <= p - 1, m >= 1, *chunks))
        natural = k.prove("some_units", And(n >= 1, warm_up(pipe, stage) >= 0), uses=[self.sizes])
        self.done, start, self.then = k.recursion(
            "forwards_done",
            [],
            x,
            IntVal(0),
            lambda before: before() + If(And(*runs_forward(pipe, stage, before(), x - before())), 1, 0),
        )
        done, then = self.done, self.then
        held = done(x) - (x - done(x))
        self.limits = [
            k.induct("at_most_one_forward_a_step", x, done(x) <= x, base=[start], step=[then]),
            k.induct("no_more_than_all", x, done(x) <= n, base=[start, natural], step=[then]),
        ]
        warm = []
        if kind is not Order.GPIPE:  # whose warm-up is all there is
            warm = [natural]
            name, goal = "no_more_than_the_warm_up_and_one", held <= warm_up(pipe, stage) + 1
            self.limits.append(k.induct(name, x, goal, base=[start, natural], step=[then]))
        self.first = k.induct(
            "forwards_come_first", x, done(x) == x, given=[x <= most], base=[start], step=[then]
        )
        backwards = k.induct(
            "no_backward_before_its_forward",
            x,
            held >= 0,
            given=[x <= 2 * n],
            base=[start],
            step=[then, *warm],
        )
        self.holds = (
            k.prove("never_holds_more", held <= most, given=[x >= 0], uses=self.limits),
            k.prove(
                "once_holds_as_many",
                substitute(held, (x, most)) == most,
                uses=[self.first.at(x=most), natural],
            ),
            k.prove(
                "does_all_its_work",
                done(2 * n) == n,
                uses=[backwards.at(x=2 * n), self.limits[1].at(x=2 * n), natural],
            ),
        )


class AnyTimes:
    """Any start times of micro-batches through virtual stages that keep the dependencies."""

    def __init__(self, k: Kernel) -> None:
        self.virtual, self.micro_batch = here = k.integers("virtual micro_batch")
        self.p, self.length = k.fixed("p", INT), k.fixed("length", INT)
        self.f, self.b, self.end = (k.fixed(name, REAL) for name in ("f", "b", "end"))
        self.forward, self.backward = (
            k.function(name, INT, INT, REAL) for name in ("forward", "backward")
        )
        self.times = k.suppose("times", [], And(self.f > 0, self.b > 0))
        behind, last = (self.virtual + 1, self.micro_batch), (self.length - 1, self.micro_batch)
        between = And(self.virtual >= 0, self.virtual < self.length - 1)
        first = k.suppose("nothing_before_0", [self.micro_batch], self.forward(0, here[1]) >= 0)
        follows = k.suppose(
            "forwards_follow",
            here,
            Implies(between, self.forward(*here) + self.f <= self.forward(*behind)),
        )
        returns = k.suppose(
            "backwards_return",
            here,
            Implies(between, self.backward(*behind) + self.b <= self.backward(*here)),
        )
        loss = k.suppose("loss", here[1:], self.forward(*last) + self.f <= self.backward(*last))
        ends = k.suppose("all_has_ended", here[1:], self.backward(0, here[1]) + self.b <= self.end)
        reached = [self.virtual <= self.length - 1]
        arrives = k.induct(
            "forwards_arrive_one_by_one",
            self.virtual,
            self.forward(*here) >= self.virtual * self.f,
            given=reached,
            base=[first],
            step=[follows],
        )
        leaves = k.induct(
            "backwards_leave_one_by_one",
            self.virtual,
            self.backward(*here) + self.b <= self.end - self.virtual * self.b,
            given=reached,
            base=[ends],
            step=[returns],
        )
        from_last = {"virtual": self.length - 2 - self.virtual}
        mirrored = self.length - 1 - self.virtual, self.micro_batch
        turned = k.induct(
            "backwards_follow_their_forwards",
            self.virtual,
            self.forward(*mirrored) + self.f <= self.backward(*mirrored),
            given=reached,
            base=[loss],
            step=[follows.at(**from_last), returns.at(**from_last), self.times],
        ).at(virtual=self.length - 1 - self.virtual)
        among = [self.virtual >= self.p - 1, self.virtual < self.length, self.p >= 1]
        after, before = (self.p - 1) * self.f, self.end - (self.p - 1) * self.b
        self.fills = k.prove(
            "the_last_stage_waits",
            And(self.forward(*here) >= after, self.backward(*here) >= after),
            given=among,
            uses=[arrives, turned, self.times],
        )
        self.drains = k.prove(
            "the_last_stage_is_done_early",
            And(self.forward(*here) + self.f <= before, self.backward(*here) + self.b <= before),
            given=among,
            uses=[leaves, turned, self.times],
        )


@claim("B5")
def no_order_idles_less(k: Kernel) -> tuple[Theorem, ...]:
    """No start times at all, in any order of work, take less than the span of these schedules.

    The last stage waits p - 1 forwards for its first work, and p - 1 backwards follow its last: so
    it idles for both. Virtual stages and units are whole numbers. (Claim B5; 2104.04473 section 2.2)
    """
    any_times = AnyTimes(k)
    p, f, b = any_times.p, any_times.f, any_times.b
    x, works, m, v = k.integers("x"), k.fixed("works", INT), k.fixed("m", REAL), k.fixed("v", REAL)
    # the last stage's work, in any order: which half of a unit, of what, through which of its chunks
    is_forward = k.function("is_forward", INT, BoolSort())
    through, of = (k.function(name, INT, INT) for name in ("through", "of"))
    its_own = k.suppose(
        "chunks_of_the_last_stage",
        [x],
        And(p >= 1, through(x) >= p - 1, through(x) < any_times.length),
    )
    takes = If(is_forward(x), f, b)
    work = (through(x), of(x))
    begins, begun = k.define(
        "begins", [x], If(is_forward(x), any_times.forward(*work), any_times.backward(*work))
    )
    busy = total(k, "busy", [], x, takes)
    turns = k.suppose(
        "one_thing_at_a_time",
        [x],
        Implies(And(x >= 0, x + 1 < works), begins(x) + takes <= begins(x + 1)),
    )
    pipe = Pipeline(Order.INTERLEAVED, ToReal(p), m, v, f, b)
    all_of_it = k.suppose("all_of_its_work", [], And(works >= 1, busy(works) == ideal(pipe)))
    here = {"virtual": through(x), "micro_batch": of(x)}
    fills = k.prove(
        "its_work_waits", begins(x) >= (p - 1) * f, uses=[begun, any_times.fills.at(**here), its_own]
    )
    drains = k.prove(
        "its_work_ends_early",
        begins(x) + takes <= any_times.end - (p - 1) * b,
        uses=[begun, any_times.drains.at(**here), its_own],
    )
    after = k.induct(
        "its_work_takes_its_time",
        x,
        begins(x) >= (p - 1) * f + busy(x),
        given=[x < works],
        base=[busy.start, fills.at(x=0)],
        step=[busy.next, turns],
    )
    return (
        k.prove(
            "no_step_is_shorter",
            any_times.end >= makespan(pipe),
            uses=[
                all_of_it,
                after.at(x=works - 1),
                drains.at(x=works - 1),
                busy.next.at(x=works - 1),
            ],
        ),
    )
