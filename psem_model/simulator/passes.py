"""The order of a step: which operations are executed for one unit before the next unit's turn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from psem_model.simulator.network import OpKey
from spec.language.schedule import NUMBERS, Buffer, Kind, Op, Schedule, Span

Turn = tuple[OpKey, int, Op, bool]


@dataclass(frozen=True)
class Pass:
    """Operations, each with its place in the schedule, its micro-step, and whether what it drops was
    held whole: that is dropped when all units are done.

    `once`: they act on a number that a device has of all units together.
    """

    ops: tuple[Turn, ...]
    once: bool

    @property
    def descending(self) -> bool:
        """Backward goes from the last unit to the first."""
        return any(op.kind is Kind.BACKWARD for _, _, op, _ in self.ops)


def _acquired(op: Op, schedule: Schedule) -> set[Buffer]:
    """The buffers that an operation's span is about."""
    tied = op.kind is Kind.BACKWARD and schedule.training.tied
    return {op.target, Buffer.TIED} if tied else {op.target}


@lru_cache(maxsize=256)
def passes(schedule: Schedule, micro_steps: int) -> tuple[Pass, ...]:
    """One step, cut wherever no buffer is held for one unit at a time.

    Operations on numbers of all units are passes of their own, and what is held then is held whole.
    """
    flat = [
        (("micro_step", i), m, op)
        for m in range(micro_steps)
        for i, op in enumerate(schedule.micro_step)
    ]
    flat += [(("finish", i), micro_steps - 1, op) for i, op in enumerate(schedule.finish)]
    found: list[Pass] = []
    run: list[Turn] = []
    by_unit: set[Buffer] = set()
    whole: set[Buffer] = set()
    for key, m, op in flat:
        turn = (key, m, op, op.target in whole)
        if op.of_a_number:
            found += [Pass(tuple(run), False)] if run else []
            found.append(Pass((turn,), op.source in NUMBERS))
            run, whole, by_unit = [], whole | by_unit, set()
            continue
        run.append(turn)
        buffers = _acquired(op, schedule)
        if op.kind is Kind.RELEASE or op.span is not Span.NONE:
            by_unit, whole = by_unit - buffers, whole - buffers
        if op.kind is not Kind.RELEASE:
            by_unit |= buffers if op.span is Span.UNIT else set()
            whole |= buffers if op.span is Span.WHOLE else set()
        if not by_unit:
            found.append(Pass(tuple(run), False))
            run = []
    return (*found, Pass(tuple(run), False)) if run else tuple(found)
