"""A schedule of one's own, proved: by a run of the checker that leaves a theorem, as E9 is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofs.checking.operation_lines import NotCovered
from proofs.plans.listed_runs import ListedRuns
from proofs.plans.listing import listing
from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.oracle import VERSION
from psem_model.check.sizes import listed
from psem_model.text.figures import counted
from spec.checking.everywhere import everywhere
from spec.language.schedule import MICRO_STEPS, Schedule


@dataclass(frozen=True)
class Proof:
    """What came of it: how many lines and obligations, or why there is no proof."""

    axes: tuple[str, ...]
    micro_steps: bool  # any number of them; else one
    lines: int = 0
    obligations: int = 0
    why_not: str = ""
    clips: bool = False
    counts: bool = False

    @property
    def words(self) -> str:
        """A line of the report."""
        if self.why_not:
            return f"not proved: {self.why_not}; so that it is accepted is the checker's word alone"
        repeats = "of micro-steps and of steps" if self.micro_steps else "of steps of one micro-step"
        clips = "that may clip by the norm of all gradients, " if self.clips else ""
        counts = "that divides by the count of all tokens, " if self.counts else ""
        lines, asked = counted(self.lines, "line"), counted(self.obligations, "obligation")
        return (
            f"proved, by z3 {VERSION}: for any number of devices along {listed(self.axes)}, {repeats}, "
            f"any model, and an elementwise optimizer {counts}{clips}with a copy of the weights, what "
            f"is kept after every step is a single device's ({lines}, {asked})"
        )

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "proved": not self.why_not,
            "solver": f"z3 {VERSION}",
            "lines": self.lines,
            "obligations": self.obligations,
            "why_not": self.why_not or None,
        }


def proof_of(schedules: Sequence[Schedule]) -> Proof:
    """Prove that accepted schedules match a single device, for an optimizer with a copy of the weights.

    For all sizes: theorem T2 of runs whose comparisons are proved equal (claim E9).
    """
    apart = list(dict.fromkeys(schedules))
    axes = tuple(dict.fromkeys(axis for schedule in apart for axis in schedule.axes))
    about = axes, all(schedule.finish for schedule in apart)
    kernel = Kernel("schedule")
    if not all(map(_accepted, apart)):
        return Proof(*about, why_not="it is not right for all sizes")
    try:
        listed = {f"schedule_{i}": listing(schedule) for i, schedule in enumerate(apart, 1)}
        runs = ListedRuns(kernel, listed)
        runs.at_the_end(runs.always())
    except NotCovered as what:
        return Proof(*about, why_not=f"there are no proofs of {what} yet")
    except KernelError as why:
        return Proof(*about, why_not=str(why).removeprefix("schedule: "))
    lines = sum(len(each.lines) for each in listed.values())
    asked = sum(len(theorem.obligations) for theorem in kernel.theorems)
    clips = any(each.clips for each in listed.values())
    counts = any(each.counts for each in listed.values())
    return Proof(*about, lines, asked, clips=clips, counts=counts)


def _accepted(schedule: Schedule) -> bool:
    """Whether the checker accepts a schedule for all sizes of which it decides."""
    return everywhere(schedule, {} if schedule.finish else {MICRO_STEPS: 1}).accepted
