"""How a value lies across the devices of an axis."""

from __future__ import annotations

from enum import Enum


class Layout(Enum):
    """Every device has all of it, or its own slice, or a term of a sum."""

    REPLICATED = "R"
    SHARDED = "S"
    PARTIAL = "P"
