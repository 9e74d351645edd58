"""Products of comparisons that add up to a negative number: a linear problem, which z3 solves.

Not trusted: the checker adds up what is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import z3

from psem_check.polynomials import Monomial, Number, Polynomial, constant, inverse, plus, product
from psem_model.certify.cores import RESOURCES, numeral, total

FEW = 20  # numbers that are found without a solver, if there is but one way
Compared = tuple[str, Polynomial]  # what is positive, not negative or zero
Found = list[tuple[Polynomial, tuple[int, ...]]]  # by what products of which are multiplied


def combined(said: Sequence[Compared], factors: int, degree: int, most: int) -> Found | None:
    """Factors for products of comparisons, and multiples of equations, of which the sum is zero.

    One of the products is positive (the empty one is: 1). None if no such sum is found, or more than
    `most` numbers are to be.
    """
    made = list(_products(said, factors))
    equations = [i for i, (relation, _) in enumerate(said) if relation == "="]
    monomials = _multipliers(said, degree) if equations else []
    if len(made) + len(equations) * len(monomials) > most:
        return None
    linear = Linear()
    summands = [(linear.unknown(polynomial), chosen) for chosen, _, polynomial in made]
    multiples = [
        (linear.unknown(product(said[i][1], {m: 1})), i, m) for i in equations for m in monomials
    ]
    positive = [u for (u, _), (_, strict, _) in zip(summands, made, strict=True) if strict]
    found = linear.solved([u for u, _ in summands], positive)
    if found is None:
        return None
    polynomials: dict[int, Polynomial] = {}
    for unknown, i, m in multiples:
        if value := found.get(unknown):
            polynomials[i] = plus(polynomials.get(i, {}), {m: value})
    worth = [(constant(found.get(u, 0)), chosen) for u, chosen in summands]
    multiplied = [(made, (i,)) for i, made in polynomials.items()]
    return [(made, chosen) for made, chosen in worth if made] + multiplied


def _products(
    said: Sequence[Compared], factors: int
) -> Iterator[tuple[tuple[int, ...], bool, Polynomial]]:
    """Products of up to so many comparisons: of which, whether positive, and what they are."""
    usable = [i for i, (relation, _) in enumerate(said) if relation != "="]
    made: dict[tuple[int, ...], Polynomial] = {(): constant(1)}
    for count in range(factors + 1):
        for chosen in combinations_with_replacement(usable, count):
            if chosen:
                made[chosen] = product(made[chosen[:-1]], said[chosen[-1]][1])
            yield chosen, all(said[i][0] == ">" for i in chosen), made[chosen]


def _multipliers(said: Sequence[Compared], degree: int) -> list[Monomial]:
    """Monomials up to a degree, and those by which one of an equation becomes one that is there."""
    there = {m for _, polynomial in said for m in polynomial}
    atoms = sorted({atom for m in there for atom in m}, reverse=True)
    found = {m for d in range(degree + 1) for m in combinations_with_replacement(atoms, d)}
    for relation, polynomial in said:
        for part in polynomial if relation == "=" else ():
            found |= {rest for m in there if (rest := _quotient(m, part)) is not None}
    return sorted(found)


def _quotient(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


class Linear:
    """Numbers to be found, by which polynomials are multiplied so that they add up to zero."""

    def __init__(self) -> None:
        self._count = 0
        self._rows: dict[Monomial, dict[Monomial, Number]] = {}  # sums of unknown numbers: all are zero

    def unknown(self, polynomial: Polynomial) -> int:
        """The number before a polynomial, by its own number."""
        made, self._count = self._count, self._count + 1
        for monomial, factor in polynomial.items():
            self._rows.setdefault(monomial, {})[made,] = factor
        return made

    def solved(self, natural: Sequence[int], positive: Sequence[int]) -> dict[int, Fraction] | None:
        """The numbers that are not zero, if there are such: some are not negative, and of those that
        are `positive` the sum is one.
        """
        if self._count <= FEW:
            of = self._reduced()
            free = [u for u in range(self._count) if u not in of]
            if len(free) < 2:
                only = {u: Fraction(of[u].get((free[0],), 0)) for u in of} if free else {}
                return _scaled({**only, **dict.fromkeys(free, Fraction(1))}, natural, positive)
        return self._by_z3(natural, positive)

    def _reduced(self) -> dict[int, Polynomial]:
        """What some of the numbers are, by the others, which are free."""
        found: dict[int, Polynomial] = {}
        for row in self._rows.values():
            left: Polynomial = {}
            for (u,), factor in row.items():
                left = plus(left, found.get(u, {(u,): 1}), factor)
            if left:
                (u,) = max(left)
                rest = {other: factor for other, factor in left.items() if other != (u,)}
                said = plus({}, rest, -inverse(left[u,]))
                for other, of in found.items():
                    if (u,) in of:
                        found[other] = plus(plus(of, {(u,): -of[u,]}), said, of[u,])
                found[u] = said
        return found

    def _by_z3(self, natural: Sequence[int], positive: Sequence[int]) -> dict[int, Fraction] | None:
        lines = [f"(declare-fun u{u} () Real)" for u in range(self._count)]
        lines += [f"(assert (>= u{u} 0.0))" for u in natural]
        lines.append(f"(assert (= {total([f'u{u}' for u in positive])} 1.0))")
        for row in self._rows.values():
            said = total([f"(* {numeral(factor)} u{u})" for (u,), factor in row.items()])
            lines.append(f"(assert (= {said} 0.0))")
        solver = z3.SimpleSolver(ctx=z3.Context())
        solver.set("rlimit", RESOURCES)
        solver.from_string("\n".join(lines))
        if solver.check() != z3.sat:
            return None
        model = solver.model()
        values = {int(each.name()[1:]): model[each].as_fraction() for each in model}
        return {u: value for u, value in values.items() if value}


def _scaled(
    only: dict[int, Fraction], natural: Sequence[int], positive: Sequence[int]
) -> dict[int, Fraction] | None:
    """The only solution up to a factor, by that with which it is as it must be, if there is one."""
    whole = sum(only[u] for u in positive) if only else 0
    if not whole or any(only[u] / whole < 0 for u in natural):
        return None
    return {u: value / whole for u, value in only.items() if value}
