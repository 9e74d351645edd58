"""What a system does otherwise than the textbook, one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Difference:
    """One thing that a system does otherwise than the textbook, why, and who says so.

    `changes`: the fields of the profile by which it does; `given`: the keys by which a file says so;
    `of`: the name of the profile, or of the addition, that says it.
    """

    what: str
    why: str
    cited: str
    changes: frozenset[str] = frozenset()
    given: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    of: str = field(default="", compare=False)
