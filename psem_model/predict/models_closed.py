"""Closed forms on the model axes: the derived programs evaluated on SymPy symbols."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy

from psem_model.predict.models import ModelPlan
from psem_model.predict.parts import PHASES
from psem_model.text.report import Formula
from spec import pipeline
from spec.transformer import LAYER

LEGEND = {
    "b": "samples of a micro-batch on a device",
    "s": "tokens of a sample",
    "h": "hidden features",
    "a": "heads",
    "q": "key-value heads",
    "d": "features of a head",
    "f": "features inside the MLP",
    "V": "words",
    "L": "layers",
    "P": "learned positions",
    "E": "experts",
    "k": "experts that a token is sent to",
    "m": "micro-batches of a step",
    "v": "chunks of layers in a stage",
}
AXIS_SYMBOLS = {"tensor": "t", "context": "c", "expert": "e", "batch": "n", "pipe": "p"}


def symbol(name: str) -> Any:
    """A positive number."""
    return sympy.Symbol(name, positive=True)


def axis_symbol(axis: str) -> str:
    """What the number of devices along an axis is called."""
    return AXIS_SYMBOLS.get(axis, f"N_{axis}")


def symbolic(plan: ModelPlan) -> ModelPlan:
    """The same plan with symbols for its sizes; what is a multiple of another by design stays one."""
    model = plan.model
    h, a, d = symbol("h"), symbol("a"), symbol("d")
    whole = model.heads * model.head_dim == model.hidden
    shape = replace(
        model,
        layers=symbol("L"),
        hidden=h,
        heads=a,
        kv_heads=a if model.kv_heads == model.heads else symbol("q"),
        head_dim=h / a if whole else d,
        feed_forward=4 * h if model.feed_forward == 4 * model.hidden else symbol("f"),
        vocabulary=symbol("V") if model.vocabulary else 0,
        positions=symbol("P") if model.positions else 0,
        experts=symbol("E") if model.experts else 0,
        chosen=symbol("k") if model.chosen else 0,
    )
    mesh = {axis: symbol(axis_symbol(axis)) for axis in plan.mesh}
    pipe = replace(
        plan.pipe,
        stages=mesh[plan.step.stages] if plan.step.stages else 1,
        micro_batches=symbol("m"),
        chunks=symbol("v") if plan.pipe.chunks > 1 else 1,
    )
    return replace(
        plan, model=shape, mesh=mesh, micro_batch=symbol("b"), sequence=symbol("s"), pipe=pipe
    )


def shortest(formula: Any) -> Any:
    """A formula expanded or factored, whichever is shorter."""
    expression = sympy.sympify(formula)
    return min((sympy.factor(expression), sympy.expand(expression)), key=lambda f: len(str(f)))


def per_token(formula: Any) -> Formula:
    """A formula by the features of a micro-batch's tokens, as activations are published."""
    features = symbol("b") * symbol("s") * symbol("h")
    each = sympy.expand(formula / features)
    if not each:
        return Formula("0", each)
    return Formula(f"b*s*h*({each})", sympy.Mul(features, each, evaluate=False))


def forms(plan: ModelPlan) -> dict[str, dict[str, Any]]:
    """Closed forms: what the embedding, a layer and the head hold and send; a pipeline's idle time."""
    closed = symbolic(plan)
    found: dict[str, dict[str, Any]] = {
        name: {
            "parameters": sum(costs.parameters.values()),
            "activations": costs.activations,
            **{phase: costs.sent(phase) for phase in PHASES},
        }
        for name, costs in closed.costs.items()
    }
    if plan.step.stages:
        found["pipeline"] = {
            "bubble_of_ideal": pipeline.bubble_of_ideal(closed.pipe),
            "bubble_of_total": pipeline.bubble_of_span(closed.pipe),
        }
        if plan.pipe.stages > 1:
            found["pipeline"]["sent"] = closed.costs[LAYER].handed_on
    return found


def legend(plan: ModelPlan, found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What the symbols of some formulas mean."""
    padded = {"V": f"{LEGEND['V']}, padded to the devices that cut them"}
    is_padded = plan.padded_words != plan.model.vocabulary
    axes = {axis_symbol(axis): f"devices along {axis}" for axis in plan.mesh}
    formulas = [sympy.sympify(form) for part in found.values() for form in part.values()]
    used = {str(name) for formula in formulas for name in formula.free_symbols}
    known = {**LEGEND, **(padded if is_padded else {}), **axes}
    return {name: words for name, words in known.items() if name in used}
