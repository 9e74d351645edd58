"""The memory of a device's host by a profile: what is page-locked, and what a process begins with."""

from __future__ import annotations

from psem_model.predict.plan import StageCosts
from spec.models.values import FULL
from spec.numbers.arithmetic import Number


def pinned(stage: StageCosts) -> Number:
    """Bytes that are page-locked, of states that are on the host between steps."""
    states = stage.plan.profile.pinned
    return sum(group.costs.hosted.get(state, 0) for group in stage.groups for state in states)


def at_start(stage: StageCosts) -> Number:
    """Bytes of the model that each process makes before anything is placed."""
    return FULL * stage.parameters if stage.plan.profile.starts_whole else 0
