"""Gradient integrity and state consistency of a placement: what a device has, by its modes. (Claim P1)

Each element has an owner. What rests as R is on every device, as O on every device's host, as S or S*
with the owner alone, as M nowhere. For a use S* is gathered from the owners and O fetched; S is used
where it rests, and M is made again: parameters from the optimizer's copy of them, gradients by every
backward. So it is of any number of devices: all that counts of a device is what it owns.
"""

from __future__ import annotations

from typing import Any

from spec.choosing.regimes import Kept, Regime
from spec.choosing.requirements import ACTS, GRADS, OMEGA, THETA, Logic
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

    def used(state: State) -> Any:
        return either(among(state, R, GATHERED, O), both(among(state, S), own))

    anywhere, on_host = among(OMEGA, M), among(THETA, O)
    updates_there = either(among(OMEGA, O), both(anywhere, on_host))
    keeps_none = no(_keeps(regime, logic, own))
    # without a copy of the weights an update is of those that rest, on their side
    same_side = either(both(updates_there, on_host), no(either(updates_there, on_host)))
    current = [] if stateless else [used(OMEGA)]
    current += [] if copied else [_rests(logic, THETA, own), same_side]
    view = [used(THETA), *([both(among(THETA, M), no(anywhere))] if copied else [])]
    # what is not kept until the step ends is one micro-step's
    gradient = [used(GRADS), *([] if regime.several else [among(GRADS, M)])]
    found = {
        INTEGRITY: either(keeps_none, both(among(ACTS, S, M, O), either(*gradient))),
        FRESH: either(*view),
        CURRENT: either(keeps_none, both(*current)),
    }
    # slices that are updated get from host to host by way of the optimizer's copy
    return found if copied else found | {AGREED: no(both(_of_slices(logic), on_host))}


def _rests(logic: Logic, state: State, own: Any) -> Any:
    """Whether a state rests on a device, or its host."""
    return logic.either(logic.among(state, R, O), logic.both(logic.among(state, S, GATHERED), own))


def _of_slices(logic: Logic) -> Any:
    """Whether updates are of slices: without optimizer state, where gradients are."""
    anywhere = logic.among(OMEGA, M)
    return logic.either(logic.among(OMEGA, S), logic.both(anywhere, logic.among(GRADS, S, GATHERED)))


def _keeps(regime: Regime, logic: Logic, own: Any) -> Any:
    """Whether a device keeps what its own update leaves: where it has room; of slices, its own.

    `own`: whether it owns the element. Parameters that rest whole get the owners' slices.
    """
    either, both, no = logic.either, logic.both, logic.no
    weights = both(_rests(logic, THETA, own), either(no(_of_slices(logic)), own))
    return weights if regime.optimizer is Kept.NO_STATE else either(weights, _rests(logic, OMEGA, own))
