"""E1-E3: gradient integrity and state consistency decide whether training matches a single device."""

from __future__ import annotations

from proofs.claim import claim
from proofs.meaning.runs import INT, REAL, Distributed, Parameters, implied
from proofs.tools.sums import total
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, BoolVal, Const, DeclareSort, If, Implies, Or, Real, RealVal
from spec.meaning import conditions
from spec.models import training


@claim("E1")
def sufficiency(k: Kernel) -> tuple[Theorem, ...]:
    """Init, gradient integrity and state consistency at each step imply Match at each step.

    For any number of devices, steps, elements and samples, any model and any elementwise optimizer.
    (Claim E1; abstract, sentence 4)
    """
    r = Distributed(k)
    return (match_follows(r, r.suppose_integrity(), r.fresh_sum(r.suppose_freshness())),)


def match_follows(r: Distributed, integrity: Theorem, fresh_sum: Theorem) -> Theorem:
    """Match at every step, by induction over steps."""
    k, t, d, j = r.k, r.t, r.d, r.j
    init, agreement = r.suppose_init(), r.suppose_agreement()
    so_far = [r.current(t) == r.theta(t), r.current_moments(t) == r.omega(t)]
    facts = [
        r.own,
        r.own_moments,
        r.updated,
        r.trains,
        integrity.at(d=r.owner(j)),
        fresh_sum.at(x=r.batch(t)),
        r.counted,
        r.linear.at(p=r.theta(t)),
    ]
    update, weights_alike, moments_alike = r.update_at(r.owner(j))
    weights = k.extend(
        "owners_weights_stay_equal",
        k.prove(
            "one_weight_stays_equal",
            r.current(t + 1)[j] == r.theta(t + 1)[j],
            so_far,
            [*facts, r.own.at(t=t + 1), update, weights_alike],
        ),
        j,
    )
    moments = k.extend(
        "owners_moments_stay_equal",
        k.prove(
            "one_moment_stays_equal",
            r.current_moments(t + 1)[j] == r.omega(t + 1)[j],
            so_far,
            [*facts, r.own_moments.at(t=t + 1), update, moments_alike],
        ),
        j,
    )
    start = init.at(d=r.owner(j))
    weights0 = k.extend(
        "owners_weights_start_equal",
        k.prove(
            "one_weight_starts_equal",
            r.current(0)[j] == r.theta(0)[j],
            (),
            [start, r.owned, r.own.at(t=0)],
        ),
        j,
    )
    moments0 = k.extend(
        "owners_moments_start_equal",
        k.prove(
            "one_moment_starts_equal",
            r.current_moments(0)[j] == r.omega(0)[j],
            uses=[start, r.updated, r.own_moments.at(t=0)],
        ),
        j,
    )
    owners = k.induct(
        "owners_match_the_single_device",
        t,
        And(r.current(t) == r.theta(t), r.current_moments(t) == r.omega(t)),
        base=[weights0, moments0],
        step=[weights, moments],
    )
    return k.prove(
        "every_copy_matches_the_single_device",
        r.matches(t, d, j),
        given=[t >= 0],
        uses=[
            *(owners, r.own, r.own_moments, r.owned, r.updated),
            agreement.at(e=r.owner(j)),
        ],
    )


