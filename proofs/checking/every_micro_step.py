"""T4: forms that compare equal in the micro-steps that the checker runs do so in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.computed_alike import Form
from proofs.checking.few_contributions import FewContributions
from proofs.checking.form_needs import WHO
from proofs.checking.levels import NUMBERS
from proofs.checking.matching import Read
from proofs.checking.representation import FALSE, TRUE, Represented
from proofs.checking.symbols import ZERO
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, Implies, IntVal, Not


class EveryMicroStep(FewContributions):
    """What is supposed of the lines of micro-steps is supposed of few."""

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        self.sight_grows = self._sight_grows()
        self.wanted_before = self.k.reals("wanted_before")
        self.equal_again = self._equal_again()

    def _sight_grows(self) -> Theorem:
        """What devices see grows alike."""
        l, x = self.l, self.l.level

        def sight(word: Any) -> Form:
            return lambda t, s: l.sight(l.known, t, l.b, s, word, l.f, l.p, l.q, x)

        seen = [l.entry(o, l.f[x], l.p[x], l.q[x], l.mesh.size_of(x)) for o in NUMBERS]
        words = [l.mesh.put(l.word, x, o) for o in NUMBERS]
        forms = [self.parts(sight(word)) for word in words]
        return self.k.induct(
            "what_is_seen_grows_alike",
            x,
            self.grown(sight(l.word), l.m),
            self.within_turns,
            base=[self.grows_so, *(l.sight_none.at(**at) for at in self.four)],
            step=[
                *(l.sight_next.at(**at) for at in self.four),
                self.adding(seen, forms),
            ],
            at=[{"word": word} for word in words],
        )

    def _equal_again(self) -> Theorem:
        """What compared equal in the micro-step before, and in the first two, does so again."""
        l, x = self.l, self.l.mesh.x
        wanted = self.wanted, self.wanted_before, self.wanted_before, self.wanted
        four = [at | {"wanted": amount} for at, amount in zip(self.four, wanted, strict=True)]
        again, first, before, second = (
            self.equal(l.known, at["t"], l.b, at["s"], l.f, l.p, l.q, at["wanted"], x) for at in four
        )
        has = self.has_before(l.known, l.u, l.s)
        return self.k.induct(
            "what_compared_equal_does_so_in_the_next_micro_step",
            x,
            Implies(And(second, Implies(has, And(first, before))), again),
            self.within_turns,
            base=[
                self.sight_grows.at(word=l.any_word, level=l.mesh.axes),
                *(self.equal_none.at(**at) for at in four),
                l.mesh.on_axes,
            ],
            step=[self.equal_next.at(**at) for at in four],
            at=[{"q": l.mesh.put(l.q, x, IntVal(who))} for who in WHO],
        )

    # ------------------------------------------------------------------- comparisons
    def forms_equal(
        self, name: str, at: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """Forms compare equal in the micro-steps that are run, which is supposed; so they do in all."""
        l, t = self.l, self.l.t
        if not any(v is t for v in at):
            return super().forms_equal(name, at, given, reads)
        asked = super().forms_equal(f"{name}_as_run", at, [*given, Not(self.is_late(t))], reads)
        step, turn = l.step(t), self.turn(t)
        now = {"u": step, "more": turn - (self.few + 1), "h": t - self.opens(step, turn)}
        later = self._in_all(name, given, reads, asked).at(**now)
        said = Implies(And(*given), And(*(self.form_passes(*each) for each in reads)))
        return self.k.prove(name, said, (), [asked, later, self.in_turns, l.numbered])

    def _in_all(
        self, name: str, given: Sequence[Bool], reads: Sequence[Read], asked: Theorem
    ) -> Theorem:
        """Comparisons in every micro-step, from those of the one before, and of the first two."""
        l, few, zero = self.l, self.few, IntVal(0)
        m = few + 1 + self.more
        here, first = (l.t, self.line_in(m)), self.line_in(few)
        before = self.before(TRUE, l.u, l.s)
        known, unknown = {"is_known": TRUE}, {"is_known": FALSE, "s": zero}
        amounts = {"wanted": ZERO, "wanted_before": ZERO}
        everybody = {"word": l.any_word, "q": self.everybody, "level": l.mesh.axes}
        facts = [
            *(self.same_in_turns.at(m=x) for x in (m + 1, m, few + 1, few)),
            *(self.right_in_turns.at(m=x) for x in (m + 1, m, few + 1)),
            *(asked.at(t=first, s=before), asked.at(t=self.line_in(few + 1))),
            *(self.one_by_one.at(m=x) for x in (few, m)),
            self.open_later.at(m=few + 1, more=self.more + 1),
            *(self.there_are_some, l.mesh.on_axes, self.before_is[3]),
            *(each.at(**known) for each in self.before_is[1:3]),
            *(each.at(**unknown) for each in self.before_is[:2]),
        ]
        for _, b, state, u in reads:
            at = {"m": m, "b": substitute(b, (l.t, first))}
            wanted, before_it = (substitute(self.wanted_of(s, state, u), here) for s in (l.s, before))
            again = self.equal_again.at(x=l.mesh.axes, **at, **unknown, **amounts)
            facts += [
                again,
                self.equal_again.at(
                    x=l.mesh.axes, wanted=wanted, wanted_before=before_it, **at, **known
                ),
                self.sight_grows.at(**at, **known, **everybody),
            ]
        passes = And(*(self.form_passes(*read) for read in reads))
        return self.k.induct(
            f"{name}_in_every_micro_step",
            self.more,
            substitute(passes, here),
            [*self.place_in(m), *(substitute(each, here) for each in given if each.op != ">=")],
            base=[
                *(asked.at(t=self.line_in(few + 1)), self.same_in_turns.at(m=few + 1)),
                *(self.one_by_one.at(m=few), self.there_are_some),
            ],
            step=facts,
            at=[{"s": before}],
        )
