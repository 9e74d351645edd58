"""What the symbols of theorems stand for, in words: `glossary.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

GLOSSARY = Path(__file__).with_name("glossary.toml")


def words_of(claim: str) -> dict[str, str]:
    """What symbols of a claim stand for; of a claim that is not there, nothing."""
    found: dict[str, str] = {}
    for table in _tables():
        if claim in table["of"]:
            found |= {name: says for name, says in table.items() if name != "of"}
    return found


@cache
def _tables() -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))["words"]
    return tables
