"""Tables for a document in two columns: long ones as several floats, each no higher than a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil

from psem_model.tables.chosen import names_of
from psem_model.text.cells import flat, in_line
from psem_model.text.report import Note, Row, Section, meanings
from psem_model.text.widths import COLUMN, width

WIDTH, CHARACTER, GAP = 400, 4.1, 8  # pt of both columns, of a character and between columns, at 8 pt
LINES = 46  # of a page
SPACE = 0.4  # lines between groups of rows


def in_two_columns(table: Section) -> tuple[Section, ...]:
    """The table, or its parts. Each part is a float over both columns; a group of rows is in one."""
    if not table.long:
        return (replace(table, narrow=width(table) <= COLUMN),)
    room: float = LINES - 2 - _lines_of_caption(table)
    found: list[list[Row]] = [[]]
    for group, lines in _groups(table):
        if lines > room and found[-1]:
            found.append([])
            room = LINES - 5 - table.headed
        found[-1] += group
        room -= lines
    return tuple(_parts(table, found))


def _groups(table: Section) -> Iterator[tuple[list[Row], float]]:
    """Rows that stay together, and their lines: those under one heading, if they are few."""
    counted = zip(table.rows, _lines(table), strict=True)
    for _, rows in groupby(counted, lambda each: each[0].cells[0] if table.headed else id(each[0])):
        group = [*rows]
        head = (1 + SPACE) * table.headed
        if sum(lines for _, lines in group) + head <= LINES / 2:
            yield [row for row, _ in group], sum(lines for _, lines in group) + head
        else:
            yield from (([row], lines + head * (not n)) for n, (row, lines) in enumerate(group))


def _parts(table: Section, found: Sequence[Sequence[Row]]) -> Iterator[Section]:
    """Parts of a table: under each, notes on its rows, and symbols that none before it has."""
    notes, legend = [*table.notes], dict(table.legend or {})
    for number, rows in enumerate(found):
        here = {name for row in rows for name in names_of(row, table.headed)}
        said = [
            note
            for note in notes
            if (here & {*note.rows} if isinstance(note, Note) and note.rows else not number)
        ]
        part = replace(
            table,
            rows=tuple(rows),
            long=False,
            continues=number,
            notes=tuple(said),
            legend=dict(legend) if table.legend is not None else None,
        )
        yield part
        notes = [note for note in notes if note not in said]
        legend = {name: words for name, words in legend.items() if (name, words) not in meanings(part)}


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
