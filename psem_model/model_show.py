"""Predictions on the model axes as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from psem_model.figures import plain, quantity, table
from psem_model.model_predict import (
    AGAIN,
    BACKWARD,
    FINISH,
    FORWARD,
    PHASES,
    PIPE,
    ModelPlan,
    Moved,
    PartCosts,
    StageCosts,
    plain_name,
)
from psem_model.model_symbolic import forms, legend, per_token, text
from psem_model.show import in_bytes
from spec.arithmetic import Number
from spec.model_strategies import MODEL_MEANING
from spec.pipeline import bubble_of_ideal, bubble_of_span
from spec.states import State
from spec.transformer import EMBEDDING, HEAD, LAYER

STATES = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)
SAYS = {
    FORWARD: "sent forward",
    BACKWARD: "sent backward",
    AGAIN: "gathered or made again",
    FINISH: "of gradients, once a step",
}


class ModelShown:
    """A plan's prediction beside its closed forms."""

    def __init__(self, strategy: str, plan: ModelPlan) -> None:
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
            "strategy": self.strategy,
            "inputs": self._inputs(),
            "parts": {name: self._part(name, costs) for name, costs in plan.costs.items()},
            "memory": {
                "stage": fullest.number,
                "resting": {
                    **{name: quantity(size) for name, size in resting.items()},
                    "total": quantity(sum(resting.values())),
                },
                "activations": quantity(fullest.activations),
                "activations_of_layers": quantity(fullest.activations_of(LAYER)),
                "total": quantity(fullest.total),
            },
            "communication": {
                "stage": busiest.number,
                "elements": quantity(busiest.elements),
                "bytes": quantity(busiest.bytes),
                "operations": [_operation(moved) for moved in busiest.moved],
            },
            "checkpoints": self._checkpoints(),
            "stages": [self._stage(stage) for stage in self.stages],
            **({"pipeline": self._pipeline()} if PIPE in plan.mesh else {}),
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
        out = [f"{self.strategy}: " + "; ".join(_meaning(self.strategy))]
        out += [
            f"  Psi = {plan.psi:,} parameters; {mesh}; {model.layers:,} layers of {model.hidden:,}, "
            f"{model.heads:,} heads",
            f"  {plan.pipe.micro_batches:,} micro-batches a step, of {plan.micro_batch:,} samples of "
            f"{plan.sequence:,} tokens; made again for backward: {plan.again}",
        ]
        for name in plan.costs:
            out += ["", f"{_ONE[name]}, on a device, of a micro-batch", *self._part_lines(name)]
        out += ["", *self._stage_lines()]
        if PIPE in plan.mesh:
            out += ["", "pipeline", *self._pipeline_lines()]
        out += ["", f"memory per device (stage {self.fullest.number}; GB = 1e9, GiB = 2^30 bytes)"]
        policy = plan.policy
        rows = [
            (s.value, *in_bytes(self.fullest.resting[s]), f"{policy.of(s)} = {policy.provenance(s)}")
            for s in STATES
        ]
        rows.append(("activations", *in_bytes(self.fullest.activations), "kept for backward"))
        rows.append(("total", *in_bytes(self.fullest.total), ""))
        out += table(rows)
        count, size = plan.checkpoints(self.fullest.layers)
        out.append(
            f"  if {count} of its {self.fullest.layers} layers keep their input, and the others are "
            f"made again: {in_bytes(size)[0]} of activations for a micro-batch"
        )
        out += ["", f"communication per device and step (stage {self.busiest.number})"]
        out += table([_moved(m) for m in _together(self.busiest.moved)] + [_total(self.busiest)])
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


def _meaning(strategy: str) -> list[str]:
    return [MODEL_MEANING[name.strip()] for name in strategy.split("*")]


def _share(value: Number) -> str:
    exact = Fraction(value)
    return f"{exact} = {float(exact):.4g}"


def _together(moved: tuple[Moved, ...]) -> list[Moved]:
    """What is sent, the gradients of a part as one."""
    found: dict[object, list[Moved]] = {}
    for number, m in enumerate(moved):
        key = (m.part, m.axis, m.collective) if m.phase == FINISH else number
        found.setdefault(key, []).append(m)
    return [
        replace(
            same[0],
            what=same[0].what if len(same) == 1 else f"{len(same)} gradients",
            elements=sum(m.elements for m in same),
            bytes=sum(m.bytes for m in same),
        )
        for same in found.values()
    ]


def _moved(moved: Moved) -> tuple[str, ...]:
    return (
        f"{moved.collective} {moved.what}",
        f"over {moved.axis}",
        f"{moved.part}, {SAYS[moved.phase]}",
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
        "axis": moved.axis,
        "part": moved.part,
        "phase": moved.phase,
        "times": moved.times,
        "elements": quantity(moved.elements),
        "bytes": quantity(moved.bytes),
    }
