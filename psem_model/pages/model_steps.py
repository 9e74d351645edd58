"""Placement, step and cost of each strategy that cuts the model: of a layer of a GPT, in symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator

import sympy

from psem_model.pages.steps import Line, Strategy, Term
from psem_model.predict.gpt import plan
from psem_model.predict.parts import BACKWARD, FORWARD, PHASES, PartCosts, Traffic
from psem_model.tables.models import lies_of
from spec.models.states import State
from spec.models.transformer import LAYER
from spec.plans.compose import PIPELINE
from spec.plans.model_strategies import MODEL_AXES, MODEL_MEANING
from spec.plans.strategies import STRATEGIES

WEIGHTS = "weights"
LAID = re.compile(r"\(([\w ]+)\|[^)]*\)\)?|\|.*$")  # how a value lies, beside its name


def model_strategies() -> list[Strategy]:
    """Those that cut the model, and the pipeline; data parallelism is of the training states."""
    cut = [_strategy(name) for name in MODEL_AXES if name not in STRATEGIES]
    return [*cut, _pipeline()]


def _strategy(name: str) -> Strategy:
    costs = plan(name).costs[LAYER]
    weights, kept = (", ".join(lies) for lies in lies_of(name))
    lines = [
        Line(f"{name}-{number}", _words(traffic), True)
        for number, traffic in enumerate(costs.traffic, 1)
    ]
    placed = [
        (f"{name}-{WEIGHTS}", WEIGHTS, weights),
        (f"{name}-{State.ACTIVATIONS.value}", State.ACTIVATIONS.value, kept),
    ]
    forward = sum(traffic.phase == FORWARD for traffic in costs.traffic)
    return Strategy(
        name,
        MODEL_MEANING[name],
        placed,
        (("moved forward", lines[:forward]), ("moved backward", lines[forward:])),
        list(_memory(name, costs)),
        list(_sent(name, costs)),
    )


def _words(traffic: Traffic) -> str:
    value = LAID.sub(r"\1", traffic.move.value.name).strip()
    again = ", again" if traffic.phase not in (FORWARD, BACKWARD) else ""
    return f"{traffic.collective} {value} over {' x '.join(traffic.axes)}{again}"


def _memory(name: str, costs: PartCosts) -> Iterator[Term]:
    parameters = sympy.factor(sum(costs.parameters.values()))
    kept = sympy.factor(costs.activations)
    yield Term(f"{name}-holds", "parameters", parameters, "elements", [f"{name}-{WEIGHTS}"])
    payers = [f"{name}-{State.ACTIVATIONS.value}"]
    yield Term(f"{name}-keeps", "kept for backward", kept, "bytes", payers)


def _sent(name: str, costs: PartCosts) -> Iterator[Term]:
    """What is sent in each phase, and in all: alike moves send alike."""
    for phase in PHASES:
        payers = [f"{name}-{n}" for n, t in enumerate(costs.traffic, 1) if t.phase == phase]
        if payers:
            sent = sympy.factor(costs.sent(phase))
            yield Term(f"{name}-sends-{phase}", f"sent {phase}", sent, "elements", payers)
    payers = [f"{name}-{n}" for n in range(1, len(costs.traffic) + 1)]
    total = sympy.factor(costs.sent(*PHASES))
    yield Term(f"{name}-sends", "sent in all", total, "elements", payers)


def _pipeline() -> Strategy:
    """Stages send what a layer gives, and its gradient back."""
    name = PIPELINE
    piped = plan(name)
    sent, axis = sympy.factor(piped.costs[LAYER].handed_on), piped.product.pipe
    lines = [
        Line(f"{name}-1", f"send the stream over {axis}", True),
        Line(f"{name}-2", f"send its gradient back over {axis}", True),
    ]
    terms = [
        Term(f"{name}-sends-{phase}", f"sent {phase}", sent, "elements", [line.id])
        for phase, line in zip((FORWARD, BACKWARD), lines, strict=True)
    ]
    total = Term(f"{name}-sends", "sent in all", 2 * sent, "elements", [line.id for line in lines])
    return Strategy(
        name,
        MODEL_MEANING[name],
        [(f"{name}-{WEIGHTS}", WEIGHTS, "whole layers on a stage")],
        (("moved forward", lines[:1]), ("moved backward", lines[1:])),
        [],
        [*terms, total],
    )
