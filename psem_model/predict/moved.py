"""What a device sends in a step, for one reason."""

from __future__ import annotations

from dataclasses import dataclass

from spec.language.schedule import Op
from spec.numbers.arithmetic import Number


@dataclass(frozen=True)
class Moved:
    """What a stage's devices send in a step, for one reason."""

    what: str  # the value, or the training state
    collective: str
    axes: tuple[str, ...]
    when: str
    of: str  # which part, or which weights
    times: Number
    elements: Number  # in all
    bytes: Number
    to_host: bool = False
    op: Op | None = None  # of the states' schedule
