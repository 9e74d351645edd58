"""Products of comparisons that add up to a negative number: a linear problem, which z3 solves.

Not trusted: the checker adds up what is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import z3

from psem_check.polynomials import Monomial, Polynomial, constant, plus, product
from psem_model.certify.cores import RESOURCES, numeral, total

Compared = tuple[str, Polynomial]  # what is positive, not negative or zero
Found = tuple[list[Any], list[tuple[int, Polynomial]]]


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
    bounds = [f"(>= {u} 0.0)" for u, _ in summands]
    found = linear.solved([*bounds, f"(= {total(positive)} 1.0)"])
    if found is None:
        return None
    polynomials: dict[int, Polynomial] = {}
    for unknown, i, m in multiples:
        if value := found.get(unknown):
            polynomials[i] = plus(polynomials.get(i, {}), {m: value})
    worth = [(found.get(u, Fraction(0)), chosen) for u, chosen in summands]
    return [(v.numerator, v.denominator, chosen) for v, chosen in worth if v], [*polynomials.items()]


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
    atoms = sorted({atom for m in there for atom in m})
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
        self._columns: dict[Monomial, list[str]] = {}
        self._unknown: list[str] = []

    def unknown(self, polynomial: Polynomial) -> str:
        """The number before a polynomial, by its name."""
        made = f"u{len(self._unknown)}"
        self._unknown.append(made)
        for monomial, factor in polynomial.items():
            self._columns.setdefault(monomial, []).append(f"(* {numeral(factor)} {made})")
        return made

    def solved(self, bounds: Sequence[str]) -> dict[str, Fraction] | None:
        """Each number that is not zero, if there are such."""
        lines = [f"(declare-fun {name} () Real)" for name in self._unknown]
        said = [*bounds, *(f"(= {total(column)} 0.0)" for column in self._columns.values())]
        solver = z3.SimpleSolver(ctx=z3.Context())
        solver.set("rlimit", RESOURCES)
        solver.from_string("\n".join([*lines, *(f"(assert {each})" for each in said)]))
        if solver.check() != z3.sat:
            return None
        model = solver.model()
        values = {each.name(): model[each].as_fraction() for each in model}
        return {name: value for name, value in values.items() if value}
