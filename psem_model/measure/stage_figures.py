"""What is counted of a simulated product of strategies, beside what is predicted, stage by stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from psem_model.measure.measured import Figure
from psem_model.predict.plan import StageCosts
from psem_model.simulator.distributed import DistributedTransformer
from spec.costs.memory import MODEL_STATES, SCALAR_BYTES
from spec.devices.mesh import along_devices
from spec.language.moves import Move
from spec.numbers.arithmetic import Number


def figures(run: DistributedTransformer, costs: StageCosts) -> Iterator[Figure]:
    """What is counted of a stage, per device, and what is predicted for it."""
    stage = run.stages[costs.number]
    elements = sum(placed.elements for placed in stage.placed)
    yield Figure("computes_with", "parameters computed with, elements", elements, costs.parameters)
    resting = stage.resting()
    for state in MODEL_STATES:
        words = f"{state.value} at rest, bytes"
        yield Figure(state.value, words, resting[state], costs.resting[state])
    on_host = sum(stage.resting(host=True).values()) + stage.host.fullest
    yield Figure("host", "on the host, bytes", on_host, costs.host)
    words = "activations at their fullest, bytes"
    passing = costs.transient["offloaded"]
    fullest = stage.room.fullest + stage.numbers.fullest
    yield Figure("activations", words, fullest, costs.activations + passing)
    if costs.plan.profile.step_counts:
        counts = sum(placed.step_counts.nbytes for placed in stage.placed)
        yield Figure("step_counts", "counts of steps, bytes", counts, costs.step_counts)
    if costs.buckets:
        buckets = sum(placed.buckets for placed in stage.placed)
        yield Figure("buckets", "copies of gradients, bytes", buckets, costs.buckets)
    fullest = max(block.fullest for chunk in stage.chunks for block in chunk)
    words = "computed with at the fullest, bytes"
    yield Figure("computing", words, fullest, costs.transient["computing"])
    has, needs = sent(run, costs), Sent()
    for moved in costs.moved:
        if not moved.to_host:
            needs.elements[moved.axes] += moved.elements
            needs.bytes[moved.axes] += moved.bytes
    for axes in dict.fromkeys([*needs.elements, *has.elements]):
        along = f"along {' x '.join(axes)}"
        sizes = has.elements[axes], needs.elements[axes]
        yield Figure(f"sent {along}", f"sent {along} per step, elements", *sizes)
        sizes = has.bytes[axes], needs.bytes[axes]
        yield Figure(f"bytes {along}", f"sent {along} per step, bytes", *sizes)
    yield Figure("elements", "sent per step, elements", has.elements.total(), costs.elements)
    yield Figure("bytes", "sent per step, bytes", has.bytes.total(), costs.bytes)
    yield Figure(
        "host_bytes", "over the host link, bytes", over_host_link(run, costs), costs.host_bytes
    )


@dataclass(frozen=True)
class Sent:
    """What a device sends in a step, by the axes."""

    elements: Counter[tuple[str, ...]] = field(default_factory=Counter)
    bytes: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, axes: tuple[str, ...], elements: Number, width: Number) -> None:
        self.elements[axes] += elements
        self.bytes[axes] += elements * width


def sent(run: DistributedTransformer, costs: StageCosts) -> Sent:
    """What the device of a stage that sends most sends, as the simulator counts it."""
    stage, found = run.stages[costs.number], Sent()
    of_parts = {block.name: block.program for chunk in stage.chunks for block in chunk}
    network = stage.devices.network
    for (where, number), elements in network.sent.items():
        name, phase = where.split()
        program = of_parts[name]
        line = getattr(program, phase)[number]
        assert isinstance(line, Move)
        found.add(program.over(line), int(elements.max()), network.widths[where, number])
    for placed in stage.placed:
        own, network = placed.rows(costs.number), placed.run.network
        for (where, number), elements in network.sent.items():
            op = getattr(placed.placing.schedule, where)[number]
            found.add(op.axes, int(elements[own].max()), network.widths[where, number])
    devices = slice(costs.number * run.inner, (costs.number + 1) * run.inner)
    for group, network in zip(run.ends.groups, run.ends.networks, strict=True):
        for (where, number), elements in network.sent.items():
            op = getattr(group[0].placing.schedule, where)[number]
            found.add(along_devices(op.axes), int(elements[devices].max()), SCALAR_BYTES)
    for key, elements in run.boundary.sent.items():
        axes = (costs.plan.step.stages or "",)
        found.add(axes, int(elements[devices].max()), run.boundary.widths[key])
    return found


def over_host_link(run: DistributedTransformer, costs: StageCosts) -> Number:
    """Bytes over each device's host link in a step, both ways: of states, and of activations."""
    stage = run.stages[costs.number]
    of_states = sum(placed.run.network.host_bytes for placed in stage.placed)
    return of_states + stage.devices.network.host_bytes
