"""T2, the other half: what compares unequal is something else than a single device has, in some run.

The run is of a loss that is linear in its weights, and of an optimizer that follows a schedule. Of all
original values one alone is 1, the one that compares unequal, and of a contribution that of one
device alone; all others are 0. So what a device has is how often it has that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.every_line import EveryLine
from proofs.checking.symbolic_schedule import (
    CONTRIBUTION,
    INT,
    MOMENT,
    ONE,
    REAL,
    ROW,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    Language,
    indicator,
)
from proofs.claim import claim
from proofs.tools.sums import partition, total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or


class Exactness(EveryLine):
    """The run in which a comparison that comes out unequal is of different values."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        k, t, b, s, d, i, j = self.k, *self.variables()
        self.odd, self.contributor = (k.fixed(name, INT) for name in ("odd", "contributor"))
        self.linear, self.scheduled = self._model()
        self.one_name = k.suppose(
            "states_have_one_name", [s], Implies(self.is_state(s), l.which(s) == 0)
        )
        fault = And(i >= 0, i < l.n, l.amount(t, b, s, d, i, j) != 0)
        of_device, self.fault_of, self.fault_shown, self.fault_found = k.choose(
            "has_a_fault_of", [t, b, s, d, j], i, fault
        )
        self.faulty, self.fault, self.faulty_shown, self.faulty_found = k.choose(
            "has_a_fault", [t, b, d, j], s, And(self.is_wrong(s), of_device(t, b, s, d, j))
        )
        self.values_are = self._values()

    def is_wrong(self, s: Any) -> Bool:
        """Whether an original value is what a line computed of other values than it should."""
        return Or(self.l.what(s) == WRONG, self.l.what(s) == WRONG_MOMENT)

    def _is_odd(self, what: Any, u: Any) -> Bool:
        """Whether the odd value is of a kind and a step."""
        return And(self.l.what(self.odd) == what, self.l.time(self.odd) == u)

    def _model(self) -> tuple[Theorem, Theorem]:
        """Gradients that do not depend on the weights, and states that do not depend on gradients."""
        l, k, u, m, i, j = self.l, self.k, self.l.u, self.l.m, self.l.i, self.l.j
        view, activations = k.constant("read_view", ROW), k.constant("read_activations", ROW)
        here = And(self._is_odd(CONTRIBUTION, u), m == l.which(self.odd), i == self.contributor)
        linear = k.suppose(
            "the_loss_is_linear",
            [view, activations, u, m, i, j],
            l.gradient(view, activations, u, m, i)[j] == indicator(here),
        )
        scheduled = k.suppose(
            "the_optimizer_follows_a_schedule",
            [u, j],
            And(
                l.theta(u)[j] == indicator(self._is_odd(WEIGHT, u)),
                l.omega(u)[j] == indicator(self._is_odd(MOMENT, u)),
            ),
        )
        return linear, scheduled

    def _values(self) -> Theorem:
        """The odd value is 1 where it is, all others are 0."""
        l, k, s, d, j, odd = self.l, self.k, self.l.s, self.l.d, self.l.j, self.odd
        here = And(s == odd, Or(self.is_state(odd), d == self.contributor))
        weights = l.theta(l.time(s))
        own = {"read_view": weights, "read_activations": weights}
        return k.prove(
            "one_value_is_odd",
            l.original(s, d, j) == indicator(here),
            [Not(self.is_wrong(s))],
            [
                l.original_is,
                self.linear.at(u=l.time(s), m=l.which(s), i=d, **own),
                self.scheduled.at(u=l.time(s)),
                *(fact.at(s=each) for fact in (l.name_is_its_own, self.one_name) for each in (s, odd)),
            ],
        )

    def _stands_for_it(self) -> Theorem:
        """A place stands for how often the device has the odd value: it has nothing of all others."""
        l, k, t, b, s, d, i, j = self.l, self.k, *self.variables()
        odd, contributor = self.odd, self.contributor
        given = [Not(self.faulty(t, b, d, j))]
        once = l.amount(t, b, s, d, contributor, j)
        state = self.is_state(odd)
        of_it = If(state, self.seen(t, b, s, d, j, i), If(contributor < i, once, ZERO))
        value = l.original(s, i, j)
        shares = k.induct(
            "shares_of_the_odd_value",
            i,
            self.shares(t, b, s, d, j, i) == If(s == odd, of_it, ZERO),
            [*given, i <= l.n, contributor >= 0],
            base=[self.shares.start, self.seen.start],
            step=[
                self.shares.next,
                self.seen.next,
                self.values_are.at(d=i),
                self.fault_shown,
                self.faulty_shown,
                *(
                    self.times_is.at(multiple=a, multiplied=v)
                    for a, v in ((ZERO, value), (l.amount(t, b, s, d, i, j), ZERO))
                ),
                self.times_is.at(multiple=l.amount(t, b, s, d, i, j), multiplied=ONE),
            ],
        )
        found = If(state, self.seen(t, b, odd, d, j, l.n), l.amount(t, b, odd, d, contributor, j))
        return k.induct(
            "places_stand_for_the_odd_value",
            s,
            self.stands_for(t, b, d, j, s) == If(odd < s, found, ZERO),
            [*given, odd >= 0, contributor >= 0, contributor < l.n],
            base=[self.stands_for.start],
            step=[self.stands_for.next, shares.at(i=l.n)],
        ).at(s=l.bound)

    def unequal(self, always: Theorem) -> tuple[Theorem, ...]:
        """What compares unequal, of what is known and made of no wrong value, is another value."""
        l, k, t, b, s, d, i, j = self.l, self.k, *self.variables()
        u, odd, contributor = l.u, self.odd, self.contributor
        facts = [self._stands_for_it(), self.fine, always]
        of_step = l.is_of_step(odd, u)
        alone = k.induct(
            "the_odd_value_of_all_devices",
            i,
            l.all(s, j, i) == indicator(And(s == odd, contributor < i)),
            [Not(self.is_wrong(s)), Not(self.is_state(s)), contributor >= 0],
            base=[l.all.start],
            step=[l.all.next, self.values_are.at(d=i)],
        )
        nothing = k.induct(
            "the_whole_gradient_of_the_model",
            s,
            self.of_step(u, j, s) == indicator(And(odd < s, of_step)),
            [odd >= 0, contributor >= 0, contributor < l.n],
            base=[self.of_step.start],
            step=[self.of_step.next, alone.at(i=l.n)],
        )
        named = [
            l.name_is_its_own.at(s=odd),
            self.one_name.at(s=odd),
            self.scheduled,
        ]

        def differs(name: str, what: Any, right: Any, about: Sequence[Theorem]) -> Theorem:
            state = None if what is None else l.state(what, u)
            at = {"s": odd, "i": contributor}
            compares = self.compares(t, b, state, u)
            unequal = Not(substitute(compares, (s, odd), (i, contributor)))
            return k.prove(
                f"{name}_that_compare_unequal_differ",
                l.has(t, b, d)[j] != right,
                [*self.met_here(), unequal],
                [*facts, self.compared(t, b, state, u).at(**at), *about],
            )

        def state(name: str, what: Any, row: Any) -> Theorem:
            return differs(name, what, row[j], [*named, l.names.at(w=what, m=IntVal(0))])

        return (
            state("weights", WEIGHT, l.theta(u)),
            state("moments", MOMENT, l.omega(u)),
            differs(
                "gradients",
                None,
                l.whole(u, j, l.micro_steps),
                [self.whole, nothing.at(s=l.bound)],
            ),
        )

    def met_here(self) -> list[Bool]:
        """Device d knows what is in place b before line t, and nothing in it is wrong; u is a step."""
        l, odd = self.l, self.odd
        return [
            *(l.t >= 0, l.t <= l.last, l.u >= 0, l.u <= l.last, odd >= 0, odd < l.bound),
            *self.on_a_device,
            self.knows(l.t, l.b),
            Not(self.faulty(l.t, l.b, l.d, l.j)),
        ]


