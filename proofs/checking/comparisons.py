"""T4: on any number of axes, comparisons of normal forms take the place of those of amounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking.form_needs import FormNeeds
from proofs.checking.matching import NEEDED, Read, Where
from proofs.checking.representation import FALSE, TRUE, Represented
from proofs.checking.symbols import ZERO
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import below, constants, substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not


class Comparisons(FormNeeds):
    """What the checker compares by place, all devices have."""

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        self._who_is_odd()

    def agree(
        self,
        name: str,
        at: Sequence[Any],
        when: Callable[[Where], Sequence[Bool]],
        reads: Sequence[Read],
        kept: str = "",
    ) -> Theorem:
        """The comparisons of forms, by place; so those of amounts."""
        l, mesh = self.l, self.l.mesh
        where = Where(l.right(l.t), l.met(l.f, l.p, l.t), mesh.owned(l.b, l.p, mesh.axes))
        here = Where(l.is_right(l.t, l.d), l.is_met(l.t, l.d, l.j), mesh.holds(l.b, l.d, l.j))
        slices = any(here.holds is part for part in below([And(*when(here))]))
        facts = [mesh.holds_is] if slices else []
        return self._by_place(name, at, when(where), when(here), facts, reads)

    def all_equal_in(
        self, name: str, variables: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """The comparisons of a norm: of what its slices are, on the places of their owners."""
        l, mesh = self.l, self.l.mesh
        about = [each for each in given if "asks" not in constants(each)]
        where = [*about, mesh.added(l.t, l.p, mesh.axes)]
        facts = [mesh.added_are.at(i=variables[-1])]
        return self._by_place(name, [l.t], where, given, facts, reads)

    def _by_place(
        self,
        name: str,
        at: Sequence[Any],
        where: Sequence[Bool],
        here: Sequence[Bool],
        facts: Sequence[Theorem],
        reads: Sequence[Read],
    ) -> Theorem:
        """What is supposed of forms, `where` it is, is so of amounts, where device d is: `here`."""
        l, k, mesh = self.l, self.k, self.l.mesh
        there = self.there_upto(l.f, l.p, mesh.axes)
        compares = self.forms_equal(name, at, [*where, there], reads)
        given = [*here, *self.on_a_device]
        on = {**l.on_device(l.d), "q": mesh.sources(FALSE, l.d, l.i, l.j)}
        facts = [compares.at(**on), self.devices_are_there, *facts]
        alike = [self._as_amounts(f"{name}_{i}", given, facts, *each) for i, each in enumerate(reads)]
        return k.prove(
            f"amounts_where_{name}",
            Implies(And(*given), And(*(self.compares(*each) for each in reads))),
            (),
            alike,
        )

    def forms_equal(
        self, name: str, at: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """That forms of what is read compare equal at every place, which is supposed."""
        l, passes = self.l, And(*(self.form_passes(*each) for each in reads))
        return self.k.suppose(name, [*at, l.s, l.f, l.p, l.q], Implies(And(*given), passes))

    def _as_amounts(
        self,
        name: str,
        given: Sequence[Bool],
        facts: Sequence[Theorem],
        *read: Any,
        more: Sequence[Theorem] = (),
    ) -> Theorem:
        """Where the form of a place compares equal, the amounts do, and nothing there is not known."""
        l, k, i, (t, b, state, u) = self.l, self.k, self.l.i, read
        at = {"t": t, "b": b}
        unknown = l.some_unknowns
        known = k.induct(
            f"{name}_is_known",
            i,
            unknown(t, b, l.d, l.j, i) == 0,
            [*given, i <= l.n],
            base=[unknown.start.at(**at)],
            step=[
                unknown.next.at(**at),
                *facts,
                self.equal_means.at(is_known=FALSE, s=IntVal(0), wanted=ZERO, **at),
                *l.some,
            ],
        )
        wanted = self.wanted_of(l.s, state, u)
        return k.prove(
            f"{name}_compares_alike",
            self.compares(t, b, state, u),
            given,
            [
                known.at(i=l.n),
                *(*facts, *more),
                self.compared(t, b, state, u),
                l.amount_is.at(**at),
                self.equal_means.at(is_known=TRUE, wanted=wanted, **at),
                self.alike_are,
                *l.some,
            ],
        )

    def equal_is_right(self, name: str) -> tuple[Bool, Theorem]:
        """That all forms compare equal of a kind, where device d is; and that it is right, if so."""
        l, k, (t, b, s, d, i, j), u = self.l, self.k, self.variables(), self.l.u
        what, at = NEEDED[name], [t, b, d, j, u]
        read = (t, b, self.needed(what, u), u)
        on = (l.f, l.mesh.firsts(j)), (l.p, l.mesh.places(d, j)), (l.q, l.mesh.sources(FALSE, d, i, j))
        known, wanted = substitute(self.form_is_known(t, b), *on), self.wanted_of(s, read[2], u)
        equal = self.form_equals(t, b, s, d, i, j, wanted)
        unequal = And(l.is_device(i), Not(And(known, equal)))
        of_one, _, one_shown, _ = k.choose(f"forms_of_{name}_of_one", [s, *at], i, unequal)
        of_any, _, any_shown, _ = k.choose(f"forms_of_{name}_are_unequal", at, s, of_one(s, *at))
        all_equal, given = Not(of_any(*at)), [u >= 0, u <= l.last]
        shown, means = [one_shown, any_shown], [self.odd_are[0].at(wanted=wanted)]
        compares = self._as_amounts(
            f"any_form_of_{name}", [all_equal, *self.on_a_device], shown, *read, more=means
        )
        right = self.read(f"any_of_{name}", t, b, what, u, [*given, all_equal], compares, False)
        return all_equal, right

    # ------------------------------------------------------------ what compares unequal
    def _who_is_odd(self) -> None:
        """form_equals: whether the form of s is as wanted, seen from device i on. shown_by: of which
        device; of what devices have alike the first one; of what is as wanted device i, which is any.
        """
        l, k, (t, b, s, d, i, j) = self.l, self.k, self.variables()
        on = {**l.on_device(d), "q": l.mesh.sources(FALSE, d, i, j)}
        params = [t, b, s, d, i, j, self.wanted]
        self.form_equals, equals_is = k.define(
            "form_equals", params, self.as_wanted(t, b, s, on["f"], on["p"], on["q"], self.wanted)
        )
        one = self.culprit(TRUE, *params, l.mesh.axes)
        whose = If(l.is_state(s), IntVal(0), If(self.form_equals(*params), i, one))
        self.shown_by, shown_is = k.define("shown_by", params, whose)
        self.odd_are = [equals_is, shown_is]

    def who_is_odd(self, i: Any, t: Any, b: Any, state: Any, u: Any) -> tuple[Bool, Bool]:
        """Whether the odd value's form in a place is as needed; and that its device shows it if not."""
        read = (t, b, self.odd, self.l.d, i, self.l.j, self.wanted_of(self.odd, state, u))
        return self.form_equals(*read), self.contributor == self.shown_by(*read)

    def is_unequal(self, t: Any, b: Any, state: Any, u: Any) -> list[Bool]:
        """That the form in a place compares unequal, and whose value it is that shows it."""
        equal, is_odd = self.who_is_odd(IntVal(0), t, b, state, u)
        return [is_odd, Not(equal)]

    def who_shows(self, t: Any, b: Any, state: Any, u: Any, d: Any, i: Any = 0) -> list[Theorem]:
        """Where a form compares unequal on device d, somebody shows it."""
        at = {"s": self.odd, "i": i, "wanted": self.wanted_of(self.odd, state, u)}
        shows = self.somebody_shows.at(t=t, b=b, d=d, is_known=TRUE, **at)
        return [shows, *(each.at(t=t, b=b, d=d, **at) for each in self.odd_are), *self.l.some]

    def exact_forms(self, always: Theorem) -> tuple[Theorem, ...]:
        """Forms are of the needed values if and only if they compare equal, in some run."""
        l, k, (t, b, _, d, i, j), u = self.l, self.in_made_run, self.variables(), self.l.u
        at, zero, found = {"s": self.odd, "i": self.contributor}, IntVal(0), []
        for (name, what), exact in zip(NEEDED.items(), self.exact(always), strict=True):
            state = self.needed(what, u)
            equal, is_odd = self.who_is_odd(i, t, b, state, u)
            wanted = self.wanted_of(self.odd, state, u)
            found.append(
                k.prove(
                    f"forms_of_{name}_are_right_if_and_only_if_they_compare_equal",
                    (l.has(t, b, d)[j] == self.right_value(what, u)) == equal,
                    [*self.met_here(), l.is_device(i), is_odd],
                    [
                        exact,
                        self.compared(t, b, state, u).at(**at),
                        l.amount_is.at(**at),
                        *self.who_shows(t, b, state, u, d, i),
                        self.alike_are.at(i=zero),
                        self.equal_means.at(is_known=TRUE, t=t, b=b, s=self.odd, wanted=wanted),
                    ],
                )
            )
        return tuple(found)
