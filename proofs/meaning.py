"""What the checker's forms stand for on a device, and what a device knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Theorem
from proofs.lines import FIRST, NAMED, OPERATORS, OWNER, UNKNOWN, Checker, Coefficients
from proofs.sums import total
from proofs.symbolic_checker import CheckedLanguage, masked
from proofs.symbolic_schedule import FIRSTS, PLACES, ZERO, either, first_of, place_of
from spec.operators import ALL, KEEP, OTHER, Offset, Who

COUNT = range(len(OPERATORS))
# devices and owners that stand for all cases: by where the first device is, and who looks
CASES = ((0, 0), (1, 0), (1, 1), (0, 1), (2, 1))


def literal(term: Callable[..., Any], *devices: int) -> Any:
    """What a term is for devices that are numbers."""
    return z3.simplify(term(*map(z3.IntVal, devices)))


def occurs(part: Any, term: Any) -> bool:
    """Whether a term has a part."""
    return term.eq(part) or any(occurs(part, each) for each in term.children())


def _number(who: Who) -> int:
    """The number of the place of a device that has a name."""
    assert isinstance(who, int)
    return PLACES[who]


class Meaning:
    """What forms come to on a device, and what a device knows."""

    def __init__(self, l: CheckedLanguage) -> None:
        self.l, self.k = l, l.k
        k, p, f = self.k, l.p, l.f
        self.views = k.reals("own_value sum_of_values owners_value firsts_value")
        self.part, self.part_is = k.define(
            "part", [f, p, *l.x, *self.views], either(f, {at: self._part(p, at) for at in FIRSTS})
        )
        # a product of its own name: where it is not unfolded, it is no product
        self.factors = k.reals("multiple multiplied")
        self.times, self.times_is = k.define("times", self.factors, self.factors[0] * self.factors[1])
        t, b, s, d, j = l.t, l.b, l.s, l.d, l.j
        form, views = l.form(t, b, s, first_of(l.owner(j))), l.views(s, d, j)
        self.term, self.term_is = k.define(
            "term", [t, b, s, d, j], self.at_device(d, l.owner(j), form, views)
        )
        self.stands_for = total(k, "stands_for", [t, b, d, j], s, self.term(t, b, s, d, j))
        self.knows, self.knows_is = k.define("knows", [f, p, *l.x], self._seen(lambda v: v == 0, p))
        self.counts, self.counts_is = k.define("counts", [f, *l.x], self._seen(lambda v: v >= 0))
        body = {g: self._summed(masked(l.x, g)) for g in FIRSTS}
        self.of_all, self.of_all_is = k.define("of_all", [f, *l.x, *self.views[1:]], either(f, body))

    def _summed(self, x: Coefficients) -> Any:
        """The sum of a form's parts over devices."""
        _, whole, owners, firsts = self.views
        read = {ALL: whole, OWNER: owners, FIRST: firsts}
        found = x[0] * whole
        for op, c in zip(OPERATORS[1:], x[1:], strict=True):
            found += c * read[op.of] * (self.l.size if op.to == ALL else 1)
        return found

    def _part(self, p: Any, f: int) -> Any:
        """The sum over operators of what they make of a value, on a device at place p."""
        own, whole, owners, firsts = self.views
        read = {KEEP.of: own, ALL: whole, OWNER: owners, FIRST: firsts}
        found = ZERO
        for op, c in zip(OPERATORS, masked(self.l.x, f), strict=True):
            here = c * read[op.of]
            everywhere = op.to in (KEEP.to, ALL)
            found += here if everywhere else z3.If(p == _number(op.to), here, ZERO)
        return found

    def at_device(self, d: Any, owner: Any, form: Coefficients, views: Sequence[Any]) -> Any:
        """A form's part on a device."""
        return self.part(first_of(owner), place_of(d, owner), *form, *views)

    def exists(self, f: int, place: Offset) -> Bool:
        """Whether there are devices at a place."""
        return self.l.size > len(NAMED[f]) if place is OTHER else z3.BoolVal(place in NAMED[f])

    def enough(self, f: Any) -> Bool:
        """Whether there are as many devices as have names."""
        return z3.Or(z3.BoolVal(f is OWNER) if isinstance(f, int) else f == OWNER, self.l.size > FIRST)

    def _seen(self, said: Callable[[Any], Bool], p: Any = None) -> Bool:
        """What is said of each number of times that the device at p sees what is not known, or any."""
        by_first = {}
        for f in FIRSTS:
            checker = Checker(self.l.size, f, lines.schedule())
            form = lines.form(UNKNOWN, masked(self.l.x, f))
            found = []
            for place in (*NAMED[f], OTHER):
                here = self.exists(f, place) if p is None else p == PLACES[place]
                seen = [z3.Implies(there, said(v)) for there, v in checker.sees(form, place)]
                found.append(z3.Implies(here, z3.And(*seen)))
            by_first[f] = z3.And(*found)
        return either(self.l.f, by_first)

    def knows_all(self, form: Coefficients, f: Any) -> Bool:
        """Whether all devices know a value."""

        def at(first: int) -> Bool:
            places = (*NAMED[first], OTHER)
            return z3.And(
                *(z3.Implies(self.exists(first, q), self.knows(f, PLACES[q], *form)) for q in places)
            )

        return either(f, {first: at(first) for first in FIRSTS})

    # ------------------------------------------------------- in a case that stands for others
    def views_at(self, d: int, owner: int) -> tuple[Any, ...]:
        """The views of a value on a device that stands for a case."""
        own, whole, owners, firsts = self.views
        firsts = owners if owner == 0 else firsts
        return ({owner: owners, 0: firsts}.get(d, own), whole, owners, firsts)

    def unfolded(self, d: int, owner: int, form: Coefficients) -> Theorem:
        """What a form's part is there."""
        at = dict(
            zip(map(str, (*self.l.x, *self.views)), (*form, *self.views_at(d, owner)), strict=True)
        )
        return self.part_is.at(f=literal(first_of, owner), p=literal(place_of, d, owner), **at)

    def there(self, d: int, owner: int, form: Coefficients) -> Any:
        """A form's part there."""
        views = self.views_at(d, owner)
        return self.part(literal(first_of, owner), literal(place_of, d, owner), *form, *views)

    def viewed(self, views: Sequence[Any]) -> dict[str, Any]:
        """Views as an instance of those that are variables."""
        return dict(zip(map(str, self.views), views, strict=True))

    def proved(self, name: str, goals: Sequence[Bool], uses: Sequence[Theorem]) -> Theorem:
        """Several statements at once, from facts of which some are named twice."""
        return self.k.prove(name, z3.And(*goals), (), {u.goal.get_id(): u for u in uses}.values())

    def named(self, form: Coefficients) -> dict[str, Any]:
        """Coefficients as an instance of those that are variables."""
        return dict(zip(map(str, self.l.x), form, strict=True))
