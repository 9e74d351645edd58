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
    StartSort,
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
        self.laws = {m.name: self.law(m) for m in MOVES if m.name != "release"}
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
        there = {w: k.prove(f"a_step_has_its_{name}", z3.And(l.state(w, now) >= 0, l.state(w, now) < l.bound, l.what(l.state(w, now)) == w, l.time(l.state(w, now)) == now), [], [names[w], l.numbered])
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

        # ------------------------------------------------------ lines that compute
        value = l.has(t + 1, b, d)[j] == self.stands_for(t + 1, b, d, j, l.bound)
        known_then = self.known_at(t + 1, b)
        present = there_if_known.at(t=t + 1)
        same = [l.coefficient_next.at(op=o, f=first) for o in COUNT]
        same_unknown = [l.unknown_next.at(op=o, f=first) for o in COUNT]
        term = k.prove(
            "a_term_untouched", self.term(t + 1, b, s, d, j) == self.term(t, b, s, d, j),
            [t >= 0, self.untouched(b)], [self.term_is, self.term_is.at(t=t + 1), *same],
        )
        untouched = k.induct(
            "what_is_untouched_stands_for", s, self.stands_for(t + 1, b, d, j, s) == self.stands_for(t, b, d, j, s),
            [t >= 0, self.untouched(b)],
            base=[self.stands_for.start, self.stands_for.start.at(t=t + 1)],
            step=[self.stands_for.next, self.stands_for.next.at(t=t + 1), term],
        )
        steps.append(
            k.prove(
                "step_elsewhere", value, [t >= 0, *known_then, z3.Not(wrong(t, b)), self.untouched(b)],
                [l.runs, present, untouched.at(s=l.bound), l.finite, fine, *same_unknown],
            )
        )
        steps.append(
            k.prove(
                "step_dropped", z3.Not(z3.And(*known_then)), [t >= 0, l.drops(b), b != target],
                [present, l.gone_next],
            )
        )
        wrong_name = l.names.at(u=t, m=z3.IntVal(0))
        computed = z3.If(l.right(t), l.contribution(t), l.state(WRONG, t))
        contribution = l.names.at(w=CONTRIBUTION, u=now, m=l.micro(t))
        is_named = k.prove(
            "what_is_computed_has_a_name",
            z3.And(computed >= 0, computed < l.bound, l.time(computed) == z3.If(l.right(t), now, t),
                   l.what(computed) == z3.If(l.right(t), CONTRIBUTION, WRONG), z3.Implies(l.right(t), l.which(computed) == l.micro(t))),
            line, [contribution, wrong_name.at(w=WRONG), l.numbered],
        )
        at_back = [*line, l.kind(t) == BACKWARD]
        made = self.single(
            "a_gradient", t + 1, target, computed,
            lambda _: z3.If(s == computed, ONE, ZERO), at_back,
            lambda o, f_: l.coefficient_next.at(op=o, f=f_, b=target), [is_named],
        )
        rows = []
        for name, b_ in (("view", source), ("activations", second)):
            read = k.prove(
                f"{name}_is_the_weight", l.has(t, b_, d)[j] == l.theta(now)[j],
                [d >= 0, d < l.n, *back, z3.Not(wrong(t, b_))],
                [fine.at(b=b_), stands[name], backward.at(**here), l.original_is.at(s=weight), there[WEIGHT], l.owned],
            )
            rows.append(k.extend(f"{name}_are_the_weights", read, j))
        steps.append(
            k.prove(
                "step_backward", value,
                [*at_back, b == target, *known_then[:2], *(z3.Not(wrong(t, x)) for x in (source, second))],
                [l.runs, l.gone_next, made, *rows, is_named, l.original_is.at(s=computed)],
            )
        )
        met = l.met(first, place, t)
        read = [
            k.prove(
                f"the_update_reads_the_{name}", l.has(t, b_, d)[j] == right,
                [d >= 0, d < l.n, *up, z3.Not(wrong(t, b_))],
                [fine.at(b=b_), stands[name], update.at(**here), *more],
            )
            for name, b_, right, more in (
                ("weight", source, l.theta(now)[j], [l.original_is.at(s=weight), there[WEIGHT]]),
                ("moment", second, l.omega(now)[j], [l.original_is.at(s=moment), there[MOMENT]]),
                ("gradient", third, l.whole(now, j, l.micro_steps), [self.whole.at(u=now), l.numbered, l.finite]),
            )
        ]
        for name, w, wrong_w, b_, more in (
            ("new_weight", WEIGHT, WRONG, target, [target != second]),
            ("new_moment", MOMENT, WRONG_MOMENT, second, []),
        ):
            new = z3.If(met, l.state(w, now + 1), l.state(wrong_w, t))
            new_is = k.prove(
                f"a_{name}_has_a_name",
                z3.And(new >= 0, new < l.bound, l.time(new) == z3.If(met, now + 1, t), l.what(new) == z3.If(met, w, wrong_w)),
                line, [l.names.at(w=w, u=now + 1, m=z3.IntVal(0)), wrong_name.at(w=wrong_w), l.numbered],
            )
            given = [*line, l.kind(t) == UPDATE, *more]
            made = self.single(
                f"a_{name}", t + 1, b_, new,
                lambda q, w=w, v=wrong_w: z3.If(s == z3.If(l.met(first, q, t), l.state(w, now + 1), l.state(v, t)), ONE, ZERO),
                given, lambda o, f_, b_=b_: l.coefficient_next.at(op=o, f=f_, b=b_), [new_is],
            )
            steps.append(
                k.prove(
                    f"step_{name}", value,
                    [*given, b == b_, *known_then[:2], *(z3.Not(wrong(t, x)) for x in (source, second, third))],
                    [l.runs, l.gone_next, made, *read, new_is, l.original_is.at(s=new), l.trains.at(u=now)],
                )
            )
        # ---------------------------------------------------------------- all lines
        moments = z3.Or(l.start(b) == STARTS["Moments"], l.start(b) == STARTS["Moment_slices"])
        state = z3.If(moments, l.state(MOMENT, 0), l.state(WEIGHT, 0))
        sliced = z3.Or(*(l.start(b) == STARTS[x] for x in STARTS if "slices" in x))
        zeros = z3.Or(*(l.start(b) == STARTS[x] for x in STARTS if "Zero" in x))
        at_first = k.prove(
            "a_state_has_a_name_at_first",
            z3.And(state >= 0, state < l.bound, l.time(state) == 0, l.what(state) == z3.If(moments, MOMENT, WEIGHT)),
            [], [*(l.names.at(w=w, u=z3.IntVal(0), m=z3.IntVal(0)) for w in (WEIGHT, MOMENT)), l.numbered],
        )

        def begins(q: int) -> Any:
            there_ = z3.And(s == state, z3.Not(zeros), l.start(b) != NOTHING, z3.BoolVal(q == 0) if False else z3.Or(z3.Not(sliced), z3.BoolVal(q == 0)))
            return z3.If(there_, ONE, ZERO)

        none_of_it = z3.Or(zeros, l.start(b) == NOTHING, z3.And(sliced, place != 0))
        views = l.views(s, d, j)
        placed = self.placed_.at(
            **dict(zip(map(str, (*self.amounts, *self.views)), (*map(begins, range(3)), *views), strict=True))
        )
        zero = z3.IntVal(0)
        term0 = k.prove(
            "a_term_at_first",
            self.term(0, b, s, d, j) == z3.If(z3.And(s == state, z3.Not(none_of_it)), l.original(state, d, j), ZERO),
            [], [self.term_is.at(t=zero), placed, *(l.coefficient_start.at(op=o, f=first) for o in COUNT)],
        )
        formed = k.induct(
            "what_forms_stand_for_at_first", s,
            self.stands_for(0, b, d, j, s) == z3.If(z3.And(state < s, z3.Not(none_of_it)), l.original(state, d, j), ZERO),
            base=[self.stands_for.start.at(t=zero), at_first],
            step=[self.stands_for.next.at(t=zero), term0],
        )
        begin = k.prove(
            "it_holds_at_first", self.holds(zero, b), [],
            [formed.at(s=l.bound), l.begin, at_first, l.original_is.at(s=state), l.gone_start, l.finite,
             *(l.unknown_start.at(op=o, f=first) for o in COUNT),
             self.knows_is.at(**here, **self.named(l.not_known(zero, b, first)))],
        )
        places = (b, source, second, third, target)
        all_ih = [z3.Not(wrong(t, x)) for x in places]
        keeps = k.prove("every_line_keeps_it", self.holds(t + 1, b), [*line, *all_ih], steps)
        atd = wrong_d(t + 1, b)
        always = k.induct(
            "nothing_known_is_wrong", t, z3.Not(wrong(t, b)), [t <= l.last],
            base=[found.at(t=0), found_at.at(t=0, d=wrong_d(0, b)), begin.at(d=wrong_d(0, b), j=wrong_j(0, b, wrong_d(0, b)))],
            step=[found.at(t=t + 1), found_at.at(t=t + 1, d=atd), keeps.at(d=atd, j=wrong_j(t + 1, b, atd))],
            at=[{}, *({"b": x} for x in places[1:])],
        )
        # ------------------------------------------------------- the end of each step
        ends, kept = k.function("ends", INT, INT), k.function("kept_as", INT, StartSort)
        end = ends(u)
        step_ = [u >= 0, u < l.last, end >= 0, end <= l.last]
        agreed = k.suppose(
            "what_is_kept_compares_equal",
            [u, b, s, f, p],
            z3.Implies(
                z3.And(*step_, exists),
                z3.And(*(
                    z3.Implies(
                        z3.And(kept(b) == STARTS[start_], *([p == PLACES[OWNER]] if need.kind == "slices" else [])),
                        self.passes(need, end, b, f, p, l.state(MOMENT if "Moment" in start_ else WEIGHT, u + 1), u),
                    )
                    for start_, need in KEPT.items()
                )),
            ),
        )
        done, single, kept_so = [], {}, []
        for start_, need in KEPT.items():
            w = MOMENT if "Moment" in start_ else WEIGHT
            name = l.state(w, u + 1)
            of_it = k.prove(
                f"the_next_of_{start_.lower()}",
                z3.And(name >= 0, name < l.bound, l.what(name) == w, l.time(name) == u + 1), step_[:2],
                [l.names.at(w=w, u=u + 1, m=zero)],
            )
            so = [kept(b) == STARTS[start_], *([d == owner] if need.kind == "slices" else [])]
            said = self.stands(need, end, b, name, u, [*step_, *so], [agreed.at(**here)], of_it)
            right = (l.omega if w is MOMENT else l.theta)(u + 1)[j]
            single[STARTS[start_]] = right
            kept_so.append(z3.And(*so) if len(so) > 1 else so[0])
            done.append(
                k.prove(
                    f"accepted_{start_.lower()}_match", l.has(end, b, d)[j] == right,
                    [d >= 0, d < l.n, *step_, *so],
                    [said.at(s=l.bound), fine.at(t=end), always.at(t=end), agreed.at(**here), of_it, l.original_is.at(s=name), l.owned],
                )
            )
        match = k.prove(
            "accepted_schedules_match", l.has(end, b, d)[j] == cases(kept(b), single, ZERO),
            [d >= 0, d < l.n, *step_, z3.Or(*kept_so)], done,
        )
        return (match,)


def lines_cases():
    from proofs.line_laws import CASES
    return CASES


def literal(term: Any) -> Any:
    return z3.simplify(term)


@claim("T4")
def what_is_accepted_matches(k: Kernel) -> tuple[Theorem, ...]:
    """Whatever the lines of a schedule, if the checker's comparisons come out equal, every kept copy matches.

    (Claim T4)
    """
    return Soundness(Language(k)).finish()
