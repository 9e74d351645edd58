"""What devices have of what lines compute, and of places that lines leave as they are."""

from __future__ import annotations

from typing import Any

from proofs.checking.axis_tables import COUNT, EVERYBODY, NAMED_FIRST, OWN, SELF, only
from proofs.checking.device_levels import DeviceLevels
from proofs.checking.levels import NUMBERS
from proofs.checking.lines import FIRST, OWNER
from proofs.checking.symbols import FIRSTS, PLACES, ZERO
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not, Or, RealVal
from spec.devices.operators import OTHER

BY_PLACE = [IntVal(place) for place in PLACES.values()]


class PlacedLevels(DeviceLevels):
    """The language, and its forms on devices, after every kind of line."""

    def untouched_forms(self) -> Theorem:
        """A place that a line leaves as it is."""
        b, level, word = self.b, self.level, self.word
        return self.k.induct(
            "forms_elsewhere",
            level,
            self.at(level, t=self.t + 1) == self.at(level),
            [self.t >= 0, self.untouched(b)],
            base=[self.sight_none, self.sight_none.at(t=self.t + 1), self.coefficient_next],
            step=[self.sight_next, self.sight_next.at(t=self.t + 1)],
            at=[{"word": self.mesh.put(word, level, o)} for o in NUMBERS],
        )

    # ------------------------------------------------------------------- what is placed
    def _of_its_place(self) -> Theorem:
        """Along an axis: what devices have by their places, a device has as its place says."""
        f, p, q, size = self.at_f, self.at_p, self.at_q, self.size
        values = self.three[1]
        entries = [self.entry(o, f, p, q, size) for o in NUMBERS]
        alone = [[self.alone(place, o, f) for place in BY_PLACE] for o in NUMBERS]
        chosen = [self.chosen(*each, *values) for each in alone]
        names = list(map(str, self.three[0]))
        nothing = 1  # an operator of which there is nothing in what is placed
        made = sorted({o for g in FIRSTS for _, (o,) in only((g,))})
        own = Or(
            q == EVERYBODY,
            And(p == PLACES[OWNER], q == OWN),
            And(p == PLACES[FIRST], q == NAMED_FIRST),
            And(p == PLACES[OTHER], q == SELF),
        )
        here = If(p == PLACES[OWNER], values[0], If(p == PLACES[FIRST], values[1], values[2]))
        return self.k.prove(
            "what_is_placed_is_there",
            self.mixed(*entries, *chosen) == If(own, here, ZERO),
            [self.codes(f, p)],
            [
                self.product(entries, chosen),
                *(fact.at(z0=chosen[o]) for fact in (self.once, self.never) for o in made if o),
                *(self.none.at(x0=entries[o]) for o in COUNT if o not in made),
                *(self.entry_is.at(o=NUMBERS[o]) for o in made),
                *(
                    self.chosen_is.at(**dict(zip(names, alone[o], strict=True)))
                    for o in (*made, nothing)
                ),
                *(self.alone_is.at(o=o, at_p=place) for o in NUMBERS for place in BY_PLACE),
                *(fact.at(z0=y) for fact in (self.once, self.never) for y in values),
                self.repeat_is.at(x0=RealVal(-1), z0=values[2]),
            ],
        )

    def placed_forms(self) -> None:
        """What is placed, along the axes so far; and on all."""
        k, mesh, t, b, d, i, j = self.k, self.mesh, self.t, self.b, self.d, self.i, self.j
        level, word, x = self.level, self.word, mesh.x
        same = Or(self.alike, mesh.along(d, level) == mesh.along(i, level))
        self.same, no_axis, same_next = k.recursion(
            "has_its_value",
            [self.alike, d, i],
            level,
            BoolVal(True),
            lambda before: And(before(self.alike, d, i), same),
        )
        f = mesh.firsts(j)

        def spread(places: Any, rest: Any) -> Any:
            return self.spread(self.known, t, b, self.s, word, f, places, rest)

        wrapped = k.integers("wrapped")
        unread = k.induct(
            "axes_that_are_not_spread_over",
            wrapped,
            self.spread(
                self.known, t, b, self.s, self.mesh.put(word, level, self.o), self.f, self.p, wrapped
            )
            == self.spread(self.known, t, b, self.s, word, self.f, self.p, wrapped),
            [level < mesh.axes - wrapped],
            base=[self.spread_none, self.spread_none.at(word=self.mesh.put(word, level, self.o))],
            step=[
                self.spread_next.at(level=wrapped),
                self.spread_next.at(level=wrapped, word=self.mesh.put(word, level, self.o)),
                self.mesh.put_read.at(a=level, x=mesh.axes - 1 - wrapped),
            ],
            at=[{"p": self.mesh.put(self.p, mesh.axes - 1 - wrapped, place)} for place in BY_PLACE],
        )
        so_far = mesh.places_upto(d, j, level)
        rest = mesh.axes - level - 1
        words = [self.mesh.put(word, level, o) for o in NUMBERS]
        law = self._of_its_place()
        values = {
            str(v): spread(self.mesh.put(so_far, level, place), rest)
            for v, place in zip(self.three[1], BY_PLACE, strict=True)
        }
        on = self.on_device(d)
        there = k.induct(
            "what_is_placed_along_some_axes",
            level,
            self.comes_to(t + 1, b, d, level)
            == If(
                self.same(self.alike, d, i, level),
                spread(so_far, mesh.axes - level),
                ZERO,
            ),
            [self._places(b), level <= mesh.axes],
            base=[
                no_axis,
                mesh.no_places,
                self.sight_none.at(t=t + 1, **on),
                self.coefficient_next.at(f=f),
                self.at_first.at(f=f),
            ],
            step=[
                same_next,
                mesh.more_places.at(x=level),
                self.sight_next.at(t=t + 1, **on),
                *(self.spread_next.at(f=f, p=so_far, level=rest, word=each) for each in words),
                *(
                    unread.at(o=o, f=f, p=self.mesh.put(so_far, level, place), wrapped=rest)
                    for o in NUMBERS
                    for place in BY_PLACE
                ),
                law.at(
                    at_f=on["f"][level],
                    at_p=on["p"][level],
                    at_q=on["q"][level],
                    size=mesh.size_of(level),
                    **values,
                ),
                self.of_nothing.at(**self.row_as([self.entry_at(o, level, d) for o in NUMBERS])),
                *self.located(d, level),
                mesh.firsts_are.at(x=level),
                *(self.mesh.put_read.at(a=level, x=mesh.axes - 1 - rest, o=o) for o in NUMBERS),
            ],
            at=[{"word": each} for each in words],
        )
        alike_so_far = k.induct(
            "what_is_alike_so_far",
            level,
            Implies(
                And(x >= 0, x < level, self.same(self.alike, d, i, level)),
                Or(self.alike, mesh.along(d, x) == mesh.along(i, x)),
            ),
            step=[same_next],
        )
        own = k.induct(
            "a_device_is_as_itself",
            level,
            Implies(Or(self.alike, d == i), self.same(self.alike, d, i, level)),
            base=[no_axis],
            step=[same_next],
        )
        self.placed_there = k.prove(
            "what_is_placed_by_a_line",
            self.comes_to(t + 1, b, d, mesh.axes)
            == If(
                Or(self.alike, d == i),
                self.placed(self.known, t, b, self.s, f, mesh.places(d, j)),
                ZERO,
            ),
            [self._places(b), mesh.is_device(d), mesh.is_device(i)],
            [
                there.at(level=mesh.axes),
                self.spread_none.at(f=f, p=mesh.places(d, j)),
                own.at(level=mesh.axes),
                alike_so_far.at(level=mesh.axes, x=mesh.apart(d, i)),
                mesh.apart_is,
                mesh.on_axes,
            ],
        )

    def _places(self, b: Any) -> Bool:
        """Whether line t places values in b: it computes there, or it is before the first."""
        touched = And(self.t >= 0, Not(self.moves(b)), Not(self.untouched(b)))
        return Or(self.t == -1, touched)