@claim("E2")
def necessity_in_each_run(k: Kernel) -> tuple[Theorem, ...]:
    """A matching run agrees; and if the optimizer is jointly injective, it applies whole gradients.

    Jointly injective: the next weight and moment together determine the gradient, as in SGD,
    momentum and Adam. Whole: the batch's gradient at the current parameters; so with fresh reads,
    gradient integrity. (Claim E2; abstract, sentence 4)
    """
    r = Distributed(k)
    t, d, e, j = r.t, r.d, r.e, r.j
    match = k.suppose("match", [t, d, j], r.matches(t, d, j))
    agreement = k.prove("matching_copies_agree", r.agrees(t, d, e, j), uses=[match, match.at(d=e)])
    h = k.constant("h", REAL)
    w, s, g = k.constant("w", REAL), Const("s", r.state(t, d)[j].sort), Real("g")
    injective = k.suppose(
        "optimizer_is_jointly_injective",
        [w, s, g, h],
        Implies(
            And(
                r.next_weight(w, s, g) == r.next_weight(w, s, h),
                r.next_moment(w, s, g) == r.next_moment(w, s, h),
            ),
            g == h,
        ),
    )
    both = k.suppose("who_updates_an_element_keeps_it", [d, j], Implies(r.updates(d, j), r.keeps(d, j)))
    current = k.extend(
        "current_parameters_are_the_single_devices",
        k.prove(
            "one_current_parameter_is_the_single_devices",
            r.current(t)[j] == r.theta(t)[j],
            uses=[match.at(d=r.owner(j)), r.own, r.owned],
        ),
        j,
    )
    whole = k.prove(
        "applied_gradients_are_whole",
        r.applied(t, d)[j] == r.samples(r.current(t), t, j, r.batch(t)),
        given=[r.updates(d, j)],
        uses=[
            match,
            match.at(t=t + 1),
            both,
            *r.update_at(d),
            r.trains,
            current,
            r.linear.at(p=r.theta(t)),
            injective.at(
                w=r.theta(t)[j],
                s=r.omega(t)[j],
                g=r.applied(t, d)[j],
                h=r.gradient(r.theta(t), t)[j],
            ),
        ],
    )
    fresh_sum = r.fresh_sum(r.suppose_freshness())
    integrity = k.prove(
        "with_fresh_reads_gradient_integrity",
        r.applied(t, d)[j] == r.as_seen(t, j, r.batch(t)),
        given=[r.updates(d, j)],
        uses=[whole, fresh_sum.at(x=r.batch(t)), r.counted],
    )
    return (
        agreement,
        whole,
        integrity,
        *_usual_optimizers_are_jointly_injective(k.part("optimizers")),
    )


def _usual_optimizers_are_jointly_injective(k: Kernel) -> tuple[Theorem, ...]:
    w, m, g, h, rate, decay = k.reals("w m g h rate decay")
    sgd = k.prove(
        "sgd_is_injective",
        g == h,
        given=[rate != 0, training.sgd(w, g, rate) == training.sgd(w, h, rate)],
    )
    one, other = (training.momentum(w, m, x, rate, decay)[1] for x in (g, h))
    momentum = k.prove("momentum_is_jointly_injective", g == h, given=[one == other])
    v, beta1, beta2 = k.reals("v beta1 beta2")
    one, other = (training.adam_moments(m, v, x, beta1, beta2)[0] for x in (g, h))
    adam = k.prove("adam_is_jointly_injective", g == h, given=[beta1 < 1, one == other])
    return sgd, momentum, adam


@claim("E3")
def necessity_for_all_models(k: Kernel) -> tuple[Theorem, ...]:
    """A schedule that matches for every model, data and optimizer is whole and reads fresh.

    Whatever a schedule applies to an element is a combination of the gradients its devices computed,
    with coefficients that are its own. If it matches for every model, then each sample's gradient at
    the current parameters comes in with exactly its weight, and a gradient computed anywhere else,
    with none. So a sample that is used is used once, and was read fresh. (Claim E3)
    """
    return (
        _until_data_differ_so_do_runs(k.part("causality")),
        *_coefficients_are_the_weights(k.part("coefficients")),
    )


def _until_data_differ_so_do_runs(k: Kernel) -> Theorem:
    """Two runs whose models agree on the first steps' data are in the same state until then."""
    t = k.integers("t")
    world, slice_ = DeclareSort("World"), DeclareSort("ModelOnOneBatch")
    step = k.function("step", INT, world, slice_, world)
    one, other = (k.function(f"run_{x}", INT, world) for x in "ab")
    data, other_data = (k.function(f"data_{x}", INT, slice_) for x in "ab")
    until = k.fixed("until", INT)
    runs = [
        k.suppose(f"{run.name}_follows_the_schedule", [t], run(t + 1) == step(t, run(t), given(t)))
        for run, given in ((one, data), (other, other_data))
    ]
    begin = k.suppose("both_start_alike", [], one(0) == other(0))
    alike = k.suppose("models_agree_before", [t], Implies(t < until, data(t) == other_data(t)))
    return k.induct(
        "runs_agree_until_their_models_differ",
        t,
        one(t) == other(t),
        given=[t <= until],
        base=[begin],
        step=[*runs, alike],
    )


