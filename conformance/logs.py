"""What was recorded of PyTorch: one file for each strategy, one line for each case."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from conformance.case import Case

FOLDER = Path(__file__).parent / "logs"


@dataclass(frozen=True)
class Collective:
    """Collectives of one kind along an axis, that are alike; or copies over the link to the host.

    `elements`: what a rank gives; of a reduce_scatter, a broadcast or a recv, what it gets.
    """

    kind: str
    axis: str
    elements: int
    dtype: str
    times: int


@dataclass(frozen=True)
class Rank:
    """What one rank moved in a step, and its bytes after it.

    `waiting`: gradients before the last micro-step, if it is not the only one. `host`, `pinned`: of a
    device that is not the host itself, what of weights, gradients and moments is in the host's memory,
    and what of that is page-locked. `buckets`: what DDP
    sums that is no gradient itself. `moments`, `counts`: the optimizer's state, as large as
    weights, and single numbers. `kept`: for backward, at most. `passing`: of weights
    and gradients that FSDP2 gathers and sums, what does not rest, at most.
    """

    collectives: tuple[Collective, ...]
    parameters: int
    gradients: int
    waiting: int
    buckets: int
    moments: int
    counts: int
    kept: int
    host: int = 0
    pinned: int = 0
    passing: int | None = None


@dataclass(frozen=True)
class Log:
    """A case as PyTorch ran it.

    `shapes`: each weight of the whole model. `ranks`: those that were recorded. `difference`: the
    largest of a parameter from one process, in float64; None where nothing was computed, or in mixed
    precision.
    """

    shapes: dict[str, tuple[int, ...]]
    ranks: dict[int, Rank]
    difference: float | None


def file_of(strategy: str) -> Path:
    return FOLDER / f"{strategy.replace(' ', '_')}.json"


@lru_cache
def recorded(strategy: str) -> dict[str, Any]:
    """All that a file says. FileNotFoundError if there is none."""
    found: dict[str, Any] = json.loads(file_of(strategy).read_text())
    return found


def log_of(case: Case) -> Log:
    """What was recorded of a case. KeyError if nothing was."""
    found = recorded(case.strategy)["cases"][case.name]
    ranks: dict[int, Rank] = {}
    for numbers, told in found["ranks"]:
        moved = tuple(Collective(*each) for each in told["collectives"])
        ranks |= dict.fromkeys(numbers, Rank(**{**told, "collectives": moved}))
    shapes = {name: tuple(shape) for name, shape in found["shapes"]}
    return Log(shapes, dict(sorted(ranks.items())), found["difference"])


def write(strategy: str, torch: str, cases: dict[str, Any]) -> None:
    """Write a strategy's file, compact and sorted."""
    lines = (
        f"{json.dumps(name)}:{json.dumps(cases[name], separators=(',', ':'))}" for name in sorted(cases)
    )
    text = ",\n".join(lines)
    file_of(strategy).write_text(f'{{"torch":{json.dumps(torch)},"cases":{{\n{text}\n}}}}\n')
