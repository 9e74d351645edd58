"""A proof that facts are impossible together, gone through step by step.

A step is one of these, where premises are numbers of facts, which come first, and of earlier steps:
["follows", conclusion, premises], by the meaning of connectives and equality;
["products", conclusion, premises, summands, multiples], by what products of comparisons add up to;
["law", name, terms], by what operators mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from psem_check.cases import Cases
from psem_check.forms import Forms
from psem_check.graphs import Graph
from psem_check.laws import law
from psem_check.polynomials import Polynomial, constant, plus, product, value_of
from psem_check.terms import BOOL, NUMBERS, Rejected, Term

WORK = 300_000  # terms that are looked at in one step
FACTORS = 12  # of one product
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def check_proof(graph: Graph, facts: Sequence[Term], proof: Sequence[Any]) -> None:
    """Raise Rejected unless the last step of the proof concludes that the facts are impossible."""
    steps = Steps(graph, facts)
    for number, step in enumerate(proof):
        try:
            steps.take(*step)
        except Rejected as error:
            raise Rejected(f"step {number}, {step[0]}: {error}") from error
    if steps.conclusions[-1:] != [graph.terms.false]:
        raise Rejected("it does not end in a contradiction")


class Steps:
    """What follows from facts, so far."""

    def __init__(self, graph: Graph, facts: Sequence[Term] = ()) -> None:
        self.graph = graph
        self.terms = graph.terms
        self.forms = Forms(graph.terms)
        self.conclusions = list(facts)

    def take(self, rule: str, *given: Any) -> None:
        """One step further. Raises Rejected unless it follows its rule."""
        if rule == "law":
            name, of = given
            self.conclusions.append(law(self.terms, name, [self.graph.term(n) for n in of]))
            return
        conclusion, premises, *more = given
        said = self.graph.term(conclusion)
        if self.terms.sorts[said] != BOOL:
            raise Rejected("its conclusion is no formula")
        known = [_member(premise, self.conclusions) for premise in premises]
        if rule == "follows" and not more:
            found = self.follows(known, said)
        elif rule == "products":
            summands, multiples = more
            terms = [(position, self.graph.term(number)) for position, number in multiples]
            found = self.products(known, said, summands, terms)
        else:
            raise Rejected("it is not a rule")
        if not found:
            raise Rejected("it does not follow")
        self.conclusions.append(said)

    def follows(self, known: Sequence[Term], said: Term, work: int = WORK) -> bool:
        """Whether premises imply a conclusion by the meaning of connectives and equality."""
        formulas = [*map(self.forms.of, known), -self.forms.of(said)]
        return Cases(self.forms, work).impossible(formulas)

    def products(
        self,
        known: Sequence[Term],
        said: Term,
        summands: Sequence[Any],
        multiples: Sequence[tuple[int, Term]],
    ) -> bool:
        """Whether comparisons, and what the conclusion denies, multiplied, add up to a negative number.

        Then they cannot hold together. Each is a polynomial that is positive, not negative, or zero. So
        is a product of the first two kinds, a sum of these with positive factors, and with that any
        multiple of the third kind. `summands`: [numerator, denominator, [comparisons, by position]];
        `multiples`: [comparison, term].
        """
        compared = [self.compared(formula) for formula in [*known, *self.denied(said)]]
        total: Polynomial = {}
        strict = False
        for numerator, denominator, factors in summands:
            if not type(numerator) is type(denominator) is int or min(numerator, denominator) <= 0:
                raise Rejected("a factor is not positive")
            if len(factors) > FACTORS:
                raise Rejected("a product is too long")
            made, positive = constant(Fraction(numerator, denominator)), True
            for position in factors:
                relation, polynomial = _member(position, compared)
                if relation == "=":
                    raise Rejected("an equation is no factor")
                made = product(made, polynomial)
                positive = positive and relation == ">"
            total = plus(total, made)
            strict = strict or positive
        for position, multiplier in multiples:
            relation, polynomial = _member(position, compared)
            if relation != "=" or self.terms.sorts[multiplier] not in NUMBERS:
                return False
            total = plus(total, product(polynomial, self._polynomial(multiplier)))
        left = value_of(total)
        return left is not None and (left < 0 or (left == 0 and strict))

    def compared(self, formula: Term) -> tuple[str, Polynomial]:
        """What a comparison says of a polynomial: that it is `>`, `>=` or `=` zero."""
        terms = self.terms
        denied = terms.heads[formula] == "not"
        inner = terms.arguments[formula][0] if denied else formula
        relation = terms.heads[inner]
        if relation not in ("=", *NEGATED) or (denied and relation == "="):
            raise Rejected("not a comparison")
        sides = terms.arguments[inner]
        if terms.sorts[sides[0]] not in NUMBERS:
            raise Rejected("not a comparison of numbers")
        said = NEGATED[relation] if denied else relation
        left, right = map(self._polynomial, sides)
        if said in ("<", "<="):
            return said.replace("<", ">"), plus(right, left, -1)
        return said, plus(left, right, -1)

    def _polynomial(self, term: Term) -> Polynomial:
        return self.forms.polynomial(self.forms.of(term))

    def denied(self, formula: Term) -> list[Term]:
        """What is so if a formula is not, one by one."""
        terms = self.terms
        head, arguments = terms.heads[formula], terms.arguments[formula]
        if formula == terms.false:
            return []
        if head == "or":
            return [each for part in arguments for each in self.denied(part)]
        if head == "not":
            conjunction = terms.heads[arguments[0]] == "and"
            return list(terms.arguments[arguments[0]] if conjunction else arguments)
        if head == "=>":
            given = terms.heads[arguments[0]] == "and"
            said = terms.arguments[arguments[0]] if given else arguments[:1]
            return [*said, *self.denied(arguments[1])]
        return [terms.negation(formula)]


def _member(position: Any, known: Sequence[Any]) -> Any:
    if type(position) is not int or not 0 <= position < len(known):
        raise Rejected("a premise that is not there yet")
    return known[position]
