"""T4: what the checker finds in a few micro-steps is so in any number of them.

A micro-step that adds to what it found does not leave it, each value one micro-step later, as a step
does (`steps_alike`): it leaves as much more of each value as the one before did. With x(m) the forms
before micro-step m, and `before` the same value of the micro-step before, of every value s

    x(m + 1)(s) = x(m)(before s) + y(s),    y(s) = x(few + 1)(s) - x(few)(before s),    m >= few

by induction over micro-steps, and in each over its lines, which are linear: so few of them decide all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.comparisons import Comparisons
from proofs.checking.computed_alike import AlikeLines, Form
from proofs.checking.levels import NUMBERS
from proofs.checking.representation import Represented
from proofs.checking.symbols import INT, WRONG, WRONG_MOMENT, ZERO
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or


class MicroStepsAlike(Comparisons):
    """Runs whose micro-steps are alike from number `few` on, up to the end of step `settled`.

    begins(u): the first line of step u, of `length` lines; opens(u, m): of its micro-step m, of `span`
    lines, of `turns` micro-steps; turn(t): in which micro-step line t is. h: a line's place in it.
    """

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        k = self.k
        self.h, self.more = k.integers("h more")
        self.length, self.settled, self.turns, self.span, self.few = (
            k.fixed(name, INT) for name in ("length", "settled", "turns", "span", "few")
        )
        self.begins, self.turn = (k.function(name, INT, INT) for name in ("begins", "turn"))
        self.opens = k.function("opens", INT, INT, INT)
        self.until = self.begins(self.settled) + self.length  # the lines that the checker runs
        self.there_are_some = k.suppose("there_are_micro_steps", [], And(self.few >= 0, self.span >= 0))
        self.one_by_one, self.in_turns = self._micro_steps()
        self.open_later = self._open_later()
        self.same_in_turns, self.right_in_turns = self._alike_in_turns()
        self._before()
        self.adds_the_same = self._adds_the_same()
        self._off_in_turns()
        self.of_four = self._of_four()
        self.one_turn = self._one_turn()
        self.every_turn = self._every_turn()
        self.grows_so = self._grows_so()

    # ------------------------------------------------------------------- micro-steps
    def line_in(self, m: Any) -> Any:
        """The line at h of micro-step m."""
        return self.opens(self.l.u, m) + self.h

    def in_turn(self, m: Any) -> list[Bool]:
        """That there is such a line, which the checker runs, or would."""
        t = self.line_in(m)
        return [*self.place_in(m), t < self.until, t < self.l.last]

    def place_in(self, m: Any) -> list[Bool]:
        """That h is a line's place in micro-step m."""
        return [self.l.u >= 0, m < self.turns, self.h >= 0, self.h < self.span]

    def ended(self, t: Any) -> list[Bool]:
        """That the lines before t are run."""
        return [t <= self.until, t <= self.l.last]

    def _micro_steps(self) -> tuple[Theorem, Theorem]:
        """Micro-steps follow each other, and each of their lines is in its own."""
        l, k, u, m, t = self.l, self.k, self.l.u, self.l.m, self.l.t
        opens, step, turn = self.opens, l.step(t), self.turn(t)
        follow = k.suppose(
            "micro_steps_follow_each_other",
            [u, m],
            Implies(
                And(u >= 0, m >= 0, m < self.turns),
                And(opens(u, m) >= 0, opens(u, m + 1) == opens(u, m) + self.span),
            ),
        )
        inside = And(turn < self.turns, opens(step, turn) <= t)
        return follow, k.suppose(
            "lines_are_in_their_micro_steps",
            [t],
            Implies(
                And(self.repeats_at(t), t >= 0, t < l.last),
                And(inside, t < opens(step, turn) + self.span),
            ),
        )

    def repeats_at(self, t: Any) -> Bool:
        """Whether a line is in a micro-step."""
        step = self.l.step(t)
        return And(self.opens(step, IntVal(0)) <= t, t < self.opens(step, self.turns))

    def is_late(self, t: Any) -> Bool:
        """Whether a line is in a micro-step that the checker does not run one by one."""
        return And(self.repeats_at(t), self.turn(t) > self.few + 1)

    def _open_later(self) -> Theorem:
        """No later micro-step opens before."""
        u, m, more = self.l.u, self.l.m, self.more
        return self.k.induct(
            "later_micro_steps_open_later",
            more,
            self.opens(u, m + more) >= self.opens(u, m),
            [u >= 0, m >= 0, m + more <= self.turns],
            base=[],
            step=[self.one_by_one.at(m=m + more), self.there_are_some],
        )

    def _alike_in_turns(self) -> tuple[Theorem, Theorem]:
        """Lines at one place of two micro-steps are alike, and what is right there."""
        l, k, m, f, p = self.l, self.k, self.l.m, self.l.f, self.l.p
        here, there = self.line_in(m), self.line_in(self.few)
        own = l.micro(there)  # of the second use of a weight it is as many micro-steps more
        of_line = l.kind, l.target, l.factor, l.mesh.axis, *l.sources, l.normed
        lines = [
            *(of(here) == of(there) for of in of_line),
            *(l.step(here) == l.u, self.turn(here) == m),
            l.micro(here) == own + (m - self.few),
            Or(own == self.few, own == self.few + self.turns),
        ]
        given, at = And(m >= self.few, *self.in_turn(m)), [l.u, m, self.h]
        right = And(*self.right_alike(here, there))
        return (
            k.suppose("micro_steps_have_the_same_lines", at, Implies(given, And(*lines))),
            k.suppose("micro_steps_are_right_alike", [*at, f, p], Implies(given, right)),
        )

    def right_alike(self, here: Any, there: Any) -> list[Bool]:
        """That of two lines the same is right, or lost, and adds up to norms."""
        l, f, p = self.l, self.l.f, self.l.p
        return [
            l.right(here) == l.right(there),
            l.met(f, p, here) == l.met(f, p, there),
            l.spoils(f, here) == l.spoils(f, there),
            l.lost(f, p, here) == l.lost(f, p, there),
            l.mesh.added(here, p, l.mesh.axes) == l.mesh.added(there, p, l.mesh.axes),
        ]

    # --------------------------------------------------------- values of the one before
    def _before(self) -> None:
        """before: the same value of the micro-step before, or itself if it is of none; has_before:
        there is one. What was computed wrong has the time of its line.
        """
        l, k, s, u = self.l, self.k, self.l.s, self.l.u
        what, time, which = l.what(s), l.time(s), l.which(s)
        wrong, adds = Or(what == WRONG, what == WRONG_MOMENT), l.is_contributed(what)
        first = If(
            wrong, time - self.span < self.opens(u, IntVal(0)), Or(which == 0, which == self.turns)
        )
        moves = Or(And(adds, time == u), And(wrong, time >= self.opens(u, IntVal(0))))
        self.of_turns, of_turns_is = k.define("of_micro_steps", [l.known, u, s], And(l.known, moves))
        moved = self.of_turns(l.known, u, s)
        self.time_before, self.which_before = (
            If(wrong, time - self.span, time),
            If(wrong, which, which - 1),
        )
        one = l.named(what, self.time_before, self.which_before)
        self.before, before_is = k.define("before", [l.known, u, s], If(moved, one, s))
        few = If(adds, l.micro_steps, 1)
        there_is = And(self.time_before >= 0, time <= l.last, which >= 0, which < few, Not(first))
        self.has_before, has_is = k.define("has_before", [l.known, u, s], Implies(moved, there_is))
        name = l.names.at(w=what, u=self.time_before, m=self.which_before)
        self.before_is = [of_turns_is, before_is, has_is, name]

    @property
    def one_before(self) -> Any:
        return self.before(self.l.known, self.l.u, self.l.s)

    def later(self, form: Form, m: Any) -> Any:
        """What is found in micro-step m of the value before; of a value that has none, nothing."""
        has = self.has_before(self.l.known, self.l.u, self.l.s)
        return If(has, form(self.line_in(m), self.one_before), ZERO)

    def one_later(self, form: Form) -> Bool:
        """That all is as in the micro-step before."""
        m = self.l.m
        return form(self.line_in(m + 1), self.l.s) == self.later(form, m)

    def grown(self, form: Form, m: Any) -> Bool:
        """That there is as much more than in the micro-step before as in the first two."""
        s, few = self.l.s, self.few
        here, last = form(self.line_in(m + 1), s), form(self.line_in(few + 1), s)
        return here + self.later(form, few) == self.later(form, m) + last

    def form(self, t: Any, s: Any) -> Any:
        """The coefficient of a word in a place before a line."""
        return self.form_in(self.l.b, self.l.word)(t, s)

    def form_in(self, b: Any, word: Any) -> Form:
        """That of a given place, a given word."""
        l = self.l
        return lambda t, s: l.coefficient(l.known, b, s, word, l.f, t)

    @property
    def four(self) -> list[dict[str, Any]]:
        """The lines that are compared, each with its value."""
        s, one, few = self.l.s, self.one_before, self.few
        at = (self.l.m + 1, s), (few, one), (self.l.m, one), (few + 1, s)
        return [{"t": self.line_in(m), "s": value} for m, value in at]

    def _adds_the_same(self) -> Theorem:
        """The last micro-step that is run one by one leaves as much more as the one before."""
        l, few = self.l, self.few
        end = self.opens(l.u, few + 2)
        said = substitute(self.grown(self.form, few + 1), (self.h, IntVal(0)))
        return self.k.suppose(
            "the_micro_step_adds_what_the_one_before_added",
            [l.u, l.known, l.b, l.s, l.word, l.f],
            Implies(And(l.u >= 0, few + 2 <= self.turns, *self.ended(end)), said),
        )

    # ------------------------------------------------------- later ones are as it finds
    def _off_in_turns(self) -> None:
        """Whether some word has, in some place, another coefficient."""
        l, k, b, word = self.l, self.k, self.l.b, self.l.word
        at = [l.u, l.m, self.h, l.known, l.s, l.f]
        place_is_off, self.uneven_word, shown_on, self.uneven_on = k.choose(
            "place_grows_otherwise", [*at, b], word, Not(self.grown(self.form, l.m))
        )
        self.uneven_at, self.uneven_place, shown, self.uneven_in = k.choose(
            "grows_otherwise", at, b, place_is_off(*at, b)
        )
        self.not_uneven = k.prove(
            "what_does_not_grow_otherwise_grows_alike",
            self.grown(self.form, l.m),
            [Not(self.uneven_at(*at))],
            [shown_on, shown],
        )

    def grows_otherwise(self, m: Any, h: Any) -> Bool:
        l = self.l
        return self.uneven_at(l.u, m, h, l.known, l.s, l.f)

    def _where_uneven(self, m: Any, h: Any) -> tuple[list[Theorem], dict[str, Any]]:
        """Where it is otherwise before a line, if it is: that place, that word."""
        l = self.l
        at = l.u, m, h, l.known, l.s, l.f
        place = self.uneven_place(*at)
        found = [self.uneven_in.at(m=m, h=h), self.uneven_on.at(m=m, h=h, b=place)]
        return found, {"b": place, "word": self.uneven_word(*at, place)}

    def _of_four(self) -> Theorem:
        """Sums over operators of numbers that add up alike do."""
        l, k = self.l, self.k
        columns = [
            l.right_one,
            l.more,
            *(k.reals(" ".join(f"{v}{i}" for i in range(len(NUMBERS)))) for v in "vw"),
        ]
        self.columns = columns
        one, two, three, four = (l.mixed(*l.left, *column) for column in columns)
        return k.prove(
            "sums_of_what_adds_up_alike",
            one + two == three + four,
            [a + b == c + e for a, b, c, e in zip(*columns, strict=True)],
            [
                l.adds,
                l.adds.at(**l.column_as(columns[2]), **l.more_as(columns[3])),
            ],
        )

    def adding(self, row: Sequence[Any], forms: Sequence[tuple[Any, ...]]) -> Theorem:
        """Of four forms of each word."""
        of: dict[str, Any] = {}
        for column, values in zip(self.columns, zip(*forms, strict=True), strict=True):
            of |= dict(zip(map(str, column), values, strict=True))
        return self.of_four.at(**self.l.row_as(row), **of)

    def parts(self, form: Form) -> tuple[Any, Any, Any, Any]:
        """What adds up alike."""
        s, m = self.l.s, self.l.m
        here, last = (form(self.line_in(x), s) for x in (m + 1, self.few + 1))
        return here, self.later(form, self.few), self.later(form, m), last

    def _runs(self) -> list[Theorem]:
        """What is so of the lines in question."""
        m, few, one = self.l.m, self.few, self.one_by_one
        return [
            *(self.same_in_turns.at(m=x) for x in (m + 1, m, few + 1)),
            *(one.at(m=x) for x in (m, few)),
            self.open_later.at(m=few + 1, more=m - few),
            self.there_are_some,
        ]

    def _line_in_turns(self) -> Theorem:
        """Before a line it is so, and therefore after it."""
        l, k, b, m = self.l, self.k, self.l.b, self.l.m
        here = self.line_in(m + 1)
        after = self.grown(lambda t, s: self.form(t + 1, s), m)
        even = Not(self.grows_otherwise(m, self.h))
        given = [m >= self.few, *self.in_turn(m + 1)]
        runs = [*self._runs(), *(l.coefficient_next.at(**at) for at in self.four)]
        moves, untouched = (substitute(said, (l.t, here)) for said in (l.moves(b), l.untouched(b)))
        placed = self._made_alike().at(p=l.mesh.nowhere, level=l.mesh.axes)
        some = l.mesh.on_axes.at(a=l.mesh.axis(here), t=here)
        cases = [
            k.prove(
                f"a_line_of_micro_steps_that_{name}_leaves_it_so",
                after,
                [*given, *more],
                [*runs, *uses],
            )
            for name, more, uses in (
                ("moves", [moves, even], self._moved_alike()),
                ("is_elsewhere", [untouched, even], [self.not_uneven]),
                ("computes", [Not(moves), Not(untouched)], [placed, placed.at(m=self.few), some]),
            )
        ]
        return k.prove("a_line_of_micro_steps_leaves_it_so", after, [*given, even], cases)

    def _moved_alike(self) -> list[Theorem]:
        """What is before a line, of words that differ along its axis; sums over these."""
        l, there = self.l, self.line_in(self.few)
        a = l.mesh.axis(there)
        facts: list[Theorem] = []
        for of_target, place in ((False, l.source), (True, l.target)):
            words = [l.mesh.put(l.word, a, r) for r in NUMBERS]
            facts += (self.not_uneven.at(b=place(there), word=word) for word in words)
            made = [l.row[of_target](l.known, there, l.word[a], r, l.f[a]) for r in NUMBERS]
            forms = [self.parts(self.form_in(place(there), word)) for word in words]
            facts.append(self.adding(made, forms))
        return facts

    def _made_alike(self) -> Theorem:
        """What lines compute is one micro-step later."""
        l, m, few = self.l, self.l.m, self.few
        alike = (
            *(each.at(m=x) for each in (self.same_in_turns, self.right_in_turns) for x in (m + 1, m)),
        )
        lines = [
            *alike,
            self.one_by_one,
            self.open_later.at(m=IntVal(0), more=m),
            self.there_are_some,
            *self.before_is,
        ]
        return AlikeLines(
            *(self.line_in(m + 1), self.line_in(m), l.u, l.u, self.one_before, self.one_later),
            *([m >= few, *self.in_turn(m + 1)], lines, []),
        ).computed(l, "micro_steps_")

    def _one_turn(self) -> Theorem:
        """A micro-step that begins so is so throughout."""
        l, h, m, zero = self.l, self.h, self.l.m, IntVal(0)
        found, at = self._where_uneven(m, h + 1)
        return self.k.induct(
            "a_micro_step_that_begins_so_is_so_throughout",
            h,
            Not(self.grows_otherwise(m, h)),
            [
                Not(self.grows_otherwise(m, zero)),
                *(l.u >= 0, m >= self.few, m + 1 < self.turns, h <= self.span),
                *self.ended(self.line_in(m + 1)),
            ],
            base=[],
            step=[*found, self._line_in_turns().at(**at)],
        )

    def _every_turn(self) -> Theorem:
        """Every later micro-step begins so."""
        l, zero, few = self.l, IntVal(0), self.few
        m = few + self.more
        first, _ = self._where_uneven(few, zero)
        found, at = self._where_uneven(m + 1, zero)
        return self.k.induct(
            "every_later_micro_step_begins_so",
            self.more,
            Not(self.grows_otherwise(m, zero)),
            [l.u >= 0, m + 1 <= self.turns, *self.ended(self.opens(l.u, m + 1))],
            base=first,
            step=[
                *found,
                self.one_turn.at(m=m, h=self.span),
                self.not_uneven.at(m=m, h=self.span, **at),
                self.adds_the_same.at(**at),
                *(self.one_by_one.at(m=x) for x in (few, few + 1, m, m + 1)),
                self.open_later.at(m=few + 2),
                self.there_are_some,
            ],
        )

    @property
    def within_turns(self) -> list[Bool]:
        """Before the line at h of the micro-step after m, or where that one ends."""
        m, h = self.l.m, self.h
        inside = self.l.u >= 0, m >= self.few, m + 1 < self.turns, h >= 0, h <= self.span
        return [*inside, *self.ended(self.line_in(m + 1))]

    def _grows_so(self) -> Theorem:
        """What the checker found is so in every later micro-step."""
        m, few = self.l.m, self.few
        return self.k.prove(
            "what_is_found_is_so_in_later_micro_steps",
            self.grown(self.form, m),
            self.within_turns,
            [
                *(self.not_uneven, self.one_turn),
                self.every_turn.at(more=m - few),
            ],
        )
