"""Small runs of the conditions' counterexamples: two devices, one sample each in a micro-step.

A sample's gradient is slope * p + offset, at the parameter p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from proofs.meaning.sharpness import RATE
from psem_model.audit.refutations.noted import Noted
from psem_model.audit.refutations.registry import Values
from psem_model.simulator import Run, simulate
from psem_model.simulator.arithmetic import Array
from psem_model.simulator.models import Backward, Model
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Op, Phase, Schedule
from spec.models.states import POLICIES, BytePolicy
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES

MESH = {BATCH: 2}
SGD, ADAM = POLICIES["fp32-sgd"], POLICIES["fp32-adam"]
DP, ZERO1, ZERO2, ZERO3 = (schedule_of(STRATEGIES[name]) for name in ("dp", "zero1", "zero2", "zero3"))

# what is said of runs
DIVERGES, MATCHES = "it diverges", "it matches the single device"
REJECTED = "its schedule is rejected by that rule"
READS = "the devices read the parameters of the counterexample"
APPLIES = "the devices apply the gradients of the counterexample"
TWIN = "the twin without the fault matches, and is accepted"

MicroStep = tuple[Sequence[Any], Sequence[Any]]  # slopes and offsets, a row of each device
Steps = Sequence[Sequence[MicroStep]]


class Samples(Model):
    """A model of one unit: its slopes and offsets in each micro-step of each step."""

    def __init__(self, steps: Steps, notes: Noted) -> None:
        self.steps, self.notes = steps, notes

    def gradients(self, row: Array, step: int, micro_step: int) -> Array:
        """Of each device's sample (devices, elements)."""
        slopes, offsets = (np.array(x, self.notes.dtype) for x in self.steps[step][micro_step])
        return np.asarray(slopes * row + offsets)

    def backward(self, of: Backward) -> list[Array]:
        gradients = self.gradients(of.view, *of.when)
        self.notes.seen.append(np.broadcast_to(of.view, gradients.shape).tolist())
        return [gradients]

    def whole(self, weights: Sequence[Array], step: int) -> list[Array]:
        micro_steps = range(len(self.steps[step]))
        every = (self.gradients(weights[0], step, m)[[d]] for d in (0, 1) for m in micro_steps)
        return [np.asarray(sum(every))]


def sample(
    slope0: Any = 0, offset0: Any = 0, slope1: Any = 0, offset1: Any = 0, **_: Any
) -> list[MicroStep]:
    """A step of one micro-step, of one element."""
    return [([[slope0], [slope1]], [[offset0], [offset1]])]


def moved_first(v: Values, **others: Any) -> list[list[MicroStep]]:
    """The step described, after one that moves the weight from `seen` to `start`, whatever is read."""
    return [sample(offset0=(v["seen"] - v["start"]) / RATE), sample(**{**v, **others})]


def run(
    schedule: Schedule,
    steps: Steps,
    notes: Noted,
    psi: int = 1,
    policy: BytePolicy = SGD,
    **options: Any,
) -> Run:
    """A run of the samples beside the single device."""
    options |= {"policy": policy, "arithmetic": notes, "model": Samples(steps, notes)}
    return simulate(schedule, MESH, psi, steps=len(steps), micro_steps=len(steps[0]), **options)


def fault(schedule: Schedule, policy: BytePolicy = SGD) -> str:
    """The rule by which the verdict rejects a schedule; nothing if it accepts it."""
    return check(schedule, MESH, policy=policy).rule


def is_right(
    schedule: Schedule, steps: Steps, notes: Noted, psi: int = 1, policy: BytePolicy = SGD
) -> bool:
    """Whether a schedule without a fault matches, and is accepted."""
    return run(schedule, steps, notes, psi, policy).matches and not fault(schedule, policy)


def before_update(schedule: Schedule, *ops: Op) -> Schedule:
    """The schedule with more operations just before it updates."""
    at = [o.kind for o in schedule.finish].index(Kind.UPDATE)
    return replace(schedule, finish=(*schedule.finish[:at], *ops, *schedule.finish[at:]))


def scaled(factor: Fraction | int) -> Schedule:
    """Data parallelism that multiplies the sum by a number before it is applied."""
    by = Monomial(Fraction(factor))
    return before_update(DP, Op(Kind.SCALE, Phase.UPDATE, Buffer.GRADIENTS, by=by))


def early_view(*within: str) -> Schedule:
    """Data parallelism that reads a view of the parameters, taken before the update, then again, but
    only `within` the own slice: of one element, the second device reads what was before the update.
    """
    parameters, view = Buffer.PARAMETERS, Buffer.VIEW
    ops = (replace(o, source=view) if o.source is parameters else o for o in DP.micro_step)
    again, early = (Op(Kind.KEEP, Phase.UPDATE, parameters, view, within=axes) for axes in (within, ()))
    return replace(before_update(DP, early), micro_step=(again, *ops))
