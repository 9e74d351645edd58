"""Limits of pipelines whose backwards are in two parts: what they hold (B8), and idle at least (B7)."""

from __future__ import annotations

from proofs.claim import claim
from proofs.pipelines.pipeline import TERMS
from proofs.pipelines.pipeline_limits import INT, REAL, Following
from proofs.tools.sums import total
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, BoolSort, If, Implies, Or
from spec.pipelines.idle_and_held import fullest_in_two_parts, ideal
from spec.pipelines.pipeline import (
    STRETCH,
    Order,
    Pipeline,
    delay,
    least_micro_batches,
    warm_up,
    weights_done,
)


def no_order_in_two_parts_idles_less(k: Kernel) -> tuple[Theorem, ...]:
    """The last stage waits p - 1 forwards for its first work, whatever the order and the times."""
    stage, unit, x = k.integers("stage unit x")
    p, m, works = (k.fixed(name, INT) for name in ("p", "m", "works"))
    f, b, w, end = (k.fixed(name, REAL) for name in ("f", "b", "w", "end"))
    pipe = Pipeline(Order.ZB_H2, p, m, 1, f, b + w, of_weights=w)
    forward, backward, weights = (
        k.function(name, INT, INT, REAL) for name in ("forward", "backward", "weights")
    )
    sizes = k.suppose("sizes", [], And(p >= 1, f > 0, b > 0))
    first = k.suppose("nothing_before_0", [unit], forward(0, unit) >= 0)
    between = And(stage >= 0, stage < p - 1)
    follows = k.suppose(
        "forwards_follow",
        [stage, unit],
        Implies(between, forward(stage, unit) + f <= forward(stage + 1, unit)),
    )
    last = p - 1
    in_parts = k.suppose(
        "backwards_follow_the_loss_in_two_parts",
        [unit],
        And(
            forward(last, unit) + f <= backward(last, unit),
            backward(last, unit) + b <= weights(last, unit),
        ),
    )
    arrives = k.induct(
        "forwards_arrive_one_by_one",
        stage,
        forward(stage, unit) >= stage * f,
        given=[stage <= last],
        base=[first],
        step=[follows],
    ).at(stage=last)
    # the last stage's work, in any order: a forward, a first part or a second, of which micro-batch
    is_forward, is_first = (k.function(name, INT, BoolSort()) for name in ("is_forward", "is_first"))
    of = k.function("of", INT, INT)
    takes = If(is_forward(x), f, If(is_first(x), b, w))
    starts = [times(last, of(x)) for times in (forward, backward, weights)]
    begins, begun = k.define(
        "begins", [x], If(is_forward(x), starts[0], If(is_first(x), starts[1], starts[2]))
    )
    busy = total(k, "busy", [], x, takes)
    turns = k.suppose(
        "one_thing_at_a_time",
        [x],
        Implies(And(x >= 0, x + 1 < works), begins(x) + takes <= begins(x + 1)),
    )
    all_of_it = k.suppose("all_of_its_work", [], And(works >= 1, busy(works) == ideal(pipe)))
    ends = k.suppose("all_has_ended", [x], Implies(And(x >= 0, x < works), begins(x) + takes <= end))
    waits = k.prove(
        "its_work_waits",
        begins(x) >= (p - 1) * f,
        uses=[begun, arrives.at(unit=of(x)), in_parts.at(unit=of(x)), sizes],
    )
    after = k.induct(
        "its_work_takes_its_time",
        x,
        begins(x) >= (p - 1) * f + busy(x),
        given=[x < works],
        base=[busy.start, waits.at(x=0)],
        step=[busy.next, turns],
    )
    at_last = {"x": works - 1}
    return (
        k.prove(
            "no_order_in_two_parts_is_shorter",
            end >= ideal(pipe) + (p - 1) * f,
            uses=[all_of_it, *(fact.at(**at_last) for fact in (after, ends, busy.next))],
        ),
    )


@claim("B8")
def two_parts_hold_as_much_on_every_stage(k: Kernel) -> tuple[Theorem, ...]:
    """ZB-H1 holds p micro-batches at most on every stage, ZB-H2 2p - 1, some of them in part.

    On stage k, ZB-H1 p - k whole and k between the parts of their backward, ZB-H2 2(p - k) - 1 and 2k;
    at a backward, one of either. At some moment as many. (Claim B8; 2401.10241 section 2.3)
    """
    return tuple(t for kind in STRETCH for t in _holds(k.part(kind.name.lower()), kind))


def _holds(k: Kernel, kind: Order) -> tuple[Theorem, ...]:
    """A stage that follows the rule: before a backward, and between its first part and second ones."""
    stage = Following(k, kind)
    pipe, x, number, m = stage.pipe, stage.x, stage.stage, stage.m
    done, most = stage.done, least_micro_batches(pipe)
    warm, wait = warm_up(pipe, number), delay(pipe, number)
    enough = k.suppose("enough", [], m >= most)
    size, waiting = k.reals("size waiting")
    back = x - done(x)
    second = weights_done(pipe, number, back, TERMS)
    held, waits = done(x) - back, back - second
    limit = fullest_in_two_parts(pipe, number, size, waiting, TERMS.maximum(size, waiting))
    some = And(size >= 0, waiting >= 0)
    counted = k.prove(
        "so_many_whole_and_in_part",
        And(held <= warm + 1, waits <= wait, held + waits <= most),
        given=[x >= 0],
        uses=stage.limits[-1:],
    )
    j, fewer_whole, fewer_in_part = k.integers("j fewer_whole fewer_in_part")
    whole, part = warm + 1 - fewer_whole, wait - fewer_in_part
    in_turn = k.induct(
        "then_backwards_and_forwards_take_turns",
        j,
        done(warm + 1 + 2 * j) == warm + 1 + j,
        given=[warm + 1 + j <= m],
        base=[stage.first.at(x=warm + 1), stage.sizes],
        step=[
            stage.then.at(x=warm + 1 + 2 * j),
            stage.then.at(x=warm + 1 + 2 * j + 1),
            stage.sizes,
        ],
    )
    fullest = (x, warm + 1 + 2 * wait)
    return (
        *stage.holds,
        counted,
        k.prove(
            "no_moment_is_fuller",
            And(
                whole * size + part * waiting <= limit,
                (whole - 1) * size + (part + 1) * waiting <= limit,
            ),
            given=[some, fewer_whole >= 0, fewer_in_part >= 0],
        ),
        k.prove(
            "once_holds_as_many_whole_and_in_part",
            And(
                substitute(held, fullest) == warm + 1,
                substitute(waits, fullest) == wait,
                warm + 1 + wait == most,
            ),
            uses=[in_turn.at(j=wait), enough, stage.sizes],
        ),
        k.prove(
            "at_the_backward_after_it_a_stage_is_fullest",
            Or(
                (warm + 1) * size + wait * waiting == limit,
                warm * size + (wait + 1) * waiting == limit,
            ),
        ),
    )
