"""F2: attention over blocks of keys, merged in any order, is attention over all keys.

Scores and mask are those of any one query; values are one component of the keys' value vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from proofs.claim import claim
from proofs.models.online_softmax import Softmax, backward_from_the_log_sum_exp, equal, softmax
from proofs.tools.sums import closed_form, equal_terms, of_sums, total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import (
    And,
    BoolSort,
    BoolVal,
    If,
    Implies,
    IntSort,
    IntVal,
    Not,
    Or,
    RealSort,
    RealVal,
)
from spec.devices.collectives import all_gather_sends
from spec.models.online_softmax import PartialResult, exponential, merge, merge_outputs, no_keys

BOOL, INT, REAL = BoolSort(), IntSort(), RealSort()
NO_WEIGHT = RealVal(0)


@dataclass(frozen=True)
class Keys:
    """Any number of keys with scores, some hidden by the mask, cut into n blocks in any way.

    Each block has a turn on each device: blocks come in any order. A span of turns, `lo` to before
    `hi`, stands for the keys of those blocks.
    """

    s: Softmax
    n: Any
    size: Any  # how many keys there are
    sized: Theorem
    device: Any
    key: Any
    lo: Any
    mid: Any
    hi: Any
    m: Any
    r: Any
    visible: Bool  # whether the query sees the key
    score: Any  # the key's
    turns: Theorem
    in_span: Bool  # the key is visible, and its block's turn is in the span
    seen: Any  # seen(device, lo, hi, keys): any of the keys is
    none_yet: Theorem
    then: Theorem

    def weight(self, reference: Any) -> Any:
        return exponential(self.score, reference, self.s.reals)


def _keys(k: Kernel) -> Keys:
    device, key, c, lo, mid, hi = k.integers("device key c lo mid hi")
    m, r = k.reals("at_m at_r")
    n, size = k.fixed("n", INT), k.fixed("size", INT)
    sized = k.suppose("there_are_some_keys_or_none", [], size >= 0)
    block, turn = k.function("block", INT, INT), k.function("turn", INT, INT, INT)
    score, visible = k.function("score", INT, REAL), k.function("visible", INT, BOOL)
    turns = k.suppose(
        "each_block_has_its_turn", [device, c], And(turn(device, c) >= 0, turn(device, c) < n)
    )
    span = (device, key, lo, mid, hi, m, r)
    turn_of_key = turn(device, block(key))
    in_span = And(visible(key), turn_of_key >= lo, turn_of_key < hi)
    seen = k.recursion(
        "seen",
        [device, lo, hi],
        key,
        BoolVal(False),
        lambda before: Or(before(device, lo, hi), in_span),
    )
    of_key = (visible(key), score(key), turns.at(c=block(key)), in_span)
    return Keys(softmax(k), n, size, sized, *span, *of_key, *seen)


class Weighted:
    """A field of partial results: the sum of visible keys' weights, or of weighted values.

    `of`(device, lo, hi, reference; keys): in a span of turns. `plain`: of all visible keys, with
    exp(score) as weights. What is known of them is proved where it is used.
    """

    def __init__(self, x: Keys, field: str, value: Any) -> None:
        self.x, self.field, self.value, self.k = x, field, value, x.s.k
        weighted = If(x.in_span, x.weight(x.m) * value, NO_WEIGHT)
        self.of = total(self.k, field, [x.device, x.lo, x.hi, x.m], x.key, weighted)
        unscaled = If(x.visible, x.s.reals.exp(x.score) * value, NO_WEIGHT)
        self.plain = total(self.k, f"plain_{field}", [], x.key, unscaled)

    @cached_property
    def joined(self) -> Theorem:
        x, of = self.x, self.of
        return closed_form(
            self.k,
            f"{self.field}_of_two_spans_adds_up",
            of,
            of(x.device, x.lo, x.mid, x.m, x.key) + of(x.device, x.mid, x.hi, x.m, x.key),
            given=[x.lo <= x.mid, x.mid <= x.hi],
            base=[of.start.at(hi=x.mid), of.start.at(lo=x.mid)],
            uses=[of.next.at(hi=x.mid), of.next.at(lo=x.mid)],
        )

    @cached_property
    def rescaled(self) -> Theorem:
        x, of = self.x, self.of
        at_r = of(x.device, x.lo, x.hi, x.r, x.key)
        return self.k.induct(
            f"{self.field}_at_another_reference",
            x.key,
            of.upto(x.key) * exponential(x.m, x.r, x.s.reals) == at_r,
            base=[of.start, of.start.at(at_m=x.r)],
            step=[of.next, of.next.at(at_m=x.r), x.s.rescaled(self.value, x.score, x.m, x.r)],
        )

    @cached_property
    def union(self) -> Theorem:
        x, of = self.x, self.of
        both = merge(
            PartialResult(x.m, *2 * [of(x.device, x.lo, x.mid, x.m, x.key)]),
            PartialResult(x.r, *2 * [of(x.device, x.mid, x.hi, x.r, x.key)]),
            x.s.reals,
        )
        return self.k.prove(
            f"merged_{self.field}_is_that_of_the_union",
            getattr(both, self.field) == of(x.device, x.lo, x.hi, both.reference, x.key),
            given=[x.lo <= x.mid, x.mid <= x.hi, x.key >= 0],
            uses=[
                self.joined.at(at_m=both.reference),
                self.rescaled.at(hi=x.mid, at_r=both.reference),
                self.rescaled.at(lo=x.mid, at_m=x.r, at_r=both.reference),
            ],
        )

    @cached_property
    def none(self) -> Theorem:
        name = f"{self.field}_of_no_turn_is_nothing"
        return closed_form(self.k, name, self.of, NO_WEIGHT, given=[self.x.hi <= self.x.lo])

    @cached_property
    def all(self) -> Theorem:
        x, every = self.x, {"lo": IntVal(0), "hi": self.x.n, "at_m": NO_WEIGHT}
        return self.k.induct(
            f"{self.field}_of_all_turns_is_plain",
            x.key,
            self.of(x.device, 0, x.n, NO_WEIGHT, x.key) == self.plain.upto(x.key),
            base=[self.of.start.at(**every), self.plain.start],
            step=[self.of.next.at(**every), self.plain.next, x.turns],
        )

    @cached_property
    def hidden(self) -> Theorem:
        x = self.x
        return closed_form(
            self.k,
            f"{self.field}_of_hidden_keys_is_nothing",
            self.of,
            NO_WEIGHT,
            given=[Not(x.seen(x.device, x.lo, x.hi, x.key))],
            uses=[x.then],
        )


@dataclass(frozen=True)
class Order:
    """Blocks' partial results, merged in the order of their turns on each device."""

    t: Any
    block: Any  # block(device, t): at which reference the block of turn t comes
    reference: Any  # reference(device, t): after t turns
    then: Theorem


