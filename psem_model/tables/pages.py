"""Tables for a document in two columns: long ones as several floats, each no higher than a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from psem_model.text.cells import flat, in_line
from psem_model.text.report import Cell, Row, Section, meanings
from psem_model.text.widths import COLUMN, width

WIDTH, CHARACTER, GAP = 400, 4.1, 8  # pt of both columns, of a character and between columns, at 8 pt
LINES = 46  # of a page
SPACE = 0.4  # lines between groups of rows


def in_two_columns(table: Section) -> tuple[Section, ...]:
    """The table, or its parts. Each part is a float over both columns."""
    if not table.long:
        return (replace(table, narrow=width(table) <= COLUMN),)
    room: float = LINES - 2 - _lines_of_caption(table)
    found: list[list[Row]] = [[]]
    before: Cell = None
    for row, lines in zip(table.rows, _lines(table), strict=True):
        first = row.cells[0]
        lines += (1 + SPACE) * (table.headed and (first != before or not found[-1]))
        if lines > room and found[-1]:
            found.append([])
            room = LINES - 3 - table.headed
        found[-1].append(row)
        room, before = room - lines, first
    return tuple(
        replace(table, rows=tuple(rows), long=False, continues=number)
        for number, rows in enumerate(found)
    )


def _lines_of_caption(table: Section) -> int:
    said = [table.title, *map(in_line, table.notes)]
    said += [f"{name}: {words}." for name, words in meanings(table)]
    return ceil(len(" ".join(said)) * CHARACTER / WIDTH) + 1


def _lines(table: Section) -> Iterator[float]:
    """Of each row, how many lines it takes at most."""
    from psem_model.text.latex import joined

    table = joined(flat(table))
    columns = [*enumerate(table.columns)][table.headed :]
    texts = [[*map(in_line, row.cells)] for row in table.rows]
    fixed = sum(
        GAP + CHARACTER * max(len(column.title), *(len(row[n]) for row in texts))
        for n, column in columns
        if not column.wide
    )
    wide = sum(column.wide for _, column in columns)
    left = max(WIDTH - fixed - GAP * sum(bool(c.wide) for _, c in columns), WIDTH / 3)
    for row in texts:
        heights = [
            ceil(1.15 * len(row[n]) * CHARACTER / (left * column.wide / wide))
            for n, column in columns
            if column.wide
        ]
        yield max([1, *heights])
