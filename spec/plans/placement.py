"""A placement: for each state and each axis, the mode. This is all that a user writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from spec.devices.mesh import HOST, Axes
from spec.language.schedule import Rest
from spec.models.states import State
from spec.plans.modes import GATHERED, M, Mode, O, R, is_sharded

AxisModes = tuple[tuple[str, Mode], ...]  # (axis, mode) for one state


@dataclass(frozen=True)
class Placement:
    """The modes of the four states along batch axes, and the host axis where one is offloaded.

    `hold`: gathered parameters stay from forward to backward (FSDP's reshard_after_forward=False).
    `each`: gradients are summed along all axes in every micro-step (DDP without no_sync).
    `summed_first`: along these axes they are summed in every micro-step, before they are along others.
    `summed_again`: along these, if states are not cut along them, they stay terms, which each use by
    the optimizer sums; it has so many `uses` of a gradient.
    `waits`: what is summed first is so when all micro-steps are done.
    `sums_whole`: gradients are summed whole along axes that do not cut parameters, whatever slices of
    them rest, or an update reads.
    `stays`: views that backward has read stay until a forward has, or gradients are reduced.
    `whole`: along these every device has all samples, and a gradient comes out whole on each.
    """

    axes: tuple[str, ...]
    modes: tuple[tuple[State, AxisModes], ...]
    hold: bool
    each: bool = False
    summed_first: Axes = ()
    summed_again: Axes = ()
    uses: int = 1
    waits: bool = False
    sums_whole: bool = False
    stays: bool = False
    whole: Axes = ()

    @cached_property
    def _hash(self) -> int:
        return hash(
            (
                self.axes,
                self.modes,
                self.hold,
                self.each,
                self.summed_first,
                self.summed_again,
                self.uses,
                self.waits,
                self.sums_whole,
                self.stays,
                self.whole,
            )
        )

    def __hash__(self) -> int:  # placements are looked up often
        return self._hash

    def mode(self, state: State, axis: str) -> Mode | None:
        """The mode of `state` along `axis`; None on a host axis that it does not use."""
        return dict(dict(self.modes)[state]).get(axis)

    def rest(self, state: State) -> Rest:
        """How `state` rests, over all axes together."""
        modes = dict(dict(self.modes)[state])
        return Rest(
            sharded=tuple(a for a in self.axes if is_sharded(modes[a])),
            stored=M not in modes.values(),
            host=O in modes.values(),
        )

    def gathered_axes(self, state: State) -> tuple[str, ...]:
        """The axes along which the slices of `state`, if any rest, are gathered before a use."""
        axes = self.axes if self.rest(state).stored else ()
        return tuple(a for a in axes if self.mode(state, a) is GATHERED)


def place_states(
    axes: tuple[str, ...], modes: Mapping[State, Mapping[str, Mode]], hold: bool = False
) -> Placement:
    """A placement from a mapping state -> axis -> mode. Every state needs a mode on every axis."""
    for state in State:
        missing = [a for a in axes if a not in modes.get(state, {})]
        if missing:
            raise ValueError(f"{state.value} has no mode on axis {missing[0]}")
    ordered = tuple((state, tuple(sorted(modes[state].items()))) for state in State)
    return Placement(axes, ordered, hold)


def gradients_whole(placed: Placement) -> Placement:
    """The same, with gradients whole along all axes: they are summed when all micro-steps are done."""
    modes = {state: dict(found) for state, found in placed.modes}
    modes[State.GRADIENTS] = dict.fromkeys(modes[State.GRADIENTS], R)
    return replace(place_states(placed.axes, modes, placed.hold), whole=placed.whole)


BATCH = "batch"


def on_batch(
    parameters: str, optimizer: str, gradients: str, activations: str = "S", *, hold: bool = False
) -> Placement:
    """A placement on one batch axis, from mode symbols; "S+O" is S on the axis, kept on the host."""
    symbols = dict(zip(State, (parameters, optimizer, gradients, activations), strict=True))
    return place_states((BATCH,), {s: parse_modes(text, BATCH) for s, text in symbols.items()}, hold)


def parse_modes(symbols: str, axis: str) -> dict[str, Mode]:
    """Modes of one state from "MODE" or "MODE+O". Raises ValueError at an unknown symbol."""
    first, _, host = symbols.partition("+")
    modes = {axis: Mode(first)}
    if host:
        modes[HOST] = Mode(host)
        if modes[HOST] is not O:
            raise ValueError(f"{host!r} is not a mode of the host axis")
    return modes
