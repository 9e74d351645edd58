"""Checking the file of a schedule: the verdict, and the line that is wrong if it is rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from psem_model.check.blame import Look, accepted, blamed, trace
from psem_model.check.continuations import missing, spoiling
from psem_model.check.edits import Spot
from psem_model.check.products import CheckedStep, checked_step
from psem_model.check.repairs import in_order, repair_in_words
from psem_model.check.schedules import (
    Case,
    Checked,
    Line,
    Mesh,
    check_schedule,
    is_right,
    line_in,
    sizes_given,
)
from psem_model.reading.schedule_keys import PARTS
from psem_model.reading.schedule_reader import Reader
from psem_model.reading.schedules import line_of, opened, text_of
from psem_model.reading.step_reader import is_step, read_step
from psem_model.reading.toml_lines import Path, locate
from spec.checking.everywhere import Given
from spec.checking.verdict import FEW
from spec.language.schedule import MICRO_STEPS, Schedule
from spec.models.states import MIXED_ADAM, BytePolicy

MOST_LINES = 60  # of which edits are tried
FEW_MICRO_STEPS, FEW_AXES = 4, 3  # smaller cases stand for more than these
NOT_ONE_LINE = "none of one line was found: after this line no usual continuation is right"
TOO_EARLY = "no line is wrong, the step ends too early"


def check_file(
    name: str,
    devices: Callable[[Sequence[str]], Mesh] | None,
    micro_steps: int | None,
    policy: BytePolicy | None,
) -> Checked | CheckedStep:
    """Check the schedule, or the model's step, in a file.

    `devices` gives the sizes for its axes; without, and without micro-steps, every number of them is
    asked for; without a policy, every kind of optimizer. Raises BadInput with one line.
    """
    text = text_of(name)
    reader = opened(text, name)
    if is_step(reader.content):
        return _check_step(reader, devices, micro_steps, policy)
    schedule = reader.schedule()
    given = sizes_given(schedule, devices(schedule.axes) if devices else None, micro_steps)
    found = check_schedule(name, schedule, given, policy)
    if found.failed is None:
        return found
    return _located(found, found.failed, policy or MIXED_ADAM, text)


def _check_step(
    file: Reader,
    devices: Callable[[Sequence[str]], Mesh] | None,
    micro_steps: int | None,
    policy: BytePolicy | None,
) -> CheckedStep:
    """Check a model's step: its programs, and the schedule of each weight."""
    step, places = read_step(file)
    axes = file.declared()
    sizes = devices(axes) if devices else None

    def checked(number: int, schedule: Schedule) -> Checked:
        given = sizes_given(schedule, sizes, micro_steps, axes)
        found = check_schedule(file.name, schedule, given, policy)
        if found.failed is None:
            return found
        return _located(found, found.failed, policy or MIXED_ADAM, file.text, ("states", number))

    def place(of: object) -> int | None:
        return locate(file.text, places[of]) if of in places else None

    return checked_step(file.name, step, checked, place)


def _located(found: Checked, failed: Case, policy: BytePolicy, text: str, prefix: Path = ()) -> Checked:
    """What was found of a file that is rejected, with the lines in it, and the one that is wrong."""
    schedule = found.schedule

    def number(part: str, index: int) -> int:
        return line_of(text, part, index, prefix)

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
        repair = f"{TOO_EARLY}; accepted with {in_order(lines)} at its end"
        return replace(found, short=True, repair=repair)
    once = [(small.mesh, 1)]
    spoils = spoiling(schedule, lambda s: accepted(s, once, policy))
    if spoils is None or accepted(schedule, once, policy):
        return found
    return replace(found, repaired=line(spoils), repair=NOT_ONE_LINE)


def _smaller(found: Checked, failed: Case, policy: BytePolicy) -> tuple[Case, Given]:
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