def _order(x: Keys) -> Order:
    k, t = x.s.k, x.s.k.integers("t")
    block = k.function("block_reference", INT, INT, REAL)

    def step(before: Callable[[Any], Any]) -> Any:
        merged = merge(no_keys(before(x.device)), no_keys(block(x.device, t)), x.s.reals)
        return merged.reference

    lowest = no_keys(k.fixed("lowest", REAL)).reference
    reference, _, then = k.recursion("reference", [x.device], t, lowest, step)
    return Order(t, block, reference, then)


def _merged(x: Keys, order: Order, w: Weighted) -> tuple[Any, Theorem]:
    """A field of what the device has at last, and: rescaled, it is the plain sum."""
    k, t, device = x.s.k, order.t, x.device
    m, r = order.reference(device, t), order.block(device, t)
    arriving = PartialResult(r, *2 * [w.of(device, t, t + 1, r, x.size)])

    def step(before: Callable[[Any], Any]) -> Any:
        return getattr(merge(PartialResult(m, *2 * [before(device)]), arriving, x.s.reals), w.field)

    begin = RealVal(getattr(no_keys(), w.field))
    merged, begins, then = k.recursion(f"merged_{w.field}", [device], t, begin, step)
    first, last, zero = order.reference(device, 0), order.reference(device, x.n), RealVal(0)
    so_far = k.induct(
        f"{w.field}_is_that_of_the_blocks_so_far",
        t,
        merged(device, t) == w.of(device, 0, t, m, x.size),
        base=[begins, w.none.at(lo=0, hi=0, at_m=first, key=x.size), x.sized],
        step=[
            then,
            order.then,
            w.union.at(lo=0, mid=t, hi=t + 1, at_m=m, at_r=r, key=x.size),
            x.sized,
        ],
    )
    done = k.prove(
        f"{w.field}_of_all_blocks",
        merged(device, x.n) * exponential(last, zero, x.s.reals) == w.plain(x.size),
        uses=[
            so_far.at(t=x.n),
            w.rescaled.at(lo=0, hi=x.n, at_m=last, at_r=zero, key=x.size),
            w.all.at(key=x.size),
            x.turns,
            x.sized,
        ],
    )
    return merged(device, x.n), done


