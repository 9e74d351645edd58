"""The table of collectives: what a ring sends, and what every schedule must."""

from __future__ import annotations

from typing import Any

import sympy

from proofs.trusted.theorem import Theorem
from psem_model.predict.closed import Closed
from psem_model.tables.states import N, legend, spelled
from psem_model.tables.table import Style, by_size, table
from psem_model.tables.theorems import formula, theorems
from psem_model.text.report import Column, Section, note
from spec.devices.collectives import COLLECTIVES, Collective
from spec.devices.layouts import Layout

OPTIMAL = "C5"  # the claim that no schedule sends less


def collectives(style: Style) -> Section:
    """Layouts, meaning, what the ring sends and what every schedule must send."""
    bounds = dict(map(_bound, theorems([OPTIMAL])[OPTIMAL]))
    rows = []
    for collective in COLLECTIVES.values():
        layouts = f"{collective.before.value} -> {collective.after.value}"
        bound = bounds.get(collective.name, "not claimed")
        sent = by_size(_volume(collective, style))
        rows.append((collective.name, layouts, collective.meaning, sent, bound))
    return table(
        "collectives",
        "Collectives along an axis: layouts, meaning, elements that each device sends",
        (
            Column("collective"),
            Column("layouts"),
            Column("meaning", 1),
            Column("ring sends"),
            Column("lower bound"),
        ),
        tuple(rows),
        (
            note(f"{spelled(Layout)}.", columns=["layouts"]),
            note(
                "Lower bound: on what the busiest device sends, of indivisible elements "
                f"(claim {OPTIMAL}).",
                columns=["lower bound"],
            ),
        ),
        {"M": "elements of the whole value", **legend()},
    )


def _volume(collective: Collective, style: Style) -> Any:
    """What a device sends of a value of M elements: of all of it, or of its own slice of it."""
    arithmetic, whole = Closed(style.padded), sympy.Symbol("M", positive=True)
    chunk = arithmetic.shard(whole, whole, N)
    if (collective.before, collective.after) == (Layout.SHARDED, Layout.SHARDED):
        chunk = arithmetic.shard(chunk, chunk, N)
    return collective.volume(N, chunk)


def _bound(theorem: Theorem) -> tuple[str, Any]:
    """A collective, and what some device sends at least: of n v >= messages, the right over n."""
    names = {"n": N, "elements": sympy.Symbol("M", positive=True), "v": sympy.Symbol("v")}
    least, messages = (formula(side, names) for side in theorem.statement.args)
    collective = theorem.name.removesuffix("_cannot_be_done_with_less")
    return collective, by_size(sympy.factor(messages * names["v"] / least))
