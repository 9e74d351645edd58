"""T4: comparisons of forms in the steps that the checker runs are those of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.form_needs import WHO
from proofs.checking.levels import NUMBERS
from proofs.checking.matching import Read, contributed
from proofs.checking.representation import FALSE, TRUE, Represented
from proofs.checking.steps_alike import StepsAlike
from proofs.checking.symbols import (
    CONTRIBUTION,
    MOMENT,
    NORM,
    TOKENS,
    WEIGHT,
    ZERO,
    cases,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or
from spec.models import training

HALVES = ("integrity", "consistency")  # of gradients, of states


class AllSteps(StepsAlike):
    """What is supposed of lines is supposed of few."""

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        self.so = self._so()
        self.seen_so = self._seen_so()
        self.equal_so = self._equal_so()

    @property
    def within(self) -> list[Bool]:
        """Before the line at h of step u, or where that step ends."""
        h = self.h
        return [self.l.u >= self.settled, h >= 0, h <= self.length, self.line_at <= self.l.last]

    def _so(self) -> Theorem:
        """What the checker found is so in every later step."""
        l = self.l
        return self.k.prove(
            "what_is_found_is_so_later",
            self.as_before(self.form),
            self.within,
            [
                *(self.not_off, self.one_step),
                self.every_step.at(steps=l.u - self.settled),
            ],
        )

    def _seen_so(self) -> Theorem:
        """And so is what devices see."""
        l, x = self.l, self.l.level
        here, there, earlier = self.line_at, self.run_at, self.earlier(self.l.s, *self.since)

        def sight(t: Any, s: Any) -> Any:
            return l.sight(l.known, t, l.b, s, l.word, l.f, l.p, l.q, x)

        seen = [l.entry(o, l.f[x], l.p[x], l.q[x], l.mesh.size_of(x)) for o in NUMBERS]
        both = [{"t": here}, {"t": there}, {"t": there, "s": earlier}]
        return self.k.induct(
            "what_is_seen_is_so_later",
            x,
            self.as_before(sight),
            self.within,
            base=[self.so, *(l.sight_none.at(**at) for at in both)],
            step=[*(l.sight_next.at(**at) for at in both), l.of_nothing.at(**l.row_as(seen))],
            at=[{"word": l.mesh.put(l.word, x, o)} for o in NUMBERS],
        )

    def _equal_so(self) -> Theorem:
        """What compared equal does so later; of a value that has no earlier one, there is nothing."""
        l, x = self.l, self.l.mesh.x
        here, there, earlier = self.line_at, self.run_at, self.earlier(self.l.s, *self.since)

        def equal(t: Any, s: Any) -> Any:
            return self.equal(l.known, t, l.b, s, l.f, l.p, l.q, self.wanted, x)

        found = If(self.had(l.s, *self.since), equal(there, earlier), self.wanted == 0)
        both = [{"t": here}, {"t": there}, {"t": there, "s": earlier}]
        return self.k.induct(
            "what_compared_equal_does_so_later",
            x,
            Implies(If(l.known, found, equal(there, l.s)), equal(here, l.s)),
            self.within,
            base=[
                self.seen_so.at(word=l.any_word, level=l.mesh.axes),
                *(self.equal_none.at(**at) for at in both),
                l.mesh.on_axes,
            ],
            step=[self.equal_next.at(**at) for at in both],
            at=[{"q": l.mesh.put(l.q, x, IntVal(who))} for who in WHO],
        )

    # ------------------------------------------------------------------- comparisons
    def forms_equal(
        self, name: str, at: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """Forms compare equal in the steps that are run, which is supposed; so they do in all."""
        l, k, t, u = self.l, self.k, self.l.t, self.l.u
        by_line = any(v is t for v in at)
        early = t < self.begins(self.settled) + self.length if by_line else u <= self.settled
        asked = {
            half: super(AllSteps, self).forms_equal(f"{name}_for_{half}", at, [early, *given], some)
            for half in HALVES
            if (some := [each for each in reads if self.half_of(each) == half])
        }
        step, place = (l.step(t), t - self.begins(l.step(t))) if by_line else (u, self.closes)
        since = step - self.settled, self.begins(step) - self.begins(self.settled)
        now, then = {"u": step, "h": place}, {"s": self.earlier(l.s, *since)}
        then |= {"t": self.begins(self.settled) + place} if by_line else {"u": self.settled}
        facts = [self.there_is_one, *l.some, self.follow.at(u=self.settled)]
        if by_line:
            right = self.same_right.at(**now)
            facts += [self.numbers, self.same_lines.at(**now), right, l.numbered]
        else:
            facts += [self.come_later.at(u=step), self.follow.at(u=step)]
        after = [each for each in given if each.op != ">="]  # later lines and steps are no first ones
        later = [
            k.prove(
                f"{name}_{i}_in_later_steps",
                self.form_passes(*read),
                [*after, Not(early)],
                [asked[self.half_of(read)].at(**then), *facts, *self._passes_so(read, now, since)],
            )
            for i, read in enumerate(reads)
        ]
        said = Implies(And(*given), And(*(self.form_passes(*each) for each in reads)))
        return k.prove(name, said, (), [*asked.values(), *later])

    def half_of(self, read: Read) -> str:
        """Which half asks for what is read: what is applied, or what is read and kept."""
        integrity, consistency = HALVES
        of = read[2]
        return integrity if contributed(of) is not None or of.args[0] is NORM else consistency

    def _passes_so(self, read: Read, now: dict[str, Any], since: tuple[Any, Any]) -> list[Theorem]:
        """What a comparison says in a later step."""
        l, (_, b, state, u), zero = self.l, read, IntVal(0)
        wanted = self.wanted_of(l.s, state, u)
        names = [*self.name_is(*since)]
        if contributed(state) is None:
            what, when, _ = state.args
            names += (l.names.at(w=what, u=each, m=zero) for each in (when, when - since[0]))
            names.append(l.name_is_its_own)
        everybody = {"word": l.any_word, "q": self.everybody, "level": l.mesh.axes}
        of = {"x": l.mesh.axes, "b": b, **now}
        return [
            self.equal_so.at(is_known=FALSE, s=zero, wanted=ZERO, **of),
            self.equal_so.at(is_known=TRUE, wanted=wanted, **of),
            self.seen_so.at(is_known=TRUE, b=b, **everybody, **now),
            *names,
        ]

    # ------------------------------------------------------------ what compares unequal
    def any_exact(self, exact: Sequence[Theorem]) -> Theorem:
        """Whatever is compared, w: a state, a step's whole gradient, its norm or its count. So is
        gradient descent by it: E3.
        """
        l, t, b, u, w = self.l, self.l.t, self.l.b, self.l.u, self.l.w
        states = {each: l.state(each, u) for each in (WEIGHT, MOMENT, NORM)}
        compared: dict[Any, Any] = {**states, CONTRIBUTION: None, TOKENS: TOKENS}
        needed = cases(w, {each: self.right_value(each, u) for each in compared}, ZERO)
        asked = {each: self.who_is_odd(l.i, t, b, state, u) for each, state in compared.items()}
        equal = cases(w, {each: equal for each, (equal, _) in asked.items()}, FALSE)
        has, start = l.has(t, b, l.d)[l.j], self.k.reals("started_from")
        descended, alone = (training.sgd(start, of, 1) for of in (has, needed))
        return self.in_made_run.prove(
            "forms_are_right_if_and_only_if_they_compare_equal",
            And((has == needed) == equal, (descended == alone) == equal),
            [
                *self.met_here(),
                l.is_device(l.i),
                Or(*(And(w == each, is_odd) for each, (_, is_odd) in asked.items())),
            ],
            exact,
        )
