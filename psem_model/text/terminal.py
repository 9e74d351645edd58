"""Reports as text: even columns in a pipe; on a terminal its width and colours, by rich."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from string import ascii_uppercase
from typing import TYPE_CHECKING

from psem_model.text.figures import Unit, exactly, plain
from psem_model.text.report import (
    BYTES,
    CELLS,
    ELEMENTS,
    Cell,
    Column,
    Quantity,
    Report,
    Section,
    between,
    in_words,
    meanings,
    parts,
    spread,
)

if TYPE_CHECKING:
    from typing import Literal

    from rich.console import RenderableType
    from rich.table import Table

GAP, INDENT = 2, 2  # characters between columns, and before a section's lines
NARROWEST = 30  # characters that wrapped text is given at least
OF_NUMBER = re.compile(r"(?<![A-Za-z])(\d[\d,./]*) (?=[A-Za-z])")  # before what it is a number of
TITLE, FAINT, WRONG = "bold", "dim", "red"  # styles, where there are colours


@dataclass(frozen=True)
class Lane:
    """A column of texts on a terminal, made from a column of cells."""

    title: str
    texts: tuple[str, ...]
    right: bool = False
    wraps: bool = False
    faint: bool = False  # a formula, or where a number comes from

    @property
    def width(self) -> int:
        return max(map(len, (self.title, *self.texts)), default=0)

    @property
    def least(self) -> int:
        """The narrowest it can be wrapped: a number, or a word, stays on its line."""
        words = [word for text in (self.title, *self.texts) for word in text.split()]
        return min(self.width, max([NARROWEST, *map(len, words)]))


def text(report: Report, width: int | None = None, colours: bool = False) -> str:
    """A report as text. `width`: of a terminal; without one, as wide as it comes out."""
    unit = report.unit
    if width is None:
        lines = [*_head(report)]
        for section, title in _titled(report, unit):
            lines += [""] if title or not section.columns else []
            lines += [title] if title else []
            lines += [" " * INDENT + line for line in _even(_lanes(section, unit))]
            lines += [" " * INDENT + note for note in _notes(section)]
        return "\n".join(line.rstrip() for line in lines) + "\n"
    return _fitted(report, unit, width, colours)


def shown(report: Report) -> str:
    """A report for whoever reads the standard output: NO_COLOR and the terminal's width are heeded."""
    if not sys.stdout.isatty():
        return text(report)
    plain_only = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return text(report, shutil.get_terminal_size().columns, not plain_only)


def _head(report: Report) -> Iterator[str]:
    yield from [report.title] if report.title else []
    yield from (" " * INDENT + fact for fact in report.facts)


def _titled(report: Report, unit: Unit) -> Iterator[tuple[Section, str]]:
    """Sections with their titles; the first one with bytes says what their unit is."""
    said = False
    for section in report.sections:
        of_bytes = not said and any(_is_bytes(cell) for row in section.rows for cell in row.cells)
        yield (
            section,
            f"{section.title} ({unit.words})" if of_bytes and section.title else section.title,
        )
        said = said or (of_bytes and bool(section.title))


def _is_bytes(cell: Cell) -> bool:
    return isinstance(cell, Quantity) and cell.unit == BYTES


def _notes(section: Section) -> Iterator[str]:
    yield from (written(note) for note in section.notes)
    yield from (f"{name}: {words}" for name, words in meanings(section))


# ------------------------------------------------------------------------------- cells as texts
def written(cell: Cell) -> str:
    """A cell as one text."""
    return between(cell).join(map(_written, parts(cell)))


def _written(part: Cell) -> str:
    if part is None:
        return ""
    if isinstance(part, bool):
        return "yes" if part else "no"
    if isinstance(part, int):
        return plain(part)
    if isinstance(part, Fraction):
        return exactly(part)
    if isinstance(part, Quantity):
        return f"{plain(part.value)} {part.unit}".rstrip()
    return in_words(part)


