"""What `psem predict` does with a model's shape: strategies that cut the model, and its parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from psem_model.inputs import BadInput, count

if TYPE_CHECKING:
    from psem_model.expressions import Expression

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
    from psem_model.configurations import count as count_parameters

    found = model_inputs.transformer(model["config"], model["block"], shape, model["sequence"])
    return count_parameters(found)


def has_samples(model: dict[str, Any]) -> bool:
    """Whether the model's shape and its samples are given, so that activations have a size."""
    shape = model["config"] is not None or any(v is not None for v in _shape(model).values())
    return shape and model["sequence"] is not None


def predict(
    found: Expression,
    devices: str | None,
    psi: str | None,
    placement: str | None,
    as_json: bool,
    model: dict[str, Any],
    **step: Any,
) -> None:
    """Print what a product of strategies needs and moves."""
    for name, given in (("--psi", psi), ("--placement", placement)):
        if given is not None:
            raise BadInput(f"{name}: given with {found.text!r}; expected the model's shape")
    from psem_model import model_inputs

    sizes = model_inputs.mesh(found, devices)
    shaped = model_inputs.transformer(model["config"], model["block"], _shape(model), model["sequence"])
    of_model = {name: model[name] for name in STEP}
    plan = model_inputs.plan(found, sizes, shaped, model_inputs.Step(**step, **of_model))
    from psem_model.model_show import ModelShown
    from psem_model.predict import require_realisable

    states = plan.product.states
    require_realisable(states, sizes, plan.pipe.micro_batches, plan.policy)
    shown = ModelShown(found, plan)
    click.echo(json.dumps(shown.json(), indent=2) if as_json else "\n".join(shown.lines()))
