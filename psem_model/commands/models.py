"""What commands do with a model's shape: strategies that cut the model, and its parameters."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from psem_model.commands.help import Command
from psem_model.commands.options import (
    ACCUMULATE,
    DEVICES,
    HELD,
    JSON,
    MODEL,
    POLICY,
    PSI,
    STRATEGIES,
    UNIT,
    options,
    refuse,
    require_few,
    ticker,
    typed,
)
from psem_model.reading import words
from psem_model.reading.words import count
from psem_model.text.errors import REJECTED, BadInput, choose, quoted

SMALL = 3  # devices along an axis, or micro-steps, that show all there is to see
if TYPE_CHECKING:
    from psem_model.predict.models import ModelPlan
    from psem_model.reading.products import Expression

OF_PIPELINES = ("order", "chunks")
# of a step, not of the model
STEP = ("sequence", "micro_batch", "recompute", "offload_activations", *OF_PIPELINES)


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
        refuse((*STEP, "block"), "with --psi", "a model's shape in its place")
        return words.parameters("--psi", psi)
    if model["sequence"] is None:
        refuse(STEP, "without --sequence", "both, for the activations")
    else:
        learns = model["config"] is None and model["block"] == "gpt" and model["vocabulary"]
        others = [name for name in STEP if not (learns and name == "sequence")]  # its places
        refuse(others, "with --placement", "a strategy, for the activations")
    from psem_model.reading import plans as model_inputs
    from spec.model_costs import parameters as sizes_of

    found = model_inputs.transformer(model["config"], model["block"], shape, model["sequence"])
    return int(sum(sizes_of(found).values()))


def has_samples(model: dict[str, Any]) -> bool:
    """Whether the model's shape and its samples are given, so that activations have a size."""
    shape = model["config"] is not None or any(v is not None for v in _shape(model).values())
    return shape and model["sequence"] is not None


def is_of_model(found: Expression, model: dict[str, Any]) -> bool:
    """Whether a strategy is one of the model's, with activations, or of the training states alone."""
    return not found.is_of_states or has_samples(model)


def planned(found: Expression, devices: str | None, model: dict[str, Any], **step: Any) -> ModelPlan:
    """A plan from what was typed."""
    from psem_model.reading import plans as model_inputs

    sizes = model_inputs.mesh(found, devices)
    shape = _shape(model)
    shaped = model_inputs.transformer(model["config"], model["block"], shape, model["sequence"])
    of_model = {name: model[name] for name in STEP}
    return model_inputs.plan(found, sizes, shaped, model_inputs.Step(**step, **of_model))


def require_effect(plans: Sequence[ModelPlan]) -> None:
    """Raise BadInput for an option that was typed and changes nothing in any of the plans."""
    if not any(plan.product.pipe for plan in plans):
        refuse(OF_PIPELINES, "without pp", "a pipeline, as in tp(8) * pp(4)")
    if typed(["hold"]) and not any(map(_keeps_gathered, plans)):
        refuse(["hold"], "where backward gathers nothing again", "a strategy such as tp+sp")
    if typed(["unit"]) and not any(g.costs.schedule.axes for p in plans for g in p.stage(0).groups):
        refuse(["unit"], "where no weight or gradient is sent", "a product with dp, zero1 or the like")


def _keeps_gathered(plan: ModelPlan) -> bool:
    """Whether it keeps for backward what would be gathered again."""
    from psem_model.reading.plans import held

    again = replace(plan, product=held(plan.product, False)).costs
    return any(costs.program.kept != again[name].program.kept for name, costs in plan.costs.items())


