"""Reports and their sections as LaTeX, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter

from psem_model.text.figures import Unit, exactly
from psem_model.text.figures import plain as with_commas
from psem_model.text.report import (
    BYTES,
    CELLS,
    Cell,
    Column,
    Formula,
    Quantity,
    Report,
    Row,
    Section,
    in_words,
    meanings,
    parts,
    spread,
)


# ---------------------------------------------------------------------------------------- cells
def plain(part: Cell) -> str:
    """Text, a number without loss, or a formula, as one line of plain text."""
    if isinstance(part, sympy.Basic):
        return in_words(part)
    if isinstance(part, Fraction):
        return exactly(part)
    if isinstance(part, Quantity):
        return f"{exactly(part.exact)} {part.unit}".rstrip()
    if part is None:
        return ""
    return f"{part.normalize():f}" if isinstance(part, Decimal) else str(part)


def _expression(part: Cell) -> Any:
    """What is set as mathematics, if it is a formula."""
    if isinstance(part, Formula):
        return part.expression
    return part if isinstance(part, sympy.Basic) else None


def flat(section: Section, unit: Unit | None = None) -> Section:
    """The shown columns, with quantities as numbers, formulas and provenance in columns of their own.

    `unit`: of bytes; without one they are counted singly, and a column says its unit once.
    """
    columns: list[Column] = []
    lanes: list[list[Cell]] = []
    for column, kind, cells in spread(section):
        units = {cell.unit for cell in cells if isinstance(cell, Quantity)}
        if kind != CELLS:
            taken = any(kind == other.title for other in columns)
            columns.append(Column(f"{column.title}: {kind}" if taken else kind, 1))
            lanes.append(cells)
        elif unit is None and len(units) == 1 and units != {""}:
            (one,) = units
            title = one if column.title in (one, "") else f"{column.title}, {one}"
            columns.append(replace(column, title=title))
            lanes.append([c.exact if isinstance(c, Quantity) else c for c in cells])
        else:
            columns.append(column)
            lanes.append([_number(cell, unit) for cell in cells])
    rows = tuple(Row(cells) for cells in zip(*lanes, strict=True)) if lanes else ()
    return replace(section, columns=tuple(columns), rows=rows)


def _number(cell: Cell, unit: Unit | None) -> Cell:
    """A quantity for readers: bytes in their unit, others with commas. For programs, as it is."""
    if not isinstance(cell, Quantity) or unit is None:
        return cell
    if cell.unit == BYTES:
        return unit.texts(cell.value)[0]
    return f"{with_commas(cell.value)} {cell.unit}".rstrip()


def _sentences(notes: Iterable[str]) -> Iterator[str]:
    """Notes that follow each other on a line, each with an end."""
    for note in notes:
        yield note if note.endswith((".", ":", "!", "?")) else f"{note}."


# ------------------------------------------------------------------------------------------ CSV
def csv_text(table: Section) -> str:
    """Titles and rows, formulas as plain text."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    table = flat(table)
    write.writerow([column.title for column in table.columns])
    write.writerows(["; ".join(map(plain, parts(cell))) for cell in row.cells] for row in table.rows)
    return out.getvalue()


# ------------------------------------------------------------------------------------- Markdown
SPECIAL_IN_MARKDOWN = re.compile(r"([\\`*_\[\]<>|$#~])")


