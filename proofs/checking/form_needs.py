"""T4: on one axis, the checker's comparisons of normal forms are those of amounts.

A form compares equal at a place if and only if the amounts of all devices do, seen from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from proofs.checking import lines
from proofs.checking.exactness import Exactness
from proofs.checking.form_parts import CASES, literal
from proofs.checking.lines import FIRST, GRADIENT, NAMED, NOW, OWNER, UNKNOWN, Checker
from proofs.checking.representation import Represented
from proofs.checking.symbolic_checker import masked
from proofs.checking.symbolic_schedule import (
    FIRSTS,
    ONE,
    PLACES,
    ZERO,
    cases,
    either,
    first_of,
    indicator,
    place_of,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import (
    And,
    BoolVal,
    If,
    Implies,
    IntVal,
    KernelError,
    Not,
    Or,
    RealVal,
    ToReal,
)
from spec.checking.words import Symbol
from spec.devices.operators import KEEP, OTHER, Offset

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
        has = [[ZERO] * len(form)] * lines.READS[self.op]
        has[self.index] = form  # the need of an operand is of it alone
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


class FormNeeds(Exactness):
    """The checker's comparisons as formulas over its run, and what they say of amounts."""

    l: Represented

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        k, f, p = self.k, l.f, l.p
        self.there_are, self.there_are_is = k.define("there_are", [f, p], self._exists_at(f, p))
        self.known_at, known_at_is = k.define("knows", [f, p, *l.x], self._known())
        self.counted = self._counted(known_at_is)
        compared = self._compared()
        self.rules: dict[str, Any] = {}
        self.rule_is: dict[str, Theorem] = {}
        for rule in RULES:
            of_place = (
                {PLACES[q]: compared[rule, g, q] for q in PLACES if (rule, g, q) in compared}
                for g in FIRSTS
            )
            body = either(
                f, {g: cases(p, at, BoolVal(True)) for g, at in zip(FIRSTS, of_place, strict=True)}
            )
            self.rules[rule], self.rule_is[rule] = k.define(f"is_{rule}", [f, p, *l.x], body)
        self.wanted = k.reals("wanted")
        self.shown_by, self.shown_by_is = self._shown_by()
        self.seen_is = self._seen()
        self.means = {rule: self._means(rule) for rule in RULES}
        self.form_equals_state, self.form_equals_state_is = self._passing(True)
        self.form_equals_gradient, self.form_equals_gradient_is = self._passing(False)
        self._require_right_results()

    def _require_right_results(self) -> None:
        """That what the specification computes, where all compares equal, is what the proof writes."""
        wanted = {lines.BACKWARD: [GRADIENT], lines.UPDATE: list(_next)}
        for (line, symbols), first in product(wanted.items(), FIRSTS):
            if lines.computed(line, self.l.size, first) != [{(s, (KEEP,)): 1} for s in symbols]:
                raise KernelError(f"{line.name} computes another value than it is said to")

    # ---------------------------------------------------------------- where there are devices
    def exists(self, f: int, place: Offset) -> Bool:
        """Whether there are devices at a place."""
        return self.l.size > len(NAMED[f]) if place is OTHER else BoolVal(place in NAMED[f])

    def _exists_at(self, f: Any, p: Any) -> Bool:
        """Whether there are devices at a place that is a term."""
        at = {
            g: cases(p, {PLACES[q]: self.exists(g, q) for q in (*NAMED[g], OTHER)}, BoolVal(False))
            for g in FIRSTS
        }
        enough = Or(f == OWNER, self.l.size > FIRST)
        return And(enough, either(f, at))

    # ------------------------------------------------------------------ what is known
    def _known(self) -> Bool:
        """That the device at p sees nothing of what is not known."""
        by_first = {}
        for f in FIRSTS:
            checker = Checker(self.l.size, f, lines.schedule())
            form = lines.form(UNKNOWN, masked(self.l.x, f))
            found = []
            for place in (*NAMED[f], OTHER):
                seen = [Implies(there, v == 0) for there, v in checker.sees(form, place)]
                found.append(Implies(self.l.p == PLACES[place], And(*seen)))
            by_first[f] = And(*found)
        return either(self.l.f, by_first)

    def _counted(self, known_at_is: Theorem) -> Theorem:
        """Where it sees nothing of it, nothing of it counts."""
        parts, uses = [], []
        for d, owner in CASES:
            f, p = literal(first_of, owner), literal(place_of, d, owner)
            said, part = (
                known_at_is.at(f=f, p=p),
                self.l.part_is.at(f=f, p=p, **self.l.viewed(self.l.alike)),
            )
            enough = self.l.size >= len({d, owner, 0})
            parts.append(Implies(And(said.goal.args[0], enough), part.goal.args[0] == 0))
            uses += [said, part]
        return self.l.proved("what_is_known_counts_nothing", parts, uses)

    # ------------------------------------------------------------------- comparisons
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
                        if found.setdefault((rule, f, place), said) is not said:
                            raise KernelError(
                                f"{need.name}: {symbol} is not compared as by other needs"
                            )
        return found

    def _candidates(self, d: int, owner: int) -> Iterator[tuple[Bool, Sequence[Any]]]:
        """In a case that stands for others, who may have a value alone: if there is one, its views."""
        for c in (d, owner, 0):
            yield BoolVal(True), [RealVal(int(v)) for v in (c == d, 1, c == owner, c == 0)]
        yield self.l.size > len({d, owner, 0}), (ZERO, ONE, ZERO, ZERO)

    def _means(self, rule: str) -> Theorem:
        """A comparison comes out equal at a place if and only if the amounts do that are seen there."""
        l, amount = self.l, ONE if rule in (ONCE, SUMMED) else ZERO
        parts: list[Bool] = []
        uses: list[Theorem] = []
        for d, owner in CASES:
            f, p = literal(first_of, owner), literal(place_of, d, owner)
            said = self.rule_is[rule].at(f=f, p=p)
            uses.append(said)
            seen = [(BoolVal(True), l.alike)] if rule in SAME_ON_ALL else self._candidates(d, owner)
            right = []
            for there, views in seen:
                part = l.part_is.at(f=f, p=p, **l.viewed(views))
                uses.append(part)
                right.append(Implies(there, part.goal.args[0] == amount))
            enough = l.size >= len({d, owner, 0})
            parts.append(Implies(enough, said.goal.args[0] == And(*right)))
        return l.proved(f"what_is_{rule}", parts, uses)

    def _shown_by(self) -> tuple[Any, Theorem]:
        """A device whose value alone shows that a form has another amount than is wanted."""
        l, d, i = self.l, self.l.d, self.l.i  # i is the owner here
        at = first_of(i), place_of(d, i)
        found = If(
            And(i != 1, d != 1),
            IntVal(1),
            If(And(i != 2, d != 2), IntVal(2), IntVal(3)),
        )
        for device in (IntVal(0), i, d):
            views = (indicator(device == d), ONE, indicator(device == i), indicator(device == 0))
            found = If(l.part(*at, *l.x, *views) != self.wanted, device, found)
        return self.k.define("shown_by", [d, i, self.wanted, *l.x], found)

    def shows(self, rule: str) -> Theorem:
        """Where a comparison comes out unequal, that device's value does show it."""
        l, d, i = self.l, self.l.d, self.l.i
        amount = ONE if rule == SUMMED else ZERO
        c = self.shown_by(d, i, amount, *l.x)
        views = (indicator(c == d), ONE, indicator(c == i), indicator(c == 0))
        at = first_of(i), place_of(d, i)
        return self.k.prove(
            f"somebody_shows_{rule}",
            And(c >= 0, c < l.n, l.part(*at, *l.x, *views) != amount),
            [d >= 0, d < l.n, i >= 0, i < l.n, Not(self.rules[rule](*at, *l.x))],
            [self.shown_by_is.at(wanted=amount), self.means[rule]],
        )

    def _seen(self) -> Theorem:
        """What a device sees of a value that all have once is all that it has of any of them."""
        l, k, t, b, s, d, i, j = self.l, self.k, *self.variables()
        owner, form = l.owner(j), l.form(t, b, s, first_of(l.owner(j)))
        more = k.reals("more_own more_sum more_owners more_firsts")
        added: list[Bool] = []
        uses: list[Theorem] = []
        for case in CASES:
            f, p = literal(first_of, case[1]), literal(place_of, *case)
            sums = [v + w for v, w in zip(l.views, more, strict=True)]
            parts = [l.part_is.at(f=f, p=p, **l.viewed(v)) for v in (l.views, more, sums)]
            first, second, both = (each.goal.args[0] for each in parts)
            added.append(both == first + second)
            uses += parts
        additive = l.proved("parts_add_up", added, uses)
        so_far = [
            indicator(device < i) if device is not None else ToReal(i)
            for device in (d, None, owner, IntVal(0))
        ]
        nothing = dict.fromkeys(map(str, l.views), ZERO)
        names = map(str, more)
        return k.induct(
            "what_is_seen_is_of_all",
            i,
            self.seen(t, b, s, d, j, i) == l.at_device(d, owner, form, so_far),
            [d >= 0],
            base=[
                self.seen.start,
                l.mesh.some,
                l.part_is.at(f=first_of(owner), p=place_of(d, owner), **l.as_read(form), **nothing),
            ],
            step=[
                self.seen.next,
                l.amount_is,
                additive.at(
                    **l.as_read(form),
                    **l.viewed(so_far),
                    **dict(zip(names, l.one_of(i, d), strict=True)),
                ),
            ],
        ).at(i=l.n)

    def _passing(self, state: bool) -> tuple[Any, Theorem]:
        """That a form compares equal at a place: with state m, or with the gradient of step u."""
        l = self.l
        said = {rule: self.rules[rule](l.f, l.p, *l.form(l.t, l.b, l.s, l.f)) for rule in RULES}
        compared = said[ABSENT]
        if not state:
            compared = If(l.is_of_step(l.s, l.u), said[SUMMED], compared)
        compared = If(self.is_state(l.s), said[CANCELLED], compared)
        if state:
            compared = If(l.s == l.m, said[ONCE], compared)
        params = [l.f, l.p, l.t, l.b, l.s, l.m if state else l.u]
        name = "state" if state else "gradient"
        return self.k.define(f"form_equals_{name}", params, compared)

    def form_passes(self, t: Any, b: Any, f: Any, p: Any, state: Any, u: Any, s: Any) -> Bool:
        """That the form of an original value compares equal at a place; and that all is known there."""
        known = self.known_at(f, p, *self.l.not_known(t, b, f))
        if state is None:
            return And(known, self.form_equals_gradient(f, p, t, b, s, u))
        return And(known, self.form_equals_state(f, p, t, b, s, state))
