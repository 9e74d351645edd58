"""Repairs in words: what makes a rejected schedule right, as a review says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psem_model.check.edits import Edit, How, Spot
from psem_model.reading.schedule_keys import PARTS
from psem_model.reading.schedules import entry, keys
from spec.language.schedule import Kind, Op, Schedule

KEY = {"kind": "op"}  # what a file calls a field, where it is not the field's name


def repair_in_words(
    edit: Edit, schedule: Schedule, named: Spot | None, line: Callable[[str, int], int | None]
) -> str:
    """What to do, to which line; `named` is the line that a rejection names."""

    def place(spot: Spot) -> str:
        number = line(PARTS[spot.part], spot.index)
        return f"{PARTS[spot.part]} {spot.index + 1}" if number is None else f"line {number}"

    def between(spot: Spot, later: bool = True) -> str:
        """Where an operation goes that comes before the one at a spot."""
        ops = schedule.parts[spot.part]
        if spot.index and (later or spot.index == len(ops)):
            return f"after {place(Spot(spot.part, spot.index - 1))}"
        return f"before {place(spot)}" if ops else f"in {PARTS[spot.part]}"

    if edit.how is How.CHANGED:
        return f"accepted {' and '.join(_field(edit.op, f) for f in edit.fields)}"
    if edit.how is How.REMOVED:
        ops = [(Spot(p, i), op) for p, part in enumerate(schedule.parts) for i, op in enumerate(part)]
        same = [spot for spot, op in ops if spot != edit.at and op == edit.op]
        return f"accepted without it{f' ({place(same[0])} does the same)' if same else ''}"
    if edit.how is How.MOVED:
        assert edit.to is not None
        lines = "the line" if edit.along == 1 else f"the {edit.along} lines"
        they = f"it and {lines} before it are" if edit.along else "it is"
        also = f", {' and '.join(_field(edit.op, f) for f in edit.fields)}" if edit.fields else ""
        return f"accepted if {they} {between(edit.to, edit.to > edit.at)}{also}"
    side = "" if named is None else " before it" if named >= edit.at else " after it"
    read = f' and source = "{edit.op.target.value}"' if edit.fields else ""
    return f"nothing {_does(edit.op)}{side}; accepted with {entry(edit.op)} {between(edit.at)}{read}"


def in_order(ops: Sequence[Op]) -> str:
    """Operations as they are written, one after the other."""
    return ", ".join(map(entry, ops))


def _field(op: Op, field: str) -> str:
    """A changed field, as it is after the repair."""
    key = KEY.get(field, field)
    if not getattr(op, field):
        return f"without {key}"
    return f"with {keys(op)[key]}"


def _does(op: Op) -> str:
    """What an operation does to its buffers, in the third person."""
    source, target, over = op.source.value, op.target.value, ""
    if op.axes:
        over = f" over {' x '.join(op.axes)}"
    verbs = {
        Kind.ALL_GATHER: f"gathers the {source}{over}",
        Kind.REDUCE_SCATTER: f"sums the {source}{over}",
        Kind.ALL_REDUCE: f"sums the {source}{over}",
        Kind.BROADCAST: f"sends the first device's {source}{over}",
        Kind.FETCH: f"brings the {source} to the device",
        Kind.OFFLOAD: f"brings the {source} to the host",
        Kind.RECOMPUTE: f"makes the {target}",
        Kind.FORWARD: "runs forward",
        Kind.BACKWARD: "runs backward",
        Kind.COUNT: "counts the tokens",
        Kind.ACCUMULATE: f"adds the {source} to the {target}",
        Kind.SCALE: f"scales the {source}",
        Kind.DIVIDE: f"divides the {source}",
        Kind.SQUARE_NORM: f"takes the norm of the {source}",
        Kind.CLIP: f"clips the {source}",
        Kind.UPDATE: "updates the weights",
        Kind.KEEP: f"keeps the slices of the {source}",
        Kind.RESET: f"sets the {source} to zero",
        Kind.ZERO: f"sets the {source} to zero",
        Kind.RELEASE: f"releases the {source}",
    }
    return verbs[op.kind]
