"""Cells as papers and spreadsheets take them: numbers without loss, formulas as formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sympy

from psem_model.text.figures import Unit, exactly
from psem_model.text.figures import plain as with_commas
from psem_model.text.report import (
    BYTES,
    CELLS,
    Cell,
    Column,
    Formula,
    Prose,
    Quantity,
    Row,
    Section,
    Typeset,
    between,
    in_words,
    meanings,
    parts,
    spread,
)


def plain(part: Cell) -> str:
    """Text, a number without loss, or a formula, as one line of plain text."""
    if isinstance(part, sympy.Basic):
        return in_words(part)
    if isinstance(part, Fraction):
        return exactly(part)
    if isinstance(part, Quantity):
        return f"{exactly(part.exact)} {part.unit}".rstrip()
    if part is None:
        return ""
    return f"{part.normalize():f}" if isinstance(part, Decimal) else str(part)


def in_line(cell: Cell) -> str:
    """A cell or a note as one line of plain text."""
    return between(cell).join(map(plain, parts(cell)))


def expression_of(part: Cell) -> Any:
    """What is set as mathematics, if it is a formula."""
    if isinstance(part, Formula):
        return part.expression
    return part if isinstance(part, sympy.Basic) else None


def flat(section: Section, unit: Unit | None = None, data: bool = False) -> Section:
    """The shown columns, with quantities as numbers, formulas and provenance in columns of their own.

    `unit`: of bytes; without one they are counted singly, and a column says its unit once. `data`: with
    the columns that are data.
    """
    columns: list[Column] = []
    lanes: list[list[Cell]] = []
    for column, kind, cells in spread(section):
        if column.data and not data:
            continue
        units = {cell.unit for cell in cells if isinstance(cell, Quantity)}
        if unit is not None:
            column = replace(column, right=column.right or _are_numbers(cells))
        if kind != CELLS:
            taken = any(kind == other.title for other in columns)
            columns.append(Column(f"{column.title}: {kind}" if taken else kind, 1))
            lanes.append(cells)
        elif len(units) == 1 and units != {""} and (unit is None or _are_numbers(cells)):
            (one,) = units
            said = one if unit is None or one != BYTES else unit.name
            title = said if column.title in (one, "") else f"{column.title}, {said}"
            columns.append(replace(column, title=title))
            lanes.append([_bare(cell, unit) for cell in cells])
        else:
            columns.append(column)
            lanes.append([_number(cell, unit) for cell in cells])
    rows = tuple(Row(cells) for cells in zip(*lanes, strict=True)) if lanes else ()
    return replace(section, columns=tuple(columns), rows=rows)


def _are_numbers(cells: Iterable[Cell]) -> bool:
    """Whether there is nothing but numbers, or nothing at all in some rows, and not in all."""
    kinds = {type(cell) for cell in cells if cell not in ("", None)}
    return bool(kinds) and kinds <= {int, Quantity}


def _bare(cell: Cell, unit: Unit | None) -> Cell:
    """A number whose unit its column says."""
    if not isinstance(cell, Quantity):
        return cell
    return (
        cell.exact
        if unit is None
        else str(_number(cell, unit)).removesuffix(f" {cell.unit}").removesuffix(f" {unit.name}")
    )


def _number(cell: Cell, unit: Unit | None) -> Cell:
    """A number for readers: bytes in their unit, others with commas. For programs, as it is."""
    if unit is None:
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        return with_commas(cell)
    if not isinstance(cell, Quantity):
        return cell
    if cell.unit == BYTES:
        return unit.texts(cell.value)[0]
    return f"{with_commas(cell.value)} {cell.unit}".rstrip()


def sentences(notes: Iterable[str]) -> Iterator[str]:
    """Notes that follow each other on a line, each with an end."""
    for note in notes:
        yield note if note.endswith((".", ":", "!", "?")) else f"{note}."


@dataclass(frozen=True)
class Setting:
    """How a form of paper sets words, mathematics among them, and formulas that stand alone.

    `words`: as they are, with the spaces around them. `mathematics`: from LaTeX's. `formula`: an
    expression. `text`: all of a text, in one line.
    """

    words: Callable[[str], str]
    mathematics: Callable[[str], str]
    formula: Callable[[Any], str]
    text: Callable[[str], str]

    def part(self, given: Cell) -> str:
        """One part of a cell."""
        expression = expression_of(given)
        if expression is not None:
            return self.formula(expression)
        if isinstance(given, Prose | Typeset):
            pieces = (
                (self.mathematics if is_formula else self.words, p) for is_formula, p in given.pieces()
            )
            return "".join(set_(piece) for set_, piece in pieces if piece)
        return self.text(plain(given))

    def cell(self, given: Cell) -> str:
        """A cell or a note."""
        return between(given).join(filter(None, map(self.part, parts(given))))

    def title(self, table: Section) -> str:
        """Of a table, as a sentence; nothing if it has none."""
        return "".join(sentences([self.part(table.title)])) if table.title else ""

    def below(self, table: Section) -> str:
        """What is said under a table: notes, and what its symbols mean."""
        said = [*sentences(map(self.cell, table.notes))]
        for name, words in meanings(table):
            symbol = name if "(" in name else sympy.Symbol(name)  # or a function with its arguments
            said.append(f"{self.part(symbol)}: {self.part(words)}.")
        return " ".join(said)
