"""Predictions on the model axes as text."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from psem_model.predict import json_models as model_json
from psem_model.predict.model_symbolic import forms, legend, per_token, text
from psem_model.predict.models import STATES, ModelPlan, Moved, StageCosts
from psem_model.predict.parts import AGAIN, BACKWARD, FORWARD, PHASES
from psem_model.reading.products import Expression
from psem_model.text.figures import Unit, counted, digits, plain, table, times, unit_of
from spec.arithmetic import Number
from spec.distribute import ALL, FROM_SLICES, NOTHING, PAIRS
from spec.pipeline import bubble_of_ideal, bubble_of_span
from spec.transformer import EMBEDDING, HEAD, LAYER

SAYS = {
    FORWARD: "sent forward",
    BACKWARD: "sent backward",
    AGAIN: "sent forward again",
}
MADE_AGAIN = {
    NOTHING: "nothing is made again for backward",
    PAIRS: "for backward, what attention has for each pair of tokens is made again",
    ALL: "for backward, layers are made again from what they take",
    FROM_SLICES: "for backward, layers are made again from what they take, kept in slices",
}
PEAK = "an upper bound: each value freed after its last use; without what kernels need for themselves"
ONE = {EMBEDDING: "the embedding", LAYER: "a layer", HEAD: "the head"}


class ModelShown:
    """A plan's prediction beside its closed forms."""

    def __init__(self, strategy: Expression, plan: ModelPlan) -> None:
        self.strategy, self.plan = strategy, plan
        self.forms = forms(plan)
        sent = (plan.busiest.bytes, plan.busiest.host_bytes)
        self.unit = unit_of((plan.fullest.peak, plan.fullest.host, *sent))

    def json(self) -> dict[str, Any]:
        """The prediction with every number exact."""
        return model_json.prediction(self.strategy.text, self.plan, self.forms)

    def lines(self) -> list[str]:
        """The prediction as text."""
        plan, unit = self.plan, self.unit
        out = [self.strategy.text, *(f"  {meaning}" for meaning in self.strategy.meanings)]
        out += [f"  {line}" for line in _inputs(plan)]
        for name in plan.costs:
            out += ["", f"{ONE[name]}, on one device, for one micro-batch", *self._part(name)]
        if plan.product.pipe:
            out += ["", "stages", *_stages(plan, unit)]
            out += ["", "pipeline: idle time, if all stages take equally long", *self._pipeline()]
        of = f"of {plan.fullest.parameters:,} parameters{_at(plan, plan.fullest)}"
        out += ["", f"memory per device, {of} ({unit.words})"]
        out += [*table(_memory(plan, unit)), *_of_ring(plan), *_checkpoints(plan, unit)]
        out += ["", f"communication per device and step{_at(plan, plan.busiest)}"]
        moved = [_moved(moved, unit) for moved in plan.busiest.moved]
        out += table([*moved, *_totals(plan.busiest, unit)])
        if not plan.model.vocabulary:
            out += ["  without embedding and head: give --vocabulary"]
        out += ["", "formulas: parameters and what is sent in elements, activations in bytes"]
        return out + [f"  {name:<4} {words}" for name, words in legend(plan, self.forms).items()]

    def _part(self, name: str) -> list[str]:
        costs, found = self.plan.costs[name], self.forms[name]
        rows = [
            ("parameters", plain(sum(costs.parameters.values())), "", text(found["parameters"])),
            ("activations", *self.unit.texts(costs.activations), per_token(found["activations"])),
        ]
        for phase in PHASES:
            sent = costs.sent(phase)
            if sent:
                counts = Counter(t.move.collective for t in costs.traffic if t.phase == phase)
                words = ", ".join(f"{n} {collective}" for collective, n in counts.items())
                rows.append((SAYS[phase], plain(sent), words, text(found[phase])))
        return table(rows)

    def _pipeline(self) -> list[str]:
        pipe, found = self.plan.pipe, self.forms["pipeline"]
        rows = [
            ("idle, of ideal time", _share(bubble_of_ideal(pipe)), text(found["bubble_of_ideal"])),
            ("idle, of all time", _share(bubble_of_span(pipe)), text(found["bubble_of_total"])),
        ]
        if "sent" in found:
            elements = f"{plain(self.plan.costs[LAYER].handed_on)} elements"
            sent = f"{text(found['sent'])}, each way, of a micro-batch"
            rows.append(("sent at a boundary", elements, sent))
        return table(rows)


