"""T4, the other half: what compares unequal is something else than the single device's, in some run.

The run is of a loss that is linear in its weights, and of an optimizer that follows a schedule. Of all
original values one alone is 1, the one that compares unequal, and of a contribution that of one
device alone; all others are 0. So what a device has is how often its form has that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from proofs.comparisons import ABSENT, CANCELLED, ONCE, SAME_ON_ALL, SUMMED
from proofs.kernel import Bool, Theorem
from proofs.lines import MOVES, Coefficients
from proofs.meaning import CASES, COUNT, literal
from proofs.soundness import Soundness
from proofs.symbolic_checker import CheckedLanguage
from proofs.symbolic_schedule import (
    BACKWARD,
    CONTRIBUTION,
    FIRSTS,
    INT,
    MOMENT,
    ONE,
    PLACES,
    ROW,
    WEIGHT,
    WRONG,
    UPDATE,
    WRONG_MOMENT,
    ZERO,
    first_of,
    place_of,
)

NOBODY = "a device that is neither seen by name nor looks"


def indicator(said: Bool) -> Any:
    """1 where a formula holds, 0 elsewhere."""
    return z3.If(said, ONE, ZERO)


class Exactness(Soundness):
    """The run in which a comparison that comes out unequal is of different values."""

    def __init__(self, l: CheckedLanguage) -> None:
        super().__init__(l)
        k, s = self.k, l.s
        self.odd, self.contributor = (k.fixed(name, INT) for name in ("odd", "contributor"))
        self.linear, self.scheduled = self._model()
        self.one_name = k.suppose(
            "states_have_one_name", [s], z3.Implies(self._is_state(s), l.which(s) == 0)
        )
        f = first_of(l.owner(l.j))
        some = z3.Or(*(c != 0 for c in l.form(l.t, l.b, s, f)))
        self.faulty, _, self.fault, _ = k.choose(
            "has_a_fault", [l.t, l.b, l.j], s, z3.And(self._is_wrong(s), some)
        )
        self.shown_by, self.shown_by_is = self._shown_by()

    def _is_state(self, s: Any) -> Bool:
        return z3.Or(self.l.what(s) == WEIGHT, self.l.what(s) == MOMENT)

    def _is_wrong(self, s: Any) -> Bool:
        return z3.Or(self.l.what(s) == WRONG, self.l.what(s) == WRONG_MOMENT)

    def _is_odd(self, what: Any, u: Any) -> Bool:
        """Whether the odd value is of a kind and a step."""
        return z3.And(self.l.what(self.odd) == what, self.l.time(self.odd) == u)

    # ------------------------------------------------------------------- the model
    def _model(self) -> tuple[Theorem, Theorem]:
        """Gradients that do not depend on the weights, and states that do not depend on gradients."""
        l, k, u, m, i, j = self.l, self.k, self.l.u, self.l.m, self.l.i, self.l.j
        view, activations = k.constant("read_view", ROW), k.constant("read_activations", ROW)
        here = z3.And(self._is_odd(CONTRIBUTION, u), m == l.which(self.odd), i == self.contributor)
        linear = k.suppose(
            "the_loss_is_linear",
            [view, activations, u, m, i, j],
            l.gradient(view, activations, u, m, i)[j] == indicator(here),
        )
        scheduled = k.suppose(
            "the_optimizer_follows_a_schedule",
            [u, j],
            z3.And(
                l.theta(u)[j] == indicator(self._is_odd(WEIGHT, u)),
                l.omega(u)[j] == indicator(self._is_odd(MOMENT, u)),
            ),
        )
        return linear, scheduled

    # ------------------------------------------------- who shows that amounts differ
    def _candidates(self, d: int, owner: int) -> dict[Any, Sequence[Any]]:
        """Views of a contribution of one device alone: by who it is, in a case that stands for others."""
        found: dict[Any, Sequence[Any]] = {}
        for c in (d, owner, 0):
            found[c] = [z3.RealVal(int(v)) for v in (c == d, 1, c == owner, c == 0)]
        found[NOBODY] = (ZERO, ONE, ZERO, ZERO)
        return found

    def _shown_by(self) -> tuple[Any, Theorem]:
        """A device whose contribution alone shows that a form has not the amount that is wanted."""
        l, d, i = self.l, self.l.d, self.l.i  # i is the owner here
        wanted = self.wanted = self.k.reals("wanted")
        at = first_of(i), place_of(d, i)
        found = z3.If(
            z3.And(i != 1, d != 1),
            z3.IntVal(1),
            z3.If(z3.And(i != 2, d != 2), z3.IntVal(2), z3.IntVal(3)),
        )
        for device in (z3.IntVal(0), i, d):
            views = (indicator(device == d), ONE, indicator(device == i), indicator(device == 0))
            found = z3.If(self.part(*at, *l.x, *views) != wanted, device, found)
        return self.k.define("shown_by", [d, i, wanted, *l.x], found)

    def _differs(self, rule: str) -> Theorem:
        """Where a comparison comes out unequal there is somebody whose contribution shows it."""
        l, amount = self.l, ONE if rule == SUMMED else ZERO
        parts: list[Bool] = []
        uses = []
        for d, owner in CASES:
            f, p = literal(first_of, owner), literal(place_of, d, owner)
            said = self.rule_is[rule].at(f=f, p=p)
            uses.append(said)
            shown = []
            for who, views in self._candidates(d, owner).items():
                part = self.part_is.at(f=f, p=p, **self.viewed(views))
                uses.append(part)
                there = l.size > len({d, owner, 0}) if who is NOBODY else z3.BoolVal(True)
                shown.append(z3.And(there, part.goal.arg(0) != amount))
            parts.append(z3.Or(said.goal.arg(0), *shown))
        return self.proved(f"somebody_shows_{rule}", parts, uses)

    def _shows(self, rule: str) -> Theorem:
        """The device that is named as such does."""
        l, k, d, i = self.l, self.k, self.l.d, self.l.i
        amount = ONE if rule == SUMMED else ZERO
        c = self.shown_by(d, i, amount, *l.x)
        views = (indicator(c == d), ONE, indicator(c == i), indicator(c == 0))
        at = first_of(i), place_of(d, i)
        return k.prove(
            f"the_one_shows_{rule}",
            z3.And(c >= 0, c < l.n, self.part(*at, *l.x, *views) != amount),
            [d >= 0, d < l.n, i >= 0, i < l.n, z3.Not(self.rules[rule](*at, *l.x))],
            [self.shown_by_is.at(wanted=amount), self._differs(rule)],
        )

    def _counted(self, rule: str) -> Theorem:
        """What all devices have alike is counted another number of times than is said."""
        amount = ONE if rule == ONCE else ZERO
        parts: list[Bool] = []
        uses = []
        for d, owner in CASES:
            f, p = literal(first_of, owner), literal(place_of, d, owner)
            said = self.rule_is[rule].at(f=f, p=p)
            part = self.part_is.at(f=f, p=p, **self.viewed((ONE, self.l.size, ONE, ONE)))
            parts.append(z3.Or(said.goal.arg(0), part.goal.arg(0) != amount))
            uses += [said, part]
        return self.proved(f"amounts_show_{rule}", parts, uses)

    # --------------------------------------------------------- values of the model
    def _is_there(self) -> Bool:
        """The contributor, if there is one, is one of the devices."""
        c = self.contributor
        return z3.Or(self._is_state(self.odd), z3.And(c >= 0, c < self.l.n))

    def _views(self) -> Theorem:
        """The odd value is 1 where it is, all others are 0."""
        l, k, s, d, i, j, odd = self.l, self.k, self.l.s, self.l.d, self.l.i, self.l.j, self.odd
        c, n = self.contributor, l.n
        inside = [self._is_there()]
        proper = z3.Not(self._is_wrong(s))
        here = z3.And(s == odd, z3.Or(self._is_state(odd), d == c))
        value = k.prove(
            "one_value_is_odd",
            l.original(s, d, j) == indicator(here),
            [proper],
            [
                l.original_is,
                self.linear.at(
                    read_view=l.theta(l.time(s)),
                    read_activations=l.theta(l.time(s)),
                    u=l.time(s),
                    m=l.which(s),
                    i=d,
                ),
                self.scheduled.at(u=l.time(s)),
                l.name_is_its_own,
                l.name_is_its_own.at(s=odd),
                self.one_name,
                self.one_name.at(s=odd),
            ],
        )
        summed = z3.If(
            s == odd, z3.If(self._is_state(odd), z3.ToReal(i), indicator(c < i)), ZERO
        )
        all_ = k.induct(
            "the_odd_value_of_all_devices",
            i,
            l.all(s, j, i) == summed,
            [proper, *inside],
            base=[l.all.start],
            step=[l.all.next, value.at(d=i)],
        )
        by_owner = {str(l.d): l.owner(j)}, {str(l.d): z3.IntVal(0)}
        self.value = value
        own, whole, owners, firsts = l.views(s, d, j)
        state = self._is_state(odd)

        def of(device: Any) -> Any:
            return z3.If(s == odd, z3.If(state, ONE, indicator(device == c)), ZERO)

        return k.prove(
            "what_devices_have_of_it",
            z3.And(
                own == of(d),
                whole == z3.If(s == odd, z3.If(state, l.size, ONE), ZERO),
                owners == of(l.owner(j)),
                firsts == of(z3.IntVal(0)),
            ),
            [proper, *inside],
            [value, *(value.at(**at) for at in by_owner), all_.at(i=n), l.some],
        )

    def _of_others(self, t: Any, b: Any) -> Theorem:
        """A form stands for what it has of the odd value: of all others it has nothing."""
        l, k, s, d, j, odd = self.l, self.k, self.l.s, self.l.d, self.l.j, self.odd
        f, p = self.here["f"], self.here["p"]
        form, views = l.form(t, b, s, f), l.views(s, d, j)
        at = {"t": t, "b": b}
        zeros = (ZERO,) * len(views)
        nothing = [
            self.part_is.at(f=f, p=p, **self.named(form), **self.viewed(zeros)),
            self.part_is.at(f=f, p=p, **self.named([ZERO for _ in COUNT]), **self.viewed(views)),
        ]
        given = [
            *self.on_a_device,
            z3.Not(self.faulty(t, b, j)),
            z3.Not(self._is_wrong(odd)),
            self._is_there(),
        ]
        term = k.prove(
            "other_terms_are_nothing",
            z3.Implies(s != odd, self.term(t, b, s, d, j) == 0),
            given,
            [self.term_is.at(**at), self.views_are, self.fault.at(**at), *nothing],
        )
        return k.induct(
            "forms_stand_for_the_odd_value",
            s,
            self.stands_for(t, b, d, j, s) == z3.If(odd < s, self.term(t, b, odd, d, j), ZERO),
            [*given, odd >= 0],
            base=[self.stands_for.start.at(**at)],
            step=[self.stands_for.next.at(**at), term],
        ).at(s=l.bound)

    def unequal(self, always: Theorem) -> tuple[Theorem, ...]:
        """What compares unequal, of what is known and made of no wrong value, is another value."""
        l, j, u, odd = self.l, self.l.j, self.l.u, self.odd
        form = l.form(l.t, l.b, odd, self.here["f"])
        self.views_are = self._views()
        amounts = dict(zip(map(str, l.x), form, strict=True))
        facts = [
            self._of_others(l.t, l.b),
            self.fine,
            always,
            l.owned,
            l.finite,
            self.views_are.at(s=odd),
            self.term_is.at(s=odd),
            *(self._counted(rule).at(**amounts) for rule in SAME_ON_ALL),
            *(self._shows(rule).at(i=l.owner(j), **amounts) for rule in (SUMMED, ABSENT)),
        ]
        of_step = l.is_of_step(odd, u)
        whole = self.k.induct(
            "the_whole_gradient_of_the_model",
            l.s,
            self.of_step(u, j, l.s) == indicator(z3.And(odd < l.s, of_step)),
            [z3.Not(self._is_wrong(odd)), self._is_there(), odd >= 0],
            base=[self.of_step.start],
            step=[self.of_step.next, self.views_are],
        )
        named = [l.numbered, l.name_is_its_own.at(s=odd), self.one_name.at(s=odd), self.scheduled]

        def differs(name: str, what: Any, right: Any, about: Sequence[Theorem]) -> Theorem:
            state = None if what is None else l.state(what, u)
            wanted = indicator(of_step) if what is None else ZERO
            return self.k.prove(
                f"{name}_that_compare_unequal_differ",
                l.has(l.t, l.b, l.d)[j] != right,
                [
                    *self._met_here(),
                    self.contributor == self.shown_by(l.d, l.owner(j), wanted, *form),
                    z3.Not(self.passes(l.t, l.b, self.here["f"], self.here["p"], state, u, odd)),
                ],
                [*facts, self.passed(l.t, l.b, state, u).at(s=odd), *about],
            )

        def state(name: str, what: Any, row: Any) -> Theorem:
            return differs(name, what, row[j], [*named, l.names.at(w=what, m=z3.IntVal(0))])

        return (
            state("weights", WEIGHT, l.theta(u)),
            state("moments", MOMENT, l.omega(u)),
            differs(
                "gradients", None, l.whole(u, j, l.micro_steps), [self.whole, whole.at(s=l.bound)]
            ),
        )

    def _met_here(self) -> list[Bool]:
        """A device that knows what is in place b before line t, in which nothing is wrong; a step."""
        l, odd = self.l, self.odd
        return [
            *(l.t >= 0, l.t <= l.last, l.u >= 0, l.u <= l.last, odd >= 0, odd < l.bound),
            *self.on_a_device,
            self.known_at(l.t, l.b),
            z3.Not(self.faulty(l.t, l.b, l.j)),
            z3.Not(self._is_wrong(odd)),
        ]

    def before_the_first(self) -> Theorem:
        """As long as all comparisons come out equal, no wrong value is anywhere."""
        l, k, t, b, s, f = self.l, self.k, self.l.t, self.l.b, self.l.s, self.l.f
        met = [l.met(z3.IntVal(g), z3.IntVal(q), t) for g in FIRSTS for q in PLACES.values()]
        self.equal, equal_start, equal_next = k.recursion(
            "all_compare_equal",
            [],
            t,
            z3.BoolVal(True),
            lambda before: z3.And(
                before(),
                z3.Implies(l.kind(t) == BACKWARD, l.right(t)),
                z3.Implies(l.kind(t) == UPDATE, z3.And(*met)),
            ),
        )
        zeros = [ZERO for _ in COUNT]
        nothing: list[Bool] = []
        uses = []
        at = {str(v): ZERO for v in (*l.x, *l.z)}
        for move in MOVES:
            for g in FIRSTS:
                said = [l.after_is[move.name, True].at(op=o, f=g, **at) for o in COUNT]
                nothing += [each.goal.arg(0) == 0 for each in said]
                uses += said
        of_nothing = self.proved("lines_make_nothing_of_nothing", nothing, uses)
        names = [
            l.names.at(w=CONTRIBUTION, u=l.step(t), m=l.micro(t)),
            *(l.names.at(w=w, u=l.step(t) + 1, m=z3.IntVal(0)) for w in (WEIGHT, MOMENT)),
        ]

        def none(b: Any) -> Bool:
            return z3.And(*(c == 0 for c in l.form(t, b, s, f)))

        return k.induct(
            "nothing_is_wrong_yet",
            t,
            none(b),
            [t <= l.last, self.equal(t), self._is_wrong(s), z3.Or(f == 0, f == 1)],
            base=[
                *(l.coefficient_start.at(op=o) for o in COUNT),
                *(l.names.at(w=w, u=z3.IntVal(0), m=z3.IntVal(0)) for w in (WEIGHT, MOMENT)),
                l.numbered,
            ],
            step=[
                equal_next,
                *(l.coefficient_next.at(op=o) for o in COUNT),
                of_nothing.at(scaled_by=l.factor(t)),
                *names,
                l.numbered,
            ],
            at=[{}, {"b": l.source(t)}, {"b": l.target(t)}],
        )
