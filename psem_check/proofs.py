"""A proof that facts are impossible together, gone through step by step.

A step is one of these:
["follows", conclusion, premises], by the meaning of connectives and equality: premises are numbers of
facts, which come first, and of earlier steps;
["products", comparisons, summands, multiples]: that comparisons do not hold together, by what products
of them add up to;
["law", name, terms], by what operators mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from psem_check.cases import Cases
from psem_check.forms import Forms
from psem_check.polynomials import Polynomial, constant, plus, product, value_of
from psem_check.reader import Graph, listed, member
from psem_check.terms import BOOL, NUMBERS, Rejected, Term, Terms, named

WORK = 300_000  # terms that are looked at in one step


def check_proof(graph: Graph, facts: Sequence[Term], proof: Sequence[Any]) -> None:
    """Raise Rejected unless the last step of the proof concludes that the facts are impossible."""
    steps = Steps(graph, facts)
    for number, step in enumerate(proof):
        rule, *given = listed(step) or ["nothing"]
        with named(f"step {number}, {rule}"):
            steps.take(rule, *given)
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
        rules: dict[str, Callable[..., Term]] = {
            "follows": self._follows,
            "products": self._products,
            "law": self._law,
        }
        if rule not in rules:
            raise Rejected("it is not a rule")
        self.conclusions.append(rules[rule](*given))

    def _follows(self, conclusion: Any, premises: Sequence[Any]) -> Term:
        said = self.graph.term(conclusion)
        if self.terms.sorts[said] != BOOL:
            raise Rejected("its conclusion is no formula")
        if not self.follows([member(premise, self.conclusions) for premise in premises], said):
            raise Rejected("it does not follow")
        return said

    def _products(self, of: Sequence[Any], summands: Sequence[Any], multiples: Sequence[Any]) -> Term:
        terms = [(position, self.graph.term(number)) for position, number in multiples]
        return self.products([self.graph.term(number) for number in of], summands, terms)

    def _law(self, name: Any, of: Sequence[Any]) -> Term:
        return law(self.terms, name, [self.graph.term(number) for number in of])

    def follows(self, known: Sequence[Term], said: Term, work: int = WORK) -> bool:
        """Whether premises imply a conclusion by the meaning of connectives and equality."""
        formulas = [*map(self.forms.of, known), -self.forms.of(said)]
        return Cases(self.forms, work).impossible(formulas)

    def products(
        self, of: Sequence[Term], summands: Sequence[Any], multiples: Sequence[tuple[int, Term]]
    ) -> Term:
        """That comparisons do not hold together: multiplied, they add up to a negative number.

        Each is a polynomial that is positive, not negative, or zero. So is a product of the first two
        kinds, a sum of these with positive factors, and with that any multiple of the third kind.
        `summands`: [numerator, denominator, [comparisons, by position]]; `multiples`: [comparison, by
        position, term].
        """
        compared = [self.compared(formula) for formula in of]
        total: Polynomial = {}
        strict = False
        for numerator, denominator, factors in summands:
            if not type(numerator) is type(denominator) is int or min(numerator, denominator) <= 0:
                raise Rejected("a factor is not positive")
            made = constant(Fraction(numerator, denominator))
            chosen = [member(position, compared) for position in factors]
            for relation, polynomial in chosen:
                if relation == "=":
                    raise Rejected("an equation is no factor")
                made = product(made, polynomial)
            total = plus(total, made)
            strict = strict or all(relation == ">" for relation, _ in chosen)
        for position, multiplier in multiples:
            relation, polynomial = member(position, compared)
            if relation != "=" or self.terms.sorts[multiplier] not in NUMBERS:
                raise Rejected("not a multiple of an equation")
            total = plus(total, product(polynomial, self._polynomial(multiplier)))
        left = value_of(total)
        if left is None or left > 0 or not (left or strict):
            raise Rejected("they do not add up to a negative number")
        return self.terms.negation(self.terms.conjunction(of))

    def compared(self, formula: Term) -> tuple[str, Polynomial]:
        """What a comparison of numbers says of a polynomial: that it is `>`, `>=` or `=` zero."""
        sides = self.terms.arguments[formula]
        if self.terms.heads[formula] != "=" or self.terms.sorts[sides[0]] not in NUMBERS:
            return self.forms.compared(self.forms.of(formula))
        left, right = map(self._polynomial, sides)
        return "=", plus(left, right, -1)

    def _polynomial(self, term: Term) -> Polynomial:
        return self.forms.polynomial(self.forms.of(term))


# ---------------------------------------------------------------------- laws
def law(terms: Terms, name: str, of: Sequence[Term]) -> Term:
    """What holds of terms by what an operator means. Raises Rejected if there is no such law."""
    count = {"read": 4, "value": 1}.get(name, 2)
    if name not in LAWS or len(of) != count:
        raise Rejected("it is not a law")
    return LAWS[name](terms, *of)


def _quotient(terms: Terms, a: Term, b: Term) -> Term:
    """(a / b) b = a, or b is zero."""
    whole = terms.make("*", terms.make("/", a, b), b)
    is_zero = terms.equal(b, terms.number(0, terms.sorts[b]))
    return terms.make("or", is_zero, terms.equal(whole, a))


def _division(terms: Terms, m: Term, n: Term) -> Term:
    """m = n q + r, where q is m div n, r is m mod n, and 0 <= r < |n|; or n is zero."""
    q, r, zero = terms.make("div", m, n), terms.make("mod", m, n), terms.number(0, terms.sorts[n])
    whole = terms.equal(m, terms.make("+", terms.make("*", n, q), r))
    less = [terms.make("<", r, size) for size in (n, terms.make("neg", n))]
    of_others = terms.make("and", whole, terms.make("<=", zero, r), terms.make("or", *less))
    return terms.make("or", terms.equal(n, zero), of_others)


def _read(terms: Terms, array: Term, at: Term, value: Term, index: Term) -> Term:
    """What a changed array has at an index: the value there, and elsewhere what it had."""
    found = terms.make("select", terms.make("store", array, at, value), index)
    before = terms.make("select", array, index)
    return terms.equal(found, terms.make("ite", terms.equal(index, at), value, before))


def _value(terms: Terms, one: Term) -> Term:
    """A term of an enumeration is one of its values."""
    sort = terms.sorts[one]
    if not isinstance(sort, tuple) or sort[0] != "Values":
        raise Rejected("not of an enumeration")
    values = [terms.make(("value", sort, i)) for i in range(len(sort[2]))]
    cases = [terms.equal(one, value) for value in values]
    return terms.make("or", *cases) if len(cases) > 1 else cases[0]


LAWS: dict[str, Callable[..., Term]] = {
    "quotient": _quotient,
    "division": _division,
    "read": _read,
    "value": _value,
}
