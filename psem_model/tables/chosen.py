"""A part of a table that an author chose: rows, columns, a caption, a label."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from psem_model.text.cells import in_line
from psem_model.text.errors import BadInput, choose, refused, shortened
from psem_model.text.report import Cell, Column, Note, Row, Section, Typeset

LABEL = re.compile(r"[A-Za-z0-9:._-]+")  # of a table


@dataclass(frozen=True)
class Chosen:
    """Rows by what they begin with, columns by their titles; empty: all. In the order given.

    The first column stays, first unless it is named: it says what a row is of.
    """

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    caption: str = ""
    label: str = ""

    def of(self, table: Section) -> Section:
        """That part of a table. Raises BadInput for a row or a column that it does not have."""
        rows, columns = table.rows, [*range(len(table.columns))]
        if self.rows:
            names = [names_of(row, table.headed) for row in rows]
            known = [*dict.fromkeys(name for each in names for name in each)]
            wanted = [choose(f"--rows, table {table.key}", name, known) for name in self.rows]
            at = [
                [name in each for name in wanted].index(True) for each in names if {*wanted} & {*each}
            ]
            kept = [row for row, each in zip(rows, names, strict=True) if {*wanted} & {*each}]
            rows = tuple(row for _, row in sorted(zip(at, kept, strict=True), key=lambda pair: pair[0]))
        if self.columns:
            titles = [column.title for column in table.columns]
            columns = [
                titles.index(choose(f"--columns, table {table.key}", title, titles))
                for title in self.columns
            ]
            columns = columns if 0 in columns else [0, *columns]
        return replace(
            table,
            title=Typeset(self.caption) or table.title,
            label=self.label or table.label,
            columns=tuple(self._column(table.columns[number]) for number in columns),
            rows=tuple(Row(tuple(row.cells[n] for n in columns)) for row in rows),
            notes=tuple(each for each in table.notes if self._speaks(each, rows, table)),
            headed=table.headed and columns[0] == 0 and len(columns) > 1,
        )

    def _column(self, column: Column) -> Column:
        """A column; data that is asked for is shown."""
        return replace(column, data=column.data and column.title not in self.columns)

    def _speaks(self, note: Cell, rows: Sequence[Row], table: Section) -> bool:
        """Whether a note is of what was chosen."""
        if not isinstance(note, Note):
            return True
        named = {name for row in rows for name in names_of(row, table.headed)}
        of_rows = not (self.rows and note.rows) or bool(named & {*note.rows})
        of_columns = not (self.columns and note.columns) or bool({*self.columns} & {*note.columns})
        return of_rows and of_columns


ALL_OF_IT = Chosen()


def names_of(row: Row, headed: bool) -> list[str]:
    """What a row goes by: what it begins with, below its heading too."""
    return [in_line(cell) for cell in row.cells[: 1 + headed]]


def chosen(rows: str | None, columns: str | None, caption: str, label: str) -> Chosen:
    """What was typed. Raises BadInput for a label that LaTeX could not read, and for no names."""
    if label and not LABEL.fullmatch(label):
        raise refused("--label", label, "letters, digits and : . _ -, as in tab:memory")
    return Chosen(_typed("--rows", rows), _typed("--columns", columns), caption, label)


def _typed(option: str, text: str | None) -> tuple[str, ...]:
    """The names that an option was given, each once; none if it was not given."""
    if text is None:
        return ()
    found = tuple(filter(None, _listed(text)))
    if not found:
        raise refused(option, text, "names with commas between them")
    return once(option, found)


def once(what: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names. Raises BadInput for one that is given twice."""
    for name, times in Counter(names).items():
        if times > 1:
            raise BadInput(f"{what}: {shortened(name)} is given {times} times; expected once")
    return names


def _listed(text: str) -> Iterator[str]:
    """Names with commas between them; a name with a comma in it is in quotes."""
    for quoted_name, name in re.findall(r'\s*(?:"([^"]*)"|([^,"]+))\s*,?', text):
        yield (quoted_name or name).strip()
