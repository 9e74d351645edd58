"""Which line of a rejected schedule is wrong: the one whose repair makes the schedule right.

Every edit of one line is tried (`edits`), the likelier first; what is accepted in a few cases is a
repair. The likeliest repair names the line. A rejection that no single edit repairs names none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from psem_model.check.edits import SAMPLES, Edit, How, Spot, edits, reads, removals, touched, writes
from spec.arithmetic import Number
from spec.schedule import Factor, Kind, Op, Schedule, Span
from spec.states import BytePolicy
from spec.verdict import check

Look = tuple[Mapping[str, Number], int]  # a mesh, and a number of micro-steps

MOST_EDITS = 4000  # that are tried
IDLE = 2.0  # how much less likely a repair is for each line that it leaves without effect
BARELY = 0.5  # how much simpler or longer a repaired schedule may count
# how unlikely it is that a line was edited so
LIKELY = {How.CHANGED: 2.0, How.REMOVED: 2.5, How.MOVED: 3.0, How.ADDED: 4.0}
PIVOTS = (Kind.FORWARD, Kind.BACKWARD, Kind.UPDATE)  # other lines are written around these
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
    for cost, _, edit in ranked[:MOST_EDITS]:
        if best and cost > best[0][0]:
            break
        if not accepted(edit.schedule, looks, policy):
            continue
        order = (cost + IDLE * _idle(edit.schedule, looks, policy), _order(edit, schedule))
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
    if edit.how is not How.ADDED and edit.op.kind in PIVOTS:
        cost += 1
    if edit.how is How.CHANGED:
        cost += len(edit.fields) - 1 + 0.5 * len({*WHO} & {*edit.fields})
    if edit.how is How.CHANGED and edit.op.kind in SAMPLES and "axes" in edit.fields:
        cost += 2.5  # devices that have others' samples get them by more than a word
    if edit.how in (How.CHANGED, How.REMOVED) and was and isinstance(was.by, Factor):
        twice = [op for _, op in _lines(given)].count(was) > 1
        loss_scale = was.by.number > 1 and not twice  # it is meant
        cost += 3 if loss_scale else -0.5 if edit.how is How.REMOVED else 0
    if edit.how in (How.REMOVED, How.MOVED) and edit.op.kind is Kind.RELEASE:
        cost += 3 if _has_gone_by(edit, given) else 0
    simpler = 0.25 * (_length(edit.schedule) - _length(given))
    return cost + max(-BARELY, min(simpler, BARELY))


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
    factor = op.by if isinstance(op.by, Factor) else None
    by = sum(abs(e) for _, e in factor.sizes) + (factor.number != 1) if factor else op.by is not None
    return 2 + (op.into is not None) + len(op.axes) + len(op.within) + op.mean + bool(op.shift) + by


def _idle(schedule: Schedule, looks: Sequence[Look], policy: BytePolicy) -> int:
    """How many lines a repaired schedule has that do nothing: it does not explain them."""
    without = (e for e in removals(schedule) if e.op.kind is not Kind.RELEASE)
    return sum(accepted(e.schedule, looks, policy) for e in without)


def _order(edit: Edit, given: Schedule) -> tuple[int, ...]:
    """Of repairs that are as likely: the last line; of lines to add the one next to what lacks it."""
    if edit.how is How.ADDED:
        named = blamed(edit, given)
        near = named is not None and named.part == edit.at.part and named.index >= edit.at.index - 1
        return (not near, -edit.at.part, edit.at.index)
    far = abs(edit.to.index - edit.at.index) if edit.to else 0
    return (-edit.at.part, -edit.at.index, far)


# ------------------------------------------------------------ the line it names
def blamed(edit: Edit, schedule: Schedule) -> Spot | None:
    """The line at fault: of one to add, the line that reads what is missing, else the last before."""
    if edit.how is not How.ADDED or edit.fields:
        return edit.at
    after = (spot for spot, op in _from(schedule, edit.at) if writes(edit.op) & reads(op))
    before = [spot for spot, op in _until(schedule, edit.at) if writes(edit.op) & touched(op)]
    return next(after, before[-1] if before else None)


def _at(schedule: Schedule, spot: Spot) -> Op | None:
    return next((op for each, op in _lines(schedule) if each == spot), None)


def _lines(schedule: Schedule) -> Iterator[tuple[Spot, Op]]:
    for part, ops in enumerate(schedule.parts):
        for index, op in enumerate(ops):
            yield Spot(part, index), op


def _from(schedule: Schedule, at: Spot) -> Iterator[tuple[Spot, Op]]:
    return ((spot, op) for spot, op in _lines(schedule) if spot >= at)


def _until(schedule: Schedule, at: Spot) -> Iterator[tuple[Spot, Op]]:
    return ((spot, op) for spot, op in _lines(schedule) if spot < at)
