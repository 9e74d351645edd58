"""T4: on one axis, the checker's normal forms say how often devices have original values.

What a form of an original value comes to on device d, where device i alone has 1 of it, is how often d
has device i's. Line by line the forms that the specification makes do what the lines do to amounts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Kernel, Theorem
from proofs.lines import FIRST, MOVES, OPERATORS, OWNER, Coefficients, Line
from proofs.symbolic_checker import CheckedLanguage, by_place, masked
from proofs.symbolic_schedule import (
    BACKWARD,
    FIRSTS,
    INT,
    KINDS,
    MOMENT,
    ONE,
    PLACES,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    either,
    first_of,
    place_of,
)
from proofs.sums import total
from spec.operators import ALL, KEEP, Who

COUNT = range(len(OPERATORS))
# devices and owners that stand for all cases: by where the first device is, and who looks
CASES = ((0, 0), (1, 0), (1, 1), (0, 1), (2, 1))
SHARES: dict[Who, str] = {ALL: "all", OWNER: "owner", FIRST: "first"}


def literal(term: Callable[..., Any], *devices: int) -> Any:
    """What a term is for devices that are numbers."""
    return z3.simplify(term(*map(z3.IntVal, devices)))


def occurs(part: Any, term: Any) -> bool:
    """Whether a term has a part."""
    return term.eq(part) or any(occurs(part, each) for each in term.children())


def indicator(said: Bool) -> Any:
    """1 where a formula holds, 0 elsewhere."""
    return z3.If(said, ONE, ZERO)


class Represented(CheckedLanguage):
    """The language of one axis, whose amounts are those of forms."""

    def _amounts(self) -> None:
        super()._amounts()
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
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
        first = first_of(self.owner(j))
        self.amount, self.amount_is = k.define(
            "amount",
            [t, b, s, d, i, j],
            self.at_device(d, self.owner(j), self.form(t, b, s, first), self.one_of(i, d)),
        )
        self.unknowns, self.unknowns_is = k.define(
            "unknowns",
            [t, b, d, j],
            self.at_device(d, self.owner(j), self.not_known(t, b, first), self.alike),
        )
        self._groups_of_amounts()

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
            found += here if everywhere else z3.If(p == PLACES[op.to], here, ZERO)
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

    def named_forms(self, x: Coefficients, z: Coefficients) -> dict[str, Any]:
        return {**self.as_read(x), **dict(zip(map(str, self.z), z, strict=True))}

    def as_read(self, form: Coefficients) -> dict[str, Any]:
        """Coefficients as an instance of those that are variables."""
        return dict(zip(map(str, self.x), form, strict=True))

    def proved(self, name: str, goals: Sequence[Bool], uses: Sequence[Theorem]) -> Theorem:
        """Several statements at once, from facts of which some are named twice."""
        return self.k.prove(name, z3.And(*goals), (), {u.goal.get_id(): u for u in uses}.values())

    # -------------------------------------------------------------- lines that move
    def new(self, move: Line, f: Any, known: bool) -> Coefficients:
        """The coefficients after a line, in those before."""
        after = self.after_is[move.name, known]
        return [z3.simplify(after.at(op=o, f=f).goal.arg(1)) for o in COUNT]

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
                known[said.goal.arg(0).get_id()] = said
                return said.goal.arg(0)

            def at(c: Coefficients, part: Any = part) -> Any:
                return lambda e: e if e is lines.ANYONE else part(e, c)

            whole = self.of_all_is.at(f=f, **self.viewed(self.views_at(owner, owner)))
            new = self.unfolded(d, owner, self.new(move, f, known))
            junk = ZERO if known else self.views_at(d, owner)[0]
            value = move.value(d, owner, at(self.x), at(self.z), whole.goal.arg(0), junk, factor)
            goal.append(self.there(d, owner, after) == value)
            if (d, owner) in ((0, 0), (1, 1)):
                uses += [self.after_is[move.name, known].at(op=o, f=f) for o in COUNT]
            if z3.eq(new.goal.arg(0), value):
                continue
            read = [each for each in (*unfolded.values(), whole) if occurs(each.goal.arg(0), value)]
            if move.name == "scale" and known:  # a product of its own name
                before, terms = read[0].goal.children()
                times = [self.times_is.at(repeated=self.scaled_by, repetition=v) for v in (terms, before)]
                scaled.append(new.goal.arg(0) == times[0].goal.arg(0))
                scaled_by += [new, times[0]]
                uses.append(times[1])
                made.append(new.goal.arg(0) == times[1].goal.arg(0))
                made_by += read
            else:
                made.append(new.goal.arg(0) == value)
                made_by += [new, *read]
        if scaled:
            made_by.append(self.proved("parts_scaled", scaled, scaled_by))
        if made:
            uses.append(self.proved(f"part_made_by_{move.name}_{of}", made, made_by))
        return self.proved(f"algebra_of_{move.name}_{of}", goal, uses)

    # ------------------------------------------------------- the sum over devices
    def splits(self) -> None:
        """A form's part on a device is shares of a few kinds, of which devices have as many as they do."""
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
            said = [self.unfolded(d, o, self.x), times_is.at(repeated=self.x[0], repetition=at[str(self.views[0])])]
            said += [
                shares_are[who].at(f=g, **at)
                for who in SHARES
                if who == ALL or (who == OWNER and d == o) or (who == FIRST and d == 0 != o)
            ]
            part, *terms = (each.goal.arg(0) for each in said)
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
            first, *others, last = (each.goal.arg(0) for each in said)
            in_shares.append(sum(others, first) == last)
            uses += [*said, even]
        self.added = self.proved("shares_make_the_sum", in_shares, uses)

    def _share(self, x: Coefficients, who: Any) -> Any:
        _, whole, owners, firsts = self.views
        read = {ALL: whole, OWNER: owners, FIRST: firsts}
        return sum((c * read[op.of] for op, c in zip(OPERATORS, x, strict=True) if op.to == who), ZERO)

    def sum_over_devices(
        self,
        name: str,
        parts: Any,
        part_is: Theorem,
        form: Coefficients,
        views: Callable[[Any], Sequence[Any]],
        upto: Any,
        given: Sequence[Bool],
    ) -> Theorem:
        """The parts of a form that devices have add up to what the form says of the sum.

        `parts`: the sum over devices; `views(c)`: what device c sees; `upto`: the sum of what c has.
        """
        k, c, j = self.k, self.c, self.j
        owner, x = self.owner(j), form
        seen = views(c)
        of = [self.share_of[who](first_of(owner), *x, *seen[1:]) for who in (ALL, OWNER, FIRST)]
        first = z3.And(first_of(owner) == FIRST, c > 0)
        before = k.induct(
            f"{name}_of_devices",
            c,
            parts
            == self.times(x[0], upto)
            + self.times(z3.ToReal(c), of[0])
            + z3.If(owner < c, of[1], ZERO)
            + z3.If(first, of[2], ZERO),
            given,
            base=[
                part_is[0],
                self.mesh.inside,
                self.times_is.at(repeated=x[0], repetition=ZERO),
                self.times_is.at(repeated=ZERO, repetition=of[0]),
            ],
            step=[
                part_is[1],
                part_is[2],
                self.split.at(**self.as_read(x), **self.viewed(seen)),
                self.more_of_it.at(repeated=x[0], repetition=upto, more_repetition=seen[0]),
                self.once_more.at(repeated=z3.ToReal(c), repetition=of[0]),
            ],
        )
        return k.prove(
            f"{name}_make_the_sum",
            z3.substitute(parts, (c, self.n))
            == self.of_all(first_of(owner), *x, *seen[1:]),
            given,
            [
                before.at(c=self.n),
                self.added.at(**self.as_read(x), **self.viewed(seen)),
                self.mesh.inside,
            ],
        )

    def sums(self) -> tuple[Theorem, Theorem]:
        """Of amounts, and of what is not known."""
        t, b, s, d, i, c, j = self.t, self.b, self.s, self.d, self.i, self.c, self.j
        first = first_of(self.owner(j))
        self.splits()
        amounts = self.sum_over_devices(
            "amounts",
            self.in_group.upto(c),
            (self.in_group.start, self.in_group.next, self.amount_is.at(d=c)),
            self.form(t, b, s, first),
            lambda device: self.one_of(i, device),
            indicator(i < c),
            [i >= 0, i < self.n],
        )
        unknowns = self.sum_over_devices(
            "unknowns",
            self.unknowns_in_group.upto(c),
            (self.unknowns_in_group.start, self.unknowns_in_group.next, self.unknowns_is.at(d=c)),
            self.not_known(t, b, first),
            lambda _: self.alike,
            z3.ToReal(c),
            [],
        )
        return amounts, unknowns

    # ------------------------------------------------------------ all kinds of lines
    def _does_the_same(self, move: Line, known: bool, summed: Theorem) -> Theorem:
        """What a line does to amounts, or to what is not known, is what it does to values."""
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
        first, source, target = first_of(self.owner(j)), self.source(t), self.target(t)

        def form(time: Any, place: Any) -> Coefficients:
            return self.form(time, place, s, first) if known else self.not_known(time, place, first)

        x, z = form(t, source), form(t, target)
        after = self.after[move.name, known]
        next_is = self.coefficient_next if known else self.unknown_next
        given = [t >= 0, self.kind(t) == KINDS[move.name]]
        coefficients = k.prove(
            f"coefficients_after_{move.name}_{known}",
            z3.And(
                *(
                    c == after(o, first, self.factor(t), *x, *z)
                    for o, c in enumerate(form(t + 1, target))
                )
            ),
            given,
            [next_is.at(op=o, b=target, f=first) for o in COUNT],
        )
        is_, content = (
            (self.amount_is, self.of_amounts) if known else (self.unknowns_is, self.of_unknowns)
        )
        views = self.one_of(i, d) if known else self.alike
        law = self.algebra(move, known).at(
            scaled_by=self.factor(t),
            **self.as_read(x),
            **dict(zip(map(str, self.z), z, strict=True)),
            **self.viewed(views),
        )
        devices = (d, self.owner(j), z3.IntVal(0))
        reads = [is_.at(b=place, d=e) for place in (source, target) for e in devices]
        amount = (
            self.amount(t + 1, target, s, d, i, j) if known else self.unknowns(t + 1, target, d, j)
        )
        return k.prove(
            f"moved_by_{move.name}_{known}",
            amount == self.moved_on(move, content),
            [*given, *([i >= 0, i < self.n] if known else [])],
            [
                is_.at(t=t + 1, b=target),
                coefficients,
                law,
                *reads,
                self.mesh.inside,
                *([summed.at(b=source)] if "reduce" in move.name else []),
            ],
        )

    def _placed(self) -> Theorem:
        """What devices have by their places: once, or not at all."""
        self.amounts_at = self.k.reals("at_owner at_first at_others")
        parts: list[Bool] = []
        uses = []
        for d, owner in CASES:
            f, p = literal(first_of, owner).as_long(), literal(place_of, d, owner).as_long()
            part = self.unfolded(d, owner, by_place(lambda q: self.amounts_at[q], f))
            said = part.goal.arg(0)
            parts.append(z3.Implies(self.amounts_at[p] == 1, said == self.views_at(d, owner)[0]))
            parts.append(z3.Implies(self.amounts_at[p] == 0, said == 0))
            uses.append(part)
        return self.k.prove("what_is_placed_is_there", z3.And(*parts), (), uses)

    def placed_as(self, amount: Callable[[int], Any], views: Sequence[Any]) -> Theorem:
        """The same for some amounts by place."""
        values = map(amount, range(len(PLACES)))
        amounts = dict(zip(map(str, self.amounts_at), values, strict=True))
        return self.placed.at(**amounts, **self.viewed(views))

    def follows(self) -> None:
        """The amounts of forms run the lines, and what is not known with them."""
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
        first = first_of(self.owner(j))
        amounts, unknowns = self.sums()
        self.placed = self._placed()
        for known, summed in ((True, amounts), (False, unknowns)):
            next_is = self.coefficient_next if known else self.unknown_next
            is_ = self.amount_is if known else self.unknowns_is
            content = self.of_amounts if known else self.of_unknowns
            views = self.one_of(i, d) if known else self.alike
            after = [next_is.at(op=o, f=first) for o in COUNT]
            here = self.amount(t + 1, b, s, d, i, j) if known else self.unknowns(t + 1, b, d, j)
            word = "amounts" if known else "unknowns"
            elsewhere = k.prove(
                f"{word}_elsewhere",
                here == self.ran(content),
                [t >= 0, self.untouched(b)],
                [is_, is_.at(t=t + 1), *after],
            )
            others = z3.Or(self.writes_second(b), self.drops(b))
            computes = z3.Or(self.kind(t) == BACKWARD, self.kind(t) == UPDATE)
            made = k.prove(
                f"{word}_of_what_is_computed",
                here == self.ran(content),
                [t >= 0, z3.Or(others, z3.And(b == self.target(t), computes))],
                [is_, is_.at(t=t + 1), *after, *self._by_places(known, views)],
            )
            moved = [self._does_the_same(move, known, summed) for move in MOVES]
            ran = k.prove(
                f"{word}_run_the_lines",
                here == self.ran(content),
                [t >= 0, *([i >= 0, i < self.n] if known else [])],
                [elsewhere, made, *moved],
            )
            begun = k.prove(
                f"{word}_begin",
                *(
                    (self.amount(0, b, s, d, i, j) == self.amount_begun(),)
                    if known
                    else (self.unknowns(0, b, d, j) == self.unknowns_begun(),)
                ),
                (),
                [
                    is_.at(t=z3.IntVal(0)),
                    *(
                        (self.coefficient_start if known else self.unknown_start).at(op=o, f=first)
                        for o in COUNT
                    ),
                    *self._by_places_at_first(known, views),
                ],
            )
            if known:
                self.amounts_run, self.amounts_begin = ran, begun
            else:
                self.unknowns_run, self.unknowns_begin = ran, begun

    def _by_places(self, known: bool, views: Sequence[Any]) -> list[Theorem]:
        """What is placed where line t computes, or drops."""
        t, s, first = self.t, self.s, first_of(self.owner(self.j))
        if not known:
            lost = self.lost(first, z3.IntVal(0), t)
            return [
                self.placed_as(lambda q: indicator(self.lost(first, z3.IntVal(q), t)), views),
                self.placed_as(lambda _: indicator(lost), views),
                self.placed_as(lambda _: ONE, views),
            ]
        step = self.step(t) + 1

        def state(right: Any, wrong: Any) -> Theorem:
            def at(q: int) -> Any:
                met = self.met(first, z3.IntVal(q), t)
                return indicator(s == z3.If(met, self.state(right, step), self.state(wrong, t)))

            return self.placed_as(at, views)

        computed = self.made_gradient(t, self.d)
        return [
            self.placed_as(lambda _: indicator(s == computed), views),
            self.placed_as(lambda _: ZERO, views),
            state(WEIGHT, WRONG),
            state(MOMENT, WRONG_MOMENT),
        ]

    def _by_places_at_first(self, known: bool, views: Sequence[Any]) -> list[Theorem]:
        """What is placed where places have something at first."""
        if not known:
            found = [lambda _: ONE, lambda _: ZERO, lambda q: indicator(z3.BoolVal(q != PLACES[OWNER]))]
            return [self.placed_as(each, views) for each in found]

        def at(what: Any, slices: bool) -> Theorem:
            here = self.s == self.state(what, 0)
            return self.placed_as(
                lambda q: indicator(here) if not slices or q == PLACES[OWNER] else ZERO, views
            )

        return [
            self.placed_as(lambda _: ZERO, views),
            *(at(what, slices) for what in (WEIGHT, MOMENT) for slices in (False, True)),
        ]
