"""Reports and their sections as LaTeX, Markdown, HTML and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from psem_model.text.cells import Setting, flat, in_line, sentences
from psem_model.text.figures import Unit
from psem_model.text.formulas import formula
from psem_model.text.html import SETTING as HTML
from psem_model.text.html import html
from psem_model.text.latex import SETTING as LATEX
from psem_model.text.latex import latex
from psem_model.text.report import Cell, Report, Section


# ------------------------------------------------------------------------------------------ CSV
def csv_text(table: Section) -> str:
    """Titles and rows, formulas as plain text."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    table = flat(table, data=True)
    write.writerow([column.title for column in table.columns])
    write.writerows(map(in_line, row.cells) for row in table.rows)
    return out.getvalue()


# ------------------------------------------------------------------------------------- Markdown
SPECIAL_IN_MARKDOWN = re.compile(r"([\\`*_\[\]<>|$#~])")


def _words(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return SPECIAL_IN_MARKDOWN.sub(r"\\\1", text)


def _line(text: str) -> str:
    return _words(" ".join(text.split()))


MARKDOWN = Setting(_words, "${}$".format, lambda expression: f"${formula(expression)}$", _line)


def markdown(table: Section, unit: Unit | None = None) -> str:
    """A pipe table, formulas as $...$."""
    table = flat(table, unit)
    title, below = MARKDOWN.title(table), MARKDOWN.below(table)
    title = f"**{title}**" if title else ""
    if not table.columns:
        return f"{title} {below}".strip() + "\n"
    head = [title, ""] if title else []
    head += [_row(column.title for column in table.columns), "|---" * len(table.columns) + "|"]
    after = ["", below] if below else []
    return "\n".join([*head, *(_row(row.cells) for row in table.rows), *after]) + "\n"


def _row(cells: Iterable[Cell]) -> str:
    return f"| {' | '.join(map(MARKDOWN.cell, cells))} |"


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
    "html": Format(html, ".html"),
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
    elif form == "html":
        texts = [_html_head(found), *(html(s, unit) for s in found.sections)]
    else:
        texts = [_markdown_head(found), *(markdown(s, unit) for s in found.sections)]
    return "\n".join(filter(None, texts))


def _with_head(found: Report) -> Iterator[Section]:
    """The title and the facts, if there are any, and the sections."""
    if found.title or found.facts:
        yield Section(found.title, notes=found.facts)
    yield from found.sections


def _commented(section: Section) -> str:
    lines = [section.title, *map(in_line, section.notes)]
    said = "".join(f"# {line}\n" for line in lines if line)
    return said + (csv_text(section) if section.rows else "")


def _markdown_head(found: Report) -> str:
    head = f"## {MARKDOWN.cell(found.title)}\n\n" if found.title else ""
    return head + "".join(f"- {MARKDOWN.cell(fact)}\n" for fact in found.facts)


def _html_head(found: Report) -> str:
    head = f"<h2>{HTML.cell(found.title)}</h2>\n" if found.title else ""
    facts = "".join(f"<li>{HTML.cell(fact)}</li>" for fact in found.facts)
    return head + (f"<ul>{facts}</ul>\n" if facts else "")


def _paragraph(section: Section) -> str:
    notes = [each[:1].upper() + each[1:] if isinstance(each, str) else each for each in section.notes]
    said = " ".join(sentences(map(LATEX.cell, (section.title, *notes) if section.title else notes)))
    return rf"{{\noindent\raggedright {said}\par}}" + "\n"


def _named(found: Report) -> Iterator[Section]:
    """Sections with a label and a caption each: what it is, and what the report is of."""
    for number, section in enumerate(_with_head(found)):
        key = section.key.replace(".", "-") or f"{found.command}-{number}"
        said = section.title or section.caption or found.command
        title = f"{said[:1].upper()}{said[1:]}: {found.title}" if found.title else said
        yield replace(section, key=key, title=title if section.rows else section.title)
