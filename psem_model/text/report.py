"""A report: what a command found, once, for a terminal, a program, a paper.

A report has sections; a section is a table of rows under a title, with notes. A cell is text, a whole
number, a quantity (an exact number with its unit, formula and provenance), axes of a mesh, a formula,
or several of these. Each form of output (`terminal`, `document`, `markdown`, `latex`, `comma`) reads
the same cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from psem_model.text.figures import Unit, unit_of

if TYPE_CHECKING:
    from spec.numbers.arithmetic import Number

NAME = re.compile(r"[A-Za-z]\w*")  # a symbol, or a function, of a formula
VERSION = 3  # of the documents for programs: raised when a key changes its meaning or goes
BYTES, ELEMENTS = "bytes", "elements"
CELLS, FORMULA, PROVENANCE = "", "formula", "of which"  # what a column is spread into
ITSELF = "."  # the key of what is all there is to say of a row

# text, a whole number, a quantity, axes, a truth, nothing, a SymPy expression, or a tuple of these
Cell = Any


@dataclass(frozen=True)
class Formula:
    """A formula as one line of plain text, and as the SymPy expression that papers print."""

    text: str
    expression: Any = field(compare=False)

    def __str__(self) -> str:
        return self.text


class Prose(str):
    """Words with mathematics among them, typed as plain text: papers set it as mathematics."""

    def pieces(self) -> Iterator[tuple[bool, str]]:
        """The words, and the mathematics as LaTeX, in turn."""
        from psem_model.text.prose import pieces

        return pieces(self)


class Typeset(str):
    """Words as an author typed them for LaTeX, with mathematics between dollar signs."""

    def pieces(self) -> Iterator[tuple[bool, str]]:
        """The words, and the mathematics, in turn."""
        for number, piece in enumerate(re.split(r"\$([^$]+)\$", self)):
            yield number % 2 == 1, piece


@dataclass(frozen=True)
class Note:
    """A sentence under a table: words, and formulas among them.

    `rows`, `columns`: those that it speaks of, by what rows begin with and by titles; empty: all.
    """

    said: tuple[Cell, ...]
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def note(*said: Cell, rows: Iterable[str] = (), columns: Iterable[str] = ()) -> Note:
    """A sentence about some rows and columns, or about all."""
    return Note(said, tuple(rows), tuple(columns))


@dataclass(frozen=True)
class Quantity:
    """An exact number, its unit, the formula it comes from, and why a factor is as large as it is.

    Without a unit it is a plain number, of whatever its row says.
    """

    value: Number
    unit: str = ""
    formula: Formula | None = None
    provenance: str = ""

    @property
    def exact(self) -> Fraction:
        """The number, whatever it was computed with."""
        return Fraction(self.value)

    def document(self) -> dict[str, Any]:
        """For a program: exactly, as the nearest float, and what else is known."""
        exact = self.exact
        found = {"exact": f"{exact.numerator}/{exact.denominator}", "value": float(exact)}
        more = {"unit": self.unit, "formula": self.formula, "provenance": self.provenance}
        return found | {name: str(words) for name, words in more.items() if words}


@dataclass(frozen=True)
class Axes:
    """The axes of a mesh along which something is; none: the host link."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"over {' x '.join(self.names) if self.names else 'the host link'}"


@dataclass(frozen=True)
class Column:
    """A title, and a key for programs (none: not for them).

    `wide`: text that is wrapped, and its share of what the other columns leave on a page. `right`: set
    to the right. On a page, what is `joined` follows in the cell of the column before, and a `panel` is
    a table of its own below, that begins with the first column again; what is `data`, such as the name
    of a row in a file, is for a terminal and for spreadsheets only.
    """

    title: str
    wide: float = 0
    key: str = ""
    right: bool = False
    joined: bool = False
    panel: bool = False
    data: bool = False


