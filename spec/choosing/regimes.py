"""Regimes: policies and micro-steps in which the same placements of a batch axis are realisable."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache

from spec.models.states import POLICIES, BytePolicy
from spec.plans.modes import Mode
from spec.plans.placement import Placement, on_batch

FourModes = tuple[Mode, ...]  # of parameters, optimizer state, gradients and activations


class Kept(Enum):
    """What an optimizer's state has in it; it decides which placements are realisable."""

    MASTER_COPY = "a copy of the weights"
    MOMENTS = "no copy of the weights"
    NO_STATE = "nothing"


@dataclass(frozen=True)
class Regime:
    """Policies and micro-steps that realise the same placements."""

    optimizer: Kept
    several: bool  # micro-steps

    @property
    def policy(self) -> BytePolicy:
        """One of its byte policies."""
        names = {Kept.MASTER_COPY: "mixed-adam", Kept.MOMENTS: "fp32-adam", Kept.NO_STATE: "fp32-sgd"}
        return POLICIES[names[self.optimizer]]


REGIMES = tuple(Regime(kept, several) for kept in Kept for several in (False, True))


def regime_of(policy: BytePolicy, micro_steps: int) -> Regime:
    """The regime of a policy and a number of micro-steps."""
    kept = Kept.NO_STATE if policy.k == 0 else Kept.MASTER_COPY if policy.master else Kept.MOMENTS
    return Regime(kept, micro_steps > 1)


@cache
def placement_of(modes: FourModes) -> Placement:
    """The placement that four modes describe."""
    theta, omega, grads, acts = (mode.value for mode in modes)
    return on_batch(theta, omega, grads, acts)
