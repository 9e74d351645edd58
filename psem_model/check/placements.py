"""Whether a placement's derived step is right: its verdict, and a small run that diverges if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from psem_model.check.runs import Diverging, diverging
from psem_model.check.words import reason
from psem_model.text.errors import UserError
from psem_model.text.figures import divergence_json
from psem_model.text.report import Report
from spec.checking.verdict import Verdict, check
from spec.language.schedule import Schedule
from spec.meaning.match import Divergence
from spec.models.states import BytePolicy

if TYPE_CHECKING:
    from psem_model.check.step_runs import StepRun

SMALL = 3  # devices along an axis, or micro-steps, that show all there is to see (theorem T3)
NO_COPY = "the byte policy's optimizer state has no copy of the weights to update from"
BY_HAND = "a step written by hand may be right: `psem check FILE` says so"


class NotRealisable(UserError):
    """A placement's derived step, or one that is written, is rejected: the verdict, and a small run.

    `for_want_of_a_copy`: it would be accepted if the optimizer state had a copy of the weights. Then no
    right step is derived of the placement, but one written by hand may be right. `of_step`: the run of
    a whole step, in place of a schedule's.
    """

    def __init__(
        self,
        verdict: Verdict,
        run: Diverging | None,
        for_want_of_a_copy: bool,
        written: bool = False,
        of_step: StepRun | None = None,
    ) -> None:
        self.reason = reason(verdict)
        super().__init__(self.reason)
        self.verdict, self.run, self.of_step = verdict, run, of_step
        self.for_want_of_a_copy, self.written = for_want_of_a_copy, written

    @property
    def divergence(self) -> Divergence | None:
        """Where the run differs from the single device."""
        run = self.of_step or self.run
        return run.divergence if run else None

    def lines(self) -> list[str]:
        """In words."""
        if self.for_want_of_a_copy and not self.written:
            return [f"not derived: {self.reason}", NO_COPY, BY_HAND]
        lines = [f"{'rejected' if self.written else 'not realisable'}: {self.reason}"]
        if self.of_step:
            lines.append(self.of_step.words)
        elif self.run:
            lines.append(f"a run that diverges: {self.run}")
        return lines

    def report(self, command: str) -> Report:
        """For a program."""
        where = None if self.for_want_of_a_copy else self.divergence
        made = self.run.made if self.run else None
        found = {
            "realisable": False,
            "derived": not self.for_want_of_a_copy,
            "rule": self.verdict.rule,
            "reason": self.reason,
            "for_want_of_a_copy": self.for_want_of_a_copy,
            "divergence": where and divergence_json(where) | {"model": made and made.json()},
        }
        return Report(command, "", data=found, right=False)


@lru_cache(maxsize=4096)
def verdict_of(
    schedule: Schedule, sizes: tuple[int, ...], micro_steps: int, policy: BytePolicy
) -> Verdict:
    """The verdict of a schedule on a mesh of these sizes."""
    return check(schedule, dict(zip(schedule.axes, sizes, strict=True)), micro_steps, policy)


def wants_a_copy(
    schedule: Schedule, mesh: Mapping[str, int], micro_steps: int, policy: BytePolicy
) -> bool:
    """Whether a rejected schedule would be accepted if the optimizer state had the weights, too."""
    if policy.master:
        return False
    with_copy = replace(policy, k=policy.k or policy.w, master=True)
    return check(schedule, mesh, micro_steps, with_copy).accepted


def refused(
    schedule: Schedule, mesh: Mapping[str, int], micro_steps: int, policy: BytePolicy
) -> NotRealisable | None:
    """Why a derived schedule is rejected on this mesh, if it is.

    Beyond 3 devices an axis, and 3 micro-steps, the verdict is that of 3: derived steps shift nothing.
    """
    sizes, few = tuple(min(mesh[a], SMALL) for a in schedule.axes), min(micro_steps, SMALL)
    verdict = verdict_of(schedule, sizes, few, policy)
    if verdict.accepted:
        return None
    small = dict(zip(schedule.axes, sizes, strict=True))
    run = diverging(schedule, small, few, policy, verdict)
    return NotRealisable(verdict, run, wants_a_copy(schedule, small, few, policy))
