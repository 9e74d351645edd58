"""E4-E8: the conditions are independent, and each hypothesis is needed. Counterexamples.

Each is found by the solver, then the same definitions are evaluated again in exact fractions (E8: in
the machine's own floating-point numbers). Small runs: two devices, one sample each, one element, and
gradient descent; sample x has the gradient slope_x * p + offset_x at parameter p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from proofs.claim import claim
from proofs.meaning.optimizers import require_published
from proofs.tools.sums import partition
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import (
    And,
    Float64,
    FPVal,
    If,
    IntSort,
    Not,
    Or,
    Q,
    RealSort,
    RealVal,
    Term,
    ToReal,
    fp,
)
from spec.meaning import conditions
from spec.models import training

RATE = 1


def every(*facts: Any) -> Any:
    """All of them, as a truth value or as a formula."""
    return all(facts) if all(isinstance(f, bool) for f in facts) else And(*facts)


def some(*facts: Any) -> Any:
    """At least one of them."""
    return any(facts) if all(isinstance(f, bool) for f in facts) else Or(*facts)


def no(fact: Any) -> Any:
    """Not that."""
    return not fact if isinstance(fact, bool) else Not(fact)


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """One of two values."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    return If(condition, then, otherwise)


def holds(condition: conditions.Condition) -> Any:
    """Condition of the specification, as a truth value or as a formula."""
    when, then = condition
    premises = when if isinstance(when, list) else [when]
    return some(*(no(p) for p in premises), then)


def nonzero(*values: Any) -> list[Any]:
    """None of them is zero: a counterexample that is not one by accident."""
    return [no(value == 0) for value in values]


SAMPLES = "slope0 offset0 slope1 offset1"


@dataclass(frozen=True)
class Step:
    """One step of two devices, and what the conditions say of it."""

    integrity: Any
    agreement: Any
    freshness: Any
    initial: Any
    match: Any


def step(
    start: Any,
    slope0: Any,
    offset0: Any,
    slope1: Any,
    offset1: Any,
    copies: tuple[Any, Any],
    seen: tuple[Any, Any],
    applied: tuple[Any, Any],
    updates: tuple[bool, bool] = (True, True),
) -> Step:
    """Device d has copies[d], reads seen[d] for its sample, applies applied[d] if it updates."""
    slopes, offsets = (slope0, slope1), (offset0, offset1)
    gradients = [a * p + b for a, p, b in zip(slopes, seen, offsets, strict=True)]
    whole = sum(a * start + b for a, b in zip(slopes, offsets, strict=True))
    after = [
        training.sgd(c, g, RATE) if u else c for c, g, u in zip(copies, applied, updates, strict=True)
    ]
    single = training.sgd(start, whole, RATE)
    return Step(
        every(
            *(
                holds(conditions.gradient_integrity(u, g, gradients[0] + gradients[1]))
                for u, g in zip(updates, applied, strict=True)
            )
        ),
        every(
            holds(conditions.agreement(True, True, *copies)),
            holds(conditions.agreement(True, True, *after)),
        ),
        every(*(holds(conditions.freshness(True, s, c)) for s, c in zip(seen, copies, strict=True))),
        every(*(holds(conditions.match(True, c, start)) for c in copies)),
        every(*(holds(conditions.match(True, c, single)) for c in after)),
    )


def _refute(
    k: Kernel, name: str, unknowns: str, claim: Callable[..., tuple[Any, Any]], whole: bool = False
) -> Theorem:
    """Refute `given implies claim`, both made by the same function from terms and from fractions.

    `whole`: look among the whole numbers.
    """
    terms = k.integers(unknowns) if whole else k.reals(unknowns)
    given, then = claim(*terms)

    def replay(**values: Fraction) -> bool:
        when, follows = claim(*(values[u] for u in unknowns.split()))
        return bool(not when or follows)

    return k.refute(name, then, terms, replay, given=[given])


@claim("E4")
def conditions_are_independent(k: Kernel) -> tuple[Theorem, ...]:
    """Refuted: one of the two conditions implies the other, or one alone suffices for Match.

    (Claim E4)
    """

    def stale(start: Any, a: Any, b: Any, c: Any, d: Any, seen: Any, applied: Any) -> Any:
        s = step(start, a, b, c, d, (start, start), (start, seen), (applied, applied))
        given = every(s.integrity, s.initial, s.agreement, *nonzero(a, c, seen, applied))
        return given, some(s.freshness, s.match)

    def unpublished(start: Any, a: Any, b: Any, c: Any, d: Any, applied: Any) -> Any:
        s = step(start, a, b, c, d, (start, start), (start, start), (applied, 0), (True, False))
        given = every(s.integrity, s.initial, s.freshness, *nonzero(a, c, start, applied))
        return given, some(s.agreement, s.match)

    def unsummed(start: Any, a: Any, b: Any, c: Any, d: Any, applied: Any) -> Any:
        s = step(start, a, b, c, d, (start, start), (start, start), (applied, applied))
        whole = a * start + b + c * start + d
        given = every(s.agreement, s.freshness, s.initial, *nonzero(a, c, applied, whole))
        return given, some(s.integrity, s.match)

    return (
        _refute(
            k.part("stale"), "whole_sums_of_stale_gradients", f"start {SAMPLES} seen applied", stale
        ),
        _refute(
            k.part("unpublished"),
            "whole_sums_applied_on_one_device_only",
            f"start {SAMPLES} applied",
            unpublished,
        ),
        _refute(
            k.part("unsummed"),
            "fresh_equal_copies_of_a_wrong_sum",
            f"start {SAMPLES} applied",
            unsummed,
        ),
    )


