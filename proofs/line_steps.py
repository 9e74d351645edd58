"""Each line keeps it: what a device knows, the checker's form of it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from proofs import lines
from proofs.comparisons import (
    ACTIVATIONS,
    OLD_MOMENT,
    OLD_WEIGHT,
    VIEW,
    WHOLE,
    Comparisons,
    NeedOf,
)
from proofs.kernel import Bool, Theorem
from proofs.lines import MOVES, Line
from proofs.meaning import CASES, COUNT, literal
from proofs.symbolic_checker import CheckedLanguage, by_place
from proofs.symbolic_schedule import (
    BACKWARD,
    CONTRIBUTION,
    KINDS,
    MOMENT,
    ONE,
    PLACES,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    first_of,
    place_of,
)


class Steps(Comparisons):
    """One step of the induction over lines, a theorem for each kind."""

    def __init__(self, l: CheckedLanguage) -> None:
        super().__init__(l)
        k, t, b, d, j = self.k, l.t, l.b, l.d, l.j
        self.holder = l.owner(j)
        self.here = {"f": first_of(self.holder), "p": place_of(d, self.holder)}
        self.line = [t >= 0, t < l.last]
        # a device and an element where a place is not what its form stands for, if there are any
        self.wrong_at, self.wrong_element, shown_at, self.found_at = k.choose(
            "wrong_at", [t, b, d], j, z3.Not(self.holds(t, b))
        )
        self.wrong, self.wrong_device, shown, self.found = k.choose(
            "wrong", [t, b], d, self.wrong_at(t, b, d)
        )
        self.fine = k.prove(
            "what_is_not_wrong_holds", self.holds(t, b), [z3.Not(self.wrong(t, b))], [shown_at, shown]
        )
        self.placed = self._placed()
        self.sums_of_parts()
        self.sums_of_forms()
        summed = self._summed_up()
        moves = [self._moved(move, summed) for move in MOVES]
        self.steps = (*moves, self._untouched(), self._dropped(), self._backward(), *self._update())

    def known_at(self, t: Any, b: Any) -> Bool:
        """Whether device d knows what it has of element j in a place."""
        form = self.l.not_known(t, b, self.here["f"])
        return self.knows(self.here["f"], self.here["p"], *form)

    @property
    def on_a_device(self) -> list[Bool]:
        """That d is one of the devices."""
        return [self.l.d >= 0, self.l.d < self.l.n]

    def is_right(self, t: Any, b: Any) -> Bool:
        """A device has what the form stands for."""
        l = self.l
        return l.has(t, b, l.d)[l.j] == self.stands_for(t, b, l.d, l.j, l.bound)

    def holds(self, t: Any, b: Any) -> Bool:
        """A device has what the form stands for, if it knows it."""
        return z3.Implies(z3.And(*self.on_a_device, self.known_at(t, b)), self.is_right(t, b))

    def right_in(self, *places: Callable[[Any], Any]) -> list[Bool]:
        """That what is in some places before line t is not wrong."""
        return [z3.Not(self.wrong(self.l.t, place(self.l.t))) for place in places]

    # ------------------------------------------------------------ lines that move
    def _summed_up(self) -> Theorem:
        """The sum over devices of what all know is that of what their forms stand for."""
        l, k, t, b, i, j = self.l, self.k, self.l.t, self.l.b, self.l.i, self.l.j
        known = self.knows_all(l.not_known(t, b, self.here["f"]), self.here["f"])
        given = [z3.Not(self.wrong(t, b)), known]
        up_to = k.induct(
            "sums_are_of_forms",
            i,
            l.everyone(t, b, j, i) == self.rows(t, b, j, l.bound, i),
            [i <= l.n, *given],
            base=[l.everyone.start, self.rows.start.at(s=l.bound)],
            step=[
                l.everyone.next,
                self.rows.next.at(s=l.bound),
                self.rows_are.at(s=l.bound),
                self.fine.at(d=i),
                l.finite,
                l.owned,
            ],
        )
        return k.prove(
            "the_sum_is_of_forms",
            l.everyone(t, b, j, l.n) == self.columns(t, b, j, l.n, l.bound),
            given,
            [up_to.at(i=l.n), self.exchanged.at(i=l.n, s=l.bound), l.some, l.finite],
        )

    def _moved(self, move: Line, summed: Theorem) -> Theorem:
        l, t, first, target = self.l, self.l.t, self.here["f"], self.l.target(self.l.t)
        facts = []
        if move.name in self.known:
            facts += [
                l.owned,
                self.knowledge_at(self.known[move.name], first),
                self.unknown_after[move.name].at(f=first),
                *(self.always_counts.at(b=place(t), f=first) for place in self.places_read(move)),
            ]
        if move.name != "release":  # of which nothing is known
            law = self.law(move).at(s=l.bound)
            facts += [l.runs.at(b=target), l.gone_next.at(b=target), law, l.finite]
            facts += self._read_by(move, summed)
        here = [t >= 0, l.kind(t) == KINDS[move.name]]
        if move.name == "release":
            unknown = z3.Not(self.known_at(t + 1, target))
            return self.k.prove("step_release", unknown, [*here, *self.on_a_device], facts)
        known = [*self.on_a_device, self.known_at(t + 1, target)]
        given = [*here, *(known if move.name in self.known else [])]  # zeros are known everywhere
        right = self.right_in(*self.places_read(move))
        return self.k.prove(f"step_{move.name}", self.is_right(t + 1, target), [*given, *right], facts)

    def places_read(self, move: Line) -> list[Callable[[Any], Any]]:
        """Where a line reads."""
        return [self.l.source if form is self.l.x else self.l.target for form in self.reads(move)]

    def _read_by(self, move: Line, summed: Theorem) -> list[Theorem]:
        """That what a line reads is right."""
        l, found = self.l, {}

        def of(place: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def read(e: Any) -> Any:
                b = place(l.t)
                if e is lines.ANYONE:
                    found[str(b), "all"] = summed.at(b=b)
                    return e
                device = z3.IntVal(e) if isinstance(e, int) else e
                found[str(b), str(device)] = self.fine.at(b=b, d=device)
                return ZERO

            return read

        move.value(l.d, self.holder, of(l.source), of(l.target), ZERO, ZERO, ONE)
        return list(found.values())

    def _untouched(self) -> Theorem:
        l, k, t, b, s, d, j = self.l, self.k, self.l.t, self.l.b, self.l.s, self.l.d, self.l.j
        first = self.here["f"]
        given = [t >= 0, l.untouched(b)]
        coefficients = [l.coefficient_next.at(op=o, f=first) for o in COUNT]
        term = k.prove(
            "a_term_untouched",
            self.term(t + 1, b, s, d, j) == self.term(t, b, s, d, j),
            given,
            [self.term_is, self.term_is.at(t=t + 1), *coefficients],
        )
        same = k.induct(
            "what_is_untouched_stands_for",
            s,
            self.stands_for(t + 1, b, d, j, s) == self.stands_for(t, b, d, j, s),
            given,
            base=[self.stands_for.start, self.stands_for.start.at(t=t + 1)],
            step=[self.stands_for.next, self.stands_for.next.at(t=t + 1), term],
        )
        unknown = [l.unknown_next.at(op=o, f=first) for o in COUNT]
        return k.prove(
            "step_elsewhere",
            self.is_right(t + 1, b),
            [*given, *self.on_a_device, self.known_at(t + 1, b), z3.Not(self.wrong(t, b))],
            [l.runs, self.not_gone.at(t=t + 1), same.at(s=l.bound), l.finite, self.fine, *unknown],
        )

    def _dropped(self) -> Theorem:
        l, t, b = self.l, self.l.t, self.l.b
        return self.k.prove(
            "step_dropped",
            z3.Not(self.known_at(t + 1, b)),
            [t >= 0, l.drops(b), b != l.target(t)],
            [self.not_gone.at(t=t + 1), l.gone_next],
        )

    # --------------------------------------------------------- lines that compute
    def _placed(self) -> Theorem:
        """What devices have by their places: once, or not at all."""
        self.amounts = self.k.reals("at_owner at_first at_others")
        parts: list[Bool] = []
        uses = []
        for d, owner in CASES:
            f, p = literal(first_of, owner).as_long(), literal(place_of, d, owner).as_long()
            part = self.unfolded(d, owner, by_place(lambda q: self.amounts[q], f))
            own = self.views_at(d, owner)[0]
            said = part.goal.arg(0)
            parts.append(z3.Implies(self.amounts[p] == 1, said == own))
            parts.append(z3.Implies(self.amounts[p] == 0, said == 0))
            uses.append(part)
        return self.k.prove("what_is_placed_is_there", z3.And(*parts), (), uses)

    def placed_as(self, amounts: Callable[[int], Any]) -> Theorem:
        """The same of an original value on device d, for some amounts by place."""
        l = self.l
        names = map(str, (*self.amounts, *self.views))
        values = (*map(amounts, range(len(PLACES))), *l.views(l.s, l.d, l.j))
        return self.placed.at(**dict(zip(names, values, strict=True)))

    def _single(
        self,
        name: str,
        b: Any,
        sym: Callable[[Any], Any],
        given: Sequence[Bool],
        there: Theorem,
        of_term: Sequence[Bool] | None = None,
    ) -> Theorem:
        """What a form of one original value at each place, sym(place), stands for after line t."""
        l, t, s, d, j = self.l, self.l.t, self.l.s, self.l.d, self.l.j
        here, at = sym(self.here["p"]), {"t": t + 1, "b": b}
        placed = self.placed_as(lambda q: z3.If(s == sym(q), ONE, ZERO))
        term = self.k.prove(
            f"a_term_of_{name}",
            self.term(t + 1, b, s, d, j) == z3.If(s == here, l.original(here, d, j), ZERO),
            given if of_term is None else of_term,
            [
                self.term_is.at(**at),
                placed,
                *(l.coefficient_next.at(op=o, f=self.here["f"], b=b) for o in COUNT),
            ],
        )
        return self.k.induct(
            f"what_{name}_stands_for",
            s,
            self.stands_for(t + 1, b, d, j, s) == z3.If(here < s, l.original(here, d, j), ZERO),
            given,
            base=[self.stands_for.start.at(**at), there],
            step=[self.stands_for.next.at(**at), term],
        ).at(s=l.bound)

    def state_is_there(self, what: Any, u: Any, given: Sequence[Bool], *facts: Theorem) -> Theorem:
        """A state is one of the original values."""
        l, name = self.l, self.l.state(what, u)
        return self.k.prove(
            f"{str(what).lower()}_{len(self.k.theorems)}_is_there",
            z3.And(name >= 0, name < l.bound, l.what(name) == what, l.time(name) == u),
            given,
            [l.names.at(w=what, u=u, m=z3.IntVal(0)), *facts],
        )

    def _read(
        self,
        need: NeedOf,
        place: Callable[[Any], Any],
        what: Any,
        given: Sequence[Bool],
        compares: Theorem,
    ) -> Theorem:
        """What a line reads is what its comparison says."""
        l, t, now = self.l, self.l.t, self.l.step(self.l.t)
        wanted = {WEIGHT: l.theta(now)[l.j], MOMENT: l.omega(now)[l.j]}
        name = None if what is None else l.state(what, now)
        met = [compares, self.passed(t, place(t), name, now)]
        met += [self.there_are_is.at(**self.here)] if need.op is lines.BACKWARD else []
        if what is None:
            right = l.whole(now, l.j, l.micro_steps)
            stands = self.stands(need, t, place(t), None, now, given, met, None)
            facts = [self.whole.at(u=now), l.numbered, l.finite]
        else:
            right = wanted[what]
            there = self.state_is_there(what, now, [], l.numbered)
            stands = self.stands(need, t, place(t), name, now, given, met, there)
            facts = [there, l.original_is.at(s=name)]
            facts += [l.owned] if need.op is lines.BACKWARD else []
        return self.k.prove(
            f"{need.name}_is_right",
            l.has(t, place(t), l.d)[l.j] == right,
            [*self.on_a_device, *given, *self.right_in(place)],
            [self.fine.at(b=place(t)), stands.at(s=l.bound), *met, *facts],
        )

    def _backward(self) -> Theorem:
        l, k, t, b = self.l, self.k, self.l.t, self.l.b
        now = l.step(t)
        weight = l.state(WEIGHT, now)
        read = ((VIEW, l.source), (ACTIVATIONS, l.second))
        passes = [self.passes(t, place(t), l.f, l.p, weight, now) for need, place in read]
        compares = k.suppose(
            "a_right_backward_compares_equal",
            [t, l.s, l.f, l.p],
            z3.Implies(
                z3.And(l.kind(t) == BACKWARD, l.right(t), self.there_are(l.f, l.p)), z3.And(*passes)
            ),
        ).at(**self.here)
        given = [l.kind(t) == BACKWARD, *self.line]
        rows = [
            k.extend(
                f"{need.name}_are_the_weights",
                self._read(need, place, WEIGHT, [l.kind(t) == BACKWARD, l.right(t)], compares),
                l.j,
            )
            for need, place in read
        ]
        sym = z3.If(l.right(t), l.contribution(t), l.state(WRONG, t))
        names = (
            l.names.at(w=CONTRIBUTION, u=now, m=l.micro(t)),
            l.names.at(w=WRONG, u=t, m=z3.IntVal(0)),
        )
        there = k.prove(
            "what_is_computed_is_there",
            z3.And(
                sym >= 0,
                sym < l.bound,
                l.time(sym) == z3.If(l.right(t), now, t),
                l.what(sym) == z3.If(l.right(t), CONTRIBUTION, WRONG),
                z3.Implies(l.right(t), l.which(sym) == l.micro(t)),
            ),
            self.line,
            [*names, l.numbered],
        )
        after = [l.kind(t) == BACKWARD, t >= 0]
        made = self._single("a_gradient", l.target(t), lambda _: sym, given, there, after)
        return k.prove(
            "step_backward",
            self.is_right(t + 1, b),
            [*given, b == l.target(t), *self.on_a_device, *self.right_in(l.source, l.second)],
            [l.runs, l.gone_next, made, *rows, there, l.original_is.at(s=sym)],
        )

    def _update(self) -> list[Theorem]:
        l, k, t, b = self.l, self.k, self.l.t, self.l.b
        now = l.step(t)
        read = (
            (OLD_WEIGHT, l.source, WEIGHT),
            (OLD_MOMENT, l.second, MOMENT),
            (WHOLE, l.third, None),
        )
        passes = [
            self.passes(t, place(t), l.f, l.p, None if w is None else l.state(w, now), now)
            for need, place, w in read
        ]
        compares = k.suppose(
            "an_update_compares_equal_where_it_is_met",
            [t, l.s, l.f, l.p],
            z3.Implies(z3.And(l.kind(t) == UPDATE, l.met(l.f, l.p, t)), z3.And(*passes)),
        ).at(**self.here)

        def met(p: Any) -> Bool:
            return l.met(self.here["f"], p, t)

        given = [l.kind(t) == UPDATE, met(self.here["p"])]
        right = [self._read(need, place, w, given, compares) for need, place, w in read]
        found = []
        for name, w, wrong, target, one_place in (
            ("a_new_weight", WEIGHT, WRONG, l.target(t), [l.target(t) != l.second(t)]),
            ("a_new_moment", MOMENT, WRONG_MOMENT, l.second(t), []),
        ):
            sym = z3.If(met(self.here["p"]), l.state(w, now + 1), l.state(wrong, t))
            there = k.prove(
                f"{name}_is_there",
                z3.And(
                    sym >= 0,
                    sym < l.bound,
                    l.time(sym) == z3.If(met(self.here["p"]), now + 1, t),
                    l.what(sym) == z3.If(met(self.here["p"]), w, wrong),
                ),
                self.line,
                [
                    l.names.at(w=w, u=now + 1, m=z3.IntVal(0)),
                    l.names.at(w=wrong, u=t, m=z3.IntVal(0)),
                    l.numbered,
                ],
            )
            of = [*self.line, l.kind(t) == UPDATE, *one_place]

            def at_place(q: Any, w: Any = w, wrong: Any = wrong) -> Any:
                return z3.If(met(q), l.state(w, now + 1), l.state(wrong, t))

            made = self._single(name, target, at_place, of, there, [of[0], *of[2:]])
            in_places = self.right_in(l.source, l.second, l.third)
            found.append(
                k.prove(
                    f"step_{name}",
                    self.is_right(t + 1, b),
                    [*of, b == target, *self.on_a_device, *in_places],
                    [
                        l.runs,
                        l.gone_next,
                        made,
                        *right,
                        there,
                        l.original_is.at(s=sym),
                        l.trains.at(u=now),
                    ],
                )
            )
        return found
