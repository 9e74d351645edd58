"""What a model on the axes of a plan holds and sends, as a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from psem_model.check.placements import require_realisable
from psem_model.predict.models import ModelPlan, Moved, StageCosts
from psem_model.predict.models_closed import forms, legend, per_token, shortest
from psem_model.predict.parts import AGAIN, BACKWARD, FORWARD, PHASES, PartCosts
from psem_model.predict.states_closed import written
from psem_model.predict.states_report import totals
from psem_model.reading.products import NAMES
from psem_model.text.figures import counted, digits, in_bytes, plain, times, unit_of
from psem_model.text.report import (
    BYTES,
    ELEMENTS,
    ITSELF,
    Axes,
    Column,
    Formula,
    Quantity,
    Report,
    Row,
    Section,
    meant,
)
from spec.arithmetic import Number
from spec.distribute import ALL, FROM_SLICES, NOTHING, PAIRS
from spec.layouts import Layout
from spec.memory import MODEL_STATES
from spec.mesh import group_size
from spec.modes import Mode
from spec.pipeline import bubble_of_ideal, bubble_of_span
from spec.transformer import EMBEDDING, HEAD, LAYER

SAYS = {FORWARD: "sent forward", BACKWARD: "sent backward", AGAIN: "sent forward again"}
MADE_AGAIN = {
    NOTHING: "nothing is made again for backward",
    PAIRS: "for backward, what attention has for each pair of tokens is made again",
    ALL: "for backward, layers are made again from what they take",
    FROM_SLICES: "for backward, layers are made again from what they take, kept in slices",
}
PEAK = "an upper bound: each value freed after its last use; without what kernels need for themselves"
ONE = {EMBEDDING: "the embedding", LAYER: "a layer", HEAD: "the head"}
IN_ALL = (Column("what"), Column("size", key=ITSELF))
RING = "cp"  # context parallelism by ring attention


def report(plan: ModelPlan) -> Report:
    """The plan's prediction beside its closed forms. Raises NotRealisable.

    `memory` is that of the stage that needs most, `communication` that of the one that sends most.
    `stages`: the first of each kind, and how many are alike; idle time is as if all took equally long.
    """
    require_realisable(plan.product.states, plan.mesh, plan.pipe.micro_batches, plan.policy)
    return _Reported(plan).report()


class _Reported:
    """A plan beside its closed forms."""

    def __init__(self, plan: ModelPlan) -> None:
        self.plan, self.forms = plan, forms(plan)
        self.written = {
            part: {
                n: per_token(f) if n == "activations" else written(shortest(f))
                for n, f in found.items()
            }
            for part, found in self.forms.items()
        }

    def report(self) -> Report:
        plan, sent = self.plan, _sent(self.plan.busiest)
        return Report(
            "predict",
            plan.text,
            (*(NAMES[f.name] for f in plan.product.factors), *_facts(plan)),
            (
                *(self._part(name) for name in plan.costs),
                *([_stages(plan), self._pipeline()] if plan.step.stages else []),
                self._memory(),
                _operations(plan),
                totals(sent, bool(plan.busiest.host_bytes)),
                meant(
                    "formulas: parameters and what is sent in elements, activations in bytes",
                    legend(plan, self.forms),
                ),
            ),
            {
                "strategy": plan.text,
                "inputs": _inputs(plan),
                "parts": {name: _part(costs) for name, costs in plan.costs.items()},
                "memory": _of_memory(plan),
                **(
                    {"pipeline": {"bubble_if": "all stages take equally long"}}
                    if plan.step.stages
                    else {}
                ),
                "communication": {"stage": plan.busiest.number, **sent},
                "checkpoints": _checkpoints(plan),
                "parameters": plan.parameters,
                "formulas": {
                    part: {name: str(form) for name, form in found.items()}
                    for part, found in self.written.items()
                },
            },
        )

    def _part(self, name: str) -> Section:
        costs, said = self.plan.costs[name], self.written[name]
        rows = [
            Row(
                (
                    "parameters",
                    "",
                    Quantity(sum(costs.parameters.values()), "", said["parameters"]),
                )
            ),
            Row(("activations", "", Quantity(costs.activations, BYTES, said["activations"]))),
        ]
        for phase in PHASES:
            sent = costs.sent(phase)
            if sent:
                counts = Counter(t.move.collective for t in costs.traffic if t.phase == phase)
                words = ", ".join(f"{n} {collective}" for collective, n in counts.items())
                rows.append(Row((SAYS[phase], words, Quantity(sent, ELEMENTS, said[phase]))))
        columns = (Column("what"), Column("by"), Column("size"))
        return Section(f"{ONE[name]}, on one device, for one micro-batch", columns, tuple(rows))

    def _pipeline(self) -> Section:
        pipe, found = self.plan.pipe, self.written["pipeline"]
        ideal, total = bubble_of_ideal(pipe), bubble_of_span(pipe)
        rows = [
            _idle("idle, of ideal time", ideal, found["bubble_of_ideal"], "bubble_of_ideal"),
            _idle("idle, of all time", total, found["bubble_of_total"], "bubble_of_total"),
        ]
        if "sent" in found:
            form = found["sent"]
            sent = Quantity(self.plan.costs[LAYER].handed_on, ELEMENTS, form)
            words = f"{plain(sent.value)} elements, each way, of a micro-batch"
            cells = ("sent at a boundary", words, form)
            rows.append(Row(cells, "sent_per_boundary", told={ITSELF: sent}))
        title = "pipeline: idle time, if all stages take equally long"
        columns = (Column("what"), Column("size"), Column("formula", 1))
        return Section(title, columns, tuple(rows), key="pipeline")

    def _memory(self) -> Section:
        plan, stage, policy = self.plan, self.plan.fullest, self.plan.policy
        rows = [
            _size(
                s.value,
                stage.resting[s],
                f"resting.{s.value}",
                f"{policy.of(s)} = {policy.provenance(s)}",
            )
            for s in MODEL_STATES
        ]
        rows.append(_size("resting", sum(stage.resting.values()), "resting.total"))
        kept = "kept on the host" if plan.offload else "kept for backward"
        rows.append(_size("activations", stage.activations, "activations", kept))
        rows.append(_size("total", stage.total, "total"))
        at_once = ONE[stage.unit] if plan.unit is None else f"{plan.unit:,} elements"
        passing = {
            "states": ("gathered or fresh", f"parameters or gradients; unit: {at_once}"),
            "computing": (
                "computing",
                f"values of {ONE[stage.computing]}, at its fullest moment, beside what it keeps",
            ),
            "offloaded": (
                "offloaded",
                "activations to or from the host, a layer or the head at a time",
            ),
        }
        for name, size in stage.transient.items():
            rows.append(_size(passing[name][0], size, f"transient.{name}", passing[name][1], False))
        rows.append(_size("peak", stage.peak, "peak", PEAK))
        rows.append(_size("host", stage.host, "host", "in the host's memory", False))
        of = f"of {stage.parameters:,} parameters{_at(plan, stage)}"
        return Section(f"memory per device, {of}", IN_ALL, tuple(rows), tuple(_notes(plan)), "memory")


def _idle(words: str, share: Number, form: Formula, key: str) -> Row:
    exact = Fraction(share)
    told = {ITSELF: Quantity(share, "", form)}
    return Row((words, f"{exact} = {digits(exact, 4)}", form), key, told=told)


def _size(words: str, size: Number, key: str, provenance: str = "", always: bool = True) -> Row:
    """So many bytes; shown if there are any, or always."""
    quantity = Quantity(size, BYTES, provenance=provenance)
    return Row((words, quantity), key, shown=always or bool(size))


def _facts(plan: ModelPlan) -> Iterator[str]:
    model, m = plan.model, plan.pipe.micro_batches
    mesh = " x ".join(f"{axis} {size:,}" for axis, size in plan.mesh.items())
    shape = f"{counted(model.layers, 'layer')} of {counted(model.hidden, 'feature')}"
    samples = f"{counted(plan.micro_batch, 'sample')} of {counted(plan.sequence, 'token')}"
    along = " x ".join(plan.sample_axes)
    samples += f" on each device along {along}" if along else ""
    yield f"Psi = {plan.psi:,} parameters: {shape}, {counted(model.heads, 'head')}"
    yield f"devices: {mesh}"
    yield f"a step of {counted(m, 'micro-batch')}{' of' if m == 1 else ', each of'} {samples}"
    on_host = "; what is kept is on the host" if plan.offload else ""
    yield f"{MADE_AGAIN[plan.again]}{on_host} (activations: {activations_mode(plan)})"
    if plan.padded_words != model.vocabulary:
        yield f"{model.vocabulary:,} words padded to {plan.padded_words:,}, to be cut evenly"


def activations_mode(plan: ModelPlan) -> str:
    """The modes of a layer's activations along the axes, as a placement writes them.

    R and S of what is kept for backward, unless that is only what layers take; with O, on the host. M
    of what is made again, from what is kept.
    """
    program, found = plan.costs[LAYER].program, []
    if plan.again in (NOTHING, PAIRS):
        layouts = {lie.layout for value in program.kept for lie in program.lies[value].values()}
        is_cut = bool(plan.step.stages) or Layout.SHARDED in layouts
        kept = {Mode.SHARDED: is_cut, Mode.REPLICATED: Layout.REPLICATED in layouts or not is_cut}
        found = [mode.value for mode in Mode if kept.get(mode)]
    made_again = [] if plan.again == NOTHING else [Mode.MATERIALIZED.value]
    if plan.offload:
        found = [f"{mode}+{Mode.OFFLOADED.value}" for mode in found or made_again]
        made_again = made_again if plan.again == PAIRS else []
    return ", ".join(found + made_again)


def _inputs(plan: ModelPlan) -> dict[str, Any]:
    shape = ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary")
    return {
        "psi": plan.psi,
        "devices": plan.devices,
        "mesh": dict(plan.mesh),
        **{name: getattr(plan.model, name) for name in (*shape, "experts", "chosen", "positions")},
        "padded_vocabulary": plan.padded_words,
        "micro_batch": plan.micro_batch,
        "sequence": plan.sequence,
        "accumulate": plan.pipe.micro_batches,
        "order": plan.pipe.kind.value,
        "chunks": plan.pipe.chunks,
        "recompute": plan.again,
        "offload_activations": plan.offload,
        "activations_mode": activations_mode(plan),
        "bytes": in_bytes(plan.policy),
    }


def _part(costs: PartCosts) -> dict[str, Any]:
    """One embedding, layer or head, of one micro-batch, on one device."""
    sent = {phase: Quantity(costs.sent(phase)) for phase in PHASES}
    return {
        "parameters": sum(costs.parameters.values()),
        "activations": Quantity(costs.activations, BYTES),
        "computing": Quantity(costs.computing, BYTES),
        "kept": [str(value) for value in costs.program.kept],
        "elements": {**sent, "forward_and_backward": Quantity(costs.sent(FORWARD, BACKWARD))},
        "moves": [
            {
                "operation": t.move.collective,
                "axis": t.move.axis,
                "value": t.move.value.plain_name,
                "phase": t.phase,
                "elements": Quantity(t.elements, ELEMENTS),
                "bytes": Quantity(t.bytes, BYTES),
            }
            for t in costs.traffic
        ],
    }


def _of_memory(plan: ModelPlan) -> dict[str, Any]:
    """Which stage it is of, of which unit what passes is, and what `computing` is with a ring."""
    stage, blocks = plan.fullest, of_ring(plan)
    ring = {} if blocks is None else {"computing_if": "all keys are at hand", "blocks_of_ring": blocks}
    return {
        "stage": stage.number,
        "transient_of": {"states": plan.unit or stage.unit, "computing": stage.computing},
        "activations_of_layers": Quantity(stage.activations_of(LAYER), BYTES),
        **ring,
    }


def _at(plan: ModelPlan, stage: StageCosts) -> str:
    return f", on stage {stage.number:,}" if plan.step.stages else ""


def _stages(plan: ModelPlan) -> Section:
    in_flight = "in flight" if plan.pipe.chunks == 1 else "in flight, chunks"
    keys = (
        *("stage", "alike", "layers", "parameters", "in_flight"),
        *("resting", "activations", "peak", "bytes"),
    )
    titles = {"in_flight": in_flight, "bytes": "sent"}
    columns = tuple(Column(titles.get(key, key), key=key, right=True) for key in keys)
    rows = tuple(
        Row(
            (
                *(stage.number, stage.alike, stage.layers, stage.parameters, stage.in_flight),
                Quantity(sum(stage.resting.values()), BYTES),
                Quantity(stage.activations, BYTES),
                Quantity(stage.peak, BYTES),
                Quantity(stage.bytes, BYTES),
            ),
            told={"elements": Quantity(stage.elements, ELEMENTS)},
        )
        for stage in plan.stages
    )
    alike = any(stage.alike > 1 for stage in plan.stages)
    note = "alike: stages of the same parts; the first of them is shown, and none has more in flight"
    return Section("stages", columns, rows, (note,) if alike else (), "stages", titled=True)


def _operations(plan: ModelPlan) -> Section:
    columns = (
        Column("operation"),
        Column("along", key="axes"),
        Column("of, when"),
        Column("times"),
        Column("elements", key="elements"),
        Column("bytes", key="bytes"),
    )
    rows = tuple(map(_operation, plan.busiest.moved))
    no_words = ("without embedding and head: give --vocabulary",) if not plan.model.vocabulary else ()
    title = f"communication per device and step{_at(plan, plan.busiest)}"
    return Section(title, columns, rows, no_words, "communication.operations")


def _operation(moved: Moved) -> Row:
    when = moved.when if moved.to_host else SAYS.get(moved.when, moved.when)
    return Row(
        (
            f"{moved.collective} {moved.what}",
            Axes(moved.axes),
            f"{moved.of}, {when}",
            times(moved.times),
            Quantity(moved.elements, ELEMENTS),
            Quantity(moved.bytes, BYTES),
        ),
        told={
            "operation": moved.collective,
            "value": moved.what,
            "of": moved.of,
            "phase": moved.when,
            "times": moved.times,
        },
    )


def _sent(stage: StageCosts) -> dict[str, Quantity]:
    return {
        "elements": Quantity(stage.elements, ELEMENTS),
        "bytes": Quantity(stage.bytes, BYTES),
        "host_bytes": Quantity(stage.host_bytes, BYTES),
    }


def _checkpoints(plan: ModelPlan) -> dict[str, Any] | None:
    """How many layers best keep their input, the others made again; None if that keeps no less."""
    found, layers = plan.checkpoints(plan.fullest.layers), plan.fullest.layers
    if found is None:
        return None
    count, segment, size = found
    return {"layers": layers, "best": count, "segment": segment, "activations": Quantity(size, BYTES)}


def _notes(plan: ModelPlan) -> Iterator[Any]:
    """What a ring has less of at once, and what the best number of checkpoints would keep."""
    blocks = of_ring(plan)
    if blocks is not None:
        yield (
            "computing has attention's pairs with all keys at hand; with the ring, one block at a "
            f"time: about 1/{blocks:,} of them at once"
        )
    found = plan.checkpoints(plan.fullest.layers)
    if found is not None:
        count, segment, size = found
        kept = unit_of([plan.fullest.peak]).texts(size)[0]
        yield (
            f"with {counted(count, 'checkpoint')}, of segments of {counted(segment, 'layer')}, made "
            f"again for backward: {kept} of activations for a micro-batch"
        )


def of_ring(plan: ModelPlan) -> Number | None:
    """In how many blocks keys go around the ring, if a layer's attention, as it is counted, has all."""
    rings = [f.axes[0] for f in plan.product.factors if f.name == RING]
    blocks = group_size(plan.mesh, rings)
    return blocks if blocks > 1 and plan.fullest.computing == LAYER else None
