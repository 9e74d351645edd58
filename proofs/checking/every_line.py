"""T2: every line leaves right what is right, so that it is after every step."""

from __future__ import annotations

from functools import partial
from typing import Any

from proofs.checking import lines
from proofs.checking.lines import MOVES
from proofs.checking.matching import NEEDED, Where
from proofs.checking.norms import NormLine
from proofs.checking.symbols import (
    BACKWARD,
    CONTRIBUTION,
    COUNT_OF,
    MOMENT,
    NORM,
    NOTHING,
    ONE,
    STARTS,
    TOKENS,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    cases,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import TRUE, And, If, Implies, IntVal, Not, Or

KEPT = tuple(name for name in lines.STARTS if "Zero" not in name)


class EveryLine(NormLine):
    """By induction over the lines of the flat run."""

    @property
    def verdict(self) -> list[Bool]:
        """What says that copies compare equal, if that is not supposed."""
        return []

    # ---------------------------------------------------- lines that compute
    def _backward(self) -> Theorem:
        l, k, t, d, j = self.l, self.k, self.l.t, self.l.d, self.l.j
        now, weight = l.step(t), l.state(WEIGHT, l.step(t))
        read = {"view": l.source(t), "activations": l.second(t)}
        right = [*self.line, l.kind(t) == BACKWARD, *l.where_right(t, d)]
        compares = self.agree(
            "a_right_backward_compares_equal",
            [t],
            lambda at: [*self.line, l.kind(t) == BACKWARD, at.right],
            [(t, b, weight, now) for b in read.values()],
        )
        rows = [
            k.extend(
                f"{name}_is_the_weights",
                self.read(name, t, b, WEIGHT, now, right, compares),
                j,
            )
            for name, b in read.items()
        ]
        self.read_by_backward = rows
        made = l.made_gradient(t, d)
        names = (
            l.names.at(w=CONTRIBUTION, u=now, m=l.micro(t)),
            *([l.names.at(w=WRONG, u=t, m=IntVal(0))] if l.where_right(t, d) else []),
        )
        return self.made_right(
            "step_backward",
            "a_gradient",
            (l.target(t), made),
            [t >= 0, l.kind(t) == BACKWARD],
            self.right_in(*read.values()),
            [l.gradient_alike(t, d), *rows, *names],
        )

    def _update(self) -> list[Theorem]:
        l, t, d, j = self.l, self.l.t, self.l.d, self.l.j
        now = l.step(t)
        read = (
            ("old_weight", l.source(t), WEIGHT),
            ("gradient", l.third(t), None),
        )
        met = [*self.line, l.kind(t) == UPDATE, l.is_met(t, d, j)]
        compares = self.agree(
            "a_met_update_compares_equal",
            [t],
            lambda at: [*self.line, l.kind(t) == UPDATE, at.met],
            [(t, b, self.needed(w, now), now) for _, b, w in read],
        )
        right = [self.read(name, t, b, w, now, met, compares) for name, b, w in read]
        self.read_by_update = dict(zip((WEIGHT, CONTRIBUTION), right, strict=True))
        self.read_by_update |= {at[2]: self._number_read(met, *at) for at in self.numbers_read()}
        right = [*self.read_by_update.values()]
        given = [t >= 0, l.kind(t) == UPDATE]
        found = []
        places = l.target(t), l.second(t)
        states = (WEIGHT, WRONG), (MOMENT, WRONG_MOMENT)
        alike = l.update_alike(t, d)
        named = zip(("weight", "moment"), places, l.made_states(t, d, j), states, alike, strict=True)
        for name, place, made, kinds, computed in named:
            other = [l.target(t) != l.second(t)] if name == "weight" else []
            names = (
                l.names.at(w=w, u=u, m=IntVal(0)) for w, u in zip(kinds, (now + 1, t), strict=True)
            )
            found.append(
                self.made_right(
                    f"step_new_{name}",
                    f"a_new_{name}",
                    (place, made),
                    [*given, *other],
                    self.right_in(*(b(t) for b in l.sources)),
                    [computed, *right, *names],
                    l.trains.at(u=now),
                )
            )
        return found

    def numbers_read(self) -> tuple[tuple[str, Any, Any, Bool], ...]:
        """What an update may read: where, of which kind, and whether it does."""
        l, t = self.l, self.l.t
        return (
            ("moment", l.second(t), MOMENT, l.reads_moment),
            ("norm", l.fourth(t), NORM, l.reads_norm),
            ("count", l.fifth(t), TOKENS, l.reads_count),
        )

    def _number_read(self, met: list[Bool], name: str, place: Any, what: Any, reads: Bool) -> Theorem:
        """What an update reads of a moment, a norm or a count."""
        l, t = self.l, self.l.t
        now = l.step(t)
        compares = self.agree(
            f"a_met_update_compares_the_{name}_equal",
            [t],
            lambda at: [*self.line, l.kind(t) == UPDATE, at.met, reads],
            [(t, place, self.needed(what, now), now)],
        )
        given = met if reads is TRUE else [*met, reads]
        return self.read(name, t, place, what, now, given, compares)

    def _count(self) -> Theorem:
        """What is counted is right."""
        l, t = self.l, self.l.t
        names = l.names.at(w=TOKENS, u=l.step(t), m=l.micro(t))
        made = l.target(t), l.count(t)
        return self.made_right(
            "step_count", "a_count_of_a_line", made, [t >= 0, l.kind(t) == COUNT_OF], [], [names]
        )

    # ------------------------------------------------------------------ the whole run
    def steps(self) -> tuple[Theorem, ...]:
        """What every line leaves right, by kind."""
        moves = [self.moved(move) for move in MOVES]
        computed = (self._backward(), *self._update(), self._norm(), self._count())
        return (*moves, self.untouched(), self.dropped(), *computed)

    def always(self) -> Theorem:
        """What devices know, in any place after any line, is what it stands for."""
        l, k, t, b = self.l, self.k, self.l.t, self.l.b
        read = [place(t) for place in l.sources]
        of_norms, found_misread, at_misread = self.read_by_norms()
        right = [*self.right_in(b, *read), *of_norms]
        step = k.prove("every_line_keeps_it", self.holds(t + 1, b), [*self.line, *right], self.steps())
        begin = self._begins()

        def at(time: Any) -> dict[str, Any]:
            device = self.wrong_device(time, b)
            return {"d": device, "j": self.wrong_element(time, b, device)}

        first, after = IntVal(0), t + 1
        return k.induct(
            "nothing_known_is_wrong",
            t,
            Not(self.wrong(t, b)),
            [t <= l.last],
            base=[
                self.found.at(t=first),
                self.found_at.at(t=first, d=at(first)["d"]),
                begin.at(**at(first)),
            ],
            step=[
                self.found.at(t=after),
                self.found_at.at(t=after, d=at(after)["d"]),
                step.at(**at(after)),
                *found_misread,
            ],
            at=[{}, *({"b": place} for place in read), *at_misread],
        )

    def _begins(self) -> Theorem:
        """What places hold at first is what they stand for."""
        l, k, (_, b, s, d, i, j) = self.l, self.k, self.variables()
        zero = IntVal(0)

        def one_of(word: str) -> Bool:
            return Or(*(l.start(b) == STARTS[name] for name in STARTS if word in name))

        state = If(one_of("Moment"), l.state(MOMENT, 0), l.state(WEIGHT, 0))
        empty = Or(one_of("Zero"), l.start(b) == NOTHING)
        holds = And(Not(empty), Or(Not(one_of("slices")), l.mesh.holds(b, d, j)))
        value = l.original(state, zero, j)
        names = [l.names.at(w=w, u=zero, m=zero) for w in (WEIGHT, MOMENT)]
        shares = k.induct(
            "shares_at_first",
            i,
            self.shares(zero, b, s, d, j, i) == If(And(s == state, i > 0, holds), value, ZERO),
            [*self.on_a_device, i <= l.n],
            base=[self.shares.start.at(t=zero)],
            step=[
                self.shares.next.at(t=zero),
                l.amounts_begin,
                *names,
                l.numbered,
                *(self.times_is.at(multiple=a, multiplied=l.original(s, i, j)) for a in (ZERO, ONE)),
            ],
        )
        stands = k.induct(
            "what_places_stand_for_at_first",
            s,
            self.stands_for(zero, b, d, j, s) == If(And(state < s, holds), value, ZERO),
            self.on_a_device,
            base=[self.stands_for.start.at(t=zero), *names, l.numbered],
            step=[self.stands_for.next.at(t=zero), shares.at(i=l.n)],
        )
        return k.prove(
            "it_holds_at_first",
            Implies(self.knows(zero, b), self.is_right(zero, b)),
            self.on_a_device,
            [
                stands.at(s=l.bound),
                l.begin,
                l.unknowns_begin,
                self.not_gone.at(t=zero),
                l.original_is.at(s=state, d=zero),
                *names,
                l.numbered,
            ],
        )

    def any_right(self, always: Theorem) -> Theorem:
        """What compares equal is right, in any place before any line."""
        l, t, b, u, w = self.l, self.l.t, self.l.b, self.l.u, self.l.w
        kinds = {name: CONTRIBUTION if what is None else what for name, what in NEEDED.items()}
        needed = {kinds[name]: self.right_value(what, u) for name, what in NEEDED.items()}
        self.right_if_equal = found = {name: self.equal_is_right(name) for name in NEEDED}
        equal = (And(w == kinds[name], all_equal) for name, (all_equal, _) in found.items())
        return self.k.prove(
            "what_compares_equal_is_right",
            l.has(t, b, l.d)[l.j] == cases(w, needed, ZERO),
            [t >= 0, t <= l.last, u >= 0, u <= l.last, *self.on_a_device, Or(*equal)],
            [*(right for _, right in found.values()), always],
        )

    def equal_is_right(self, name: str) -> tuple[Bool, Theorem]:
        """That all compares equal of a kind, in any place; and that it is right, if so."""
        of = self.right_where_equal(name)
        return of.all_equal, of.right

    def at_the_end(self, always: Theorem) -> Theorem:
        """After every step, every kept copy that compares equal is the single device's."""
        l, k, u, b, d, j = self.l, self.k, self.l.u, self.l.b, self.l.d, self.l.j
        end, kept = l.ends(u), l.kept
        step = [u >= 0, u < l.last, end >= 0, end <= l.last]
        what = {start: MOMENT if "Moment" in start else WEIGHT for start in KEPT}
        facts, found, single = {}, [], {}

        def copy(start: str, holds: Bool) -> list[Bool]:
            return [kept(b) == STARTS[start], *([holds] if "slices" in start else [])]

        def compared(start: str, at: Where) -> list[Bool]:
            return [*step, *self.verdict, *copy(start, at.holds)]

        for start in KEPT:
            state = l.state(what[start], u + 1)
            facts[start] = self.agree(
                f"copies_kept_as_{start.lower()}_compare_equal",
                [u, b],
                partial(compared, start),
                [(end, b, state, u)],
                start,
            )
        copies = {start: copy(start, l.mesh.holds(b, d, j)) for start in KEPT}
        for start in KEPT:
            name = f"kept_{start.lower()}"
            given = [*step, *self.verdict, *copies[start]]
            right = self.read(name, end, b, what[start], u + 1, given, facts[start], by_a_line=False)
            row = (l.omega if what[start] is MOMENT else l.theta)(u + 1)
            single[STARTS[start]] = row[j]
            found.append(right)
        return k.prove(
            "accepted_schedules_match",
            l.has(end, b, d)[j] == cases(kept(b), single, ZERO),
            [*self.on_a_device, *step, *self.verdict, Or(*(And(*copy) for copy in copies.values()))],
            [*found, always.at(t=end)],
        )