def escaped_markdown(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return SPECIAL_IN_MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def markdown(table: Section, unit: Unit | None = None) -> str:
    """A pipe table, formulas as $...$."""

    def part(given: Cell) -> str:
        if _expression(given) is not None:
            return f"${formula(_expression(given))}$"
        return escaped_markdown(plain(given))

    def line(cells: Iterable[Cell]) -> str:
        return f"| {' | '.join('; '.join(map(part, parts(cell))) for cell in cells)} |"

    table = flat(table, unit)
    notes = " ".join(_sentences("; ".join(map(part, parts(note))) for note in table.notes))
    title = f"**{part(table.title)}.**" if table.title else ""
    head = [f"{title} {notes}".strip(), ""] if title or notes else []
    if not table.columns:
        return "\n".join(head[:1]) + "\n"
    head += [line(column.title for column in table.columns), "|---" * len(table.columns) + "|"]
    legend = [f"{_meant(name, part)}: {part(words)}" for name, words in meanings(table)]
    after = ["", "; ".join(legend) + "."] if legend else []
    return "\n".join([*head, *(line(row.cells) for row in table.rows), *after]) + "\n"


def _meant(name: str, part: Callable[[Cell], str]) -> str:
    """A legend's name: a symbol, or a function with its arguments."""
    return part(name if "(" in name else sympy.Symbol(name))


# ---------------------------------------------------------------------------------------- LaTeX
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
    title, said = _part(table.title), [*_sentences(map(_cell, table.notes))]
    said += [f"{_meant(name, _part)}: {_part(words)}." for name, words in meanings(table)]
    caption = rf"\caption[{title}]{{{' '.join([title + '.', *said])}}}\label{{{label(table)}}}"
    columns = table.columns[table.headed :]
    head = [r"\toprule", _line([column.title for column in columns]), r"\midrule"]
    laid = (_long if table.long else _short)(columns, caption, head, [*_rows(table)])
    return "\n".join([f"% \\usepackage{{{','.join(NEEDS)}}}", *laid]) + "\n"


def _part(given: Cell) -> str:
    expression = _expression(given)
    return escaped(plain(given)) if expression is None else f"${formula(expression, broken=True)}$"


def _cell(cell: Cell) -> str:
    return "; ".join(map(_part, parts(cell)))


def label(table: Section) -> str:
    """By which a paper refers to it."""
    return f"tab:psem-{table.key}"


def _line(cells: Iterable[Cell], end: str = r"\\") -> str:
    return f"{' & '.join(map(_cell, cells))} {end}"


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


# --------------------------------------------------------------------------------------- reports
@dataclass(frozen=True)
class Format:
    """A writer of sections, and how the names of its files end."""

    write: Callable[[Section], str]
    suffix: str


FORMATS = {
    "latex": Format(latex, ".tex"),
    "markdown": Format(markdown, ".md"),
    "csv": Format(csv_text, ".csv"),
}


def report(found: Report, form: str) -> str:
    """A report with its title, its facts and every section; a section alone stands as it is.

    In CSV what is no table is in lines that begin with #; in LaTeX it is a paragraph.
    """
    unit = found.unit
    alone = len(found.sections) == 1 and not found.title and not found.facts
    if form == "csv":
        texts = [csv_text(s) if alone else _commented(s) for s in _with_head(found)]
    elif form == "latex":
        texts = [latex(s, unit) if s.rows else _paragraph(s) for s in _named(found)]
    else:
        texts = [_markdown_head(found), *(markdown(s, unit) for s in found.sections)]
    return "\n".join(filter(None, texts))


def _with_head(found: Report) -> Iterator[Section]:
    """The title and the facts, if there are any, and the sections."""
    if found.title or found.facts:
        yield Section(found.title, notes=found.facts)
    yield from found.sections


def _commented(section: Section) -> str:
    lines = [section.title, *("; ".join(map(plain, parts(note))) for note in section.notes)]
    said = "".join(f"# {line}\n" for line in lines if line)
    return said + (csv_text(section) if section.rows else "")


def _markdown_head(found: Report) -> str:
    head = f"## {escaped_markdown(found.title)}\n\n" if found.title else ""
    return head + "".join(f"- {escaped_markdown(fact)}\n" for fact in found.facts)


def _paragraph(section: Section) -> str:
    said = " ".join(
        _sentences(map(_cell, (section.title, *section.notes) if section.title else section.notes))
    )
    return rf"\noindent {said}\par" + "\n"


def _named(found: Report) -> Iterator[Section]:
    """Sections with a label and a caption each."""
    for number, section in enumerate(_with_head(found)):
        key = section.key.replace(".", "-") or f"{found.command}-{number}"
        title = section.title or (found.title or found.command if section.rows else "")
        yield replace(section, key=key, title=title)
