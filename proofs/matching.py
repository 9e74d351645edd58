"""T2: on any mesh, whatever the schedule, what compares equal is what a single device has, and only that.

Compared are amounts: of a state that is needed there is one, of the other states none; of a whole
gradient there is each device's contribution once; of all other values there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Theorem
from proofs.superposition import Superposition
from proofs.sums import partition, total
from proofs.symbolic_schedule import (
    BACKWARD,
    CONTRIBUTION,
    INT,
    MOMENT,
    NOTHING,
    ONE,
    STARTS,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    Language,
    StartSort,
    cases,
)

KEPT = tuple(name for name in lines.STARTS if "Zero" not in name)


@dataclass(frozen=True)
class Where:
    """Where a comparison is made: where line t is right, or met, or place b has the element."""

    right: Bool
    met: Bool
    holds: Bool


Read = tuple[Any, Any, Any, Any]  # a line, a place; the state that is needed, or None; the step


class Matching(Superposition):
    """What comparisons of amounts say of values."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        k, t, b, s, d, i, j, u, m = self.k, *self._names(), l.u, l.m
        self.seen = total(k, "seen", [t, b, s, d, j], i, l.amount(t, b, s, d, i, j))
        seen, amount = self.seen(t, b, s, d, j, l.n), l.amount(t, b, s, d, i, j)
        here = z3.And(i >= 0, i < l.n)
        params = [t, b, d, j, s, i]
        known = self.knows(t, b)
        none = z3.If(self.is_state(s), seen == 0, amount == 0)
        self.equals_state, self.equals_state_is = k.define(
            "equals_state",
            [*params, m],
            z3.And(known, z3.Implies(here, z3.If(s == m, seen == 1, none))),
        )
        self.equals_gradient, self.equals_gradient_is = k.define(
            "equals_gradient",
            [*params, u],
            z3.And(known, z3.Implies(here, z3.If(l.is_of_step(s, u), amount == 1, none))),
        )
        self.whole = self._whole()
        self.shares_of_states = self._shares_of_states()

    def is_state(self, s: Any) -> Bool:
        """Whether an original value is a state: all devices have the same."""
        return z3.Or(self.l.what(s) == WEIGHT, self.l.what(s) == MOMENT)

    def agree(
        self, name: str, at: Sequence[Any], when: Callable[[Where], Sequence[Bool]], reads: Sequence[Read]
    ) -> Theorem:
        """The checker's comparisons: of what is read, on the devices where it says that it is right.

        `at`: the variables that it is about, besides original values and devices.
        """
        l = self.l
        where = Where(l.is_right(l.t, l.d), l.is_met(l.t, l.d, l.j), l.mesh.holds(l.b, l.d, l.j))
        said = z3.Implies(
            z3.And(*when(where), *self.on_a_device), z3.And(*(self.compares(*each) for each in reads))
        )
        return self.k.suppose(name, [*at, l.s, l.d, l.i, l.j], said)

    # ------------------------------------------------------- what comes out equal
    def _shares_of_states(self) -> Theorem:
        """Of a state, a device has its value as often as it is seen."""
        l, k, t, b, s, d, i, j = self.l, self.k, *self._names()
        value = l.original(s, d, j)
        same = k.prove(
            "states_are_alike",
            l.original(s, i, j) == value,
            [self.is_state(s)],
            [l.original_is, l.original_is.at(d=i)],
        )
        return k.induct(
            "shares_of_a_state",
            i,
            self.shares(t, b, s, d, j, i) == self.times(self.seen(t, b, s, d, j, i), value),
            [self.is_state(s)],
            base=[
                self.shares.start,
                self.seen.start,
                self.times_is.at(multiple=ZERO, multiplied=value),
            ],
            step=[
                self.shares.next,
                self.seen.next,
                same,
                self.adds.at(
                    multiple=self.seen(t, b, s, d, j, i),
                    further=l.amount(t, b, s, d, i, j),
                    multiplied=value,
                ),
            ],
        )

    def _whole(self) -> Theorem:
        """Contributions to a step's gradient, one an original value, are those of all micro-steps."""
        l, k, s, u, m, i, j = self.l, self.k, self.l.s, self.l.u, self.l.m, self.l.i, self.l.j
        which = l.which(s)
        counted = z3.And(which >= 0, which < l.micro_steps)
        slot, slot_is = k.define("slot", [s], z3.If(counted, which, z3.IntVal(0)))
        placed = k.prove(
            "each_has_a_micro_step",
            z3.And(slot(s) >= 0, slot(s) < l.micro_steps),
            uses=[slot_is, l.numbered],
        )
        here = z3.If(l.is_of_step(s, u), l.all(s, j, l.n), ZERO)
        share, parts, self.of_step, one = partition(
            k, "contributions", m, s, slot, placed, l.micro_steps, here, [u, j]
        )
        sym = l.named(CONTRIBUTION, u, m)
        given = [u >= 0, u <= l.last, m >= 0, m < l.micro_steps]
        names = l.names.at(w=CONTRIBUTION)
        same = k.induct(
            "a_contribution_of_all_devices",
            i,
            l.all(sym, j, i) == l.batch(u, m, j, i),
            given,
            base=[l.all.start.at(s=sym), l.batch.start],
            step=[l.all.next.at(s=sym), l.batch.next, l.original_is.at(s=sym, d=i), names],
        )
        each = k.induct(
            "a_micro_steps_contribution",
            s,
            share(u, j, m, s) == z3.If(sym < s, l.batch(u, m, j, l.n), ZERO),
            given,
            base=[share.start, names],
            step=[share.next, same.at(i=l.n), slot_is, l.name_is_its_own, names, self._inside()],
        )
        every = k.induct(
            "contributions_of_micro_steps",
            m,
            parts(u, j, l.bound, m) == l.whole(u, j, m),
            [u >= 0, u <= l.last, m <= l.micro_steps],
            base=[parts.start.at(s=l.bound), l.whole.start],
            step=[parts.next.at(s=l.bound), l.whole.next, each.at(s=l.bound), names],
        )
        return k.prove(
            "contributions_are_the_whole_gradient",
            self.of_step(u, j, l.bound) == l.whole(u, j, l.micro_steps),
            [u >= 0, u <= l.last],
            [one.at(s=l.bound), every.at(m=l.micro_steps), self.finite, l.numbered],
        )

    def compares(self, t: Any, b: Any, state: Any, u: Any) -> Bool:
        """What is compared of an original value, and nothing that is not known: with a state or a gradient."""
        l = self.l
        if state is None:
            return self.equals_gradient(t, b, l.d, l.j, l.s, l.i, u)
        return self.equals_state(t, b, l.d, l.j, l.s, l.i, state)

    def compared(self, t: Any, b: Any, state: Any, u: Any) -> Theorem:
        """What that is."""
        if state is None:
            return self.equals_gradient_is.at(t=t, b=b, u=u)
        return self.equals_state_is.at(t=t, b=b, m=state)

    def stands(
        self, name: str, t: Any, b: Any, state: Any, u: Any, given: Sequence[Bool], uses: Sequence[Theorem]
    ) -> Theorem:
        """What compares equal stands for what is needed; `uses` say that it does, and of the names."""
        l, k, s, d, i, j = self.l, self.k, self.l.s, self.l.d, self.l.i, self.l.j
        at = {"t": t, "b": b}
        met = [*uses, self.compared(t, b, state, u)]
        given = [*self.on_a_device, *given]
        of_step = z3.BoolVal(False) if state is not None else l.is_of_step(s, u)
        value = self.l.original(s, i, j)
        shares = self.shares(t, b, s, d, j, i)
        others = k.induct(
            f"shares_of_others_in_{name}",
            i,
            shares == z3.If(of_step, l.all(s, j, i), ZERO),
            [*given, z3.Not(self.is_state(s)), i <= l.n],
            base=[self.shares.start.at(**at), l.all.start],
            step=[
                self.shares.next.at(**at),
                l.all.next,
                *met,
                *(self.times_is.at(multiple=a, multiplied=value) for a in (ZERO, ONE)),
            ],
        )
        own = l.original(s, d, j)
        wanted = z3.BoolVal(False) if state is None else s == state
        row = k.prove(
            f"shares_in_{name}",
            self.shares(t, b, s, d, j, l.n)
            == z3.If(wanted, own, z3.If(of_step, l.all(s, j, l.n), ZERO)),
            given,
            [
                others.at(i=l.n),
                self.shares_of_states.at(i=l.n, **at),
                *(each.at(i=z3.IntVal(0)) for each in met),
                *(self.times_is.at(multiple=a, multiplied=own) for a in (ZERO, ONE)),
                self._inside(),
            ],
        )
        if state is None:
            right = self.of_step(u, j, s)
            base, step = [self.of_step.start.at(u=u)], [self.of_step.next.at(u=u)]
        else:
            right = z3.If(z3.And(state < s), l.original(state, d, j), ZERO)
            base, step = [], []
        return k.induct(
            f"what_{name}_stands_for",
            s,
            self.stands_for(t, b, d, j, s) == right,
            [*given, *([] if state is None else [state >= 0])],
            base=[self.stands_for.start.at(**at), *base],
            step=[self.stands_for.next.at(**at), row, *step],
        ).at(s=l.bound)

    def read(
        self,
        name: str,
        t: Any,
        b: Any,
        what: Any,
        u: Any,
        given: Sequence[Bool],
        compares: Theorem,
        *facts: Theorem,
    ) -> Theorem:
        """What compares equal is right: the weight or the moment of a step, or its whole gradient."""
        l, j = self.l, self.l.j
        state = None if what is None else l.state(what, u)
        right = {WEIGHT: l.theta(u)[j], MOMENT: l.omega(u)[j]}.get(
            what, l.whole(u, j, l.micro_steps)
        )
        names = [] if what is None else [l.names.at(w=what, u=u, m=z3.IntVal(0))]
        about = [*names, l.numbered, *facts]
        stands = self.stands(name, t, b, state, u, given, [compares, *about])
        value = [self.whole.at(u=u)] if what is None else [l.original_is.at(s=state)]
        return self.k.prove(
            f"{name}_is_right",
            l.has(t, b, l.d)[j] == right,
            [*self.on_a_device, *given, *[z3.Not(self.wrong(t, b))]],
            [
                self.fine.at(t=t, b=b),
                stands,
                compares.at(s=z3.IntVal(0), i=z3.IntVal(0)),
                self.compared(t, b, state, u).at(s=z3.IntVal(0), i=z3.IntVal(0)),
                self.finite,
                *about,
                *value,
            ],
        )

    # ------------------------------------------------------------------ the whole run
    def always(self) -> Theorem:
        """What devices know, in any place after any line, is what it stands for."""
        l, k, t, b = self.l, self.k, self.l.t, self.l.b
        read = [place(t) for place in (l.source, l.second, l.third, l.target)]
        right = self.right_in(b, *read)
        step = k.prove("every_line_keeps_it", self.holds(t + 1, b), [*self.line, *right], self.steps())
        begin = self._begins()

        def at(time: Any) -> dict[str, Any]:
            device = self.wrong_device(time, b)
            return {"d": device, "j": self.wrong_element(time, b, device)}

        first, after = z3.IntVal(0), t + 1
        return k.induct(
            "nothing_known_is_wrong",
            t,
            z3.Not(self.wrong(t, b)),
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
            ],
            at=[{}, *({"b": place} for place in read)],
        )

    def _begins(self) -> Theorem:
        """What places hold at first is what they stand for."""
        l, k, t, b, s, d, i, j = self.l, self.k, *self._names()
        zero = z3.IntVal(0)

        def one_of(word: str) -> Bool:
            return z3.Or(*(l.start(b) == STARTS[name] for name in STARTS if word in name))

        state = z3.If(one_of("Moment"), l.state(MOMENT, 0), l.state(WEIGHT, 0))
        empty = z3.Or(one_of("Zero"), l.start(b) == NOTHING)
        holds = z3.And(z3.Not(empty), z3.Or(z3.Not(one_of("slices")), l.mesh.holds(b, d, j)))
        value = l.original(state, d, j)
        shares = k.induct(
            "shares_at_first",
            i,
            self.shares(zero, b, s, d, j, i) == z3.If(z3.And(s == state, d < i, holds), value, ZERO),
            self.on_a_device,
            base=[self.shares.start.at(t=zero)],
            step=[
                self.shares.next.at(t=zero),
                l.amounts_begin,
                *(self.times_is.at(multiple=a, multiplied=l.original(s, i, j)) for a in (ZERO, ONE)),
            ],
        )
        names = [l.names.at(w=w, u=zero, m=zero) for w in (WEIGHT, MOMENT)]
        stands = k.induct(
            "what_places_stand_for_at_first",
            s,
            self.stands_for(zero, b, d, j, s) == z3.If(z3.And(state < s, holds), value, ZERO),
            self.on_a_device,
            base=[self.stands_for.start.at(t=zero), *names, l.numbered],
            step=[self.stands_for.next.at(t=zero), shares.at(i=l.n)],
        )
        return k.prove(
            "it_holds_at_first",
            z3.Implies(self.knows(zero, b), self.is_right(zero, b)),
            self.on_a_device,
            [
                stands.at(s=l.bound),
                self.finite,
                l.begin,
                l.unknowns_begin,
                self.not_gone.at(t=zero),
                l.original_is.at(s=state),
                *names,
                l.numbered,
            ],
        )

    def at_the_end(self, always: Theorem) -> Theorem:
        """After every step, every kept copy that compares equal is the single device's."""
        l, k, u, b, d, j = self.l, self.k, self.l.u, self.l.b, self.l.d, self.l.j
        ends, kept = k.function("ends", INT, INT), k.function("kept_as", INT, StartSort)
        end = ends(u)
        step = [u >= 0, u < l.last, end >= 0, end <= l.last]
        what = {start: MOMENT if "Moment" in start else WEIGHT for start in KEPT}
        facts, found, single = {}, [], {}

        def copy(start: str, holds: Bool) -> list[Bool]:
            return [kept(b) == STARTS[start], *([holds] if "slices" in start else [])]

        for start in KEPT:
            state = l.state(what[start], u + 1)
            facts[start] = self.agree(
                f"copies_kept_as_{start.lower()}_compare_equal",
                [u, b],
                lambda at, start=start: [*step, *copy(start, at.holds)],
                [(end, b, state, u)],
            )
        copies = {start: copy(start, l.mesh.holds(b, d, j)) for start in KEPT}
        for start in KEPT:
            name = f"kept_{start.lower()}"
            right = self.read(
                name, end, b, what[start], u + 1, [*step, *copies[start]], facts[start]
            )
            row = (l.omega if what[start] is MOMENT else l.theta)(u + 1)
            single[STARTS[start]] = row[j]
            found.append(right)
        return k.prove(
            "accepted_schedules_match",
            l.has(end, b, d)[j] == cases(kept(b), single, ZERO),
            [*self.on_a_device, *step, z3.Or(*(z3.And(*copy) for copy in copies.values()))],
            [*found, always.at(t=end)],
        )