def _lanes(section: Section, unit: Unit) -> list[Lane]:
    """What is shown of a section's columns: of quantities their numbers, formulas and provenance."""
    found: list[Lane] = []
    for column, kind, cells in spread(section):
        if kind == CELLS:
            found += _of_cells(column, cells, unit, section.titled)
        else:
            found.append(Lane("", tuple(map(str, cells)), wraps=True, faint=True))
    return found


def _of_cells(column: Column, cells: Sequence[Cell], unit: Unit, titled: bool) -> Iterator[Lane]:
    """A column's texts; of bytes, in powers of 1,000 and, where there is no title, of 1,024 beside."""
    title, wraps = column.title if titled else "", bool(column.wide)
    if any(map(_is_bytes, cells)):
        decimal, binary = zip(*(_both(cell, unit) for cell in cells), strict=True)
        yield Lane(title, decimal, column.right)
        yield from [] if titled else [Lane("", binary)]
    elif any(isinstance(cell, Quantity) for cell in cells):
        yield Lane(title, tuple(map(_number, cells)), column.right)
    else:
        yield Lane(title, tuple(map(written, cells)), column.right, wraps)


def _both(cell: Cell, unit: Unit) -> tuple[str, str]:
    return unit.texts(cell.value) if _is_bytes(cell) else (_number(cell), "")


def _number(cell: Cell) -> str:
    if not isinstance(cell, Quantity):
        return written(cell)
    unit = f" {cell.unit}" if cell.unit == ELEMENTS else ""
    return f"{plain(cell.value)}{unit}"


# ------------------------------------------------------------------------------ in a pipe
def _even(lanes: Sequence[Lane]) -> list[str]:
    """Lines with even columns, as wide as they come out; titles first, if there are any."""
    if not lanes:
        return []
    titled = any(lane.title for lane in lanes)
    padded = []
    for lane in lanes:
        pad = str.rjust if lane.right else str.ljust
        texts = (lane.title, *lane.texts) if titled else lane.texts
        padded.append([pad(each, max(map(len, texts), default=0)) for each in texts])
    return [(" " * GAP).join(cells).rstrip() for cells in zip(*padded, strict=True)]


# ------------------------------------------------------------------------------ on a terminal
def _fitted(report: Report, unit: Unit, width: int, colours: bool) -> str:
    """In so many characters a line: what does not fit side by side is set one below the other."""
    from io import StringIO

    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    found = StringIO()
    console = Console(
        file=found,
        width=width,
        force_terminal=colours,
        no_color=not colours,
        color_system="standard" if colours else None,
        highlight=False,
        emoji=False,
        markup=False,
    )

    def words(said: str) -> Text:
        """A sentence in which no line ends between a number and its unit."""
        return Text(OF_NUMBER.sub("\\1\N{NO-BREAK SPACE}", said))

    def put(block: RenderableType) -> None:
        console.print(Padding(block, (0, 0, 0, INDENT)))

    if report.title:
        console.print(Text(report.title, TITLE if report.right else f"{TITLE} {WRONG}"))
    for fact in report.facts:
        put(words(fact))
    for section, title in _titled(report, unit):
        if title or not section.columns:
            console.print()
        if title:
            console.print(Text(title, TITLE))
        marked = [row.marked for row in section.rows if row.shown]
        for block in _blocks(_lanes(section, unit), marked, width - INDENT):
            put(block)
        for note in _notes(section):
            put(words(note))
    lines = found.getvalue().replace("\N{NO-BREAK SPACE}", " ").splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _blocks(lanes: Sequence[Lane], marked: Sequence[bool], width: int) -> Iterator[RenderableType]:
    """A table if it fits; else with long texts below each row; else a block for each row."""
    if not lanes:
        return
    if lanes[-1].wraps and not any(lane.wraps for lane in lanes[:-1]):
        fits = _together(lanes[:-1]) + max(NARROWEST, lanes[-1].least) + GAP <= width
    else:
        fits = _together(lanes) <= width
    short = [lane for lane in lanes if not lane.wraps]
    if fits:
        yield _table(lanes, marked)
    elif short and _together(short) <= width and lanes[0] in short:
        yield from _folded(lanes, marked, width)
    elif short == [*lanes] and _together(_lettered(lanes)) <= width:
        yield from _legend(lanes)
        yield _table(_lettered(lanes), marked)
    else:
        yield from _turned(lanes, marked, width)


