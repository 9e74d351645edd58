"""What a plan is of, in sentences that reports share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from psem_model.predict.parts import AGAIN, BACKWARD, FORWARD, choices
from psem_model.predict.plan import Plan
from psem_model.text.figures import counted
from psem_model.text.report import Formula, Section
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS
from spec.devices.mesh import group_size
from spec.language.schedule import Op
from spec.models.custom import Custom
from spec.models.opaque import MODEL
from spec.models.transformer import EMBEDDING, HEAD, LAYER, Transformer, is_layer
from spec.numbers.arithmetic import Number, per
from spec.plans.model_strategies import EXPERTS

PEAK = "an upper bound, but for what kernels and collectives need: each value freed after its last use"
SAYS = {FORWARD: "sent forward", BACKWARD: "sent backward", AGAIN: "sent forward again"}
PASSING = {  # by what it is
    "states": "gathered or fresh",
    "computing": "computing",
    "offloaded": "offloaded",
    "placeholders": "more placeholders",
    "copied": "copied",
}
ONE = {
    EMBEDDING: "the embedding",
    LAYER: "a layer",
    HEAD: "the head",
    MODEL: "all at once; --unit says how many",
}


def one(part: str) -> str:
    """One part, in words: that of a layer that differs from most has its kind in its name."""
    return ONE.get(part) or f"{'a' if is_layer(part) else 'the'} {part.replace('_', ' ')}"


@dataclass(frozen=True)
class Said:
    """What is said of one kind of model.

    `facts`: what the plan is of; `first`: what comes before memory and communication; `inputs`, `data`:
    what programs are told; `legend`: of its formulas. `forms`: of figures that are in Psi and the mesh
    alone, by their keys; `of_moves`: those of what operations send.
    """

    facts: tuple[str, ...]
    first: tuple[Section, ...]
    inputs: Mapping[str, Any]
    data: Mapping[str, Any]
    legend: Mapping[str, str]
    notes_of_memory: tuple[str, ...]
    notes_of_moves: tuple[str, ...]
    forms: Mapping[str, Formula] = field(default_factory=dict)
    of_moves: Mapping[Op | None, Formula] = field(default_factory=dict)


MADE_AGAIN = {
    NOTHING: "nothing is made again for backward",
    PAIRS: "for backward, what attention has for each pair of tokens is made again",
    EVERYTHING: "for backward, layers are made again from what they take",
    FROM_SLICES: "for backward, layers are made again from what they take, kept in slices",
}

KERNEL = "for backward, nothing more is made again: attention is a kernel, which keeps no pairs"


def made_again(plan: Plan) -> str:
    """What backward makes or gathers again."""
    rings = {axis.name for axis in plan.axes if axis.ring}
    sent = [t for costs in plan.costs.values() for t in costs.traffic if t.phase == AGAIN]
    attention = ", but attention, in each turn of the ring" if rings and plan.again == NOTHING else ""
    gathered = any(t.move.axis not in rings for t in sent) and plan.again in (NOTHING, PAIRS)
    kernel = plan.again == PAIRS and not _keeps_less(plan)
    made = KERNEL if kernel else MADE_AGAIN[plan.again]
    return made + attention + "; what is gathered is gathered again" * gathered


def _keeps_less(plan: Plan) -> bool:
    """Whether less is kept than if nothing were made again."""
    usual = replace(plan, again=NOTHING).costs
    return any(costs.program.kept != usual[name].program.kept for name, costs in plan.costs.items())


def mesh_said(plan: Plan) -> str:
    """The axes, and how many devices are along each."""
    return " x ".join(f"{axis} {size:,}" for axis, size in plan.mesh.items())


def shape_said(plan: Plan) -> str:
    """The model, by its sizes."""
    model = plan.model
    if isinstance(model, Custom):
        layers = f"{counted(model.layers, 'layer')}, " if model.layers else ""
        sizes = ", ".join(f"{index} {n:,}" for index, n in model.lengths if not isinstance(n, str))
        return f"Psi = {plan.psi:,} parameters: {layers}{sizes}"
    model = plan.transformer
    shape = f"{counted(model.layers, 'layer')} of {counted(model.hidden, 'feature')}"
    return f"Psi = {plan.psi:,} parameters: {shape}, {counted(model.heads, 'head')}"


def cautions(plan: Plan) -> Iterator[str]:
    """Where figures are of more than a plan asks for: copied key-value heads, uneven choices."""
    model = plan.model
    if not isinstance(model, Transformer):
        return
    for axis in plan.axes:
        if axis.copies_of:
            copies = counted(plan.mesh[axis.name], "device")
            each = f"each of the {model.kv_heads:,} key-value heads" if model.kv_heads > 1 else ""
            yield f"{each or 'the one key-value head'} is on {copies} along {axis.name}"
    if spread_unevenly(plan):
        some = f"{counted(_choices(plan, model), 'choice')} of {counted(model.experts, 'expert')}"
        yield (
            f"{some} on each device, spread as evenly as can be over the experts of all: figures "
            "are of the device that has most, and with a less even router it has more"
        )


def spread_unevenly(plan: Plan) -> bool:
    """Whether experts are cut, and get unlike numbers of choices."""
    model = plan.model
    cut = any(plan.mesh[axis.name] != 1 and EXPERTS in axis.weight_indices for axis in plan.axes)
    return cut and isinstance(model, Transformer) and _choices(plan, model) % model.experts != 0


def _choices(plan: Plan, model: Transformer) -> Number:
    """Experts that the tokens of a device choose."""
    cells = group_size(plan.mesh, [axis.name for axis in plan.axes if axis.stream])
    return per(choices(plan.indices, plan.profile.computed(model)), cells)


def with_experts(plan: Plan) -> frozenset[str]:
    """The names of the parts that have experts."""
    return frozenset(p.name for p in plan.parts if any(EXPERTS in w.indices for w in p.weights))
