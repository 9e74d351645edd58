"""Checking a schedule in a file: the verdict, where it fails, and a small run that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from psem_model.check.placements import NO_COPY, wants_a_copy
from psem_model.reading.schedule_keys import PARTS
from psem_model.text.errors import BadInput
from psem_model.text.figures import counted, divergence_json, divergence_text
from psem_model.text.report import Column, Report, Section, rows
from spec.any_size import LEAST, any_size, same
from spec.arithmetic import Number
from spec.match import Divergence
from spec.reference import first_divergence
from spec.schedule import Op, Schedule
from spec.states import BytePolicy, State
from spec.verdict import Verdict, check

FEW = (1, 2)  # devices along an axis; beside these, any number from LEAST on
SIZES, MANY_DEVICES = (1, 2, 3), 1_000_003  # where the verdict depends on the number
MOST_AXES = 4  # of which every combination of sizes is looked at
MICRO_STEPS = (1, 2, 3)
FEW_DEVICES, FEW_ALONG_AN_AXIS = 16, 4  # of a run in exact arithmetic
STEPS = 4  # of such a run: those that the verdict looks at
MANY = 1000  # micro-steps, with which a check takes seconds

Mesh = dict[str, Number]


@dataclass(frozen=True)
class Case:
    """A mesh, of which some sizes may be any from LEAST on, and a number of micro-steps."""

    mesh: Mesh
    micro_steps: int

    def __str__(self) -> str:
        sizes = " x ".join(f"{axis} {size_text(size)}" for axis, size in self.mesh.items())
        return f"{sizes}, {counted(self.micro_steps, 'micro-step')}"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers to sort by."""
        return tuple(n if isinstance(n, int) else MANY_DEVICES for n in self.mesh.values())

    @property
    def devices(self) -> int:
        return prod(self.sizes)

    @property
    def of_numbers(self) -> bool:
        return all(isinstance(n, int) for n in self.mesh.values())

    def json(self) -> dict[str, Any]:
        """For a program."""
        mesh = {a: n if isinstance(n, int) else size_text(n) for a, n in self.mesh.items()}
        return {"mesh": mesh, "micro_steps": self.micro_steps}


def size_text(size: Number) -> str:
    """A number of devices along an axis."""
    return f"{size:,}" if isinstance(size, int) else f"{LEAST} or more"


@dataclass(frozen=True)
class Run:
    """A small run that diverges: in the specification's terms, and as the simulator replays it."""

    case: Case
    parameters: int
    divergence: Divergence
    simulated: Divergence | None

    def lines(self) -> list[str]:
        """In words."""
        where = (
            f"{counted(self.case.devices, 'device')}, {counted(self.parameters, 'parameter')}, "
            f"{counted(self.case.micro_steps, 'micro-step')}"
        )
        replay = "every copy is as on a single device"
        if self.simulated is not None:
            replay = divergence_text(self.simulated)
        return [
            f"a run that diverges, on {where}: {divergence_text(self.divergence)}",
            f"simulated on {where}: {replay}",
        ]


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
class Checked:
    """A file, the cases that were looked at, and the first that fails."""

    name: str
    cases: tuple[Case, ...]
    schedule: Schedule
    verdict: Verdict
    unmet: Line | None = None  # whose need is not met; none at the end of the step
    run: Run | None = None
    for_want_of_a_copy: bool = False  # it would be accepted if the optimizer state had the weights
    is_working: bool = False  # it would be accepted if parameters were declared a working copy
    repaired: Line | None = None  # by whose repair it is accepted
    repair: str = ""  # in words

    @property
    def wrong(self) -> Line | None:
        """The line that is wrong, as far as that is known."""
        return self.repaired or self.unmet

    @property
    def headline(self) -> str:
        """Whether it is accepted, and where it is not."""
        if self.verdict.accepted:
            return f"{self.name}: accepted"
        number = self.wrong.number if self.wrong else None
        where = self.name if number is None else f"{self.name}, line {number}"
        return f"{where}: rejected: {self.what}"

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
        yield "has", verdict.has
        yield "needs", verdict.needs
        if self.for_want_of_a_copy:
            yield "why", NO_COPY
        if self.is_working:
            yield "or", WORKING
        yield "with", f"{self.cases[-1]}, in step {verdict.step + 1}"

    def sections(self, title: str = "") -> tuple[Section, ...]:
        """The cases that were looked at, or what is wrong, and a run that shows it."""
        if self.verdict.accepted:
            return (Section(title, notes=(self.looked_at,)),) if title else ()
        no_run = SHAPES if self.verdict.rule == "room" else "no small run was found that diverges"
        run = self.run.lines() if self.run else [no_run]
        columns = (Column("part"), Column("words", 1))
        return (Section(title, columns, rows(self.reasons()), tuple(run)),)

    def report(self) -> Report:
        """The same as a report."""
        facts = (self.looked_at,) if self.verdict.accepted else ()
        right = self.verdict.accepted
        return Report("check", self.headline, facts, self.sections(), self.data(), right)

    @property
    def looked_at(self) -> str:
        """The cases, in words."""
        return f"looked at {_summary(self.cases)}"

    def data(self) -> dict[str, Any]:
        """For a program."""
        verdict, run = self.verdict, self.run
        rejection = {
            "rule": verdict.rule,
            "step": verdict.step + 1,
            **(self.wrong.json() if self.wrong else NO_LINE),
            "repair": self.repair or None,
            "unmet": self.unmet.json() if self.unmet else None,
            "has": verdict.has,
            "needs": verdict.needs,
            "for_want_of_a_copy": self.for_want_of_a_copy,
            "is_working": self.is_working,
            **self.cases[-1].json(),
        }
        return {
            "file": self.name,
            "accepted": verdict.accepted,
            "cases": [case.json() for case in self.cases],
            "rejection": None if verdict.accepted else rejection,
            "divergence": divergence_json(run.divergence) | run.case.json() if run else None,
            "simulated": divergence_json(run.simulated) if run and run.simulated else None,
        }


