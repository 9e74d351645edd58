"""Plans side by side: what each needs, what it moves along each axis, and whether it is right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psem_model.check.products import CheckedProduct
from psem_model.predict.models import ModelPlan
from psem_model.predict.states import NO_COPY, SMALL, Costs, NotRealisable
from psem_model.text.figures import quantity, table, unit_of
from spec.arithmetic import Number
from spec.mesh import group_size
from spec.pipeline import bubble_of_span
from spec.states import State

JOINT = " x "
STATES = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)


@dataclass(frozen=True)
class Compared:
    """One plan's figures, in bytes per device, of its fullest and of its busiest stage."""

    text: str
    devices: int
    samples: Number | None  # of a step, on all devices; none if it was not said
    rejected: str  # the reason; empty if it is accepted
    bytes: Mapping[str, Number]
    sent: Mapping[str, Number]  # to other devices, by axes
    host_bytes: Number = 0  # over the host link, both ways
    for_want_of_a_copy: bool = False  # it would be accepted if the optimizer state had the weights
    idle: Number = 0  # of the whole step
    of_stages: bool = False

    @property
    def sent_all(self) -> Number:
        """To other devices, along all axes."""
        return sum(self.sent.values())

    def json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "strategy": self.text,
            "devices": self.devices,
            "samples": self.samples,
            "accepted": not self.rejected,
            "reason": self.rejected or None,
            "for_want_of_a_copy": self.for_want_of_a_copy,
            "memory": {name: quantity(size) for name, size in self.bytes.items()},
            "sent": {axes: quantity(size) for axes, size in self.sent.items()},
            "sent_all": quantity(self.sent_all),
            "host_bytes": quantity(self.host_bytes),
            "idle": quantity(self.idle),
        }


def of_model(text: str, plan: ModelPlan, checked: CheckedProduct) -> Compared:
    """A plan for a model."""
    fullest, busiest = plan.fullest, plan.busiest
    sizes = _at_rest(fullest.resting)
    sizes |= {"activations": fullest.activations, "peak": fullest.peak, "host": fullest.host}
    sent = _by_axes((moved.axes, moved.bytes) for moved in busiest.moved if not moved.to_host)
    devices = group_size(plan.mesh, plan.mesh)
    samples = plan.micro_batch * plan.pipe.micro_batches * group_size(plan.mesh, plan.sample_axes)
    rejected = [w.checked for w in checked.weights if not w.checked.verdict.accepted]
    wrong = checked.wrong or next((found.verdict.reason for found in rejected), "")
    return Compared(
        text,
        devices,
        samples,
        wrong,
        sizes,
        sent,
        busiest.host_bytes,
        not checked.wrong and any(found.for_want_of_a_copy for found in rejected[:1]),
        bubble_of_span(plan.pipe),
        plan.product.pipe is not None,
    )


def of_states(text: str, costs: Costs, refused: NotRealisable | None) -> Compared:
    """A placement of the training states."""
    sizes = _at_rest(costs.resting)
    sizes |= {"peak": costs.peak, "host": costs.host}
    sent = _by_axes((move.op.axes, move.bytes) for move in costs.moves if not move.to_host)
    devices = group_size(costs.sizes.mesh, costs.sizes.mesh)
    reason, copy = (refused.verdict.reason, refused.for_want_of_a_copy) if refused else ("", False)
    return Compared(text, devices, None, reason, sizes, sent, costs.host_bytes, copy)


def _at_rest(resting: Mapping[State, Number]) -> dict[str, Number]:
    """Bytes of each model state between steps, and of all of them."""
    sizes = {state.value: resting[state] for state in STATES}
    return {**sizes, "resting": sum(sizes.values())}


def _by_axes(moved: Iterable[tuple[tuple[str, ...], Number]]) -> dict[str, Number]:
    """Bytes by the axes whose group they are sent in: the same group, however it is written."""
    sent: dict[str, Number] = {}
    for axes, size in moved:
        if size:
            name = JOINT.join(sorted(axes))
            sent[name] = sent.get(name, 0) + size
    return sent


def lines(plans: list[Compared]) -> list[str]:
    """The plans as columns."""
    axes = dict.fromkeys(name for plan in plans for name in plan.sent)
    names = dict.fromkeys(name for plan in plans for name in plan.bytes)
    kept = [name for name in names if any(plan.bytes.get(name) for plan in plans)]
    unit = unit_of(size for p in plans for size in (*p.bytes.values(), p.sent_all, p.host_bytes))

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
    rows.append(row("sent, all", (unit.texts(plan.sent_all)[0] for plan in plans)))
    if any(plan.host_bytes for plan in plans):
        rows.append(row("over the host link", (size(plan.host_bytes) for plan in plans)))
    if any(plan.idle for plan in plans):
        rows.append(row("idle, of the step", (f"{float(plan.idle):.3g}" for plan in plans)))
    return [
        *table(rows, right=tuple(range(1, len(plans) + 1))),
        *(f"  {words}" for words in _notes(plans)),
        *(f"  rejected, {p.text}: {p.rejected}{_why(p)}" for p in plans if p.rejected),
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


def _why(plan: Compared) -> str:
    return f"; {NO_COPY}" if plan.for_want_of_a_copy else ""


def small(sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes that show all there is to see of these."""
    return {axis: min(size, SMALL) for axis, size in sizes.items()}
