"""What is counted of a simulated run, beside what is predicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from psem_model.measure.measured import Figure
from psem_model.predict.plan import StageCosts
from psem_model.simulator import Run
from psem_model.simulator.distributed import DistributedModel
from psem_model.simulator.network import Network, OpKey
from spec.costs.memory import MODEL_STATES
from spec.costs.model_costs import is_at_most
from spec.devices.mesh import along_devices
from spec.language.schedule import Schedule
from spec.models.states import State
from spec.numbers.arithmetic import Number

Axes = tuple[str, ...]
Along = tuple[Axes, bool]  # what is sent along some axes; whether that is predicted at most


def of_schedule(run: Run, costs: StageCosts) -> Iterator[Figure]:
    """Of a schedule's run, per device: its passes go unit by unit, so that the peak is counted too."""
    (group,) = costs.groups
    yield from _at_rest(run.resting, costs)
    total = sum(run.resting.values())
    yield Figure("resting", "all at rest, bytes", total, group.costs.total)
    yield Figure("peak", "peak, bytes", total + run.passing, group.costs.peak)
    if group.buckets:
        yield Figure("buckets", "copies of gradients, bytes", run.buckets, group.buckets)
    yield Figure("host", "on the host, bytes", run.host, costs.host)
    yield from _in_all(run.sent_elements, run.sent, run.host_link, costs)


def of_stage(run: DistributedModel, costs: StageCosts) -> Iterator[Figure]:
    """Of a stage of a model, per device."""
    stage = run.stages[costs.number]
    elements = sum(placed.elements for placed in stage.placed)
    yield Figure("computes_with", "parameters computed with, elements", elements, costs.parameters)
    yield from _at_rest(stage.resting(), costs)
    hosted = stage.resting(host=True)
    on_host = sum(hosted.values()) + stage.host.fullest
    yield Figure("host", "on the host, bytes", on_host, costs.host)
    profile = costs.plan.profile
    if profile.pinned:
        pinned = sum(hosted[state] for state in profile.pinned)
        yield Figure("host_pinned", "page-locked on the host, bytes", pinned, costs.host_pinned)
    if profile.starts_whole:
        at_start = sum(placed.in_full for placed in stage.placed)
        words = "on the host at first, bytes"
        yield Figure("host_at_start", words, at_start, costs.host_at_start)
    words = "activations at their fullest, bytes"
    passing = costs.transient["offloaded"]
    fullest = stage.room.fullest + stage.numbers.fullest
    yield Figure("activations", words, fullest, costs.activations + passing)
    if profile.step_counts:
        counts = sum(placed.step_counts.nbytes for placed in stage.placed)
        yield Figure("step_counts", "counts of steps, bytes", counts, costs.step_counts)
    if costs.buckets:
        buckets = sum(placed.run.bucket_bytes for placed in stage.placed)
        yield Figure("buckets", "copies of gradients, bytes", buckets, costs.buckets)
    if stage.placeholders:
        words = "placeholders at most, bytes"
        size = stage.placeholders.fullest * costs.plan.policy.computed
        needed = costs.placeholders.staying + costs.placeholders.passing
        yield Figure("placeholders", words, size, needed)
    if copied := costs.transient["copied"]:
        most = max(placed.run.store.most_copied for placed in stage.placed)
        most = max(most, sum(placed.gathered_in for placed in stage.placed))
        yield Figure("copied", "copies of gradients to be summed, at most, bytes", most, copied)
    words = "gathered or fresh at most, bytes"
    passing = sum(placed.most_passing for placed in stage.placed) - stage.never_together
    passing += max((placed.added_alone for placed in stage.placed), default=0)
    yield Figure("passing", words, passing, costs.transient["states"] + costs.waiting)
    fullest = max(block.fullest for chunk in stage.chunks for block in chunk)
    words = "computed with at the fullest, bytes"
    yield Figure("computing", words, fullest, costs.transient["computing"])
    has, has_bytes, needs, needs_bytes = (Counter[Along]() for _ in range(4))
    for along, sent, size in _sent(run, costs):
        has[along] += sent
        has_bytes[along] += size
    for moved in costs.moved:
        if not moved.to_host:
            needs[moved.axes, moved.at_most] += moved.elements
            needs_bytes[moved.axes, moved.at_most] += moved.bytes
    every = dict.fromkeys([*needs, *has])
    for along in every:
        axes, at_most = along
        words = f"along {' x '.join(axes)}{' for experts' * at_most}"
        said = f"{words}, but for experts," if (axes, True) in every and not at_most else words
        sizes = has[along], needs[along], at_most
        yield Figure(f"sent {words}", f"sent {said} per step, elements", *sizes)
        sizes = has_bytes[along], needs_bytes[along], at_most
        yield Figure(f"bytes {words}", f"sent {said} per step, bytes", *sizes)
    networks = (stage.devices.network, *(placed.run.network for placed in stage.placed))
    over_host_link = sum(network.host_bytes for network in networks)
    at_most = any(at_most for _, at_most in every)
    yield from _in_all(has.total(), has_bytes.total(), over_host_link, costs, at_most)


def _at_rest(resting: Mapping[State, Number], costs: StageCosts) -> Iterator[Figure]:
    for state in MODEL_STATES:
        words = f"{state.value} at rest, bytes"
        yield Figure(state.value, words, resting[state], costs.resting[state])


def _in_all(
    elements: Number, size: Number, host_link: Number, costs: StageCosts, at_most: bool = False
) -> Iterator[Figure]:
    yield Figure("elements", "sent per step, elements", elements, costs.elements, at_most)
    yield Figure("bytes", "sent per step, bytes", size, costs.bytes, at_most)
    yield Figure("host_bytes", "over the host link, bytes", host_link, costs.host_bytes)


def _sent(run: DistributedModel, costs: StageCosts) -> Iterator[tuple[Along, int, Number]]:
    """What the device of a stage that sends most sends: its axes, elements and bytes."""
    stage, number = run.stages[costs.number], costs.number
    here = slice(number * run.inner, (number + 1) * run.inner)  # among the devices of all stages
    of_parts = {block.name: block.program for chunk in stage.chunks for block in chunk}

    def of_program(op: OpKey) -> Along:
        name, phase = op[0].split()
        program, plan = of_parts[name], costs.plan
        line = getattr(program, phase)[op[1]]
        return program.axes_of(line), is_at_most(line, program, plan.indices, plan.mesh)

    def of_stages(_: OpKey) -> Along:
        return (costs.plan.step.pipe or "",), False

    networks: list[tuple[Network, slice, Callable[[OpKey], Along]]] = [
        (stage.devices.network, slice(None), of_program),
        *((p.run.network, p.rows(number), _axes_in(p.placing.schedule)) for p in stage.placed),
        *(
            (network, here, _axes_in(group[0].placing.schedule))
            for group, network in zip(run.ends.groups, run.ends.networks, strict=True)
        ),
        (run.boundary, here, of_stages),
    ]
    for network, devices, along_of in networks:
        for op, elements in network.sent.items():
            most = int(elements[devices].max())
            yield along_of(op), most, most * network.widths[op]


def _axes_in(schedule: Schedule) -> Callable[[OpKey], Along]:
    """Of an operation of a schedule."""

    def along_of(op: OpKey) -> Along:
        part, number = op
        ops: tuple[Any, ...] = getattr(schedule, part)
        return along_devices(ops[number].axes), False

    return along_of