def _together(lanes: Sequence[Lane]) -> int:
    """Characters that some columns take beside each other."""
    return sum(lane.width + GAP for lane in lanes)


def _lettered(lanes: Sequence[Lane]) -> list[Lane]:
    """Columns with a letter in place of a long title: A, B and so on."""
    first, *others = lanes
    letters = dict(zip([lane for lane in others if len(lane.title) > 1], ascii_uppercase, strict=False))
    return [first, *(replace(lane, title=letters.get(lane, lane.title)) for lane in others)]


def _legend(lanes: Sequence[Lane]) -> Iterator[RenderableType]:
    """Which column has which letter."""
    from rich.text import Text

    for lane, short in zip(lanes, _lettered(lanes), strict=True):
        if lane.title != short.title:
            yield Text(f"{short.title}  {lane.title}", FAINT)


def _table(lanes: Sequence[Lane], marked: Sequence[bool]) -> Table:
    """Columns side by side; only the last is wrapped, if it is too long."""
    from rich.table import Table

    found = Table(
        box=None,
        show_header=any(lane.title for lane in lanes),
        pad_edge=False,
        padding=(0, GAP, 0, 0),
        header_style=FAINT,
    )
    for lane in lanes:
        style = FAINT if lane.faint else None
        justify: Literal["left", "right"] = "right" if lane.right else "left"
        found.add_column(lane.title, justify=justify, no_wrap=not lane.wraps, style=style)
    cells = zip(*(lane.texts for lane in lanes), strict=True)
    for texts, is_marked in zip(cells, marked, strict=True):
        found.add_row(*texts, style=WRONG if is_marked else None)
    return found


def _folded(lanes: Sequence[Lane], marked: Sequence[bool], width: int) -> Iterator[RenderableType]:
    """Short columns side by side, and what is long below each row."""
    from rich.text import Text

    short = [lane for lane in lanes if not lane.wraps]
    head, *lines = _even(short) if any(lane.title for lane in short) else ("", *_even(short))
    if head:
        yield Text(head, FAINT)
    for number, line in enumerate(lines):
        yield Text(line, WRONG if marked[number] else "")
        items = [lane.texts[number] for lane in lanes if lane.wraps and lane.texts[number]]
        yield from _flowing(items, width)


def _turned(lanes: Sequence[Lane], marked: Sequence[bool], width: int) -> Iterator[RenderableType]:
    """Each row as a block: what it is of, then its other texts, with their titles if they have any."""
    from rich.padding import Padding
    from rich.text import Text

    first, *others = lanes
    titled = any(lane.title for lane in lanes)
    for number, name in enumerate(first.texts):
        yield Text(f"{first.title} {name}".strip(), WRONG if marked[number] else "")
        there = [lane for lane in others if lane.texts[number]]
        widest = max((len(lane.title) for lane in there), default=0)
        for lane in there if titled else ():
            said, room = lane.texts[number], width - INDENT - widest - GAP
            if len(said) <= room:
                line = Text(lane.title.ljust(widest + GAP), FAINT).append(said, "not dim")
                yield Padding(line, (0, 0, 0, INDENT))
            else:
                yield Padding(Text(lane.title, FAINT), (0, 0, 0, INDENT))
                yield Padding(Text(said), (0, 0, 0, 2 * INDENT))
        if not titled:
            yield from _flowing([lane.texts[number] for lane in there], width)


def _flowing(items: Iterable[str], width: int) -> Iterator[RenderableType]:
    """Texts beside each other while there is room; a line ends between two of them where it can."""
    from rich.padding import Padding
    from rich.text import Text

    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + GAP + len(item) <= width - INDENT:
            lines[-1] += " " * GAP + item
        else:
            lines.append(item)
    for line in lines:
        yield Padding(Text(line, FAINT), (0, 0, 0, INDENT))
