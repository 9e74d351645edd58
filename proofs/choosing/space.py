"""P2, P3: the realisable placements of a batch axis, their classes of cost, and what is best.

Costs are compared for N >= 2 devices that divide Psi, so a slice is 1/N of the whole, and any
micro-steps and bytes w, g, K per element. `s` is that slice; it and `m` are real variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from proofs.choosing.realisable import name_of
from proofs.claim import claim
from proofs.tools.encoding import Symbolic
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, BoolVal, Implies, Not, Or, RealVal
from spec.choosing.regimes import REGIMES, Kept, Regime, placement_of
from spec.choosing.space import (
    ACTIVATION_MODES,
    Cost,
    CostForm,
    Point,
    classes,
    closed_form,
    cost,
    cost_form,
    dominance,
    dominates,
    frontier,
    realisable,
    sum_of,
)
from spec.costs.memory import Sizes
from spec.models.states import BytePolicy
from spec.plans.modes import Mode
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES

AT_ONCE = 3  # listed classes that one obligation speaks of


# ------------------------------------------------------------------ costs and frontier
class Symbols:
    """A parameter: its slice s = 1/N, micro-steps m, and bytes w, g, K, as real variables."""

    def __init__(self, k: Kernel, regime: Regime) -> None:
        self.kernel, self.regime = k, regime
        self.costs: dict[CostForm | str, Cost] = {}
        self.dominances: dict[tuple[CostForm | str, CostForm | str], Any] = {}
        self.s, self.w, self.g = k.reals("s w g")
        self.m = k.reals("m") if regime.several else RealVal(1)
        self.k = RealVal(0) if regime.optimizer is Kept.NO_STATE else k.reals("opt")
        sizes = [self.s > 0, self.w > 0, self.g > 0]
        sizes += [self.m >= 2] if regime.several else []
        sizes += [] if regime.optimizer is Kept.NO_STATE else [self.k > 0]
        # of the slice one bound will do for some
        self.weaker, self.given = [And(*sizes)], [And(*sizes, 2 * self.s <= 1)]

    def cost(self, name: CostForm | str) -> Cost:
        """The cost of a class, or of one of its placements, for each parameter."""
        if name not in self.costs:
            form = cost_form(name, self.regime) if isinstance(name, str) else name
            widths = (self.w, self.g, self.k)
            self.costs[name] = form.at(Point(RealVal(1), self.s, self.m, widths))
        return self.costs[name]

    def assigned(self, values: Iterable[Fraction | int]) -> list[tuple[Any, Any]]:
        """Values for the slice, micro-steps and bytes."""
        symbols = (self.s, self.m, self.w, self.g, self.k)
        return [(x, RealVal(v)) for x, v in zip(symbols, values, strict=True)]

    def dominates(self, better: CostForm | str, form: CostForm | str) -> Any:
        """That one class dominates another."""
        if (better, form) not in self.dominances:
            holds = _all(dominance(self.cost(better), self.cost(form)))
            self.dominances[better, form] = holds
        return self.dominances[better, form]

    def dominated(self, form: CostForm | str, by: Iterable[str]) -> Any:
        """That one of some classes dominates another."""
        return Or(*(self.dominates(better, form) for better in by))


def _all(claims: Iterable[Any]) -> Any:
    return And(*claims)


@claim("P2")
def equal_costs_and_what_is_best(k: Kernel) -> tuple[Theorem, ...]:
    """The classes of equal cost of the realisable placements, and the Pareto frontier among them.

    In each regime every class that is not listed is dominated by a listed one, for every N >= 2, k, w,
    g and K; and a listed one is on the frontier if and only if none of its rivals dominates it, which
    happens. (Claim P2)
    """
    _counted()
    _compared()
    theorems = [_strict_order(k.part("order")), _scaled(k.part("scaled")), *_forms(k.part("forms"))]
    for regime in REGIMES:
        symbols = Symbols(k.part(name_of(regime)), regime)
        theorems += [
            _others_are_dominated(symbols),
            *_rivals_suffice(symbols),
            _each_is_best_somewhere(symbols),
        ]
    return tuple(theorems)


# of classes, and of those that are listed, by regime
COUNTS = dict(zip(REGIMES, ((62, 7), (47, 21), (25, 5), (19, 15), (20, 4), (15, 12)), strict=True))


def _counted() -> None:
    """Every realisable placement is in a class, and there are as many classes as the claim says."""
    for regime in REGIMES:
        found = classes(regime)
        placed = {(*m[:3], a) for modes in found.values() for m in modes for a in ACTIVATION_MODES}
        listed = [m[:3] for modes in found.values() for m in modes]
        if placed != set(realisable(regime)) or len({*listed}) < len(listed):
            raise KernelError(f"P2: {regime}: the classes are not of the realisable placements")
        sums = [each for form in found for each in (form.resting, form.sent, form.host)]
        if any(sum_of(reversed(each.terms)) != each for each in sums):
            raise KernelError(f"P2: {regime}: a sum is another one in another order")
        if (len(found), len(frontier(regime))) != COUNTS[regime]:
            raise KernelError(f"P2: {regime}: {len(found)} classes, {len(frontier(regime))} listed")


def _compared() -> None:
    """A cost dominates another if it is another, and nowhere more; and forms are costs, of numbers."""
    for one, other in product(product(range(2), repeat=3), repeat=2):
        better = one != other and all(a <= b for a, b in zip(one, other, strict=True))
        if dominates(Cost(*one), Cost(*other)) is not better:
            raise KernelError(f"P2: {one} dominates {other}: {not better}")
    sizes = Sizes(6, {BATCH: 3}, BytePolicy(2, 3, 5))
    for modes, *_ in [*classes(REGIMES[1]).values()][::9]:
        of, alone = (closed_form(placement_of(modes)).at(Point(n, 2, 4, (2, 3, 5))) for n in (6, 1))
        found = cost(placement_of(modes), sizes, 4)
        if found != Cost(of.resting, of.sent * 4, of.host) or alone.sent != of.sent:
            raise KernelError(f"P2: {modes} costs {found}, by its form {of}")


def _strict_order(k: Kernel) -> Theorem:
    """Dominance is irreflexive and transitive: what is dominated is so by an undominated class."""
    a, b, c = (Cost(*k.reals(f"{x}_rests {x}_sends {x}_moves")) for x in "abc")
    ab, bc, ac = (_all(dominance(x, y)) for x, y in ((a, b), (b, c), (a, c)))
    goal = And(Not(_all(dominance(a, a))), Implies(And(ab, bc), ac))
    return k.prove("dominance_is_a_strict_order", goal)


def _scaled(k: Kernel) -> Theorem:
    """Dominance is the same of bytes per parameter, and of what is sent in units of N - 1 slices."""
    a, b = (Cost(*k.reals(f"{x}_rests {x}_sends {x}_moves")) for x in "ab")
    psi, unit = k.reals("psi unit")
    scaled = (Cost(psi * x.resting, unit * x.sent, psi * x.host) for x in (a, b))
    goal = _all(dominance(a, b)) == _all(dominance(*scaled))
    return k.prove("sizes_in_common_do_not_matter", goal, given=[psi > 0, unit > 0])


def _forms(k: Kernel) -> list[Theorem]:
    """What a realisable placement costs is the form of its class, with any slice c, padded or not."""
    psi, c, n, m, *widths = k.reals("psi c n m w g opt")
    sizes = Sizes(psi, {BATCH: n}, BytePolicy(*widths), None, Symbolic([(psi, c)]))
    placed = sorted(
        {modes for r in REGIMES for found in classes(r).values() for modes in found}, key=str
    )
    equal: dict[Mode, list[Any]] = {}
    for modes in placed:
        placement = placement_of(modes)
        derived = cost(placement, sizes, m)
        form = closed_form(placement)
        at, of_sent = (Point(whole, c, m, tuple(widths)) for whole in (psi, (n - 1) * c))
        equal.setdefault(modes[0], []).append(
            And(
                derived.resting == form.resting.at(at),
                derived.sent == form.sent.at(of_sent),
                derived.host == form.host.at(at),
            )
        )
    return [k.prove(f"costs_of_{mode.name.lower()}_parameters", _all(e)) for mode, e in equal.items()]


def _others_are_dominated(s: Symbols) -> Theorem:
    """By one listed class for all sizes, or by one or another of a few. Of one micro-step no class
    speaks of several.
    """
    regime, best = s.regime, frontier(s.regime)
    forms = (of for form in classes(regime) for of in (form.resting, form.sent, form.host))
    if not regime.several and any(term.repeated for of in forms for term, _ in of.terms):
        raise KernelError(f"{regime}: a class's form has a number of micro-steps")
    listed = {cost_form(name, regime) for name in best}
    others = (form for form in classes(regime) if form not in listed)
    goal = _all(s.dominated(form, _dominators(form, regime)) for form in others)
    return s.kernel.prove("others_are_dominated", goal, given=s.weaker)


def _dominators(form: CostForm, regime: Regime) -> list[str]:
    """Listed classes, at each sample one that dominates: what the solver is then asked of all sizes."""
    costs = [(form.at(at), best) for at, best in samples(regime)]
    beats = {
        name: {i for i, (mine, best) in enumerate(costs) if dominates(best[name], mine)}
        for name in frontier(regime)
    }
    left, chosen = {*range(len(costs))}, list[str]()
    while left:
        name = max(beats, key=lambda name: len(beats[name] & left))
        if not beats[name] & left:
            raise KernelError(f"nothing on the frontier dominates {form}")
        left -= beats[name]
        chosen.append(name)
    return chosen


@cache
def samples(regime: Regime) -> list[tuple[Point, dict[str, Cost]]]:
    """Sizes of all sorts, and what each listed class costs there."""
    kept = (0,) if regime.optimizer is Kept.NO_STATE else (1, 4, 30)
    widths = product((1, 3, 6), (1, 3, 6), kept)
    sizes = product((2, 4, 64), (2, 20) if regime.several else (1,), widths)
    points = [Point(n, 1, m, bytes_) for n, m, bytes_ in sizes]
    forms = {name: cost_form(name, regime) for name in frontier(regime)}
    return [(at, {name: form.at(at) for name, form in forms.items()}) for at in points]


def _rivals_suffice(s: Symbols) -> list[Theorem]:
    """A listed class that any other dominates is dominated by one of its rivals."""
    best = frontier(s.regime)
    theorems: list[Theorem] = []
    for names in _few(best):
        claims = []
        for name in names:
            others = [other for other in best if other not in (name, *best[name])]
            claims.append(Implies(s.dominated(name, others), s.dominated(name, best[name])))
        theorems.append(s.kernel.prove(f"rivals_suffice_{len(theorems)}", _all(claims), given=s.given))
    return theorems


def _few(items: Iterable[str]) -> list[list[str]]:
    """Items in groups that one obligation can speak of."""
    left = list(items)
    groups = -(-len(left) // AT_ONCE)
    return [left[i::groups] for i in range(groups)]


def _each_is_best_somewhere(s: Symbols) -> Theorem:
    """A sample for each listed class where nothing dominates it."""
    best = frontier(s.regime)
    claims = []
    for name in best:
        at = next(
            at
            for at, costs in samples(s.regime)
            if not any(dominates(costs[rival], costs[name]) for rival in best[name])
        )
        values = (Fraction(at.slice, at.whole), at.micro_steps, *at.widths)
        claims.append(substitute(Not(s.dominated(name, best)), *s.assigned(values)))
    return s.kernel.prove("each_is_best_somewhere", _all(claims))


# ------------------------------------------------------------------------- the stages
@claim("P3")
def where_the_stages_stand(k: Kernel) -> tuple[Theorem, ...]:
    """Which of DP and ZeRO-1/2/3 dominates which, and when one is on the frontier.

    For N >= 2 and m micro-steps: ZeRO-1 dominates DP if and only if w <= g, or w < g if K = 0; ZeRO-2
    dominates ZeRO-1 if and only if m = 1, and DP if and only if m = 1 and w <= g; ZeRO-3 dominates DP
    if and only if m = 1 and 2w <= g, and ZeRO-1 and ZeRO-2 never; no stage dominates a later one, but
    DP does ZeRO-1 if K = 0 and w > g. With one micro-step none is on the frontier. With several and a
    copy of the weights in Omega, DP and ZeRO-3 are not: ZeRO-3 that casts its parameters from that copy
    sends as much and rests in less; ZeRO-1 and ZeRO-2 are where K(N-1) > wN and w < 2g, and the theorem
    says where exactly. Without a copy, ZeRO-3 is, ZeRO-1 and ZeRO-2 are if and only if w <= K + g, and
    DP if and only if w > g; for K = 0, DP if and only if w >= g, ZeRO-1 and ZeRO-2 if and only if
    w <= g. (Claim P3)
    """
    return (
        _among_themselves(k.part("stages")),
        _held_and_offloaded(k.part("variants")),
        *(_on_the_frontier(Symbols(k.part(name_of(regime)), regime)) for regime in REGIMES),
    )


STAGES = ("dp", "zero1", "zero2", "zero3")


class _Named(Symbols):
    """The same for named strategies, with any number of micro-steps from 1 on, and any K from 0 on."""

    def __init__(self, k: Kernel) -> None:
        super().__init__(k, Regime(Kept.MASTER_COPY, True))
        some_steps = Or(self.m == 1, self.m >= 2)
        widths = (self.w > 0, self.g > 0, self.k >= 0)
        sizes = And(2 * self.s <= 1, some_steps, *widths)
        self.weaker, self.given = [sizes], [And(self.s > 0, sizes)]

    def beats(self, a: str, b: str) -> Any:
        """That one strategy dominates another."""
        one, other = (self.cost(closed_form(STRATEGIES[name])) for name in (a, b))
        return _all(dominance(one, other))


def _among_themselves(k: Kernel) -> Theorem:
    s = _Named(k)
    once = s.m == 1
    when = {
        ("zero1", "dp"): And(s.w <= s.g, Or(s.w < s.g, s.k > 0)),
        ("dp", "zero1"): And(s.w > s.g, s.k == 0),
        ("zero2", "dp"): And(once, s.w <= s.g),
        ("zero2", "zero1"): once,
        ("zero3", "dp"): And(once, 2 * s.w <= s.g),
    }
    claims = [s.beats(a, b) == when.get((a, b), BoolVal(False)) for a, b in product(STAGES, STAGES)]
    return k.prove("dominance_among_the_stages", _all(claims), given=s.weaker)


def _held_and_offloaded(k: Kernel) -> Theorem:
    """FSDP that holds its parameters, offloaded ZeRO-2, and cast parameters, beside the stages."""
    s = _Named(k)
    once = s.m == 1
    cast = cost_form("M S S", s.regime)
    claims = [
        s.beats("fsdp-hold", "zero3"),
        s.beats("fsdp-hold", "zero2") == once,
        s.beats("fsdp-hold", "zero1") == once,
        s.beats("fsdp-hold", "dp") == And(once, s.w <= s.g),
        s.beats("fsdp-hold", "zero-offload") == And(once, (s.w + s.g + s.k) * s.s <= s.w),
        *(Not(s.beats("zero-offload", name)) for name in (*STAGES, "fsdp-hold")),
        *(Not(s.beats(name, "zero-offload")) for name in STAGES),
        _all(dominance(s.cost(cast), s.cost(closed_form(STRATEGIES["zero3"])))),
        Implies(once, s.beats("fused-update", "dp")),
    ]
    return k.prove("dominance_of_variants", _all(claims), given=s.given)


def _on_the_frontier(s: Symbols) -> Theorem:
    """Where nothing in the space dominates a stage."""
    w, g, opt, m, rest = s.w, s.g, s.k, s.m, 1 - s.s
    never, always = BoolVal(False), BoolVal(True)

    def strictly(a: Any, b: Any, c: Any, d: Any) -> Any:
        """a <= b and c <= d, and not both equal."""
        return And(a <= b, c <= d, a + c < b + d)

    when = dict.fromkeys(STAGES, never)
    if s.regime == Regime(Kept.MASTER_COPY, True):
        replicated = strictly(g, w, opt * rest, w)  # optimizer state, and nothing lost by it
        when["zero1"] = Not(Or(replicated, strictly(m * g, w, (opt - g) * rest, w)))
        when["zero2"] = Not(Or(replicated, (opt + g) * rest <= w))
    elif s.regime == Regime(Kept.MOMENTS, True):
        when = {"dp": w > g, "zero1": w <= opt + g, "zero2": w <= opt + g, "zero3": always}
    elif s.regime == Regime(Kept.NO_STATE, True):
        when = {"dp": w >= g, "zero1": w <= g, "zero2": w <= g, "zero3": always}
    best = frontier(s.regime)
    claims = [
        Not(s.dominated(closed_form(STRATEGIES[name]).restricted_to(s.regime), best)) == when[name]
        for name in STAGES
    ]
    usual = Implies(And(opt * rest > w, w < 2 * g), And(when["zero1"], when["zero2"]))
    if s.regime == Regime(Kept.MASTER_COPY, True):
        claims.append(usual)
    return s.kernel.prove("stages_on_the_frontier", _all(claims), given=s.given)