@click.command(
    cls=Command,
    examples=[
        'psem compare "zero1(64)" "zero3(64)" --psi 7e9',
        'psem compare "zero1(64)" "zero1(8) * tp(8)" --config llama-2-7b.json --sequence 4096',
    ],
)
@options(STRATEGIES, DEVICES, HELD, PSI, *MODEL, POLICY, ACCUMULATE, UNIT, JSON)
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

    With a model's shape and --sequence, activations too, and strategies that cut the model. Memory is
    per device, and what is sent per device and step: of a pipeline's fullest and of its busiest stage.
    Exit code: 0 if all are accepted, 1 if one is rejected.
    """
    from psem_model.check.products import check_product
    from psem_model.predict import compare as sides
    from psem_model.predict.states import NotRealisable, evaluate, require_realisable
    from psem_model.reading import plans as model_inputs
    from psem_model.reading.products import parse, require_different
    from spec.memory import Sizes

    if len(strategies) < 2:
        raise BadInput('compare: expected two strategies or more, such as "zero1(64)" "zero3(64)"')
    given = words.policy(policy)
    expressions = [parse(text) for text in strategies]
    require_different(expressions)
    of_devices = model_inputs.devices_of(expressions, devices)
    plans = []
    if has_samples(model) and psi is None:
        step = {"policy": policy, "accumulate": accumulate, "held": hold, "unit": unit}
        plans = [
            planned(expression, sizes, model, **step)
            for expression, sizes in zip(expressions, of_devices, strict=True)
        ]
        require_effect(plans)
    else:
        refuse(["hold"], "without --sequence", "both, for the activations")
    found = []
    for number, expression in enumerate(expressions):
        if plans:
            plan = plans[number]
            sizes, few = sides.small(plan.mesh), min(plan.pipe.micro_batches, SMALL)
            checked = check_product(expression, plan.model, sizes, few, given)
            found.append(sides.of_model(expression.text, plan, checked))
            continue
        if not expression.is_of_states:
            raise BadInput(
                f"compare: given {quoted(expression.text)}, which cuts the model; expected its shape, "
                "as --config config.json, and --sequence"
            )
        size = parameters(psi, model)
        of_unit = None if unit is None else min(size, words.parameters("--unit", unit, "elements"))
        mesh = model_inputs.mesh(expression, of_devices[number])
        steps = count("--accumulate", accumulate, "micro-steps")
        placed, refused = expression.product.states, None
        try:
            require_realisable(placed, mesh, steps, given)
        except NotRealisable as error:
            refused = error
        costs = evaluate(placed, Sizes(size, mesh, given, of_unit), steps)
        found.append(sides.of_states(expression.text, costs, refused))
    as_lines = "\n".join(sides.lines(found))
    click.echo(json.dumps([f.json() for f in found], indent=2) if as_json else as_lines)
    sys.exit(REJECTED if any(f.rejected for f in found) else 0)


def predict(
    found: Expression,
    devices: str | None,
    psi: str | None,
    exact: bool,
    as_json: bool,
    model: dict[str, Any],
    **step: Any,
) -> None:
    """Print what a product of strategies needs and moves."""
    refuse(["psi"], f"with {quoted(found.text)}", "the model's shape in its place")
    if not exact:
        raise BadInput(
            f"--divisible: given with {quoted(found.text)} and a model; expected it with --psi"
        )
    plan = planned(found, devices, model, **step)
    require_effect([plan])
    from psem_model.predict.show_models import ModelShown
    from psem_model.predict.states import require_realisable

    require_realisable(plan.product.states, plan.mesh, plan.pipe.micro_batches, plan.policy)
    shown = ModelShown(found, plan)
    click.echo(json.dumps(shown.json(), indent=2) if as_json else "\n".join(shown.lines()))


def simulate(
    found: Expression,
    devices: str | None,
    model: dict[str, Any],
    steps: str,
    arithmetic: str,
    seed: str,
    as_json: bool,
    **step: Any,
) -> NoReturn:
    """Run a product of strategies beside what is predicted, and exit."""
    plan = planned(found, devices, model, **step)
    require_effect([plan])
    from psem_model.measure.products import ARITHMETICS, require_fit, simulate_product, works

    numbers = choose("--arithmetic", arithmetic, dict.fromkeys(name for name, _ in ARITHMETICS))
    many, first = count("--steps", steps, "steps"), count("--seed", seed, "", least=0)
    require_few(works(plan, many))
    require_fit(plan)
    with ticker("simulating", works(plan, many)) as progress:
        run = simulate_product(plan, many, numbers, first, progress)
    click.echo(json.dumps(run.json(), indent=2) if as_json else "\n".join(run.lines()))
    sys.exit(0 if run.as_predicted else REJECTED)
