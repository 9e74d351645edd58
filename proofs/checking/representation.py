"""T4: on one axis, the checker's normal forms say how often devices have original values.

What a form of an original value comes to on device d, where device i alone has 1 of it, is how often d
has device i's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking.form_parts import CASES, COUNT, FormParts, literal
from proofs.checking.lines import FIRST, MOVES, OWNER, Coefficients, Line
from proofs.checking.symbolic_checker import by_place
from proofs.checking.symbolic_schedule import (
    BACKWARD,
    KINDS,
    MOMENT,
    ONE,
    PLACES,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    first_of,
    indicator,
    place_of,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Or, ToReal
from spec.devices.operators import ALL


class Represented(FormParts):
    """The language of one axis, whose amounts are those of forms."""

    def _amounts(self) -> None:
        super()._amounts()
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
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

    def sum_over_devices(
        self,
        name: str,
        parts: Any,
        part_is: tuple[Theorem, Theorem, Theorem],
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
        first = And(first_of(owner) == FIRST, c > 0)
        before = k.induct(
            f"{name}_of_devices",
            c,
            parts
            == self.times(x[0], upto)
            + self.times(ToReal(c), of[0])
            + If(owner < c, of[1], ZERO)
            + If(first, of[2], ZERO),
            given[:1],
            base=[
                part_is[0],
                self.mesh.some,
                self.times_is.at(repeated=x[0], repetition=ZERO),
                self.times_is.at(repeated=ZERO, repetition=of[0]),
            ],
            step=[
                part_is[1],
                part_is[2],
                self.mesh.member_is,
                self.split.at(**self.as_read(x), **self.viewed(seen)),
                self.more_of_it.at(repeated=x[0], repetition=upto, more_repetition=seen[0]),
                self.once_more.at(repeated=ToReal(c), repetition=of[0]),
            ],
        )
        return k.prove(
            f"{name}_make_the_sum",
            substitute(parts, (c, self.n)) == self.of_all(first_of(owner), *x, *seen[1:]),
            given,
            [
                before.at(c=self.n),
                self.added.at(**self.as_read(x), **self.viewed(seen)),
                self.mesh.some,
            ],
        )

    def sums(self) -> tuple[Theorem, Theorem]:
        """Of amounts, and of what is not known."""
        t, b, s, i, c, j = self.t, self.b, self.s, self.i, self.c, self.j
        first, member = first_of(self.owner(j)), self.mesh.member(t, self.d, c)
        self.splits()
        amounts = self.sum_over_devices(
            "amounts",
            self.in_group.upto(c),
            (self.in_group.start, self.in_group.next, self.amount_is.at(d=member)),
            self.form(t, b, s, first),
            lambda device: self.one_of(i, device),
            indicator(i < c),
            [i >= 0, i < self.n],
        )
        unknowns = self.sum_over_devices(
            "unknowns",
            self.unknowns_in_group.upto(c),
            (self.unknowns_in_group.start, self.unknowns_in_group.next, self.unknowns_is.at(d=member)),
            self.not_known(t, b, first),
            lambda _: self.alike,
            ToReal(c),
            [],
        )
        return amounts, unknowns

    # ------------------------------------------------------------ all kinds of lines
    def _does_the_same(self, move: Line, known: bool, summed: Theorem) -> Theorem:
        """What a line does to amounts, or to what is not known, is what it does to values."""
        k, t, s, d, i, j = self.k, self.t, self.s, self.d, self.i, self.j
        first, source, target = first_of(self.owner(j)), self.source(t), self.target(t)

        def form(time: Any, place: Any) -> Coefficients:
            return self.form(time, place, s, first) if known else self.not_known(time, place, first)

        x, z = form(t, source), form(t, target)
        after = self.after[move.name, known]
        next_is = self.coefficient_next if known else self.unknown_next
        given = [t >= 0, self.kind(t) == KINDS[move.name]]
        coefficients = k.prove(
            f"coefficients_after_{move.name}_{known}",
            And(
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
        mesh = self.mesh
        coordinate = {"all_gather": mesh.owner(t, d, j), "broadcast": IntVal(0)}.get(move.name, d)
        own = [is_.at(b=source)]
        facts = {
            "all_reduce": [summed.at(b=source), mesh.size_is],
            "all_gather": [mesh.owner_is],
            "copy": own,
            "keep": [*own, is_.at(b=target), *mesh.places],
            "accumulate": [*own, is_.at(b=target)],
            "scale": own,
        }.get(move.name, [])
        if move.name in ("all_gather", "broadcast"):
            facts += [
                is_.at(b=source, d=mesh.member(t, d, coordinate)),
                mesh.member_is.at(c=coordinate),
            ]
        in_range = [i >= 0, i < self.n] if known and move.name == "all_reduce" else []
        amount = self.amount(t + 1, target, s, d, i, j) if known else self.unknowns(t + 1, target, d, j)
        return k.prove(
            f"moved_by_{move.name}_{known}",
            amount == self.moved_on(move, content),
            [*given, *in_range],
            [is_.at(t=t + 1, b=target), coefficients, law, *facts],
        )

    def _placed(self) -> Theorem:
        """What devices have by their places: once, or not at all."""
        self.amounts_at = self.k.reals("at_owner at_first at_others")
        parts: list[Bool] = []
        uses = []
        for d, owner in CASES:
            f, p = literal(first_of, owner).of, literal(place_of, d, owner).of
            part = self.unfolded(d, owner, by_place(lambda q: self.amounts_at[q], f))
            said = part.goal.args[0]
            parts.append(Implies(self.amounts_at[p] == 1, said == self.views_at(d, owner)[0]))
            parts.append(Implies(self.amounts_at[p] == 0, said == 0))
            uses.append(part)
        return self.k.prove("what_is_placed_is_there", And(*parts), (), uses)

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
            others = Or(self.writes_second(b), self.drops(b))
            computes = Or(self.kind(t) == BACKWARD, self.kind(t) == UPDATE)
            made = k.prove(
                f"{word}_of_what_is_computed",
                here == self.ran(content),
                [t >= 0, Or(others, And(b == self.target(t), computes))],
                [is_.at(t=t + 1), *after, *self._by_places(known, views)],
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
                    is_.at(t=IntVal(0)),
                    *(
                        (self.coefficient_start if known else self.unknown_start).at(op=o, f=first)
                        for o in COUNT
                    ),
                    *self._by_places_at_first(known, views),
                    self.mesh.holds_is,
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
            lost = self.lost(first, IntVal(0), t)
            return [
                self.placed_as(lambda q: indicator(self.lost(first, IntVal(q), t)), views),
                self.placed_as(lambda _: indicator(lost), views),
                self.placed_as(lambda _: ONE, views),
            ]
        step = self.step(t) + 1

        def state(right: Any, wrong: Any) -> Theorem:
            def at(q: int) -> Any:
                met = self.met(first, IntVal(q), t)
                return indicator(s == If(met, self.state(right, step), self.state(wrong, t)))

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
            found = [lambda _: ONE, lambda _: ZERO, lambda q: indicator(BoolVal(q != PLACES[OWNER]))]
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
