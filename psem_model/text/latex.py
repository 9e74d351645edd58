"""Sections as LaTeX: floats, or tables over several pages, with mathematics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from psem_model.text.cells import Setting, flat
from psem_model.text.figures import Unit
from psem_model.text.formulas import formula
from psem_model.text.report import (
    Cell,
    Column,
    Row,
    Section,
    parts,
)
from psem_model.text.widths import fitted

NEEDS = ("amsmath", "array", "booktabs", "tabularx", "xltabular")  # packages
ESCAPED = {
    **{c: f"\\{c}" for c in "{}$&#%_"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': "''",
    "--": "-{}-",
    "<=": r"$\leq$",
    ">=": r"$\geq$",
    "->": r"$\to$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "Psi": r"$\Psi$",
}
SPECIAL = re.compile("|".join(map(re.escape, sorted(ESCAPED, key=len, reverse=True))))
# where a long word may be broken: after a mark in it, but for those within a number, or in camelCase
BREAKS = re.compile(r"(?<=[\w)])(?:[_*/+:=(-]|(?<!\d)[.,]|[.,](?!\d))(?=[\w(])|(?<=[a-z])(?=[A-Z])")
LONG_WORD = 7  # characters


def escaped(text: str) -> str:
    """Text in LaTeX, in which long words may be broken."""
    words = []
    for word in " ".join(text.split()).split(" "):
        pieces = BREAKS.sub("\\g<0>\0", word) if len(word) > LONG_WORD else word
        special = SPECIAL.sub(lambda found: ESCAPED[found[0]], pieces)
        words.append(special.replace("\0", r"\allowbreak{}"))
    return " ".join(words)


def _words(part: str) -> str:
    """Words between mathematics, with the spaces around them."""
    before, after = " " * part.startswith(" "), " " * (part.endswith(" ") and not part.isspace())
    return f"{before}{escaped(part)}{after}"


def _formula(expression: Any) -> str:
    return f"${formula(expression, broken=True)}$"


SETTING = Setting(_words, "${}$".format, _formula, escaped)


def preamble() -> str:
    """The line that a document needs before any of the tables."""
    return rf"\usepackage{{{','.join(NEEDS)}}}"


def latex(table: Section, unit: Unit | None = None) -> str:
    """A float, or where it is long a table over several pages, with caption and label."""
    by_hand = any(column.wide for column in table.columns)
    table = joined(flat(table, unit))
    table = table if by_hand else fitted(table)
    caption, below = _caption(table), SETTING.below(table)
    if table.long:
        laid = _long(table.columns[table.headed :], caption, [*_rows(table)], below)
    else:
        laid = _short([*panels(table)], caption, below, "table" if table.narrow else "table*")
    return "\n".join([f"% {preamble()}", *laid]) + "\n"


def _caption(table: Section) -> str:
    """The title and the label; a part that continues says only so, and has a place for hyperref."""
    if table.continues:
        found_by = rf"\def\theHtable{{\thetable.{table.continues}}}"
        return rf"{found_by}\addtocounter{{table}}{{-1}}\caption[]{{Continued.}}"
    return rf"\caption{{{SETTING.title(table)}}}\label{{{label(table)}}}"


def joined(table: Section) -> Section:
    """What is joined is in the cell of the column before."""
    columns: list[Column] = []
    lanes: list[list[Cell]] = []
    for number, column in enumerate(table.columns):
        cells = [row.cells[number] for row in table.rows]
        if column.joined and columns:
            columns[-1] = replace(columns[-1], title=f"{columns[-1].title}; {column.title}")
            lanes[-1] = [(*parts(a), *parts(b)) for a, b in zip(lanes[-1], cells, strict=True)]
        else:
            columns.append(column)
            lanes.append(cells)
    rows = tuple(Row(cells) for cells in zip(*lanes, strict=True)) if lanes else ()
    return replace(table, columns=tuple(columns), rows=rows)


def panels(table: Section) -> Iterator[Section]:
    """A table for each panel, of which all begin with the first column."""
    starts = [number for number, column in enumerate(table.columns) if column.panel and number > 1]
    for start, end in pairwise((1, *starts, len(table.columns))):
        rows = tuple(Row((row.cells[0], *row.cells[start:end])) for row in table.rows)
        yield replace(table, columns=(table.columns[0], *table.columns[start:end]), rows=rows)


def label(table: Section) -> str:
    """By which a paper refers to it."""
    return table.label or f"tab:psem-{table.key}"


def _line(cells: Iterable[Cell], end: str = r"\\") -> str:
    return f"{' & '.join(map(SETTING.cell, cells))} {end}"


def _rows(table: Section) -> Iterator[str]:
    """Rows that begin alike stay together, and say once what they begin with."""
    cells_of = [row.cells for row in table.rows]
    groups = [[*rows] for _, rows in groupby(cells_of, key=itemgetter(0))]
    for number, rows in enumerate(groups):
        if number and len(groups) < len(table.rows):
            yield SPACE
        (first, *cells), *others = rows
        if table.headed:
            yield rf"\multicolumn{{{len(cells)}}}{{@{{}}l@{{}}}}{{\itshape {SETTING.part(first)}}} \\*"
            yield from (_line(row[1:]) for row in rows)
        else:
            lines = [(first, *cells), *(("", *row[1:]) for row in others)]
            yield from (_line(line, r"\\*") for line in lines[:-1])
            yield _line(lines[-1])


SPACE = r"\addlinespace[3pt]"
MOST = 9  # columns of the usual size
SMALLER = r"\fontsize{7}{8.5}\selectfont\setlength{\tabcolsep}{2pt}"
OF_CAPTION = r"\def\normalsize{\fontsize{8}{9.5}\selectfont}"  # as of tables over several pages
SMALL = r"\hbadness=10000\fontsize{8}{9.5}\selectfont\setlength{\tabcolsep}{4pt}"


def _widths(columns: Sequence[Column]) -> str:
    """Formulas are as wide as they are; what is left is for the texts."""
    wide = [column.wide for column in columns if column.wide]
    shares = [round(part * len(wide) / sum(wide), 3) for part in wide[1:]]
    left = iter([len(wide) - sum(shares), *shares])  # together exactly as many as there are
    kinds = (_wrapped(next(left)) if c.wide else "r" if c.right else "l" for c in columns)
    return "@{}" + "".join(kinds) + "@{}"


def _wrapped(share: float) -> str:
    return rf">{{\hsize={share:.3f}\hsize\raggedright\arraybackslash\hspace{{0pt}}}}X"


def _head(columns: Sequence[Column]) -> list[str]:
    """The titles between rules; those of numbers in lines as short as a word."""
    if not any(column.title for column in columns):
        return [r"\toprule"]
    titles = (
        _stacked(column.title) if column.right else SETTING.part(column.title) for column in columns
    )
    return [r"\toprule", rf"{' & '.join(titles)} \\", r"\midrule"]


def _stacked(title: str) -> str:
    words = [*map(SETTING.part, title.split())]
    return words[0] if len(words) == 1 else r"\shortstack[r]{" + r"\\".join(words) + "}"


def _short(panels: Sequence[Section], caption: str, below: str, kind_of_float: str) -> list[str]:
    """A float, with one panel below the other."""
    skip = r"\setlength{\abovecaptionskip}{4pt}\setlength{\belowcaptionskip}{4pt}"
    laid = [rf"\begin{{{kind_of_float}}}", rf"\centering{skip}{SMALL}{OF_CAPTION}", caption]
    for number, panel in enumerate(panels):
        columns = panel.columns[panel.headed :]
        wrapped = any(column.wide for column in columns)
        kind, width = ("tabularx", r"{\linewidth}") if wrapped else ("tabular", "")
        laid += [r"\par\vspace{6pt}"] if number else []
        laid += [SMALLER] if len(columns) > MOST else []
        laid += [rf"\begin{{{kind}}}{width}{{{_widths(columns)}}}", *_head(columns), *_rows(panel)]
        laid += [r"\bottomrule", rf"\end{{{kind}}}"]
    laid += [rf"\par\vspace{{4pt}}\parbox{{\linewidth}}{{\raggedright {below}}}"] if below else []
    return [*laid, rf"\end{{{kind_of_float}}}"]


# xltabular begins with two places of one name, for hyperref; while amsmath measures, with one
ONE_PLACE = r"\csname measuring@true\endcsname"


def _long(columns: Sequence[Column], caption: str, rows: list[str], below: str) -> list[str]:
    again = rf"\multicolumn{{{len(columns)}}}{{@{{}}l@{{}}}}{{\tablename~\thetable, continued}} \\"
    after = rf"\midrule \multicolumn{{{len(columns)}}}{{@{{}}r@{{}}}}{{continued}} \\"
    head = _head(columns)
    return [
        rf"{{{SMALL}{ONE_PLACE}\setlength{{\LTcapwidth}}{{\linewidth}}",
        rf"\begin{{xltabular}}{{\linewidth}}{{{_widths(columns)}}}",
        caption + r" \\",
        *head,
        r"\endfirsthead",
        again,
        *head,
        r"\endhead",
        after,
        r"\endfoot",
        r"\bottomrule",
        *(
            [rf"\multicolumn{{{len(columns)}}}{{@{{}}p{{\linewidth}}@{{}}}}{{\raggedright {below}}}"]
            if below
            else []
        ),
        r"\endlastfoot",
        *rows,
        r"\end{xltabular}}",
    ]
