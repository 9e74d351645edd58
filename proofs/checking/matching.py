"""T2: on any mesh, whatever the schedule, what compares equal is what a single device has.

Compared are amounts: of a state that is needed there is one, of the other states none; of a whole
gradient there is each device's contribution once; of all other values there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.superposition import Superposition
from proofs.checking.symbols import CONTRIBUTION, MOMENT, NORM, ONE, WEIGHT, ZERO, indicator
from proofs.tools.sums import partition
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not


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
        k, t, b, s, d, i, j, u, m = self.k, *self.variables(), l.u, l.m
        amount, params = l.amount(t, b, s, d, i, j), [t, b, d, j, s, i]
        here = And(i >= 0, i < l.n, Implies(l.is_state(s), i == 0))
        self.equals_state, self.equals_state_is = k.define(
            "equals_state",
            [*params, m],
            And(self.knows(t, b), Implies(here, amount == indicator(s == m))),
        )
        self.equals_gradient, self.equals_gradient_is = k.define(
            "equals_gradient",
            [*params, u],
            And(self.knows(t, b), Implies(here, amount == indicator(l.is_of_step(s, u)))),
        )
        self.whole = self._whole()

    def agree(
        self,
        name: str,
        at: Sequence[Any],
        when: Callable[[Where], Sequence[Bool]],
        reads: Sequence[Read],
        kept: str = "",
    ) -> Theorem:
        """The checker's comparisons: of what is read, on the devices where it says that it is right.

        `at`: the variables that it is about, besides original values and devices. `kept`: of copies
        that are kept, what they were at first, by `lines.STARTS`.
        """
        l = self.l
        where = Where(l.is_right(l.t, l.d), l.is_met(l.t, l.d, l.j), l.mesh.holds(l.b, l.d, l.j))
        return self.all_equal_in(name, [*at, l.s, l.d, l.i, l.j], when(where), reads)

    def all_equal_in(
        self, name: str, variables: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """That what is read compares equal, which is supposed."""
        compares = And(*(self.compares(*each) for each in reads))
        said = Implies(And(*given, *self.on_a_device), compares)
        return self.k.suppose(name, variables, said)

    # ------------------------------------------------------- what comes out equal
    def _whole(self) -> Theorem:
        """Contributions to a step's gradient, one an original value, are those of all micro-steps."""
        l, k, s, u, m, i, j = self.l, self.k, self.l.s, self.l.u, self.l.m, self.l.i, self.l.j
        which = l.which(s)
        counted = And(which >= 0, which < l.micro_steps)
        slot, slot_is = k.define("slot", [s], If(counted, which, IntVal(0)))
        placed = k.prove(
            "each_has_a_micro_step",
            And(slot(s) >= 0, slot(s) < l.micro_steps),
            uses=[slot_is, l.numbered],
        )
        here = If(l.is_of_step(s, u), l.all(s, j, l.n), ZERO)
        share, parts, self.of_step, one = partition(
            k, "contributions", m, s, slot, placed, l.micro_steps, here, [u, j]
        )
        sym, theta = l.named(CONTRIBUTION, u, m), l.theta(u)
        given = [u >= 0, u <= l.last, m >= 0, m < l.micro_steps]
        names = l.names.at(w=CONTRIBUTION)
        same = k.induct(
            "a_contribution_of_all_devices",
            i,
            l.all(sym, j, i) == l.batch(theta, u, m, j, i),
            given,
            base=[l.all.start.at(s=sym), l.batch.start.at(weights=theta)],
            step=[
                l.all.next.at(s=sym),
                l.batch.next.at(weights=theta),
                l.original_is.at(s=sym, d=i),
                names,
            ],
        )
        each = k.induct(
            "a_micro_steps_contribution",
            s,
            share(u, j, m, s) == If(sym < s, l.batch(theta, u, m, j, l.n), ZERO),
            given,
            base=[share.start, names],
            step=[share.next, same.at(i=l.n), slot_is, l.name_is_its_own, names, self.inside()],
        )
        every = k.induct(
            "contributions_of_micro_steps",
            m,
            parts(u, j, l.bound, m) == l.whole(theta, u, j, m),
            [u >= 0, u <= l.last, m <= l.micro_steps],
            base=[parts.start.at(s=l.bound), l.whole.start.at(weights=theta)],
            step=[
                parts.next.at(s=l.bound),
                l.whole.next.at(weights=theta),
                each.at(s=l.bound),
                names,
            ],
        )
        return k.prove(
            "contributions_are_the_whole_gradient",
            self.of_step(u, j, l.bound) == l.single_gradient(u, j),
            [u >= 0, u <= l.last],
            [
                *(one.at(s=l.bound), every.at(m=l.micro_steps), l.finite, l.numbered),
                *(l.linear.at(weights=theta), l.in_step_are),
            ],
        )

    def right_value(self, what: Any, u: Any) -> Any:
        """What the single device has of element j: a state of a step, its norm, its whole gradient."""
        l, j = self.l, self.l.j
        states = {WEIGHT: l.theta(u)[j], MOMENT: l.omega(u)[j], NORM: l.single_norm(u)}
        return states.get(what, l.single_gradient(u, j))

    def compares(self, t: Any, b: Any, state: Any, u: Any) -> Bool:
        """What is compared of an original value; and that nothing that is not known is there."""
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
        self,
        name: str,
        t: Any,
        b: Any,
        state: Any,
        u: Any,
        given: Sequence[Bool],
        uses: Sequence[Theorem],
    ) -> Theorem:
        """What compares equal stands for what is needed; `uses` say that it does, and of the names."""
        l, k, s, d, i, j = self.l, self.k, self.l.s, self.l.d, self.l.i, self.l.j
        at = {"t": t, "b": b}
        met = [*uses, self.compared(t, b, state, u)]
        given = [*self.on_a_device, *given]
        of_step = BoolVal(False) if state is not None else l.is_of_step(s, u)
        value = self.l.original(s, i, j)
        shares = self.shares(t, b, s, d, j, i)
        zero = IntVal(0)
        own = ZERO if state is None else l.original(state, zero, j)
        wanted = BoolVal(False) if state is None else s == state
        row = k.induct(
            f"shares_in_{name}",
            i,
            shares == If(And(wanted, i > 0), own, If(of_step, l.all(s, j, i), ZERO)),
            [*given, i <= l.n],
            base=[self.shares.start.at(**at), *([l.all.start] if state is None else [])],
            step=[
                self.shares.next.at(**at),
                *([l.all.next] if state is None else []),
                *met,
                *(self.times_is.at(multiple=a, multiplied=value) for a in (ZERO, ONE)),
                self.times_is.at(multiple=l.amount(t, b, s, d, i, j), multiplied=ZERO),
                l.original_is.at(d=i),
            ],
        ).at(i=l.n)
        if state is None:
            right = self.of_step(u, j, s)
            base, step = [self.of_step.start.at(u=u)], [self.of_step.next.at(u=u)]
        else:
            right = If(state < s, own, ZERO)
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
        by_a_line: bool = True,
    ) -> Theorem:
        """What compares equal is right: the weight or the moment of a step, or its whole gradient."""
        l = self.l
        state = None if what is None else l.state(what, u)
        right = self.right_value(what, u)
        steps = [l.numbered] if by_a_line else []
        names = [] if what is None else [l.names.at(w=what, u=u, m=IntVal(0)), *steps]
        stands = self.stands(name, t, b, state, u, given, [compares, *names])
        value = (
            [self.whole.at(u=u), l.finite, *steps]
            if what is None
            else [l.original_is.at(s=state, d=IntVal(0)), *names]
        )
        return self.k.prove(
            f"{name}_is_right",
            l.has(t, b, l.d)[l.j] == right,
            [*self.on_a_device, *given, *[Not(self.wrong(t, b))]],
            [
                self.fine.at(t=t, b=b),
                stands,
                compares.at(s=IntVal(0), i=IntVal(0)),
                self.compared(t, b, state, u).at(s=IntVal(0), i=IntVal(0)),
                *value,
            ],
        )
