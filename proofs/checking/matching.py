"""T2: on any mesh, whatever the schedule, what compares equal is what a single device has.

Compared are amounts: of a state that is needed there is one, of the other states none; of a whole
gradient there is each device's contribution once; of all other values there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.superposition import Superposition
from proofs.checking.symbols import (
    CONTRIBUTION,
    MOMENT,
    NORM,
    ONE,
    TOKENS,
    WEIGHT,
    ZERO,
    indicator,
)
from proofs.tools.sums import Sum, partition
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not


@dataclass(frozen=True)
class Where:
    """Where a comparison is made: where line t is right, or met, or place b has the element."""

    right: Bool
    met: Bool
    holds: Bool


NEEDED = {"weights": WEIGHT, "moments": MOMENT, "gradients": None, "norms": NORM, "counts": TOKENS}

# a line, a place; what is needed: a state, TOKENS for the whole count, None for the gradient; the step
Read = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class AnyPlace:
    """Of a kind, in any place: that all compares equal, and that it is right, if so; if not, which
    original value of which device does not compare equal.
    """

    all_equal: Bool
    right: Theorem
    any_found: Theorem
    one_found: Theorem
    device: Any
    value: Any


def contributed(state: Any) -> Any:
    """Of which kind all contributions are needed, if no state is."""
    return CONTRIBUTION if state is None else TOKENS if state is TOKENS else None


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
        self.equals: dict[Any, tuple[Any, Theorem]] = {}
        self.rights: dict[str, AnyPlace] = {}
        self.wholes: dict[Any, tuple[Sum, Theorem]] = {}
        for kind, name in ((CONTRIBUTION, "gradient"), (TOKENS, "count")):
            wanted = indicator(l.is_of_step(s, u, kind))
            equal = And(self.knows(t, b), Implies(here, amount == wanted))
            self.equals[kind] = k.define(f"equals_{name}", [*params, u], equal)

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
    def whole(self, kind: Any) -> tuple[Sum, Theorem]:
        """The sum of what devices contribute in a step, and that it is the single device's."""
        if kind not in self.wholes:
            made = {CONTRIBUTION: self._whole_gradient, TOKENS: self._whole_count}
            self.wholes[kind] = made[kind]()
        return self.wholes[kind]

    def _whole_gradient(self) -> tuple[Sum, Theorem]:
        """Contributions to a step's gradient are the whole gradient."""
        l, u = self.l, self.l.u
        at = {"weights": l.theta(u)}
        linear = l.linear.at(**at), l.in_step_are
        single = l.single_gradient(u, l.j)
        return self._whole(
            CONTRIBUTION, "contribution", l.batch, l.whole, [l.theta(u)], [l.j], at, single, linear
        )

    def _whole_count(self) -> tuple[Sum, Theorem]:
        """What devices count in a step is the whole count."""
        l, u = self.l, self.l.u
        return self._whole(TOKENS, "count", l.of_batch, l.of_step, [], [], {}, l.single_count(u), ())

    def _whole(
        self,
        kind: Any,
        word: str,
        batch: Sum,
        steps: Sum,
        before: Sequence[Any],
        after: Sequence[Any],
        at: Mapping[str, Any],
        single: Any,
        uses: Sequence[Theorem],
    ) -> tuple[Sum, Theorem]:
        """What devices contribute, one an original value, are the sums over micro-steps of batches.

        before, after: what these are of beside steps and micro-steps.
        """
        l, k, s, u, m, i, j = self.l, self.k, self.l.s, self.l.u, self.l.m, self.l.i, self.l.j
        which = l.which(s)
        counted = And(which >= 0, which < l.micro_steps)
        slot, slot_is = k.define(f"slot_of_{word}", [s], If(counted, which, IntVal(0)))
        placed = k.prove(
            f"each_{word}_has_a_micro_step",
            And(slot(s) >= 0, slot(s) < l.micro_steps),
            uses=[slot_is, l.numbered],
        )
        here = If(l.is_of_step(s, u, kind), l.all(s, j, l.n), ZERO)
        share, parts, of_step, one = partition(
            k, f"{word}s", m, s, slot, placed, l.micro_steps, here, [u, j]
        )
        sym = l.named(kind, u, m)
        in_batch = batch(*before, u, m, *after, i)
        given = [u >= 0, u <= l.last, m >= 0, m < l.micro_steps]
        names = l.names.at(w=kind)
        same = k.induct(
            f"a_{word}_of_all_devices",
            i,
            l.all(sym, j, i) == in_batch,
            given,
            base=[l.all.start.at(s=sym), batch.start.at(**at)],
            step=[
                l.all.next.at(s=sym),
                batch.next.at(**at),
                l.original_is.at(s=sym, d=i),
                names,
            ],
        )
        each = k.induct(
            f"a_micro_steps_{word}",
            s,
            share(u, j, m, s) == If(sym < s, batch(*before, u, m, *after, l.n), ZERO),
            given,
            base=[share.start, names],
            step=[share.next, same.at(i=l.n), slot_is, l.name_is_its_own, names, self.inside()],
        )
        every = k.induct(
            f"{word}s_of_micro_steps",
            m,
            parts(u, j, l.bound, m) == steps(*before, u, *after, m),
            [u >= 0, u <= l.last, m <= l.micro_steps],
            base=[parts.start.at(s=l.bound), steps.start.at(**at)],
            step=[
                parts.next.at(s=l.bound),
                steps.next.at(**at),
                each.at(s=l.bound),
                names,
            ],
        )
        return of_step, k.prove(
            f"{word}s_are_the_whole",
            of_step(u, j, l.bound) == single,
            [u >= 0, u <= l.last],
            [*(one.at(s=l.bound), every.at(m=l.micro_steps), l.finite, l.numbered), *uses],
        )

    def right_value(self, what: Any, u: Any) -> Any:
        """What the single device has of element j in a step: a state, a norm, a count, its gradient."""
        l, j = self.l, self.l.j
        states = {WEIGHT: l.theta(u)[j], MOMENT: l.omega(u)[j], NORM: l.single_norm(u)}
        states[TOKENS] = l.single_count(u)
        return states.get(what, l.single_gradient(u, j))

    def needed(self, what: Any, u: Any) -> Any:
        """What is needed of a kind and a step: a state, or all that is contributed."""
        return what if contributed(what) is not None else self.l.state(what, u)

    def compares(self, t: Any, b: Any, state: Any, u: Any) -> Bool:
        """What is compared of an original value; and that nothing that is not known is there."""
        l, kind = self.l, contributed(state)
        if kind is not None:
            return self.equals[kind][0](t, b, l.d, l.j, l.s, l.i, u)
        return self.equals_state(t, b, l.d, l.j, l.s, l.i, state)

    def compared(self, t: Any, b: Any, state: Any, u: Any) -> Theorem:
        """What that is."""
        kind = contributed(state)
        if kind is not None:
            return self.equals[kind][1].at(t=t, b=b, u=u)
        return self.equals_state_is.at(t=t, b=b, m=state)

    def right_where_equal(self, name: str) -> AnyPlace:
        """What compares equal, of all original values, is right, in any place before any line."""
        if name not in self.rights:
            self.rights[name] = self._right_where_equal(name, NEEDED[name])
        return self.rights[name]

    def _right_where_equal(self, name: str, what: Any) -> AnyPlace:
        l, k, (t, b, s, d, i, j), u = self.l, self.k, self.variables(), self.l.u
        state, at = self.needed(what, u), [t, b, d, j, u]
        equal, step = self.compares(t, b, state, u), [u >= 0, u <= l.last]
        of_one, whose, one_shown, one_found = k.choose(f"{name}_of_one", [s, *at], i, Not(equal))
        of_any, which, any_shown, any_found = k.choose(f"{name}_are_unequal", at, s, of_one(s, *at))
        all_equal, value = Not(of_any(*at)), which(*at)
        compares = k.prove(f"{name}_compare_equal", equal, [all_equal], [one_shown, any_shown])
        kind = contributed(what)
        named = [] if kind is not None else [l.names.at(w=what, m=IntVal(0))]
        made = (
            [self.whole(kind)[1], l.finite]
            if kind is not None
            else [l.original_is.at(s=state, d=IntVal(0)), *named]
        )
        first = {"s": IntVal(0), "i": IntVal(0)}
        right = k.prove(
            f"{name}_that_compare_equal_are_right",
            l.has(t, b, d)[j] == self.right_value(what, u),
            [*self.on_a_device, *step, all_equal, Not(self.wrong(t, b))],
            [
                self.fine,
                self._stands(name, state, [*(step if named else []), all_equal], [compares, *named]),
                compares.at(**first),
                self.compared(t, b, state, u).at(**first),
                *made,
            ],
        )
        return AnyPlace(all_equal, right, any_found, one_found.at(s=value), whose(value, *at), value)

    def _stands(self, name: str, state: Any, given: Sequence[Bool], uses: Sequence[Theorem]) -> Theorem:
        """What compares equal stands for what is needed."""
        l, k, (t, b, s, d, i, j), u = self.l, self.k, self.variables(), self.l.u
        kind = contributed(state)
        contributes = kind is not None
        of_step = l.is_of_step(s, u, kind) if contributes else BoolVal(False)
        value, zero = l.original(s, i, j), IntVal(0)
        own = ZERO if contributes else l.original(state, zero, j)
        wanted = BoolVal(False) if contributes else s == state
        row = k.induct(
            f"shares_in_{name}",
            i,
            self.shares(t, b, s, d, j, i)
            == If(And(wanted, i > 0), own, If(of_step, l.all(s, j, i), ZERO)),
            [*given, i <= l.n],
            base=[self.shares.start, *([l.all.start] if contributes else [])],
            step=[
                self.shares.next,
                *([l.all.next] if contributes else []),
                *(*uses, self.compared(t, b, state, u)),
                *(self.times_is.at(multiple=a, multiplied=value) for a in (ZERO, ONE)),
                self.times_is.at(multiple=l.amount(t, b, s, d, i, j), multiplied=ZERO),
                l.original_is.at(d=i),
            ],
        ).at(i=l.n)
        of = self.whole(kind)[0] if contributes else None
        return k.induct(
            f"what_{name}_stand_for",
            s,
            self.stands_for(t, b, d, j, s) == (If(state < s, own, ZERO) if of is None else of(u, j, s)),
            [*given, *self.on_a_device, *([] if contributes else [state >= 0])],
            base=[self.stands_for.start, *([] if of is None else [of.start])],
            step=[self.stands_for.next, row, *([] if of is None else [of.next])],
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
        """What is read compares equal, so it is right: a state of a step, or its whole gradient."""
        l = self.l
        of = self.right_where_equal(next(kind for kind, each in NEEDED.items() if each is what))
        at = {"t": t, "b": b, "u": u}
        value, device = (substitute(e, (l.t, t), (l.b, b), (l.u, u)) for e in (of.value, of.device))
        return self.k.prove(
            f"{name}_is_right",
            l.has(t, b, l.d)[l.j] == self.right_value(what, u),
            [*self.on_a_device, *given, Not(self.wrong(t, b))],
            [
                *(each.at(**at) for each in (of.right, of.any_found, of.one_found)),
                compares.at(s=value, i=device),
                *([l.numbered] if by_a_line else []),
            ],
        )