@claim("T2")
def what_compares_equal_matches(k: Kernel) -> tuple[Theorem, ...]:
    """On any mesh, values of any schedule compare equal if and only if every run has the right ones.

    The schedule is a symbol: its lines, and the groups of devices that they are along, are functions
    of which nothing is said. amount(t, b, s, d, i, j) is how often device d has device i's value s:
    it runs the lines, as values do. Equal: of a needed state there is one, of others none; of a whole
    gradient there is each device's contribution once; of all else nothing. Then what is kept is the
    single device's after every step. Unequal, of what is known and made of no wrong value: with a loss
    that is linear in its weights and an optimizer that follows a schedule the device has something
    else. (Claim T2)
    """
    matching = Exactness(Language(k))
    always = matching.always()
    halves = matching.at_the_end(always), *matching.unequal(always)
    return *halves, _each_sample_is_contributed_once(k.part("samples"))


def _each_sample_is_contributed_once(k: Kernel) -> Theorem:
    """Whoever computes which samples: contributions of devices in micro-steps are those of all samples.

    A device's contribution is the sum over the samples it computes in a micro-step, as a summed loss
    has it; a whole gradient is the sum over the batch.
    """
    x, m, i = k.integers("x m i")
    devices, micro_steps = k.fixed("devices", INT), k.fixed("micro_steps", INT)
    device_of, micro_of = k.function("device_of", INT, INT), k.function("micro_step_of", INT, INT)
    placed = [
        k.suppose(f"each_sample_has_one_{name}", [x], And(of(x) >= 0, of(x) < count))
        for name, of, count in (
            ("device", device_of, devices),
            ("micro_step", micro_of, micro_steps),
        )
    ]
    sample = k.function("sample_gradient", INT, REAL)
    share, in_steps, whole, by_steps = partition(
        k, "micro_step", m, x, micro_of, placed[1], micro_steps, sample(x)
    )
    mine = If(micro_of(x) == m, sample(x), ZERO)
    _, of_devices, step, by_devices = partition(
        k, "device", i, x, device_of, placed[0], devices, mine, [m]
    )
    same = k.induct(
        "a_micro_steps_samples",
        x,
        step(m, x) == share(m, x),
        base=[step.start, share.start],
        step=[step.next, share.next],
    )
    contributed = total(k, "contributed", [x], m, of_devices(m, x, devices))
    every = k.induct(
        "contributions_of_all",
        m,
        contributed(x, m) == in_steps(x, m),
        [x >= 0],
        base=[contributed.start, in_steps.start],
        step=[contributed.next, in_steps.next, by_devices, same],
    )
    return k.prove(
        "each_sample_is_contributed_once",
        contributed(x, micro_steps) == whole(x),
        [x >= 0],
        [every.at(m=micro_steps), by_steps, placed[1]],
    )
