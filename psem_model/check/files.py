"""Checking a file: the verdict, and if it is rejected, the line that is wrong and a repair in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from psem_model.check.blame import Look, accepted, blamed, trace
from psem_model.check.continuations import missing, spoiling
from psem_model.check.edits import Edit, How, Spot
from psem_model.check.rounding import rounded
from psem_model.check.runs import Case, Mesh
from psem_model.check.schedules import (
    CheckedGroup,
    Line,
    check_schedule,
    is_right,
    line_in,
    sizes_given,
)
from psem_model.check.steps import Checked, checked_step
from psem_model.reading.schedule_keys import PARTS
from psem_model.reading.schedules import entry, keys, opened, text_of
from psem_model.reading.step_reader import read_step
from psem_model.reading.toml_lines import locate
from spec.checking.everywhere import Given
from spec.checking.verdict import FEW
from spec.language.schedule import MICRO_STEPS, Kind, Op, Schedule
from spec.models.states import MIXED_ADAM, BytePolicy

MOST_LINES = 60  # of which edits are tried
FEW_MICRO_STEPS, FEW_AXES = 4, 3  # smaller cases stand for more than these
NOT_ONE_LINE = "none of one line was found: after this line no usual continuation is right"
KEY = {"kind": "op"}  # what a file calls a field, where it is not the field's name
TOO_EARLY = "no line is wrong, the step ends too early"
NumberOf = Callable[[str, int], int | None]  # an operation's line in the file: of its part, from 0 on


def check_file(
    name: str,
    devices: Callable[[Sequence[str]], Mesh] | None,
    micro_steps: int | None,
    policy: BytePolicy | None,
    types: BytePolicy = MIXED_ADAM,
) -> Checked:
    """Check the step in a file: a schedule, or a model's. `types`: of its states.

    `devices` gives the sizes for its axes; without, and without micro-steps, every number of them is
    asked for; without a policy, every kind of optimizer. Raises BadInput with one line.
    """
    file = opened(text_of(name), name)
    step, places = read_step(file)
    axes = file.declared()
    sizes = devices(axes) if devices else None

    def place(of: object) -> int | None:
        return locate(file.text, places[of]) if of in places else None

    def checked(group: int, schedule: Schedule) -> CheckedGroup:
        given = sizes_given(schedule, sizes, micro_steps, axes)
        found = check_schedule(schedule, given, policy)

        def number(part: str, index: int) -> int | None:
            return place((group, part, index))

        failed = found.failed
        return found if failed is None else _located(found, failed, policy or MIXED_ADAM, number)

    found = checked_step(name, step, checked, place)
    rounds = (replace(each, number=place(each.place)) for each in rounded(step, types))
    return replace(found, rounds=tuple(rounds))


def _located(found: CheckedGroup, failed: Case, policy: BytePolicy, number: NumberOf) -> CheckedGroup:
    """What was found of a schedule that is rejected, with its lines in the file: which is wrong."""
    schedule = found.schedule

    def line(spot: Spot | None) -> Line | None:
        if spot is None:
            return None
        part = PARTS[spot.part]
        return replace(line_in(schedule, part, spot.index), number=number(part, spot.index))

    if found.unmet:
        at = found.unmet
        found = replace(found, unmet=replace(at, number=number(at.part, at.index)))
    if len(schedule.ops) > MOST_LINES:
        return replace(found, repair=f"not looked for: more than {MOST_LINES} lines")
    small, given = _smaller(found, failed, policy)
    if small.micro_steps > FEW:
        return replace(found, repair="not looked for: it is right with few micro-steps")
    looks = _looks(small, failed, given)
    edit = trace(schedule, looks, policy, lambda s: is_right(s, given, policy))
    if edit is not None:
        spot = blamed(edit, schedule)
        words = repair_in_words(edit, schedule, spot, number)
        return replace(found, repaired=line(spot), repair=words)

    def everywhere(s: Schedule) -> bool:
        return accepted(s, looks, policy) and is_right(s, given, policy)

    if lines := missing(schedule, everywhere):
        repair = f"{TOO_EARLY}; accepted with {', '.join(map(entry, lines))} at its end"
        return replace(found, short=True, repair=repair)
    once = [(small.mesh, 1)]
    spoils = spoiling(schedule, lambda s: accepted(s, once, policy))
    if spoils is None or accepted(schedule, once, policy):
        return found
    return replace(found, repaired=line(spoils), repair=NOT_ONE_LINE)


def _smaller(found: CheckedGroup, failed: Case, policy: BytePolicy) -> tuple[Case, Given]:
    """A small case that fails like a large one, and what is given: then any number of micro-steps."""

    def fails(case: Case) -> bool:
        return not accepted(found.schedule, [(case.mesh, case.micro_steps)], policy)

    small, given = failed, found.given
    for count in range(1, FEW_MICRO_STEPS) if failed.micro_steps > FEW_MICRO_STEPS else ():
        if fails(replace(failed, micro_steps=count)):
            small = replace(failed, micro_steps=count)
            given = {name: n for name, n in given.items() if name != MICRO_STEPS}
            break
    for axis in failed.mesh if len(failed.mesh) > FEW_AXES else ():
        fewer = replace(small, mesh=small.mesh | {axis: 1})
        small = fewer if fails(fewer) else small
    return small, given


def _looks(small: Case, failed: Case, given: Given) -> list[Look]:
    """Cases that few wrong schedules pass: those that fail, and some whose numbers all differ."""
    unequal = {axis: given.get(axis, 3 + i) for i, axis in enumerate(failed.mesh)}
    pairs = {axis: given.get(axis, 2) for axis in failed.mesh}
    looks: list[Look] = [
        (small.mesh, small.micro_steps),
        (failed.mesh, small.micro_steps),
        (unequal, given.get(MICRO_STEPS, 2)),
        (pairs, given.get(MICRO_STEPS, 3)),
    ]
    return [look for i, look in enumerate(looks) if look not in looks[:i]]


# --------------------------------------------------------------------- repairs in words
def repair_in_words(edit: Edit, schedule: Schedule, named: Spot | None, line: NumberOf) -> str:
    """What to do, to which line; `named` is the line that a rejection names."""

    def place(spot: Spot) -> str:
        number = line(PARTS[spot.part], spot.index)
        return f"{PARTS[spot.part]} {spot.index + 1}" if number is None else f"line {number}"

    def between(spot: Spot, later: bool = True) -> str:
        """Where an operation goes that comes before the one at a spot."""
        ops = schedule.bodies[spot.part]
        if spot.index and (later or spot.index == len(ops)):
            return f"after {place(Spot(spot.part, spot.index - 1))}"
        return f"before {place(spot)}" if ops else f"in {PARTS[spot.part]}"

    if edit.how is How.CHANGED:
        return f"accepted {' and '.join(_field(edit.op, f) for f in edit.fields)}"
    if edit.how is How.REMOVED:
        ops = [(Spot(p, i), op) for p, part in enumerate(schedule.bodies) for i, op in enumerate(part)]
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
