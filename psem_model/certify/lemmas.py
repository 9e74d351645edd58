"""What a step of cvc5's needs besides its premises: products of comparisons, and laws of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product as all_of

from psem_check.forms import FALSE
from psem_check.polynomials import Polynomial
from psem_check.proofs import NEGATED
from psem_check.terms import Rejected, Term
from psem_model.certify.laws import laws_of
from psem_model.certify.written import SOON, Unwritten, Written


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
            return [self._sum(said, premises)]
        if rule in ("arith_mult_pos", "arith_mult_neg"):
            return self._multiplied(said)
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
            return self.written.checker.follows([], said, SOON)
        except (Rejected, RecursionError):
            return False

    def laws(self, term: Term) -> list[int]:
        """What holds of an operator by its meaning."""
        return [self.written.law(name, *of) for name, of in laws_of(self.terms, term)]

    def _sum(self, said: Term, premises: Sequence[int]) -> int:
        """A sum of comparisons, each of which may be a multiple of one that is there already."""
        known: list[Term] = []
        summands, multiples = [], []
        for p in premises:
            relation, polynomial = self.written.checker.compared(self.nodes[p].said)
            if not polynomial and relation == "=":
                continue
            base, factor = self._base(p, relation, polynomial)
            if relation == "=":
                multiples.append((len(known), self.terms.number(-factor, "Real")))
            else:
                summands.append((factor.numerator, factor.denominator, (len(known),)))
            known.append(base)
        conclusion = said
        if self.written.checker.forms.of(said) == FALSE:
            conclusion = self.terms.false
        else:
            summands.append((1, 1, (len(known),)))
        return self.written.products(known, conclusion, summands or [(1, 1, ())], multiples)

    def _base(self, premise: int, relation: str, polynomial: Polynomial) -> tuple[Term, Fraction]:
        """A comparison that a premise rests on, of which it is a multiple, and of how much."""
        for number in self.nodes[premise].rests:
            base = self.concluded(number)
            try:
                same, other = self.written.checker.compared(base)
            except Rejected:
                continue
            if same == relation and other and set(other) == set(polynomial):
                factor = next(Fraction(polynomial[m]) / other[m] for m in other)
                proportional = all(polynomial[m] == factor * other[m] for m in other)
                if proportional and (factor > 0 or relation == "="):
                    return base, factor
        return self.nodes[premise].said, Fraction(1)

    def _multiplied(self, said: Term) -> list[int]:
        """Both sides of a comparison times a number of known sign: (=> (and sign compared) then)."""
        terms = self.terms
        condition, then = terms.arguments[said]
        sign, compared = terms.arguments[condition]
        if terms.heads[then] != "=":
            return [self.written.products([], said, [(1, 1, (0, 1)), (1, 1, (2,))])]
        return self._times(compared, [terms.arguments[sign][0]], *terms.arguments[then])

    def _times(self, equation: Term, factors: Sequence[Term], left: Term, right: Term) -> list[int]:
        """That left = right, their difference being factors times that of an equation, by halves."""
        terms, found = self.terms, []
        for relation, sign in (("<=", 1), (">=", -1)):
            multiplier = terms.make("*", terms.number(-sign, terms.sorts[left]), *factors)
            said = terms.make(relation, left, right)
            found.append(self.written.products([equation], said, [(1, 1, (1,))], [(0, multiplier)]))
        return found

    def _signs(self, said: Term) -> list[int]:
        """The sign of a product, by cases of the factors that are only said not to be zero."""
        terms = self.terms
        condition, then = terms.arguments[said]
        parts = terms.arguments[condition] if terms.heads[condition] == "and" else (condition,)
        cases: list[list[Term]] = []
        for part in parts:
            if terms.heads[part] == "not":
                factor, zero = terms.arguments[terms.arguments[part][0]]
                cases.append([terms.make(r, factor, zero) for r in (">", "<")])
            else:
                cases.append([part])
        factors = self._factors(terms.arguments[then][0])
        lemmas = []
        for chosen in all_of(*cases):
            of = {terms.arguments[c][0]: i for i, c in enumerate(chosen)}
            positions = tuple(of[f] for f in factors)
            summands = [(1, 1, positions), (1, 1, (len(chosen),))]
            lemmas.append(self.written.products(chosen, then, summands))
        return lemmas

    def _multiple(self, said: Term) -> list[int]:
        """Products whose factors are equal to others, one by one: multiples of these equations."""
        terms = self.terms
        if terms.heads[said] != "=":
            return []
        sides: Sequence[Term] = terms.arguments[said]
        while terms.heads[sides[0]] in ("=", *NEGATED):  # in the comparison that products are in
            differ = self._differ(sides)
            if len(differ) != 1:
                return []
            (sides,) = differ
        if any(terms.heads[side] != "*" for side in sides):
            return []
        here, found = list(terms.arguments[sides[0]]), []
        for left, right in self._differ(sides):
            place = here.index(left)
            factors = [*here[:place], *here[place + 1 :]]
            following = [*here[:place], right, *here[place + 1 :]]
            pair = terms.make("*", *here), terms.make("*", *following)
            found += self._times(terms.equal(left, right), factors, *pair)
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
        sides = [self._factors(terms.arguments[side][0]) for side in terms.arguments[said]]
        if len(sides[0]) != len(sides[1]):
            raise Unwritten("a comparison of products of other lengths")
        (left, *lefts), (right, *rights) = sides
        lemmas = []
        for z, w in zip(lefts, rights, strict=True):
            lemmas += [
                self.written.law("abs_product", left, z),
                self.written.law("abs_product", right, w),
            ]
            if terms.heads[said] == ">":
                lemmas.append(self._larger(*(terms.make("abs", t) for t in (left, right, z, w))))
                lemmas += [self._positive(z), self._positive(right)]
            left, right = terms.make("*", left, z), terms.make("*", right, w)
        return lemmas

    def _positive(self, term: Term) -> int:
        """|term| is not negative, and positive if the term is not zero."""
        terms = self.terms
        absolute, zero = terms.make("abs", term), terms.number(0, terms.sorts[term])
        or_zero = terms.make("or", terms.equal(term, zero), terms.make(">", absolute, zero))
        said = terms.make("and", terms.make(">=", absolute, zero), or_zero)
        return self.written.step("follows", said, (self.written.law("abs", term),))

    def _larger(self, left: Term, right: Term, beside: Term, other: Term) -> int:
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
        return self.written.products(known, then, [(1, 1, (0, 2)), (1, 1, (1, 3)), (1, 1, (4,))])