def _inputs(plan: ModelPlan) -> list[str]:
    model, m = plan.model, plan.pipe.micro_batches
    mesh = " x ".join(f"{axis} {size:,}" for axis, size in plan.mesh.items())
    shape = f"{counted(model.layers, 'layer')} of {counted(model.hidden, 'feature')}"
    samples = f"{counted(plan.micro_batch, 'sample')} of {counted(plan.sequence, 'token')}"
    along = " x ".join(plan.sample_axes)
    samples += f" on each device along {along}" if along else ""
    out = [
        f"Psi = {plan.psi:,} parameters: {shape}, {counted(model.heads, 'head')}",
        f"devices: {mesh}",
        f"a step of {counted(m, 'micro-batch')}{' of' if m == 1 else ', each of'} {samples}",
        f"{MADE_AGAIN[plan.again]}{'; what is kept is on the host' if plan.offload else ''} "
        f"(activations: {model_json.activations_mode(plan)})",
    ]
    if plan.padded_words != model.vocabulary:
        out.append(f"{model.vocabulary:,} words padded to {plan.padded_words:,}, to be cut evenly")
    return out


def _at(plan: ModelPlan, stage: StageCosts) -> str:
    return f", on stage {stage.number:,}" if plan.product.pipe else ""


def _stages(plan: ModelPlan, unit: Unit) -> list[str]:
    in_flight = "in flight" if plan.pipe.chunks == 1 else "in flight, chunks"
    head = ("stage", "alike", "layers", "parameters", in_flight, "resting", "activations", "sent")
    rows = [head]
    for stage in plan.stages:
        rows.append(
            (
                f"{stage.number:,}",
                f"{stage.alike:,}",
                f"{stage.layers:,}",
                plain(stage.parameters),
                f"{stage.in_flight:,}",
                unit.texts(sum(stage.resting.values()))[0],
                unit.texts(stage.activations)[0],
                unit.texts(stage.bytes)[0],
            )
        )
    out = table(rows, right=tuple(range(len(head))))
    if any(stage.alike > 1 for stage in plan.stages):
        out.append("  of stages with as many layers the first is shown: none has more in flight")
    return out


def _memory(plan: ModelPlan, unit: Unit) -> list[tuple[str, ...]]:
    stage, policy = plan.fullest, plan.policy
    rows: list[tuple[str, ...]] = [
        (s.value, *unit.texts(stage.resting[s]), f"{policy.of(s)} = {policy.provenance(s)}")
        for s in STATES
    ]
    kept = "kept on the host" if plan.offload else "kept for backward"
    rows.append(("activations", *unit.texts(stage.activations), kept))
    rows.append(("total", *unit.texts(stage.total), ""))
    at_once = ONE[stage.unit] if plan.unit is None else f"{plan.unit:,} elements"
    passing = {
        "states": ("gathered or fresh", f"parameters or gradients; unit: {at_once}"),
        "computing": (
            "computing",
            f"values of {ONE[stage.computing]}, at its fullest moment, beside what it keeps",
        ),
        "offloaded": ("offloaded", "activations to or from the host, a layer or the head at a time"),
    }
    sizes = {name: size for name, size in stage.transient.items() if size}
    rows += [(passing[name][0], *unit.texts(size), passing[name][1]) for name, size in sizes.items()]
    rows.append(("peak", *unit.texts(stage.peak), PEAK))
    if stage.host:
        rows.append(("host", *unit.texts(stage.host), "in the host's memory"))
    return rows


def _of_ring(plan: ModelPlan) -> list[str]:
    """What a ring has less of at once."""
    shares = model_json.of_ring(plan)
    if shares is None:
        return []
    return [
        "  computing has attention's pairs with all keys at hand; with the ring, one block at a time: "
        f"about 1/{shares:,} of them at once"
    ]


def _checkpoints(plan: ModelPlan, unit: Unit) -> list[str]:
    """What the best number of checkpoints would keep, if that is less."""
    found = plan.checkpoints(plan.fullest.layers)
    if found is None:
        return []
    count, segment, size = found
    return [
        f"  with {counted(count, 'checkpoint')}, of segments of {counted(segment, 'layer')}, made "
        f"again for backward: {unit.texts(size)[0]} of activations for a micro-batch"
    ]


def _share(value: Number) -> str:
    exact = Fraction(value)
    return f"{exact} = {digits(exact, 4)}"


def _moved(moved: Moved, unit: Unit) -> tuple[str, ...]:
    over = " x ".join(moved.axes) if moved.axes else "the host link"
    return (
        f"{moved.collective} {moved.what}",
        f"over {over}",
        f"{moved.of}, {moved.when if moved.to_host else SAYS.get(moved.when, moved.when)}",
        times(moved.times),
        f"{plain(moved.elements)} elements",
        *unit.texts(moved.bytes),
    )


def _totals(stage: StageCosts, unit: Unit) -> list[tuple[str, ...]]:
    sent = f"{plain(stage.elements)} elements"
    rows: list[tuple[str, ...]] = [("to other devices", "", "", "", sent, *unit.texts(stage.bytes))]
    if stage.host_bytes:
        rows.append(("over the host link", "", "", "", "", *unit.texts(stage.host_bytes)))
    return rows
