"""Predictions: what a placement needs and moves, in exact numbers or over whole arrays.

Everything is evaluated by the specification's own functions; nothing here is a formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psem_model.check.placements import refused
from psem_model.text.errors import or_nearest, quoted
from spec.costs.communication import Transfer, added_up, totals, transfers
from spec.costs.memory import MODEL_STATES, Sizes, peak, resting
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Schedule
from spec.models.states import MIXED_ADAM, BytePolicy, State
from spec.numbers.arithmetic import EXACT, Arithmetic, Exact, Number
from spec.plans.placement import Placement
from spec.plans.strategies import STRATEGIES

if TYPE_CHECKING:
    import numpy as np


LARGEST = 2**63  # what a number of an array is below


@dataclass(frozen=True)
class Prediction:
    """Per device: bytes that rest, peak and are on the host; what each operation moves per step."""

    schedule: Schedule
    sizes: Sizes
    micro_steps: Number
    resting: Mapping[State, Number]  # bytes on the device between steps
    hosted: Mapping[State, Number]  # bytes in the host's memory between steps
    peak: Number  # bytes on the device at the fullest moment of a step
    moves: list[Transfer]
    elements: Number  # elements sent to other devices per step
    bytes: Number  # bytes sent to other devices per step
    host_bytes: Number  # bytes over the host link per step, both ways

    @property
    def host(self) -> Number:
        """Bytes of all model states in the host's memory between steps."""
        parameters, optimizer, gradients = self.hosted.values()
        return parameters + optimizer + gradients

    @property
    def total(self) -> Number:
        """Bytes of all model states between steps."""
        parameters, optimizer, gradients = self.resting.values()
        return parameters + optimizer + gradients


def predict(
    strategy: str | Placement,
    psi: Number,
    devices: int | Mapping[str, int],
    policy: BytePolicy = MIXED_ADAM,
    micro_steps: Number = 1,
    unit: Number | None = None,
    arithmetic: Arithmetic = EXACT,
) -> Prediction:
    """What a strategy, or a placement, needs and moves on `devices`, or on a mesh by its axes.

    `psi` parameters are gathered and reduced in units of `unit` (default: one unit of all). Bytes and
    elements are per device; communication is per step of `micro_steps` micro-steps. Exact numbers.
    Raises KeyError for an unknown strategy, ValueError for sizes that are not whole numbers from 1 on,
    for one number where there are several axes and for negative bytes, and NotRealisable for a
    placement that cannot be right.
    """
    if isinstance(strategy, str) and strategy not in STRATEGIES:
        known = f"expected one of {', '.join(STRATEGIES)}{or_nearest(strategy, STRATEGIES)}"
        raise KeyError(f"strategy: given {quoted(strategy)}; {known}")
    placement = STRATEGIES[strategy] if isinstance(strategy, str) else strategy
    if not isinstance(devices, int | Mapping):
        raise ValueError(f"devices: given {devices!r}; expected a number, or the size of each axis")
    mesh = {_one_axis(placement): devices} if isinstance(devices, int) else devices
    _require_sizes(placement, psi, mesh, policy, micro_steps, unit)
    unit = None if unit is None else min(unit, psi)
    schedule = schedule_of(placement)
    no = refused(schedule, mesh, micro_steps, policy)
    if no:
        raise no
    return predict_schedule(schedule, Sizes(psi, mesh, policy, unit, arithmetic), micro_steps)


def _one_axis(placement: Placement) -> str:
    """The axis that one number of devices is along. Raises ValueError where there are several."""
    if len(placement.axes) > 1:
        sizes = ", ".join(f'"{axis}": 8' for axis in placement.axes)
        raise ValueError(
            f"devices: given one number for the axes {', '.join(placement.axes)}; expected the size of "
            f"each, such as {{{sizes}}}"
        )
    return placement.axes[0]


def _require_sizes(
    placement: Placement,
    psi: Number,
    mesh: Mapping[str, int],
    policy: BytePolicy,
    micro_steps: Number,
    unit: Number | None,
) -> None:
    for axis in placement.axes:
        if axis not in mesh:
            raise ValueError(f"no number of devices along {axis}: given {dict(mesh)}")
    for size in (psi, micro_steps, psi if unit is None else unit, *mesh.values()):
        if size < 1 or size != int(size):
            raise ValueError(f"expected a whole number of at least 1, given {size}")
    if policy.w <= 0 or policy.g <= 0 or policy.k < 0:
        raise ValueError(f"expected w > 0, g > 0 and K >= 0 bytes, given {policy}")


