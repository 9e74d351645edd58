"""About how wide tables are on a page, in points at 8 pt: what fits, and which columns are wrapped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from psem_model.text.cells import expression_of, plain
from psem_model.text.formulas import formula, length
from psem_model.text.report import Cell, Column, Section, parts

CHARACTER, GAP = 4.2, 8  # of a character, and between columns
PAGE, COLUMN = 345, 228  # of a default article: its text, and one of its two columns
SIGN = re.compile(r"[{}+-]|\\allowbreak")
ENDS = re.compile(r"[ _/=:+-]")  # of what stays together in a line


def width(table: Section) -> float:
    """Of a table whose columns are all as wide as they are."""
    return sum(_widest(lane, _characters) + GAP for lane in _lanes(table))


def fitted(table: Section) -> Section:
    """The table, its words wrapped where a page would be too narrow for them as they are.

    What a page leaves is for those that need it: each has room for its longest word or term, and then
    as much as it has more to say.
    """
    columns, lanes = table.columns, _lanes(table)
    natural = [_widest(lane, _characters) for lane in lanes]
    least = [_widest(lane, _together) for lane in lanes]
    needed = sum(l if c.wide else n for c, n, l in zip(columns, natural, least, strict=True))
    if needed + GAP * len(columns) <= PAGE:
        return table
    wraps = [c.wide or _is_words(c, lane) for c, lane in zip(columns, lanes, strict=True)]
    fixed = sum(each for each, wrap in zip(natural, wraps, strict=True) if not wrap)
    room = PAGE - GAP * len(columns) - fixed - sum(l for l, w in zip(least, wraps, strict=True) if w)
    more = [n - l if wrap else 0 for n, l, wrap in zip(natural, least, wraps, strict=True)]
    share = max(room, 0) / (sum(more) or 1)
    wide = tuple(
        replace(column, wide=short + share * rest + GAP if wrap else 0)
        for column, short, rest, wrap in zip(columns, least, more, wraps, strict=True)
    )
    return replace(table, columns=wide)


def _lanes(table: Section) -> list[list[Cell]]:
    """The cells of each column, and its title, of which only words that are numbers' are stacked."""
    return [
        [*(column.title.split() if column.right else [column.title]), *(r.cells[n] for r in table.rows)]
        for n, column in enumerate(table.columns)
    ]


def _widest(cells: Sequence[Cell], count: Callable[[Cell], int]) -> float:
    return CHARACTER * max(map(count, cells))


def _characters(cell: Cell) -> int:
    """About how many a cell shows."""
    return sum(map(_of_part, parts(cell))) + 2 * (len([*parts(cell)]) - 1)


def _of_part(part: Cell) -> int:
    return len(plain(part)) if expression_of(part) is None else _signs(formula(expression_of(part)))


def _signs(latex: str) -> int:
    """As many characters as a formula is wide: it has wider letters, and spaces around its signs."""
    return round(1.5 * length(latex))


def _together(cell: Cell) -> int:
    """Of those, how many are beside each other in a line, however narrow."""
    return max(map(_longest, parts(cell)), default=0)


def _longest(part: Cell) -> int:
    """Of what no line ends in: a word up to a mark in it, or what is between a formula's signs."""
    if expression_of(part) is None:
        return max(map(len, ENDS.split(plain(part))))
    return max(map(_signs, _between_signs(formula(expression_of(part), broken=True))))


def _between_signs(latex: str) -> Iterator[str]:
    depth, begun = 0, 0
    for found in SIGN.finditer(latex):
        depth += (found[0] == "{") - (found[0] == "}")
        if found[0] not in "{}" and not depth:
            yield latex[begun : found.end()]
            begun = found.end()
    yield latex[begun:]


def _is_words(column: Column, lane: Sequence[Cell]) -> bool:
    """Whether a column has words, and no number or formula."""
    return not column.right and all(isinstance(part, str) for cell in lane for part in parts(cell))
