"""T4: on one axis, the checker's comparisons of normal forms take the place of those of amounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking.form_needs import ABSENT, CANCELLED, ONCE, RULES, SAME_ON_ALL, SUMMED, FormNeeds
from proofs.checking.form_parts import occurs
from proofs.checking.lines import OWNER
from proofs.checking.matching import Read, Where
from proofs.checking.representation import Represented
from proofs.checking.symbols import MOMENT, PLACES, WEIGHT, ZERO, first_of, indicator, place_of
from proofs.claim import claim
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, If, Implies, IntVal, Not


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


@claim("T4")
def what_is_accepted_matches(k: Kernel) -> tuple[Theorem, ...]:
    """On one axis, normal forms of any schedule compare equal if and only if every run is right there.

    The schedule is a symbol: its lines are functions of which nothing is said. The checker's run of it
    and its comparisons are what the specification makes of normal forms with any coefficients; what
    is not known is arbitrary. They are the amounts of T2, so that T2 says both halves of them. Equal:
    what is kept is the single device's. The first that is unequal, of what is known: in the run of T2
    the device has something else. (Claim T4)
    """
    language = Represented(k)
    language.follows()
    checker = Comparisons(language)
    always = checker.always()
    return checker.at_the_end(always), *checker.unequal_forms(always)