WORKING = "if they are a working copy, say so: parameters = { working = true } in [rest]"
SHAPES = "the two buffers have not the same shape: there is no run"
RULES = {
    "fresh": "forward and backward read the current parameters, all of them, on every device",
    "whole": "what a device applies is the gradient that a single device applies",
    "current": "the weights and the optimizer state that it updates are the current ones",
    "agreed": "after the step, every resting copy is the updated one",
    "room": "a place for slices is not given whole values without saying which slice",
}


def check_schedule(
    name: str,
    schedule: Schedule,
    cases: Sequence[Case],
    policy: BytePolicy,
    progress: Callable[[Sequence[Case]], Iterator[Case]] = iter,
) -> Checked:
    """Check a schedule in each case, until one fails.

    What is rejected for any number of devices, or not decided, is looked at on numbers of them.
    """
    looked_at, verdict = first_failure(schedule, cases, policy, progress)
    if verdict.accepted:
        return Checked(name, looked_at, schedule, verdict)
    case = looked_at[-1]
    unmet = _unmet(schedule, verdict, case.micro_steps)
    run = None if verdict.rule == "room" else small_run(schedule, case, policy)
    why = wants_a_copy(schedule, case.mesh, case.micro_steps, policy)
    working = verdict.rule == "agreed" and first_failure(_declared(schedule), cases, policy)[1].accepted
    return Checked(name, looked_at, schedule, verdict, unmet, run, why, working)


def _declared(schedule: Schedule) -> Schedule:
    """The schedule, with parameters that are a working copy."""
    rests = tuple((s, replace(r, working=s is State.PARAMETERS)) for s, r in schedule.rests)
    return replace(schedule, rests=rests)


def first_failure(
    schedule: Schedule,
    cases: Sequence[Case],
    policy: BytePolicy,
    progress: Callable[[Sequence[Case]], Iterator[Case]] = iter,
) -> tuple[tuple[Case, ...], Verdict]:
    """The cases that were looked at, and the verdict on the last: the first that fails, if one does."""
    looked_at = []
    for case in progress(cases):
        looked_at.append(case)
        try:
            verdict = check(schedule, case.mesh, case.micro_steps, policy, same)
        except ValueError:
            if case.of_numbers:
                raise
            verdict = Verdict(False)
        if not verdict.accepted and not case.of_numbers:
            numbers = _cases(schedule, sizes_of(schedule), {c.micro_steps for c in cases})
            return first_failure(schedule, numbers, policy, progress)
        if not verdict.accepted:
            return tuple(looked_at), verdict
    return tuple(looked_at), Verdict(True)


