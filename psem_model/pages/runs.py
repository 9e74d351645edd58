"""Runs that diverge, line by line: what each device holds after each line, and the first wrong value.

The values are those of `spec.meaning.reference`. A value is wrong where a line needs another: a
forward or a backward the current parameters, an update the whole gradient and the current weights, the
end of a step the single device's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psem_model.check.runs import Run
from psem_model.check.schedules import CheckedGroup, check_schedule
from psem_model.reading.schedules import examples
from psem_model.text.figures import counted, value_text
from spec.language.schedule import Buffer, Kind, Op, Schedule
from spec.meaning.match import Copies
from spec.meaning.reference import UNKNOWN, Reference, Values
from spec.meaning.reference import run as run_of
from spec.meaning.semantics import CONTENT, Store, execute, initial, updates_on_host
from spec.models.states import MIXED_ADAM

SHORT = 9  # characters of a value that is shown exactly
NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Cell:
    """What a device holds: short, and exactly; what it should be, if that is wrong."""

    text: str
    exact: str = ""
    should: str = ""


@dataclass(frozen=True)
class Moment:
    """A line of the run: when, what is done, the buffer that is looked at, and each device's value."""

    when: str
    line: str
    buffer: str
    cells: Sequence[Cell]
    first_wrong: bool = False


@dataclass(frozen=True)
class Played:
    """A run, of one element, for the player."""

    id: str
    title: str
    says: Sequence[str]
    devices: Sequence[str]
    element: int
    moments: Sequence[Moment]
    divergence: str
    rule: str


def of_examples() -> list[Played]:
    """The rejected schedules of examples/ that have a small run that diverges."""
    found = []
    for path, schedule, said in examples():
        checked = check_schedule(schedule, {}, MIXED_ADAM)
        if checked.run is not None:
            found.append(played(path.stem, path.name, checked, checked.run, [said] if said else []))
    return found


def played(id: str, name: str, checked: CheckedGroup, run: Run, says: Sequence[str] = ()) -> Played:
    """The run that a check shows, up to the step in which it diverges."""
    watched = _Watched(checked.schedule, run)
    moments = list(watched.moments())
    wrong = next((i for i, moment in enumerate(moments) if any(c.should for c in moment.cells)), None)
    if wrong is not None:
        moments[wrong] = replace(moments[wrong], first_wrong=True)
    devices = ["(" + ", ".join(map(str, d)) + ")" for d in watched.world.devices]
    rule = f"{checked.verdict.rule}: {checked.what}"
    return Played(
        id,
        f"{name}: {run.case}",
        says,
        devices,
        watched.element,
        moments,
        str(run.found),
        rule,
    )


