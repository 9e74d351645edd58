"""Configurations whose parameters the reference implementations count: packaged, and other sizes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

PACKAGED = Path(__file__).parents[1] / "examples" / "configurations"
FILE, ROWS = (Path(__file__).parent / name for name in ("counts.json", "arrays.json"))
SIZES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "sizes.json").read_text())


def configurations() -> dict[str, dict[str, Any]]:
    """By name: the packaged ones, and those of `sizes.json`: a packaged one, and what differs."""
    packaged = sorted((path.stem, path) for path in PACKAGED.glob("*.json"))
    found = {name: json.loads(path.read_text()) for name, path in packaged}
    others = {name: found[of["like"]] | of["with"] for name, of in SIZES.items()}
    return found | others


def recorded() -> dict[str, int]:
    """How many parameters each has, as recorded."""
    counts: dict[str, int] = json.loads(FILE.read_text())["counts"]
    return counts


def recorded_turned() -> dict[str, int]:
    """How many columns the cosines of each have, as recorded."""
    turned: dict[str, int] = json.loads(FILE.read_text())["turned"]
    return turned


def recorded_rows() -> dict[str, Counter[tuple[int, int]]]:
    """The parameters of each, as recorded: how many have so many rows, and elements of a row."""
    found = json.loads(ROWS.read_text())
    return {name: Counter({(rows, row): n for rows, row, n in of}) for name, of in found.items()}