def cases_of(
    schedule: Schedule, mesh: Mesh | None, micro_steps: int | None, devices: Sequence[str] = ()
) -> list[Case]:
    """The cases to look at, the smallest first. `devices`: the product's axes, if it is of one."""
    axes = schedule.axes
    if micro_steps is not None and micro_steps > MANY:
        raise BadInput(f"--accumulate: given {micro_steps:,}; expected at most {MANY} to check")
    if mesh is None and len(axes) > MOST_AXES:
        example = "x".join("2" for _ in devices or axes)
        of = f" that place a weight, of the product's {len(devices)}" if devices else ""
        raise BadInput(
            f"--devices: given nothing for {len(axes)} axes{of}; expected sizes such as {example} to "
            f"check more than {MOST_AXES} axes"
        )
    counts = MICRO_STEPS if micro_steps is None else (micro_steps,)
    if mesh is None:
        return _cases(schedule, (*FEW, None), counts)
    return _smallest_first(Case({a: mesh[a] for a in axes}, count) for count in counts)


def _cases(schedule: Schedule, sizes: Sequence[int | None], counts: Iterable[int]) -> list[Case]:
    """Every combination of sizes, None for any, with every number of micro-steps."""
    axes = schedule.axes
    meshes = [
        {a: any_size(a) if n is None else n for a, n in zip(axes, some, strict=True)}
        for some in product(sizes, repeat=len(axes))
    ]
    return _smallest_first(Case(mesh, count) for mesh in meshes for count in counts)


def sizes_of(schedule: Schedule) -> tuple[int, ...]:
    """How many devices to look at along an axis, if numbers of them make a difference.

    Many are more than twice any shift: a shift by a multiple of a size is none, and two shifts are
    the same if they differ by one.
    """
    farthest = max(abs(op.shift) for op in (*schedule.micro_step, *schedule.finish))
    return (*SIZES, max(MANY_DEVICES, 2 * farthest + 3))


def _smallest_first(cases: Iterable[Case]) -> list[Case]:
    """The smallest first; of few devices, with few micro-steps: a sum over devices is easier to see."""

    def key(case: Case) -> tuple[int, ...]:
        most = max(case.sizes, default=1)
        return max(most, LEAST), case.micro_steps, most, case.devices

    return sorted(cases, key=key)


def _unmet(schedule: Schedule, verdict: Verdict, micro_steps: int) -> Line | None:
    """The operation that a verdict names; none at a step's end."""
    repeated = len(schedule.micro_step)
    if verdict.index < 0:
        return None
    if verdict.index < micro_steps * repeated:
        return line_in(schedule, PARTS[0], verdict.index % repeated)
    return line_in(schedule, PARTS[1], verdict.index - micro_steps * repeated)


def line_in(schedule: Schedule, part: str, index: int) -> Line:
    """An operation of a part of a schedule."""
    ops = schedule.micro_step if part == PARTS[0] else schedule.finish
    return Line(ops[index], part, index, None)


def small_run(schedule: Schedule, failed: Case, policy: BytePolicy) -> Run | None:
    """The smallest run that diverges: at the case that fails if that is small, else a smaller one."""
    meshes: list[Mesh] = [{}]
    for axis in failed.mesh:
        more = (m | {axis: n} for m in meshes for n in range(1, FEW_ALONG_AN_AXIS + 1))
        meshes = [m for m in more if prod(m.values()) <= FEW_DEVICES]
    counts = range(1, max(MICRO_STEPS) + 1)
    smaller = _smallest_first(Case(mesh, count) for mesh in meshes for count in counts)
    for case in [failed] * (failed in smaller) + smaller:
        divergence = first_divergence(
            schedule,
            case.mesh,
            steps=STEPS,
            micro_steps=case.micro_steps,
            stateful=policy.k > 0,
            master=policy.master,
        )
        if divergence is not None:
            return _replayed(schedule, case, policy, divergence)
    return None


def _replayed(schedule: Schedule, case: Case, policy: BytePolicy, found: Divergence) -> Run:
    """The same run in the simulator."""
    from psem_model.check.replay import replay

    elements = max(2, case.devices)  # as the reference has
    again = replay(schedule, case.mesh, case.micro_steps, elements, policy, STEPS, found)
    return Run(case, elements, found, again)


def _summary(cases: Sequence[Case]) -> str:
    """The cases in one line."""

    def listed(values: Iterable[Number]) -> str:
        *first, last = dict.fromkeys(map(size_text, values))
        return f"{', '.join(first)} and {last}" if first else last

    axes = cases[0].mesh
    if not axes:
        return "one device"
    sizes = " x ".join(f"{axis} {listed(c.mesh[axis] for c in cases)}" for axis in axes)
    steps = listed(sorted({c.micro_steps for c in cases}))
    return f"{counted(len(cases), 'case')}: {sizes}; micro-steps {steps}"
