"""What is followed through the lines of a schedule: values, or how often devices have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proofs.checking.symbols import ZERO


@dataclass(frozen=True)
class Content:
    """What is followed through the lines: what a device has before a line, and what lines make.

    at(b, e): what device e has in place b. in_group: the sum over the group of the source.
    """

    at: Callable[[Any, Any], Any]
    in_group: Any
    junk: Any
    factor: Any
    gradient: Any
    weight: Any
    moment: Any
    dropped: Any
    norm: Any = ZERO
    count: Any = ZERO


def moving(at: Callable[[Any, Any], Any], in_group: Any, factor: Any) -> Content:
    """What is followed through a line that moves values."""
    return Content(at, in_group, ZERO, factor, ZERO, ZERO, ZERO, ZERO)
