"""A report on one's own plan as a page for a browser: the same cells as on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from psem_model.pages.render import filled
from psem_model.pages.runs import Played
from psem_model.text.cells import expression_of
from psem_model.text.figures import Unit
from psem_model.text.html import text
from psem_model.text.report import (
    BYTES,
    FORMULA,
    Cell,
    Quantity,
    Report,
    Section,
    meanings,
    parts,
    spread,
)
from psem_model.text.terminal import written


@dataclass(frozen=True)
class Column:
    """A column of a table, with its cells."""

    title: str
    right: bool
    cells: Sequence[Markup | str]


@dataclass(frozen=True)
class Table:
    """A section as it is laid out."""

    title: str
    columns: Sequence[Column]
    marked: Sequence[bool]
    notes: Sequence[Markup]
    legend: Sequence[tuple[str, str]]

    @property
    def titled(self) -> bool:
        return any(column.title for column in self.columns)


def page(report: Report, runs: Sequence[Played] = ()) -> str:
    """The page of a report, with runs that go wrong if there are any."""
    unit = report.unit
    return filled(
        "plan.html",
        report=report,
        unit=unit.words if _has_bytes(report) else "",
        tables=[_table(section, unit) for section in report.sections],
        runs=runs,
    )


def _has_bytes(report: Report) -> bool:
    cells = (cell for section in report.sections for row in section.rows for cell in row.cells)
    return any(isinstance(cell, Quantity) and cell.unit == BYTES for cell in cells)


def _table(section: Section, unit: Unit) -> Table:
    return Table(
        section.title,
        list(_columns(section, unit)),
        [row.marked for row in section.rows if row.shown],
        [_set(note) for note in section.notes],
        meanings(section),
    )


def _columns(section: Section, unit: Unit) -> Iterator[Column]:
    for column, kind, cells in spread(section):
        if kind == FORMULA:
            yield Column("formula" if section.titled else "", False, [_set(cell) for cell in cells])
        elif kind:
            yield Column("", False, [str(cell) for cell in cells])
        else:
            right = column.right or any(isinstance(cell, Quantity) for cell in cells)
            yield Column(column.title, right, [_shown(cell, unit) for cell in cells])


def _shown(cell: Cell, unit: Unit) -> Markup:
    """A cell; bytes in both of their units."""
    if isinstance(cell, Quantity) and cell.unit == BYTES:
        first, second = unit.texts(cell.value)
        return Markup('<span class="number">{}</span> <small class="number">{}</small>').format(
            first, second
        )
    if isinstance(cell, Quantity | int) and not isinstance(cell, bool):
        return Markup('<span class="number">{}</span>').format(_set(cell))
    return _set(cell)


def _set(cell: Cell) -> Markup:
    """A formula as mathematics, anything else as text."""
    return Markup("; ").join(
        written(part) if expression_of(part) is None else Markup(text(part)) for part in parts(cell)
    )
