"""A table: columns, and rows of cells, each text, a number, a SymPy expression, or several of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sympy

from psem_model.predict import symbolic
from psem_model.predict.symbolic import PSI, SHARD
from psem_model.text.errors import UserError
from spec.arithmetic import Number
from spec.states import MIXED_ADAM, BytePolicy

Cell = Any  # str, a number, a SymPy expression, or a tuple of these
SYMBOLS = {"parameters": ("Psi", "P"), "devices": ("N", "d")}


class NotAsExpected(UserError):
    """A claim whose theorems a table shows has another verdict than the registry expects."""


@dataclass(frozen=True)
class Style:
    """How formulas are written: padded, or as if N divided everything; with which symbols.

    `policy` gives the bytes of weights and gradients; those of optimizer state are K.
    """

    padded: bool = True
    parameters: str = "Psi"
    devices: str = "N"
    policy: BytePolicy = MIXED_ADAM

    def symbol(self, name: str) -> str:
        """What a symbol of the closed forms is called: Psi, N or N_axis."""
        if name == str(PSI):
            return self.parameters
        base, _, axis = name.partition("_")
        return "_".join(filter(None, (self.devices, axis))) if base == "N" else name


@dataclass(frozen=True)
class Column:
    """A title; the width of a column whose text is wrapped, in parts of what formulas leave."""

    title: str
    wide: float = 0


@dataclass(frozen=True)
class Table:
    """A table that can stand alone: `notes` and `legend` say what a reader needs to know of it.

    `legend`: what symbols and functions mean, by their names. `long`: it may take several pages.
    `headed`: on a page, the first column becomes a heading above the rows that begin with it.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: Cell = ""
    legend: Mapping[str, str] | None = None
    long: bool = False
    headed: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.name}: {len(row)} cells in {len(self.columns)} columns: {row}")

    @property
    def label(self) -> str:
        return f"tab:psem-{self.name}"

    @property
    def formulas(self) -> list[Any]:
        """Every expression in its cells and notes."""
        cells = (cell for row in (*self.rows, (self.notes,)) for cell in row)
        return [part for cell in cells for part in parts(cell) if isinstance(part, sympy.Basic)]

    @property
    def meanings(self) -> list[tuple[str, str]]:
        """The part of the legend that its formulas need."""
        used = {str(name) for formula in self.formulas for name in formula.free_symbols}
        if any(formula.has(SHARD) for formula in self.formulas):
            used.add(str(SHARD))
        return [(k, words) for k, words in (self.legend or {}).items() if k.split("(")[0] in used]

    def renamed(self, style: Style) -> Table:
        """The same with the symbols of a style; without a legend they are others', and stay."""
        if self.legend is None:
            return self

        def cell(given: Cell) -> Cell:
            if isinstance(given, tuple):
                return tuple(cell(part) for part in given)
            if not isinstance(given, sympy.Basic):
                return given
            return given.xreplace({s: _named(s, style.symbol(str(s))) for s in given.free_symbols})

        legend = {style.symbol(name): words for name, words in self.legend.items()}
        rows = tuple(tuple(map(cell, row)) for row in self.rows)
        return replace(self, rows=rows, notes=cell(self.notes), legend=legend)


def _named(symbol: Any, name: str) -> Any:
    return symbol if str(symbol) == name else sympy.Symbol(name, **symbol.assumptions0)


def by_size(formula: Number) -> Any:
    """A sum with its terms factored, and those of equal size together: (K + 2)*ceil(Psi/N)."""
    found: dict[Any, Any] = {}
    for term in sympy.Add.make_args(sympy.sympify(formula)):
        sized, factor = sympy.factor(term).as_independent(symbolic.K, symbolic.MICRO, as_Add=False)
        number, size = sized.as_coeff_Mul()
        found[size] = found.get(size, 0) + number * factor
    return sympy.Add(*(sympy.factor(factor) * size for size, factor in found.items()))


def shortest(formula: Number) -> Any:
    """A formula expanded or factored, whichever is shorter."""
    expression = sympy.sympify(formula)
    return min((sympy.factor(expression), sympy.expand(expression)), key=lambda f: len(str(f)))


def parts(cell: Cell) -> Iterator[Cell]:
    """A cell's texts, numbers and formulas."""
    yield from cell if isinstance(cell, tuple) else (cell,)


def plain(part: Cell) -> str:
    """Text, a number without loss, or a formula, as one line of plain text."""
    if isinstance(part, sympy.Basic):
        return symbolic.text(part)
    if isinstance(part, Fraction):
        ends = not part.denominator & (part.denominator - 1) or _ends(part.denominator)
        return f"{Decimal(part.numerator) / part.denominator:f}" if ends else str(part)
    return f"{part.normalize():f}" if isinstance(part, Decimal) else str(part)


def _ends(denominator: int) -> bool:
    """Whether a fraction's decimals end."""
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1
