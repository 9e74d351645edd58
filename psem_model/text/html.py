"""Sections as HTML: a table with its caption, formulas as text with raised and lowered parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from psem_model.text.cells import Setting, flat
from psem_model.text.figures import Unit
from psem_model.text.formulas import formula
from psem_model.text.report import Cell, Section

SIGNS = {
    r"\lceil": "⌈",
    r"\rceil": "⌉",
    r"\Psi": "Ψ",
    r"\theta": "θ",
    r"\omega": "ω",
    r"\epsilon": "ε",
    r"\leq": " ≤ ",
    r"\geq": " ≥ ",
    r"\Rightarrow": " ⇒ ",
    r"\Leftrightarrow": " ⇔ ",
    r"\to": " → ",
    r"\times": "\N{MULTIPLICATION SIGN}",
    r"\min": "min",
    r"\max": "max",
    r"\sqrt": "√",
    "=": " = ",
    "<": " &lt; ",
    ">": " &gt; ",
    "+": " + ",
    "-": " \N{MINUS SIGN} ",
    ",": ", ",
    "/": "/",
    "'": "\N{PRIME}",
}
TOKEN = re.compile(r"\\(?:operatorname|mathrm|text)\{([^{}]*)\}|(\\[A-Za-z]+)|([\d.]+)|([A-Za-z])|(\S)")
THIN = "\N{THIN SPACE}"


def mathematics(latex: str) -> str:
    """What LaTeX's mathematics of formulas says, as HTML."""
    out: list[str] = []
    closes: list[str] = []
    raised, called = "", False  # called: a function is, or was just now
    joined = False  # the token before ends a factor: another one beside it is multiplied
    for found in TOKEN.finditer(latex):
        upright, command, number, letter, sign = found.groups()
        if sign in ("_", "^"):
            raised = {"_": "sub", "^": "sup"}[sign]
            continue
        if sign == "{":
            bracket = bool(out) and out[-1] == SIGNS[r"\sqrt"]
            opens, ends = (
                (f"<{raised}>", f"</{raised}>") if raised else ("(", ")") if bracket else ("", "")
            )
            out.append(opens)
            closes.append(ends)
            joined, raised = joined and not opens, ""
            continue
        if sign == "}":
            out.append(closes.pop())
            continue
        begins = bool(upright or number or letter or sign == "(" or command in (r"\lceil", r"\sqrt"))
        begins = begins or command in (r"\Psi", r"\theta", r"\omega", r"\min", r"\max")
        text = _one(upright, command, number, letter, sign)
        applied, called = sign == "(" and called, found[0].startswith(r"\operatorname")
        if joined and begins and not applied and not raised:
            out.append(THIN)
        out.append(f"<{raised}>{text}</{raised}>" if raised else text)
        raised = ""
        joined = begins and sign != "(" and command not in (r"\lceil", r"\sqrt", r"\min", r"\max")
        joined = joined or sign == ")" or command == r"\rceil"
    return re.sub(r"  +", " ", "".join(out)).strip()


def _one(upright: str | None, command: str, number: str, letter: str, sign: str) -> str:
    if upright is not None:
        return escape(upright)
    if letter:
        return f"<i>{letter}</i>"
    return SIGNS.get(command or sign, escape(number or sign or command or ""))


def _formula(expression: Any) -> str:
    return f'<span class="formula">{mathematics(formula(expression))}</span>'


SETTING = Setting(escape, mathematics, _formula, escape)
text = SETTING.cell  # a cell as HTML


def html(table: Section, unit: Unit | None = None) -> str:
    """A table with its caption; under it, notes and the meanings of its symbols."""
    table = flat(table, unit)
    title, said = SETTING.title(table), SETTING.below(table)
    caption = [f"<caption><b>{title}</b></caption>"] if title else []
    below = [f"<p>{said}</p>"] if said else []
    return "\n".join(["<table>", *caption, *_body(table), "</table>", *below]) + "\n"


def _body(table: Section) -> Iterator[str]:
    if any(column.title for column in table.columns):
        yield f"<thead>{_line('th', (column.title for column in table.columns))}</thead>"
    yield "<tbody>"
    yield from (_line("td", row.cells) for row in table.rows)
    yield "</tbody>"


def _line(kind: str, cells: Iterable[Cell]) -> str:
    return f"<tr>{''.join(f'<{kind}>{text(cell)}</{kind}>' for cell in cells)}</tr>"
