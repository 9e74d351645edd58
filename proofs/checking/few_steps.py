"""T5: what the checker finds in a step that repeats is so in every later one.

From some step on steps are alike. The checker runs one of them from what it found before it, or from
less: what it does not know may be anything. Where it leaves what it found, one step later, a later step
cannot be otherwise: by induction over steps, and in each over its lines.
"""

from __future__ import annotations

from typing import Any

from proofs.checking.every_line import EveryLine
from proofs.checking.lines import MOVES
from proofs.checking.norms import NormedLanguage
from proofs.checking.symbols import (
    CONTRIBUTION,
    INT,
    MOMENT,
    NORM,
    REAL,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    Element,
)
from proofs.checking.unknowns import Counted, Time, read_by
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or


class FewSteps(EveryLine):
    """Runs whose steps are alike from step `settled` on, and what the checker finds in that step.

    begins(u): the first line of step u. p: a line's place in its step, of `length` lines.
    finds(p, b, s, d, i, j): how often device d has device i's value s, as the checker finds it, before
    the line at p. finds_unknown(p, b, d, j): how often what is not known.
    """

    l: NormedLanguage

    def __init__(self, l: NormedLanguage) -> None:
        super().__init__(l)
        k = self.k
        self.p = k.integers("p")
        self.length, self.settled = (k.fixed(name, INT) for name in ("length", "settled"))
        self.begins = k.function("begins", INT, INT)
        # the line at p of step u, and of the one that the checker runs
        self.line_at, self.run_at = self.begins(l.u) + self.p, self.begins(self.settled) + self.p
        self.since = l.u - self.settled, self.begins(l.u) - self.begins(self.settled)
        self.there_is_one = k.suppose("there_is_a_step", [], And(self.settled >= 0, self.length >= 1))
        self.follow, self.numbers = self._steps()
        self.come_later = self._come_later()
        self.same_lines, self.same_groups, self.same_members, self.same_right = self._alike()
        self.finds = k.function("finds", INT, INT, INT, INT, INT, Element, REAL)
        self.finds_unknown = k.function("finds_unknown", INT, INT, INT, Element, REAL)
        self._checker()
        self._begins_and_ends()
        self._off()
        self.one_step = self._one_step()
        self.every_step = self._every_step()

    # ------------------------------------------------------------------------ steps
    @property
    def in_step(self) -> list[Bool]:
        return [self.l.u >= self.settled, *self.of_a_step, self.line_at < self.l.last]

    @property
    def of_a_step(self) -> tuple[Bool, Bool]:
        return self.p >= 0, self.p < self.length

    def _steps(self) -> tuple[Theorem, Theorem]:
        """Steps follow each other, and each line is in its step."""
        l, k, u, t = self.l, self.k, self.l.u, self.l.t
        begin, end, step = self.begins(u), self.begins(u) + self.length, l.step(t)
        follow = k.suppose(
            "steps_follow_each_other",
            [u],
            Implies(u >= self.settled, And(begin >= 0, self.begins(u + 1) == end, l.ends(u) == end)),
        )
        first, of_it = self.begins(step), self.begins(self.settled)
        numbers = k.suppose(
            "lines_are_in_their_steps",
            [t],
            Implies(
                And(t >= of_it, t < l.last),
                And(step >= self.settled, first <= t, t < first + self.length),
            ),
        )
        return follow, numbers

    def _come_later(self) -> Theorem:
        """No later step begins before."""
        k, steps, first = self.k, self.k.integers("more"), self.begins(self.settled)
        after = k.induct(
            "later_steps_begin_later",
            steps,
            self.begins(self.settled + steps) >= first,
            base=[],
            step=[self.follow.at(u=self.settled + steps), self.there_is_one],
        )
        return after.at(more=self.l.u - self.settled)

    def _alike(self) -> tuple[Theorem, Theorem, Theorem, Theorem]:
        """Lines at one place of two steps are alike, and so are their groups, and what is right."""
        l, k, d, j, here, there = self.l, self.k, self.l.d, self.l.j, self.line_at, self.run_at
        lines = [
            *(of(here) == of(there) for of in (l.kind, l.target, l.factor, l.micro, *l.sources)),
            *(l.step(here) == l.u, l.step(there) == self.settled),
        ]
        groups = [
            l.mesh.size(here) == l.mesh.size(there),
            l.mesh.coordinate(here, d) == l.mesh.coordinate(there, d),
            l.mesh.owner(here, d, j) == l.mesh.owner(there, d, j),
        ]
        right = [
            l.is_right(here, d) == l.is_right(there, d),
            l.is_met(here, d, j) == l.is_met(there, d, j),
            l.is_lost(here, d, j) == l.is_lost(there, d, j),
        ]
        members = l.mesh.member(here, d, l.c) == l.mesh.member(there, d, l.c)
        given, at = And(*self.in_step), [l.u, self.p]
        return (
            k.suppose("steps_have_the_same_lines", at, Implies(given, And(*lines))),
            k.suppose("steps_have_the_same_groups", [*at, d, j], Implies(given, And(*groups))),
            k.suppose("groups_have_the_same_members", [*at, d, l.c], Implies(given, members)),
            k.suppose("steps_are_right_alike", [*at, d, j], Implies(given, And(*right))),
        )

    # ------------------------------------------------------------ what the checker finds
    def _back(self, s: Any, steps: Any, lines: Any) -> Any:
        """By how much the time of a value goes back: what was computed wrong has that of its line."""
        wrong = Or(self.l.what(s) == WRONG, self.l.what(s) == WRONG_MOMENT)
        return If(wrong, lines, steps)

    def before(self, s: Any, steps: Any, lines: Any) -> Any:
        """The same value of some steps before, of as many lines in all."""
        l = self.l
        return l.named(l.what(s), l.time(s) - self._back(s, steps, lines), l.which(s))

    def name_is(self, steps: Any, lines: Any) -> Theorem:
        """What its name is of."""
        l, s = self.l, self.l.s
        return l.names.at(w=l.what(s), u=l.time(s) - self._back(s, steps, lines), m=l.which(s))

    def later(self, steps: Any, lines: Any, found: Any) -> Any:
        """What is found of the value of some steps before; of a value that has none, nothing."""
        l, s = self.l, self.l.s
        time, which, back = l.time(s), l.which(s), self._back(s, steps, lines)
        few = If(l.what(s) == CONTRIBUTION, l.micro_steps, 1)
        has_one = And(time >= 0, time <= l.last, time >= back, which >= 0, which < few)
        return If(has_one, substitute(found, (s, self.before(s, steps, lines))), ZERO)

    def amount_found(self, p: Any, b: Any) -> Any:
        l = self.l
        return self.finds(p, b, l.s, l.d, l.i, l.j)

    def unknown_found(self, p: Any, b: Any) -> Any:
        return self.finds_unknown(p, b, self.l.d, self.l.j)

    def _checker(self) -> None:
        """The checker runs the lines of a step."""
        l, k, p, b, d, j = self.l, self.k, self.p, self.l.b, self.l.d, self.l.j
        line, of_pair = self.run_at, [l.is_device(d), l.is_device(l.i)]
        amounts, unknowns, self.found_group, self.unknown_group = l.followed(
            "found_", p, line, self.finds, self.finds_unknown
        )

        def runs(name: str, about: list[Any], given: list[Bool], of: Any, content: Any) -> Theorem:
            ran = substitute(l.ran(content), (l.t, line))
            said = Implies(And(*self.of_a_step, *given), of(p + 1, b) == ran)
            return k.suppose(name, [p, b, *about], said)

        self.finds_run = runs(
            "the_checker_runs_a_step", [l.s, d, l.i, j], of_pair, self.amount_found, amounts
        )
        self.unknown_run = runs(
            "the_checker_runs_what_is_not_known", [d, j], of_pair[:1], self.unknown_found, unknowns
        )
        least = k.suppose(
            "what_is_not_known_may_be_anywhere",
            [b, d, j],
            Implies(l.is_device(d), self.unknown_found(IntVal(0), b) >= 0),
        )
        self.counts = Counted(
            l,
            "found_",
            Time(p, line, self.of_a_step[1:]),
            self.finds_unknown,
            self.unknown_group,
            least,
            self.unknown_run,
        )

    def _begins_and_ends(self) -> None:
        """What the checker finds before the step is so, and after it the same, one step later."""
        l, k, b, zero = self.l, self.k, self.l.b, IntVal(0)
        known = [l.is_device(l.d), l.is_device(l.i), self.unknown_found(zero, b) == 0]
        begin, end = self.begins(self.settled), self.length

        def of(name: str, unknown: Any, amount: Any, steps: Any, lines: Any) -> Theorem:
            found = self.later(steps, lines, self.amount_found(zero, b))
            said = Implies(And(*known), And(unknown == 0, amount == found))
            return k.suppose(name, [b, l.s, l.d, l.i, l.j], said)

        so = l.unknowns(begin, b, l.d, l.j), l.amount(begin, b, l.s, l.d, l.i, l.j)
        self.begins_so = of("what_is_found_before_the_step_is_so", *so, zero, zero)
        same = self.unknown_found(end, b), self.amount_found(end, b)
        self.repeats = of("the_step_leaves_what_it_found_one_step_later", *same, IntVal(1), end)

    # ------------------------------------------------------------ later steps are as it finds
    def is_so(self, p: Any, b: Any) -> Bool:
        """A place is known before the line at p of step u, and has what was found there, later on."""
        l = self.l
        line = self.begins(l.u) + p
        return And(
            l.unknowns(line, b, l.d, l.j) == 0,
            l.amount(line, b, l.s, l.d, l.i, l.j) == self.later(*self.since, self.amount_found(p, b)),
        )

    def _off(self) -> None:
        """Whether some device, in some place, has something else than the checker finds and knows."""
        l, k, p, b, d = self.l, self.k, self.p, self.l.b, self.l.d
        at, known = [l.u, p, l.s, l.i, l.j], self.unknown_found(p, b) == 0
        place_is_off, self.device, shown_on, self.off_on = k.choose(
            "place_is_off",
            [l.u, p, b, l.s, l.i, l.j],
            d,
            And(*self.on_a_device, known, Not(self.is_so(p, b))),
        )
        self.off, self.place, shown, self.off_in = k.choose(
            "off", at, b, place_is_off(l.u, p, b, l.s, l.i, l.j)
        )
        self.so = k.prove(
            "what_is_not_off_is_so",
            self.is_so(p, b),
            [*self.on_a_device, known, Not(self.off(*at))],
            [shown_on, shown],
        )

    def _off_at(self, u: Any, p: Any) -> tuple[list[Theorem], dict[str, Any]]:
        """Where it is off before a line, if it is; and that place, that device."""
        l = self.l
        place = self.place(u, p, l.s, l.i, l.j)
        at = {"b": place, "d": self.device(u, p, place, l.s, l.i, l.j)}
        return [self.off_in.at(u=u, p=p), self.off_on.at(u=u, p=p, b=place)], at

    def _one_step(self) -> Theorem:
        """A step that begins so is so throughout."""
        l, p = self.l, self.p
        found, at = self._off_at(l.u, p + 1)
        here = l.u, p, l.s, l.i, l.j
        return self.k.induct(
            "a_step_that_begins_so_is_so_throughout",
            p,
            Not(self.off(*here)),
            [
                Not(self.off(l.u, IntVal(0), *here[2:])),
                *(l.u >= self.settled, p <= self.length, self.line_at <= l.last),
                *(l.i >= 0, l.i < l.n),
            ],
            base=[],
            step=[*found, self._line().at(**at)],
        )

    def _every_step(self) -> Theorem:
        l, k, zero, steps = self.l, self.k, IntVal(0), self.k.integers("later")
        u = self.settled + steps
        back = steps, self.begins(u) - self.begins(self.settled)
        first, at_first = self._off_at(self.settled, zero)
        found, at = self._off_at(u + 1, zero)
        return k.induct(
            "every_later_step_begins_so",
            steps,
            Not(self.off(u, zero, l.s, l.i, l.j)),
            [self.begins(u) <= l.last, l.i >= 0, l.i < l.n],
            base=[*first, self.begins_so.at(**at_first)],
            step=[
                *found,
                self.one_step.at(u=u, p=self.length),
                self.so.at(u=u, p=self.length, **at),
                self.repeats.at(s=self.before(l.s, *back), **at),
                *(self.follow.at(u=u), self.there_is_one, self.name_is(*back)),
                self.come_later.at(u=u),
            ],
        )

    def _line(self) -> Theorem:
        """Before a line it is so, and therefore after it."""
        l, k, b, d, line = self.l, self.k, self.l.b, self.l.d, self.run_at
        read = {id(e): e for move in MOVES for b, e in read_by(l, move) if b is l.source(l.t)}
        source = l.source(line)
        sources = [{"b": source, "d": substitute(e, (l.t, line))} for e in read.values()]
        coordinates = IntVal(0), l.mesh.owner(line, d, l.j)
        zero, then = IntVal(0), (l.u, self.settled)
        return k.prove(
            "a_line_leaves_so_what_is_so",
            self.is_so(self.p + 1, b),
            [
                *(*self.in_step, *self.on_a_device, l.i >= 0, l.i < l.n),
                self.unknown_found(self.p + 1, b) == 0,
                Not(self.off(l.u, self.p, l.s, l.i, l.j)),
            ],
            [
                *(each.at(t=self.line_at) for each in (l.amounts_run, l.unknowns_run, l.numbered)),
                *(self.finds_run.at(s=self.before(l.s, *self.since)), self.unknown_run),
                *(self.same_lines, self.same_groups, self.same_right, self.come_later),
                *(self.there_is_one, self.follow.at(u=self.settled)),
                *(l.name_is_its_own, self.name_is(*self.since)),
                *(self.same_members.at(c=c) for c in coordinates),
                *(l.mesh.inside.at(t=line, c=c) for c in coordinates),
                *(self.so, *(self.so.at(**at) for at in sources)),
                *(self.counts.known, self.counts.known.at(b=source)),
                self._group().at(b=source, c=l.mesh.size(line)),
                *(l.names.at(w=CONTRIBUTION, u=u, m=l.micro(self.line_at)) for u in then),
                *(l.names.at(w=w, u=u + 1, m=zero) for w in (WEIGHT, MOMENT) for u in then),
                *(l.names.at(w=NORM, u=u, m=zero) for u in then),
                *(
                    l.names.at(w=w, u=t, m=zero)
                    for w in (WRONG, WRONG_MOMENT)
                    for t in (self.line_at, line)
                ),
            ],
        )

    def _group(self) -> Theorem:
        """What the checker finds that a group adds up to is so."""
        l, p, b, s, d, i, j, c = (
            self.l,
            self.p,
            self.l.b,
            self.l.s,
            self.l.d,
            self.l.i,
            self.l.j,
            self.l.c,
        )
        here, line = self.line_at, self.run_at
        member, size = l.mesh.member(line, d, c), l.mesh.size(line)
        found = self.later(*self.since, self.found_group(p, b, s, d, i, j, c))
        earlier = self.before(s, *self.since)
        return self.k.induct(
            "what_a_group_adds_up_to_is_so",
            c,
            And(
                l.unknowns_in_group(here, b, d, j, c) == 0, l.in_group(here, b, s, d, i, j, c) == found
            ),
            [
                *(*self.in_step, *self.on_a_device, c <= size),
                self.unknown_group(p, b, d, j, size) == 0,
                Not(self.off(l.u, p, s, i, j)),
            ],
            base=[
                *(each.start.at(t=here) for each in (l.unknowns_in_group, l.in_group)),
                self.found_group.start.at(s=earlier),
            ],
            step=[
                *(each.next.at(t=here) for each in (l.unknowns_in_group, l.in_group)),
                self.found_group.next.at(s=earlier),
                self.same_members,
                *(each.at(d=member) for each in (self.so, self.counts.known)),
                self.counts.part_of_group.at(found_one_of_them=c, c=size),
                *(self.counts.never, l.mesh.inside.at(t=line)),
            ],
        )
