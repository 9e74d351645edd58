"""Checking a schedule: the verdict, where it fails, and a small run that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from psem_model.check import optimizers, sizes
from psem_model.check.placements import NO_COPY, wants_a_copy
from psem_model.check.runs import Case, Mesh, Run, small_run
from psem_model.check.words import has, needs
from psem_model.reading.schedule_keys import PARTS
from psem_model.text.errors import BadInput
from psem_model.text.figures import divergence_json
from psem_model.text.report import Column, Section, rows
from spec.checking.everywhere import Everywhere, Given, everywhere
from spec.checking.verdict import MANY, Verdict, check
from spec.choosing.regimes import Kept
from spec.language.schedule import MICRO_STEPS, Op, Schedule
from spec.models.states import MIXED_ADAM, BytePolicy, State
from spec.models.training import Statistics
from spec.numbers.any_size import Undecided, any_size
from spec.numbers.arithmetic import Number

MOST_AXES = 4  # of which every number of devices is looked at


@dataclass(frozen=True)
class Line:
    """An operation, and where it stands."""

    op: Op
    part: str  # micro_step or finish
    index: int  # there, from 0 on
    number: int | None  # in a file

    def __str__(self) -> str:
        return f"{self.part} {self.index + 1}: {' '.join(str(self.op).split())}"

    def json(self) -> dict[str, Any]:
        """For a program."""
        operation = " ".join(str(self.op).split())
        return {
            "operation": operation,
            "part": self.part,
            "index": self.index,
            "line": self.number,
        }


NO_LINE = dict.fromkeys(("operation", "part", "index", "line"))  # of the end of a step


@dataclass(frozen=True)
class CheckedGroup:
    """The schedule of a group of weights, the sizes asked for, and of those that fail the smallest.

    `kinds`: what was found for each kind of optimizer, if all are asked for.
    """

    schedule: Schedule
    given: Given
    found: Everywhere
    verdict: Verdict
    kinds: tuple[optimizers.OfAKind, ...] = ()
    failed: Case | None = None
    unmet: Line | None = None  # whose need is not met; none at the end of the step
    run: Run | None = None
    for_want_of_a_copy: bool = False  # it would be accepted if the optimizer state had the weights
    declaration: str = ""  # with which it would be accepted
    repaired: Line | None = None  # by whose repair it is accepted
    short: bool = False  # no line is wrong: lines are missing at the end
    repair: str = ""  # in words

    @property
    def accepted(self) -> bool:
        """Whether the verdict accepts."""
        return self.verdict.accepted

    @property
    def wrong(self) -> Line | None:
        """The line that is wrong, as far as that is known; none if its end is missing."""
        return None if self.short else self.repaired or self.unmet

    @property
    def line(self) -> int | None:
        """The line of a file on which it is."""
        return self.wrong.number if self.wrong else None

    def said(self, where: str = "") -> str:
        """Whether it is accepted, and by which optimizers, or what is wrong, and where."""
        kinds = optimizers.in_words(self.kinds)
        return f"accepted{kinds}" if self.accepted else f"rejected: {where}{self.what}"

    @property
    def what(self) -> str:
        """The operation that is wrong, and its place in the step."""
        return str(self.wrong) if self.wrong else "at the end of the step"

    def reasons(self) -> Iterator[tuple[str, str]]:
        """What is wrong, in words."""
        verdict, at = self.verdict, self.unmet
        if self.repair:
            yield "repair", self.repair
        yield "rule", f"{verdict.rule}: {RULES[verdict.rule]}"
        if at != self.wrong:
            number = f"line {at.number}, " if at and at.number else ""
            yield "at", f"{number}{at}" if at else "the end of the step"
        yield "has", has(verdict)
        yield "needs", needs(verdict)
        if self.for_want_of_a_copy:
            yield "why", NO_COPY
        if self.declaration:
            yield "or", self.declaration
        if self.failed:
            yield "with", f"{self.failed}, in step {verdict.step + 1}"
        if len(self.given) < len(self.found.names):
            yield "sizes", sizes.exceptions(self.found, self.given)
        if any(kind.found.accepted for kind in self.kinds):
            yield "but", f"accepted{optimizers.in_words(self.kinds)}"

    def sections(self, title: str = "") -> tuple[Section, ...]:
        """The sizes it is accepted for, or what is wrong, and a run that shows it."""
        if self.verdict.accepted:
            return (Section(title, notes=self.scope),) if title else ()
        no_run = SHAPES if self.verdict.rule == "room" else NO_RUN
        run = self.run.lines() if self.run else [no_run]
        columns = (Column("part"), Column("words", 1))
        return (Section(title, columns, rows(self.reasons()), tuple(run)),)

    def facts(self) -> tuple[str, ...]:
        """What it is accepted for."""
        return self.scope if self.verdict.accepted else ()

    @property
    def scope(self) -> tuple[str, ...]:
        """What it is accepted for, and with which optimizers it is not."""
        return (*sizes.scope(self.found, self.given), *optimizers.rejections(self.kinds))

    def data(self) -> dict[str, Any]:
        """For a program."""
        verdict, run = self.verdict, self.run
        rejection = {
            "rule": verdict.rule,
            "step": verdict.step + 1,
            **(self.wrong.json() if self.wrong else NO_LINE),
            "repair": self.repair or None,
            "unmet": self.unmet.json() if self.unmet else None,
            "has": has(verdict),
            "needs": needs(verdict),
            "for_want_of_a_copy": self.for_want_of_a_copy,
            "declaration": self.declaration or None,
            **(self.failed.json() if self.failed else {}),
        }
        return {
            "accepted": verdict.accepted,
            "sizes": sizes.data(self.found),
            "optimizers": optimizers.data(self.kinds) if self.kinds else None,
            "rejection": None if verdict.accepted else rejection,
            "divergence": run.found.json() | run.case.json() if run else None,
            "simulated": divergence_json(run.simulated) if run and run.simulated else None,
        }


WORKING = "if they are a working copy, say so: parameters = { working = true } in [rest]"
OF_STATISTICS = {  # whose samples move them, and whose copy counts
    whose: f'if {what}, say so: statistics = "{whose.value}" in [training]'
    for whose, what in (
        (Statistics.FIRST, "the first device's samples alone move the statistics"),
        (Statistics.COPY, "other devices' statistics may be old"),
    )
}
NO_RUN = "no small run was found that diverges: not all that is rejected does (claim T4)"
SHAPES = "no run: whole values do not fit into the room for a slice"
RULES = {
    "fresh": "forward and backward read the current parameters, all of them, on every device",
    "whole": "what a device applies is the gradient that a single device applies",
    "current": "the weights and the optimizer state that it updates are the current ones",
    "agreed": "after the step, every resting copy is the updated one",
    "room": "a place for slices is not given whole values without saying which slice",
}


def check_schedule(schedule: Schedule, given: Given, policy: BytePolicy | None) -> CheckedGroup:
    """Check a schedule, for some sizes that are given and all numbers of others.

    Of every kind of optimizer, it is the one with a copy of the weights that decides.
    """
    kinds = optimizers.for_each_kind(schedule, given) if policy is None else ()
    policy = policy or MIXED_ADAM
    found = next((kind.found for kind in kinds if kind.kept is Kept.MASTER_COPY), None)
    found = found or everywhere(schedule, given, policy)
    case, verdict = first_failure(schedule, found, policy)
    if case is None:
        return CheckedGroup(schedule, given, found, verdict, kinds)
    verdict = _in_general(schedule, case, verdict, policy)
    unmet = _unmet(schedule, verdict, case.micro_steps)
    run = None if verdict.rule == "room" else small_run(schedule, case, policy, given)
    why = wants_a_copy(schedule, case.mesh, case.micro_steps, policy)
    said = _declaration(schedule, given, policy) if verdict.rule == "agreed" else ""
    return CheckedGroup(schedule, given, found, verdict, kinds, case, unmet, run, why, said)


def _in_general(schedule: Schedule, case: Case, verdict: Verdict, policy: BytePolicy) -> Verdict:
    """A verdict in the words of the same one on sizes in general: its factors are as in a file."""

    def in_general(size: int, name: str) -> Number:
        return size if size == 1 else any_size(name)

    mesh = {axis: in_general(size, axis) for axis, size in case.mesh.items()}
    named = verdict.rule, verdict.step, _unmet(schedule, verdict, case.micro_steps)
    for count in (in_general(case.micro_steps, MICRO_STEPS), case.micro_steps):
        with suppress(Undecided):
            same = check(schedule, mesh, count, policy)
            repeats = count if isinstance(count, int) else 1
            if (same.rule, same.step, _unmet(schedule, same, repeats)) == named:
                return replace(verdict, why=same.why)
    return verdict


def _declaration(schedule: Schedule, given: Given, policy: BytePolicy) -> str:
    """How a file says that what is old after a step is a working copy, if it is right as such."""
    theta, training = schedule.rest(State.PARAMETERS), schedule.training
    if is_right(schedule.with_rest(State.PARAMETERS, replace(theta, working=True)), given, policy):
        return WORKING
    for whose, said in OF_STATISTICS.items() if training.statistics else ():
        of_some = replace(schedule, training=replace(training, statistics=whose))
        if is_right(of_some, given, policy):
            return said
    return ""


def is_right(schedule: Schedule, given: Given, policy: BytePolicy) -> bool:
    """Whether a schedule is accepted for some sizes and all numbers of others."""
    return everywhere(schedule, given, policy, exceptions=False).accepted


def first_failure(
    schedule: Schedule, found: Everywhere, policy: BytePolicy
) -> tuple[Case | None, Verdict]:
    """The smallest case that is rejected, and the verdict there; none if it is accepted.

    If none of the sizes looked at is rejected, the verdict is that in general.
    """
    for point in () if found.accepted else found.points():
        case = Case({axis: point[axis] for axis in schedule.axes}, point[MICRO_STEPS])
        verdict = check(schedule, case.mesh, case.micro_steps, policy)
        if not verdict.accepted:
            return case, verdict
    wrong = (one.verdict for one in found.found if one.verdict and not one.accepted)
    return None, next(wrong, Verdict(True))


def sizes_given(
    schedule: Schedule, mesh: Mesh | None, micro_steps: int | None, devices: Sequence[str]
) -> dict[str, int]:
    """The sizes that are numbers. `devices`: the axes of the whole step. Raises BadInput."""
    axes = schedule.axes
    if micro_steps is not None and micro_steps > MANY:
        raise BadInput(f"--accumulate: given {micro_steps:,}; expected at most {MANY} to check")
    if mesh is None and len(axes) > MOST_AXES:
        example = "x".join("2" for _ in devices)
        of = f" that place a weight, of the product's {len(devices)}" * (len(devices) > len(axes))
        raise BadInput(
            f"--devices: given nothing for {len(axes)} axes{of}; expected sizes such as {example} to "
            f"check more than {MOST_AXES} axes"
        )
    steps = {} if micro_steps is None else {MICRO_STEPS: micro_steps}
    return {axis: mesh[axis] for axis in axes if mesh is not None} | steps


def _unmet(schedule: Schedule, verdict: Verdict, micro_steps: int) -> Line | None:
    """The operation that a verdict names; none at a step's end."""
    repeated = len(schedule.micro_step)
    if verdict.op_index < 0:
        return None
    if verdict.op_index < micro_steps * repeated:
        return line_in(schedule, PARTS[0], verdict.op_index % repeated)
    return line_in(schedule, PARTS[1], verdict.op_index - micro_steps * repeated)


def line_in(schedule: Schedule, part: str, index: int) -> Line:
    """An operation of a part of a schedule."""
    ops = schedule.micro_step if part == PARTS[0] else schedule.finish
    return Line(ops[index], part, index, None)
