"""Placements of the training states as a user types them, state by state."""

from __future__ import annotations

from psem_model.reading.words import MOST_SHOWN, is_axis
from psem_model.text.errors import BadInput, choose, listed, refused, shortened
from spec.devices.mesh import HOST
from spec.models.states import State
from spec.plans.modes import Mode, O
from spec.plans.placement import BATCH, Placement, place_states


def symbols_of(placement: Placement, state: State, named: bool = True) -> str:
    """The mode symbols of one state, as they are typed; `named`: with axes, if there are several."""
    axes = [placement.mode(state, axis) for axis in placement.axes]
    modes = [mode.value for mode in axes if mode is not None]
    if named and len(placement.axes) > 1:
        modes = [f"{a}:{m}" for a, m in zip(placement.axes, modes, strict=True)]
    host = "+O" if placement.mode(state, HOST) is Mode.OFFLOADED else ""
    return "/".join(modes) + host


def modes_of(placement: Placement, state: State, named: bool = True) -> str:
    """The same, and whether what is gathered is held from forward to backward."""
    held = placement.hold and bool(placement.gathered_axes(state))
    return symbols_of(placement, state, named) + ", held" * held


def spelled(placed: Placement) -> str:
    """A placement as it is typed."""
    modes = ",".join(f"{state.value}={symbols_of(placed, state)}" for state in State)
    return modes + (" --hold" if placed.hold else "")


def placement(given: str, hold: bool) -> Placement:
    """A placement from "parameters=S*,optimizer=S,gradients=S,activations=S".

    A mode may be followed by +O (kept on the host), or be given for each of several axes, as in
    parameters=replica:R/shard:S*.
    """
    modes: dict[State, dict[str, Mode]] = {}
    states = {state.value: state for state in State}
    for part in given.split(","):
        name, equals, symbols = part.strip().partition("=")
        if not equals:
            raise refused("--placement", part, "state=mode, such as optimizer=S")
        state = states[choose("--placement, state", name.strip(), states)]
        if state in modes:
            raise BadInput(f"--placement: {name} is given twice; expected each state once")
        modes[state] = _modes(symbols.strip())
    for state in State:
        if state not in modes:
            raise BadInput(
                f"--placement: {state.value} is missing; expected a mode for each of "
                f"{', '.join(states)}"
            )
    axes = tuple(a for a in modes[State.PARAMETERS] if a != HOST)
    for state, named in modes.items():
        others = tuple(a for a in named if a != HOST)
        if sorted(others) != sorted(axes):
            raise BadInput(
                f"--placement: {state.value} has axes {listed(others, MOST_SHOWN)}; expected those of "
                f"parameters: {listed(axes, MOST_SHOWN)}"
            )
    return place_states(axes, modes, hold)


def _modes(symbols: str) -> dict[str, Mode]:
    main, plus, host = symbols.partition("+")
    valid = {mode.value: mode for mode in Mode}
    found: dict[str, Mode] = {}
    for part in main.split("/"):
        axis, colon, symbol = part.partition(":")
        axis, symbol = (axis, symbol) if colon else (BATCH, axis)
        if not is_axis(axis):
            raise refused("--placement, axis", axis, "a name such as shard")
        if axis in found:
            raise BadInput(
                f"--placement: axis {shortened(axis)} is given twice; expected each axis once"
            )
        found[axis] = valid[choose("--placement, mode", symbol, valid)]
    if plus:
        if host != O.value:
            raise refused("--placement, host", host, "O (kept on the host)")
        found[HOST] = O
    return found