def _positive(x: Keys, w: Weighted) -> Theorem:
    """Where the query sees a key, the weights add up to more than nothing."""
    of = w.of.upto(x.key)
    return x.s.k.induct(
        "weights_seen_add_up_to_more_than_nothing",
        x.key,
        And(of >= 0, Implies(x.seen(x.device, x.lo, x.hi, x.key), of > 0)),
        base=[w.of.start, x.none_yet],
        step=[w.of.next, x.then, x.s.positive.at(x=x.score, m=x.m)],
    )


def _attention(k: Kernel) -> tuple[Theorem, ...]:
    """Whatever the blocks, their order and their references, the output is the plain softmax's."""
    x = _keys(k)
    value = k.function("value", INT, REAL)
    totals, values = both = (
        Weighted(x, "total", RealVal(1)),
        Weighted(x, "weighted_sum", value(x.key)),
    )
    positive = _positive(x, totals)

    def span(reference: Any) -> PartialResult:
        """The partial result of a span's blocks."""
        return PartialResult(reference, *(w.of(x.device, x.lo, x.hi, reference, x.key) for w in both))

    seen = x.seen(x.device, x.lo, x.hi, x.key)
    any_reference = k.prove(
        "the_reference_does_not_matter",
        span(x.m).output == span(x.r).output,
        given=[seen, x.key >= 0],
        uses=[*(w.rescaled for w in both), positive.at(at_m=x.r)],
    )
    hidden = k.prove(
        "hidden_blocks_are_nothing",
        equal(span(x.m), no_keys(x.m)),
        given=[Not(seen), x.key >= 0],
        uses=[w.hidden for w in both],
    )
    order, zero = _order(x), RealVal(0)
    (l, all_totals), (o, all_values) = (_merged(x, order, w) for w in both)
    plain = PartialResult(zero, totals.plain(x.size), values.plain(x.size))
    whole = k.prove(
        "merged_blocks_give_the_attention_over_all_keys",
        PartialResult(order.reference(x.device, x.n), l, o).output == plain.output,
        given=[x.seen(x.device, 0, x.n, x.size)],
        uses=[
            all_totals,
            all_values,
            totals.all.at(key=x.size),
            positive.at(lo=0, hi=x.n, at_m=zero, key=x.size),
            x.sized,
        ],
    )
    return whole, *(w.union for w in both), any_reference, hidden


def shares_merge_turn_by_turn(k: Kernel) -> Theorem:
    """What is linear in each turn's softmax alone, merged by log-sum-exps, is that of all keys.

    As the lines of a program have it: after each turn the output so far is that of the keys so far. In
    each turn some keys are seen: where a mask hides one, its score is low.
    """
    x, zero = _keys(k), RealVal(0)
    value, t, device = k.function("value", INT, REAL), k.integers("t"), x.device
    totals = Weighted(x, "total", RealVal(1))
    values = Weighted(x, "weighted_sum", value(x.key))

    def of(w: Weighted, lo: Any, hi: Any) -> Any:
        return w.of(device, lo, hi, zero, x.size)

    def plain(log_total: Any) -> Any:
        return exponential(log_total, zero, x.s.reals)

    log, out = (k.function(name, INT, INT, REAL) for name in ("turns_log_total", "turns_output"))
    together = k.function("together", REAL, REAL, REAL)
    a, b = k.reals("a_log b_log")
    of_both = k.suppose("logs_of_sums", [a, b], plain(together(a, b)) == plain(a) + plain(b))
    alone = k.suppose(
        "each_turn_alone",
        [device, t],
        And(
            plain(log(device, t)) == of(totals, t, t + 1),
            out(device, t) * of(totals, t, t + 1) == of(values, t, t + 1),
        ),
    )
    logs, first_log, next_log = k.recursion(
        "log_total_so_far",
        [device],
        t,
        log(device, 0),
        lambda before: together(before(device), log(device, t + 1)),
    )
    now, coming, both = logs(device, t), log(device, t + 1), logs(device, t + 1)
    outputs, first_out, next_out = k.recursion(
        "output_so_far",
        [device],
        t,
        out(device, 0),
        lambda before: merge_outputs(before(device), now, out(device, t + 1), coming, both, x.s.reals),
    )
    ahead = {"lo": 0, "mid": t + 1, "hi": t + 2, "at_m": zero, "key": x.size}
    joined = [w.joined.at(**ahead) for w in (totals, values)]
    of_logs = k.induct(
        "logs_so_far_are_of_the_keys_so_far",
        t,
        plain(now) == of(totals, 0, t + 1),
        base=[first_log, alone.at(t=0)],
        step=[next_log, of_both.at(a_log=now, b_log=coming), alone.at(t=t + 1), joined[0], x.sized],
    )
    had, came = outputs(device, t), out(device, t + 1)
    outputs_so_far = k.induct(
        "outputs_so_far_are_of_the_keys_so_far",
        t,
        had * plain(now) == of(values, 0, t + 1),
        base=[first_out, first_log, alone.at(t=0)],
        step=[
            next_out,
            alone.at(t=t + 1),
            x.s.rescaled(had, now, both, zero),
            x.s.rescaled(came, coming, both, zero),
            joined[1],
            x.sized,
        ],
    )
    last = x.n - 1
    return k.prove(
        "merged_turns_give_the_attention_over_all_keys",
        outputs(device, last) == PartialResult(zero, totals.plain(x.size), values.plain(x.size)).output,
        given=[x.n >= 1],
        uses=[
            outputs_so_far.at(t=last),
            of_logs.at(t=last),
            totals.all.at(key=x.size),
            values.all.at(key=x.size),
            x.s.positive.at(x=logs(device, last), m=zero),
            x.sized,
        ],
    )


