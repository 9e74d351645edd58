"""Formulas that are listed: one for each number, in parts of which each is small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import name_of
from proofs.trusted.terms import And, If, IntVal

AT_ONCE = 16  # formulas of a part


class Table:
    """of(number, *params): the formula of that number. In parts, each of which tells a few apart."""

    def __init__(self, k: Kernel, name: str, params: Sequence[Any], formulas: Iterable[Bool]) -> None:
        self.k, self.params = k, list(params)
        self.number = k.integers(f"{name}_number")
        self._told: dict[int, list[Theorem]] = {}
        self.each = [k.define(f"{name}_{n}", params, said) for n, said in enumerate(formulas)]
        self.bounds = [*range(0, len(self.each), AT_ONCE)]
        self.parts = [
            k.define(
                f"{name}s_from_{first}",
                [self.number, *params],
                self._told_apart(range(first, min(first + AT_ONCE, len(self.each)))),
            )
            for first in self.bounds
        ]
        found = self.parts[-1][0](self.number, *params)
        for first, (part, _) in reversed([*zip(self.bounds[1:], self.parts[:-1], strict=True)]):
            found = If(self.number < first, part(self.number, *params), found)
        self.of, self.meaning = k.define(name, [self.number, *params], found)

    def _told_apart(self, numbers: range) -> Bool:
        found = self.each[numbers[-1]][0](*self.params)
        for n in reversed(numbers[:-1]):
            found = If(self.number == n, self.each[n][0](*self.params), found)
        return found

    def at(self, number: int, **at: Any) -> list[Theorem]:
        """What the formula of a number says."""
        if number not in self._told:
            here = {name_of(self.number): IntVal(number)}
            part = self.parts[number // AT_ONCE][1]
            self._told[number] = [self.meaning.at(**here), part.at(**here), self.each[number][1]]
        same = {name_of(each): each for each in self.params}
        return [each.at(**(same | at)) for each in self._told[number]]

    def joined(
        self, name: str, goal: Bool, number: Any, given: Sequence[Bool], each: Iterable[Theorem]
    ) -> Theorem:
        """What is proved for each number is so for all."""
        proofs = [*each]
        parts = [
            self.k.prove(
                f"{name}_from_{first}",
                goal,
                [number >= first, number < min(first + AT_ONCE, len(proofs)), *given],
                proofs[first : first + AT_ONCE],
            )
            for first in self.bounds
        ]
        return self.k.prove(name, goal, [self.has(number), *given], parts)

    def has(self, number: Any) -> Bool:
        """Whether a number is that of a formula."""
        return And(number >= 0, number < len(self.each))
