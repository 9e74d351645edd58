"""The rules by which theorems are made. What is left to show for a step is computed from the step.

A theorem reads "under these hypotheses, for all values of the variables, `given` implies `goal`".
Besides hypotheses it may rest on induction and on the real numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from psem_check.forms import FALSE, Forms
from psem_check.proofs import check_proof
from psem_check.reader import Graph, member, plain
from psem_check.terms import BOOL, INT, REAL, Rejected, Term, named

SHOWN = ("prove", "induct", "extend", "refute")
RULES = ("define", "recursion", "choose", "suppose", "axiom", "instance", *SHOWN)
Under: TypeAlias = frozenset[int | str]


@dataclass(frozen=True)
class Theorem:
    """What a step concludes; `under` are hypotheses, by number, and names of axioms of reasoning.

    `defines`: symbols. Of a refutation `given` and `goal` are of the claim, which `values` of its
    variables make false.
    """

    name: str
    rule: str
    given: tuple[Term, ...]
    goal: Term
    under: Under = frozenset()
    defines: tuple[int, ...] = ()
    values: tuple[tuple[Term, Term], ...] = ()

    @property
    def formulas(self) -> tuple[Term, ...]:
        """What it says, part by part."""
        return (*self.given, self.goal)


@dataclass
class Part:
    """One namespace: its symbols, and its theorems."""

    graph: Graph
    variables: frozenset[int]
    symbols: frozenset[int]
    theorems: list[Theorem] = field(default_factory=list)
    obligations: int = 0
    _met: set[int] = field(default_factory=set)  # symbols in any step so far

    def __post_init__(self) -> None:
        self.terms = self.graph.terms

    def take(self, rule: str, **given: Any) -> None:
        """Go one step further. Raises Rejected if its rule does not allow it."""
        if rule not in RULES:
            raise Rejected(f"{rule} is not a rule")
        plain(given.get("name", "unnamed"))
        getattr(self, f"_{rule}")(**given)

    # ------------------------------------------------------------------ definitions
    def _define(self, name: str, symbol: int, params: list[Term], body: Term) -> None:
        """symbol(params) = body."""
        self._closed(body, params)
        equation = self.terms.equal(self._new(symbol, params), body)
        self._conclude(Theorem(name, "define", (), equation, defines=(symbol,)))

    def _recursion(
        self, name: str, symbol: int, params: list[Term], index: Term, base: Term, body: Term
    ) -> None:
        """symbol(params, 0) = base, and symbol(params, index + 1) = body from index 0 on.

        The body may apply the symbol at the index only.
        """
        terms = self.terms
        zero, following, since = self._steps(index)
        self._closed(base, params)
        start = terms.equal(self._new(symbol, [*params, zero]), base)
        self._closed(body, [*params, index])
        for here in terms.below([body]):
            if terms.symbol_of(here) == symbol and terms.arguments[here][-1:] != (index,):
                raise Rejected("the body may use the value before it only")
        then = terms.equal(terms.make(symbol, *params, following), body)
        by = frozenset(["induction"])
        self._conclude(Theorem(f"{name} at 0", "recursion", (), start, by, (symbol,)))
        self._conclude(Theorem(f"{name} next", "recursion", (since,), then, by, (symbol,)))

    def _choose(
        self, name: str, symbol: int, found: int, params: list[Term], witness: Term, body: Term
    ) -> None:
        """symbol(params) if some witness makes the body true; found(params) is then one."""
        self._closed(body, [*params, witness])
        both = symbol, found
        holds, one = (self._new(each, params) for each in both)
        serves = self.terms.substitute(body, {witness: one})
        self._conclude(Theorem(f"{name} shown", "choose", (body,), holds, defines=both))
        self._conclude(Theorem(f"{name} found", "choose", (holds,), serves, defines=both))

    def _suppose(self, name: str, formula: Term, rule: str = "suppose") -> None:
        """A hypothesis, for all values of the variables in it."""
        if Forms(self.terms).of(formula) == FALSE:
            raise Rejected("it cannot hold")
        under = frozenset([len(self.theorems)])
        self._conclude(Theorem(name, rule, (), formula, under))

    def _axiom(self, name: str, formula: Term) -> None:
        """A hypothesis that is called an axiom."""
        self._suppose(name, formula, "axiom")

    # ------------------------------------------------------------------ rules
    def _instance(self, of: int, values: list[list[Term]]) -> None:
        """A theorem with terms in place of variables."""
        (theorem,) = self._used([of])
        chosen = self._chosen(values)
        given = tuple(self.terms.substitute(g, chosen) for g in theorem.given)
        goal = self.terms.substitute(theorem.goal, chosen)
        self._conclude(Theorem(theorem.name, "instance", given, goal, theorem.under))

    def _prove(
        self, name: str, given: list[Term], goal: Term, uses: list[int], proof: list[Any]
    ) -> None:
        """`given` and what is used imply the goal: one obligation."""
        under = self._show(name, uses, [], self.terms.implication(given, goal), proof)
        self._conclude(Theorem(name, "prove", tuple(given), goal, under))

    def _induct(
        self,
        name: str,
        index: Term,
        given: list[Term],
        goal: Term,
        first: list[int],
        then: list[int],
        at: list[list[list[Term]]],
        proof: list[Any],
    ) -> None:
        """For every index from 0 on, `given` implies the goal: an obligation at 0, and one from the
        index to the next, which may use what is shown, of that index, with terms for other variables.
        `proof`: one of each.
        """
        at_zero, at_next = proof
        claim = self.terms.implication(given, goal)
        zero, following, since = self._steps(index)
        known = [since]
        for values in map(self._chosen, at):
            if index in values:
                raise Rejected("the induction hypothesis is of the index alone")
            known.append(self.terms.substitute(claim, values))
        start, next_ = (self.terms.substitute(claim, {index: place}) for place in (zero, following))
        under = self._show(f"{name} at 0", first, [], start, at_zero)
        under |= self._show(f"{name} next", then, known, next_, at_next)
        self._conclude(Theorem(name, "induct", (since, *given), goal, under | {"induction"}))

    def _extend(self, name: str, pointwise: int, index: Term) -> None:
        """Two arrays that agree at an arbitrary index are equal."""
        terms, (theorem,) = self.terms, self._used([pointwise])
        self._variables([index])
        sides = terms.arguments[theorem.goal]
        alike = terms.heads[theorem.goal] == "=" and all(
            terms.heads[side] == "select" and terms.arguments[side][1] == index for side in sides
        )
        if not alike:
            raise Rejected("not an equation of two arrays at the index")
        left, right = (terms.arguments[side][0] for side in sides)
        if index in terms.below([left, right, *theorem.given]):
            raise Rejected("the index is not arbitrary")
        goal = terms.equal(left, right)
        self._conclude(Theorem(name, "extend", theorem.given, goal, theorem.under))

    def _refute(self, name: str, given: list[Term], claim: Term, values: list[list[Term]]) -> None:
        """`given` does not imply the claim: with these values it is false, evaluated."""
        chosen = self._chosen(values)
        formula = self.terms.substitute(self.terms.implication(given, claim), chosen)
        if Forms(self.terms).of(formula) != FALSE:
            raise Rejected("its values do not refute it")
        self._conclude(Theorem(name, "refute", tuple(given), claim, values=(*chosen.items(),)))

    # ------------------------------------------------------------------ what the rules ask for
    def _conclude(self, theorem: Theorem) -> None:
        if any(self.terms.sorts[formula] != BOOL for formula in theorem.formulas):
            raise Rejected("not a formula")
        self._meets(theorem.formulas)
        self.theorems.append(theorem)

    def _show(
        self, name: str, uses: list[int], known: Sequence[Term], claim: Term, proof: Any
    ) -> Under:
        """Show that theorems, and what else is known, imply a claim: an obligation. What it rests on is
        what these rest on, and the real numbers if they are in it.
        """
        used = self._used(uses)
        facts = [self.terms.implication(theorem.given, theorem.goal) for theorem in used]
        facts += [*known, self.terms.negation(claim)]
        self._meets(facts)
        self.obligations += 1
        with named(f"the proof of {name}"):
            self.impossible(facts, proof)
        real = any(self.terms.sorts[term] == REAL for term in self.terms.below(facts))
        return Under().union(*(theorem.under for theorem in used), ["real-arithmetic"] if real else [])

    def impossible(self, facts: Sequence[Term], proof: Any) -> None:
        """Raise Rejected unless a proof shows that facts are impossible together."""
        check_proof(self.graph, facts, proof)

    def _used(self, numbers: Sequence[int]) -> list[Theorem]:
        """Theorems of this part; a counterexample is no fact to use."""
        found = [member(number, self.theorems) for number in numbers]
        if any(theorem.rule == "refute" for theorem in found):
            raise Rejected("a counterexample is not a fact to use")
        return found

    def _meets(self, terms: Iterable[Term]) -> set[int]:
        """The symbols in these terms, which are of this part, and not new any more."""
        symbols = self.terms.symbols_in(terms)
        if not self.symbols >= symbols:
            raise Rejected("a symbol of another part")
        self._met |= symbols
        return symbols

    def _closed(self, body: Term, params: Sequence[Term]) -> None:
        """All variables in a term are parameters."""
        self._variables(params)
        if self._meets([body]) & self.variables - self.terms.symbols_in(params):
            raise Rejected("variables are left open")

    def _new(self, symbol: int, params: Sequence[Term]) -> Term:
        """A symbol of which nothing is said yet, applied to parameters."""
        if symbol not in self.symbols or symbol in self._met or symbol in self.variables:
            raise Rejected(f"{self.terms.symbols[symbol].name} is not a new symbol")
        made = self.terms.make(symbol, *params)
        self._meets([made])
        return made

    def _variables(self, terms: Sequence[Term]) -> None:
        distinct = len({*terms}) == len(terms)
        if not distinct or not all(self.terms.symbol_of(t) in self.variables for t in terms):
            raise Rejected("not distinct variables")

    def _chosen(self, values: Sequence[Sequence[Term]]) -> dict[Term, Term]:
        """Terms for variables."""
        chosen = {variable: value for variable, value in values}  # noqa: C416  (of two members each)
        self._variables([variable for variable, _ in values])
        self._meets(chosen.values())
        return chosen

    def _steps(self, index: Term) -> tuple[Term, Term, Term]:
        """0, the index + 1, and that the index is not negative."""
        self._variables([index])
        if self.terms.sorts[index] != INT:
            raise Rejected("the index is no integer")
        zero, one = (self.terms.number(value, INT) for value in (0, 1))
        return zero, self.terms.make("+", index, one), self.terms.make(">=", index, zero)