@claim("E7")
def agreement_is_not_enough(k: Kernel) -> tuple[Theorem, ...]:
    """Refuted: gradient integrity and state consistency suffice without equal initial values.

    (Claim E7)
    """

    def elsewhere(start: Any, a: Any, b: Any, c: Any, d: Any, copy: Any, applied: Any) -> Any:
        s = step(start, a, b, c, d, (copy, copy), (copy, copy), (applied, applied))
        return every(s.integrity, s.agreement, s.freshness, *nonzero(a, c, start)), s.match

    return (_refute(k, "consistent_from_another_start", f"start {SAMPLES} copy applied", elsewhere),)


@claim("E5")
def necessity_needs_its_hypotheses(k: Kernel) -> tuple[Theorem, ...]:
    """Refuted: a run that matches has gradient integrity and fresh reads, for every optimizer.

    (Claim E5)
    """

    def sign_sgd(weight: Any, whole: Any, applied: Any) -> Any:
        updates = [weight - training.sign(g, choose) for g in (whole, applied)]
        return updates[0] == updates[1], applied == whole

    def clipping(weight: Any, whole: Any, applied: Any) -> Any:
        updates = [weight - training.clip_value(g, 1, choose) for g in (whole, applied)]
        return updates[0] == updates[1], applied == whole

    def adam(weight: Any, whole: Any, applied: Any, root: Any, root2: Any) -> Any:
        half = Fraction(1, 2) if isinstance(weight, Fraction) else Q(1, 2)
        one, other = (
            _first_adam_step(weight, g, r, 0, half) for g, r in ((whole, root), (applied, root2))
        )
        return every(one[1], other[1], one[0] == other[0]), applied == whole

    def constant(start: Any, b: Any, d: Any, seen: Any, applied: Any) -> Any:
        s = step(start, 0 * start, b, 0 * start, d, (start, start), (start, seen), (applied, applied))
        return every(s.match, s.initial, s.agreement, *nonzero(b, d, seen)), s.freshness

    weights = "weight whole applied"
    require_published(k.claim)
    return (
        _refute(k.part("sign"), "sign_sgd_hides_the_size_of_a_gradient", weights, sign_sgd),
        _refute(k.part("clip"), "clipping_hides_what_is_above_the_bound", weights, clipping),
        _refute(k.part("adam"), "adam_without_epsilon_hides_a_scale", f"{weights} root root2", adam),
        _refute(
            k.part("constant"),
            "a_constant_gradient_hides_stale_reads",
            "start offset0 offset1 seen applied",
            constant,
        ),
        _adam_hides_the_scale_at_every_step(k.part("every_step")),
        _adam_with_epsilon_shows_its_first_gradient(k.part("epsilon")),
    )


def _first_adam_step(weight: Any, gradient: Any, root: Any, epsilon: Any, half: Any) -> tuple[Any, Any]:
    """The weight after Adam's first step, at rate 1, and that its root is one.

    From zero moments, with beta1 = beta2 = 1/2: the bias corrections multiply the moments by 2.
    """
    first, second = training.adam_moments(0, 0, gradient, half, half)
    is_root = every(root > 0, root * root == second * 2)
    return training.adam_weight(weight, first * 2, root, 1, epsilon), is_root


def _adam_with_epsilon_shows_its_first_gradient(k: Kernel) -> Theorem:
    """With a positive epsilon Adam's first step is another for another gradient."""
    weight, whole, applied, root, root2, epsilon = k.reals("weight whole applied root root2 epsilon")
    one, other = (
        _first_adam_step(weight, g, r, epsilon, Q(1, 2)) for g, r in ((whole, root), (applied, root2))
    )
    given = [epsilon > 0, one[1], other[1], one[0] == other[0]]
    return k.prove("adam_with_epsilon_shows_its_first_gradient", applied == whole, given)


