"""The checker's verdicts on placements of a batch axis, of any number of devices: why not."""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product

from spec.checking.verdict import Verdict, check
from spec.choosing.regimes import FourModes, Regime, placement_of
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Schedule
from spec.models.states import State
from spec.numbers.any_size import Comparison, Undecided, any_size
from spec.plans.modes import Mode
from spec.plans.placement import BATCH, Placement

DEVICES = any_size("N")  # every number
LEAST = 3  # from which on a verdict is the same for all


def verdict_of(placement: Placement, regime: Regime) -> Verdict:
    """Whether a placement is accepted in a regime on LEAST or more devices, and why not."""
    return _verdict(schedule_of(placement), regime)


@lru_cache(maxsize=4096)
def _verdict(schedule: Schedule, regime: Regime) -> Verdict:
    """Of a step, which several placements may have."""
    comparison = Comparison()
    micro_steps = 2 if regime.several else 1
    found = check(schedule, {BATCH: DEVICES}, micro_steps, regime.policy, comparison)
    special = {n for few in (comparison.exempt, comparison.exceptions()) for n in few.get("N", ())}
    if not found.accepted and special - {*range(LEAST)}:
        raise Undecided(f"the verdict may be another for one of {special} devices")
    return found


@cache
def verdicts(regime: Regime) -> dict[FourModes, Verdict]:
    """The verdict on each of the 5^4 placements."""
    every = product(Mode, repeat=len(State))
    return {modes: verdict_of(placement_of(modes), regime) for modes in every}
