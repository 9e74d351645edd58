"""Plans side by side: what each needs, what it moves along each axis, and whether it is right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psem_model.figures import quantity, table, unit_of
from psem_model.model_predict import ModelPlan
from psem_model.predict import SMALL, Costs, NotRealisable
from psem_model.product_check import CheckedProduct
from spec.arithmetic import Number
from spec.mesh import group_size
from spec.pipeline import bubble_of_span
from spec.states import State

JOINT, HOST_LINK = " x ", "host link"
STATES = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)


@dataclass(frozen=True)
class Compared:
    """One plan's figures, in bytes per device, of its fullest and of its busiest stage."""

    text: str
    devices: int
    samples: Number | None  # of a step, on all devices; none if it was not said
    rejected: str  # the reason; empty if it is accepted
    bytes: Mapping[str, Number]
    sent: Mapping[str, Number]  # by axes
    idle: Number = 0  # of the whole step
    of_stages: bool = False

    def json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "strategy": self.text,
            "devices": self.devices,
            "samples": self.samples,
            "accepted": not self.rejected,
            "reason": self.rejected or None,
            "memory": {name: quantity(size) for name, size in self.bytes.items()},
            "sent": {axes: quantity(size) for axes, size in self.sent.items()},
            "idle": quantity(self.idle),
        }


def of_model(text: str, plan: ModelPlan, checked: CheckedProduct) -> Compared:
    """A plan for a model."""
    fullest, busiest = plan.fullest, plan.busiest
    sizes = {state.value: fullest.resting[state] for state in STATES}
    sizes |= {"activations": fullest.activations, "peak": fullest.peak, "host": fullest.host}
    sent = _by_axes((moved.axes, moved.bytes) for moved in busiest.moved)
    devices = group_size(plan.mesh, plan.mesh)
    samples = plan.micro_batch * plan.pipe.micro_batches * group_size(plan.mesh, plan.sample_axes)
    verdicts = (weights.checked.verdict for weights in checked.weights)
    wrong = checked.wrong or next((found.reason for found in verdicts if not found.accepted), "")
    idle, of_stages = bubble_of_span(plan.pipe), plan.product.pipe is not None
    return Compared(text, devices, samples, wrong, sizes, sent, idle, of_stages)


def of_states(text: str, costs: Costs, refused: NotRealisable | None) -> Compared:
    """A placement of the training states."""
    sizes = {state.value: costs.resting[state] for state in STATES}
    sizes |= {"peak": costs.peak, "host": costs.host}
    sent = _by_axes((move.op.axes, move.bytes) for move in costs.moves)
    devices = group_size(costs.sizes.mesh, costs.sizes.mesh)
    return Compared(text, devices, None, refused.verdict.reason if refused else "", sizes, sent)


def _by_axes(moved: Iterable[tuple[tuple[str, ...], Number]]) -> dict[str, Number]:
    """Bytes by the axes whose group they are sent in: the same group, however it is written."""
    sent: dict[str, Number] = {}
    for axes, size in moved:
        if size:
            name = JOINT.join(sorted(axes)) or HOST_LINK
            sent[name] = sent.get(name, 0) + size
    return sent


def lines(plans: list[Compared]) -> list[str]:
    """The plans as columns."""
    axes = dict.fromkeys(name for plan in plans for name in plan.sent)
    names = dict.fromkeys(name for plan in plans for name in plan.bytes)
    kept = [name for name in names if any(plan.bytes.get(name) for plan in plans)]
    unit = unit_of(size for plan in plans for size in (*plan.bytes.values(), *plan.sent.values()))

    def row(name: str, values: Iterable[str]) -> tuple[str, ...]:
        return (name, *values)

    def size(value: Number | None) -> str:
        return unit.texts(value)[0] if value else ""

    rows = [row("", (plan.text for plan in plans))]
    rows.append(row("devices", (f"{plan.devices:,}" for plan in plans)))
    if any(plan.samples for plan in plans):
        rows.append(row("samples of a step", (f"{plan.samples:,}" for plan in plans)))
    rows.append(row("verdict", ("rejected" if plan.rejected else "accepted" for plan in plans)))
    rows += [row(name, (size(plan.bytes.get(name)) for plan in plans)) for name in kept]
    rows += [row(f"sent over {name}", (size(plan.sent.get(name)) for plan in plans)) for name in axes]
    rows.append(row("sent, all", (unit.texts(_all(plan))[0] for plan in plans)))
    if any(plan.idle for plan in plans):
        rows.append(row("idle, of the step", (f"{float(plan.idle):.3g}" for plan in plans)))
    return [
        *table(rows, right=tuple(range(1, len(plans) + 1))),
        *(f"  {words}" for words in _notes(plans)),
        *(f"  rejected, {p.text}: {p.rejected}" for p in plans if p.rejected),
    ]


def _notes(plans: list[Compared]) -> Iterator[str]:
    """What the rows are of."""
    of_stages = any(plan.of_stages for plan in plans)
    fullest, busiest = (", of the fullest stage", ", of the busiest") if of_stages else ("", "")
    yield f"memory per device{fullest}; sent per device and step{busiest}"
    if any("activations" in plan.bytes for plan in plans):
        yield "peak is an upper bound: each value freed after its last use; without what kernels need"
    if any(plan.idle for plan in plans):
        yield "idle time is as if all stages of a pipeline took equally long"
    joint = next((axes for plan in plans for axes in plan.sent if JOINT in axes), None)
    if joint:
        yield f"{joint}: one group; axis by axis as much in all, and along each by their order (C6, C7)"


def _all(plan: Compared) -> Number:
    return sum(size for axes, size in plan.sent.items() if axes != HOST_LINK)


def small(sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes that show all there is to see of these."""
    return {axis: min(size, SMALL) for axis, size in sizes.items()}
