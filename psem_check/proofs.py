"""A proof that facts are impossible together, gone through step by step.

A step is one of these:
["follows", conclusion, premises], by the meaning of connectives and equality: premises are numbers of
facts, which come first, and of earlier steps;
["products", comparisons, summands]: that comparisons do not hold together, by what products of them add
up to;
["law", name, terms], by what operators mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from psem_check.cases import Cases
from psem_check.forms import Forms
from psem_check.polynomials import Polynomial, plus, product, value_of
from psem_check.reader import Graph, member
from psem_check.terms import BOOL, Rejected, Term, Terms, named

WORK = 300_000  # terms that are looked at in one step


def check_proof(graph: Graph, facts: Sequence[Term], proof: Sequence[Any]) -> None:
    """Raise Rejected unless the last step of the proof concludes that the facts are impossible."""
    steps = Steps(graph, facts)
    for number, step in enumerate(proof):
        with named(f"step {number}"):
            steps.take(*step)
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
        rules = {"follows": self._follows, "products": self._products, "law": self._law}
        if rule not in rules:
            raise Rejected("it is not a rule")
        self.conclusions.append(rules[rule](*given))

    def _follows(self, conclusion: Any, premises: Sequence[Any]) -> Term:
        said = self.graph.term(conclusion)
        if self.terms.sorts[said] != BOOL:
            raise Rejected("its conclusion is no formula")
        known = [self.forms.of(member(premise, self.conclusions)) for premise in premises]
        if not Cases(self.forms, WORK).impossible([*known, -self.forms.of(said)]):
            raise Rejected("it does not follow")
        return said

    def _products(self, of: Sequence[Any], summands: Sequence[Any]) -> Term:
        """That comparisons do not hold together: multiplied, they add up to a negative number.

        Each is a polynomial that is positive, not negative, or zero. So is a product of the first two
        kinds, with a positive number, and with anything a product of which one factor is zero.
        `summands`: [a term, [comparisons, by position]], which are multiplied.
        """
        formulas = list(map(self.graph.term, of))
        compared = list(map(self.compared, formulas))
        total: Polynomial = {}
        strict = False
        for multiplier, factors in summands:
            made = self._polynomial(self.graph.term(multiplier))
            chosen = [member(position, compared) for position in factors]
            relations = {relation for relation, _ in chosen}
            if "=" not in relations:
                if (value_of(made) or 0) <= 0:
                    raise Rejected("a factor is not positive")
                strict = strict or ">=" not in relations
            for _, polynomial in chosen:
                made = product(made, polynomial)
            total = plus(total, made)
        left = value_of(total)
        if left is None or left > 0 or not (left or strict):
            raise Rejected("they do not add up to a negative number")
        return self.terms.negation(self.terms.conjunction(formulas))

    def _law(self, name: str, of: Sequence[Any]) -> Term:
        return LAWS[name](self.terms, *map(self.graph.term, of))

    def compared(self, formula: Term) -> tuple[str, Polynomial]:
        """What a comparison says of a polynomial: that it is `>`, `>=` or `=` zero."""
        if self.terms.heads[formula] != "=":
            return self.forms.compared(self.forms.of(formula))
        left, right = map(self._polynomial, self.terms.arguments[formula])
        return "=", plus(left, right, -1)

    def _polynomial(self, term: Term) -> Polynomial:
        return self.forms.polynomial(self.forms.of(term))


# ---------------------------------------------------------------------- laws: what holds of any terms
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
    kind, _, names = sort
    if kind != "Values":
        raise Rejected("not of an enumeration")
    values = [terms.make((sort, i)) for i in range(len(names))]
    others = [terms.negation(terms.equal(one, value)) for value in values]
    return terms.negation(terms.conjunction(others))


LAWS: dict[str, Callable[..., Term]] = {
    "quotient": _quotient,
    "division": _division,
    "read": _read,
    "value": _value,
}
