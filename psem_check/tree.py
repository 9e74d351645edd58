"""The rules by which theorems are made. What is left to show for a step is computed from the step.

A theorem reads "under these hypotheses, for all values of the variables, `given` implies `goal`".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psem_check.axioms import axiom
from psem_check.forms import FALSE, Forms
from psem_check.graphs import plain
from psem_check.terms import BOOL, INT, REAL, Rejected, Term, Terms

DEFINES = ("define", "recursion", "choose")
ASSUMES = ("suppose", "axiom")
RULES = (*DEFINES, *ASSUMES, "instance", "prove", "induct", "extend", "refute")


@dataclass(frozen=True)
class Hypothesis:
    """What is assumed, for all values of the variables in it."""

    name: str
    formula: Term
    axiom: str = ""


@dataclass(frozen=True)
class Theorem:
    """What a step concludes; `under` are numbers of hypotheses, and names of axioms of reasoning.

    Of a refutation `given` and `goal` are of the claim, which `values` of its variables make false.
    """

    name: str
    rule: str
    given: tuple[Term, ...]
    goal: Term
    under: frozenset[int | str] = frozenset()
    values: tuple[tuple[Term, Term], ...] = ()


@dataclass(frozen=True)
class Obligation:
    """What is left to show: that the facts are impossible together."""

    name: str
    facts: tuple[Term, ...]


@dataclass
class Part:
    """One namespace: its symbols, what is assumed in it, its theorems, and what is left to show."""

    terms: Terms
    variables: frozenset[int]
    symbols: frozenset[int]
    theorems: list[Theorem] = field(default_factory=list)
    hypotheses: list[Hypothesis] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    definitions: dict[int, list[Theorem]] = field(default_factory=dict)  # by what they define
    _names: set[str] = field(default_factory=set)
    _met: set[int] = field(default_factory=set)  # symbols in any step so far
    _said: set[int] = field(default_factory=set)  # in a definition, a hypothesis or an axiom

    def take(self, step: Mapping[str, Any]) -> None:
        """Go one step further. Raises Rejected if its rule does not allow it."""
        rule = step.get("rule")
        if rule not in RULES:
            raise Rejected(f"{rule} is not a rule")
        if rule != "instance":
            name = step["name"]
            if plain(name) in self._names:
                raise Rejected(f"{name} is not a new name")
            self._names.add(name)
        go: Callable[..., None] = getattr(self, f"_{rule}")
        go(**{key: value for key, value in step.items() if key != "rule"})

    # ------------------------------------------------------------------ definitions
    def _define(self, name: str, symbol: int, params: list[Term], body: Term) -> None:
        """symbol(params) = body."""
        self._parameters(params)
        self._closed(body, params)
        self._says([body])
        left = self._new(symbol, params)
        self._conclude(Theorem(name, "define", (), self.terms.equal(left, body)), symbol)

    def _recursion(
        self, name: str, symbol: int, params: list[Term], index: Term, base: Term, body: Term
    ) -> None:
        """symbol(params, 0) = base, and symbol(params, index + 1) = body from index 0 on.

        The body may apply the symbol at the index only.
        """
        terms = self.terms
        self._parameters([*params, index])
        self._integer(index)
        self._closed(base, params)
        self._closed(body, [*params, index])
        self._says([base])
        self._fresh(symbol)
        self._says([body], but=symbol)
        for here in terms.below([body]):
            if terms.symbol_of(here) == symbol and terms.arguments[here][-1:] != (index,):
                raise Rejected("the body may use the value before it only")
        start = terms.equal(terms.apply(symbol, *params, terms.number(0, INT)), base)
        then = terms.equal(terms.apply(symbol, *params, self._next(index)), body)
        self._meet([symbol])
        self._said.add(symbol)
        induction: frozenset[int | str] = frozenset(["induction"])
        self._conclude(Theorem(f"{name} at 0", "recursion", (), start, induction), symbol)
        since = (self._not_negative(index),)
        self._conclude(Theorem(f"{name} next", "recursion", since, then, induction), symbol)

    def _choose(
        self, name: str, symbol: int, found: int, params: list[Term], witness: Term, body: Term
    ) -> None:
        """symbol(params) if some witness makes the body true; found(params) is then one."""
        self._parameters([*params, witness])
        self._closed(body, [*params, witness])
        self._says([body])
        holds, one = self._new(symbol, params), self._new(found, params)
        if self.terms.sorts[holds] != BOOL or self.terms.sorts[one] != self.terms.sorts[witness]:
            raise Rejected("of other sorts")
        self._conclude(Theorem(f"{name} shown", "choose", (body,), holds), symbol)
        serves = self.terms.substitute(body, {witness: one})
        self._conclude(Theorem(f"{name} found", "choose", (holds,), serves), symbol)
        self.definitions[found] = self.definitions[symbol]

    def _suppose(self, name: str, variables: list[Term], formula: Term) -> None:
        """A hypothesis, for all values of the variables, which are all that are in it."""
        self._assume(name, variables, formula, "")

    def _assume(self, name: str, variables: list[Term], formula: Term, axiom: str) -> None:
        """A hypothesis, or an axiom of the list, by its name there."""
        self._parameters(variables)
        self._closed(formula, variables)
        self._formulas([formula])
        self._says([formula])
        if Forms(self.terms).of(formula) == FALSE:
            raise Rejected("it cannot hold")
        self.hypotheses.append(Hypothesis(name, formula, axiom))
        under: frozenset[int | str] = frozenset([len(self.hypotheses) - 1])
        self._conclude(Theorem(name, "axiom" if axiom else "suppose", (), formula, under))

    def _axiom(self, name: str, axiom_name: str, functions: list[int], variables: list[Term]) -> None:
        """An axiom of the list about a function of which nothing is said so far."""
        function, *others = functions
        if not self.symbols.issuperset(functions):
            raise Rejected("a symbol of another part")
        if not self.terms.symbols[function].arguments or function in self._said or function in others:
            raise Rejected("something is said of the function already")
        self._parameters(variables)
        self._assume(name, variables, axiom(self.terms, axiom_name, functions, variables), axiom_name)

    # ------------------------------------------------------------------ rules
    def _instance(self, of: int, values: list[list[Term]]) -> None:
        """A theorem with terms in place of variables."""
        theorem = self._used([of])[0]
        chosen = self._chosen(values)
        given = tuple(self.terms.substitute(g, chosen) for g in theorem.given)
        goal = self.terms.substitute(theorem.goal, chosen)
        self._conclude(Theorem(theorem.name, "instance", given, goal, theorem.under))

    def _prove(self, name: str, given: list[Term], goal: Term, uses: list[int]) -> None:
        """`given` and what is used imply the goal: one obligation."""
        facts = self._used(uses)
        asked = self._ask(name, [*map(self._statement, facts), *given], goal)
        self._conclude(Theorem(name, "prove", tuple(given), goal, _under(facts) | asked))

    def _induct(
        self,
        name: str,
        index: Term,
        given: list[Term],
        goal: Term,
        base: list[int],
        step: list[int],
        at: list[list[list[Term]]],
    ) -> None:
        """For every index from 0 on, `given` implies the goal: an obligation at 0, and one from the
        index to the next, which may use what is shown, of that index, with terms for other variables.
        """
        terms = self.terms
        first, then = self._used(base), self._used(step)
        under = _under([*first, *then])
        self._parameters([index])
        self._integer(index)
        claim = terms.implication(given, goal)
        known = []
        for values in at:
            chosen = self._chosen(values)
            if index in chosen:
                raise Rejected("the induction hypothesis is of the index alone")
            known.append(terms.substitute(claim, chosen))
        zero = {index: terms.number(0, INT)}
        following = {index: self._next(index)}
        self._says_nothing_else([*given, goal])
        asked = self._ask(
            f"{name} at 0",
            [*map(self._statement, first), *(terms.substitute(g, zero) for g in given)],
            terms.substitute(goal, zero),
        )
        since = self._not_negative(index)
        asked |= self._ask(
            f"{name} next",
            [
                *map(self._statement, then),
                *(since, *known),
                *(terms.substitute(g, following) for g in given),
            ],
            terms.substitute(goal, following),
        )
        under |= asked | {"induction"}
        self._conclude(Theorem(name, "induct", (since, *given), goal, under))

    def _extend(self, name: str, pointwise: int, index: Term) -> None:
        """Two arrays that agree at an arbitrary index are equal."""
        terms, theorem = self.terms, self._used([pointwise])[0]
        self._parameters([index])
        sides = terms.arguments[theorem.goal] if terms.heads[theorem.goal] == "=" else ()
        if len(sides) != 2 or not all(
            terms.heads[s] == "select" and terms.arguments[s][1] == index for s in sides
        ):
            raise Rejected("not an equation of two arrays at the index")
        left, right = (terms.arguments[s][0] for s in sides)
        if index in terms.below([left, right, *theorem.given]):
            raise Rejected("the index is not arbitrary")
        goal = terms.equal(left, right)
        self._conclude(Theorem(name, "extend", theorem.given, goal, theorem.under))

    def _refute(self, name: str, given: list[Term], claim: Term, values: list[list[Term]]) -> None:
        """`given` does not imply the claim: with these values it is false, evaluated."""
        self._says_nothing_else([*given, claim])
        chosen = self._chosen(values)
        formula = self.terms.substitute(self.terms.implication(given, claim), chosen)
        if Forms(self.terms).of(formula) != FALSE:
            raise Rejected("its values do not refute it")
        self._conclude(Theorem(name, "refute", tuple(given), claim, values=tuple(chosen.items())))

    # ------------------------------------------------------------------ what the rules ask for
    def _conclude(self, theorem: Theorem, defines: int | None = None) -> None:
        self._formulas([*theorem.given, theorem.goal])
        self._meet(self.terms.symbols_in([*theorem.given, theorem.goal]))
        self.theorems.append(theorem)
        if defines is not None:
            self.definitions.setdefault(defines, []).append(theorem)

    def _statement(self, theorem: Theorem) -> Term:
        return self.terms.implication(theorem.given, theorem.goal)

    def _ask(self, name: str, facts: Sequence[Term], goal: Term) -> frozenset[int | str]:
        """Note what is left to show; the axioms of reasoning that it needs."""
        self._formulas([*facts, goal])
        asked = (*facts, self.terms.negation(goal))
        self._says_nothing_else(asked)
        self.obligations.append(Obligation(name, asked))
        real = any(self.terms.sorts[t] == REAL for t in self.terms.below(asked))
        return frozenset(["real-arithmetic"] if real else [])

    def _used(self, numbers: Sequence[int]) -> list[Theorem]:
        """Theorems of this part; a counterexample is no fact to use."""
        if not all(type(n) is int and 0 <= n < len(self.theorems) for n in numbers):
            raise Rejected("a theorem that is not there yet")
        found = [self.theorems[n] for n in numbers]
        if any(theorem.rule == "refute" for theorem in found):
            raise Rejected("a counterexample is not a fact to use")
        return found

    def _formulas(self, terms: Iterable[Term]) -> None:
        if any(self.terms.sorts[t] != BOOL for t in terms):
            raise Rejected("not a formula")

    def _meet(self, symbols: Iterable[int]) -> None:
        symbols = set(symbols)
        if not self.symbols.issuperset(symbols):
            raise Rejected("a symbol of another part")
        self._met |= symbols

    def _says_nothing_else(self, terms: Iterable[Term]) -> None:
        self._meet(self.terms.symbols_in(terms))

    def _says(self, terms: Iterable[Term], but: int | None = None) -> None:
        """Something is said of the symbols in these terms: no axiom may follow."""
        said = self.terms.symbols_in(terms) - {but}
        self._meet(said)
        self._said |= said

    def _fresh(self, symbol: int) -> None:
        if symbol not in self.symbols or symbol in self._met or symbol in self.variables:
            raise Rejected(f"{self.terms.symbols[symbol].name} is not a new symbol")

    def _new(self, symbol: int, params: Sequence[Term]) -> Term:
        self._fresh(symbol)
        self._meet([symbol])
        self._said.add(symbol)
        return self.terms.apply(symbol, *params)

    def _parameters(self, params: Sequence[Term]) -> None:
        """Distinct variables of this part."""
        if len(set(params)) != len(params) or not all(
            self.terms.symbol_of(p) in self.variables for p in params
        ):
            raise Rejected("not distinct variables")

    def _integer(self, index: Term) -> None:
        if self.terms.sorts[index] != INT:
            raise Rejected("the index is no integer")

    def _closed(self, body: Term, params: Sequence[Term]) -> None:
        if self.terms.symbols_in([body]) & self.variables - self.terms.symbols_in(params):
            raise Rejected("variables are left open")

    def _chosen(self, values: Sequence[Sequence[Term]]) -> dict[Term, Term]:
        """Terms for variables."""
        chosen = {variable: value for variable, value in values}  # noqa: C416  (of two members each)
        self._parameters([variable for variable, _ in values])
        self._says_nothing_else(chosen.values())
        return chosen

    def _next(self, index: Term) -> Term:
        return self.terms.make("+", index, self.terms.number(1, INT))

    def _not_negative(self, index: Term) -> Term:
        return self.terms.make(">=", index, self.terms.number(0, INT))


def _under(theorems: Iterable[Theorem]) -> frozenset[int | str]:
    return frozenset[int | str]().union(*(theorem.under for theorem in theorems))
