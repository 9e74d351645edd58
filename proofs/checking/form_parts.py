"""What normal forms come to on a device, along one axis: T1, line by line, for any coefficients.

A form comes to what its operators make of a value: of the device's own, of the sum, of the owner's, of
the first device's. Line by line the forms that the specification makes come to what the lines do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking import lines
from proofs.checking.lines import FIRST, OPERATORS, OWNER, Coefficients, Line
from proofs.checking.symbolic_checker import CheckedLanguage, masked
from proofs.checking.symbolic_schedule import (
    FIRSTS,
    ONE,
    PLACES,
    ZERO,
    either,
    first_of,
    indicator,
    place_of,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, If, IntVal
from spec.devices.operators import ALL, KEEP, Who

COUNT = range(len(OPERATORS))
# devices and owners that stand for all cases: by where the first device is, and who looks
CASES = ((0, 0), (1, 0), (1, 1), (0, 1), (2, 1))
SHARES: dict[Who, str] = {ALL: "all", OWNER: "owner", FIRST: "first"}


def literal(term: Callable[..., Any], *devices: int) -> Any:
    """What a term is for devices that are numbers."""
    return term(*map(IntVal, devices))


def number_of(who: Who) -> int:
    """The number of the place of a device that has a name."""
    assert isinstance(who, int)
    return PLACES[who]


def occurs(part: Any, term: Any) -> bool:
    """Whether a term has a part."""
    return term is part or any(occurs(part, each) for each in term.args)


class FormParts(CheckedLanguage):
    """The language of one axis, and what its forms come to."""

    def _amounts(self) -> None:
        super()._amounts()
        k = self.k
        self.views = k.reals("own_value sum_of_values owners_value firsts_value")
        self.part, self.part_is = k.define(
            "part",
            [self.f, self.p, *self.x, *self.views],
            either(self.f, {at: self._part(self.p, at) for at in FIRSTS}),
        )
        # a product of its own name: where it is not unfolded, it is no product
        self.factors = k.reals("repeated repetition")
        self.times, self.times_is = k.define("repeat", self.factors, self.factors[0] * self.factors[1])
        body = {g: self._summed(masked(self.x, g)) for g in FIRSTS}
        self.of_all, self.of_all_is = k.define(
            "of_all", [self.f, *self.x, *self.views[1:]], either(self.f, body)
        )

    # ------------------------------------------------------------- what forms come to
    def one_of(self, i: Any, d: Any) -> tuple[Any, ...]:
        """What device d sees of a value that device i alone has, once."""
        owner = self.owner(self.j)
        return indicator(d == i), ONE, indicator(owner == i), indicator(i == 0)

    @property
    def alike(self) -> tuple[Any, ...]:
        """What any device sees of a value that all have, once."""
        return ONE, self.size, ONE, ONE

    def _summed(self, x: Coefficients) -> Any:
        """The sum of a form's parts over devices."""
        _, whole, owners, firsts = self.views
        read = {ALL: whole, OWNER: owners, FIRST: firsts}
        found = x[0] * whole
        for op, c in zip(OPERATORS[1:], x[1:], strict=True):
            found += c * read[op.of] * (self.size if op.to == ALL else 1)
        return found

    def _part(self, p: Any, f: int) -> Any:
        """The sum over operators of what they make of a value, on a device at place p."""
        own, whole, owners, firsts = self.views
        read = {KEEP.of: own, ALL: whole, OWNER: owners, FIRST: firsts}
        found = ZERO
        for op, c in zip(OPERATORS, masked(self.x, f), strict=True):
            here = c * read[op.of]
            everywhere = op.to in (KEEP.to, ALL)
            found += here if everywhere else If(p == number_of(op.to), here, ZERO)
        return found

    def at_device(self, d: Any, owner: Any, form: Coefficients, views: Sequence[Any]) -> Any:
        """A form's part on a device."""
        return self.part(first_of(owner), place_of(d, owner), *form, *views)

    def views_at(self, d: int, owner: int) -> tuple[Any, ...]:
        """The views of a value on a device that stands for a case."""
        own, whole, owners, firsts = self.views
        firsts = owners if owner == 0 else firsts
        return ({owner: owners, 0: firsts}.get(d, own), whole, owners, firsts)

    def unfolded(self, d: int, owner: int, form: Coefficients) -> Theorem:
        """What a form's part is there."""
        views = self.views_at(d, owner)
        f, p = literal(first_of, owner), literal(place_of, d, owner)
        return self.part_is.at(f=f, p=p, **self.as_read(form), **self.viewed(views))

    def there(self, d: int, owner: int, form: Coefficients) -> Any:
        """A form's part there."""
        views = self.views_at(d, owner)
        return self.part(literal(first_of, owner), literal(place_of, d, owner), *form, *views)

    def viewed(self, views: Sequence[Any]) -> dict[str, Any]:
        """Views as an instance of those that are variables."""
        return dict(zip(map(str, self.views), views, strict=True))

    def as_read(self, form: Coefficients) -> dict[str, Any]:
        """Coefficients as an instance of those that are variables."""
        return dict(zip(map(str, self.x), form, strict=True))

    def proved(self, name: str, goals: Sequence[Bool], uses: Sequence[Theorem]) -> Theorem:
        """Several statements at once, from facts of which some are named twice."""
        return self.k.prove(name, And(*goals), (), {id(u.goal): u for u in uses}.values())

    # -------------------------------------------------------------- lines that move
    def new(self, move: Line, f: Any, known: bool) -> Coefficients:
        """The coefficients after a line, in those before."""
        after = self.after_is[move.name, known]
        return [after.at(op=o, f=f).goal.args[1] for o in COUNT]

    def algebra(self, move: Line, known: bool) -> Theorem:
        """The form after a line comes to what the line makes of what forms came to."""
        symbol = self.after[move.name, known]
        factor = self.scaled_by if known else ONE
        goal: list[Bool] = []
        made: list[Bool] = []
        scaled: list[Bool] = []
        uses: list[Theorem] = []
        made_by: list[Theorem] = []
        scaled_by: list[Theorem] = []
        of = "of" if known else "of_unknown"
        for d, owner in CASES:
            f = literal(first_of, owner)
            after = [symbol(o, f, self.scaled_by, *self.x, *self.z) for o in COUNT]
            unfolded: dict[int, Theorem] = {}

            def part(e: int, c: Coefficients, owner: int = owner, known: Any = unfolded) -> Any:
                said = self.unfolded(e, owner, c)
                known[id(said.goal.args[0])] = said
                return said.goal.args[0]

            def at(c: Coefficients, part: Any = part) -> Any:
                return lambda e: e if e is lines.ANYONE else part(e, c)

            whole = self.of_all_is.at(f=f, **self.viewed(self.views_at(owner, owner)))
            new = self.unfolded(d, owner, self.new(move, f, known))
            junk = ZERO if known else self.views_at(d, owner)[0]
            value = move.value(d, owner, at(self.x), at(self.z), whole.goal.args[0], junk, factor)
            goal.append(self.there(d, owner, after) == value)
            if (d, owner) in ((0, 0), (1, 1)):
                uses += [self.after_is[move.name, known].at(op=o, f=f) for o in COUNT]
            if new.goal.args[0] is value:
                continue
            read = [each for each in (*unfolded.values(), whole) if occurs(each.goal.args[0], value)]
            if move.name == "scale" and known:  # a product of its own name
                before, terms = read[0].goal.args
                times = [
                    self.times_is.at(repeated=self.scaled_by, repetition=v) for v in (terms, before)
                ]
                scaled.append(new.goal.args[0] == times[0].goal.args[0])
                scaled_by += [new, times[0]]
                uses.append(times[1])
                made.append(new.goal.args[0] == times[1].goal.args[0])
                made_by += read
            else:
                made.append(new.goal.args[0] == value)
                made_by += [new, *read]
        if scaled:
            made_by.append(self.proved("parts_scaled", scaled, scaled_by))
        if made:
            uses.append(self.proved(f"part_made_by_{move.name}_{of}", made, made_by))
        return self.proved(f"algebra_of_{move.name}_{of}", goal, uses)

    # ------------------------------------------------------- the sum over devices
    def splits(self) -> None:
        """A form's part on a device is shares: one that all have, the owner's, the first device's."""
        k, (c, v), more = self.k, self.factors, self.k.reals("more_repetition")
        times, times_is = self.times, self.times_is
        self.more_of_it = k.prove(
            "repetitions_add_up",
            times(c, v + more) == times(c, v) + times(c, more),
            uses=[times_is, times_is.at(repetition=more), times_is.at(repetition=v + more)],
        )
        self.once_more = k.prove(
            "one_repetition_more",
            times(c + 1, v) == times(c, v) + v,
            uses=[times_is, times_is.at(repeated=c + 1)],
        )
        params = [self.f, *self.x, *self.views[1:]]
        self.share_of: dict[Who, Any] = {}
        shares_are: dict[Who, Theorem] = {}
        for who, name in SHARES.items():
            body = {g: self._share(masked(self.x, g), who) for g in FIRSTS}
            self.share_of[who], shares_are[who] = k.define(
                f"share_of_{name}", params, either(self.f, body)
            )
        parts: list[Bool] = []
        uses: list[Theorem] = []
        for d, o in CASES:
            at = self.viewed(self.views_at(d, o))
            g = literal(first_of, o)
            said = [
                self.unfolded(d, o, self.x),
                times_is.at(repeated=self.x[0], repetition=at[str(self.views[0])]),
            ]
            said += [
                shares_are[who].at(f=g, **at)
                for who in SHARES
                if who == ALL or (who == OWNER and d == o) or (who == FIRST and d == 0 != o)
            ]
            part, *terms = (each.goal.args[0] for each in said)
            parts.append(part == sum(terms[1:], terms[0]))
            uses += said
        self.split = self.proved("a_part_is_shares", parts, uses)
        in_shares: list[Bool] = []
        uses = []
        for o in FIRSTS:
            at = self.viewed(self.views_at(o, o))
            g = literal(first_of, o)
            of_all = self.share_of[ALL](g, *self.x, *self.views_at(o, o)[1:])
            said = [
                times_is.at(repeated=self.x[0], repetition=self.views[1]),
                times_is.at(repeated=self.size, repetition=of_all),
                *(shares_are[who].at(f=g, **at) for who in ([OWNER] if o == 0 else [OWNER, FIRST])),
                self.of_all_is.at(f=g, **at),
            ]
            even = shares_are[ALL].at(f=g, **at)
            first, *others, last = (each.goal.args[0] for each in said)
            in_shares.append(sum(others, first) == last)
            uses += [*said, even]
        self.added = self.proved("shares_make_the_sum", in_shares, uses)

    def _share(self, x: Coefficients, who: Any) -> Any:
        _, whole, owners, firsts = self.views
        read = {ALL: whole, OWNER: owners, FIRST: firsts}
        return sum((c * read[op.of] for op, c in zip(OPERATORS, x, strict=True) if op.to == who), ZERO)
