"""Runs of training, single-device and distributed, in symbols: what E1-E3 are about.

Devices, elements and optimizer states are arbitrary sets, so nothing depends on their number; model
and optimizer are arbitrary functions; steps and samples are natural numbers.
"""

from __future__ import annotations

from typing import Any

from proofs.tools.sums import Sum, total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import TRUE, And, ArraySort, BoolSort, DeclareSort, Implies, IntSort, RealSort
from spec.assumptions import DETERMINISM, LINEARITY
from spec.meaning import conditions
from spec.models.training import weighted

INT, REAL, BOOL = IntSort(), RealSort(), BoolSort()
Device, Element, Moment = (DeclareSort(s) for s in ("Device", "Element", "Moment"))
Parameters, Moments = ArraySort(Element, REAL), ArraySort(Element, Moment)


def implied(condition: conditions.Condition) -> Bool:
    """A condition of the specification as a formula."""
    when, then = condition
    if isinstance(when, list):
        when = And(*when)
    return then if when is TRUE else Implies(when, then)


class SingleDevice:
    """theta(t), omega(t): what one device makes of the batches."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.t, self.x = k.integers("t x")
        self.j, self.p = k.constant("j", Element), k.constant("p", Parameters)
        self.theta = k.function("theta", INT, Parameters)
        self.omega = k.function("omega", INT, Moments)
        self.next_weight = k.function("next_weight", REAL, Moment, REAL, REAL)
        self.next_moment = k.function("next_moment", REAL, Moment, REAL, Moment)
        # the gradient of sample x of step t's batch, at given parameters
        self.gamma = k.function("gamma", Parameters, INT, INT, Parameters)
        self.weight = k.function("weight", INT, INT, REAL)
        self.batch = k.function("batch", INT, INT)
        self.counted = k.suppose("batches_are_finite", [self.t], self.batch(self.t) >= 0)
        t, x, j, p = self.t, self.x, self.j, self.p
        self.samples: Sum = total(
            k, "samples", [p, t, j], x, weighted(self.weight(t, x), self.gamma(p, t, x)[j])
        )
        # the gradient of the batch's loss is the sum of its samples': an assumption
        self.gradient = k.function("gradient", Parameters, INT, Parameters)
        self.linear = k.axiom(
            "the_batch_gradient_is_the_sum",
            LINEARITY,
            self.gradient,
            self.samples.symbol,
            self.batch,
            p,
            t,
            j,
        )
        g = self.gradient(self.theta(t), t)[j]
        weight, moment = self.theta(t)[j], self.omega(t)[j]
        self.trains = k.suppose(
            "the_single_device_trains",
            [t, j],
            And(
                self.theta(t + 1)[j] == self.next_weight(weight, moment, g),
                self.omega(t + 1)[j] == self.next_moment(weight, moment, g),
            ),
        )


class Distributed(SingleDevice):
    """copy, state, seen, applied: what the devices make of the same batches."""

    def __init__(self, k: Kernel) -> None:
        super().__init__(k)
        self.d, self.e = k.constant("d", Device), k.constant("e", Device)
        t, j, d = self.t, self.j, self.d
        self.copy = k.function("copy", INT, Device, Parameters)
        self.state = k.function("state", INT, Device, Moments)
        self.seen = k.function("seen", INT, INT, Parameters)
        self.applied = k.function("applied", INT, Device, Parameters)
        self.keeps = k.function("keeps", Device, Element, BOOL)
        self.updates = k.function("updates", Device, Element, BOOL)
        self.owner = k.function("owner", Element, Device)
        self.current = k.function("current", INT, Parameters)
        self.current_moments = k.function("current_moments", INT, Moments)
        owner = self.owner(j)
        self.owned = k.suppose("every_element_has_an_owner_that_keeps_it", [j], self.keeps(owner, j))
        self.updated = k.suppose("its_owner_updates_it", [j], self.updates(owner, j))
        self.own = k.suppose(
            "current_is_what_the_owners_have",
            [t, j],
            self.current(t)[j] == self.copy(t, owner)[j],
        )
        self.own_moments = k.suppose(
            "current_moments_are_the_owners",
            [t, j],
            self.current_moments(t)[j] == self.state(t, owner)[j],
        )
        # each device computes the same function: an assumption
        weight_on = k.function("next_weight_on", Device, REAL, Moment, REAL, REAL)
        moment_on = k.function("next_moment_on", Device, REAL, Moment, REAL, Moment)
        r, s, g = k.constant("r", REAL), k.constant("s", Moment), k.constant("g", REAL)
        self.same_weight = k.axiom(
            "weights_are_updated_alike", DETERMINISM, weight_on, self.next_weight, d, r, s, g
        )
        self.same_moment = k.axiom(
            "moments_are_updated_alike", DETERMINISM, moment_on, self.next_moment, d, r, s, g
        )
        before = (d, self.copy(t, d)[j], self.state(t, d)[j], self.applied(t, d)[j])
        left = (self.copy, weight_on), (self.state, moment_on)
        progress = (
            conditions.progress(self.updates(d, j), has(t + 1, d)[j], makes(*before))
            for has, makes in left
        )
        self.device_updates = k.suppose(
            "devices_apply_their_gradients", [t, d, j], And(*map(implied, progress))
        )
        self.as_seen: Sum = total(
            k,
            "samples_as_seen",
            [t, j],
            self.x,
            weighted(self.weight(t, self.x), self.gamma(self.seen(t, self.x), t, self.x)[j]),
        )

    def update_at(self, d: Any) -> list[Theorem]:
        """The update of element j on device d, as the single device's functions."""
        t, j = self.t, self.j
        at = {"d": d, "r": self.copy(t, d)[j], "s": self.state(t, d)[j], "g": self.applied(t, d)[j]}
        return [self.device_updates.at(d=d), self.same_weight.at(**at), self.same_moment.at(**at)]

    # ---------------------------------------------------------------- hypotheses
    def suppose_init(self) -> Theorem:
        d, j = self.d, self.j
        return self.k.suppose(
            "init",
            [d, j],
            And(
                implied(conditions.match(self.keeps(d, j), self.copy(0, d)[j], self.theta(0)[j])),
                implied(conditions.match(self.updates(d, j), self.state(0, d)[j], self.omega(0)[j])),
            ),
        )

    def suppose_integrity(self) -> Theorem:
        t, d, j = self.t, self.d, self.j
        every = self.as_seen(t, j, self.batch(t))
        return self.k.suppose(
            "gradient_integrity",
            [t, d, j],
            implied(conditions.gradient_integrity(self.updates(d, j), self.applied(t, d)[j], every)),
        )

    def suppose_agreement(self) -> Theorem:
        t, d, e, j = self.t, self.d, self.e, self.j
        return self.k.suppose("agreement", [t, d, e, j], self.agrees(t, d, e, j))

    def agrees(self, t: Any, d: Any, e: Any, j: Any) -> Bool:
        return And(
            implied(
                conditions.agreement(
                    self.keeps(d, j), self.keeps(e, j), self.copy(t, d)[j], self.copy(t, e)[j]
                )
            ),
            implied(
                conditions.agreement(
                    self.updates(d, j), self.updates(e, j), self.state(t, d)[j], self.state(t, e)[j]
                )
            ),
        )

    def suppose_freshness(self) -> Theorem:
        t, x = self.t, self.x
        in_batch = And(x >= 0, x < self.batch(t))
        return self.k.suppose(
            "freshness",
            [t, x],
            implied(conditions.freshness(in_batch, self.seen(t, x), self.current(t))),
        )

    def matches(self, t: Any, d: Any, j: Any) -> Bool:
        return And(
            implied(conditions.match(self.keeps(d, j), self.copy(t, d)[j], self.theta(t)[j])),
            implied(conditions.match(self.updates(d, j), self.state(t, d)[j], self.omega(t)[j])),
        )

    # --------------------------------------------------------------------- lemma
    def fresh_sum(self, fresh: Theorem) -> Theorem:
        """With fresh reads, the sum as seen is the sum at the current parameters."""
        t, j, x = self.t, self.j, self.x
        current = {"p": self.current(t)}
        return self.k.induct(
            "fresh_reads_make_the_sum_at_current_parameters",
            x,
            self.as_seen(t, j, x) == self.samples(self.current(t), t, j, x),
            given=[x <= self.batch(t)],
            base=[self.as_seen.start, self.samples.start.at(**current)],
            step=[self.as_seen.next, self.samples.next.at(**current), fresh],
        )
