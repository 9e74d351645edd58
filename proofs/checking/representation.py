"""T4: on any number of axes, the checker's normal forms say how often devices have original values.

What a form of an original value comes to on device d, where device i alone has 1 of it, is how often d
has device i's. What all devices have alike is the first device's, as often as d has it from anyone.
What is not known counts as often as it comes from any device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proofs.checking.axis_tables import LINEAR
from proofs.checking.content import moving
from proofs.checking.lines import Line
from proofs.checking.placed_levels import PlacedLevels
from proofs.checking.symbols import KINDS, ONE, ZERO
from proofs.tools.sums import total
from proofs.trusted.kernel import Theorem
from proofs.trusted.terms import And, BoolVal, If, IntVal, Not

TRUE, FALSE = BoolVal(True), BoolVal(False)


class Represented(PlacedLevels):
    """The language of axes, whose amounts are those of forms."""

    def _amounts(self) -> None:
        super()._amounts()
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
        mesh, alike = self.mesh, self.is_state(s)
        self.any_word = k.fixed("any_word", self.word.sort)
        has = self.value(TRUE, alike, t, b, s, d, i, j, self.any_word, mesh.axes)
        self.amount, self.amount_is = k.define(
            "amount", [t, b, s, d, i, j], If(And(alike, i != 0), ZERO, has)
        )
        unknown = self.value(FALSE, FALSE, t, b, IntVal(0), d, i, j, self.any_word, mesh.axes)
        self.some_unknowns = total(k, "unknowns_of_some", [t, b, d, j], i, unknown)
        self.unknowns = lambda t, b, d, j: self.some_unknowns(t, b, d, j, self.n)
        self._groups_of_amounts()

    def follows(self) -> None:
        """The amounts of forms run the lines, and what is not known with them."""
        self.laws()
        self.before_its_axis()
        self.on_its_axis()
        self.alike_before()
        self.groups()
        self.groups_on_axis()
        self.groups_after()
        self.moved_forms = self.lines_on_devices()
        self.same_forms = self.untouched_forms()
        self.placed_forms()
        self.some = [self.mesh.on_axes.at(a=self.mesh.axis(self.t))]
        self._amounts_follow()
        self._unknowns_follow()

    def _form(self, known: bool) -> dict[str, Any]:
        """The forms that amounts, or what is not known, are of: as an instance."""
        mesh = self.mesh
        alike = self.is_state(self.s) if known else FALSE
        return {
            "is_known": TRUE if known else FALSE,
            "alike": alike,
            "word": self.any_word,
            "level": mesh.axes,
            **({} if known else {"s": IntVal(0)}),
        }

    def _on(self, known: bool) -> dict[str, Any]:
        """The arrays of such forms."""
        mesh, j, alike = self.mesh, self.j, self._form(known)["alike"]
        return {
            "f": mesh.firsts(j),
            "p": mesh.places(self.d, j),
            "q": mesh.sources(alike, self.d, self.i, j),
        }

    def _placed_as(self, known: bool) -> list[Theorem]:
        """What a device has of what is placed."""
        form, on = self._form(known), self._on(known)
        at = {name: value for name, value in form.items() if name in ("is_known", "s")}
        there = {name: value for name, value in form.items() if name != "level"}
        return [
            self.placed_there.at(**there),
            self.placed_is.at(f=on["f"], p=on["p"], **at),
        ]

    def _runs(
        self,
        word: str,
        here: Callable[[Any], Any],
        content: Any,
        given: list[Any],
        by_line: Callable[[Line], list[Theorem]],
        elsewhere: list[Theorem],
        placed: list[Theorem],
    ) -> Theorem:
        """What lines make of amounts, or of what is not known."""
        k, t, b = self.k, self.t, self.b
        ran = here(t + 1) == self.ran(content)
        untouched, computed = [self.untouched(b)], [Not(self.moves(b)), Not(self.untouched(b))]
        found = [
            k.prove(f"{word}_elsewhere", ran, [t >= 0, *untouched], [*elsewhere, *self.some]),
            k.prove(
                f"{word}_of_what_is_computed",
                ran,
                [t >= 0, *computed, *given],
                placed,
            ),
        ]
        for move in LINEAR:
            here_it_is = [b == self.target(t), self.kind(t) == KINDS[move.name]]
            devices = given[: self.devices_of(move)] if word == "amounts" else given
            under = [t >= 0, *here_it_is, *devices]
            found.append(k.prove(f"{word}_after_{move.name}", ran, under, by_line(move)))
        return k.prove(f"{word}_run_the_lines", ran, [t >= 0, *given], found)

    # ------------------------------------------------------------------------ amounts
    def _amounts_follow(self) -> None:
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
        is_, form, mesh = self.amount_is, self._form(True), self.mesh
        given = [self.is_device(d), self.is_device(i)]
        groups = self._groups_of_forms()

        def by_line(move: Line) -> list[Theorem]:
            return [
                is_.at(t=t + 1, b=self.target(t)),
                self.moved_forms[move.name].at(**form),
                *(is_.at(b=place, d=e) for place, e in self._reads(move)),
                *([groups, mesh.size_is] if move.name == "all_reduce" else []),
                *self.some,
            ]

        elsewhere = [is_, is_.at(t=t + 1), self.same_forms.at(**form, **self._on(True))]
        placed = self._placed_as(True)
        self.amounts_run = self._runs(
            "amounts",
            lambda t: self.amount(t, b, s, d, i, j),
            self.of_amounts,
            given,
            by_line,
            elsewhere,
            [is_.at(t=t + 1), *placed],
        )
        before = IntVal(-1)
        self.amounts_begin = k.prove(
            "amounts_begin",
            self.amount(0, b, s, d, i, j) == self.amount_begun(),
            given,
            [is_.at(t=IntVal(0)), *(e.at(t=before) for e in placed), mesh.holds_is],
        )

    def _groups_of_forms(self) -> Theorem:
        """What amounts of a group add up to is what its forms do."""
        t, c, s, d, i, j = self.t, self.c, self.s, self.d, self.i, self.j
        b, form = self.source(t), self._form(True)
        group = self.group(TRUE, form["alike"], t, b, s, d, i, j, self.any_word, self.mesh.axes, c)
        return self.k.induct(
            "groups_of_amounts",
            c,
            self.in_group(t, b, s, d, i, j, c) == If(And(self.is_state(s), i != 0), ZERO, group),
            base=[self.in_group.start.at(b=b), self.group.start.at(b=b, **form)],
            step=[
                self.in_group.next.at(b=b),
                self.group.next.at(b=b, **form),
                self.amount_is.at(b=b, d=self.mesh.member(t, d, c)),
            ],
        ).at(c=self.mesh.size(t))

    # -------------------------------------------------------------- what is not known
    def _unknowns_follow(self) -> None:
        k, t, b, d, i, j = self.k, self.t, self.b, self.d, self.i, self.j
        form, mesh, of = self._form(False), self.mesh, self.some_unknowns
        given, n = [self.is_device(d)], self.n
        groups = self._groups_of_unknowns()

        def by_line(move: Line) -> list[Theorem]:
            reads, target = self._reads(move), self.target(t)
            sums = self.unknown_groups(t, self.source(t), d, j, i, mesh.size(t))
            content = moving(lambda b, e: of(t, b, e, j, i), sums, ONE)
            facts = [groups[0], mesh.size_is] if move.name == "all_reduce" else []
            alike = k.induct(
                f"unknowns_of_some_after_{move.name}",
                i,
                of(t + 1, target, d, j, i) == self.moved_on(move, content),
                [
                    *(t >= 0, self.kind(t) == KINDS[move.name]),
                    *given[: self.devices_of(move)],
                    *([i <= n] if move.name == "all_reduce" else []),
                ],
                base=[
                    of.start.at(t=t + 1, b=target),
                    *(of.start.at(b=place, d=e) for place, e in reads),
                    *([groups[1], mesh.size_is, *self.some] if facts else []),
                ],
                step=[
                    of.next.at(t=t + 1, b=target),
                    *(of.next.at(b=place, d=e) for place, e in reads),
                    self.moved_forms[move.name].at(**form),
                    *facts,
                    *self.some,
                ],
            )
            return [alike.at(i=n), *([groups[2], mesh.size_is, *self.some] if facts else [])]

        same = k.induct(
            "unknowns_of_some_elsewhere",
            i,
            of(t + 1, b, d, j, i) == of(t, b, d, j, i),
            [t >= 0, self.untouched(b)],
            base=[of.start, of.start.at(t=t + 1)],
            step=[
                of.next,
                of.next.at(t=t + 1),
                self.same_forms.at(**form, **self._on(False)),
                *self.some,
            ],
        )
        made = self.placed(FALSE, t, b, IntVal(0), mesh.firsts(j), mesh.places(d, j))
        placed = k.induct(
            "unknowns_of_some_of_what_is_placed",
            i,
            of(t + 1, b, d, j, i) == If(d < i, made, ZERO),
            [self._places(b), *given, i <= n],
            base=[of.start.at(t=t + 1)],
            step=[of.next.at(t=t + 1), self._placed_as(False)[0]],
        )
        placed_is = [placed.at(i=n), self._placed_as(False)[1]]
        self.unknowns_run = self._runs(
            "unknowns",
            lambda t: self.unknowns(t, b, d, j),
            self.of_unknowns,
            given,
            by_line,
            [same.at(i=n)],
            placed_is,
        )
        before = IntVal(-1)
        self.unknowns_begin = k.prove(
            "unknowns_begin",
            self.unknowns(0, b, d, j) == self.unknowns_begun(),
            given,
            [*(each.at(t=before) for each in placed_is), mesh.holds_is],
        )

    def _groups_of_unknowns(self) -> tuple[Theorem, Theorem, Theorem]:
        """Of one more device, of none, and of all: what a group adds up to."""
        k, t, c, d, i, j = self.k, self.t, self.c, self.d, self.i, self.j
        b, form, of, mesh = self.source(t), self._form(False), self.some_unknowns, self.mesh
        member = mesh.member(t, d, c)
        self.unknown_groups = total(
            k, "unknowns_of_some_in_group", [t, self.b, d, j, i], c, of(t, self.b, member, j, i)
        )
        sums = self.unknown_groups
        group = self.group(FALSE, FALSE, t, b, IntVal(0), d, i, j, self.any_word, mesh.axes, c)
        size = mesh.size(t)
        one_more = k.induct(
            "unknowns_of_one_more",
            c,
            sums(t, b, d, j, i + 1, c) == sums(t, b, d, j, i, c) + group,
            [i >= 0],
            base=[
                sums.start.at(b=b),
                sums.start.at(b=b, i=i + 1),
                self.group.start.at(b=b, **form),
            ],
            step=[
                sums.next.at(b=b),
                sums.next.at(b=b, i=i + 1),
                self.group.next.at(b=b, **form),
                of.next.at(b=b, d=member),
            ],
        )
        none = k.induct(
            "unknowns_of_none",
            c,
            sums(t, b, d, j, 0, c) == 0,
            base=[sums.start.at(b=b, i=IntVal(0))],
            step=[sums.next.at(b=b, i=IntVal(0)), of.start.at(b=b, d=member)],
        )
        every = k.induct(
            "unknowns_of_all",
            c,
            sums(t, b, d, j, self.n, c) == self.unknowns_in_group(t, b, d, j, c),
            base=[sums.start.at(b=b, i=self.n), self.unknowns_in_group.start.at(b=b)],
            step=[sums.next.at(b=b, i=self.n), self.unknowns_in_group.next.at(b=b)],
        )
        return one_more.at(c=size), none.at(c=size), every.at(c=size)
