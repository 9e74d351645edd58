"""Tables for papers: sections whose formulas are SymPy expressions, in an author's symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from psem_model.predict import closed as symbolic
from psem_model.text.errors import UserError
from psem_model.text.report import Cell, Column, Note, Section, parts, rows
from spec.models.states import MIXED_ADAM, BytePolicy
from spec.numbers.arithmetic import Number


class NotAsExpected(UserError):
    """A claim whose theorems a table shows has another verdict than the registry expects."""


@dataclass(frozen=True)
class Style:
    """How formulas are written: padded, or as if N divided everything; with which symbols.

    `symbols`: what symbols of the closed forms are called, where it is otherwise. `policy` gives the
    bytes of weights and gradients; those of optimizer state are K. `tell` is told which share of a
    table is done.
    """

    padded: bool = True
    symbols: Mapping[str, str] = field(default_factory=dict)
    policy: BytePolicy = MIXED_ADAM
    tell: Callable[[float], None] = field(default=lambda _: None, compare=False)

    def symbol(self, name: str) -> str:
        """What a symbol of the closed forms is called: Psi, N, or N_s for devices along shard."""
        base, _, axis = name.partition("_")
        if base != "N" or not axis or name in self.symbols:
            return self.symbols.get(name, name)
        return f"{self.symbols.get(base, base)}_{axis[0]}"


def table(
    name: str,
    title: str,
    columns: tuple[Column, ...],
    cells: Iterable[tuple[Cell, ...]],
    notes: Iterable[Note | str] = (),
    legend: Mapping[str, str] | None = None,
    *,
    long: bool = False,
    headed: bool = False,
) -> Section:
    """A table that can stand alone: `notes` and `legend` say what a reader needs to know of it.

    Without a legend its symbols are others', and no author's symbols reach them.
    """
    columns = tuple(replace(column, key=column.key or column.title) for column in columns)
    return Section(title, columns, rows(cells), tuple(notes), name, True, legend, long, headed)


def formulas(found: Section) -> list[Any]:
    """Every expression in its cells and notes."""
    cells = [cell for row in found.rows for cell in row.cells] + [*found.notes]
    return [part for cell in cells for part in parts(cell) if isinstance(part, sympy.Basic)]


def by_size(formula: Number) -> Any:
    """A sum with its terms factored, and those of equal size together: (K + 2)*ceil(Psi/N)."""
    found: dict[Any, Any] = {}
    for term in sympy.Add.make_args(sympy.sympify(formula)):
        sized, factor = sympy.factor(term).as_independent(symbolic.K, symbolic.MICRO, as_Add=False)
        number, size = sized.as_coeff_Mul()
        found[size] = found.get(size, 0) + number * factor
    return sympy.Add(*(sympy.factor(factor) * size for size, factor in found.items()))
