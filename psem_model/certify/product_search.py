"""Proofs for nonlinear questions that cvc5 leaves open: cases, and in each, products of what is known.

A quotient is a number that times the divisor is the dividend, an `ite` one of two. In each case the
factors before products of comparisons, and the multiples of equations, are a linear problem: z3 solves
it. Not trusted: the checker adds up what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import z3

from psem_check.graphs import Graph, asked
from psem_check.polynomials import Polynomial, constant, plus, product
from psem_check.proofs import NEGATED, Steps
from psem_check.terms import NUMBERS, Rejected, Term
from psem_model.certify.shorter import Step, shorter

DEGREES = ((1, 0), (2, 1), (3, 2), (3, 3), (4, 3), (4, 4))  # factors of a product, degree of a multiple
MILLISECONDS = 4000  # for one linear problem
MOST = 4000  # unknown numbers of a linear problem
SPLITS = 2  # variables whose sign is a case
Known = tuple[int, Term]  # a step, and what it concludes


class Unsolved(Exception):
    """No products were found."""


def search(text: str) -> dict[str, Any]:
    """A proof of a question, or `missing` with the reason."""
    graph, facts = asked(text)
    proof = Search(graph, facts)
    try:
        proof.refute(proof.start(facts), [])
    except Unsolved:
        return {"missing": "none of the products tried add up to a contradiction"}
    return shorter(graph, facts, proof.steps)


class Search:
    """The steps of a proof while it is found."""

    def __init__(self, graph: Graph, facts: Sequence[Term]) -> None:
        self.terms = graph.terms
        self.checker = Steps(graph)
        self.atoms = {self.checker.forms.of(term): term for term in self.terms.below(facts)}
        self.steps: list[Step] = []

    def step(self, rule: str, conclusion: Term, premises: Sequence[int] = (), *more: Any) -> Known:
        self.steps.append((rule, conclusion, list(premises), more))
        return len(self.steps) - 1, conclusion

    def start(self, facts: Sequence[Term]) -> list[Known]:
        """What is assumed, and what quotients and conditional terms in it are."""
        terms = self.terms
        found = [self.step("assume", fact) for fact in facts]
        for term in terms.below(facts):
            arguments = terms.arguments[term]
            if terms.heads[term] == "/":
                a, b = arguments
                zero = terms.equal(b, terms.number(0, terms.sorts[b]))
                whole = terms.equal(terms.make("*", term, b), a)
                found.append(self.step("arith_quotient", terms.make("or", zero, whole)))
            if terms.heads[term] == "ite" and terms.sorts[term] in NUMBERS:
                condition, then, otherwise = arguments
                one, other = terms.equal(term, then), terms.equal(term, otherwise)
                number, _ = self.step("ite_eq", terms.make("ite", condition, one, other))
                first = terms.make("or", terms.negation(condition), one)
                second = terms.make("or", condition, other)
                found.append(self.step("logic", first, [number]))
                found.append(self.step("logic", second, [number]))
        return found

    def refute(self, pending: list[Known], literals: list[Known], splits: int = 0) -> Known:
        """A step that concludes false."""
        pending, literals, clauses = list(pending), list(literals), []
        while pending:
            here = pending.pop()
            simpler = self._simpler(here)
            if simpler is not None:
                pending += simpler
            elif self.terms.heads[here[1]] == "or":
                clauses.append(here)
            elif self._is_comparison(here[1]):
                literals.append(here)
        clauses.sort(key=lambda clause: -clause[0])
        if clauses:
            easy = self._leaf(literals, DEGREES[:1])
            return easy or self._cases(clauses[0], clauses[1:], literals, splits)
        found = self._leaf(literals, DEGREES if splits == SPLITS else DEGREES[:5])
        if found:
            return found
        return self._by_sign(literals, splits)

    def _cases(self, clause: Known, others: list[Known], literals: list[Known], splits: int) -> Known:
        """Each disjunct is refuted, so the clause is false."""
        refuted = [clause[0]]
        for case in self.terms.arguments[clause[1]]:
            assumed = self.step("assume", case)
            false, _ = self.refute([*others, assumed], literals, splits)
            number, _ = self.step("scope", self.terms.negation(case), [false], [case])
            refuted.append(number)
        return self.step("logic", self.terms.false, refuted)

    def _by_sign(self, literals: list[Known], splits: int) -> Known:
        """Whether a variable is positive or not is a case."""
        if splits == SPLITS:
            raise Unsolved
        terms = self.terms
        polynomials = [self.checker.compared(said)[1] for _, said in literals]
        variables = sorted({self.atoms[v] for p in polynomials for m in p for v in m})
        for variable in variables[splits:]:
            positive = terms.make(">=", variable, terms.number(0, terms.sorts[variable]))
            mark = len(self.steps)
            clause = self.step("logic", terms.make("or", positive, terms.negation(positive)))
            try:
                return self._cases(clause, [], literals, splits + 1)
            except Unsolved:
                del self.steps[mark:]
        raise Unsolved

    # ------------------------------------------------------------------ formulas
    def _is_comparison(self, formula: Term) -> bool:
        try:
            self.checker.compared(formula)
        except Rejected:
            return False
        return True

    def _simpler(self, here: Known) -> list[Known] | None:
        """What follows from a formula and says the same; None if it is as simple as it can be."""
        number, formula = here
        terms = self.terms
        head, arguments = terms.heads[formula], terms.arguments[formula]
        if head == "and":
            return [self.step("logic", part, [number]) for part in arguments]
        if head == "=>":
            denied = terms.negation(arguments[0])
            return [self.step("logic", terms.make("or", denied, arguments[1]), [number])]
        if head == "distinct" and len(arguments) == 2:
            said = terms.negation(terms.equal(*arguments))
            return [self.step("logic", said, [number])]
        if head == "not":
            return self._denied(number, arguments[0])
        return None

    def _denied(self, number: int, inner: Term) -> list[Known] | None:
        terms = self.terms
        head, arguments = terms.heads[inner], terms.arguments[inner]
        if head == "and":
            clause = terms.make("or", *map(terms.negation, arguments))
            return [self.step("logic", clause, [number])]
        if head == "or":
            return [self.step("logic", terms.negation(a), [number]) for a in arguments]
        if head == "not":
            return [self.step("logic", arguments[0], [number])]
        if head == "=>":
            denied = terms.negation(arguments[1])
            return [
                self.step("logic", arguments[0], [number]),
                self.step("logic", denied, [number]),
            ]
        if head == "=" and terms.sorts[arguments[0]] in NUMBERS:
            a, b = arguments
            clause = terms.make("or", terms.make("<", a, b), terms.make("<", b, a))
            return [self.step("arith_apart", clause, [number])]
        return None

    # ------------------------------------------------------------------ products
    def _leaf(self, literals: list[Known], degrees: Sequence[tuple[int, int]]) -> Known | None:
        """False, if products of the comparisons add up to it."""
        said = [self.checker.compared(formula) for _, formula in literals]
        for factors, degree in degrees:
            found = combined(said, factors, degree)
            if found is not None:
                summands, multiples = found
                known = [number for number, _ in literals]
                terms = [(i, self._term(m)) for i, m in multiples]
                return self.step("products", self.terms.false, known, summands, terms)
        return None

    def _term(self, polynomial: Polynomial) -> Term:
        """The term of a polynomial, over the real numbers."""
        parts = []
        for monomial, factor in polynomial.items():
            factors = [
                self.terms.number(factor, "Real"),
                *(self._real(self.atoms[v]) for v in monomial),
            ]
            parts.append(self.terms.make("*", *factors) if monomial else factors[0])
        return self.terms.make("+", *parts) if len(parts) > 1 else parts[0]

    def _real(self, term: Term) -> Term:
        return self.terms.make("to_real", term) if self.terms.sorts[term] == "Int" else term


def combined(
    said: Sequence[tuple[str, Polynomial]], factors: int, degree: int
) -> tuple[list[Any], list[tuple[int, Polynomial]]] | None:
    """Factors for products of comparisons, and multiples of equations, that add up to zero with a
    positive product (the empty one, 1, is among these); None if none are found.
    """
    variables = sorted({v for _, p in said for m in p for v in m})
    monomials = [m for d in range(degree + 1) for m in combinations_with_replacement(variables, d)]
    equations = [i for i, (relation, _) in enumerate(said) if relation == "="]
    made = list(_products(said, factors))
    if len(made) + len(equations) * len(monomials) > MOST:
        return None
    linear = Linear()
    summands = [(linear.unknown(polynomial), chosen) for chosen, _, polynomial in made]
    multiples = [
        (linear.unknown(product(said[i][1], {m: Fraction(1)})), i, m)
        for i in equations
        for m in monomials
    ]
    positive = [u for (u, _), (_, strict, _) in zip(summands, made, strict=True) if strict]
    found = linear.solved([u >= 0 for u, _ in summands] + [z3.Sum(positive) == 1])
    if found is None:
        return None
    polynomials: dict[int, Polynomial] = {}
    for unknown, i, m in multiples:
        polynomials[i] = plus(polynomials.get(i, {}), {m: found(unknown)}, 1 if found(unknown) else 0)
    return (
        [
            [found(u).numerator, found(u).denominator, list(chosen)]
            for u, chosen in summands
            if found(u)
        ],
        [(i, polynomial) for i, polynomial in polynomials.items() if polynomial],
    )


class Linear:
    """Numbers to be found, by which polynomials are multiplied so that they add up to zero."""

    def __init__(self) -> None:
        self._columns: dict[tuple[Term, ...], list[Any]] = {}
        self._count = 0

    def unknown(self, polynomial: Polynomial) -> Any:
        """The number before a polynomial."""
        made = z3.Real(f"u{self._count}")
        self._count += 1
        for monomial, factor in polynomial.items():
            value = z3.Q(factor.numerator, factor.denominator)
            self._columns.setdefault(monomial, []).append(value * made)
        return made

    def solved(self, bounds: Sequence[Any]) -> Callable[[Any], Fraction] | None:
        """Each number, if there are such."""
        solver = z3.SimpleSolver()
        solver.set("timeout", MILLISECONDS)
        solver.add(*bounds, *(z3.Sum(column) == 0 for column in self._columns.values()))
        if solver.check() != z3.sat:
            return None
        model = solver.model()
        return lambda u: Fraction(model.eval(u, model_completion=True).as_string())


def _products(
    said: Sequence[tuple[str, Polynomial]], factors: int
) -> Iterator[tuple[tuple[int, ...], bool, Polynomial]]:
    """Products of up to so many comparisons: of which, whether positive, and what they are."""
    usable = [i for i, (relation, _) in enumerate(said) if relation in NEGATED]
    made: dict[tuple[int, ...], Polynomial] = {(): constant(1)}
    for count in range(factors + 1):
        for chosen in combinations_with_replacement(usable, count):
            if chosen:
                made[chosen] = product(made[chosen[:-1]], said[chosen[-1]][1])
            yield chosen, all(said[i][0] == ">" for i in chosen), made[chosen]
