"""Checking the file of a schedule: the verdict, and the line that is wrong if it is rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from psem_model.check.blame import Look, accepted, blamed, trace
from psem_model.check.continuations import spoiling
from psem_model.check.edits import Spot
from psem_model.check.repairs import repair_in_words
from psem_model.check.schedules import (
    Case,
    Checked,
    Line,
    Mesh,
    cases_of,
    check_schedule,
    first_failure,
    line_in,
)
from psem_model.reading.schedule_keys import PARTS
from psem_model.reading.schedules import line_of, loads, text_of
from spec.any_size import LEAST
from spec.states import BytePolicy

FEW_MICRO_STEPS = 8  # with which every edit of a line can be tried
NOT_ONE_LINE = "more than one line: after this one no usual continuation is right"


def check_file(
    name: str,
    devices: Callable[[Sequence[str]], Mesh] | None,
    micro_steps: int | None,
    policy: BytePolicy,
    progress: Callable[[Sequence[Case]], Iterator[Case]] = iter,
) -> Checked:
    """Check the schedule in a file, smallest meshes first, until one fails.

    `devices` gives the sizes for its axes; without, every combination of 1, 2 and any number from 3 on
    is looked at, or of 1, 2, 3 and very many where the verdict depends on the number; and without
    micro-steps 1, 2 and 3. Raises BadInput with one line.
    """
    text = text_of(name)
    schedule = loads(text, name)
    cases = cases_of(schedule, devices(schedule.axes) if devices else None, micro_steps)
    found = check_schedule(name, schedule, cases, policy, progress)
    return found if found.verdict.accepted else _located(found, cases, policy, text)


def _located(found: Checked, cases: Sequence[Case], policy: BytePolicy, text: str) -> Checked:
    """What was found of a file that is rejected, with the lines in it, and the one that is wrong."""
    schedule, looks = found.schedule, _looks(found.cases[-1], cases)

    def number(part: str, index: int) -> int:
        return line_of(text, part, index)

    def line(spot: Spot | None) -> Line | None:
        if spot is None:
            return None
        part = PARTS[spot.part]
        return replace(line_in(schedule, part, spot.index), number=number(part, spot.index))

    if found.unmet:
        at = found.unmet
        found = replace(found, unmet=replace(at, number=number(at.part, at.index)))
    if max(count for _, count in looks) > FEW_MICRO_STEPS:
        return found
    edit = trace(schedule, looks, policy, lambda s: first_failure(s, cases, policy)[1].accepted)
    if edit is not None:
        spot = blamed(edit, schedule)
        words = repair_in_words(edit, schedule, spot, number)
        return replace(found, repaired=line(spot), repair=words)
    once = [(looks[0][0], 1)]
    spoils = spoiling(schedule, lambda s: accepted(s, once, policy))
    if spoils is None or accepted(schedule, once, policy):
        return found
    return replace(found, repaired=line(spoils), repair=NOT_ONE_LINE)


def _looks(failed: Case, cases: Sequence[Case]) -> list[Look]:
    """Cases that few wrong schedules pass: the one that fails, and some whose numbers all differ."""
    counts = sorted({case.micro_steps for case in cases})[-2:]
    meshes = [case.mesh for case in cases if case.of_numbers]
    if len(meshes) < len(cases) or any(mesh != meshes[0] for mesh in meshes):
        axes = tuple(cases[0].mesh)
        unequal = dict(zip(axes, range(LEAST, LEAST + len(axes)), strict=True))
        meshes = [unequal, dict.fromkeys(axes, 2)]
    looks: list[Look] = [
        (failed.mesh, failed.micro_steps),
        (meshes[0], counts[0]),
        (meshes[-1], counts[-1]),
    ]
    return [look for i, look in enumerate(looks) if look not in looks[:i]]
