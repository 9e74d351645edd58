"""What the checker's comparisons say: forms that compare equal to what is needed stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Theorem
from proofs.line_knowledge import Knowledge
from proofs.lines import FIRST, GRADIENT, NOW
from proofs.meaning import CASES, literal
from proofs.smtlib import KernelError
from proofs.sums import closed_form, partition
from proofs.symbolic_checker import CheckedLanguage, masked
from proofs.symbolic_schedule import (
    CONTRIBUTION,
    FIRSTS,
    MOMENT,
    PLACES,
    WEIGHT,
    ZERO,
    cases,
    either,
    first_of,
    place_of,
)
from spec.operators import OTHER
from spec.words import Symbol

LATER = NOW + 7
# original values by what the checker compares them with: the state that is needed, other states,
# contributions to the step's gradient, and all others
NEEDED, STATE, OF_STEP, ELSE = range(4)
OTHERS = {
    STATE: (Symbol("weight", LATER), Symbol("moment", LATER)),
    OF_STEP: (GRADIENT, Symbol("gradient", NOW, 1)),
    ELSE: (Symbol("gradient", LATER), Symbol("gradient", NOW, 2), Symbol("fault", NOW, 3, ("", 0))),
}


@dataclass(frozen=True)
class NeedOf:
    """One need of a line, or of the end of a step: which state is needed, or the whole gradient."""

    name: str
    index: int
    state: Symbol | None
    op: Any = None
    start: str = ""

    @property
    def kind(self) -> str:
        """Needs of a kind are compared alike."""
        if not self.state:
            return "gradient"
        return "slices" if self.start and lines.STARTS[self.start][1] else "state"

    def said(self, n: Any, first: int, symbol: Symbol, form: Any) -> dict[Any, Any]:
        """The checker's comparison of one symbol, by place."""
        if self.start:
            return {p: said[0] for p, said in lines.agreed(self.start, n, first, symbol, form).items()}
        has = [form] * len(lines.READS[self.op])
        found = lines.compared(self.op, n, first, symbol, has)
        return {p: said[self.index] for p, said in found.items()}


_now, _next = ([Symbol(kind, step) for kind in ("weight", "moment")] for step in (NOW, NOW + 1))
VIEW, ACTIVATIONS = (
    NeedOf(name, i, _now[0], lines.BACKWARD) for i, name in enumerate(("view", "activations"))
)
OLD_WEIGHT, OLD_MOMENT, WHOLE = (
    NeedOf(name, i, state, lines.UPDATE)
    for i, (name, state) in enumerate((("weight", _now[0]), ("moment", _now[1]), ("gradient", None)))
)
KEPT = {
    start: NeedOf(f"kept_{start.lower()}", 0, _next["Moment" in start], None, start)
    for start in lines.STARTS
    if "Zero" not in start
}
NEEDS = (VIEW, ACTIVATIONS, OLD_WEIGHT, OLD_MOMENT, WHOLE, *KEPT.values())


