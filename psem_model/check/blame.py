"""Which line of a rejected schedule is wrong: the one whose repair makes the schedule right.

Every edit of one line is tried (`edits`), the likelier first; what is accepted in a few cases is a
repair. The likeliest repair names the line. A rejection that no single edit repairs names none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any

from psem_model.check.edits import SAMPLES, Edit, How, Spot, edits, reads, removals, touched, writes
from spec.checking.verdict import FEW, check
from spec.language.schedule import PASSING, SCALARS, Buffer, Kind, Monomial, Op, Schedule, Span
from spec.models.states import BytePolicy
from spec.numbers.arithmetic import Number

Look = tuple[Mapping[str, Number], int]  # a mesh, and a number of micro-steps

MOST_RUN = 50_000  # lines, those of all schedules that are tried together
IDLE = 2.0  # how much less likely a repair is for each line that it leaves without effect
BARELY = 0.5  # how much simpler or longer a repaired schedule may count
# how unlikely it is that a line was edited so
LIKELY = {How.CHANGED: 2.0, How.REMOVED: 2.5, How.MOVED: 3.0, How.ADDED: 4.0}
PIVOTS = (Kind.FORWARD, Kind.BACKWARD, Kind.UPDATE)  # other lines are written around these
TIDYING = (Kind.RESET, Kind.RELEASE)  # they belong after whatever reads the buffer
MADE = (*PASSING, *SCALARS, Buffer.ACTIVATIONS)  # in a step, to be read in it
WHO = ("kind", "source", "into")  # fields that make it another operation


def trace(
    schedule: Schedule,
    looks: Sequence[Look],
    policy: BytePolicy,
    right: Callable[[Schedule], bool],
) -> Edit | None:
    """The likeliest edit of one line with which a schedule is right; None if there is none.

    `looks`: a few cases, first the one where it is rejected. `right`: whether a schedule that is
    accepted in these is so in every case.
    """
    ranked = sorted(((_cost(e, schedule), i, e) for i, e in enumerate(edits(schedule))), key=_first)
    best: tuple[tuple[Any, ...], Edit] | None = None
    each = len(schedule.finish) + min(looks[0][1], FEW) * len(schedule.micro_step)
    for cost, _, edit in ranked[: MOST_RUN // each]:
        if best and cost > best[0][0]:
            break
        if not accepted(edit.schedule, looks, policy):
            continue
        most = (best[0][0] - cost) / IDLE if best else inf
        idle = _idle(edit.schedule, looks, policy, most)
        order = (cost + IDLE * idle, _order(edit, schedule))
        if (best is None or order < best[0]) and right(edit.schedule):
            best = order, edit
    return best[1] if best else None


def _first(ranked: tuple[Any, ...]) -> tuple[Any, ...]:
    return ranked[:2]


def accepted(schedule: Schedule, looks: Sequence[Look], policy: BytePolicy) -> bool:
    """Whether a schedule is accepted in some cases."""
    try:
        return all(check(schedule, *look, policy).accepted for look in looks)
    except ValueError:
        return False


# -------------------------------------------------------------- how likely it is
def _cost(edit: Edit, given: Schedule) -> float:
    cost, was = LIKELY[edit.how], _at(given, edit.at)
    kind, same = edit.op.kind, [op for _, op in _lines(given)].count(was) if was else 0
    if edit.how is not How.ADDED:
        cost += (kind in PIVOTS and edit.fields != ("source",)) - 0.5 * (edit.at in _lacking(given))
    elif kind is Kind.RESET and edit.op.source not in _reset(given):
        cost -= 1.5  # nothing else would repair that
    if edit.how is How.CHANGED:
        cost += len(edit.fields) - 1 + 0.5 * len({*WHO} & {*edit.fields})
        if kind in SAMPLES and "axes" in edit.fields:
            cost += 2.5  # devices that have others' samples get them by more than a word
    if edit.how in (How.CHANGED, How.REMOVED) and was and isinstance(was.by, Monomial):
        loss_scale = was.by.number > 1 and same == 1  # it is meant
        cost += 3 if loss_scale else -0.5 if edit.how is How.REMOVED else 0
    if edit.how is How.REMOVED and kind is Kind.RELEASE and same == 1:
        cost += 1.5  # the buffer would stay
    if edit.how in (How.REMOVED, How.MOVED) and kind is Kind.RELEASE and _has_gone_by(edit, given):
        cost += 3
    if edit.how is How.MOVED and edit.to:
        cost += (
            0.5 * len(edit.fields)
            + 0.5 * (edit.to.part < edit.at.part)
            - 0.75 * (kind in TIDYING and edit.to > edit.at)
        )
        cost += (len(_lacking(edit.schedule)) > len(_lacking(given))) + (kind in PIVOTS)
        if not edit.fields:
            return cost  # it says as much
    simpler = 0.25 * (_length(edit.schedule) - _length(given))
    return cost + max(-BARELY, min(simpler, BARELY))


@lru_cache(maxsize=4)
def _lacking(given: Schedule) -> frozenset[Spot]:
    """The lines that read what is not there yet, or not any more."""
    lacking, there = set[Spot](), {*given.start}
    for spot, op in _lines(given):
        if any(b in MADE and b not in there and b not in given.sums for b in reads(op)):
            lacking.add(spot)
        gone = {op.source: op.kind is Kind.RELEASE, Buffer.ACTIVATIONS: op.kind is Kind.BACKWARD}
        there = (there | writes(op)) - {b for b, is_gone in gone.items() if is_gone}
    return frozenset(lacking)


def _reset(given: Schedule) -> set[Buffer]:
    """The buffers that a schedule sets to zero."""
    return {op.source for op in given.ops if op.kind is Kind.RESET}


def _has_gone_by(edit: Edit, given: Schedule) -> bool:
    """Whether what is released is there unit by unit, and was read: it is made anew for the next."""
    lines = [op for spot, op in _until(given, edit.at) if edit.op.source in touched(op)]
    makers = [i for i, op in enumerate(lines) if op.target is edit.op.source]
    return bool(makers) and lines[makers[-1]].span is Span.UNIT and lines[makers[-1]] is not lines[-1]


def _length(schedule: Schedule) -> int:
    """How much there is to say: words, and operations that no other one is like."""
    ops = schedule.ops
    unlike = {(op.kind, op.source, op.into, op.mean, op.shift, op.by) for op in ops}
    return len(unlike) + sum(map(_words, ops))


def _words(op: Op) -> int:
    factor = op.by if isinstance(op.by, Monomial) else None
    by = sum(abs(e) for _, e in factor.powers) + (factor.number != 1) if factor else op.by is not None
    return 2 + (op.into is not None) + len(op.axes) + len(op.within) + op.mean + bool(op.shift) + by


def _idle(schedule: Schedule, looks: Sequence[Look], policy: BytePolicy, most: float) -> int:
    """How many lines a repaired schedule has that do nothing: it does not explain them.

    If they are more than `most`, they are not counted on.
    """
    found = 0
    for edit in removals(schedule):
        found += edit.op.kind is not Kind.RELEASE and accepted(edit.schedule, looks, policy)
        if found > most:
            break
    return found


def _order(edit: Edit, given: Schedule) -> tuple[int, ...]:
    """Of repairs that are as likely: the last line; of lines to add the one next to what lacks it."""
    if edit.how is How.ADDED:
        named = blamed(edit, given)
        near = named is not None and named.part == edit.at.part and named.index >= edit.at.index - 1
        return (not near, -edit.at.part, edit.at.index)
    each = len(given.micro_step)
    far = abs(edit.to.index - edit.at.index + each * (edit.to.part - edit.at.part)) if edit.to else 0
    return (-edit.at.part, -edit.at.index, far)


# ------------------------------------------------------------ the line it names
def blamed(edit: Edit, schedule: Schedule) -> Spot | None:
    """The line at fault: of one to add, the line that reads what is missing, else the last before."""
    if edit.how is not How.ADDED or edit.fields:
        return edit.at
    after = (spot for spot, op in _from(schedule, edit.at) if writes(edit.op) & reads(op))
    before = [
        spot
        for spot, op in _until(schedule, edit.at)
        if writes(edit.op) & touched(op) or reads(edit.op) & writes(op)
    ]
    return next(after, before[-1] if before else None)


def _at(schedule: Schedule, spot: Spot) -> Op | None:
    return next((op for each, op in _lines(schedule) if each == spot), None)


def _lines(schedule: Schedule) -> Iterator[tuple[Spot, Op]]:
    for part, ops in enumerate(schedule.bodies):
        for index, op in enumerate(ops):
            yield Spot(part, index), op


def _from(schedule: Schedule, at: Spot) -> Iterator[tuple[Spot, Op]]:
    return ((spot, op) for spot, op in _lines(schedule) if spot >= at)


def _until(schedule: Schedule, at: Spot) -> Iterator[tuple[Spot, Op]]:
    return ((spot, op) for spot, op in _lines(schedule) if spot < at)
