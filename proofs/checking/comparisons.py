"""T4: on one axis, the checker's comparisons of normal forms take the place of those of amounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking.form_needs import ABSENT, CANCELLED, ONCE, RULES, SAME_ON_ALL, SUMMED, FormNeeds
from proofs.checking.form_parts import COUNT, occurs
from proofs.checking.lines import FIRST, MOVES, OWNER
from proofs.checking.matching import Read, Where
from proofs.checking.representation import Represented
from proofs.checking.symbolic_schedule import (
    BACKWARD,
    CONTRIBUTION,
    FIRSTS,
    MOMENT,
    PLACES,
    UPDATE,
    WEIGHT,
    ZERO,
    first_of,
    indicator,
    place_of,
)
from proofs.claim import claim
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not, Or


class Comparisons(FormNeeds):
    """What the checker compares by place, all devices have."""

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        self.are_there = self.k.prove(
            "there_are_devices_where_they_are",
            self.there_are(self.here["f"], self.here["p"]),
            self.on_a_device,
            [self.there_are_is.at(**self.here), l.mesh.some],
        )

    @property
    def here(self) -> dict[str, Any]:
        """The places of device d and of the first device, of element j."""
        owner = self.l.owner(self.l.j)
        return {"f": first_of(owner), "p": place_of(self.l.d, owner)}

    def as_amounts(self, name: str, t: Any, b: Any, state: Any, u: Any) -> Theorem:
        """Where a form compares equal the amounts do."""
        l, k, s, d, i = self.l, self.k, self.l.s, self.l.d, self.l.i
        f, p = self.here["f"], self.here["p"]
        form, unknown = l.form(t, b, s, f), l.not_known(t, b, f)
        defined = (
            self.form_equals_gradient_is.at(t=t, b=b, u=u, **self.here)
            if state is None
            else self.form_equals_state_is.at(t=t, b=b, m=state, **self.here)
        )
        rules = [rule for rule in RULES if rule != (ONCE if state is None else SUMMED)]
        means = [self.means[rule].at(**l.as_read(form), **l.viewed(l.one_of(i, d))) for rule in rules]
        return k.prove(
            f"{name}_compares_alike",
            self.compares(t, b, state, u),
            [*self.on_a_device, self.form_passes(t, b, f, p, state, u, s)],
            [
                defined,
                self.compared(t, b, state, u),
                l.amount_is.at(t=t, b=b),
                l.unknowns_is.at(t=t, b=b),
                self.seen_is.at(t=t, b=b),
                self.counted.at(**l.as_read(unknown)),
                *means,
                l.mesh.some,
            ],
        )

    def agree(
        self,
        name: str,
        at: Sequence[Any],
        when: Callable[[Where], Sequence[Bool]],
        reads: Sequence[Read],
    ) -> Theorem:
        """The comparisons of forms, by place; so those of amounts."""
        l, k, f, p = self.l, self.k, self.l.f, self.l.p
        where = Where(l.right(l.t), l.met(f, p, l.t), p == PLACES[OWNER])
        equal = (self.form_passes(t, b, f, p, state, u, l.s) for t, b, state, u in reads)
        compares = k.suppose(
            name,
            [*at, l.s, f, p],
            Implies(And(*when(where), self.there_are(f, p)), And(*equal)),
        )
        on = Where(l.is_right(l.t, l.d), l.is_met(l.t, l.d, l.j), l.mesh.holds(l.b, l.d, l.j))
        there = And(*when(on), *self.on_a_device)
        holds = [l.mesh.holds_is] if occurs(on.holds, there) else []
        alike = [self.as_amounts(f"{name}_{i}", *read) for i, read in enumerate(reads)]
        return k.prove(
            f"amounts_where_{name}",
            Implies(there, And(*(self.compares(*read) for read in reads))),
            (),
            [compares.at(**self.here), self.are_there, *holds, *alike],
        )

    # ------------------------------------------------------------ what compares unequal
    def unequal_forms(self, always: Theorem) -> tuple[Theorem, ...]:
        """Forms that compare unequal are of other values, in some run."""
        l, k, t, b, d, j, u = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.j, self.l.u
        odd, f = self.odd, self.here["f"]
        form = l.form(t, b, odd, f)
        shown = {
            rule: self.shows(rule).at(i=l.owner(j), **l.as_read(form)) for rule in (ABSENT, SUMMED)
        }
        found = []
        for name, what, differs in zip(
            ("weights", "moments", "gradients"),
            (WEIGHT, MOMENT, None),
            self.unequal(always),
            strict=True,
        ):
            state = None if what is None else l.state(what, u)
            right = {WEIGHT: l.theta(u)[j], MOMENT: l.omega(u)[j]}.get(
                what, l.whole(u, j, l.micro_steps)
            )
            if state is None:
                equal = self.form_equals_gradient(f, self.here["p"], t, b, odd, u)
                defined = self.form_equals_gradient_is.at(s=odd, **self.here)
                wanted = indicator(l.is_of_step(odd, u))
            else:
                equal = self.form_equals_state(f, self.here["p"], t, b, odd, state)
                defined = self.form_equals_state_is.at(s=odd, m=state, **self.here)
                wanted = ZERO
            shows_it = If(self.is_state(odd), IntVal(0), self.shown_by(d, l.owner(j), wanted, *form))
            who = self.contributor
            found.append(
                k.prove(
                    f"forms_of_{name}_that_compare_unequal_differ",
                    l.has(t, b, d)[j] != right,
                    [*self.met_here(), who == shows_it, Not(equal)],
                    [
                        differs,
                        defined,
                        self.compared(t, b, state, u).at(s=odd, i=who),
                        l.amount_is.at(s=odd, i=who),
                        self.seen_is.at(s=odd),
                        *([shown[ABSENT]] if state is not None else shown.values()),
                        *(
                            self.means[rule].at(**l.as_read(form), **l.viewed(l.one_of(who, d)))
                            for rule in (SAME_ON_ALL if state is not None else (CANCELLED,))
                        ),
                        l.mesh.some,
                        *([] if what is None else [l.names.at(w=what, m=IntVal(0))]),
                    ],
                )
            )
        return tuple(found)

    def before_the_first(self) -> Theorem:
        """As long as all comparisons come out equal, no wrong value is anywhere."""
        l, k, t, b, s, f = self.l, self.k, self.l.t, self.l.b, self.l.s, self.l.f
        met = [l.met(IntVal(g), IntVal(q), t) for g in FIRSTS for q in PLACES.values()]
        equal, _, equal_next = k.recursion(
            "all_compare_equal",
            [],
            t,
            BoolVal(True),
            lambda before: And(
                before(),
                Implies(l.kind(t) == BACKWARD, l.right(t)),
                Implies(l.kind(t) == UPDATE, And(*met)),
            ),
        )
        zeros = {str(v): ZERO for v in (*l.x, *l.z)}
        nothing: list[Bool] = []
        uses = []
        for move in MOVES:
            for g in FIRSTS:
                said = [l.after_is[move.name, True].at(op=o, f=g, **zeros) for o in COUNT]
                nothing += [each.goal.args[0] == 0 for each in said]
                uses += said
        of_nothing = l.proved("lines_make_nothing_of_nothing", nothing, uses)
        zero = IntVal(0)

        def none(b: Any, s: Any, f: Any) -> Bool:
            return And(*(c == 0 for c in l.form(t, b, s, f)))

        no_form = k.induct(
            "no_form_is_wrong_yet",
            t,
            none(b, s, f),
            [l.last >= 0, equal(t), self.is_wrong(s), Or(f == OWNER, f == FIRST)],
            base=[
                *(l.coefficient_start.at(op=o) for o in COUNT),
                *(l.names.at(w=w, u=zero, m=zero) for w in (WEIGHT, MOMENT)),
            ],
            step=[
                equal_next,
                *(l.coefficient_next.at(op=o) for o in COUNT),
                of_nothing.at(scaled_by=l.factor(t)),
                l.names.at(w=CONTRIBUTION, u=l.step(t), m=l.micro(t)),
                *(l.names.at(w=w, u=l.step(t) + 1, m=zero) for w in (WEIGHT, MOMENT)),
                l.numbered,
            ],
            at=[{}, {"b": l.source(t)}],
        )
        d, j = l.d, l.j
        fault = self.fault(t, b, d, j)
        of = self.fault_of(t, b, fault, d, j)
        nobody = [ZERO for _ in COUNT]
        return k.prove(
            "nothing_is_wrong_yet",
            Not(self.faulty(t, b, d, j)),
            [t >= 0, t <= l.last, equal(t)],
            [
                self.faulty_found,
                self.fault_found.at(s=fault),
                l.amount_is.at(s=fault, i=of),
                no_form.at(s=fault, f=self.here["f"]),
                l.part_is.at(**self.here, **l.as_read(nobody), **l.viewed(l.one_of(of, d))),
            ],
        )


@claim("T4")
def what_is_accepted_matches(k: Kernel) -> tuple[Theorem, ...]:
    """On one axis, normal forms of any schedule compare equal if and only if every run is right there.

    The schedule is a symbol: its lines are functions of which nothing is said. The checker's run of it
    and its comparisons are what the specification makes of normal forms with any coefficients; what
    is not known is arbitrary. They are the amounts of T2, so that T2 says both halves of them. Equal:
    what is kept is the single device's. Unequal, of what is known and made of no wrong value: in the
    run of T2 the device has something else; and before the first that is unequal nothing is made of a
    wrong value. (Claim T4)
    """
    language = Represented(k)
    language.follows()
    checker = Comparisons(language)
    always = checker.always()
    return checker.at_the_end(always), *checker.unequal_forms(always), checker.before_the_first()