class Comparisons(Knowledge):
    """The checker's comparisons as formulas over its run, and what values have that pass them."""

    def __init__(self, l: CheckedLanguage) -> None:
        super().__init__(l)
        k, f, p = self.k, l.f, l.p
        self.group = k.integers("group")
        self.whole = self._whole()
        self.alone = self._alone()
        self.alike = self._alike()
        self.compares: dict[str, Any] = {}
        self.compares_is: dict[str, Theorem] = {}
        self.means: dict[str, Theorem] = {}
        bodies: dict[str, Any] = {}
        for need in NEEDS:
            body = self._compares(need)
            if not z3.eq(bodies.setdefault(need.kind, body), body):
                raise KernelError(f"{need.name} is not compared as another {need.kind} is")
            if need.kind not in self.means:
                params = [f, p, self.group, *l.x]
                compares, compares_is = k.define(f"compares_{need.kind}", params, body)
                self.compares[need.kind], self.compares_is[need.kind] = compares, compares_is
                self.means[need.kind] = self._means(need)

    def _compares(self, need: NeedOf) -> Bool:
        """Whether a value's coefficients on a device are those that are needed, by group."""
        by_first = {}
        for f in FIRSTS:
            form = masked(self.l.x, f)
            by_group = {}
            for group in (NEEDED, STATE, OF_STEP, ELSE):
                symbols = OTHERS.get(group, (need.state,) if need.state else OTHERS[STATE])
                found = [need.said(self.l.size, f, symbol, form) for symbol in symbols]
                if not all(z3.eq(each[p], found[0][p]) for each in found for p in found[0]):
                    raise KernelError(f"{need.name}: symbols of one group are compared differently")
                said = {PLACES[p]: each for p, each in found[0].items()}
                by_group[group] = cases(self.l.p, said, z3.BoolVal(True))
            by_first[f] = cases(self.group, by_group, z3.BoolVal(True))
        return either(self.l.f, by_first)

    def _means(self, need: NeedOf) -> Theorem:
        """A part of what compares equal is what is needed."""
        l, x = self.l, self.l.x
        whole = self.views[1]
        numbers, parts, uses = [], [], []
        for d, owner in CASES:
            f, p = literal(first_of, owner).as_long(), literal(place_of, d, owner).as_long()
            place = next(q for q in PLACES if PLACES[q] == p)
            if place not in need.said(l.size, f, GRADIENT, masked(x, f)):
                continue
            views = self.views_at(d, owner)
            here = views[0]
            by_group = {
                NEEDED: here if need.state else ZERO,
                STATE: ZERO,
                OF_STEP: ZERO if need.state else whole,
                ELSE: ZERO,
            }
            for group, wanted in by_group.items():
                same = self.same(views) if group in (NEEDED, STATE) else self.nobody_else(f, p, views)
                same = z3.And(self.enough(f), self.exists(f, place), same)
                part = self.unfolded(d, owner, x)
                said = self.compares_is[need.kind].at(f=f, p=p, group=group)
                left, right = (
                    z3.Implies(z3.And(same, said.goal.arg(side)), part.goal.arg(side) == wanted)
                    for side in (0, 1)
                )
                parts.append(left)
                numbers.append(right)
                uses += [part, said]
        return self.by_numbers(f"needed_{need.kind}", parts, numbers, [l.some, *uses], sized=True)

    def same(self, views: Sequence[Any]) -> Bool:
        """All devices have the same."""
        own, whole, owners, firsts = views
        return z3.And(whole == self.l.size * own, owners == own, firsts == own)

    def nobody_else(self, f: int, p: int, views: Sequence[Any]) -> Bool:
        """If there are but the devices that have names, and one that looks, the sum is theirs."""
        own, whole, owners, firsts = views
        those = [owners, *([firsts] if f == FIRST else []), *([own] if p == PLACES[OTHER] else [])]
        return z3.Implies(self.l.size == len(those), whole == sum(those[1:], those[0]))

    def _alone(self) -> Theorem:
        l, k, s, d, j = self.l, self.k, self.l.s, self.l.d, self.l.j
        owner = l.owner(j)
        views = l.views(s, d, j)
        said = [
            z3.Implies(
                z3.And(first_of(owner) == f, place_of(d, owner) == p), self.nobody_else(f, p, views)
            )
            for f, p in ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2))
        ]
        few = [l.all.next.at(i=i) for i in range(3)]
        return k.prove(
            "a_few_devices_are_all", z3.And(*said), [d >= 0, d < l.n], [l.all.start, *few, l.owned]
        )

    def _alike(self) -> Theorem:
        """States are the same on all devices."""
        l, k, s, d, i, j = self.l, self.k, self.l.s, self.l.d, self.l.i, self.l.j
        state = z3.Or(l.what(s) == WEIGHT, l.what(s) == MOMENT)
        c = l.original(s, d, j)
        summed = closed_form(
            k,
            "alike_values_add_up",
            l.all,
            z3.ToReal(i) * c,
            given=[state],
            uses=[l.original_is, l.original_is.at(d=i)],
        )
        return k.prove(
            "states_are_alike",
            self.same(l.views(s, d, j)),
            [state],
            [
                summed.at(i=l.n),
                l.original_is,
                l.original_is.at(d=l.owner(j)),
                l.original_is.at(d=z3.IntVal(0)),
                l.some,
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
            step=[share.next, same.at(i=l.n), slot_is, l.name_is_its_own, names, l.some],
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
            [one.at(s=l.bound), every.at(m=l.micro_steps), l.finite, l.numbered],
        )

    def group_of(self, s: Any, named: Any, now: Any) -> Any:
        """The group of an original value."""
        l = self.l
        state = z3.Or(l.what(s) == WEIGHT, l.what(s) == MOMENT)
        rest = z3.If(l.is_of_step(s, now), z3.IntVal(OF_STEP), z3.IntVal(ELSE))
        found = z3.If(state, z3.IntVal(STATE), rest)
        return found if named is None else z3.If(s == named, z3.IntVal(NEEDED), found)

    def passes(self, need: NeedOf, t: Any, b: Any, f: Any, p: Any, named: Any, now: Any) -> Bool:
        """What the checker compares: each original value, and that nothing is not known."""
        l = self.l
        form = l.form(t, b, l.s, f)
        compared = self.compares[need.kind](f, p, self.group_of(l.s, named, now), *form)
        return z3.And(compared, self.knows(f, p, *l.not_known(t, b, f)))

    def stands(
        self,
        need: NeedOf,
        t: Any,
        b: Any,
        named: Any,
        now: Any,
        given: Sequence[Bool],
        uses: Sequence[Theorem],
        there: Theorem | None,
    ) -> Theorem:
        """What passes a comparison on a device stands for what is needed."""
        l, k, s, d, j = self.l, self.k, self.l.s, self.l.d, self.l.j
        f = first_of(l.owner(j))
        names = map(str, (*l.x, *self.views))
        means = self.means[need.kind].at(
            **dict(zip(names, (*l.form(t, b, s, f), *l.views(s, d, j)), strict=True))
        )
        if there is None:
            wanted = z3.If(l.is_of_step(s, now), l.all(s, j, l.n), ZERO)
        else:
            wanted = z3.If(s == named, l.original(named, d, j), ZERO)
        given = [d >= 0, d < l.n, *given]
        at = {"t": t, "b": b}
        term = k.prove(
            f"a_term_of_{need.name}",
            self.term(t, b, s, d, j) == wanted,
            given,
            [
                self.term_is.at(**at),
                means,
                self.alike,
                self.alone,
                l.owned,
                *uses,
                *([there] if there else []),
            ],
        )
        if there is None:
            right, base = self.of_step(now, j, s), [self.of_step.start.at(u=now)]
            step = [self.of_step.next.at(u=now)]
        else:
            right, base, step = z3.If(named < s, l.original(named, d, j), ZERO), [there], []
        return k.induct(
            f"what_{need.name}_stands_for",
            s,
            self.stands_for(t, b, d, j, s) == right,
            given,
            base=[self.stands_for.start.at(**at), *base],
            step=[self.stands_for.next.at(**at), term, *step],
        )