def _known_before_the_loop(k: Kernel) -> Theorem:
    """What shares and their gradients sum to as products, output and its gradient do: for one query.

    Shares p(u), values v(u, d): the output is the sum of p(u) v(u, d) over keys, and the gradient of a
    share that of c(d) v(u, d) over features.
    """
    u, d = k.integers("u d")
    share, value = k.function("share", INT, REAL)(u), k.function("value", INT, INT, REAL)(u, d)
    cotangent = k.function("cotangent", INT, REAL)(d)
    by_feature, rows, by_key, columns, exchanged = of_sums(
        k, "pairs", d, u, cotangent * share * value, []
    )
    output = total(k, "output", [d], u, share * value)
    of_share = total(k, "of_share", [u], d, cotangent * value)
    with_output = total(k, "with_output", [u], d, cotangent * output.upto(u))
    with_share = total(k, "with_share", [d], u, share * of_share.upto(d))
    factors = [
        closed_form(
            k, f"{name}_factor", of, factor * inner.upto(upto), base=[inner.start], uses=[inner.next]
        )
        for name, of, factor, inner, upto in (
            ("cotangents", by_feature, cotangent, output, u),
            ("shares", by_key, share, of_share, d),
        )
    ]
    sides = [
        equal_terms(k, "of_the_output", with_output, rows, factors[0], given=[u >= 0]),
        equal_terms(k, "of_the_shares", with_share, columns, factors[1], given=[d >= 0]),
    ]
    return k.prove(
        "the_product_with_the_output_is_that_with_the_shares",
        with_output(u, d) == with_share(d, u),
        given=[u >= 0, d >= 0],
        uses=[*sides, exchanged],
    )


def _ring_order(k: Kernel) -> Theorem:
    """Blocks round a ring, as in its all-gather: each has one turn on each device, of n."""
    d, c, s = k.integers("d c s")
    n = k.fixed("n", INT)
    here = all_gather_sends(d, s)  # the block that the device has in step s
    turn = If(c <= d, d - c, d - c + n)
    return k.prove(
        "a_ring_gives_each_block_a_turn_on_each_device",
        And(turn >= 0, turn < n, Or(here == c, here + n == c) == (s == turn)),
        given=[d >= 0, d < n, c >= 0, c < n, s >= 0, s < n],
    )


@claim("F2")
def blocks_in_any_order_give_the_whole_attention(k: Kernel) -> tuple[Theorem, ...]:
    """Partial results merged in any order, on each device another, give the attention over all keys.

    For any keys, mask, cut into n blocks and references; blocks that the mask hides are nothing. A
    ring is such an order on each device. Outputs of each turn's softmax alone merge as well, by their
    log-sum-exps: so a loop over turns finds it. The backward pass finds the same softmax and the
    gradients of scores, block by block, from the saved log-sum-exp, and from what the output and its
    gradient sum to as products, which is known before the loop. (Claim F2; 2310.01889, section 3)
    """
    return (
        *_attention(k.part("blocks")),
        _ring_order(k.part("ring")),
        *backward_from_the_log_sum_exp(k.part("backward")),
        shares_merge_turn_by_turn(k.part("turns")),
        _known_before_the_loop(k.part("products")),
    )