def _coefficients_are_the_weights(k: Kernel) -> tuple[Theorem, ...]:
    """Two models that differ at one point and one sample see the coefficient of just that reading."""
    i, x, sample = k.integers("i x sample")
    p, at = k.constant("p", Parameters), k.constant("at", Parameters)
    theta = k.fixed("theta", Parameters)
    seen, of, share = (
        k.function(n, INT, s) for n, s in (("seen", Parameters), ("sample_of", INT), ("share", REAL))
    )
    weight, batch, reads = (
        k.function("weight", INT, REAL),
        k.fixed("batch", INT),
        k.fixed("reads", INT),
    )
    counted = k.suppose("counts_are_counts", [], And(batch >= 0, reads >= 0))
    # gamma(p, x): the gradient of sample x at the element in question; nudged: at one point, one more
    gamma = k.function("gamma", Parameters, INT, REAL)
    here = And(p == at, x == sample)
    nudged, nudge = k.define(
        "nudged", [at, sample, p, x], gamma(p, x) + If(here, RealVal(1), RealVal(0))
    )
    applied = total(k, "applied", [], i, share(i) * gamma(seen(i), of(i)))
    applied2 = total(
        k, "applied_nudged", [at, sample], i, share(i) * nudged(at, sample, seen(i), of(i))
    )
    coefficient = total(
        k,
        "coefficient",
        [at, sample],
        i,
        If(And(seen(i) == at, of(i) == sample), share(i), RealVal(0)),
    )
    whole = total(k, "whole", [], x, training.weighted(weight(x), gamma(theta, x)))
    whole2 = total(
        k,
        "whole_nudged",
        [at, sample],
        x,
        training.weighted(weight(x), nudged(at, sample, theta, x)),
    )
    by_reading = k.induct(
        "a_nudge_shows_the_coefficient",
        i,
        applied2(at, sample, i) == applied(i) + coefficient(at, sample, i),
        base=[applied.start, applied2.start, coefficient.start],
        step=[applied.next, applied2.next, coefficient.next, nudge.at(p=seen(i), x=of(i))],
    )
    in_batch = And(at == theta, sample >= 0, sample < x)
    by_sample = k.induct(
        "a_nudge_shows_the_weight",
        x,
        whole2(at, sample, x) == whole(x) + If(in_batch, weight(sample), RealVal(0)),
        base=[whole.start, whole2.start],
        step=[whole.next, whole2.next, nudge.at(p=theta)],
    )
    # matching, with gradient descent of rate 1, for the model and for the nudged one
    start = k.constant("start", REAL)
    matches = k.suppose(
        "matches_with_the_model",
        [start],
        training.sgd(start, applied(reads), 1) == training.sgd(start, whole(batch), 1),
    )
    matches2 = k.suppose(
        "matches_with_every_nudged_model",
        [start, at, sample],
        training.sgd(start, applied2(at, sample, reads), 1)
        == training.sgd(start, whole2(at, sample, batch), 1),
    )
    facts = [matches, matches2, counted, by_reading.at(i=reads), by_sample.at(x=batch)]
    once = k.prove(
        "each_sample_comes_in_with_its_weight",
        coefficient(theta, sample, reads) == weight(sample),
        given=[sample >= 0, sample < batch],
        uses=[
            matches,
            matches2.at(at=theta),
            counted,
            by_reading.at(i=reads, at=theta),
            by_sample.at(x=batch, at=theta),
        ],
    )
    fresh = k.prove(
        "nothing_stale_comes_in",
        coefficient(at, sample, reads) == 0,
        given=[Or(at != theta, sample < 0, sample >= batch)],
        uses=facts,
    )
    # if one reading uses a sample, with a coefficient, it was fresh
    r0 = k.integers("reading")
    only = k.suppose(
        "each_sample_is_read_once",
        [i, r0],
        Implies(And(of(i) == of(r0), i >= 0, i < reads, r0 >= 0, r0 < reads), i == r0),
    )
    alone = k.induct(
        "the_coefficient_of_a_single_reading",
        i,
        coefficient(seen(r0), of(r0), i) == If(r0 < i, share(r0), RealVal(0)),
        given=[r0 >= 0, r0 < reads, i <= reads],
        base=[coefficient.start.at(at=seen(r0), sample=of(r0))],
        step=[coefficient.next.at(at=seen(r0), sample=of(r0)), only],
    )
    read_fresh = k.prove(
        "what_is_used_was_read_fresh",
        implied(conditions.freshness(share(r0) != 0, seen(r0), theta)),
        given=[r0 >= 0, r0 < reads],
        uses=[alone.at(i=reads), fresh.at(at=seen(r0), sample=of(r0))],
    )
    integrity = k.prove(
        "what_is_applied_is_every_sample_once",
        implied(conditions.gradient_integrity(BoolVal(True), applied(reads), whole(batch))),
        uses=[matches],
    )
    return once, fresh, read_fresh, integrity
