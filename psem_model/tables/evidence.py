"""Tables of what is known: claims, safe and unsafe schedules, published values beside predictions."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import sympy

from proofs.registry import claims
from psem_model.check.schedules import RULES, check_schedule
from psem_model.published.entries import Entry, published, rounded
from psem_model.published.reproduce import reproduce
from psem_model.reading.schedules import examples
from psem_model.tables.table import Style, table
from psem_model.text.files import json_in
from psem_model.text.places import BUILD, PACKAGES
from psem_model.text.prose import GREEK
from psem_model.text.report import Cell, Column, Prose, Section, note
from spec.models.states import MIXED_ADAM

REPORT = BUILD / "report.json"
SOURCES = ("proofs/claims.toml", "spec/**/*.py", "proofs/**/*.py")  # what verdicts rest on


def claims_table(style: Style) -> Section:
    """The registry, with the verdicts of the last proof run, or else those that are expected."""
    found = _found_by_proof()
    title = "expected verdict" if found is None else "verdict"
    said = "what make prove must find" if found is None else "those that make prove found"
    rows = tuple(
        (
            c.area,
            c.id,
            c.expected if found is None else found[c.id],
            Prose(c.statement),
            Prose(c.formula),
            Prose(c.caveat),
            Prose(c.source),
        )
        for c in claims()
    )
    return table(
        "claims",
        "Claims, their formulas, verdicts and first caveats",
        (
            Column("area"),
            Column("claim"),
            Column(title, 0.6),
            Column("statement", 1.7),
            Column("formula", 1.1, joined=True),
            Column("caveat", 1.1),
            Column("source", 0.8),
        ),
        rows,
        (
            note(f"{title.capitalize()}s: {said}.", columns=[title]),
            "Each claim's scope is in docs/CLAIMS.md.",
        ),
        {},
        long=True,
        headed=True,
    )


def _found_by_proof() -> dict[str, str] | None:
    """Verdicts by claim, of a run of all that began after the last change of any source; or none."""
    report = json_in(REPORT)
    try:
        began = REPORT.stat().st_mtime - report["seconds"]
        verdicts = {str(entry["id"]): str(entry["verdict"]) for entry in report["claims"]}
    except (OSError, KeyError, TypeError):  # there is none, or it is something else
        return None
    changed = any(path.stat().st_mtime > began for of in SOURCES for path in PACKAGES.glob(of))
    return None if changed or verdicts.keys() != {claim.id for claim in claims()} else verdicts


def compositions(style: Style) -> Section:
    """Schedules over several axes."""
    several = "Schedules over several axes, safe and unsafe", (2, 99)
    return _gallery("compositions", *several)


def schedules(style: Style) -> Section:
    """Schedules over one axis."""
    return _gallery("schedules", "Schedules of data parallelism, right and wrong", (1, 1))


@cache
def _gallery(name: str, title: str, axes: tuple[int, int]) -> Section:
    """The examples with so many axes: the verdict that `psem check` finds, and what they say."""
    rows = []
    for path, schedule, said in examples():
        if axes[0] <= len(schedule.axes) <= axes[1]:
            verdict = check_schedule(schedule, {}, MIXED_ADAM).verdict
            found = "accepted" if verdict.accepted else "rejected", verdict.rule
            rows.append((path.stem, ", ".join(schedule.axes), *found, said))
    rules = "; ".join(f"{rule}: {words}" for rule, words in RULES.items())
    return table(
        name,
        title,
        (
            Column("schedule", 0.7),
            Column("along", 0.35),
            Column("verdict"),
            Column("breaks", joined=True),
            Column("reason", 1.95),
        ),
        tuple(rows),
        (
            note(f"Rules: {rules}.", columns=["breaks"]),
            "Files of examples/, each checked for every number of devices along each axis and for "
            "every number of micro-steps.",
        ),
        long=True,
    )


def published_table(style: Style) -> Section:
    """Every published number beside what is predicted."""
    said = AS_PRINTED.format(exactly="with a digit more", agrees="rounded as the source rounds")
    return _beside_predictions("published", "Published numbers beside predictions", said, False)


def published_formulas(style: Style) -> Section:
    """Every published formula beside the one that is derived."""
    said = AS_PRINTED.format(exactly="exactly", agrees="the same for all values of its symbols")
    return _beside_predictions(
        "formulas", "Published formulas beside those that are derived", said, True
    )


AS_PRINTED = (
    "Published: as printed; predicted: {exactly}, but for what the note says is dropped, in the "
    "source's symbols; agrees: {agrees}."
)


def _beside_predictions(name: str, title: str, said: str, formulas: bool) -> Section:
    """Published values that are formulas, or numbers. Formulas are wrapped where a page is narrow."""
    columns = (
        Column("source"),
        Column("value", data=True),
        Column("quantity", 1.2 if formulas else 1.5),
        Column("of", 0.85, joined=True),
        Column("published", 1.75 * formulas),
        Column("predicted", 1.3 * formulas),
        Column("agrees", 0.8 * formulas),
        Column("note", 0.85, joined=formulas),
    )
    return table(name, title, columns, _published(formulas), [said], long=True, headed=True)


@cache
def _published(formulas: bool) -> tuple[tuple[Cell, ...], ...]:
    """The rows of published values that are formulas, or numbers, source by source."""
    rows, sources = [], [*dict.fromkeys(entry.source for entry in published())]
    for entry in sorted(published(), key=lambda entry: sources.index(entry.source)):
        if isinstance(entry.value, str) is not formulas:
            continue
        found = reproduce(entry)
        agrees = "yes" if found.agrees else "no"
        note = "; ".join(filter(None, (entry.rounding, found.note)))
        quantity = f"{entry.quantity}: {entry.strategy}{f', in {entry.unit}' if entry.unit else ''}"
        given = ", ".join(_given(k, v) for k, v in entry.inputs.items() if v not in (k, None))
        printed = Prose(entry.printed) if isinstance(entry.printed, str) else entry.printed
        said = (entry.source, entry.id, quantity, Prose(given), printed)
        rows.append((*said, _beside(entry, found.predicted), agrees, Prose(note)))
    return tuple(rows)


def _given(name: str, value: Any) -> str:
    """An input as it is typed: a symbol is equal to its value, and words have it behind them."""
    said = (
        f"{Decimal(value):.1e}".replace(".0e", "e").replace("e+", "e")
        if isinstance(value, float)
        else value
    )
    return f"{name} = {said}" if len(name) == 1 or name in GREEK else f"{name}: {said}"


def _beside(entry: Entry, predicted: Any) -> Any:
    """A number beside a number, with a digit more than was printed; a formula beside a formula."""
    if isinstance(entry.value, str) or not isinstance(predicted, sympy.Rational | Fraction | int):
        return predicted
    if isinstance(predicted, sympy.Rational):
        predicted = Fraction(int(predicted.p), int(predicted.q))
    return rounded(Fraction(predicted), entry.value, ROUND_HALF_UP, 1)
