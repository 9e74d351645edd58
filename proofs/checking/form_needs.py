"""T4: on any number of axes, the checker's comparisons of normal forms are those of amounts.

A form compares equal at a place if and only if the amounts of all devices do, seen from there.
"""

from __future__ import annotations

from typing import Any

from proofs.checking.axis_tables import (
    EVERYBODY,
    NAMED_FIRST,
    OWN,
    REST,
    SELF,
    Tables,
)
from proofs.checking.kept import Kept
from proofs.checking.lines import FIRST, NAMED, OWNER
from proofs.checking.matching import contributed
from proofs.checking.needs import require_needs
from proofs.checking.representation import FALSE, TRUE, Represented
from proofs.checking.symbols import FIRSTS, PLACES, ZERO, cases, either, indicator
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not, Or
from spec.devices.operators import OTHER

WHO = (OWN, NAMED_FIRST, SELF, REST)


class FormNeeds(Kept):
    """The checker's comparisons as formulas over its run, and what they say of amounts."""

    l: Represented

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        require_needs()
        self._where_there_are()
        self._equal()
        self.equal_means = self._means()
        self._culprits()

    # ---------------------------------------------------------------- where there are devices
    def _where_there_are(self) -> None:
        """there_are(f, p): devices, with such places of theirs and of the first device."""
        l, k = self.l, self.k
        f, p, q, size, x = l.at_f, l.at_p, l.at_q, l.size, l.mesh.x
        by_first = {
            g: cases(
                p,
                {PLACES[place]: BoolVal(True) for place in NAMED[g]}
                | {PLACES[OTHER]: size > len(NAMED[g])},
                BoolVal(False),
            )
            for g in FIRSTS
        }
        one = Or(f == OWNER, And(f == FIRST, size > 1))
        there = And(one, either(f, by_first))
        exists, exists_is = k.define("there_is", [f, p, size], there)
        many = Tables(size, ZERO).count(f, p, q)
        self.count, self.count_is = k.define("how_many", [f, p, q, size], many)
        self.there_upto, nowhere, further = k.recursion(
            "there_are",
            [l.f, l.p],
            x,
            BoolVal(True),
            lambda before: And(before(l.f, l.p), exists(l.f[x], l.p[x], l.mesh.size_of(x))),
        )
        on = l.on_device(l.d)
        self.devices_are_there = k.induct(
            "there_are_devices_where_they_are",
            x,
            self.there_upto(on["f"], on["p"], x),
            [l.mesh.is_device(l.d), x <= l.mesh.axes],
            base=[nowhere.at(f=on["f"], p=on["p"])],
            step=[
                further.at(f=on["f"], p=on["p"]),
                exists_is.at(at_f=on["f"][x], at_p=on["p"][x], size=l.mesh.size_of(x)),
                l.mesh.places_are.at(d=l.d, x=x),
                l.mesh.firsts_are.at(x=x),
                l.mesh.on_axes.at(a=x),
            ],
        ).at(x=l.mesh.axes)

    # ------------------------------------------------------------------- comparisons
    def _equal(self) -> None:
        """equal: that a form is seen as often as is wanted, of every source that there is."""
        l, k = self.l, self.k
        t, b, s, f, p, q, x = l.t, l.b, l.s, l.f, l.p, l.q, l.mesh.x
        self.wanted = k.reals("wanted")
        params = [l.known, t, b, s, f, p, q, self.wanted]
        sight = l.sight(l.known, t, b, s, l.any_word, f, p, q, l.mesh.axes)

        def of_all(before: Any) -> Bool:
            size = l.mesh.size_of(x)
            return And(
                *(
                    Implies(
                        self.count(f[x], p[x], IntVal(who), size) > 0,
                        before(*params[:6], l.mesh.put(q, x, IntVal(who)), self.wanted),
                    )
                    for who in WHO
                )
            )

        self.equal, self.equal_none, self.equal_next = k.recursion(
            "compare_equal", params, x, sight == self.wanted, of_all
        )
        self.everybody = k.fixed("everybody", q.sort)
        all_are = k.suppose("everybody_along_axes", [x], self.everybody[x] == EVERYBODY)
        alike = k.prove(
            "sources_of_what_is_alike",
            l.mesh.sources(TRUE, l.d, l.i, l.j)[x] == self.everybody[x],
            (),
            [all_are, l.mesh.sources_are.at(alike=TRUE)],
        )
        self.alike_are = k.extend("what_is_alike_is_everybodys", alike, x)

    def _counts(self, d: Any, x: Any) -> list[Theorem]:
        """How many sources of each kind a device has along an axis."""
        l, on = self.l, self.l.on_device(d)
        at = {"at_f": on["f"][x], "at_p": on["p"][x], "size": l.mesh.size_of(x)}
        return [self.count_is.at(at_q=IntVal(who), **at) for who in WHO]

    def _means(self) -> Theorem:
        """What compares equal, devices have as often as is wanted of each device's value."""
        l, k, x, d, i = self.l, self.k, self.l.mesh.x, self.l.d, self.l.i
        on = {**l.on_device(d), "q": l.mesh.sources(FALSE, d, i, l.j)}
        params = [l.known, l.t, l.b, l.s, *on.values(), self.wanted]
        sight = l.sight(l.known, l.t, l.b, l.s, l.any_word, *on.values(), l.mesh.axes)
        return k.induct(
            "what_compares_equal_is_as_wanted",
            x,
            Implies(self.equal(*params, x), sight == self.wanted),
            [l.mesh.is_device(d), l.mesh.is_device(i), x <= l.mesh.axes],
            base=[self.equal_none.at(**on)],
            step=[
                self.equal_next.at(**on),
                *self._counts(d, x),
                l.mesh.places_are.at(x=x),
                l.mesh.firsts_are.at(x=x),
                l.mesh.sources_are.at(x=x, alike=FALSE),
                l.mesh.put_in_vain.at(word=on["q"], a=x),
                l.mesh.on_axes.at(a=x),
                l.mesh.on_axes.at(a=x, d=i),
            ],
        ).at(x=l.mesh.axes)

    # ----------------------------------------------------- who shows that they are unequal
    def _coordinate(self, who: int, d: Any, x: Any) -> Any:
        """Along an axis, where a device is whose value device d sees from such a source."""
        l = self.l
        owner, here = l.mesh.owner_along(x, l.j), l.mesh.along(d, x)
        two = If(And(owner != 2, here != 2), IntVal(2), IntVal(3))
        another = If(And(owner != 1, here != 1), IntVal(1), two)
        return {OWN: owner, NAMED_FIRST: IntVal(0), SELF: here, REST: another}[who]

    def _culprits(self) -> None:
        """culprit: a device whose value shows that a form has not what is wanted, from device i on."""
        l, k, x, d, i, j = self.l, self.k, self.l.mesh.x, self.l.d, self.l.i, self.l.j
        mesh = l.mesh
        on = {**l.on_device(d), "q": mesh.sources(FALSE, d, i, j)}
        form = [l.known, l.t, l.b, l.s]
        size = mesh.size_of(x)

        def off(who: int) -> Bool:
            of_it = l.mesh.put(on["q"], x, IntVal(who))
            equal = self.equal(*form, on["f"], on["p"], of_it, self.wanted, x)
            return And(self.count(on["f"][x], on["p"][x], IntVal(who), size) > 0, Not(equal))

        there = {who: mesh.moved(i, x, self._coordinate(who, d, x)) for who in WHO}
        found = there[REST]
        for who in reversed(WHO[:-1]):
            found = If(off(who), there[who], found)
        # a device that differs along this axis alone
        self.next_one, next_is = k.define("shown_along", [*form, d, i, j, self.wanted, x], found)
        step = self.next_one(*form, d, i, j, self.wanted, x)
        self.culprit, first, then = k.recursion(
            "culprit",
            [*form, d, i, j, self.wanted],
            x,
            i,
            lambda before: before(*form, d, step, j, self.wanted),
        )
        y = mesh.a
        many = [self.count(on["f"][x], on["p"][x], IntVal(who), size) for who in WHO]
        stored = [
            k.extend(
                f"sources_of_another_{who}",
                k.prove(
                    f"a_source_of_another_{who}",
                    mesh.sources(FALSE, d, there[who], j)[y] == l.mesh.put(on["q"], x, IntVal(who))[y],
                    [
                        *([mesh.is_device(d)] if who == SELF else []),
                        mesh.is_device(i),
                        mesh.is_axis(x),
                        *([many[who] > 0] if who != OWN else []),
                    ],
                    [
                        mesh.sources_are.at(x=y, alike=FALSE),
                        mesh.put_read.at(word=on["q"], a=x, o=IntVal(who), x=y),
                        mesh.sources_are.at(x=y, alike=FALSE, i=there[who]),
                        mesh.moves.at(d=i, a=x, x=y, c=self._coordinate(who, d, x)),
                        *(self._counts(d, x)[who : who + 1] if who != OWN else []),
                        *([mesh.places_are.at(x=x)] if who in (SELF, REST) else []),
                        *([mesh.firsts_are.at(x=x)] if who in (NAMED_FIRST, REST) else []),
                        *([mesh.on_axes.at(a=x)] if who != REST else []),
                    ],
                ),
                y,
            )
            for who in WHO
        ]
        who_is = self.culprit(*form, d, i, j, self.wanted, x)
        sight = l.sight(
            *form, l.any_word, on["f"], on["p"], mesh.sources(FALSE, d, who_is, j), mesh.axes
        )
        self.somebody_shows = k.induct(
            "somebody_shows_what_compares_unequal",
            x,
            And(mesh.is_device(who_is), sight != self.wanted),
            [
                mesh.is_device(d),
                mesh.is_device(i),
                x <= mesh.axes,
                Not(self.equal(*form, *on.values(), self.wanted, x)),
            ],
            base=[first, self.equal_none.at(**on)],
            step=[
                then,
                next_is,
                self.equal_next.at(**on),
                *stored,
                self._counts(d, x)[REST],
                mesh.places_are.at(x=x),
                mesh.firsts_are.at(x=x),
                *(mesh.moves.at(d=i, a=x, c=self._coordinate(who, d, x)) for who in WHO),
                mesh.on_axes.at(a=x),
            ],
            at=[{"i": step}],
        ).at(x=mesh.axes)

    # ---------------------------------------------------------- what is needed of a place
    def form_passes(self, t: Any, b: Any, state: Any, u: Any) -> Bool:
        """That the form of an original value compares equal at a place; and that all is known there."""
        l = self.l
        return And(self.form_is_known(t, b), self.as_needed(t, b, l.s, l.f, l.p, l.q, state, u))

    def form_is_known(self, t: Any, b: Any) -> Bool:
        """That there is nothing at a place that is not known."""
        l = self.l
        return self.equal(FALSE, t, b, IntVal(0), l.f, l.p, l.q, ZERO, l.mesh.axes)

    def as_needed(self, t: Any, b: Any, s: Any, f: Any, p: Any, q: Any, state: Any, u: Any) -> Bool:
        """The comparison of an original value's form: with a state, or with a step's gradient."""
        return self.as_wanted(t, b, s, f, p, q, self.wanted_of(s, state, u))

    def as_wanted(self, t: Any, b: Any, s: Any, f: Any, p: Any, q: Any, wanted: Any) -> Bool:
        """The comparison with how often it is wanted: of what devices have alike, of all at once."""
        l, axes = self.l, self.l.mesh.axes
        seen = l.sight(TRUE, t, b, s, l.any_word, f, p, self.everybody, axes)
        return If(l.is_state(s), seen == wanted, self.equal(TRUE, t, b, s, f, p, q, wanted, axes))

    def wanted_of(self, s: Any, state: Any, u: Any) -> Any:
        """How often an original value is needed."""
        kind = contributed(state)
        return indicator(s == state if kind is None else self.l.is_of_step(s, u, kind))
