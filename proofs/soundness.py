"""T4: whatever the schedule, what the checker accepts matches a single device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from proofs import lines
from proofs.claim import claim
from proofs.comparisons import (
    ACTIVATIONS,
    KEPT,
    OLD_MOMENT,
    OLD_WEIGHT,
    VIEW,
    WHOLE,
    Comparisons,
)
from proofs.kernel import Bool, Kernel, Theorem
from proofs.line_laws import COUNT
from proofs.lines import FIRST, MOVES, NAMED, OWNER, Line
from proofs.sums import closed_form, partition, total
from proofs.symbolic_schedule import (
    BACKWARD,
    CONTRIBUTION,
    FIRSTS,
    INT,
    KINDS,
    MOMENT,
    NOTHING,
    ONE,
    PLACES,
    STARTS,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    by_place,
    Language,
    cases,
    either,
    first_of,
    masked,
    of_one,
    place_of,
)
from spec.operators import OTHER


class Soundness(Comparisons):
    """By induction over lines."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        self.sums_of_parts()
        self.sums_of_forms()
        self.laws = {m.name: self.law(m) for m in MOVES}
        self.counted: dict[str, Theorem] = {}
        self.known: dict[str, Theorem] = {}
        for m in MOVES:
            self.counted[m.name], self.known[m.name] = self.knowledge(m)
        self.unknown_after = {m.name: self._unknown_after(m) for m in MOVES}
        self.always_counts = self._always_counts()

    def _unknown_after(self, move: Line) -> Theorem:
        """What is not known after a line, by the operators."""
        l, t, f = self.l, self.l.t, self.l.f
        x, z = (l.not_known(t, place(t), f) for place in (l.source, l.target))
        after = l.after[move.name, False]
        goal = [
            c == after(o, f, l.factor(t), *x, *z) for o, c in enumerate(l.not_known(t + 1, l.target(t), f))
        ]
        uses = [l.unknown_next.at(op=o, b=l.target(t)) for o in COUNT]
        given = [t >= 0, l.kind(t) == KINDS[move.name]]
        return self.k.prove(f"unknown_after_{move.name}", z3.And(*goal), given, uses)

    def counts_at(self, t: Any, b: Any, f: Any) -> Bool:
        return self.counts(f, *self.l.not_known(t, b, f))

    def untouched(self, b: Any) -> Bool:
        """Whether line t leaves a place as it is."""
        l = self.l
        return z3.Not(z3.Or(b == l.target(l.t), l.writes_second(b), l.drops(b)))

    def knowledge_at(self, theorem: Theorem, f: Any) -> Theorem:
        """A law of what is not known, for the coefficients a line meets."""
        l, t = self.l, self.l.t
        x, z = (l.not_known(t, place(t), f) for place in (l.source, l.target))
        names = map(str, (*l.x, *l.z, l.scaled_by))
        return theorem.at(**dict(zip(names, (*x, *z, l.factor(t)), strict=True)))

    def _always_counts(self) -> Theorem:
        """What is not known counts at least nothing, on all devices, in all places, at all times."""
        l, k, t, b, f = self.l, self.k, self.l.t, self.l.b, self.l.f
        few = z3.Or(f == OWNER, f == FIRST)
        given = [few, self.enough(f)]
        goal = self.counts_at(t, b, f)
        after = self.counts_at(t + 1, b, f)
        steps = []
        for m in MOVES:
            steps.append(
                k.prove(
                    f"counts_after_{m.name}",
                    after,
                    [
                        t >= 0, *given, b == l.target(t), l.kind(t) == KINDS[m.name],
                        *([self.counts_at(t, p(t), f) for p in (l.source, l.target)]),
                    ],
                    [self.knowledge_at(self.counted[m.name], f), self.unknown_after[m.name]],
                )
            )
        now = [l.unknown_next.at(op=o) for o in COUNT]
        unfold = self.counts_is.at(**self.named(l.not_known(t + 1, b, f)))
        steps.append(
            k.prove("counts_where_nothing_is_done", after, [t >= 0, goal, self.untouched(b)], now)
        )
        steps.append(
            k.prove(
                "counts_of_what_is_computed",
                after,
                [
                    t >= 0, *given,
                    z3.Or(z3.And(b == l.target(t), z3.Or(l.kind(t) == BACKWARD, l.kind(t) == UPDATE)), l.writes_second(b),
                          z3.And(b != l.target(t), l.drops(b))),
                ],
                [*now, unfold, l.some],
            )
        )
        start = [l.unknown_start.at(op=o) for o in COUNT]
        return k.induct(
            "what_is_not_known_counts",
            t,
            goal,
            given,
            base=[*start, self.counts_is.at(**self.named(l.not_known(0, b, f))), l.some],
            step=steps,
            at=[{}, {"b": l.source(t)}, {"b": l.target(t)}],
        )

    # ---------------------------------------------------------------- single values
    def placed(self) -> Theorem:
        """What devices have by their places: once, or not at all."""
        k, l = self.k, self.l
        self.amounts = k.reals("at_owner at_first at_others")
        numbers, parts, uses = [], [], []
        for d, owner in lines_cases():
            f, p = (literal(term).as_long() for term in (first_of(z3.IntVal(owner)), place_of(z3.IntVal(d), z3.IntVal(owner))))
            form = by_place(lambda q: self.amounts[q], f)
            part = self.unfolded(d, owner, form)
            own = self.views_at(d, owner)[0]
            for side, found in ((0, parts), (1, numbers)):
                said = part.goal.arg(side)
                found.append(z3.Implies(self.amounts[p] == 1, said == own))
                found.append(z3.Implies(self.amounts[p] == 0, said == 0))
            uses.append(part)
        identity = k.prove("numbers_of_places", z3.simplify(z3.And(*numbers)))
        return k.prove("what_is_placed_is_there", z3.And(*parts), (), [identity, *uses])

    def single(
        self, name: str, t: Any, b: Any, sym: Any, amounts: Callable[[int], Any], given: Sequence[Bool],
        forms: Callable[..., Theorem], there: Sequence[Theorem], uses: Sequence[Theorem] = (),
    ) -> Theorem:
        """A form of one original value on a device stands for that."""
        l, s, d, j = self.l, self.l.s, self.l.d, self.l.j
        f = first_of(l.owner(j))
        placed = self.placed_.at(
            **dict(zip(map(str, (*self.amounts, *self.views)), (*map(amounts, range(3)), *l.views(s, d, j)), strict=True))
        )
        at = dict(t=t, b=b)
        wanted = z3.If(s == sym, l.original(sym, d, j), ZERO)
        term = self.k.prove(
            f"a_term_of_{name}",
            self.term(t, b, s, d, j) == wanted,
            given,
            [self.term_is.at(**at), placed, *(forms(o, f) for o in COUNT), *uses],
        )
        return self.k.induct(
            f"what_{name}_stands_for",
            s,
            self.stands_for(t, b, d, j, s) == z3.If(sym < s, l.original(sym, d, j), ZERO),
            given,
            base=[self.stands_for.start.at(**at), *there],
            step=[self.stands_for.next.at(**at), term],
        ).at(s=l.bound)

    # -------------------------------------------------------------------- induction
    def holds(self, t: Any, b: Any) -> Bool:
        """What a device knows it has."""
        l, d, j = self.l, self.l.d, self.l.j
        return z3.Implies(
            z3.And(*self.known_at(t, b)), l.has(t, b, d)[j] == self.stands_for(t, b, d, j, l.bound)
        )

    def known_at(self, t: Any, b: Any) -> list[Bool]:
        l, d = self.l, self.l.d
        owner = l.owner(l.j)
        f = first_of(owner)
        return [d >= 0, d < l.n, self.knows(f, place_of(d, owner), *l.not_known(t, b, f))]

    def finish(self) -> tuple[Theorem, ...]:
        l, k = self.l, self.k
        t, b, s, d, i, j, u = l.t, l.b, l.s, l.d, l.i, l.j, l.u
        owner = l.owner(j)
        first, place = first_of(owner), place_of(d, owner)
        source, second, third, target, now = (x(t) for x in (l.source, l.second, l.third, l.target, l.step))
        self.placed_ = self.placed()
        wrong_at, wrong_j, shown_at, found_at = k.choose("wrong_at", [t, b, d], j, z3.Not(self.holds(t, b)))
        wrong, wrong_d, shown, found = k.choose("wrong", [t, b], d, wrong_at(t, b, d))
        fine = k.prove("what_is_not_wrong_is_so", self.holds(t, b), [z3.Not(wrong(t, b))], [shown_at, shown])
        line = [t >= 0, t < l.last]

        # ------------------------------------------------------------- comparisons
        f, p = l.f, l.p
        exists = z3.And(
            self.enough(f),
            either(f, {g: cases(p, {PLACES[q]: self.exists(g, q) for q in (*NAMED[g], OTHER)}, z3.BoolVal(False)) for g in FIRSTS}),
        )
        weight, moment = (l.state(w, now) for w in (WEIGHT, MOMENT))
        backward = k.suppose(
            "a_right_backward_compares_equal",
            [t, s, f, p],
            z3.Implies(
                z3.And(l.kind(t) == BACKWARD, l.right(t), exists),
                z3.And(*(self.passes(need, t, place_, f, p, weight, now) for need, place_ in ((VIEW, source), (ACTIVATIONS, second)))),
            ),
        )
        update = k.suppose(
            "a_met_update_compares_equal",
            [t, s, f, p],
            z3.Implies(
                z3.And(l.kind(t) == UPDATE, l.met(f, p, t)),
                z3.And(
                    self.passes(OLD_WEIGHT, t, source, f, p, weight, now),
                    self.passes(OLD_MOMENT, t, second, f, p, moment, now),
                    self.passes(WHOLE, t, third, f, p, None, now),
                ),
            ),
        )
        named = l.names.at(u=now, m=z3.IntVal(0))
        names = {w: l.names.at(u=now, m=z3.IntVal(0), w=w) for w in (WEIGHT, MOMENT)}
        here = dict(f=first, p=place)
        back = [*line, l.kind(t) == BACKWARD, l.right(t)]
        up = [*line, l.kind(t) == UPDATE, l.met(first, place, t)]
        there = {w: k.prove(f"a_step_has_its_{name}", z3.And(l.state(w, now) >= 0, l.what(l.state(w, now)) == w, l.time(l.state(w, now)) == now), [], [names[w], l.numbered])
                 for w, name in ((WEIGHT, "weight"), (MOMENT, "moment"))}
        stands = {
            need.name: self.stands(need, t, b_, sym, now, given, [hyp.at(**here)], there.get(w)).at(s=l.bound)
            for need, b_, sym, given, hyp, w in (
                (VIEW, source, weight, back, backward, WEIGHT),
                (ACTIVATIONS, second, weight, back, backward, WEIGHT),
                (OLD_WEIGHT, source, weight, up, update, WEIGHT),
                (OLD_MOMENT, second, moment, up, update, MOMENT),
                (WHOLE, third, None, up, update, None),
            )
        }
        # -------------------------------------------------------- what is not there
        none = lines.one()
        nothing = z3.And(*(c == amount for c, amount in zip(l.not_known(t, b, first), none, strict=True)))
        released = [
            l.after_is["release", False].at(
                op=o, f=first, scaled_by=l.factor(t),
                **dict(zip(map(str, (*l.x, *l.z)), (*l.not_known(t, source, first), *l.not_known(t, target, first)), strict=True)),
            )
            for o in COUNT
        ]
        not_there = k.induct(
            "what_is_gone_is_not_known", t, z3.Implies(l.gone(b, t), nothing),
            base=[l.gone_start, *(l.unknown_start.at(op=o, f=first) for o in COUNT)],
            step=[l.gone_next, *(l.unknown_next.at(op=o, f=first) for o in COUNT), *released],
        )
        known_of = self.knows_is.at(**here, **self.named(l.not_known(t, b, first)))
        there_if_known = k.prove(
            "what_is_known_is_there", z3.Not(l.gone(b, t)), [t >= 0, *self.known_at(t, b)[2:]], [not_there, known_of]
        )
        # --------------------------------------------------------- lines that move
        ih = [z3.Not(wrong(t, x)) for x in (source, target)]
        few = self.knows_all(l.not_known(t, b, first), first)
        sums = k.induct(
            "sums_are_of_forms", i, l.everyone(t, b, j, i) == self.rows(t, b, j, l.bound, i),
            [i <= l.n, z3.Not(wrong(t, b)), few],
            base=[l.everyone.start, self.rows.start.at(s=l.bound)],
            step=[l.everyone.next, self.rows.next.at(s=l.bound), self.rows_are.at(s=l.bound), fine.at(d=i), l.finite, l.owned],
        )
        sums_of = k.prove(
            "the_sum_is_of_forms", l.everyone(t, b, j, l.n) == self.columns(t, b, j, l.n, l.bound),
            [z3.Not(wrong(t, b)), few],
            [sums.at(i=l.n), self.exchanged.at(i=l.n, s=l.bound), l.some, l.finite],
        )
        steps = []
        for m in MOVES:
            knows = self.knowledge_at(self.known[m.name], first)
            counts = [self.always_counts.at(b=b_, f=first) for b_ in (source, target)]
            facts = [knows, self.unknown_after[m.name].at(f=first), *counts, l.owned]
            if m.name != "release":
                facts += [l.runs.at(b=target), l.gone_next.at(b=target), self.laws[m.name].at(s=l.bound), l.finite]
                read = set()
                m.value(d, owner, lambda e: read.add(("x", e if isinstance(e, int) or e is lines.ANYONE else str(e))) or (e if e is lines.ANYONE else ZERO), lambda e: read.add(("z", str(e))) or ZERO, ZERO, ZERO, ONE)
                for which, e in sorted(read, key=str):
                    b_ = source if which == "x" else target
                    if e is lines.ANYONE:
                        facts.append(sums_of.at(b=b_))
                    else:
                        facts.append(fine.at(b=b_, d=z3.IntVal(e) if isinstance(e, int) else {str(d): d, str(owner): owner}[e]))
            step = k.prove(
                f"step_{m.name}", l.has(t + 1, target, d)[j] == self.stands_for(t + 1, target, d, j, l.bound),
                [t >= 0, l.kind(t) == KINDS[m.name], *self.known_at(t + 1, target), *ih], facts,
            )
            steps.append(step)
        self.__dict__.update(locals())
        return ()


def lines_cases():
    from proofs.line_laws import CASES
    return CASES


def literal(term: Any) -> Any:
    return z3.simplify(term)
