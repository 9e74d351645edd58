"""Gradient integrity and state consistency of a placement: what a device has, by its modes. (Claim P1)

Each element has an owner. What rests as R is on every device, as O on every device's host, as S or S*
with the owner alone, as M nowhere. For a use S* is gathered from the owners and O fetched; S is used
where it rests, and M is made again: parameters from the optimizer's copy of them, gradients by every
backward. So it is of any number of devices: all that counts of a device is what it owns.
"""

from __future__ import annotations

from typing import Any

from spec.choosing.requirements import ACTS, GRADS, OMEGA, THETA, Logic
from spec.choosing.space import Kept, Regime
from spec.models.states import State
from spec.plans.modes import GATHERED, M, O, R, S

INTEGRITY = "gradient integrity: what is kept is made of every sample's gradient, once"
FRESH = "state consistency: forward and backward read all parameters"
CURRENT = "state consistency: what is kept is made of what was current, where the update runs"
AGREED = "state consistency: parameters are copied from those that were updated"


def both_halves(regime: Regime, logic: Logic, own: Any) -> dict[str, Any]:
    """Gradient integrity and state consistency on a device: conditions on four modes, by name.

    `own`: whether it owns the element. They must hold on the owner and on every other device.
    """
    among, either, both, no = logic.among, logic.either, logic.both, logic.no
    copied, stateless = (regime.optimizer is of for of in (Kept.MASTER_COPY, Kept.NO_STATE))

    def rests(state: State) -> Any:
        return either(among(state, R, O), both(among(state, S, GATHERED), own))

    def used(state: State) -> Any:
        return either(among(state, R, GATHERED, O), both(among(state, S), own))

    # where an update runs, and whether of slices: without optimizer state, where the others rest
    anywhere, on_host = among(OMEGA, M), among(THETA, O)
    of_slices = either(among(OMEGA, S), both(anywhere, among(GRADS, S, GATHERED)))
    updates_there = either(among(OMEGA, O), both(anywhere, on_host))
    # a device keeps what its own update leaves; parameters that rest whole get the owners' slices
    kept = both(rests(THETA), either(no(of_slices), own))
    kept = kept if stateless else either(kept, rests(OMEGA))
    # without a copy of the weights an update is of those that rest, on their side
    same_side = either(both(updates_there, on_host), no(either(updates_there, on_host)))
    current = [] if stateless else [used(OMEGA)]
    current += [] if copied else [rests(THETA), same_side]
    view = [used(THETA), *([both(among(THETA, M), no(anywhere))] if copied else [])]
    # what is not kept until the step ends is one micro-step's
    gradient = [used(GRADS), *([] if regime.several else [among(GRADS, M)])]
    found = {
        INTEGRITY: either(no(kept), both(among(ACTS, S, M, O), either(*gradient))),
        FRESH: either(*view),
        CURRENT: either(no(kept), both(*current)),
    }
    # slices that are updated get from host to host by way of the optimizer's copy
    return found if copied else found | {AGREED: no(both(of_slices, on_host))}
