"""A small run of a rejected schedule that diverges: made of what the verdict found wrong, or found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf, prod
from typing import Any

from psem_model.check.made_runs import Made, made_for
from psem_model.text.figures import counted, divergence_json, divergence_text
from spec.checking.everywhere import LOOKED_AT, Given
from spec.checking.verdict import Verdict, check
from spec.language.schedule import MICRO_STEPS, Schedule
from spec.meaning.match import Divergence
from spec.meaning.reference import READS_EVERYTHING, Data, Losses, first_divergence, primes
from spec.models.states import BytePolicy

FEW_SEEN = 3  # devices along an axis, of whose runs those with fewer micro-steps are shown first
FEW_DEVICES, FEW_ALONG_AN_AXIS = 16, 4  # of a run in exact arithmetic
STEPS = 4  # of a run that reads everything: those that the verdict looks at
MADE = 30  # runs at most that are made for a verdict

Mesh = dict[str, int]


@dataclass(frozen=True)
class Case:
    """A mesh and a number of micro-steps."""

    mesh: Mesh
    micro_steps: int

    def __str__(self) -> str:
        along = " x ".join(f"{axis} {size:,}" for axis, size in self.mesh.items())
        return f"{along}, {counted(self.micro_steps, 'micro-step')}"

    @property
    def devices(self) -> int:
        return prod(self.mesh.values())

    @property
    def parameters(self) -> int:
        """Those of a run, as the reference has them: each device owns some."""
        return max(2, self.devices)

    def json(self) -> dict[str, Any]:
        """For a program."""
        return {"mesh": self.mesh, "micro_steps": self.micro_steps}


@dataclass(frozen=True)
class Diverging:
    """Where a schedule's run differs from the single device. `made`: the model, if one is made for the
    verdict; else it reads everything.
    """

    divergence: Divergence
    made: Made | None

    @property
    def losses(self) -> Losses:
        """What samples contribute."""
        return self.made or READS_EVERYTHING

    @property
    def data(self) -> Data:
        """What a run begins with, and its samples."""
        return self.made.data if self.made else primes

    def __str__(self) -> str:
        where = divergence_text(self.divergence)
        return f"{self.made}; {where}" if self.made else where

    def json(self) -> dict[str, Any]:
        """For a program."""
        return divergence_json(self.divergence) | {"model": self.made and self.made.json()}


@dataclass(frozen=True)
class Run:
    """A small run that diverges: in the specification's terms, and as the simulator replays it."""

    case: Case
    found: Diverging
    simulated: Divergence | None

    @property
    def divergence(self) -> Divergence:
        """Where it does."""
        return self.found.divergence

    def lines(self) -> list[str]:
        """In words."""
        on = (
            f"{counted(self.case.devices, 'device')}, {counted(self.case.parameters, 'parameter')}, "
            f"{counted(self.case.micro_steps, 'micro-step')}"
        )
        again = self.simulated
        if again and divergence_text(again) == divergence_text(self.divergence):
            return [f"a run that diverges, on {on}, as in the simulator: {self.found}"]
        replay = divergence_text(again) if again else "every copy is as on a single device"
        return [f"a run that diverges, on {on}: {self.found}", f"simulated on {on}: {replay}"]


def diverging(
    schedule: Schedule,
    mesh: Mapping[str, int],
    micro_steps: int,
    policy: BytePolicy,
    verdict: Verdict,
    most: int = MADE,
) -> Diverging | None:
    """A run at these sizes that diverges: of at most so many that are made for the verdict, the first;
    else the one that reads everything.
    """
    steps, kept = verdict.step + 1, {"stateful": policy.k > 0, "master": policy.master}
    of = schedule, {**mesh}
    for made in islice(made_for(*of, micro_steps, verdict), most):
        losses = {"data": made.data, "losses": made, **kept}
        found = first_divergence(*of, steps=steps, micro_steps=micro_steps, **losses)
        if found is not None:
            return Diverging(found, made)
    found = first_divergence(*of, steps=max(STEPS, steps), micro_steps=micro_steps, **kept)
    return None if found is None else Diverging(found, None)


def small_run(schedule: Schedule, failed: Case, policy: BytePolicy, given: Given) -> Run | None:
    """The smallest run that diverges: at the case that fails if that is small, else a smaller one.

    Few devices or micro-steps that are given are those of the run.
    """
    most = MADE
    for case in _cases(failed, given):
        verdict = check(schedule, case.mesh, case.micro_steps, policy)
        sizes = schedule, case.mesh, case.micro_steps, policy, verdict
        found = None if verdict.accepted else diverging(*sizes, most)
        if found and not most:
            found = diverging(*sizes)
        if found:
            return Run(case, found, _replayed(schedule, case, policy, found))
        most = most if verdict.accepted else 0  # elsewhere they are made of what is seen to diverge
    return None


def _cases(failed: Case, given: Given) -> list[Case]:
    """Those of few devices and micro-steps, the one that fails first, then the smallest."""

    def few(name: str, choices: Sequence[int]) -> Sequence[int]:
        return (given[name],) if given.get(name, inf) <= choices[-1] else choices

    meshes: list[Mesh] = [{}]
    for axis in failed.mesh:
        along = few(axis, range(1, FEW_ALONG_AN_AXIS + 1))
        meshes = [m | {axis: n} for m in meshes for n in along if prod(m.values()) * n <= FEW_DEVICES]
    counts = few(MICRO_STEPS, LOOKED_AT)
    smaller = _smallest_first(Case(mesh, count) for mesh in meshes for count in counts)
    small = max(failed.devices, failed.micro_steps) <= FEW_DEVICES
    return [failed] * small + [case for case in smaller if case != failed]


def _smallest_first(cases: Iterable[Case]) -> list[Case]:
    """The smallest first; of few devices, with few micro-steps: a sum over devices is easier to see."""

    def key(case: Case) -> tuple[int, ...]:
        most = max(case.mesh.values(), default=1)
        return max(most, FEW_SEEN), case.micro_steps, most, case.devices

    return sorted(cases, key=key)


def _replayed(
    schedule: Schedule, case: Case, policy: BytePolicy, found: Diverging
) -> Divergence | None:
    """Where the same run diverges in the simulator."""
    from psem_model.check.replay import replay

    of_case = schedule, case.mesh, case.micro_steps, case.parameters, policy
    steps = found.divergence.step + 1
    return replay(*of_case, steps, found.divergence, found.losses, found.data)
