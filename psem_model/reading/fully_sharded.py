"""Fully sharded strategies with the options that FSDP has: `hsdp-hold`, `fsdp-offload` and so on."""

from __future__ import annotations

from dataclasses import replace

from spec.costs.memory import MODEL_STATES
from spec.devices.mesh import HOST
from spec.plans import compose
from spec.plans.compose import Factor
from spec.plans.modes import O
from spec.plans.placement import place_states
from spec.plans.strategies import STRATEGY_MEANING

HOLD, OFFLOAD = "-hold", "-offload"
ON_HOST = "states in host memory"
HELD = "parameters held from forward to backward"
# each by the strategy that it is, whether it holds more than that, and whether states are on the host
OPTIONS = {
    f"hsdp{HOLD}": ("hsdp", True, False),
    **{f"{name}{OFFLOAD}": (name, False, True) for name in ("zero3", "fsdp", "hsdp")},
    f"fsdp{HOLD}{OFFLOAD}": (f"fsdp{HOLD}", False, True),
    f"hsdp{HOLD}{OFFLOAD}": ("hsdp", True, True),
}
FULLY_SHARDED = {
    name: ", ".join((STRATEGY_MEANING[of], *[HELD] * holds, *[ON_HOST] * offloads))
    for name, (of, holds, offloads) in OPTIONS.items()
}


def factor(name: str, *axes: str) -> Factor:
    """A named strategy on these axes, or on axes of its usual names. Raises KeyError, ValueError."""
    if name not in OPTIONS:
        return compose.factor(name, *axes)
    of, holds, offloads = OPTIONS[name]
    found = compose.factor(of, *axes)
    if found.states is None:
        raise ValueError(f"{of} places no states")
    modes = {state: dict(each) for state, each in found.states.modes}
    for state in MODEL_STATES if offloads else ():
        modes[state][HOST] = O
    return replace(found, name=name, states=place_states(found.axes, modes, holds or found.states.hold))
