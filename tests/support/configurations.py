"""Packaged configurations, and files of changed ones."""

from __future__ import annotations

import json
from pathlib import Path

CONFIGURATIONS = Path(__file__).parents[2] / "examples" / "configurations"
PACKAGED = sorted(path.stem for path in CONFIGURATIONS.glob("*.json"))


def published(name):
    return json.loads((CONFIGURATIONS / f"{name}.json").read_text())


def write(folder, content):
    path = folder / "config.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)