def _adam_hides_the_scale_at_every_step(k: Kernel) -> Theorem:
    """Adam with epsilon = 0 moves its weights alike for gradients g(t) and c g(t), at every step."""
    t = k.integers("t")
    c, beta1, beta2, rate = (k.fixed(x, RealSort()) for x in ("scale", "beta1", "beta2", "rate"))
    g = k.function("g", IntSort(), RealSort())
    zero = RealVal(0)

    def moment(name: str, which: int, factor: Any) -> Any:
        betas = (beta1, beta2)
        return k.recursion(
            name,
            [],
            t,
            zero,
            lambda before: training.adam_moments(before(), before(), factor * g(t), *betas)[which],
        )

    first, first0, first1 = moment("first", 0, 1)
    scaled_first, scaled_first0, scaled_first1 = moment("scaled_first", 0, c)
    second, second0, second1 = moment("second", 1, 1)
    scaled_second, scaled_second0, scaled_second1 = moment("scaled_second", 1, c)
    firsts = k.induct(
        "first_moments_scale",
        t,
        scaled_first(t) == c * first(t),
        base=[first0, scaled_first0],
        step=[first1, scaled_first1],
    )
    seconds = k.induct(
        "second_moments_scale_twice",
        t,
        scaled_second(t) == c * c * second(t),
        base=[second0, scaled_second0],
        step=[second1, scaled_second1],
    )
    x, root, scaled_root, w = k.reals("moment root scaled_root w")
    moved, adam = k.define("moved", [w, x, root], training.adam_weight(w, x, root, rate, 0))
    unscaled = k.prove(
        "scaling_moment_and_root_changes_nothing",
        moved(w, x, root) == moved(w, c * x, c * root),
        given=[c > 0, root > 0],
        uses=[adam, adam.at(moment=c * x, root=c * root)],
    )
    is_root, rule = k.define("is_root", [root, x], And(root > 0, root * root == x))
    scales = k.prove(
        "roots_scale",
        And(root > 0, scaled_root == c * root),
        given=[c > 0, is_root(root, x), is_root(scaled_root, c * c * x)],
        uses=[rule, rule.at(root=scaled_root, moment=c * c * x)],
    )
    return k.prove(
        "adam_without_epsilon_moves_alike",
        moved(w, first(t), root) == moved(w, scaled_first(t), scaled_root),
        given=[
            *(t >= 0, c > 0),
            *(is_root(root, second(t)), is_root(scaled_root, scaled_second(t))),
        ],
        uses=[firsts, seconds, unscaled.at(moment=first(t)), scales.at(moment=second(t))],
    )


@claim("E6")
def local_norm_clipping_diverges(k: Kernel) -> tuple[Theorem, ...]:
    """Updates that are not elementwise may use local norms on sharded gradients. (Claim E6)

    Refuted; and summing the squared norms over the shards, one scalar all-reduce, repairs it.
    """

    def local(g0: Any, g1: Any, norm: Any) -> Any:
        # each of two devices has one element; the norm of one number is its size
        sizes = [x for g in (g0, g1, norm) for x in (g > 0, g < 6)]
        norms = every(*sizes, norm * norm == g0 * g0 + g1 * g1)
        clipped = [(_real(g), _real(own), _real(norm)) for g, own in ((g0, g0), (g1, g1))]
        return norms, every(
            *(
                training.clip_by_norm(g, own, 1, choose) == training.clip_by_norm(g, all_, 1, choose)
                for g, own, all_ in clipped
            )
        )

    return (
        _refute(k.part("local"), "local_norms_clip_differently", "g0 g1 norm", local, whole=True),
        _summed_norms_clip_alike(k.part("repaired")),
    )


def _real(number: Any) -> Any:
    return ToReal(number) if isinstance(number, Term) else number


def _summed_norms_clip_alike(k: Kernel) -> Theorem:
    """The sum over devices of their shards' squared norms is the whole squared norm, for every n."""
    d, j = k.integers("d j")
    n, psi = k.fixed("n", IntSort()), k.fixed("psi", IntSort())
    sizes = k.suppose("sizes", [], psi >= 1)
    owner = k.function("owner", IntSort(), IntSort())
    among = k.suppose("owners_are_devices", [j], And(owner(j) >= 0, owner(j) < n))
    g = k.function("g", IntSort(), RealSort())
    _, summed, whole, same = partition(k, "squares", d, j, owner, among, n, g(j) * g(j))
    norm, reduced, bound = k.reals("norm reduced bound")
    return k.prove(
        "norms_summed_over_shards_clip_alike",
        training.clip_by_norm(g(j), reduced, bound, choose)
        == training.clip_by_norm(g(j), norm, bound, choose),
        given=[
            norm >= 0,
            reduced >= 0,
            norm * norm == whole(psi),
            reduced * reduced == summed(psi, n),
        ],
        uses=[same.at(j=psi), sizes],
    )


@claim("E8")
def floats_are_not_a_ring(k: Kernel) -> tuple[Theorem, ...]:
    """Training matches bit for bit in floating-point arithmetic too. (Claim E8)

    Refuted: one device adds three samples' gradients in order; of two devices the second adds the
    last two, and then the sums are added. IEEE 754 binary64, round to nearest.
    """
    small = k.constant("g", Float64())

    def add(a: Any, b: Any) -> Any:
        return a + b if isinstance(a, float) else fp("fp.add", a, b)

    def same(one: Any, g: Any) -> Any:
        single, devices = add(add(one, g), g), add(one, add(g, g))
        return single == devices if isinstance(g, float) else fp("fp.eq", single, devices)

    return (
        k.refute(
            "sums_depend_on_their_order",
            same(FPVal(1.0), small),
            [small],
            lambda g: bool(same(1.0, g)),
            given=[
                fp("fp.gt", small, FPVal(2.0**-53)),
                fp("fp.lt", small, FPVal(2.0**-53 + 2.0**-73)),
            ],
        ),
    )