@dataclass(frozen=True)
class Row:
    """Cells, a key for programs; `marked` where a reader should look, not `shown` where nothing is.

    `told`: what programs are told besides the cells, by keys.
    """

    cells: tuple[Cell, ...]
    key: str = ""
    marked: bool = False
    shown: bool = True
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A table that can stand alone.

    `key`: its place in a document for programs. `titled`: columns have their titles above them.
    `legend`: what symbols mean, by their names. On a page, `long` may take several, and of `headed`
    the first column becomes a heading above the rows that begin with it. `label`: by which a paper
    refers to it, if not by its key. `continues`: after how many parts it is the next of a table.
    `narrow`: one column of two has room for it. `caption`: what a paper calls it, if it has no title.
    """

    title: str
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    notes: tuple[Cell, ...] = ()
    key: str = ""
    titled: bool = False
    legend: Mapping[str, str] | None = None
    long: bool = False
    headed: bool = False
    label: str = ""
    continues: int = 0
    narrow: bool = False
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"{self.title}: {len(row.cells)} cells in {len(self.columns)} columns: {row}"
                )

    def document(self) -> Any:
        """For a program: rows by their keys, or else a list of them."""
        if any(row.key for row in self.rows):
            found: dict[str, Any] = {}
            for row in self.rows:
                if row.key:
                    put(found, row.key, self._record(row))
            return found
        return [self._record(row) for row in self.rows]

    def _record(self, row: Row) -> Any:
        cells = {c.key: data(v) for c, v in zip(self.columns, row.cells, strict=True) if c.key}
        record = data(row.told) | cells
        return record.get(ITSELF, record)


@dataclass(frozen=True)
class Report:
    """What a command found: lines under a title, sections, and what else programs are told.

    `right`: as asked; otherwise the command's exit code is 1.
    """

    command: str
    title: str
    facts: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    right: bool = True

    @property
    def unit(self) -> Unit:
        """One unit for all its bytes."""
        cells = (cell for section in self.sections for row in section.rows for cell in row.cells)
        return unit_of(c.value for c in cells if isinstance(c, Quantity) and c.unit == BYTES)

    def document(self) -> dict[str, Any]:
        """For a program: every number exactly, with the version of this form."""
        found: dict[str, Any] = {"report": self.command, "version": VERSION, **data(self.data)}
        for section in self.sections:
            if section.key:
                put(found, section.key, section.document())
        return found


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Put a value at a dotted path of a document; tables that meet there become one."""
    *above, last = path.split(".")
    for key in above:
        document = document.setdefault(key, {})
    if isinstance(value, dict) and isinstance(document.get(last), dict):
        for key, each in value.items():
            put(document[last], key, each)
    elif last in document:
        raise ValueError(f"{path} is there twice")
    else:
        document[last] = value


def data(cell: Cell) -> Any:
    """A cell for programs."""
    if isinstance(cell, Quantity):
        return cell.document()
    if isinstance(cell, Axes):
        return list(cell.names) or ["host"]
    if cell is None or isinstance(cell, bool | int | float | str):
        return cell
    if isinstance(cell, tuple | list):
        return [data(part) for part in cell]
    if isinstance(cell, Mapping):
        return {name: data(part) for name, part in cell.items()}
    return in_words(cell)


def spread(section: Section) -> Iterator[tuple[Column, str, list[Cell]]]:
    """What readers see of a section, column by column: its cells, and what is known of quantities.

    After the cells of a column come the formulas of its quantities, and their provenance, if any has.
    """
    shown = [row for row in section.rows if row.shown]
    for number, column in enumerate(section.columns):
        cells = [row.cells[number] for row in shown]
        yield column, CELLS, cells
        quantities = [cell if isinstance(cell, Quantity) else None for cell in cells]
        formulas = [q.formula if q and q.formula else "" for q in quantities]
        because = [q.provenance if q else "" for q in quantities]
        yield from [(column, FORMULA, formulas)] if any(formulas) else []
        yield from [(column, PROVENANCE, because)] if any(because) else []


def in_words(formula: Any) -> str:
    """A formula as one line of plain text."""
    if not hasattr(formula, "free_symbols"):
        return str(formula)
    from psem_model.text.formulas import plain

    return plain(formula)


def meanings(section: Section) -> list[tuple[str, str]]:
    """The part of a section's legend that its formulas need."""
    cells = [cell for row in section.rows for cell in row.cells] + [*section.notes]
    formulas = [part for cell in cells for part in parts(cell) if hasattr(part, "free_symbols")]
    used = {name for formula in formulas for name in NAME.findall(str(formula))}
    return [(k, words) for k, words in (section.legend or {}).items() if k.split("(")[0] in used]


def rows(cells: Iterable[tuple[Cell, ...]]) -> tuple[Row, ...]:
    """Rows that programs are not told by key."""
    return tuple(Row(each) for each in cells)


def listed(title: str, lines: Iterable[str]) -> Section:
    """A section of lines."""
    return Section(title, (Column("", 1),), rows((line,) for line in lines))


def meant(title: str, legend: Mapping[str, str]) -> Section:
    """A section that says what symbols mean."""
    return Section(title, (Column("symbol"), Column("meaning", 1)), rows(legend.items()))


def parts(cell: Cell) -> Iterator[Cell]:
    """What a cell or a note has several of, one by one."""
    yield from cell.said if isinstance(cell, Note) else cell if isinstance(cell, tuple) else (cell,)


def between(cell: Cell) -> str:
    """What stands between its parts: of a note, which is a sentence, a space."""
    return " " if isinstance(cell, Note) else "; "
