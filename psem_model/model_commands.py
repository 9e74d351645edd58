"""What `psem predict` does with a model's shape: strategies that cut the model, and its parameters."""

from __future__ import annotations

import json
from typing import Any

import click

from psem_model.inputs import BadInput, count

STEP = ("sequence", "micro_batch", "recompute", "schedule", "chunks")  # of a step, not of the model


def _shape(model: dict[str, Any]) -> dict[str, str | None]:
    return {name: model[name] for name in model if name not in (*STEP, "config", "block")}


def parameters(psi: str | None, model: dict[str, Any]) -> int:
    """How many parameters there are, from --psi, or from the model's shape."""
    shape = _shape(model)
    from_model = model["config"] is not None or any(v is not None for v in shape.values())
    if (psi is None) is not from_model:
        raise BadInput(
            "--psi: expected the parameters, or a model's shape (--config config.json, or --layers, "
            "--hidden and --heads), one of the two"
        )
    if psi is not None:
        return count("--psi", psi, "parameters")
    from psem_model import model_inputs
    from psem_model.model_predict import ModelPlan

    found = model_inputs.transformer(model["config"], model["block"], shape, model["sequence"])
    return int(ModelPlan(found, (), {}, 1, 1).psi)


def predict(
    strategy: str,
    devices: str,
    policy: str,
    accumulate: str,
    hold: bool,
    as_json: bool,
    psi: str | None,
    placement: str | None,
    unit: str | None,
    **model: Any,
) -> None:
    """Print what a strategy that cuts the model needs and moves."""
    for name, given in (("--psi", psi), ("--placement", placement), ("--unit", unit)):
        if given is not None:
            raise BadInput(f"{name}: given with {strategy}, which cuts the model; expected its shape")
    from psem_model import model_inputs

    model_inputs.names_of(strategy)
    found = model_inputs.plan(
        strategy,
        devices,
        model_inputs.transformer(model["config"], model["block"], _shape(model), model["sequence"]),
        model["sequence"],
        model["micro_batch"],
        accumulate,
        policy,
        model["recompute"],
        hold,
        model["schedule"],
        model["chunks"],
    )
    from psem_model.model_show import ModelShown

    shown = ModelShown(strategy, found)
    click.echo(json.dumps(shown.json(), indent=2) if as_json else "\n".join(shown.lines()))
