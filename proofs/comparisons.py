"""What the checker's comparisons say: forms that compare equal to what is needed stand for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Theorem
from proofs.line_knowledge import Knowledge
from proofs.lines import FIRST, GRADIENT, NAMED, NOW, OWNER, Checker
from proofs.meaning import CASES, literal
from proofs.smtlib import KernelError
from proofs.sums import closed_form, partition
from proofs.symbolic_checker import CheckedLanguage, masked
from proofs.symbolic_schedule import (
    CONTRIBUTION,
    FIRSTS,
    MOMENT,
    ONE,
    PLACES,
    WEIGHT,
    ZERO,
    cases,
    either,
    first_of,
    place_of,
)
from spec.operators import OTHER, Offset, Source, rest
from spec.words import Symbol

LATER = NOW + 7
# original values that the checker compares alike: states other than the one that is needed,
# contributions to the step's gradient, and all others
STATE, OF_STEP, ELSE = range(3)
OTHERS = {
    STATE: (Symbol("weight", LATER), Symbol("moment", LATER)),
    OF_STEP: (GRADIENT, Symbol("gradient", NOW, 1)),
    ELSE: (Symbol("gradient", LATER), Symbol("gradient", NOW, 2), Symbol("fault", NOW, 3, ("", 0))),
}
# how often a value has an original one, says a comparison that comes out equal: of one that is the
# same on all devices; of one that is each device's own, whose sum is whole
ONCE, CANCELLED, SUMMED, ABSENT = "once", "cancelled", "summed", "absent"
SAME_ON_ALL = (ONCE, CANCELLED)
RULES = (*SAME_ON_ALL, SUMMED, ABSENT)


@dataclass(frozen=True)
class NeedOf:
    """One need of a line, or of the end of a step: which state is needed, or the whole gradient."""

    name: str
    index: int
    state: Symbol | None
    op: Any = None
    start: str = ""

    @property
    def of_slices(self) -> bool:
        """Whether owners alone are compared."""
        return bool(self.start) and lines.STARTS[self.start][1]

    @property
    def everywhere(self) -> bool:
        """Whether it is compared wherever there are devices."""
        return self.op is not lines.UPDATE and not self.of_slices

    def groups(self) -> Iterator[tuple[str, Sequence[Symbol]]]:
        """Original values, and by which rule each of them is compared."""
        if self.state:
            yield ONCE, (self.state,)
        yield CANCELLED, OTHERS[STATE]
        yield ABSENT if self.state else SUMMED, OTHERS[OF_STEP]
        yield ABSENT, OTHERS[ELSE]

    def said(self, n: Any, first: int, symbol: Symbol, form: Any) -> dict[Any, Any]:
        """The checker's comparison of one symbol, by place."""
        if self.start:
            return {p: said[0] for p, said in lines.agreed(self.start, n, first, symbol, form).items()}
        has = [form] * lines.READS[self.op]
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
        self.whole = self._whole()
        self.alone = self._alone()
        self.alike = self._alike()
        self.there_are, self.there_are_is = k.define("there_are", [f, p], self._exists_at(f, p))
        compared = self._compared()
        self.same_is, self.own_is = self._parts_of_same(), self._parts_of_own()
        self.rules: dict[str, Any] = {}
        self.rule_is: dict[str, Theorem] = {}
        self.means: dict[str, Theorem] = {}
        for rule in RULES:
            of_place = (
                {PLACES[q]: compared[rule, g, q] for q in PLACES if (rule, g, q) in compared}
                for g in FIRSTS
            )
            body = either(
                f, {g: cases(p, at, z3.BoolVal(True)) for g, at in zip(FIRSTS, of_place, strict=True)}
            )
            self.rules[rule], self.rule_is[rule] = k.define(f"is_{rule}", [f, p, *l.x], body)
            self.means[rule] = self._means(rule, self.rule_is[rule])
        self.equals_state, self.equals_state_is = self._passing(True)
        self.equals_gradient, self.equals_gradient_is = self._passing(False)

    def _exists_at(self, f: Any, p: Any) -> Bool:
        """Whether there are devices at a place that is a term."""
        at = {
            g: cases(p, {PLACES[q]: self.exists(g, q) for q in (*NAMED[g], OTHER)}, z3.BoolVal(False))
            for g in FIRSTS
        }
        return z3.And(self.enough(f), either(f, at))

    def _compared(self) -> dict[tuple[str, int, Offset], Bool]:
        """The comparison of a value's coefficients, by rule and place: the same for all needs."""
        found: dict[tuple[str, int, Offset], Bool] = {}
        for need in NEEDS:
            for rule, symbols in need.groups():
                for f, symbol in product(FIRSTS, symbols):
                    form = masked(self.l.x, f)
                    compared = need.said(self.l.size, f, symbol, form)
                    if set(compared) != {OWNER} | set(() if need.of_slices else (*NAMED[f], OTHER)):
                        raise KernelError(f"{need.name} is not compared at every place it is needed at")
                    for place, said in compared.items():
                        if not z3.eq(found.setdefault((rule, f, place), said), said):
                            raise KernelError(
                                f"{need.name}: {symbol} is not compared as by other needs"
                            )
        return found

    # ------------------------------------------------------- a part, by what a device sees
    def _of_same(self, d: int, owner: int) -> tuple[Any, Any]:
        """A part of a value that is the same on all devices, and how often it is seen."""
        f, p, own = literal(first_of, owner), literal(place_of, d, owner), self.views[0]
        views = own, self.times(self.l.size, own), own, own
        seen = self.part_is.at(f=f, p=p, **self.viewed((ONE, self.l.size, ONE, ONE)))
        return self.part(f, p, *self.l.x, *views), z3.simplify(seen.goal.arg(1))

    def _parts_of_same(self) -> Theorem:
        """It is what is seen, as often as it is."""
        own, parts, uses = (
            self.views[0],
            [],
            [self.times_is.at(multiple=self.l.size, multiplied=self.views[0])],
        )
        for d, owner in CASES:
            part, seen = self._of_same(d, owner)
            parts.append(part == self.times(seen, own))
            f, p = literal(first_of, owner), literal(place_of, d, owner)
            views = self.viewed(part.children()[-len(self.views) :])
            uses += [
                self.part_is.at(f=f, p=p, **views),
                self.times_is.at(multiple=seen, multiplied=own),
            ]
        return self.proved("parts_of_the_same", parts, uses)

    def _of_own(self, d: int, owner: int) -> tuple[Any, list[tuple[Any, Any]]]:
        """A part of any value, and what is seen of it: how often, and of what."""
        f, p = literal(first_of, owner).as_long(), literal(place_of, d, owner).as_long()
        place, views = next(q for q in PLACES if PLACES[q] == p), self.views_at(d, owner)
        values = {OWNER: views[2], FIRST: views[3], Source.SELF: views[0]}
        values[Source.REST] = self.others(f, p, views)
        checker = Checker(self.l.size, f, lines.schedule())
        seen = checker.at(lines.form(GRADIENT, masked(self.l.x, f)), (place,))
        amounts = [(z3.simplify(lines.real(v)), values[source]) for (_, (source,)), v in seen.items()]
        return self.part(f, p, *self.l.x, *views), [each for each in amounts if not each[0].eq(ZERO)]

    def _parts_of_own(self) -> Theorem:
        """It is the sum of what is seen, each as often as it is."""
        parts, uses = [], []
        for d, owner in CASES:
            part, seen = self._of_own(d, owner)
            parts.append(part == sum((self.times(c, v) for c, v in seen), ZERO))
            f, p = literal(first_of, owner), literal(place_of, d, owner)
            uses.append(self.part_is.at(f=f, p=p, **self.viewed(self.views_at(d, owner))))
            uses += [self.times_is.at(multiple=c, multiplied=v) for c, v in seen]
        return self.proved("parts_of_own_values", parts, uses)

    def _means(self, rule: str, rule_is: Theorem) -> Theorem:
        """A part of what compares equal is what is needed."""
        own, whole, *_ = self.views
        wanted = {ONCE: own, SUMMED: whole}.get(rule, ZERO)
        amount = ONE if rule in (ONCE, SUMMED) else ZERO
        same = rule in SAME_ON_ALL
        parts, uses = [], [self.same_is if same else self.own_is]
        products = []
        for d, owner in CASES:
            f, p = literal(first_of, owner).as_long(), literal(place_of, d, owner).as_long()
            said = rule_is.at(f=f, p=p)
            uses.append(said)
            if same:
                part, given = self._of_same(d, owner)[0], []
                products.append((amount, own))
            else:
                part, seen = self._of_own(d, owner)
                given = [self.nobody_else(f, p, self.views_at(d, owner))]
                products += [(amount, v) for _, v in seen] + [(seen[-1][0], ZERO)]
            parts.append(z3.Implies(z3.And(said.goal.arg(0), *given), part == wanted))
        uses += [self.times_is.at(multiple=c, multiplied=v) for c, v in products]
        return self.proved(f"what_is_{rule}", parts, uses)

    def same(self, views: Sequence[Any]) -> Bool:
        """All devices have the same."""
        own, whole, owners, firsts = views
        return z3.And(whole == self.times(self.l.size, own), owners == own, firsts == own)

    def others(self, f: int, p: int, views: Sequence[Any]) -> Any:
        """What devices without a name have together, but for the one that looks."""
        own, whole, owners, firsts = views
        of_first, of_own = [firsts] if f == FIRST else [], [own] if p == PLACES[OTHER] else []
        return whole - sum([*of_first, *of_own], owners)

    def nobody_else(self, f: int, p: int, views: Sequence[Any]) -> Bool:
        """If there are but the devices that have names, and one that looks, others have nothing."""
        place = next(q for q in PLACES if PLACES[q] == p)
        return z3.Or(rest(place, NAMED[f], self.l.size) > 0, self.others(f, p, views) == 0)

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
                self.times_is.at(multiple=l.size, multiplied=l.original(s, d, j)),
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

    def _passing(self, state: bool) -> tuple[Any, Theorem]:
        """That a value compares equal at a place: with state m, or with the gradient of step u."""
        l = self.l
        said = {rule: self.rules[rule](l.f, l.p, *l.form(l.t, l.b, l.s, l.f)) for rule in RULES}
        compared = said[ABSENT]
        if not state:
            compared = z3.If(l.is_of_step(l.s, l.u), said[SUMMED], compared)
        compared = z3.If(z3.Or(l.what(l.s) == WEIGHT, l.what(l.s) == MOMENT), said[CANCELLED], compared)
        if state:
            compared = z3.If(l.s == l.m, said[ONCE], compared)
        body = z3.And(compared, self.knows(l.f, l.p, *l.not_known(l.t, l.b, l.f)))
        params = [l.f, l.p, l.t, l.b, l.s, l.m if state else l.u]
        return self.k.define("equals_state" if state else "equals_gradient", params, body)

    def passes(self, t: Any, b: Any, f: Any, p: Any, named: Any, now: Any, s: Any = None) -> Bool:
        """What the checker compares, of each original value; and that nothing is not known."""
        s = self.l.s if s is None else s
        if named is None:
            return self.equals_gradient(f, p, t, b, s, now)
        return self.equals_state(f, p, t, b, s, named)

    def passed(self, t: Any, b: Any, named: Any, now: Any) -> Theorem:
        """What that is for device d and element j."""
        owner = self.l.owner(self.l.j)
        at = {"f": first_of(owner), "p": place_of(self.l.d, owner), "t": t, "b": b}
        if named is None:
            return self.equals_gradient_is.at(**at, u=now)
        return self.equals_state_is.at(**at, m=named)

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
        here = dict(zip(names, (*l.form(t, b, s, f), *l.views(s, d, j)), strict=True))
        rules = (ONCE, CANCELLED, ABSENT) if need.state else (CANCELLED, SUMMED, ABSENT)
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
                *(self.means[rule].at(**here) for rule in rules),
                self.alike,
                self.alone,
                *([l.owned] if need.everywhere else []),
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
