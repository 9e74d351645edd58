"""Writers of tables: LaTeX, Markdown, CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from psem_model.tables import Cell, Column, Table, parts, plain


# ------------------------------------------------------------------------------------------ CSV
def csv_text(table: Table) -> str:
    """Titles and rows, formulas as plain text."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow([column.title for column in table.columns])
    write.writerows(["; ".join(map(plain, parts(cell))) for cell in row] for row in table.rows)
    return out.getvalue()


# ------------------------------------------------------------------------------------- Markdown
SPECIAL_IN_MARKDOWN = re.compile(r"([\\`*_\[\]<>|$#~])")


def markdown(table: Table) -> str:
    """A pipe table, formulas as $...$."""

    def part(given: Cell) -> str:
        if isinstance(given, sympy.Basic):
            return f"${formula(given)}$"
        return SPECIAL_IN_MARKDOWN.sub(r"\\\1", " ".join(plain(given).split()))

    def line(cells: Iterable[Cell]) -> str:
        return f"| {' | '.join('; '.join(map(part, parts(cell))) for cell in cells)} |"

    notes = " ".join(map(part, parts(table.notes)))
    head = [f"**{part(table.title)}.** {notes}".rstrip(), ""]
    head += [line(column.title for column in table.columns), "|---" * len(table.columns) + "|"]
    legend = [f"{_meant(name, part)}: {part(words)}" for name, words in table.meanings]
    after = ["", "; ".join(legend) + "."] if legend else []
    return "\n".join([*head, *map(line, table.rows), *after]) + "\n"


def _meant(name: str, part: Callable[[Cell], str]) -> str:
    """A legend's name: a symbol, or a function with its arguments."""
    return part(name if "(" in name else sympy.Symbol(name))


# ---------------------------------------------------------------------------------------- LaTeX
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
BREAKS = re.compile(r"(?<=[\w)])([_*/+.,=(-])(?=[\w(])")  # where a long word may be broken
LONG_WORD = 12  # characters


def formula(expression: Any) -> str:
    """An expression in LaTeX's mathematics, the indices of symbols upright."""
    names = {}
    for symbol in expression.free_symbols:
        base, _, index = str(symbol).partition("_")
        if index:
            names[symbol] = rf"{sympy.latex(sympy.Symbol(base))}_{{\mathrm{{{index}}}}}"
    return str(sympy.latex(expression, symbol_names=names, fold_short_frac=True))


def escaped(text: str) -> str:
    """Text in LaTeX, in which long words may be broken."""
    words = []
    for word in " ".join(text.split()).split(" "):
        pieces = BREAKS.sub("\\1\0", word) if len(word) > LONG_WORD else word
        special = SPECIAL.sub(lambda found: ESCAPED[found[0]], pieces)
        words.append(special.replace("\0", r"\allowbreak{}"))
    return " ".join(words)


def latex(table: Table) -> str:
    """A float, or where it is long a table over several pages, with caption and label."""

    def part(given: Cell) -> str:
        return f"${formula(given)}$" if isinstance(given, sympy.Basic) else escaped(plain(given))

    def line(cells: Sequence[Cell]) -> str:
        return " & ".join("; ".join(map(part, parts(cell))) for cell in cells) + r" \\"

    title, said = part(table.title), [*map(part, parts(table.notes))]
    said += [f"{_meant(name, part)}: {part(words)}." for name, words in table.meanings]
    caption = rf"\caption[{title}]{{{' '.join([title + '.', *said])}}}\label{{{table.label}}}"
    head = [r"\toprule", line([column.title for column in table.columns]), r"\midrule"]
    rows = _spaced(table, [line(row) for row in table.rows])
    laid = (_long if table.long else _short)(table.columns, caption, head, rows)
    return "\n".join([f"% \\usepackage{{{','.join(NEEDS)}}}", *laid]) + "\n"


def _spaced(table: Table, lines: list[str]) -> list[str]:
    """Rows, with room between groups of rows that begin alike."""
    first = [row[0] for row in table.rows]
    if len({*first}) == len(first):
        return lines
    starts = [i > 0 and first[i] != first[i - 1] for i in range(len(first))]
    return [SPACE + text if new else text for new, text in zip(starts, lines, strict=True)]


SPACE = "\\addlinespace[3pt]\n"
SMALL = r"\footnotesize\setlength{\tabcolsep}{4pt}\renewcommand{\arraystretch}{1.1}"


def _widths(columns: Sequence[Column]) -> str:
    """Formulas are as wide as they are; what is left is for the texts."""
    wide = [column.wide for column in columns if column.wide]
    shares = [round(part * len(wide) / sum(wide), 3) for part in wide[1:]]
    left = iter([len(wide) - sum(shares), *shares])  # together exactly as many as there are
    return "@{}" + "".join(_wrapped(next(left)) if c.wide else "l" for c in columns) + "@{}"


def _wrapped(share: float) -> str:
    return rf">{{\hsize={share:.3f}\hsize\raggedright\arraybackslash}}X"


def _short(columns: Sequence[Column], caption: str, head: list[str], rows: list[str]) -> list[str]:
    wrapped = any(column.wide for column in columns)
    kind, width = ("tabularx", r"{\linewidth}") if wrapped else ("tabular", "")
    begin, end = rf"\begin{{{kind}}}{width}{{{_widths(columns)}}}", rf"\end{{{kind}}}"
    skip = r"\setlength{\abovecaptionskip}{0pt}\setlength{\belowcaptionskip}{6pt}"
    return [
        r"\begin{table}[htbp]",
        rf"\centering{skip}{SMALL}",
        caption,
        begin,
        *head,
        *rows,
        r"\bottomrule",
        end,
        r"\end{table}",
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


@dataclass(frozen=True)
class Format:
    """A writer, and how the names of its files end."""

    write: Callable[[Table], str]
    suffix: str


FORMATS = {
    "latex": Format(latex, ".tex"),
    "markdown": Format(markdown, ".md"),
    "csv": Format(csv_text, ".csv"),
}
