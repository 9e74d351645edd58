"""Predictions on the model axes as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from psem_model.expressions import Expression
from psem_model.figures import plain, quantity, table
from psem_model.model_predict import (
    AGAIN,
    BACKWARD,
    FORWARD,
    PHASES,
    STATES,
    ModelPlan,
    Moved,
    PartCosts,
    StageCosts,
    plain_name,
)
from psem_model.model_symbolic import forms, legend, per_token, text
from psem_model.show import in_bytes
from spec.arithmetic import Number
from spec.pipeline import bubble_of_ideal, bubble_of_span
from spec.transformer import EMBEDDING, HEAD, LAYER

SAYS = {
    FORWARD: "sent forward",
    BACKWARD: "sent backward",
    AGAIN: "gathered or made again",
}


class ModelShown:
    """A plan's prediction beside its closed forms."""

    def __init__(self, strategy: Expression, plan: ModelPlan) -> None:
        self.strategy, self.plan = strategy, plan
        self.forms = forms(plan)
        last = plan.pipe.stages - 1
        self.stages = [plan.stage(k) for k in dict.fromkeys((0, min(1, last), last))]
        self.fullest = max(self.stages, key=lambda stage: stage.total)
        self.busiest = max(self.stages, key=lambda stage: stage.bytes)

    # --------------------------------------------------------------------------- JSON
    def json(self) -> dict[str, Any]:
        """The prediction with every number exact."""
        plan, fullest, busiest = self.plan, self.fullest, self.busiest
        resting = {state.value: fullest.resting[state] for state in STATES}
        return {
            "strategy": self.strategy.text,
            "inputs": self._inputs(),
            "parts": {name: self._part(name, costs) for name, costs in plan.costs.items()},
            "memory": {
                "stage": fullest.number,
                "resting": {
                    **{name: quantity(size) for name, size in resting.items()},
                    "total": quantity(sum(resting.values())),
                },
                "host": quantity(fullest.host),
                "transient": quantity(fullest.transient),
                "activations": quantity(fullest.activations),
                "activations_of_layers": quantity(fullest.activations_of(LAYER)),
                "total": quantity(fullest.total),
                "peak": quantity(fullest.peak),
            },
            "communication": {
                "stage": busiest.number,
                "elements": quantity(busiest.elements),
                "bytes": quantity(busiest.bytes),
                "host_bytes": quantity(busiest.host_bytes),
                "operations": [_operation(moved) for moved in busiest.moved],
            },
            "checkpoints": self._checkpoints(),
            "stages": [self._stage(stage) for stage in self.stages],
            **({"pipeline": self._pipeline()} if plan.product.pipe else {}),
            "parameters": plan.parameters,
            "formulas": {
                part: {
                    name: per_token(form) if name == "activations" else text(form)
                    for name, form in found.items()
                }
                for part, found in self.forms.items()
            },
        }

    def _inputs(self) -> dict[str, Any]:
        plan, model, policy = self.plan, self.plan.model, self.plan.policy
        devices = 1
        for size in plan.mesh.values():
            devices *= size
        shape = ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary")
        return {
            "psi": plan.psi,
            "devices": devices,
            "mesh": dict(plan.mesh),
            **{name: getattr(model, name) for name in (*shape, "experts", "chosen", "positions")},
            "micro_batch": plan.micro_batch,
            "sequence": plan.sequence,
            "accumulate": plan.pipe.micro_batches,
            "schedule": plan.pipe.kind.value,
            "chunks": plan.pipe.chunks,
            "recompute": plan.again,
            "bytes": {"w": float(policy.w), "g": float(policy.g), "K": float(policy.k)},
        }

    def _part(self, name: str, costs: PartCosts) -> dict[str, Any]:
        """One embedding, layer or head, of one micro-batch, on one device."""
        return {
            "parameters": sum(costs.parameters.values()),
            "activations": quantity(costs.activations),
            "kept": [str(value) for value in costs.program.kept],
            "elements": {
                **{phase: quantity(costs.sent(phase)) for phase in PHASES},
                "forward_and_backward": quantity(costs.sent(FORWARD, BACKWARD)),
            },
            "moves": [
                {
                    "operation": t.move.collective,
                    "axis": t.move.axis,
                    "value": plain_name(t.move.value),
                    "phase": t.phase,
                    "elements": quantity(t.elements),
                    "bytes": quantity(t.bytes),
                }
                for t in costs.traffic
            ],
        }

    def _checkpoints(self) -> dict[str, Any]:
        """The number of layers of a stage that best keep their input, the others made again."""
        layers = self.fullest.layers
        count, size = self.plan.checkpoints(layers)
        return {"layers": layers, "best": count, "activations": quantity(size)}

    def _stage(self, stage: StageCosts) -> dict[str, Any]:
        return {
            "stage": stage.number,
            "layers": stage.layers,
            "parameters": stage.parameters,
            "in_flight": stage.in_flight,
            "resting": quantity(sum(stage.resting.values())),
            "activations": quantity(stage.activations),
            "elements": quantity(stage.elements),
            "bytes": quantity(stage.bytes),
        }

    def _pipeline(self) -> dict[str, Any]:
        pipe = self.plan.pipe
        return {
            "bubble_of_ideal": quantity(bubble_of_ideal(pipe)),
            "bubble_of_total": quantity(bubble_of_span(pipe)),
            "sent_per_boundary": quantity(self.plan.costs[LAYER].handed_on),
        }

    # --------------------------------------------------------------------------- text
    def lines(self) -> list[str]:
        """The prediction as text."""
        plan, model = self.plan, self.plan.model
        mesh = " x ".join(f"{axis} {size:,}" for axis, size in plan.mesh.items())
        out = [f"{self.strategy.text}: " + "; ".join(self.strategy.meanings)]
        out += [
            f"  Psi = {plan.psi:,} parameters; {mesh}; {model.layers:,} layers of {model.hidden:,}, "
            f"{model.heads:,} heads",
            f"  {plan.pipe.micro_batches:,} micro-batches a step, of {plan.micro_batch:,} samples of "
            f"{plan.sequence:,} tokens; made again for backward: {plan.again}",
        ]
        for name in plan.costs:
            out += ["", f"{_ONE[name]}, on a device, of a micro-batch", *self._part_lines(name)]
        out += ["", *self._stage_lines()]
        if plan.product.pipe:
            out += ["", "pipeline", *self._pipeline_lines()]
        out += ["", f"memory per device (stage {self.fullest.number}; GB = 1e9, GiB = 2^30 bytes)"]
        policy = plan.policy
        rows = [
            (s.value, *in_bytes(self.fullest.resting[s]), f"{policy.of(s)} = {policy.provenance(s)}")
            for s in STATES
        ]
        rows.append(("activations", *in_bytes(self.fullest.activations), "kept for backward"))
        rows.append(("total", *in_bytes(self.fullest.total), ""))
        if self.fullest.transient:
            words = f"gathered or fresh, {self._unit()} at a time: an upper bound, all at once"
            rows.append(("peak", *in_bytes(self.fullest.peak), words))
        if self.fullest.host:
            rows.append(("host", *in_bytes(self.fullest.host), "in the host's memory"))
        out += table(rows)
        count, size = plan.checkpoints(self.fullest.layers)
        out.append(
            f"  if {count} of its {self.fullest.layers} layers keep their input, and the others are "
            f"made again: {in_bytes(size)[0]} of activations for a micro-batch"
        )
        out += ["", f"communication per device and step (stage {self.busiest.number})"]
        out += table([_moved(m) for m in self.busiest.moved] + [_total(self.busiest)])
        if not model.vocabulary:
            out += ["  without embedding and head: give --vocabulary"]
        out += ["", "formulas: parameters and what is sent in elements, activations in bytes"]
        return out + [f"  {name:<4} {words}" for name, words in legend(plan, self.forms).items()]

    def _part_lines(self, name: str) -> list[str]:
        costs, found = self.plan.costs[name], self.forms[name]
        rows = [
            ("parameters", plain(sum(costs.parameters.values())), "", text(found["parameters"])),
            ("activations", *in_bytes(costs.activations), per_token(found["activations"])),
        ]
        for phase in PHASES:
            sent = costs.sent(phase)
            if sent:
                moves = [t.move.collective for t in costs.traffic if t.phase == phase]
                counts = {m: moves.count(m) for m in dict.fromkeys(moves)}
                words = ", ".join(f"{n} {collective}" for collective, n in counts.items())
                rows.append((SAYS[phase], plain(sent), words, text(found[phase])))
        return table(rows)

    def _unit(self) -> str:
        return "a layer" if self.plan.unit is None else f"{self.plan.unit:,} elements"

    def _stage_lines(self) -> list[str]:
        head = ("stage", "layers", "parameters", "in flight", "resting", "activations", "sent")
        rows = [head]
        for stage in self.stages:
            rows.append(
                (
                    str(stage.number),
                    str(stage.layers),
                    plain(stage.parameters),
                    str(stage.in_flight),
                    in_bytes(sum(stage.resting.values()))[0],
                    in_bytes(stage.activations)[0],
                    in_bytes(stage.bytes)[0],
                )
            )
        return table(rows, right=tuple(range(1, len(head))))

    def _pipeline_lines(self) -> list[str]:
        pipe, found = self.plan.pipe, self.forms["pipeline"]
        return table(
            [
                ("idle, of ideal time", _share(bubble_of_ideal(pipe)), text(found["bubble_of_ideal"])),
                ("idle, of all time", _share(bubble_of_span(pipe)), text(found["bubble_of_total"])),
                (
                    "sent at a boundary",
                    f"{plain(self.plan.costs[LAYER].handed_on)} elements",
                    f"{text(found['sent'])}, each way, of a micro-batch",
                ),
            ]
        )


_ONE = {EMBEDDING: "the embedding", LAYER: "a layer", HEAD: "the head"}


def _share(value: Number) -> str:
    exact = Fraction(value)
    return f"{exact} = {float(exact):.4g}"


def _moved(moved: Moved) -> tuple[str, ...]:
    over = " x ".join(moved.axes) if moved.axes else "the host link"
    return (
        f"{moved.collective} {moved.what}",
        f"over {over}",
        f"{moved.of}, {SAYS.get(moved.when, moved.when)}",
        f"{plain(moved.times)} times",
        f"{plain(moved.elements)} elements",
        *in_bytes(moved.bytes),
    )


def _total(stage: StageCosts) -> tuple[str, ...]:
    return (
        "to other devices",
        "",
        "",
        "",
        f"{plain(stage.elements)} elements",
        *in_bytes(stage.bytes),
    )


def _operation(moved: Moved) -> Mapping[str, Any]:
    return {
        "operation": moved.collective,
        "value": moved.what,
        "axes": list(moved.axes),
        "of": moved.of,
        "phase": moved.when,
        "times": moved.times,
        "elements": quantity(moved.elements),
        "bytes": quantity(moved.bytes),
    }
