"""What `psem predict` does with a model's shape: strategies that cut the model, and its parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from psem_model.inputs import BadInput, count
from psem_model.options import (
    ACCUMULATE,
    HELD,
    JSON,
    MODEL,
    OF_DEVICES,
    POLICY,
    PSI,
    UNIT,
    options,
)

SMALL = 3  # devices along an axis, or micro-steps, that show all there is to see
if TYPE_CHECKING:
    from psem_model.expressions import Expression
    from psem_model.model_predict import ModelPlan

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


def planned(found: Expression, devices: str | None, model: dict[str, Any], **step: Any) -> ModelPlan:
    """A plan from what was typed."""
    from psem_model import model_inputs

    sizes = model_inputs.mesh(found, devices)
    shape = _shape(model)
    shaped = model_inputs.transformer(model["config"], model["block"], shape, model["sequence"])
    of_model = {name: model[name] for name in STEP}
    return model_inputs.plan(found, sizes, shaped, model_inputs.Step(**step, **of_model))


@click.command()
@click.argument("strategies", nargs=-1, metavar="STRATEGY STRATEGY ...")
@options(click.option("--psi", help=PSI), click.option("--devices", help=OF_DEVICES))
@options(POLICY, ACCUMULATE, UNIT, HELD, *MODEL, JSON)
def compare(
    strategies: tuple[str, ...],
    psi: str | None,
    devices: str | None,
    policy: str,
    accumulate: str,
    unit: str | None,
    hold: bool,
    as_json: bool,
    **model: Any,
) -> None:
    """Set two or more plans side by side: memory, what is sent along each axis, verdict.

    Strategies or products of them: psem compare "zero1(64)" "zero3(64)" --psi 7e9. With a model's
    shape and --sequence, activations too, and strategies that cut the model.
    """
    from psem_model import compare as sides
    from psem_model import inputs, model_inputs
    from psem_model.expressions import parse
    from psem_model.predict import NotRealisable
    from psem_model.predict import predict as predicted
    from psem_model.product_check import check_product

    if len(strategies) < 2:
        raise BadInput('compare: expected two strategies or more, such as "zero1(64)" "zero3(64)"')
    given = inputs.policy(policy)
    found = []
    for expression in map(parse, strategies):
        if has_samples(model) and psi is None:
            step = {"policy": policy, "accumulate": accumulate, "held": hold, "unit": unit}
            plan = planned(expression, devices, model, **step)
            sizes, few = sides.small(plan.mesh), min(plan.pipe.micro_batches, SMALL)
            checked = check_product(expression, plan.model, sizes, few, given)
            found.append(sides.of_model(expression.text, plan, checked))
            continue
        if not expression.is_of_states:
            raise BadInput(
                f"compare: given {expression.text!r}, which cuts the model; expected its shape, as "
                "--config config.json, and --sequence"
            )
        size = parameters(psi, model)
        of_unit = None if unit is None else min(size, count("--unit", unit, "elements"))
        mesh = model_inputs.mesh(expression, devices)
        steps = count("--accumulate", accumulate, "micro-steps")
        try:
            costs = predicted(expression.product.states, size, mesh, given, steps, of_unit)
        except NotRealisable as error:
            raise BadInput(f"compare: {expression.text!r} is not realisable: {error}") from None
        found.append(sides.of_states(expression.text, costs, True))
    as_lines = "\n".join(sides.lines(found))
    click.echo(json.dumps([f.json() for f in found], indent=2) if as_json else as_lines)


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
