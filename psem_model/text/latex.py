"""Sections as LaTeX: floats, or tables over several pages, with mathematics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter

from psem_model.text.cells import expression_of, flat, meant, plain, sentences
from psem_model.text.figures import Unit
from psem_model.text.report import (
    Cell,
    Column,
    Section,
    meanings,
    parts,
)


class _Formulas(LatexPrinter):  # type: ignore[misc]
    """Fractions as a / (b c), so that lines stay low; what is taken off comes last."""

    def _print_Mul(self, expr: Any) -> str:
        above, below = sympy.fraction(expr)
        if below == 1:
            return str(super()._print_Mul(expr))
        under = self._print(below)
        over = f"({self._print(above)})" if above.is_Add else self._print(above)
        several = below.is_Mul or below.is_Add
        return f"{over} / {BREAK}({under})" if several else f"{over} / {BREAK}{under}"

    def _print_Pow(self, expr: Any) -> str:
        inverse = sympy.fraction(expr)[1] != 1
        return self._print_Mul(expr) if inverse else str(super()._print_Pow(expr))

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list[Any]:
        terms = super()._as_ordered_terms(expr, order=order)
        return sorted(terms, key=lambda term: bool(term.could_extract_minus_sign()))


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
BREAK = r"\allowbreak "
SIZED = re.compile(r"\\(?:left|right)(?![a-z])")  # no line ends between delimiters that are sized


def formula(expression: Any, broken: bool = False) -> str:
    """An expression in LaTeX's mathematics, the indices of symbols upright.

    `broken`: a line may end between any two factors, as it may between terms.
    """
    names = {}
    for symbol in expression.free_symbols:
        base, _, index = str(symbol).partition("_")
        if index:
            names[symbol] = rf"{sympy.latex(sympy.Symbol(base))}_{{\mathrm{{{index}}}}}"
    settings = {"symbol_names": names, "fold_short_frac": True, "mul_symbol": f" {BREAK}"}
    written = SIZED.sub("", str(_Formulas(settings).doprint(expression)))
    return written if broken else written.replace(BREAK, "")


def escaped(text: str) -> str:
    """Text in LaTeX, in which long words may be broken."""
    words = []
    for word in " ".join(text.split()).split(" "):
        pieces = BREAKS.sub("\\g<0>\0", word) if len(word) > LONG_WORD else word
        special = SPECIAL.sub(lambda found: ESCAPED[found[0]], pieces)
        words.append(special.replace("\0", r"\allowbreak{}"))
    return " ".join(words)


def latex(table: Section, unit: Unit | None = None) -> str:
    """A float, or where it is long a table over several pages, with caption and label."""
    table = flat(table, unit)
    title, said = _part(table.title), [*sentences(map(cell_text, table.notes))]
    said += [f"{meant(name, _part)}: {_part(words)}." for name, words in meanings(table)]
    caption = rf"\caption[{title}]{{{' '.join([title + '.', *said])}}}\label{{{label(table)}}}"
    columns = table.columns[table.headed :]
    head = [r"\toprule", _line([column.title for column in columns]), r"\midrule"]
    laid = (_long if table.long else _short)(columns, caption, head, [*_rows(table)])
    return "\n".join([f"% \\usepackage{{{','.join(NEEDS)}}}", *laid]) + "\n"


def _part(given: Cell) -> str:
    expression = expression_of(given)
    return escaped(plain(given)) if expression is None else f"${formula(expression, broken=True)}$"


def cell_text(cell: Cell) -> str:
    return "; ".join(map(_part, parts(cell)))


def label(table: Section) -> str:
    """By which a paper refers to it."""
    return f"tab:psem-{table.key}"


def _line(cells: Iterable[Cell], end: str = r"\\") -> str:
    return f"{' & '.join(map(cell_text, cells))} {end}"


def _rows(table: Section) -> Iterator[str]:
    """Rows that begin alike stay together, and say once what they begin with."""
    cells_of = [row.cells for row in table.rows]
    groups = [[*rows] for _, rows in groupby(cells_of, key=itemgetter(0))]
    for number, rows in enumerate(groups):
        if number and len(groups) < len(table.rows):
            yield SPACE
        (first, *cells), *others = rows
        if table.headed:
            yield rf"\multicolumn{{{len(cells)}}}{{@{{}}l@{{}}}}{{\itshape {_part(first)}}} \\*"
            yield from (_line(row[1:]) for row in rows)
        else:
            lines = [(first, *cells), *(("", *row[1:]) for row in others)]
            yield from (_line(line, r"\\*") for line in lines[:-1])
            yield _line(lines[-1])


SPACE = r"\addlinespace[3pt]"
SMALL = r"\fontsize{8}{9.5}\selectfont\setlength{\tabcolsep}{4pt}"


def _widths(columns: Sequence[Column]) -> str:
    """Formulas are as wide as they are; what is left is for the texts."""
    wide = [column.wide for column in columns if column.wide]
    shares = [round(part * len(wide) / sum(wide), 3) for part in wide[1:]]
    left = iter([len(wide) - sum(shares), *shares])  # together exactly as many as there are
    return "@{}" + "".join(_wrapped(next(left)) if c.wide else "l" for c in columns) + "@{}"


def _wrapped(share: float) -> str:
    return rf">{{\hsize={share:.3f}\hsize\raggedright\arraybackslash\hspace{{0pt}}}}X"


def _short(columns: Sequence[Column], caption: str, head: list[str], rows: list[str]) -> list[str]:
    wrapped = any(column.wide for column in columns)
    kind, width = ("tabularx", r"{\linewidth}") if wrapped else ("tabular", "")
    begin, end = rf"\begin{{{kind}}}{width}{{{_widths(columns)}}}", rf"\end{{{kind}}}"
    skip = r"\setlength{\abovecaptionskip}{4pt}\setlength{\belowcaptionskip}{4pt}"
    return [
        r"\begin{table*}",
        rf"\centering{skip}{SMALL}",
        caption,
        begin,
        *head,
        *rows,
        r"\bottomrule",
        end,
        r"\end{table*}",
    ]


def _long(columns: Sequence[Column], caption: str, head: list[str], rows: list[str]) -> list[str]:
    again = rf"\multicolumn{{{len(columns)}}}{{@{{}}l@{{}}}}{{\tablename~\thetable, continued}} \\"
    after = rf"\midrule \multicolumn{{{len(columns)}}}{{@{{}}r@{{}}}}{{continued}} \\"
    return [
        rf"{{{SMALL}\setlength{{\LTcapwidth}}{{\linewidth}}",
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
        r"\endlastfoot",
        *rows,
        r"\end{xltabular}}",
    ]
