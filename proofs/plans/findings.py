"""What the checker finds in places, as formulas: how often a device has original values."""

from __future__ import annotations

from typing import Any

from proofs.checking.operation_lines import NotCovered
from proofs.checking.symbols import CONTRIBUTION, MOMENT, NORM, TOKENS, WEIGHT, ZERO, indicator
from proofs.plans.listed_language import ListedLanguage
from proofs.plans.listing import EARLIER, WHOLE_NORM, Finding
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, Implies, IntVal, Not, Or
from spec.checking.symbols import EACH, EVERY, Symbol
from spec.devices.operators import ALL, IDENTITY, Word

STATE = {"weight": WEIGHT, "moment": MOMENT, WHOLE_NORM: NORM}
NAMES = {"gradient": "gradients", "tied": "tied gradients", "weight": "weights", "moment": "moments"}
OWNER = 0


class Findings:
    """Each finding is a formula of its own name, of how often device d has device i's value s there.

    Of the step u and the micro-step m that it is found in, and of how often what is not known is there.
    """

    def __init__(self, l: ListedLanguage) -> None:
        self.l = l
        self.often, self.not_known = l.k.reals("often not_known")
        self.known: dict[Finding, tuple[Any, Theorem]] = {}
        self.known_anywhere: dict[Finding, Theorem] = {}
        self.known_means: dict[tuple[Any, ...], Theorem] = {}

    def _formula(self, found: Finding) -> tuple[Any, Theorem]:
        if found not in self.known:
            l = self.l
            here = And(self.often == self.amount(found, l.u, l.m), self.not_known == 0)
            where = self.where(found)
            self.known[found] = l.k.define(
                f"finds_{len(self.known)}",
                [self.often, self.not_known, l.u, l.m, l.s, l.d, l.i, l.j],
                Implies(And(*where), here) if where else here,
            )
        return self.known[found]

    def holds(self, found: Finding, t: Any, place: int) -> Bool:
        """Whether device d has that in a place before line t."""
        l, p = self.l, IntVal(place)
        has = l.amount(t, p, l.s, l.d, l.i, l.j), l.unknowns(t, p, l.d, l.j)
        formula: Bool = self._formula(found)[0](*has, l.step(t), l.turn(t), l.s, l.d, l.i, l.j)
        return formula

    def means(self, found: Finding, t: Any, place: int, d: Any, i: Any) -> Theorem:
        """What that says."""
        key = (found, id(t), place, id(d), id(i))  # terms are interned
        if key not in self.known_means:
            self.known_means[key] = self._anywhere(found).at(t=t, b=IntVal(place), d=d, i=i)
        return self.known_means[key]

    def _anywhere(self, found: Finding) -> Theorem:
        """What it says of place b before line t."""
        if found not in self.known_anywhere:
            l, meaning = self.l, self._formula(found)[1]
            often, not_known = l.amount(l.t, l.b, l.s, l.d, l.i, l.j), l.unknowns(l.t, l.b, l.d, l.j)
            at = meaning.at(often=often, not_known=not_known, u=l.step(l.t), m=l.turn(l.t))
            self.known_anywhere[found] = at
        return self.known_anywhere[found]

    def where(self, found: Finding) -> list[Bool]:
        """Whether device d is one of those of which something is found."""
        l, mesh = self.l, self.l.mesh
        axes = map(IntVal, range(len(found.where[0])))
        own = [mesh.along(l.d, x) == mesh.owner_along(x, l.j) for x in axes]
        others = []
        for position in found.others:
            places = zip(own, position, strict=True)
            others.append(And(*(is_own if at == OWNER else Not(is_own) for is_own, at in places)))
        return [*(own[x] for x in found.owned), *([Or(*others)] if others else [])]

    def coordinates(self, found: Finding) -> list[int]:
        """The axes along which it depends on where device d is."""
        axes = range(len(found.where[0]))
        of_terms = {
            x
            for (symbol, word), _ in found.terms
            for x, operator in enumerate(word)
            if operator.to == OWNER or (operator == IDENTITY and symbol.kind not in STATE)
        }
        return [x for x in axes if found.is_along(x) or x in of_terms]

    def amount(
        self, found: Finding, u: Any, m: Any, summed: int | None = None, upto: Any = None
    ) -> Any:
        """How often device d has device i's value s there; of a sum over an axis up to a coordinate."""
        terms = []
        for (symbol, word), times in found.terms:
            of = self._of_state(symbol, u) if symbol.kind in STATE else self._of_step(symbol, u, m)
            moved = self._moved(symbol, word, summed, upto)
            here = indicator(And(*of, *(said for x, said in moved if x not in found.owned)))
            terms.append(here if times == 1 else self.l.real(times) * here)
        return sum(terms[1:], terms[0]) if terms else ZERO

    def _of_state(self, symbol: Symbol, u: Any) -> list[Bool]:
        """Whether s is a state, that of the first device."""
        l = self.l
        return [l.i == 0, l.s == l.state(STATE[symbol.kind], u + symbol.step)]

    def _of_step(self, symbol: Symbol, u: Any, m: Any) -> list[Bool]:
        """Whether s is what a backward of step u computes, in such a micro-step, of such a use; or what
        is counted there.
        """
        l, s, which = self.l, self.l.s, symbol.which
        of, first = l.which(s), l.turns if symbol.kind == "tied" else IntVal(0)
        micro_steps = {
            EACH: [of == first + m],
            EARLIER: [of >= first, of < first + m],
            EVERY: [of >= first, of < first + l.turns],
        }
        which_one = [of == first + which] if isinstance(which, int) else micro_steps[which]
        what = TOKENS if symbol.kind == "tokens" else CONTRIBUTION
        return [l.what(s) == what, l.time(s) == u, *which_one]

    def _moved(
        self, symbol: Symbol, word: Word, summed: int | None, upto: Any
    ) -> list[tuple[int | None, Bool]]:
        """Whether device d gets it from device i; and along which axis it says that d is an owner."""
        l = self.l
        along, owner = l.mesh.along, l.mesh.owner_along
        state = symbol.kind in STATE
        said: list[tuple[int | None, Bool]] = []
        for x, operator in enumerate(word):
            a = IntVal(x)
            if (state and operator.of == ALL) or (x == summed and (state or operator != IDENTITY)):
                raise NotCovered(
                    f"sums of {NAMES.get(symbol.kind, symbol.kind)} that devices have alike"
                )
            if operator.to == OWNER:
                said.append((x, along(l.d, a) == owner(a, l.j)))
            if not state and operator.of == OWNER:
                said.append((None, along(l.i, a) == owner(a, l.j)))
            if not state and operator == IDENTITY:
                own = along(l.i, a) < upto if x == summed else along(l.i, a) == along(l.d, a)
                said.append((None, own))
        return said
