"""The rules by which theorems are made. What is left to show for a step is computed from the step.

A theorem reads "under these hypotheses, for all values of the variables, `given` implies `goal`".
Besides hypotheses it may rest on three axioms about functions, induction and the real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from psem_check.forms import FALSE, Forms
from psem_check.reader import member, plain
from psem_check.terms import BOOL, INT, REAL, Rejected, Term, Terms

DEFINES = ("define", "recursion", "choose")
ASSUMES = ("suppose", "axiom")
Under: TypeAlias = frozenset[int | str]
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
    under: Under = frozenset()
    values: tuple[tuple[Term, Term], ...] = ()

    @property
    def formulas(self) -> tuple[Term, ...]:
        """What it says, part by part."""
        return (*self.given, self.goal)


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
        self._says(body, params)
        left = self._new(symbol, params)
        self._conclude(Theorem(name, "define", (), self.terms.equal(left, body)), symbol)

    def _recursion(
        self, name: str, symbol: int, params: list[Term], index: Term, base: Term, body: Term
    ) -> None:
        """symbol(params, 0) = base, and symbol(params, index + 1) = body from index 0 on.

        The body may apply the symbol at the index only.
        """
        terms = self.terms
        zero, following, since = self._steps(index)
        self._says(base, params)
        start = terms.equal(self._new(symbol, [*params, zero]), base)
        self._says(body, [*params, index])
        for here in terms.below([body]):
            if terms.symbol_of(here) == symbol and terms.arguments[here][-1:] != (index,):
                raise Rejected("the body may use the value before it only")
        then = terms.equal(terms.apply(symbol, *params, following), body)
        by = frozenset(["induction"])
        self._conclude(Theorem(f"{name} at 0", "recursion", (), start, by), symbol)
        self._conclude(Theorem(f"{name} next", "recursion", (since,), then, by), symbol)

    def _choose(
        self, name: str, symbol: int, found: int, params: list[Term], witness: Term, body: Term
    ) -> None:
        """symbol(params) if some witness makes the body true; found(params) is then one."""
        self._says(body, [*params, witness])
        holds, one = self._new(symbol, params), self._new(found, params)
        serves = self.terms.substitute(body, {witness: one})
        self._conclude(Theorem(f"{name} shown", "choose", (body,), holds), symbol)
        self._conclude(Theorem(f"{name} found", "choose", (holds,), serves), symbol)
        self.definitions[found] = self.definitions[symbol]

    def _suppose(self, name: str, variables: list[Term], formula: Term) -> None:
        """A hypothesis, for all values of the variables, which are all that are in it."""
        self._assume(name, variables, formula, "")

    def _axiom(self, name: str, axiom_name: str, functions: list[int], variables: list[Term]) -> None:
        """An axiom of the list about a function of which nothing is said so far."""
        function, *others = functions
        if not self.terms.symbols[function].arguments or function in {*self._said, *others}:
            raise Rejected("something is said of the function already")
        if axiom_name not in AXIOMS:
            raise Rejected(f"{axiom_name} is not an axiom")
        formula = AXIOMS[axiom_name](self.terms, *functions, variables=variables)
        self._assume(name, variables, formula, axiom_name)

    def _assume(self, name: str, variables: list[Term], formula: Term, axiom: str) -> None:
        """A hypothesis, or an axiom of the list, by its name there."""
        self._says(formula, variables)
        if Forms(self.terms).of(formula) == FALSE:
            raise Rejected("it cannot hold")
        under = frozenset([len(self.hypotheses)])
        self.hypotheses.append(Hypothesis(name, formula, axiom))
        self._conclude(Theorem(name, "axiom" if axiom else "suppose", (), formula, under))

    # ------------------------------------------------------------------ rules
    def _instance(self, of: int, values: list[list[Term]]) -> None:
        """A theorem with terms in place of variables."""
        (theorem,) = self._used([of])
        chosen = self._chosen(values)
        given = tuple(self.terms.substitute(g, chosen) for g in theorem.given)
        goal = self.terms.substitute(theorem.goal, chosen)
        self._conclude(Theorem(theorem.name, "instance", given, goal, theorem.under))

    def _prove(self, name: str, given: list[Term], goal: Term, uses: list[int]) -> None:
        """`given` and what is used imply the goal: one obligation."""
        under = self._ask(name, uses, [], self.terms.implication(given, goal))
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
    ) -> None:
        """For every index from 0 on, `given` implies the goal: an obligation at 0, and one from the
        index to the next, which may use what is shown, of that index, with terms for other variables.
        """
        claim = self.terms.implication(given, goal)
        zero, following, since = self._steps(index)
        known = [since]
        for values in map(self._chosen, at):
            if index in values:
                raise Rejected("the induction hypothesis is of the index alone")
            known.append(self.terms.substitute(claim, values))
        start, next_ = (self.terms.substitute(claim, {index: place}) for place in (zero, following))
        under = self._ask(f"{name} at 0", first, [], start)
        under |= self._ask(f"{name} next", then, known, next_)
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
        self._conclude(Theorem(name, "refute", tuple(given), claim, values=tuple(chosen.items())))

    # ------------------------------------------------------------------ what the rules ask for
    def _conclude(self, theorem: Theorem, defines: int | None = None) -> None:
        if any(self.terms.sorts[formula] != BOOL for formula in theorem.formulas):
            raise Rejected("not a formula")
        self._meets(theorem.formulas)
        self.theorems.append(theorem)
        if defines is not None:
            self.definitions.setdefault(defines, []).append(theorem)

    def _ask(self, name: str, uses: list[int], known: Sequence[Term], claim: Term) -> Under:
        """Note what is left to show: that theorems, and what else is known, imply the claim. What it
        rests on is what these rest on, and the real numbers if they are in it.
        """
        used = self._used(uses)
        facts = [self.terms.implication(theorem.given, theorem.goal) for theorem in used]
        asked = (*facts, *known, self.terms.negation(claim))
        self._meets(asked)
        self.obligations.append(Obligation(name, asked))
        real = any(self.terms.sorts[t] == REAL for t in self.terms.below(asked))
        return Under().union(*(theorem.under for theorem in used), ["real-arithmetic"] if real else [])

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

    def _says(self, body: Term, params: Sequence[Term]) -> None:
        """Something is said of the symbols in a term, of which no axiom may follow. All variables in it
        are parameters.
        """
        self._variables(params)
        said = self._meets([body])
        if said & self.variables - self.terms.symbols_in(params):
            raise Rejected("variables are left open")
        self._said |= said

    def _new(self, symbol: int, params: Sequence[Term]) -> Term:
        """A symbol of which nothing is said yet, applied to parameters."""
        if symbol not in self.symbols or symbol in self._met or symbol in self.variables:
            raise Rejected(f"{self.terms.symbols[symbol].name} is not a new symbol")
        made = self.terms.apply(symbol, *params)
        self._said |= self._meets([made])
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


# ---------------------------------------------------------------------- axioms
def _linearity(
    terms: Terms, gradient: int, weighted_sum: int, samples: int, variables: Sequence[Term]
) -> Term:
    """The gradient of a batch, at an element, is the weighted sum over its samples."""
    *of, t, j = variables
    whole = terms.make("select", terms.apply(gradient, *of, t), j)
    return terms.equal(whole, terms.apply(weighted_sum, *of, t, j, terms.apply(samples, t)))


def _determinism(terms: Terms, on_device: int, function: int, variables: Sequence[Term]) -> Term:
    """What a device computes depends on the other arguments alone."""
    _, *arguments = variables
    return terms.equal(terms.apply(on_device, *variables), terms.apply(function, *arguments))


def _exponential(terms: Terms, exp: int, variables: Sequence[Term]) -> Term:
    """It turns sums into products, and is positive."""
    a, b = variables
    at = {x: terms.apply(exp, x) for x in (a, b)}
    sum_ = terms.apply(exp, terms.make("+", a, b))
    zero = terms.number(0, terms.sorts[at[a]])
    turns = terms.equal(sum_, terms.make("*", at[a], at[b]))
    return terms.make("and", turns, terms.make(">", at[a], zero))


AXIOMS: dict[str, Callable[..., Term]] = {
    "linearity": _linearity,
    "determinism": _determinism,
    "exponential": _exponential,
}
