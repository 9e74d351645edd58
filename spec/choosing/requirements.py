"""What the modes of a realisable placement are: constraints over four modes. (Claim P1)

They are written once, for a logic that is given: of truths, or of terms over mode variables.
"""

from __future__ import annotations

from typing import Any, Protocol

from spec.choosing.regimes import FourModes, Kept, Regime
from spec.models.states import State
from spec.plans.modes import GATHERED, M, Mode, O, R, S

THETA, OMEGA, GRADS, ACTS = State
WHOLE_VIEW = "parameters are whole when they are read"
OWN_SAMPLES = "each device works on samples of its own"
STATE_RESTS = "optimizer state rests, if there is any"
WHERE_THEY_REST = "without a copy of the weights, they are updated where they rest"
SLICES = "gradients rest as S only where slices are updated"
GRADIENTS_REST = "with several micro-steps, gradients rest"


class Logic(Protocol):
    """Conditions, and how they combine."""

    def among(self, state: State, *modes: Mode) -> Any:
        """The state's mode is one of these."""

    def either(self, *conditions: Any) -> Any:
        """One of them holds."""

    def both(self, *conditions: Any) -> Any:
        """All of them hold."""

    def no(self, condition: Any) -> Any:
        """It does not hold."""


class Truths:
    """Conditions on four modes that are given, as truths."""

    def __init__(self, modes: FourModes) -> None:
        self.modes = dict(zip(State, modes, strict=True))

    def among(self, state: State, *modes: Mode) -> bool:
        return self.modes[state] in modes

    def either(self, *conditions: bool) -> bool:
        return any(conditions)

    def both(self, *conditions: bool) -> bool:
        return all(conditions)

    def no(self, condition: bool) -> bool:
        return not condition


def requirements(regime: Regime, logic: Logic) -> dict[str, Any]:
    """All that a placement's modes must meet, by name; activations M are made again, O on the host."""
    among, either, both = logic.among, logic.either, logic.both
    sliced_view = both(among(OMEGA, GATHERED), among(THETA, GATHERED, M))
    slices_updated = either(among(OMEGA, S), sliced_view)
    found = {OWN_SAMPLES: among(ACTS, S, M, O)}
    match regime.optimizer:
        case Kept.MASTER_COPY:
            found[WHOLE_VIEW] = among(THETA, R, GATHERED, M, O)
            found[STATE_RESTS] = among(OMEGA, R, S, GATHERED, O)
        case Kept.MOMENTS:
            whole = both(among(THETA, R), among(OMEGA, R, S, GATHERED))
            beside = both(among(THETA, GATHERED), among(OMEGA, S, GATHERED))
            on_host = both(among(THETA, O), among(OMEGA, O))
            found[WHERE_THEY_REST] = either(whole, beside, on_host)
        case Kept.NO_STATE:
            on_device = both(among(THETA, R, GATHERED), among(OMEGA, R, S, GATHERED, M))
            anywhere = both(among(OMEGA, M), among(GRADS, R, M, O))  # no slices say where
            on_host = both(among(THETA, O), either(among(OMEGA, O), anywhere))
            found[WHERE_THEY_REST] = either(on_device, on_host)
            slices_updated = either(among(THETA, GATHERED), both(among(THETA, R), among(OMEGA, S, M)))
    found[SLICES] = either(among(GRADS, R, GATHERED, M, O), slices_updated)
    if regime.several:
        found[GRADIENTS_REST] = among(GRADS, R, S, GATHERED, O)
    return found


def is_realisable(modes: FourModes, regime: Regime) -> bool:
    """Whether four modes meet them."""
    return all(requirements(regime, Truths(modes)).values())
