"""Plans side by side: what each needs, what it moves along each axis, and whether it is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psem_model.figures import quantity, table
from psem_model.model_predict import ModelPlan
from psem_model.predict import SMALL, Costs
from psem_model.product_check import CheckedProduct
from psem_model.show import in_bytes
from spec.arithmetic import Number
from spec.mesh import group_size
from spec.pipeline import bubble_of_span
from spec.states import State

STATES = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)


@dataclass(frozen=True)
class Compared:
    """One plan's figures, in bytes per device, of its fullest and of its busiest stage."""

    text: str
    devices: int
    samples: Number | None  # of a step, on all devices; none if it was not said
    accepted: bool | None  # none: it was not looked at
    bytes: Mapping[str, Number]
    sent: Mapping[str, Number]  # by axes
    idle: Number  # of the whole step

    def json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "strategy": self.text,
            "devices": self.devices,
            "samples": self.samples,
            "accepted": self.accepted,
            "memory": {name: quantity(size) for name, size in self.bytes.items()},
            "sent": {axes: quantity(size) for axes, size in self.sent.items()},
            "idle": quantity(self.idle),
        }


def of_model(text: str, plan: ModelPlan, checked: CheckedProduct) -> Compared:
    """A plan for a model."""
    fullest, busiest = plan.fullest, plan.busiest
    sizes = {state.value: fullest.resting[state] for state in STATES}
    sizes |= {"activations": fullest.activations, "peak": fullest.peak, "host": fullest.host}
    sent: dict[str, Number] = {}
    for moved in busiest.moved:
        axes = " x ".join(moved.axes) or "host link"
        sent[axes] = sent.get(axes, 0) + moved.bytes
    devices = group_size(plan.mesh, plan.mesh)
    cut = [*plan.product.states.axes, *(axis.name for axis in plan.axes if axis.stream == "b")]
    samples = plan.micro_batch * plan.pipe.micro_batches * group_size(plan.mesh, cut)
    return Compared(text, devices, samples, checked.accepted, sizes, sent, bubble_of_span(plan.pipe))


def of_states(text: str, costs: Costs, accepted: bool) -> Compared:
    """A placement of the training states."""
    sizes = {state.value: costs.resting[state] for state in STATES}
    sizes |= {"peak": costs.peak, "host": costs.host}
    sent: dict[str, Number] = {}
    for move in costs.moves:
        if move.bytes:
            axes = " x ".join(move.op.axes) or "host link"
            sent[axes] = sent.get(axes, 0) + move.bytes
    devices = group_size(costs.sizes.mesh, costs.sizes.mesh)
    return Compared(text, devices, None, accepted, sizes, sent, 0)


def lines(plans: list[Compared]) -> list[str]:
    """The plans as columns."""
    axes = dict.fromkeys(name for plan in plans for name in plan.sent)
    names = dict.fromkeys(name for plan in plans for name in plan.bytes)
    kept = [name for name in names if any(plan.bytes.get(name) for plan in plans)]

    def row(name: str, values: list[str]) -> tuple[str, ...]:
        return (name, *values)

    def size(value: Number | None) -> str:
        return "" if not value else in_bytes(value)[0]

    rows = [row("", [plan.text for plan in plans])]
    rows.append(row("devices", [f"{plan.devices:,}" for plan in plans]))
    if any(plan.samples for plan in plans):
        rows.append(row("samples of a step", [f"{plan.samples:,}" for plan in plans]))
    rows.append(row("verdict", [_verdict(plan.accepted) for plan in plans]))
    rows += [row(name, [size(plan.bytes.get(name)) for plan in plans]) for name in kept]
    rows += [row(f"sent over {name}", [size(plan.sent.get(name)) for plan in plans]) for name in axes]
    rows.append(row("sent, all", [size(_all(plan)) or "0 GB" for plan in plans]))
    words = []
    if any(plan.idle for plan in plans):
        rows.append(row("idle, of the step", [f"{float(plan.idle):.3g}" for plan in plans]))
        words = ["  idle time is as if all stages of a pipeline took equally long"]
    return table(rows, right=tuple(range(1, len(plans) + 1))) + words


def _all(plan: Compared) -> Number:
    return sum(size for axes, size in plan.sent.items() if axes != "host link")


def _verdict(accepted: bool | None) -> str:
    return {True: "accepted", False: "rejected", None: ""}[accepted]


def small(sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes that show all there is to see of these."""
    return {axis: min(size, SMALL) for axis, size in sizes.items()}
