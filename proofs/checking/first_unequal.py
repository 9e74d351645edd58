"""T2: up to the first comparison that comes out unequal, nothing known is made of a wrong value.

A wrong value is what a backward or an update computes where it reads something else than it should. Of
what is not known it makes what is not known: that is not compared, as where a device updates what it
has no slice of.
"""

from __future__ import annotations

from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.every_line import EveryLine
from proofs.checking.lines import MOVES
from proofs.checking.symbols import (
    BACKWARD,
    CONTRIBUTION,
    MOMENT,
    NORM,
    NORM_OF,
    ORIGINALS,
    TOKENS,
    UPDATE,
    WEIGHT,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, BoolVal, IntVal, Not, Or


class FirstUnequal(EveryLine):
    """By induction over the lines before it."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        k, t, b, s, d, i, j = self.k, *self.variables()
        self.has_it, self.device_with, self.has_it_shown, self.has_it_found = k.choose(
            "some_device_has",
            [t, b, s, i, j],
            d,
            And(*self.on_a_device, self.knows(t, b), l.amount(t, b, s, d, i, j) != 0),
        )
        off = Or(
            *(And(l.kind(t) == kind, Not(l.is_right(t, d))) for kind in (BACKWARD, NORM_OF)),
            And(l.kind(t) == UPDATE, Not(l.is_met(t, d, j))),
        )
        self.off, self.reads_unequal, self.off_shown, self.off_found = k.choose(
            "compares_unequal", [t, j], d, And(*self.on_a_device, Not(l.is_lost(t, d, j)), off)
        )
        self.all_equal, self.none_before, self.all_equal_next = k.recursion(
            "all_compare_equal_before",
            [j],
            t,
            BoolVal(True),
            lambda before: And(before(j), Not(self.off(t, j))),
        )

    def is_wrong(self, s: Any) -> Bool:
        """Whether an original value is none of a single device's, but what a line computed wrong."""
        single = (WEIGHT, MOMENT, CONTRIBUTION, NORM, TOKENS)
        return Or(*(self.l.what(s) == what for what in ORIGINALS if what not in single))

    def _line_makes_none(self) -> Theorem:
        """A line whose comparisons come out equal makes nothing known of values that are not wrong."""
        l, k, t, b, s, d, i, j = self.l, self.k, *self.variables()
        none, size = Not(self.has_it(t, b, s, i, j)), l.mesh.size(t)
        member = l.mesh.member(t, d, l.c)
        nobody = k.prove(
            "nobody_has_it",
            l.amount(t, b, s, d, i, j) == 0,
            [*self.on_a_device, self.knows(t, b), none],
            [self.has_it_shown],
        )
        in_group = k.induct(
            "no_group_has_it",
            l.c,
            l.in_group(t, b, s, d, i, j, l.c) == 0,
            [
                *(t >= 0, *self.on_a_device, none, l.c <= size),
                l.unknowns_in_group(t, b, d, j, size) == 0,
            ],
            base=[l.in_group.start],
            step=[
                *(l.in_group.next, nobody.at(d=member), self.inside(), self.counted.never),
                self.counted.known.at(d=member),
                self.counted.part_of_group.at(one_of_them=l.c, c=size),
            ],
        )
        read = {(id(b), id(e)): (b, e) for move in MOVES for b, e in self.reads(move)}
        zero = IntVal(0)
        return k.prove(
            "an_equal_line_makes_nothing_wrong",
            l.amount(t + 1, b, s, d, i, j) == 0,
            [
                t >= 0,
                *self.on_a_device,
                i >= 0,
                i < l.n,
                self.is_wrong(s),
                *(self.knows(t + 1, b), none),
                Not(self.has_it(t, l.source(t), s, i, j)),
                Not(self.off(t, j)),
            ],
            [
                *(l.amounts_run, l.unknowns_run, nobody),
                in_group.at(b=l.source(t), c=size),
                *(self.counted.known.at(b=b) for b, e in read.values() if e is d),
                *(nobody.at(b=b, d=e) for b, e in read.values() if b is not l.target(t)),
                *(self.inside(c=e) for e in (zero, l.mesh.owner(t, d, j))),
                self.off_shown,
                *(l.names.at(w=w, u=l.step(t), m=l.micro(t)) for w in (CONTRIBUTION, TOKENS)),
                *(l.names.at(w=w, u=l.step(t) + 1, m=zero) for w in (WEIGHT, MOMENT)),
                l.names.at(w=NORM, u=l.step(t), m=zero),
                l.numbered,
            ],
        )

    def nothing_is_wrong(self) -> Theorem:
        """Where all comparisons before line t come out equal, nobody knows a wrong value."""
        l, k, t, b, s, _, i, j = self.l, self.k, *self.variables()
        zero = IntVal(0)
        makes_none = self._line_makes_none()

        def at(time: Any) -> dict[str, Any]:
            return {"d": self.device_with(time, b, s, i, j)}

        return k.induct(
            "nothing_is_wrong_yet",
            t,
            Not(self.has_it(t, b, s, i, j)),
            [i >= 0, i < l.n, self.is_wrong(s), self.all_equal(j, t)],
            base=[
                self.has_it_found.at(t=zero),
                l.amounts_begin.at(**at(zero)),
                *(l.names.at(w=w, u=zero, m=zero) for w in (WEIGHT, MOMENT)),
                l.numbered,
            ],
            step=[self.has_it_found.at(t=t + 1), makes_none.at(**at(t + 1)), self.all_equal_next],
            at=[{}, {"b": l.source(t)}],
        )
