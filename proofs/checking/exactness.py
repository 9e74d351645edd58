"""T2, the other half: what is right in every run compares equal, while all before it did.

For each original value, of one device if it is a contribution, there is a run in which it alone is 1:
of a loss that is linear in its weights, or quadratic in one device's for one micro-step (as
`wrong_views` needs it), and of an optimizer that follows a schedule. What a device has is then how
often it has that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.first_unequal import FirstUnequal
from proofs.checking.matching import contributed
from proofs.checking.symbols import (
    BOOL,
    CONTRIBUTION,
    INT,
    MOMENT,
    NORM,
    ONE,
    ROW,
    TOKENS,
    WEIGHT,
    ZERO,
    Run,
    WhatSort,
    indicator,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not


class Exactness(FirstUnequal):
    """The run of an original value, in which what devices have is right if and only if they have it as
    often as is needed.
    """

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        k, t, b, s, d, i, j = self.k, *self.variables()
        closing = l.closing
        whose = [closing.unwritten_constant(name, INT) for name in ("odd", "contributor")]
        where = [closing.unwritten_constant(name, INT) for name in ("curved_line", "reader")]
        (self.odd, self.contributor), (self.curved, self.reader) = whose, where
        self.of_view = closing.unwritten_constant("reads_its_view", BOOL)
        self.operand = closing.unwritten_constant("operand", WhatSort)
        self.decided = [*whose, *where, self.of_view, self.operand]
        self.made_run = closing.function_of(self.decided, "run_made_for", Run)()
        self.in_made_run = closing.where((l.run, self.made_run)).as_kernel
        self.quadratic, self.scheduled = self._model()
        self.norms, self.norm_parts = self._norms()
        self.one_name = k.suppose("states_have_one_name", [s], Implies(l.is_state(s), l.which(s) == 0))
        fault = And(i >= 0, i < l.n, l.amount(t, b, s, d, i, j) != 0)
        of_device, self.fault_of, self.fault_shown, self.fault_found = k.choose(
            "has_a_fault_of", [t, b, s, d, j], i, fault
        )
        self.faulty, self.fault, self.faulty_shown, self.faulty_found = k.choose(
            "has_a_fault", [t, b, d, j], s, And(self.is_wrong(s), of_device(t, b, s, d, j))
        )
        self.values_are = self._values()

    @property
    def alone(self) -> list[Bool]:
        """Who has the odd value: one device, the first if all have it alike."""
        who = self.contributor
        return [who >= 0, who < self.l.n, Implies(self.l.is_state(self.odd), who == 0)]

    def _is_odd(self, what: Any, u: Any) -> Bool:
        """Whether the odd value is of a kind and a step."""
        return And(self.l.what(self.odd) == what, self.l.time(self.odd) == u)

    def _model(self) -> tuple[Theorem, Theorem]:
        """A loss that is linear, but for a square on one device in one micro-step, least at the single
        device's weights; and states that do not depend on gradients.
        """
        l, k, u, m, i, j = self.l, self.in_made_run, self.l.u, self.l.m, self.l.i, self.l.j
        view, activations = k.constant("read_view", ROW), k.constant("read_activations", ROW)
        here = And(self._is_odd(CONTRIBUTION, u), m == l.which(self.odd), i == self.contributor)
        read = If(self.of_view, view[j], activations[j])
        square = If(self.is_curved(u, m, i), read - l.theta(u)[j], ZERO)
        quadratic = k.suppose(
            "the_loss_is_quadratic",
            [view, activations, u, m, i, j],
            l.gradient(view, activations, u, m, i)[j] == indicator(here) + square,
        )
        scheduled = k.suppose(
            "the_optimizer_follows_a_schedule",
            [u, j],
            And(
                l.theta(u)[j] == indicator(self._is_odd(WEIGHT, u)),
                l.omega(u)[j] == indicator(self._is_odd(MOMENT, u)),
            ),
        )
        counted = And(self._is_odd(TOKENS, u), m == l.which(self.odd), i == self.contributor)
        self.tokens = k.suppose(
            "nobody_else_has_tokens", [u, m, i], l.tokens(u, m, i) == indicator(counted)
        )
        return quadratic, scheduled

    def is_curved(self, u: Any, m: Any, i: Any) -> Bool:
        """Whether the loss of a device in a micro-step has a square."""
        l = self.l
        return And(u == l.step(self.curved), m == l.micro(self.curved), i == self.reader)

    def _norms(self) -> tuple[Theorem, Theorem]:
        """Norms that follow a schedule, and are off by how many elements are not the single device's;
        what is added up of each, likewise.
        """
        l, k = self.l, self.in_made_run
        norms = k.suppose(
            "norms_are_off_by_what_is_counted",
            [l.u, l.y],
            l.norm(l.u, l.y)
            == indicator(self._is_odd(NORM, l.u)) + l.y - l.of_wholes(l.u, l.all_weights),
        )
        parts = k.suppose(
            "norms_count_what_is_another_gradient",
            [l.u, l.y],
            l.part_of_norm(l.u, l.y) == indicator(l.y != indicator(l.is_of_step(self.odd, l.u))),
        )
        return norms, parts

    def _values(self) -> Theorem:
        """The odd value is 1 where it is, all others are 0."""
        l, k, s, d, j, odd = self.l, self.in_made_run, self.l.s, self.l.d, self.l.j, self.odd
        here = And(s == odd, d == self.contributor)
        weights = l.theta(l.time(s))
        own = {"read_view": weights, "read_activations": weights}
        return k.prove(
            "one_value_is_odd",
            l.original(s, d, j) == indicator(here),
            [Not(self.is_wrong(s)), self.alone[2]],
            [
                l.original_is,
                self.quadratic.at(u=l.time(s), m=l.which(s), i=d, **own),
                self.scheduled.at(u=l.time(s)),
                self._norm_at(l.time(s)),
                self.tokens.at(u=l.time(s), m=l.which(s), i=d),
                *(fact.at(s=each) for fact in (l.name_is_its_own, self.one_name) for each in (s, odd)),
            ],
        )

    def _norm_at(self, u: Any) -> Theorem:
        """What the norm of a step is."""
        return self.norms.at(u=u, y=self.l.of_wholes(u, self.l.all_weights))

    def _stands_for_it(self) -> Theorem:
        """A place stands for how often the device has the odd value: it has nothing of all others."""
        l, k, t, b, s, d, i, j = self.l, self.in_made_run, *self.variables()
        odd, contributor = self.odd, self.contributor
        given = [Not(self.faulty(t, b, d, j))]
        once = l.amount(t, b, s, d, contributor, j)
        value = l.original(s, i, j)
        shares = k.induct(
            "shares_of_the_odd_value",
            i,
            self.shares(t, b, s, d, j, i) == If(And(s == odd, contributor < i), once, ZERO),
            [*given, i <= l.n, contributor >= 0, self.alone[2]],
            base=[self.shares.start],
            step=[
                self.shares.next,
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
        found = l.amount(t, b, odd, d, contributor, j)
        return k.induct(
            "places_stand_for_the_odd_value",
            s,
            self.stands_for(t, b, d, j, s) == If(odd < s, found, ZERO),
            [*given, odd >= 0, *self.alone],
            base=[self.stands_for.start],
            step=[self.stands_for.next, shares.at(i=l.n)],
        ).at(s=l.bound)

    def _without_fault(self) -> Theorem:
        """Up to the first comparison that comes out unequal, no device knows a wrong value."""
        t, b, d, j = self.l.t, self.l.b, self.l.d, self.l.j
        fault = self.fault(t, b, d, j)
        of = self.fault_of(t, b, fault, d, j)
        return self.k.prove(
            "no_device_has_a_fault_yet",
            Not(self.faulty(t, b, d, j)),
            [t >= 0, *self.on_a_device, self.knows(t, b), self.all_equal(j, t)],
            [
                self.faulty_found,
                self.fault_found.at(s=fault),
                self.has_it_shown.at(s=fault, i=of),
                self.nothing_is_wrong().at(s=fault, i=of),
            ],
        )

    def is_equal(self, t: Any, b: Any, state: Any, u: Any) -> Bool:
        """Whether what is in a place compares equal, of the odd value."""
        return substitute(
            self.compares(t, b, state, u), (self.l.s, self.odd), (self.l.i, self.contributor)
        )

    def is_unequal(self, t: Any, b: Any, state: Any, u: Any) -> list[Bool]:
        """That it does not."""
        return [*self.alone, Not(self.is_equal(t, b, state, u))]

    def who_shows(self, t: Any, b: Any, state: Any, u: Any, d: Any) -> Sequence[Theorem]:
        """Where something compares unequal on device d, who shows it: of amounts, that is said."""
        return ()

    def exact(self, always: Theorem) -> tuple[Theorem, ...]:
        """What is known, while all compared equal, is right if and only if it compares equal."""
        l, k, t, b, s, d, i, j = self.l, self.in_made_run, *self.variables()
        u, odd, contributor = l.u, self.odd, self.contributor
        facts = [self._stands_for_it(), self.fine, always, self._without_fault()]
        alone = k.induct(
            "the_odd_value_of_all_devices",
            i,
            l.all(s, j, i) == indicator(And(s == odd, contributor < i)),
            [Not(self.is_wrong(s)), contributor >= 0, self.alone[2]],
            base=[l.all.start],
            step=[l.all.next, self.values_are.at(d=i)],
        )
        self.whole_of_model = {
            kind: k.induct(
                f"the_whole_{name}_of_the_model",
                s,
                self.whole(kind)[0](u, j, s) == indicator(And(odd < s, l.is_of_step(odd, u, kind))),
                [odd >= 0, *self.alone],
                base=[self.whole(kind)[0].start],
                step=[self.whole(kind)[0].next, alone.at(i=l.n)],
            )
            for kind, name in ((CONTRIBUTION, "gradient"), (TOKENS, "count"))
        }
        named = [
            l.name_is_its_own.at(s=odd),
            self.one_name.at(s=odd),
        ]

        def exactly(name: str, what: Any, about: Sequence[Theorem]) -> Theorem:
            state = self.needed(what, u)
            compared = self.compared(t, b, state, u).at(s=odd, i=contributor)
            right = l.has(t, b, d)[j] == self.right_value(what, u)
            return k.prove(
                f"{name}_are_right_if_and_only_if_they_compare_equal",
                right == self.is_equal(t, b, state, u),
                [*self.met_here(), *self.alone],
                [*facts, compared, *about],
            )

        def state(name: str, what: Any, about: Sequence[Theorem]) -> Theorem:
            return exactly(name, what, [*named, *about, l.names.at(w=what, m=IntVal(0))])

        def contribution(name: str, what: Any) -> Theorem:
            kind = contributed(what)
            return exactly(name, what, [self.whole(kind)[1], self.whole_of_model[kind].at(s=l.bound)])

        return (
            state("weights", WEIGHT, [self.scheduled]),
            state("moments", MOMENT, [self.scheduled]),
            contribution("gradients", None),
            state("norms", NORM, [self._norm_at(u)]),
            contribution("counts", TOKENS),
        )

    def met_here(self) -> list[Bool]:
        """Device d knows what is in place b before line t, and all that was compared is equal."""
        l, odd = self.l, self.odd
        return [
            *(l.t >= 0, l.t <= l.last, l.u >= 0, l.u <= l.last, odd >= 0, odd < l.bound),
            *self.on_a_device,
            self.knows(l.t, l.b),
            self.all_equal(l.j, l.t),
        ]
