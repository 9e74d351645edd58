"""T4: of what is not accepted some run does not match; so accepted is what matches in every run.

Where a comparison comes out unequal, a run is made for it, in which something else is read, or kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from proofs.checking.accepted import Accepted, Compared
from proofs.checking.symbols import (
    BACKWARD,
    CONTRIBUTION,
    INT,
    MOMENT,
    NORM,
    NORM_OF,
    TOKENS,
    UPDATE,
    WEIGHT,
    Element,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, Implies, IntVal, Not, Or


class Rejected(Accepted):
    """Runs that are made for what compares unequal, and the theorem."""

    # --------------------------------------------------- runs that are made for it
    def made_for(self, t: Any, b: Any, what: Any, u: Any, d: Any) -> dict[str, Any]:
        """Of the form of s in a place: which value is odd in the run that is made for it, and whose."""
        l = self.l
        wanted = self.wanted_of(l.s, self.needed(what, u), u)
        return {"odd": l.s, "contributor": self.shown_by(t, b, l.s, d, IntVal(0), l.j, wanted)}

    def run_for(self, at: dict[str, Any]) -> Any:
        """That run."""
        variables = (*self.decided, self.off_line, self.off_device)
        of = {str(variable): variable for variable in variables}
        return substitute(self.made_run, *((of[name], term) for name, term in at.items() if name in of))

    def _shows(self, of: Compared, exact: Theorem) -> Theorem:
        """A line that is the first to read something unequal reads something else in some run."""
        l, k, t = self.l, self.k, self.l.t
        made = self.made_for(t, of.place, of.what, l.step(t), of.device)
        run, groups = self.run_for(made), l.mesh.of_norms
        return k.prove(
            f"of_{of.name}_some_run_reads_another",
            self.any_other.holds,
            [
                *(self.runs_all, *self._is_a_value(), *self._computes(), self.all_equal(l.j, t)),
                *(of.own, self.is_unequal_in(of)),
            ],
            [
                exact.at(b=of.place, d=of.device, u=l.step(t), **made),
                self.reads_another.shown.at(run=run),
                self.any_other.shown.at(run=run),
                l.numbered,
                *([groups.inside.at(c=groups.owner(t, l.d, l.j))] if of.kind is NORM_OF else []),
            ],
        )

    def _keeps(self, what: Any, exact: Theorem) -> Theorem:
        """A copy that compares unequal, while no line did, is another one in some run."""
        l, k, end, u = self.l, self.k, self.l.ends(self.l.u), self.l.u
        made = self.made_for(end, l.b, what, u + 1, l.d)
        run, word = self.run_for(made), {WEIGHT: "weight", MOMENT: "moment"}[what]
        exactly = exact.at(t=end, u=u + 1, weight=self.whose_copy(l.b), **made)
        return k.prove(
            f"of_a_kept_{word}_some_run_keeps_another",
            self.any_differs.holds,
            [
                *(*self.on_a_device, *self._is_a_value(), self.is_kept(what), self.all_equal(l.j, end)),
                *(Not(self.copy_equals(what)), self.is_known(end, l.b, l.d)),
            ],
            [
                exactly,
                self.keeps_another.shown.at(run=run, weight=self.whose_copy(l.b)),
                self.any_differs.shown.at(run=run),
            ],
        )

    def _of_copies(self, exact: Mapping[Any, Theorem]) -> Theorem:
        """So is a copy of before line t that compares unequal, while no line of before t did."""
        l, k, t = self.l, self.k, self.l.t
        copy = dict(zip(self.copy, self.unequal_copy.found, strict=True))
        (u, b, d, _, j), end = copy.values(), l.ends(copy["u"])
        return k.prove(
            "of_an_unequal_copy_some_run_keeps_another",
            self.any_differs.holds,
            [self.all_before(t), self.unequal_copy.holds],
            [
                *(self.unequal_copy.serves, self.known_copies.at(u=u, b=b, d=d, j=j)),
                *(self.none_of_before.at(t=end, later_line=t), self.equal_before.at(t=end, j=j)),
                *(self._keeps(what, exact[what]).at(**copy) for what in (WEIGHT, MOMENT)),
            ],
        )

    # ------------------------------------------------------------- what is passed on
    def _stays_kept(self) -> Theorem:
        """Of the fragment: what compares unequal first is a copy that is kept, or is passed on to one;
        of a backward that reads it, an update applies what that makes, or is clipped by its norm; of a
        norm, an update is clipped by it.
        """
        l, k, t = self.l, self.k, self.l.t
        copies, norms = ("kept_in", "kept_on"), ("normed_by", "normed_on", "normed_weight")
        names = *copies, "applied_by", "applied_on", *norms
        self.kept_in, self.kept_on, self.by, self.by_on, *normed = (
            k.function(name, INT, INT) for name in names
        )
        self.normed_by, self.normed_on, self.normed_weight = normed
        self.clipped = k.function("clipped_element", INT, Element)
        view = self.reads_of_line[0]
        made = self.made_for(t, view.place, view.what, l.step(t), l.d)
        updates = l.kind(t) == UPDATE, l.target(t) != l.second(t)
        backward, norm = l.kind(t) == BACKWARD, l.kind(t) == NORM_OF
        stays = self._is_copied(self.by(t), self.by_on(t))
        of_norm = self.normed_by(t), self.normed_on(t)
        said = Or(
            And(*updates, *self._is_copied(t, l.d)),
            And(backward, *self._applies(made), *stays),
            And(backward, *self._norm_applies(made), *self._clips(*of_norm)),
            And(norm, *self._clips(t, l.d)),
        )
        return k.suppose(
            "what_is_unequal_first_is_passed_on",
            [t],
            Implies(And(*self._is_first, self.no_copy_before), substitute(said, *self.where)),
        )

    def _applies(self, made: dict[str, Any]) -> list[Bool]:
        """That an update of the step applies what the backward makes of its view."""
        l, t = self.l, self.l.t
        line, on = self.by(t), self.by_on(t)
        there = line < l.last, l.is_device(on), l.step(line) == l.step(t)
        return [*self._is_update, *there, *self._has_the_view(made, line, l.third(line), on)]

    def _norm_applies(self, made: dict[str, Any]) -> list[Bool]:
        """That a norm of the step is of what the backward makes of its view."""
        l, t = self.l, self.l.t
        line, on, of = self.normed_by(t), self.normed_on(t), (l.weight, self.normed_weight(t))
        has = substitute(self.owner_in_norm, (t, line), (l.d, on), of)
        place, is_a_weight = (substitute(each, of) for each in (l.normed(line), l.is_a_weight))
        return [
            *(line >= 0, line < l.last, l.is_device(on), l.step(line) == l.step(t), is_a_weight),
            *(l.kind(line) == NORM_OF, *self._has_the_view(made, line, place, has)),
        ]

    def _has_the_view(self, made: dict[str, Any], line: Any, place: Any, on: Any) -> list[Bool]:
        """That before a line a device has in a place what the backward makes of its view."""
        l, t = self.l, self.l.t
        used = (t, line), (l.b, place), (l.d, on)
        view = (self.curved, t), (self.reader, l.d), (self.of_view, self.of_which_view(t))
        odd = (self.odd, made["odd"]), (self.contributor, made["contributor"])
        return [substitute(each, *used, *view, *odd) for each in self.applies_the_view]

    @property
    def _is_update(self) -> list[Bool]:
        """That what is passed on is so by an update."""
        l, line = self.l, self.by(self.l.t)
        is_update = l.kind(line) == UPDATE, l.target(line) != l.second(line)
        return [line >= 0, *is_update]

    def _clips(self, norm_line: Any, norm_on: Any) -> list[Bool]:
        """That an update of the step is clipped by a norm, and its weight is in a copy that is kept."""
        l, t = self.l, self.l.t
        line, on, element = self.by(t), self.by_on(t), self.clipped(t)
        norm = (self.norm_line, norm_line), (self.norm_on, norm_on)
        clips = (l.t, line), (l.d, on), (l.j, element), *norm
        return [
            *self._is_update,
            *(substitute(each, *clips) for each in self.clips_by_it),
            *self._is_copied(line, on, element),
        ]

    def _is_copied(self, line: Any, on: Any, element: Any = None) -> list[Bool]:
        """That the weight which an update makes on a device is in a copy that is kept."""
        l, t = self.l, self.l.t
        of = l.j if element is None else element
        at = (l.u, l.step(line)), (l.b, self.kept_in(t)), (l.d, self.kept_on(t)), (l.j, of)
        passed = self.passed_on(l.b, l.d, l.j, l.ends(l.u))
        return [
            *(substitute(each, *at) for each in (self.is_copied(WEIGHT), *self.on_a_device)),
            substitute(passed, *at, (self.off_line, line), (self.off_device, on)),
        ]

    def _is_run(self) -> Theorem:
        """The first line that compares unequal is one that is run: a later one is as that one is."""
        l, k, t, j = self.l, self.k, self.l.t, self.l.j
        step, turn, off = l.step(t), self.turn(t), self.off(t, j)
        device = self.reads_unequal(t, j)
        places = l.on_device(device)
        in_step, in_turn = t - self.begins(step), t - self.opens(step, turn)
        so = {"u": step, "h": in_step}
        same = {"u": step, "h": in_turn, "m": turn}
        as_there, facts = [], []
        for name, there, when, about in (
            (
                "step",
                self.begins(self.settled) + in_step,
                [t >= self.until, t < l.last],
                [
                    *(self.numbers, self.same_lines.at(**so), self.same_right.at(**so, **places)),
                    *(self.follow.at(u=self.settled), self.there_is_one),
                ],
            ),
            (
                "micro_step",
                self.opens(step, self.few) + in_turn,
                [t < self.until, self.is_late(t), t >= 0, t < l.last],
                [
                    l.numbered,
                    *(self.in_turns, self.same_in_turns.at(**same)),
                    *(self.right_in_turns.at(**same, **places), self.there_are_some),
                    self.one_by_one.at(u=step, m=self.few),
                    self.open_later.at(u=step, m=self.few + 1, more=turn - self.few - 1),
                ],
            ),
        ):
            as_there.append(
                k.prove(
                    f"what_is_unequal_in_a_later_{name}_was_before",
                    And(self.off(there, j), there >= 0, there < t),
                    [*when, off],
                    [self.off_found, self.off_shown.at(t=there, d=device), *about],
                )
            )
            facts += [self.unequal.shown.at(t=there), self.none_of_before.at(t=there, later_line=t)]
        element = self.unequal.found[0]
        return k.prove(
            "the_first_line_is_run",
            self.in_run,
            self._is_first,
            [self.unequal.serves, *(each.at(j=element) for each in (*as_there, *facts))],
        )

    @property
    def _is_first(self) -> list[Bool]:
        return [self.runs_all, self.all_before(self.l.t), self.unequal.holds]

    @property
    def no_copy_before(self) -> Bool:
        """That no copy that was kept before line t compares unequal."""
        return Not(self.unequal_copy.holds)

    def _update_keeps(self, of: Compared, differ: Theorem) -> Theorem:
        """An update that is the first to read something unequal, makes what another copy is of."""
        l, t = self.l, self.l.t
        what = CONTRIBUTION if of.what is None else of.what
        made = self.made_for(t, of.place, of.what, l.step(t), l.d) | {"operand": what}
        given = [l.target(t) != l.second(t), *self._is_copied(t, l.d)]
        return self._kept_by(of, made, given, t, l.d, differ)

    def _view_keeps(self, differ: Theorem) -> Theorem:
        """And so does an update of what a backward makes that is the first to."""
        of = self.reads_of_line[0]
        made = self._made_of_view | {"operand": CONTRIBUTION}
        line, on = self.by(self.l.t), self.by_on(self.l.t)
        given = [*self._applies(made), *self._is_copied(line, on)]
        return self._kept_by(of, made, given, line, on, differ)

    @property
    def _made_of_view(self) -> dict[str, Any]:
        """The run that is made for a backward: its loss has a square."""
        l, t, of = self.l, self.l.t, self.reads_of_line[0]
        view = {"curved_line": t, "reader": l.d, "reads_its_view": self.of_which_view(t)}
        return self.made_for(t, of.place, of.what, l.step(t), l.d) | view

    def _norm_keeps(self, differ: Theorem) -> Theorem:
        """And so does an update that is clipped by a norm that is the first to."""
        l, t, name = self.l, self.l.t, "normed_gradient"
        (of,) = (each for each in self.compared_by_line if each.name == name)
        made = self.made_for(t, of.place, of.what, l.step(t), of.device) | {"operand": NORM}
        given = [l.is_a_weight, *self._clips(t, l.d)]
        return self._kept_by_a_norm(name, of, made, given, (t, l.d, l.weight), differ)

    def _view_norm_keeps(self, differ: Theorem) -> Theorem:
        """And so does one by a norm of what a backward makes that is the first to."""
        t, of = self.l.t, self.reads_of_line[0]
        made = self._made_of_view | {"operand": NORM}
        norm = self.normed_by(t), self.normed_on(t), self.normed_weight(t)
        given = [*self._norm_applies(made), *self._clips(*norm[:2])]
        return self._kept_by_a_norm("a_norm_of_a_view", of, made, given, norm, differ)

    def _kept_by_a_norm(
        self,
        name: str,
        of: Compared,
        made: dict[str, Any],
        given: Sequence[Bool],
        norm: tuple[Any, Any, Any],
        differ: Theorem,
    ) -> Theorem:
        """Some run keeps something else, of an update that is clipped by a norm."""
        l, t = self.l, self.l.t
        names = "norm_line", "norm_on", "weight_of_norm", "norm_element", "j"
        about = dict(zip(names, (*norm, l.j, self.clipped(t)), strict=True))
        return self._kept_by(of, made, given, self.by(t), self.by_on(t), differ, name, about)

    def _kept_by(
        self,
        of: Compared,
        made: dict[str, Any],
        given: Sequence[Bool],
        line: Any,
        on: Any,
        differ: Theorem,
        name: str = "",
        about: Mapping[str, Any] = MappingProxyType({}),
    ) -> Theorem:
        """Some run keeps something else, made by the update at `line` on device `on`."""
        l, k, t, now = self.l, self.k, self.l.t, self.l.step(line)
        run, there = self.run_for(made), {"b": self.kept_in(t), "d": self.kept_on(t)}
        there["weight"] = self.whose_copy(self.kept_in(t))
        return k.prove(
            f"of_{name or of.name}_some_run_keeps_another",
            self.any_differs.holds,
            [
                *(self.runs_all, *self.on_a_device, *self._is_a_value(), self.all_equal(l.j, t)),
                self.is_unequal_in(of),
                *given,
            ],
            [
                differ.at(wrong_line=line, wrong_on=on, t=l.ends(now), **there, **made, **about),
                self.keeps_another.shown.at(run=run, u=now, **there, j=about.get("j", l.j)),
                self.any_differs.shown.at(run=run),
                l.numbered,
            ],
        )

    # ------------------------------------------------------------------- the theorem
    def if_and_only_if(
        self,
        always: Theorem,
        kept: Theorem,
        exact: Sequence[Theorem],
        differ: Sequence[Theorem],
    ) -> tuple[Theorem, Theorem, Theorem]:
        """Accepted if and only if every run matches, and if and only if its lines read what is right;
        and without what is passed on: if and only if all compares equal.
        """
        k = self.k
        every = self._every_run(always, kept)
        of = dict(zip((WEIGHT, MOMENT, None, NORM, TOKENS), exact, strict=True))
        passed, is_run = self._stays_kept(), self._is_run()
        update, view, norm, norm_of_view = differ
        shows = [self._shows(each, of[each.what]) for each in self.reads_of_line]
        updates = [each for each in self.compared_by_line if each.kind is UPDATE]
        keeps = [*(self._update_keeps(each, update) for each in updates), self._view_keeps(view)]
        keeps += [self._norm_keeps(norm), self._view_norm_keeps(norm_of_view)]
        where = {str(variable): term for variable, term in self.where}
        here = is_run, self.equal_before.at(j=where["j"]), self.lines_unequal
        read = k.prove(
            "of_the_first_line_some_run_reads_another",
            self.any_other.holds,
            self._is_first,
            [*here, *(each.at(**where) for each in shows)],
        )
        copies = self._of_copies(of)
        passes = k.prove(
            "of_the_first_line_some_run_keeps_another",
            self.any_differs.holds,
            self._is_first,
            [*here, passed, copies, *(each.at(**where) for each in keeps)],
        )
        there_is_one = self.unequal_copy.shown.at(**self.copy)
        at_the_end = (each.at(t=self.l.last) for each in (there_is_one, copies, self.none_first))
        rejected = self.copies_unequal, *at_the_end
        line, run = self.first.found[0], self.any_differs.found[0]
        matches = [self.matches.at(run=run), self.any_differs.serves, self.any_other.shown.at(run=run)]
        return (
            k.prove(
                "accepted_if_and_only_if_every_run_matches",
                self.accepted == Not(self.any_differs.holds),
                (),
                [*matches[:2], self.first.serves, passes.at(t=line), *rejected],
            ),
            k.prove(
                "accepted_if_and_only_if_every_run_is_a_single_devices",
                self.accepted == Not(self.any_other.holds),
                (),
                [*matches, self.first.serves, passes.at(t=line), *rejected, every],
            ),
            k.prove(
                "all_compares_equal_if_and_only_if_every_run_is_a_single_devices",
                And(self.accepted, Not(self.first.holds)) == Not(self.any_other.holds),
                (),
                [*matches[1:], self.first.serves, read.at(t=line), *rejected, every],
            ),
        )