class _Watched:
    """A reference run of which each line is looked at, at one element: the one that diverges."""

    def __init__(self, schedule: Schedule, run: Run) -> None:
        self.schedule, self.run = schedule, run
        self.element = run.divergence.place.element or 0
        case = run.case  # of an optimizer that keeps a moment, and a copy of the weights
        of_run = schedule, case.mesh, case.micro_steps, case.parameters, run.found.data
        self.world = Reference(*of_run, True, True, run.found.losses)

    def moments(self) -> Iterator[Moment]:
        """Every line of every step, and what is kept after each step."""
        world, schedule, steps = self.world, self.schedule, self.run.divergence.step + 1
        store = initial(schedule, world, *(world.constant(v.__getitem__) for v in world.single(0)))
        kept = self._kept(steps)
        for step in range(steps):
            world.step = step
            theta, _ = world.single(step)
            whole = world.single_gradient(theta)
            for number, (m, op) in enumerate(schedule.flat(world.micro_steps)):
                in_finish = number >= len(schedule.micro_step) * world.micro_steps
                when = f"step {step + 1}" + ("" if in_finish else f", micro-step {m + 1}")
                needs = self._needed(op, store, theta, whole)
                execute(op, schedule, world, store, m)
                yield self._moment(when, op, store, needs)
            yield from self._ends(step, kept[step])

    def _kept(self, steps: int) -> list[list[Copies]]:
        """What is kept after each step, beside the single device's."""
        case, found = self.run.case, self.run.found
        of_run = self.schedule, case.mesh, steps, case.micro_steps, case.parameters, found.data
        rows = run_of(*of_run, losses=found.losses)
        kept: list[list[Copies]] = [[] for _ in range(steps)]
        for row in rows:
            kept[row.step].append(row)
        return kept

    def _needed(self, op: Op, store: Store, theta: list[Any], whole: list[Any]) -> dict[Any, str]:
        """By device, what an operand should be where it is another, of the elements that are read."""
        world = self.world
        if op.kind in (Kind.FORWARD, Kind.BACKWARD):
            return self._wrong(
                self._read(store, op.source, False), theta, dict.fromkeys(world.zero, True)
            )
        if op.kind is not Kind.UPDATE:
            return {}
        host, rests = updates_on_host(op, self.schedule), self.schedule.slices(op.target)
        axes = (*op.within, *(a for a in rests if a not in op.within))
        own = {(j, d): world.owns(j, d, axes, op.shift) for j, d in world.zero}
        weights = self._read(store, op.target if world.master else Buffer.PARAMETERS, host)
        return self._wrong(weights, theta, own) | self._wrong(
            self._read(store, op.source, host), whole, own
        )

    def _wrong(self, has: Values, right: list[Any], of: dict[tuple[int, Any], bool]) -> dict[Any, str]:
        """By device, what is not the right value; of the element that is shown, if that is not."""
        found: dict[Any, str] = {}
        for (j, d), value in has.items():
            is_shown = j == self.element
            if of[j, d] and (value is UNKNOWN or value != right[j]) and (is_shown or d not in found):
                which = "" if is_shown else f"element {j} "
                found[d] = f"{which}reads {_exact(value)}, needs {_exact(right[j])}"
        return found

    def _read(self, store: Store, buffer: Buffer, on_host: bool) -> Values:
        host, value = store.get((buffer, CONTENT), (on_host, None))
        found: Values | None = value if host is on_host else None
        return dict.fromkeys(self.world.zero, UNKNOWN) if found is None else found

    def _moment(self, when: str, op: Op, store: Store, wrong: dict[Any, str]) -> Moment:
        _, value = store.get((op.target, CONTENT), (False, None))
        cells = []
        for d in self.world.devices:
            has = None if value is None else value[self.element, d]
            text, exact = _short(has)
            cells.append(Cell(text, exact, wrong.get(d, "")))
        return Moment(when, " ".join(str(op).split()), op.target.value, cells)

    def _ends(self, step: int, kept: Sequence[Copies]) -> Iterator[Moment]:
        for row in kept:
            if row.has is None:
                continue
            cells = dict.fromkeys(self.world.devices, Cell(""))
            for i, (has, single) in enumerate(row.pairs()):
                at = row.place(i)
                if at.element == self.element:
                    should = "" if has == single else f"on a single device {_exact(single)}"
                    cells[at.device] = Cell(*_short(has), should)
            yield Moment(f"after step {step + 1}", "what is kept", row.state, list(cells.values()))


def _exact(value: Any) -> str:
    return NOT_KNOWN if value is UNKNOWN else value_text(value)


def _short(value: Any) -> tuple[str, str]:
    """A value in a few characters, and exactly, if these do not say all of it."""
    if value is None:
        return "", ""
    if value is UNKNOWN:
        return NOT_KNOWN, ""
    if isinstance(value, dict):  # activations of samples
        known = sum(each is not UNKNOWN for each in value.values())
        return f"of {counted(known, 'sample')}", ""
    exact = value_text(value)
    if len(exact) <= SHORT:
        return exact, ""
    try:
        return f"≈ {float(value):.5g}", exact
    except OverflowError:
        return "large", exact
