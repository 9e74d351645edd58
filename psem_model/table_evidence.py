"""Tables of what is known: claims, safe and unsafe schedules, published values beside predictions."""

from __future__ import annotations

from typing import Any

import sympy

from proofs.registry import ROOT, claims
from psem_model.checking import RULES, Checked, check_file
from psem_model.published import published, reproduce
from psem_model.tables import Column, Style, Table
from spec.states import MIXED_ADAM

EXAMPLES = ROOT / "examples"


def claims_table(style: Style) -> Table:
    """The registry."""
    rows = tuple((c.id, c.statement, c.expected, "; ".join(c.caveats), c.source) for c in claims())
    return Table(
        "claims",
        "Claims, their verdicts and caveats",
        (
            Column("claim"),
            Column("statement", 1.6),
            Column("verdict"),
            Column("caveats", 1.2),
            Column("source", 1.1),
        ),
        rows,
        "Verdicts: those of the registry, which make prove compares with what is proved and refuted.",
        long=True,
    )


def compositions(style: Style) -> Table:
    """Schedules over several axes."""
    several = "Schedules over several axes, safe and unsafe", (2, 99)
    return _gallery("compositions", *several)


def schedules(style: Style) -> Table:
    """Schedules over one axis."""
    return _gallery("schedules", "Schedules of data parallelism, right and wrong", (1, 1))


def _gallery(name: str, title: str, axes: tuple[int, int]) -> Table:
    """The examples with so many axes: the verdict that `psem check` finds, and what they say."""
    rows = []
    for path in sorted(EXAMPLES.glob("*.toml")):
        found = check_file(str(path), None, None, MIXED_ADAM)
        if axes[0] <= len(found.schedule.axes) <= axes[1]:
            along = ", ".join(found.schedule.axes)
            rows.append((path.stem, along, *_found(found), _said(path.read_text(encoding="utf-8"))))
    rules = "; ".join(f"{rule}: {words}" for rule, words in RULES.items())
    return Table(
        name,
        title,
        (
            Column("schedule", 0.7),
            Column("along", 0.35),
            Column("verdict"),
            Column("breaks"),
            Column("reason", 1.95),
        ),
        tuple(rows),
        f"Rules: {rules}. Files of examples/, each looked at on 1, 2, 3 and very many devices along "
        "each axis, with 1, 2 and 3 micro-steps.",
        long=True,
    )


def _found(found: Checked) -> tuple[str, str]:
    return ("accepted" if found.verdict.accepted else "rejected"), found.verdict.rule


def _said(text: str) -> str:
    """What a file says of itself, after its expected verdict."""
    lines = text.splitlines()
    comments = [line.removeprefix("#").strip() for line in lines[1:] if line.startswith("#")]
    return " ".join(comments)


def published_table(style: Style) -> Table:
    """Every published value beside what is predicted."""
    rows = []
    for entry in published():
        found = reproduce(entry)
        printed = entry.value if isinstance(entry.value, str) else entry.printed
        agrees = "yes" if found.agrees else "no"
        note = "; ".join(filter(None, (entry.rounding, found.note)))
        quantity = f"{entry.quantity}: {entry.strategy}, in {entry.unit}"
        row = (entry.id, entry.source, quantity, printed, _cell(found.predicted), agrees, note)
        rows.append(row)
    return Table(
        "published",
        "Published values beside predictions",
        (
            Column("value", 0.75),
            Column("source", 1.1),
            Column("quantity", 1.15),
            Column("published", 0.9),
            Column("predicted", 1.35),
            Column("agrees"),
            Column("note", 0.75),
        ),
        tuple(rows),
        "Published: as printed; predicted: exactly; agrees: rounded as the source rounds.",
        long=True,
    )


def _cell(predicted: Any) -> Any:
    """Numbers as numbers."""
    if isinstance(predicted, sympy.Rational):
        return int(predicted) if predicted.is_Integer else predicted
    return predicted


TABLES = {
    "claims": claims_table,
    "compositions": compositions,
    "schedules": schedules,
    "published": published_table,
}
