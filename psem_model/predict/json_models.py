"""Predictions on the model axes for a program: every number exact, bytes and elements per device."""

from __future__ import annotations

from math import prod
from typing import Any

from psem_model.predict.model_symbolic import per_token, text
from psem_model.predict.models import STATES, ModelPlan, Moved, StageCosts
from psem_model.predict.parts import BACKWARD, FORWARD, PHASES, PartCosts, plain_name
from psem_model.text.figures import quantity
from spec.arithmetic import Number
from spec.distribute import NOTHING, PAIRS
from spec.layouts import Layout
from spec.mesh import group_size
from spec.modes import Mode
from spec.pipeline import bubble_of_ideal, bubble_of_span
from spec.transformer import LAYER

RING = "cp"  # context parallelism by ring attention


def prediction(strategy: str, plan: ModelPlan, forms: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A plan's prediction beside its closed forms.

    `memory` is that of the stage that needs most, `communication` that of the one that sends most.
    `stages`: the first of each kind, and how many are alike; idle time is as if all took equally long.
    """
    return {
        "strategy": strategy,
        "inputs": _inputs(plan),
        "parts": {name: _part(costs) for name, costs in plan.costs.items()},
        "memory": {**_memory(plan.fullest), **_ring(plan)},
        "communication": {
            "stage": plan.busiest.number,
            "elements": quantity(plan.busiest.elements),
            "bytes": quantity(plan.busiest.bytes),
            "host_bytes": quantity(plan.busiest.host_bytes),
            "operations": [_operation(moved) for moved in plan.busiest.moved],
        },
        "checkpoints": _checkpoints(plan),
        "stages": [_stage(stage) for stage in plan.stages],
        **({"pipeline": _pipeline(plan)} if plan.product.pipe else {}),
        "parameters": plan.parameters,
        "formulas": {
            part: {
                name: per_token(form) if name == "activations" else text(form)
                for name, form in found.items()
            }
            for part, found in forms.items()
        },
    }


def of_ring(plan: ModelPlan) -> Number | None:
    """In how many blocks keys go around the ring, if a layer's attention, as it is counted, has all."""
    rings = [f.axes[0] for f in plan.product.factors if f.name == RING]
    blocks = group_size(plan.mesh, rings)
    return blocks if blocks > 1 and plan.fullest.computing == LAYER else None


def _ring(plan: ModelPlan) -> dict[str, Any]:
    """What `computing` is if keys go around a ring."""
    blocks = of_ring(plan)
    if blocks is None:
        return {}
    return {"computing_if": "all keys are at hand", "blocks_of_ring": blocks}


def _inputs(plan: ModelPlan) -> dict[str, Any]:
    model, policy = plan.model, plan.policy
    shape = ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary")
    return {
        "psi": plan.psi,
        "devices": prod(plan.mesh.values()),
        "mesh": dict(plan.mesh),
        **{name: getattr(model, name) for name in (*shape, "experts", "chosen", "positions")},
        "padded_vocabulary": plan.padded_words,
        "micro_batch": plan.micro_batch,
        "sequence": plan.sequence,
        "accumulate": plan.pipe.micro_batches,
        "order": plan.pipe.kind.value,
        "chunks": plan.pipe.chunks,
        "recompute": plan.again,
        "offload_activations": plan.offload,
        "activations_mode": activations_mode(plan),
        "bytes": {"w": float(policy.w), "g": float(policy.g), "K": float(policy.k)},
    }


def activations_mode(plan: ModelPlan) -> str:
    """The modes of a layer's activations along the axes, as a placement writes them.

    R and S of what is kept for backward, unless that is only what layers take; with O, on the host. M
    of what is made again, from what is kept.
    """
    program, found = plan.costs[LAYER].program, []
    if plan.again in (NOTHING, PAIRS):
        layouts = {lie.layout for value in program.kept for lie in program.lies[value].values()}
        of_others = plan.product.states.axes or plan.product.pipe  # samples, and layers, are cut
        is_cut = bool(of_others) or Layout.SHARDED in layouts
        kept = {Mode.SHARDED: is_cut, Mode.REPLICATED: Layout.REPLICATED in layouts or not is_cut}
        found = [mode.value for mode in Mode if kept.get(mode)]
    made_again = [] if plan.again == NOTHING else [Mode.MATERIALIZED.value]
    if plan.offload:
        found = [f"{mode}+{Mode.OFFLOADED.value}" for mode in found or made_again]
        made_again = made_again if plan.again == PAIRS else []
    return ", ".join(found + made_again)


def _part(costs: PartCosts) -> dict[str, Any]:
    """One embedding, layer or head, of one micro-batch, on one device."""
    return {
        "parameters": sum(costs.parameters.values()),
        "activations": quantity(costs.activations),
        "computing": quantity(costs.computing),
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


def _memory(stage: StageCosts) -> dict[str, Any]:
    resting = {state.value: stage.resting[state] for state in STATES}
    return {
        "stage": stage.number,
        "resting": {
            **{name: quantity(size) for name, size in resting.items()},
            "total": quantity(sum(resting.values())),
        },
        "host": quantity(stage.host),
        "transient": {name: quantity(size) for name, size in stage.transient.items()},
        "transient_of": {"states": stage.plan.unit or stage.unit, "computing": stage.computing},
        "activations": quantity(stage.activations),
        "activations_of_layers": quantity(stage.activations_of(LAYER)),
        "total": quantity(stage.total),
        "peak": quantity(stage.peak),
    }


def _operation(moved: Moved) -> dict[str, Any]:
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


def _checkpoints(plan: ModelPlan) -> dict[str, Any] | None:
    """How many layers best keep their input, the others made again; None if that keeps no less."""
    found, layers = plan.checkpoints(plan.fullest.layers), plan.fullest.layers
    if found is None:
        return None
    count, segment, size = found
    return {"layers": layers, "best": count, "segment": segment, "activations": quantity(size)}


def _stage(stage: StageCosts) -> dict[str, Any]:
    return {
        "stage": stage.number,
        "alike": stage.alike,
        "layers": stage.layers,
        "parameters": stage.parameters,
        "in_flight": stage.in_flight,
        "resting": quantity(sum(stage.resting.values())),
        "activations": quantity(stage.activations),
        "peak": quantity(stage.peak),
        "elements": quantity(stage.elements),
        "bytes": quantity(stage.bytes),
    }


def _pipeline(plan: ModelPlan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bubble_of_ideal": quantity(bubble_of_ideal(plan.pipe)),
        "bubble_of_total": quantity(bubble_of_span(plan.pipe)),
        "bubble_if": "all stages take equally long",
    }
    if plan.pipe.stages > 1:
        found["sent_per_boundary"] = quantity(plan.costs[LAYER].handed_on)
    return found
