"""T4: after the micro-steps of a step, forms of contributions are those of a few of them.

Of a micro-step that is not yet run there is nothing anywhere. After it, what there is of its
contributions is what there was of the one before, a micro-step earlier; and some micro-steps later it
stays as it is. So after all of them as much is in every place of each, but of the first few and the
last few; and lines that make none of them leave it so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.form_needs import WHO
from proofs.checking.levels import NUMBERS
from proofs.checking.matching import Read, contributed
from proofs.checking.micro_steps_alike import MicroStepsAlike
from proofs.checking.representation import FALSE, TRUE, Represented
from proofs.checking.symbols import (
    BACKWARD,
    BOOL,
    CONTRIBUTION,
    COUNT_OF,
    MOMENT,
    NORM,
    PLACES,
    TOKENS,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or


class FewContributions(MicroStepsAlike):
    """What is supposed of contributions after micro-steps is supposed of few.

    born: whether forms of s are those of `other`, or nothing.
    """

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        k = self.k
        self.other, self.born = k.integers("other"), k.constant("is_born", BOOL)
        self.in_their_turns = self._in_their_turns()
        self.none_made = self._none_made()
        self._off_of_other()
        self.line_of_others = self._line_of_others()
        self.unborn = self._unborn()
        self.left = self._left()
        self.shifted = self._shifted()
        self.stays = self._stays()
        self.after_alike = self._after_alike()
        self.sight_alike = self._sight_alike()
        self.equal_alike = self._equal_alike()
        self.one_of_few = self._one_of_few()

    # ------------------------------------------------------------------ who contributes
    def index(self, which: Any) -> Any:
        """The micro-step of a contribution, also of the second use of a weight."""
        return If(which >= self.turns, which - self.turns, which)

    def contributes(self, t: Any) -> Bool:
        """Whether a line is one that devices contribute by."""
        return Or(*(self.l.kind(t) == kind for kind in (BACKWARD, COUNT_OF)))

    def makes(self, t: Any, s: Any) -> Bool:
        """Whether line t makes a contribution s."""
        l = self.l
        return And(self.contributes(t), l.step(t) == l.time(s), l.micro(t) == l.which(s))

    def is_contribution(self, s: Any) -> Bool:
        return self.l.is_contributed(self.l.what(s))

    def _in_their_turns(self) -> Theorem:
        """A contribution is made in its micro-step; that of the last one also later."""
        l, t, opens = self.l, self.l.t, self.opens
        m, step = self.index(l.micro(t)), l.step(t)
        inside = And(opens(step, m) <= t, Or(t < opens(step, m + 1), m == self.turns - 1))
        return self.k.suppose(
            "contributions_are_made_in_their_micro_steps",
            [t],
            Implies(And(t >= 0, t < l.last, self.contributes(t)), inside),
        )

    # ------------------------------------------------------------ what is not made by lines
    def _none_made(self) -> Theorem:
        """Of a contribution that a line does not make there is nothing in what it computes."""
        l, k, t, s, level, zero = self.l, self.k, self.l.t, self.l.s, self.l.level, IntVal(0)
        given = [t <= l.last, self.is_contribution(s), Implies(t >= 0, Not(self.makes(t, s)))]
        now = l.step(t)
        names = [
            *(l.names.at(w=w, u=now, m=l.micro(t)) for w in (CONTRIBUTION, TOKENS)),
            *(l.names.at(w=w, u=u, m=zero) for w in (WEIGHT, MOMENT) for u in (zero, now + 1)),
            l.names.at(w=NORM, u=now, m=zero),
            *(l.names.at(w=w, u=t, m=zero) for w in (WRONG, WRONG_MOMENT)),
        ]
        here = k.prove(
            "nothing_is_placed_of_what_is_not_made",
            l.placed(TRUE, t, l.b, s, l.f, l.p) == 0,
            given,
            [l.placed_is.at(is_known=TRUE), l.numbered, *names],
        )
        a = l.mesh.axes - 1 - level
        there_are = [IntVal(place) for place in PLACES.values()]
        alone = [l.alone(place, l.word[a], l.f[a]) for place in there_are]
        return k.induct(
            "there_is_nothing_of_what_is_not_made",
            level,
            l.spread(TRUE, t, l.b, s, l.word, l.f, l.p, level) == 0,
            given,
            base=[here, l.spread_none.at(is_known=TRUE)],
            step=[
                l.spread_next.at(is_known=TRUE),
                l.chosen_is.at(
                    **dict(zip(map(str, l.three[0]), alone, strict=True)),
                    **dict.fromkeys(map(str, l.three[1]), ZERO),
                ),
                *(l.none.at(x0=each) for each in alone),
            ],
            at=[{"p": l.mesh.put(l.p, a, place)} for place in there_are],
        ).at(p=l.mesh.nowhere, level=l.mesh.axes)

    def of_other(self, form: Any, t: Any) -> Bool:
        """That before line t there is as much of s as of the other, or nothing."""
        return form(t, self.l.s) == If(self.born, form(t, self.other), ZERO)

    def known_form(self, t: Any, s: Any) -> Any:
        """The coefficient of a word in a place, of an original value."""
        l = self.l
        return l.coefficient(TRUE, l.b, s, l.word, l.f, t)

    def _off_of_other(self) -> None:
        """Whether there is not, of some word, in some place."""
        l, k, b, word, t = self.l, self.k, self.l.b, self.l.word, self.l.t
        at = [t, l.s, self.other, self.born, l.f]
        in_place, self.apart_word, shown_on, self.apart_on = k.choose(
            "is_another_in_place", [*at, b], word, Not(self.of_other(self.known_form, t))
        )
        self.apart, self.apart_place, shown, self.apart_in = k.choose(
            "is_another_somewhere", at, b, in_place(*at, b)
        )
        self.not_apart = k.prove(
            "what_is_nowhere_another_is_alike",
            self.of_other(self.known_form, t),
            [Not(self.apart(*at))],
            [shown_on, shown],
        )

    def is_another(self, t: Any, s: Any = None, other: Any = None, born: Any = None) -> Bool:
        values = (self.l.s, self.other, self.born)
        given = (
            own if value is None else value for own, value in zip(values, (s, other, born), strict=True)
        )
        return self.apart(t, *given, self.l.f)

    def _where_apart(self, t: Any, **of: Any) -> tuple[list[Theorem], dict[str, Any]]:
        """Where it is another, if it is: that place, that word."""
        names = {"s": "s", "other": "other", "born": "is_born"}
        at = {names[name]: value for name, value in of.items()}
        values = [of.get("s", self.l.s), of.get("other", self.other), of.get("born", self.born)]
        place = self.apart_place(t, *values, self.l.f)
        found = [self.apart_in.at(t=t, **at), self.apart_on.at(t=t, b=place, **at)]
        return found, {"b": place, "word": self.apart_word(t, *values, self.l.f, place)}

    def _line_of_others(self) -> Theorem:
        """Lines that make neither leave them alike."""
        l, k, b, t = self.l, self.k, self.l.b, self.l.t
        after = self.of_other(lambda at, s: self.known_form(at + 1, s), t)
        alike = Not(self.is_another(t))
        both = (l.s, self.other)
        runs = [l.coefficient_next.at(is_known=TRUE, s=s) for s in both]
        moves, untouched = l.moves(b), l.untouched(b)
        a = l.mesh.axis(t)
        moved: list[Theorem] = []
        for of_target, place in ((False, l.source), (True, l.target)):
            moved += (self.not_apart.at(b=place(t), word=l.mesh.put(l.word, a, r)) for r in NUMBERS)
            made = [l.row[of_target](TRUE, t, l.word[a], r, l.f[a]) for r in NUMBERS]
            moved.append(l.of_nothing.at(**l.row_as(made)))
        one, other = self.is_contribution(l.s), Implies(self.born, self.is_contribution(self.other))
        apart = [Not(self.makes(t, l.s)), Implies(self.born, Not(self.makes(t, self.other)))]
        cases = [
            k.prove(f"a_line_that_{name}_leaves_alike_what_is", after, [t >= 0, *more], [*runs, *uses])
            for name, more, uses in (
                ("moves", [moves, alike], moved),
                ("is_elsewhere", [untouched, alike], [self.not_apart]),
                (
                    "makes_neither",
                    [t < l.last, Not(moves), Not(untouched), one, other, *apart],
                    [*(self.none_made.at(s=s) for s in both), l.mesh.on_axes.at(a=a)],
                ),
            )
        ]
        return k.prove(
            "a_line_leaves_alike_what_it_makes_none_of",
            after,
            [t >= 0, t < l.last, alike, one, other, *apart],
            cases,
        )

    def _unborn(self) -> Theorem:
        """Of a micro-step that is not yet run there is nothing anywhere."""
        l, t, s, zero = self.l, self.l.t, self.l.s, IntVal(0)
        first, at_first = self._where_apart(zero, born=FALSE)
        found, at = self._where_apart(t + 1, born=FALSE)
        never = self.k.induct(
            "nothing_is_there_before",
            t,
            Not(self.is_another(t, born=FALSE)),
            [self.is_contribution(s), t <= self.opens(l.time(s), self.index(l.which(s))), t <= l.last],
            base=[
                *first,
                l.at_first.at(is_known=TRUE, **at_first),
                self.none_made.at(t=IntVal(-1), **at_first),
                l.mesh.on_axes,
            ],
            step=[*found, self.line_of_others.at(is_born=FALSE, **at), self.in_their_turns],
        )
        return self.k.prove(
            "of_a_micro_step_that_is_not_yet_run_there_is_nothing",
            self.known_form(t, s) == 0,
            [t >= 0, *never.given[1:]],
            [never, self.not_apart.at(is_born=FALSE)],
        )

    # ---------------------------------------------------------------- what micro-steps leave
    def at_opening(self, m: Any, s: Any) -> Any:
        """What is in a place before micro-step m."""
        return self.known_form(self.opens(self.l.u, m), s)

    def has_ended(self, m: Any) -> list[Bool]:
        """That micro-step m has been run, from `few` on."""
        end = self.opens(self.l.u, m + 1)
        return [self.l.u >= 0, m >= self.few, m + 1 <= self.turns, *self.ended(end)]

    def _left(self) -> Theorem:
        """A micro-step leaves what it found, one micro-step later, and as much more as the first."""
        m, zero = self.l.m, IntVal(0)
        return self.k.prove(
            "a_micro_step_leaves_what_it_found_one_later_and_as_much_more",
            substitute(self.grown(self.form, m), (self.h, zero)),
            self.has_ended(m),
            [self.not_uneven.at(h=zero), self.every_turn.at(more=m - self.few)],
        )

    @property
    def earlier_one(self) -> Any:
        """The contribution of the micro-step before."""
        return self.before(TRUE, self.l.u, self.l.s)

    @property
    def before_known(self) -> tuple[Theorem, Theorem, Theorem, Theorem]:
        """Whether it is moved, what the one before is, whether there is one, and its name."""
        moves, one, has, name = self.before_is
        return moves.at(is_known=TRUE), one.at(is_known=TRUE), has.at(is_known=TRUE), name

    def _shifted(self) -> Theorem:
        """What there is of a contribution is what there was of the one before, a micro-step earlier."""
        l, m, few, s, one = self.l, self.l.m, self.few, self.l.s, self.earlier_one
        n, which = self.index(l.which(s)), l.which(s)
        of_step = self.is_contribution(s), l.time(s) == l.u, l.u <= l.last, which < l.micro_steps
        born = {"t": self.opens(l.u, few + 1)}, {"t": self.opens(l.u, few), "s": one}
        return self.k.prove(
            "contributions_are_what_those_before_were",
            self.at_opening(m + 1, s) == self.at_opening(m, one),
            [*self.has_ended(m), *of_step, n > few, n < self.turns],
            [
                self.left.at(is_known=TRUE),
                *self.before_known[1:],
                *(self.unborn.at(**at) for at in born),
                self.open_later.at(m=few + 1, more=n - (few + 1)),
                self.open_later.at(m=few, more=n - 1 - few),
                self.open_later.at(m=few + 1, more=m - few),
                self.one_by_one.at(m=few),
                self.there_are_some,
            ],
        )

    def _stays(self) -> Theorem:
        """Some micro-steps later it stays as it is."""
        l, few, s, one = self.l, self.few, self.l.s, self.earlier_one
        m = few + 1 + self.more
        n, end = self.index(l.which(s)), self.opens(l.u, m + 1)
        of_step = self.is_contribution(s), l.time(s) == l.u
        return self.k.induct(
            "contributions_stay_as_they_are",
            self.more,
            self.at_opening(m + 1, s) == self.at_opening(m, s),
            [l.u >= 0, m + 1 <= self.turns, *self.ended(end), *of_step, n <= self.more],
            base=[self.left.at(is_known=TRUE, m=few + 1), *self.before_known[::2]],
            step=[
                *(self.left.at(is_known=TRUE, m=x) for x in (m, m + 1)),
                *self.before_known,
                self.one_by_one.at(m=m + 1),
                self.there_are_some,
            ],
            at=[{"s": one}],
        )

    # ------------------------------------------------------------- after all micro-steps
    def is_inner(self, s: Any) -> list[Bool]:
        """That s is a contribution, of neither the last few micro-steps of a step nor the first few."""
        l, few = self.l, self.few
        u, which = l.time(s), l.which(s)
        n = self.index(which)
        named = self.is_contribution(s), u >= 0, u <= l.last, which < l.micro_steps
        return [*named, self.opens(u, self.turns) <= self.until, n + few + 1 < self.turns, n > few]

    def is_spared(self, t: Any, s: Any) -> Bool:
        """That there is as much of it before line t as of the one before: all micro-steps are over."""
        return And(*self.is_inner(s), self.opens(self.l.time(s), self.turns) <= t)

    def _after_alike(self) -> Theorem:
        """After all micro-steps there is as much of each, but of the first few and the last few."""
        l, few, s, one, m = self.l, self.few, self.l.s, self.earlier_one, self.turns - 1
        end, of = self.opens(l.u, self.turns), {"other": one, "born": TRUE}
        n = self.index(l.which(s))
        first, at_first = self._where_apart(end, **of)
        found, at = self._where_apart(end + self.more + 1, **of)
        inner = [*self.is_inner(s), l.time(s) == l.u]
        begin = self.k.prove(
            "after_micro_steps_contributions_are_alike",
            Not(self.is_another(end, **of)),
            [*inner, end <= l.last],
            [
                *first,
                self.shifted.at(m=m, **at_first),
                self.stays.at(s=one, more=m - (few + 1), **at_first),
                *self.before_known[1::2],
                self.there_are_some,
            ],
        )
        t = end + self.more
        later = self.k.induct(
            "after_micro_steps_contributions_stay_alike",
            self.more,
            Not(self.is_another(t, **of)),
            [*inner, t <= l.last],
            base=[begin],
            step=[
                *found,
                self.line_of_others.at(t=t, other=one, is_born=TRUE, **at),
                self.in_their_turns.at(t=t),
                *self.before_known[1::2],
                *(self.open_later.at(m=x, more=self.turns - x) for x in (n, n + 1)),
                *(self.one_by_one.at(m=m), self.there_are_some),
            ],
        )
        u = l.time(s)
        other = self.before(TRUE, u, s)
        return self.k.prove(
            "there_is_as_much_of_it_as_of_the_one_before",
            self.known_form(l.t, s) == self.known_form(l.t, other),
            [self.is_spared(l.t, s), l.t <= l.last],
            [
                later.at(u=u, more=l.t - self.opens(u, self.turns)),
                self.not_apart.at(other=other, is_born=TRUE),
            ],
        )

    def _sight_alike(self) -> Theorem:
        """Devices see as much of it."""
        l, t, s, x = self.l, self.l.t, self.l.s, self.l.level
        other = self.before(TRUE, l.time(s), s)

        def sight(of: Any) -> Any:
            return l.sight(TRUE, t, l.b, of, l.word, l.f, l.p, l.q, x)

        both = [{"is_known": TRUE, "s": each} for each in (s, other)]
        return self.k.induct(
            "as_much_is_seen_of_it_as_of_the_one_before",
            x,
            sight(s) == sight(other),
            [self.is_spared(t, s), t <= l.last],
            base=[self.after_alike, *(l.sight_none.at(**at) for at in both)],
            step=[l.sight_next.at(**at) for at in both],
            at=[{"word": l.mesh.put(l.word, x, o)} for o in NUMBERS],
        )

    def _equal_alike(self) -> Theorem:
        """If the one before compares equal, so does it."""
        l, t, s, x = self.l, self.l.t, self.l.s, self.l.mesh.x
        other = self.before(TRUE, l.time(s), s)
        one, before = (self.equal(TRUE, t, l.b, of, l.f, l.p, l.q, self.wanted, x) for of in (s, other))
        both = [{"is_known": TRUE, "s": each} for each in (s, other)]
        return self.k.induct(
            "it_compares_equal_if_the_one_before_does",
            x,
            Implies(before, one),
            [self.is_spared(t, s), t <= l.last],
            base=[
                self.sight_alike.at(word=l.any_word, level=l.mesh.axes),
                *(self.equal_none.at(**at) for at in both),
                l.mesh.on_axes,
            ],
            step=[self.equal_next.at(**at) for at in both],
            at=[{"q": l.mesh.put(l.q, x, IntVal(who))} for who in WHO],
        )

    def _one_of_few(self) -> Theorem:
        """Each stands for by one of the first few, which compares equal only if it does."""
        l, t, s, n = self.l, self.l.t, self.l.s, self.more
        self.stand_in, first, then = self.k.recursion(
            "stand_in", [s], n, s, lambda before: self.before(TRUE, l.time(s), before(s))
        )
        one = self.stand_in(s, n)
        equal, same = (
            self.equal(TRUE, t, l.b, of, l.f, l.p, l.q, self.wanted, l.mesh.axes) for of in (s, one)
        )
        over = [self.opens(l.time(s), self.turns) <= t]
        alike = l.what(one) == l.what(s), l.time(one) == l.time(s), l.which(one) == l.which(s) - n
        return self.k.induct(
            "one_of_the_first_few_stands_for_each",
            n,
            And(*alike, Implies(same, equal)),
            [*self.is_inner(s)[:-1], *over, t <= l.last, n <= self.index(l.which(s)) - self.few],
            base=[first],
            step=[
                *(then, self.there_are_some, l.mesh.on_axes),
                self.equal_alike.at(s=one, x=l.mesh.axes),
                *(self.before_known[i].at(u=l.time(s), s=one) for i in (0, 1, 3)),
            ],
        )

    # ------------------------------------------------------------------- comparisons
    def forms_equal(
        self, name: str, at: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """Forms of the first few and of the last few compare equal, which is supposed; so do all."""
        l, s, t = self.l, self.l.s, reads[0][0]
        asked = super().forms_equal(f"{name}_of_few", at, [*given, Not(self.is_spared(t, s))], reads)
        n = self.index(l.which(s)) - self.few
        states = {id(state): state.args for *_, state, _ in reads if contributed(state) is None}
        by_line = any(v is t for v in at)
        facts = [
            *(asked, asked.at(s=self.stand_in(s, n)), self.there_are_some),
            *(
                self.one_of_few.at(t=t, b=b, wanted=self.wanted_of(s, state, u), more=n)
                for _, b, state, u in reads
            ),
            *(l.names.at(w=what, u=when, m=which) for what, when, which in states.values()),
            *([l.numbered] if by_line and states else []),
        ]
        passes = And(*(self.form_passes(*read) for read in reads))
        return self.k.prove(name, Implies(And(*given), passes), (), facts)