def predict_schedule(
    schedule: Schedule, sizes: Sizes, micro_steps: Number = 1, touched: Number | None = None
) -> Prediction:
    """What a schedule needs and moves, whoever wrote it and whether it is right or not.

    For any kind of number. `touched`: elements of weights whose gradients the host has whole.
    """
    sizes = replace(sizes, cut=schedule.cut)
    found = transfers(schedule, sizes, micro_steps, touched)
    rest = {state: resting(schedule, state, sizes) for state in MODEL_STATES}
    hosted = {state: resting(schedule, state, sizes, host=True) for state in MODEL_STATES}
    hosted[State.GRADIENTS] += added_up(schedule, sizes, micro_steps, touched)
    return Prediction(
        schedule,
        sizes,
        micro_steps,
        rest,
        hosted,
        peak(schedule, sizes),
        found,
        *totals(found, 0 * sizes.psi),
    )


class Arrays(Exact):
    """Whole numbers in NumPy arrays, elementwise."""

    def maximum(self, first: Any, *others: Any) -> Any:
        import numpy as np

        for other in others:
            first = np.maximum(first, other)
        return first


def predict_many(
    strategy: str | Placement,
    psi: np.ndarray[Any, Any],
    devices: np.ndarray[Any, Any],
    k: np.ndarray[Any, Any] | int = 12,
    w: int = 2,
    g: int = 2,
) -> dict[str, np.ndarray[Any, Any]]:
    """Exact predictions for arrays of Psi, N and K, elementwise: int64 arrays of one shape.

    Returns resting bytes ("resting") and elements sent per step ("elements"), per device. For
    strategies of one axis; the placement is taken to be realisable. Raises ValueError for what are no
    whole numbers from 1 on (K, w, g: from 0 on), for several axes, and where a value does not fit in
    63 bits.
    """
    import numpy as np

    placement = STRATEGIES[strategy] if isinstance(strategy, str) else strategy
    if len(placement.axes) > 1:
        raise ValueError(f"strategy: given the axes {', '.join(placement.axes)}; expected one axis")
    of = {"psi": psi, "devices": devices, "k": k, "w": w, "g": g}
    sizes = [_whole(name, numbers, int(name in ("psi", "devices"))) for name, numbers in of.items()]
    schedule = schedule_of(placement)
    found = _many(schedule, *sizes)
    psi_, devices_, *widths = (int(each.max(initial=0)) for each in sizes)
    if max(sum(widths), len(schedule.ops)) * (psi_ + devices_) >= LARGEST:  # else nothing is so large
        exact = _many(schedule, *(each.astype(object) for each in sizes))
        if any(np.max(values) >= LARGEST for values in exact.values()):
            raise ValueError("psi, devices, k: given sizes that take more than 63 bits; expected less")
    return found


def _many(schedule: Schedule, psi: Any, devices: Any, k: Any, w: Any, g: Any) -> dict[str, Any]:
    (axis,) = schedule.axes
    sizes = Sizes(psi, {axis: devices}, BytePolicy(w, g, k), None, Arrays(), schedule.cut)
    parameters, optimizer, gradients = (resting(schedule, s, sizes) for s in MODEL_STATES)
    elements, _, _ = totals(transfers(schedule, sizes), 0)
    return {"resting": parameters + optimizer + gradients, "elements": elements}


def _whole(name: str, given: Any, least: int) -> np.ndarray[Any, Any]:
    """Whole numbers of 63 bits. Raises ValueError for others, and for less than a least one."""
    import numpy as np

    found = np.asarray(given)
    if not np.issubdtype(found.dtype, np.integer):
        raise ValueError(f"{name}: given {found.dtype}; expected whole numbers, as of int64")
    if found.size and not least <= int(found.min()) <= int(found.max()) < LARGEST:
        wrong = found.min() if found.min() < least else found.max()
        raise ValueError(f"{name}: given {wrong}; expected whole numbers from {least} on, of 63 bits")
    return found.astype(np.int64)


def in_words(moves: Sequence[Transfer]) -> list[str]:
    """What each operation moves, and in which phase where two move alike."""
    said = [f"{move.op.kind.value} {move.op.state.value if move.op.state else ''}" for move in moves]
    return [
        f"{words}, {move.op.phase.value}" if said.count(words) > 1 else words
        for words, move in zip(said, moves, strict=True)
    ]
