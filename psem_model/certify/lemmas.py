"""What a step of cvc5's needs besides its premises: products of comparisons, and laws of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product as all_of

from psem_check.terms import ORDER, Rejected, Term
from psem_model.certify.cvc5_terms import absolute
from psem_model.certify.formulas import Unwritten
from psem_model.certify.laws import laws_of
from psem_model.certify.written import SOON, Written


@dataclass
class Node:
    """A step of the solver: what it concludes and comes from, and the numbers of what it rests on.

    What is assumed for a while has negative numbers.
    """

    rule: str
    said: Term
    premises: tuple[int, ...]
    rests: frozenset[int]
    lemmas: frozenset[int] = field(default_factory=frozenset)  # of its own


class Lemmas:
    """Lemmas for the steps of one proof, `nodes`; `concluded`: what a number stands for."""

    def __init__(
        self, written: Written, nodes: Sequence[Node], concluded: Callable[[int], Term]
    ) -> None:
        self.written = written
        self.terms = written.terms
        self.nodes = nodes
        self.concluded = concluded

    def of(self, rule: str, said: Term, premises: Sequence[int]) -> list[int]:
        """The lemmas that a step needs besides its premises."""
        if rule == "arith_sum_ub":
            return self._shown([self.nodes[p].said for p in premises], said, [(1, 0)])
        if rule in ("arith_mult_pos", "arith_mult_neg"):
            condition, then = self.terms.arguments[said]
            return self._shown(self.terms.arguments[condition], then, [(1, 1), (2, 1)])
        if rule == "arith_mult_sign":
            return self._signs(said)
        if rule == "arith_mult_abs_comparison":
            return self._absolutes(said)
        if rule == "cong":
            return self._multiple(said)
        if premises or self._is_plain(said):
            return []
        return [lemma for term in self.terms.below([said]) for lemma in self.laws(term)]

    def _is_plain(self, said: Term) -> bool:
        """Whether it follows from nothing."""
        try:
            return self.written.follows([], said, SOON)
        except (Rejected, RecursionError):
            return False

    def laws(self, term: Term) -> list[int]:
        """What holds of an operator by its meaning."""
        return [self.written.law(name, *of) for name, of in laws_of(self.terms, term)]

    def _shown(
        self, known: Iterable[Term], said: Term, degrees: Sequence[tuple[int, int]]
    ) -> list[int]:
        """That comparisons imply another, an equation by halves, if products of them show it."""
        terms, found = self.terms, []
        halves = [said]
        if terms.heads[said] == "=":
            halves = [terms.make(relation, *terms.arguments[said]) for relation in ("<=", ">=")]
        for half in halves:
            compared = filter(self._is_compared, [*known, terms.negation(half)])
            found.append(self.written.products([*compared], degrees))
        return [step for step in found if step is not None]

    def _is_compared(self, formula: Term) -> bool:
        try:
            return bool(self.written.checker.compared(formula))
        except Rejected:
            return False

    def _signs(self, said: Term) -> list[int]:
        """The sign of a product, by cases of the factors that are only said not to be zero."""
        terms = self.terms
        condition, then = terms.arguments[said]
        parts = terms.arguments[condition] if terms.heads[condition] == "and" else (condition,)
        cases: list[list[Term]] = []
        for part in parts:
            if terms.heads[part] == "not":
                sides = terms.arguments[terms.arguments[part][0]]
                cases.append([terms.make(relation, *sides) for relation in (">", "<")])
            else:
                cases.append([part])
        degree = len(self._factors(terms.arguments[then][0]))
        return [
            lemma for chosen in all_of(*cases) for lemma in self._shown(chosen, then, [(degree, 0)])
        ]

    def _multiple(self, said: Term) -> list[int]:
        """Products whose factors are equal to others, one by one: multiples of these equations."""
        terms = self.terms
        if terms.heads[said] != "=":
            return []
        sides: Sequence[Term] = terms.arguments[said]
        while terms.heads[sides[0]] in ("=", *ORDER):  # in the comparison that products are in
            differ = self._differ(sides)
            if len(differ) != 1:
                return []
            (sides,) = differ
        if any(terms.heads[side] != "*" for side in sides):
            return []
        here, found = list(terms.arguments[sides[0]]), []
        for left, right in self._differ(sides):
            place = here.index(left)
            following = [*here[:place], right, *here[place + 1 :]]
            same = terms.equal(terms.make("*", *here), terms.make("*", *following))
            found += self._shown([terms.equal(left, right)], same, [(1, len(here) - 1)])
            here = following
        return found

    def _differ(self, sides: Sequence[Term]) -> list[tuple[Term, Term]]:
        """The arguments in which two terms differ that are alike otherwise."""
        heads, (left, right) = self.terms.heads, sides
        below = self.terms.arguments[left], self.terms.arguments[right]
        if heads[left] != heads[right] or len(below[0]) != len(below[1]):
            return []
        return [(a, b) for a, b in zip(*below, strict=True) if a != b]

    def _factors(self, term: Term) -> list[Term]:
        if self.terms.heads[term] != "*":
            return [term]
        return [f for a in self.terms.arguments[term] for f in self._factors(a)]

    def _absolutes(self, said: Term) -> list[int]:
        """Products of larger numbers are larger, of equal ones equal; without their signs."""
        terms = self.terms
        sides = [self._factors(terms.arguments[side][2]) for side in terms.arguments[said]]
        if len(sides[0]) != len(sides[1]):
            raise Unwritten("a comparison of products of other lengths")
        (left, *lefts), (right, *rights) = sides
        lemmas = []
        for z, w in zip(lefts, rights, strict=True):
            lemmas += [*self._absolute_product(left, z), *self._absolute_product(right, w)]
            if terms.heads[said] == ">":
                lemmas += self._larger(*(absolute(terms, each) for each in (left, right, z, w)))
                lemmas += [self._positive(z), self._positive(right)]
            left, right = terms.make("*", left, z), terms.make("*", right, w)
        return lemmas

    def _absolute_product(self, left: Term, right: Term) -> list[int]:
        """|left right| = |left| |right|, by the signs of both."""
        terms = self.terms
        zero, whole = terms.number(0, terms.sorts[left]), terms.make("*", left, right)
        shown = []
        for one, other in all_of((">=", "<="), repeat=2):
            known = terms.make(one, left, zero), terms.make(other, right, zero)
            shown += self._shown(
                known, terms.make(">=" if one == other else "<=", whole, zero), [(2, 0)]
            )
        product = terms.make("*", absolute(terms, left), absolute(terms, right))
        said = terms.equal(absolute(terms, whole), product)
        return [self.written.step("follows", said, tuple(shown))]

    def _positive(self, term: Term) -> int:
        """|term| is not negative, and positive if the term is not zero."""
        terms = self.terms
        size, zero = absolute(terms, term), terms.number(0, terms.sorts[term])
        or_zero = terms.make("or", terms.equal(term, zero), terms.make(">", size, zero))
        said = terms.make("and", terms.make(">=", size, zero), or_zero)
        return self.written.step("follows", said, ())

    def _larger(self, left: Term, right: Term, beside: Term, other: Term) -> list[int]:
        """left beside > right other, where left > right, and beside >= other is positive."""
        terms = self.terms
        zero = terms.number(0, terms.sorts[left])
        known = [
            terms.make(">", left, right),
            terms.make(">=", beside, other),
            terms.make(">", beside, zero),
            terms.make(">=", right, zero),
        ]
        then = terms.make(">", terms.make("*", left, beside), terms.make("*", right, other))
        return self._shown(known, then, [(2, 0)])
