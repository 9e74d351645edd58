"""T4: on any number of axes, the checker's normal forms say how often devices have original values.

What a form of an original value comes to on device d, where device i alone has 1 of it, is how often d
has device i's. What all devices have alike is the first device's, as often as d has it from anyone.
"""

from __future__ import annotations

from typing import Any

from proofs.checking.lines import MOVES
from proofs.checking.placed_levels import PlacedLevels
from proofs.checking.symbols import BACKWARD, KINDS, UPDATE, ZERO
from proofs.trusted.kernel import Theorem
from proofs.trusted.terms import And, BoolVal, If, IntVal, Not, Or

TRUE, FALSE = BoolVal(True), BoolVal(False)


class Represented(PlacedLevels):
    """The language of axes, whose amounts are those of forms."""

    def _amounts(self) -> None:
        super()._amounts()
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
        mesh, zero = self.mesh, IntVal(0)
        alike = self.is_state(s)
        self.any_word = k.fixed("any_word", self.word.sort)
        has = self.value(TRUE, alike, t, b, s, d, i, j, self.any_word, mesh.axes)
        self.amount, self.amount_is = k.define(
            "amount", [t, b, s, d, i, j], If(And(alike, i != 0), ZERO, has)
        )
        unknown = self.value(FALSE, TRUE, t, b, zero, d, zero, j, self.any_word, mesh.axes)
        self.unknowns, self.unknowns_is = k.define("unknowns", [t, b, d, j], unknown)
        self._groups_of_amounts()

    def follows(self) -> None:
        """The amounts of forms run the lines, and what is not known with them."""
        self.laws()
        self.before_its_axis()
        self.on_its_axis()
        self.alike_before()
        self.zeros()
        self.groups()
        self.groups_on_axis()
        self.groups_after()
        moved = self.lines_on_devices()
        elsewhere = self.untouched_forms()
        self.placed_forms()
        self.amounts_run, self.amounts_begin = self._runs(True, moved, elsewhere)
        self.unknowns_run, self.unknowns_begin = self._runs(False, moved, elsewhere)

    def _runs(
        self, known: bool, moved: dict[str, Theorem], elsewhere: Theorem
    ) -> tuple[Theorem, Theorem]:
        """Of amounts, or of what is not known: what lines make of it, and what there is at first."""
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
        mesh, zero = self.mesh, IntVal(0)
        level = mesh.axes
        word = "amounts" if known else "unknowns"
        is_ = self.amount_is if known else self.unknowns_is
        content = self.of_amounts if known else self.of_unknowns
        form = {
            "is_known": TRUE if known else FALSE,
            "alike": self.is_state(s) if known else TRUE,
            "word": self.any_word,
            **({} if known else {"s": zero, "i": zero}),
        }
        at_level = {**form, "level": level}
        devices = [self.is_device(d), *([self.is_device(i)] if known else [])]

        def here(t: Any) -> Any:
            return self.amount(t, b, s, d, i, j) if known else self.unknowns(t, b, d, j)

        groups = self._groups_are(known, form)
        ran = here(t + 1) == self.ran(content)
        arrays = {name: value for name, value in self.on_device(d).items()}
        on_axes = [mesh.on_axes.at(a=mesh.axis(t))]
        alone = k.prove(
            f"{word}_elsewhere",
            ran,
            [t >= 0, self.untouched(b), *devices],
            [
                is_,
                is_.at(t=t + 1),
                elsewhere.at(**at_level, **self._arrays(form)),
                *on_axes,
            ],
        )
        by_move = [
            k.prove(
                f"{word}_after_{move.name}",
                ran,
                [t >= 0, b == self.target(t), self.kind(t) == KINDS[move.name], *devices],
                [
                    is_.at(t=t + 1, b=self.target(t)),
                    moved[move.name].at(**at_level),
                    *(is_.at(b=place, d=e) for place, e in self._reads(move)),
                    *([groups, mesh.size_is] if move.name == "all_reduce" else []),
                    *on_axes,
                ],
            )
            for move in MOVES
            if move.name in moved
        ]
        placed = [self.placed_there.at(**form), self.placed_is.at(**self._placed_at(form))]
        computed = k.prove(
            f"{word}_of_what_is_computed",
            ran,
            [t >= 0, Not(self.moves(b)), Not(self.untouched(b)), *devices],
            [is_.at(t=t + 1), *placed, *on_axes, self.no_norms],
        )
        runs = k.prove(
            f"{word}_run_the_lines", ran, [t >= 0, *devices], [alone, *by_move, computed, *on_axes]
        )
        before = IntVal(-1)
        begins = k.prove(
            f"{word}_begin",
            here(zero) == (self.amount_begun() if known else self.unknowns_begun()),
            devices,
            [is_.at(t=zero), *(each.at(t=before) for each in placed), mesh.holds_is, *on_axes],
        )
        return runs, begins

    def _arrays(self, form: dict[str, Any]) -> dict[str, Any]:
        mesh, j = self.mesh, self.j
        i = form.get("i", self.i)
        return {
            "f": mesh.firsts(j),
            "p": mesh.places(self.d, j),
            "q": mesh.sources(form["alike"], self.d, i, j),
        }

    def _placed_at(self, form: dict[str, Any]) -> dict[str, Any]:
        found = {name: value for name, value in form.items() if name in ("is_known", "s")}
        return {**found, "f": self.mesh.firsts(self.j), "p": self.mesh.places(self.d, self.j)}

    def _groups_are(self, known: bool, form: dict[str, Any]) -> Theorem:
        """What amounts of a group add up to is what its forms do."""
        k, t, c, s, d, i, j = self.k, self.t, self.c, self.s, self.d, self.i, self.j
        b, level = self.source(t), self.mesh.axes
        params = (self.known, self.alike, t, b, s, d, i, j, self.word, level)
        names = {str(v): form.get(str(v), v) for v in (self.known, self.alike, s, i, self.word)}
        group = self.group(*(names.get(str(v), v) for v in params), c)
        of = self.in_group if known else self.unknowns_in_group
        sums = of(t, b, s, d, i, j, c) if known else of(t, b, d, j, c)
        right = If(And(self.is_state(s), i != 0), ZERO, group) if known else group
        is_ = self.amount_is if known else self.unknowns_is
        at = {**form, "level": level, "b": b}
        return k.induct(
            f"groups_of_{'amounts' if known else 'unknowns'}",
            c,
            sums == right,
            base=[of.start.at(b=b), self.group.start.at(**at)],
            step=[of.next.at(b=b), self.group.next.at(**at), is_.at(b=b, d=self.mesh.member(t, d, c))],
        ).at(c=self.mesh.size(t))
