"""T4: what the checker finds in a step that repeats is so in every later one.

From some step on steps are alike. Where one leaves the forms that it found, each value one step later,
a later step cannot be otherwise: by induction over steps, and in each over its lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proofs.checking.computed_alike import AlikeLines
from proofs.checking.every_micro_step import EveryMicroStep
from proofs.checking.levels import NUMBERS
from proofs.checking.representation import Represented
from proofs.checking.symbols import INT, WRONG, WRONG_MOMENT, ZERO
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or


class StepsAlike(EveryMicroStep):
    """Runs whose steps are alike from step `settled` on, and leave what that one does.

    begins(u): the first line of step u. h: a line's place in its step, of `length` lines. A step is
    over before the line at `closes`; in the lines from there on the checker releases what it gives up.
    """

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        k = self.k
        self.steps_ago, self.lines_ago = k.integers("steps lines")
        self.closes = k.fixed("closes", INT)
        # the line at h of step u, and of the one that the checker runs last
        self.line_at, self.run_at = self.begins(l.u) + self.h, self.begins(self.settled) + self.h
        self.since = l.u - self.settled, self.begins(l.u) - self.begins(self.settled)
        self.there_is_one = k.suppose(
            "there_is_a_step",
            [],
            And(self.settled >= 0, self.closes >= 0, self.closes <= self.length),
        )
        self.follow, self.numbers = self._steps()
        self.come_later = self._come_later()
        self.same_lines, self.same_right = self._alike()
        self._earlier()
        self.repeats = self._repeats()
        self._off()
        self.one_step = self._one_step()
        self.every_step = self._every_step()

    # ------------------------------------------------------------------------ steps
    @property
    def in_step(self) -> list[Bool]:
        return [
            *(self.l.u >= self.settled, self.h >= 0, self.h < self.length),
            self.line_at < self.l.last,
        ]

    def _steps(self) -> tuple[Theorem, Theorem]:
        """Steps follow each other, and each line is in its step."""
        l, k, u, t = self.l, self.k, self.l.u, self.l.t
        begin, step = self.begins(u), l.step(t)
        follows = self.begins(u + 1) == begin + self.length
        follow = k.suppose(
            "steps_follow_each_other",
            [u],
            Implies(u >= self.settled, And(begin >= 0, follows, l.ends(u) == begin + self.closes)),
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
        k, first = self.k, self.begins(self.settled)
        after = k.induct(
            "later_steps_begin_later",
            self.steps_ago,
            self.begins(self.settled + self.steps_ago) >= first,
            base=[],
            step=[self.follow.at(u=self.settled + self.steps_ago), self.there_is_one],
        )
        return after.at(steps=self.l.u - self.settled)

    def _alike(self) -> tuple[Theorem, Theorem]:
        """Lines at one place of two steps are alike, what is right there, what norms add up."""
        l, k, f, p, here, there = self.l, self.k, self.l.f, self.l.p, self.line_at, self.run_at
        of_line = l.kind, l.target, l.factor, l.micro, l.mesh.axis, *l.sources, l.normed
        lines = [
            *(of(here) == of(there) for of in of_line),
            *(l.step(here) == l.u, l.step(there) == self.settled),
        ]
        right = self.right_alike(here, there)
        given, at = And(*self.in_step), [l.u, self.h]
        return (
            k.suppose("steps_have_the_same_lines", at, Implies(given, And(*lines))),
            k.suppose("steps_are_right_alike", [*at, f, p], Implies(given, And(*right))),
        )

    # ------------------------------------------------------------ values of earlier steps
    def _earlier(self) -> None:
        """earlier: the same value of some steps before, of so many lines; had: there is one.

        What was computed wrong has the time of its line.
        """
        l, k, s, steps, lines = self.l, self.k, self.l.s, self.steps_ago, self.lines_ago
        time, which = l.time(s), l.which(s)
        wrong = Or(l.what(s) == WRONG, l.what(s) == WRONG_MOMENT)
        self.back = If(wrong, lines, steps)
        few = If(l.is_contributed(l.what(s)), l.micro_steps, 1)
        self.earlier, self.earlier_is = k.define(
            "earlier", [s, steps, lines], l.named(l.what(s), time - self.back, which)
        )
        has_one = And(time >= 0, time <= l.last, time >= self.back, which >= 0, which < few)
        self.had, self.had_is = k.define("had", [s, steps, lines], Or(steps == 0, has_one))

    def name_is(self, steps: Any, lines: Any) -> list[Theorem]:
        """What an earlier value is."""
        l, s = self.l, self.l.s
        of = {"steps": steps, "lines": lines}
        name = l.names.at(w=l.what(s), u=l.time(s) - self.back, m=l.which(s))
        return [self.earlier_is.at(**of), self.had_is.at(**of), name.at(**of)]

    def so_before(self, found: Callable[[Any], Any], steps: Any, lines: Any) -> Any:
        """What is found of the value of some steps before; of a value that has none, nothing."""
        s = self.l.s
        of = s, steps, lines
        return If(self.l.known, If(self.had(*of), found(self.earlier(*of)), ZERO), found(s))

    def as_before(self, form: Callable[[Any, Any], Any]) -> Bool:
        """What is made of forms at the line at h of step u is what was, that many steps later."""
        found = self.so_before(lambda s: form(self.run_at, s), *self.since)
        return form(self.line_at, self.l.s) == found

    def _repeats(self) -> Theorem:
        """The checker's last step leaves the forms that it found, one step later.

        Of a run that ends before, nothing is supposed to repeat: it has no step but those that are run.
        """
        l, begin = self.l, self.begins(self.settled)
        end = begin + self.length
        found = self.so_before(lambda s: self.form(begin, s), IntVal(1), self.length)
        return self.k.suppose(
            "the_step_leaves_the_forms_that_it_found_one_step_later",
            [l.known, l.b, l.s, l.word, l.f],
            Implies(end <= l.last, self.form(end, l.s) == found),
        )

    # ------------------------------------------------------------ later steps are as it finds
    def _off(self) -> None:
        """Whether some word has, in some place, another coefficient than the checker found."""
        l, k, b, word = self.l, self.k, self.l.b, self.l.word
        at = [l.u, self.h, l.known, l.s, l.f]
        place_is_off, self.off_word, shown_on, self.off_on = k.choose(
            "place_is_off", [*at, b], word, Not(self.as_before(self.form))
        )
        self.differs, self.place, shown, self.off_in = k.choose("off", at, b, place_is_off(*at, b))
        self.not_off = k.prove(
            "what_is_not_off_is_so",
            self.as_before(self.form),
            [Not(self.differs(*at))],
            [shown_on, shown],
        )

    def differs_at(self, u: Any, h: Any) -> Any:
        l = self.l
        return self.differs(u, h, l.known, l.s, l.f)

    def _where(self, u: Any, h: Any) -> tuple[list[Theorem], dict[str, Any]]:
        """Where it is off before a line, if it is; and that place, that word."""
        l = self.l
        at = u, h, l.known, l.s, l.f
        place = self.place(*at)
        return (
            [self.off_in.at(u=u, h=h), self.off_on.at(u=u, h=h, b=place)],
            {"b": place, "word": self.off_word(*at, place)},
        )

    def _one_step(self) -> Theorem:
        """A step that begins so is so throughout."""
        l, h = self.l, self.h
        found, at = self._where(l.u, h + 1)
        return self.k.induct(
            "a_step_that_begins_so_is_so_throughout",
            h,
            Not(self.differs_at(l.u, h)),
            [
                Not(self.differs_at(l.u, IntVal(0))),
                *(l.u >= self.settled, h <= self.length, self.line_at <= l.last),
            ],
            base=[],
            step=[*found, self._line().at(**at)],
        )

    def _every_step(self) -> Theorem:
        l, k, zero, steps = self.l, self.k, IntVal(0), self.steps_ago
        u = self.settled + steps
        back = steps, self.begins(u) - self.begins(self.settled)
        first, _ = self._where(self.settled, zero)
        found, at = self._where(u + 1, zero)
        return k.induct(
            "every_later_step_begins_so",
            steps,
            Not(self.differs_at(u, zero)),
            [self.begins(u) <= l.last],
            base=[*first, *self.name_is(zero, zero)[:2], l.name_is_its_own],
            step=[
                *found,
                self.one_step.at(u=u, h=self.length),
                self.not_off.at(u=u, h=self.length, **at),
                *self._again(*back, at),
                *(self.follow.at(u=u), self.there_is_one, self.come_later.at(u=u)),
            ],
        )

    def _again(self, steps: Any, lines: Any, at: dict[str, Any]) -> list[Theorem]:
        """What repeats, of a value and of an earlier one; the one before that is the earlier one's."""
        s, one = self.l.s, (IntVal(1), self.length)
        earlier = self.earlier(s, steps, lines)
        of = [(earlier, *one), (s, steps + 1, lines + self.length)]
        return [
            *(self.repeats.at(s=each, **at) for each in (s, earlier)),
            *self.name_is(steps, lines),
            *(
                is_.at(s=x, steps=a, lines=b)
                for is_ in (self.earlier_is, self.had_is)
                for x, a, b in of
            ),
        ]

    # ------------------------------------------------------------------------- a line
    def _line(self) -> Theorem:
        """Before a line it is so, and therefore after it."""
        l, k, b = self.l, self.k, self.l.b
        here, there = self.line_at, self.run_at
        after = self.as_before(lambda t, s: self.form(t + 1, s))
        runs = [
            *(self.same_lines, self.come_later, self.follow.at(u=self.settled)),
            l.coefficient_next.at(t=here),
            *(l.coefficient_next.at(t=there, s=s) for s in (l.s, self.earlier(l.s, *self.since))),
        ]
        off = Not(self.differs_at(l.u, self.h))
        placed = self._spread().at(p=l.mesh.nowhere, level=l.mesh.axes)
        at_here = {"t": here}
        some = l.mesh.on_axes.at(a=l.mesh.axis(here), **at_here)
        moves, untouched = (substitute(said, (l.t, here)) for said in (l.moves(b), l.untouched(b)))
        cases = [
            k.prove(
                f"a_line_that_{name}_leaves_so_what_is_so",
                after,
                [*self.in_step, *given],
                [*runs, *uses],
            )
            for name, given, uses in (
                ("moves", [moves, off], self._moved()),
                ("is_elsewhere", [untouched, off], [self.not_off]),
                ("computes", [Not(moves), Not(untouched)], [placed, some]),
            )
        ]
        return k.prove("a_line_leaves_so_what_is_so", after, [*self.in_step, off], cases)

    def _moved(self) -> list[Theorem]:
        """What is before a line, of words that differ along its axis; sums over these."""
        l, there = self.l, self.run_at
        a = l.mesh.axis(there)
        facts: list[Theorem] = []
        for of_target, place in ((False, l.source), (True, l.target)):
            facts += (self.not_off.at(b=place(there), word=l.mesh.put(l.word, a, r)) for r in NUMBERS)
            made = [l.row[of_target](l.known, there, l.word[a], r, l.f[a]) for r in NUMBERS]
            facts.append(l.of_nothing.at(**l.row_as(made)))
        return facts

    def _spread(self) -> Theorem:
        """What lines compute is so."""
        l = self.l
        lines = [self.same_lines, self.same_right, self.come_later, self.follow.at(u=self.settled)]
        earlier = self.earlier(l.s, *self.since)
        alike = AlikeLines(
            *(self.line_at, self.run_at, l.u, self.settled, earlier, self.as_before, self.in_step),
            *(lines, [self.there_is_one, *self.name_is(*self.since)], True),
        )
        return alike.computed(l)
