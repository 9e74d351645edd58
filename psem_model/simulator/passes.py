"""The order of a step: which operations are executed for one unit before the next unit's turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from psem_model.simulator.network import OpKey
from spec.language.schedule import NUMBERS, PASSING, Buffer, Kind, Op, Phase, Schedule, Span


@dataclass(frozen=True)
class Turn:
    """An operation, its place in the schedule and its micro-step.

    `at_once`: what it drops was held whole, and is dropped when all units are done. `done`: the buffers
    that nothing uses after it, and whether they are held whole.
    """

    key: OpKey
    micro_step: int
    op: Op
    at_once: bool = False
    done: tuple[tuple[Buffer, bool], ...] = ()


@dataclass(frozen=True)
class Pass:
    """Operations on one unit after the other.

    `once`: they act on a number that a device has of all units together.
    """

    turns: tuple[Turn, ...]
    once: bool

    @property
    def descending(self) -> bool:
        """Backward goes from the last unit to the first, if they are layers, and so do its gathers."""
        of_backward = (turn.op for turn in self.turns if turn.op.phase is Phase.BACKWARD)
        gathers = any(op.kind is Kind.ALL_GATHER and op.target is Buffer.VIEW for op in of_backward)
        return gathers or any(turn.op.kind is Kind.BACKWARD for turn in self.turns)

    @property
    def gathers(self) -> int:
        """How many operations there are until views are gathered, if a pass begins with these."""
        first = next((i for i, t in enumerate(self.turns) if t.op.target is not Buffer.VIEW), 0)
        is_gather = [turn.op.kind is Kind.ALL_GATHER for turn in self.turns[:first]]
        return len(is_gather) - is_gather[::-1].index(True) if True in is_gather else 0


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
        if not schedule.is_there(op, m)
    ]
    flat += [(("finish", i), micro_steps - 1, op) for i, op in enumerate(schedule.finish)]
    ops = [op for *_, op in flat]
    touched = [{op.source, *_acquired(op, schedule)} for op in ops]
    used = {buffer: _used_later(ops, touched, schedule, buffer) for buffer in PASSING}
    found: list[Pass] = []
    run: list[Turn] = []
    by_unit: set[Buffer] = set()
    whole: set[Buffer] = {*schedule.start}
    for number, (key, m, op) in enumerate(flat):
        at_once, buffers = op.target in whole, _acquired(op, schedule)
        if op.of_a_number:
            found += [Pass(tuple(run), False)] if run else []
            run, whole, by_unit = [], whole | by_unit, set()
        elif op.kind is Kind.RELEASE or op.span is not Span.NONE:
            by_unit, whole = by_unit - buffers, whole - buffers
            by_unit |= buffers if op.span is Span.UNIT else set()
            whole |= buffers if op.span is Span.ALL_UNITS else set()
        done = [buffer for buffer in PASSING if not used[buffer][number]]
        run.append(Turn(key, m, op, at_once, tuple((buffer, buffer in whole) for buffer in done)))
        by_unit, whole = by_unit.difference(done), whole.difference(done)
        if op.of_a_number or not by_unit:
            found.append(Pass(tuple(run), op.of_a_number and op.source in NUMBERS))
            run = []
    return (*found, Pass(tuple(run), False)) if run else tuple(found)


def _used_later(
    ops: Sequence[Op], touched: Sequence[set[Buffer]], schedule: Schedule, buffer: Buffer
) -> list[bool]:
    """After each operation of a step, whether a later one, or the next step's, uses what is there.

    Slices that are written into a new block before they are used are others by then. `touched`: the
    buffers that each operation reads or writes.
    """
    later: frozenset[str] | None = None  # the axes along whose slices it is used; None: it is not
    found = []
    for op, buffers in reversed([*zip(ops, touched, strict=True)] * 2):
        found.append(later is not None)
        if buffer not in buffers:
            continue
        writes_anew = op.target is buffer and op.takes_room
        writes_anew |= buffer is Buffer.TIED and buffer in _acquired(op, schedule)
        of_others = op.within if op.shift else [a for a in op.within if a not in (later or ())]
        if (writes_anew and not of_others) or (op.kind is Kind.RELEASE and op.target is buffer):
            later = None
        stays = schedule.stays and op.kind is Kind.RELEASE and op.target is buffer
        for slices in (*_uses(op, buffer), *[frozenset[str]()] * stays):
            later = slices if later is None else later & slices
    return found[::-1][: len(ops)]


def _uses(op: Op, buffer: Buffer) -> Iterator[frozenset[str]]:
    """The slices of a buffer that an operation reads, and those that it writes in place."""
    reads = op.kind not in (Kind.RELEASE, Kind.ZERO) and op.source is buffer
    writes = op.kind is not Kind.RELEASE and op.target is buffer and not op.takes_room
    within = frozenset() if op.shift or op.kind is Kind.BACKWARD else frozenset(op.within)
    chunks = within.union(op.axes) if op.kind is Kind.ALL_GATHER and not op.shift else within
    yield from [chunks] * reads + [within] * writes
