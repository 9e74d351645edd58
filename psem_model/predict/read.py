"""The plan that is asked for: of a model whose shape is given, or of Psi parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from psem_model.predict import model_plans
from psem_model.predict.asked import OF_MODELS, STEP, Asked
from psem_model.predict.plan import Plan
from psem_model.predict.realised import require_realised
from psem_model.reading import placements, words
from psem_model.reading.meshes import devices_of, mesh_of, required
from psem_model.reading.products import Expression, is_file, parse, require_different
from psem_model.reading.profiles import require_held
from psem_model.reading.shapes import is_shape, model_of, require_model
from psem_model.text.errors import BadInput, quoted
from psem_model.text.files import named
from spec.costs.model_costs import largest_part, parameters
from spec.derivation.steps import step_of
from spec.devices.layouts import LayoutError
from spec.devices.mesh import group_size
from spec.language.steps import Step
from spec.models.custom import Custom
from spec.models.opaque import Opaque
from spec.models.profiles import TEXTBOOK, realised_parts
from spec.models.states import State
from spec.pipelines.pipeline import Order, Pipeline
from spec.plans.compose import Factor, Product
from spec.plans.modes import Mode
from spec.plans.placement import Placement
from spec.plans.strategies import STRATEGIES

SIMULATE = "simulate"  # the command that takes schedules and perceptrons as well


def read(asked: Asked, global_batch: str | None = None) -> Plan:
    """The plan that is asked for; of so many samples a step, if these are given. Raises BadInput."""
    if asked.schedule is None and asked.strategy is not None and is_file(asked.strategy):
        asked = replace(asked, schedule=asked.strategy, strategy=None)
    _require_one(asked)
    require_model(asked.shape)
    if global_batch is not None:
        asked.refuse(["accumulate"], "with --global-batch", "one of the two")
        asked.refuse(["placement"], "with --global-batch", "--accumulate")
        asked = _with_batch(asked, parse(asked.strategy) if asked.strategy else None, global_batch)
    if asked.schedule is not None:
        plan = _of_schedule(asked, asked.schedule)
        if not plan.opaque:
            model_plans.require_effect(asked, [plan])
        return plan
    found = None if asked.strategy is None else parse(asked.strategy)
    plan = _read(asked, found)
    require_realised(asked, [plan])
    return plan


def _read(asked: Asked, found: Expression | None) -> Plan:
    """The plan of a strategy, or of a placement."""
    if asked.has_samples and asked.psi is None and asked.placement is not None:
        placed, text = placed_as(asked, found)
        if any(mode is not Mode.SHARDED for _, mode in dict(placed.modes)[State.ACTIVATIONS]):
            raise BadInput(
                "--placement: given activations otherwise than S, with a model's samples; expected "
                "activations=S, and --recompute or --offload-activations"
            )
        found = Expression(text, _placed(placed), {}, (0,), {})
        asked = replace(asked, hold=False)  # the placement says it
    elif found is None or asked.placement is not None or (found.is_of_states and not asked.has_samples):
        return _of_states(asked, found)
    plan = model_plans.plan(found, asked)
    model_plans.require_effect(asked, [plan])
    return plan


def _require_one(asked: Asked) -> None:
    """Raise BadInput unless there is a strategy, a placement or a schedule, one of the three."""
    several = f"{asked.command}: expected a strategy, --placement or --schedule"
    others = asked.strategy is not None or asked.placement is not None or asked.hold
    if asked.schedule is not None and others:
        raise BadInput(f"{several}, one of the three; nearest: --schedule alone")
    if asked.schedule is None and asked.strategy is None and asked.placement is None:
        raise BadInput(f"{several}; nearest: {asked.command} zero3")


def read_several(
    asked: Asked, strategies: Sequence[str], global_batch: str | None = None
) -> list[Plan]:
    """Plans that differ in their strategies, and perhaps in how many micro-steps they take.

    `global_batch`: samples of a step, from which the number of micro-steps of each plan follows.
    Raises BadInput.
    """
    if len(strategies) < 2:
        raise BadInput(
            f'{asked.command}: expected two strategies or more, such as "zero1(64)" "zero3(64)"'
        )
    require_model(asked.shape)
    found = [None if is_file(text) else parse(text) for text in strategies]
    expressions = [expression for expression in found if expression is not None]
    require_different(expressions)
    for text in strategies:
        if is_file(text) and strategies.count(text) > 1:
            raise BadInput(f"strategies: given {quoted(text)} twice; expected plans that differ")
    steps = _micro_steps(asked, found, global_batch)
    devices = devices_of(found, asked.devices)
    several = [
        replace(
            asked, strategy=text if e else None, schedule=None if e else text, devices=of, accumulate=m
        )
        for e, text, of, m in zip(found, strategies, devices, steps, strict=True)
    ]
    if global_batch is not None:
        several = [
            _with_batch(each, expression, global_batch)
            for each, expression in zip(several, found, strict=True)
        ]
    pairs = [*zip(found, several, strict=True)]
    of_model = asked.has_samples and asked.psi is None
    if not of_model:
        asked.refuse(["hold"], "without --sequence", "both, for the activations")
    for expression in expressions:
        if not of_model and not expression.is_of_states:
            raise BadInput(
                f"{asked.command}: given {quoted(expression.text)}, which cuts the model; expected its "
                "shape, as --config config.json, and --sequence"
            )
    plans = [_one_of_several(each, expression, of_model) for expression, each in pairs]
    sized = [(e, mesh_of(e, of)) for e, of in zip(found, devices, strict=True) if e is not None]
    require_different([replace(expression, sizes=mesh) for expression, mesh in sized])
    require_realised(asked, plans)
    if of_model:
        model_plans.require_effect(asked, plans)
    return plans


def _one_of_several(asked: Asked, found: Expression | None, of_model: bool) -> Plan:
    if found is None:
        return _of_schedule(asked, str(asked.schedule))
    return model_plans.plan(found, asked) if of_model else _of_states(asked, found)


def _micro_steps(
    asked: Asked, found: Sequence[Expression | None], global_batch: str | None
) -> list[str]:
    """How many micro-steps each plan takes, as it was typed: one number for all, or one for each."""
    given = asked.accumulate
    if given is None:
        return ["1"] * len(found)
    if global_batch is not None:
        raise BadInput("--global-batch: given with --accumulate; expected one of the two")
    each = given.split(",")
    if len(each) not in (1, len(found)):
        raise BadInput(
            f"--accumulate: given {quoted(given)}; expected one number, or {len(found)}, one a plan"
        )
    return each * len(found) if len(each) == 1 else each


def _with_batch(asked: Asked, found: Expression | None, global_batch: str) -> Asked:
    """With as many micro-steps as take so many samples."""
    samples = words.count("--global-batch", global_batch, "samples")
    if found is None:
        at_once = _of_schedule(asked, str(asked.schedule)).samples_of_step  # of one micro-step
    else:
        mesh = mesh_of(found, asked.devices)
        cut = [axis.name for axis in found.product.cuts if axis.stream == "b"]
        at_once = asked.samples() * group_size(mesh, [*found.product.batch_axes, *cut])
    if samples % at_once:
        raise BadInput(
            f"--global-batch: given {samples:,}; expected a multiple of {at_once:,}, the samples of a "
            f"micro-step of {quoted(asked.schedule if found is None else found.text)}"
        )
    return replace(asked, accumulate=str(samples // at_once))


# ------------------------------------------------------------------------------ training states
def _of_states(asked: Asked, found: Expression | None) -> Plan:
    placed, text = placed_as(asked, found)
    if found is None:
        mesh = words.mesh(required(asked.devices), placed.axes)
        product = _placed(placed)
    else:
        mesh, product = mesh_of(found, asked.devices), found.product
    return _sized(asked, text, product, mesh)


def _placed(placement: Placement) -> Product:
    """States placed so, and nothing cut but samples."""
    return Product((Factor("placement", placement.axes, placement),))


def _of_schedule(asked: Asked, path: str) -> Plan:
    from psem_model.reading.schedules import opened, text_of
    from psem_model.reading.step_reader import read_step
    from psem_model.reading.toml_lines import locate

    file = opened(text_of(path), path)
    (step, places), axes = read_step(file), file.declared()
    if not step.is_opaque:
        model_plans.require_textbook(asked)
        asked = replace(asked, profile=TEXTBOOK.name)
        try:
            return model_plans.of_step(asked, path, axes, step)
        except LayoutError as error:
            line = f", line {locate(file.text, places[error.at])}" if error.at in places else ""
            expected = "expected a step that can be run: psem check"
            raise BadInput(f"{named(path)}{line}: {error}; {expected}") from None
    if asked.has_samples and asked.psi is None:
        profile = asked.realises
        model = model_plans.masked(model_of(asked.shape), asked)
        of = realised_parts(model, profile, asked.bytes.computed)
        (group,) = step.groups
        step = step_of(group.schedule, of, profile)
        return model_plans.of_step(asked, path, axes, step, profile)
    mesh = words.mesh(required(asked.devices), axes)
    return _sized(asked, path, Product(()), mesh, step)


def _sized(
    asked: Asked, text: str, product: Product, mesh: dict[str, int], written: Step | None = None
) -> Plan:
    """The plan with so many parameters as were typed."""
    psi, unit, perceptron = _size(asked)
    _require_types(asked)
    found = Plan(
        Opaque(psi),
        product,
        mesh,
        pipe=Pipeline(Order.ONE_F_ONE_B, 1, asked.count_of_steps()),
        policy=asked.bytes,
        unit=unit,
        text=text,
        written=written,
        padded=not asked.divisible,
        perceptron=perceptron,
        profile=model_plans.fitted(asked.realises, product),
    )
    model_plans.require_owners(found)
    if written is None:
        require_held(found.profile, found.model)
    return found


def _require_types(asked: Asked) -> None:
    """Raise BadInput for a profile that says nothing of types, where only those of states count."""
    profile = asked.realises
    if profile.differs and not profile.says_types:
        raise BadInput(
            f"--profile: given {quoted(asked.profile)} without a model's shape and --sequence; "
            "expected both, or a profile with types of the states, such as fsdp2"
        )


def placed_as(asked: Asked, found: Expression | None) -> tuple[Placement, str]:
    """How training states are placed, by a strategy, a product of them or --placement; its name."""
    given, command = asked.placement, asked.command
    if found is not None and given is not None:
        raise BadInput(
            f"{command}: given {quoted(found.text)} and --placement; expected a strategy or "
            "--placement, one of the two"
        )
    if given is not None:
        placed = placements.placement(given, asked.hold)
        return placed, f"placement {placements.spelled(placed)}"
    if found is None:
        raise BadInput(f"{command}: expected a strategy or --placement; nearest: {command} zero3")
    if found.text in STRATEGIES:
        if asked.hold:
            raise BadInput("--hold goes with --placement; expected fsdp-hold for FSDP")
    else:
        asked.refuse(["hold"], f"with {quoted(found.text)}", "it with --placement")
    return found.product.states, found.text


def _size(asked: Asked) -> tuple[int, int | None, tuple[int, int] | None]:
    """Parameters, and in what units; of a perceptron, its layers and their width too."""
    simulated = asked.command == SIMULATE and not is_shape(asked.shape)
    if simulated and (asked.psi is None) is (asked.mlp is None):
        raise BadInput("simulate: expected --psi or --mlp, one of the two; nearest: --psi 1000")
    if asked.mlp is not None:
        if asked.unit is not None:
            raise BadInput("--unit: given with --mlp; expected no unit: it is a layer")
        asked.refuse(OF_MODELS, "with --mlp", "a model's shape and --sequence, or --mlp alone")
        layers, width = words.perceptron(asked.mlp)
        of_layer = width * (width + 1)  # weights and biases
        return layers * of_layer, of_layer, (layers, width)
    psi, largest = _parameters(asked)
    unit = asked.unit_of(psi)
    return psi, largest if unit is None else unit, None


def _parameters(asked: Asked) -> tuple[int, int | None]:
    """How many parameters there are, by --psi or a model's shape; then, those of its largest part."""
    if asked.psi is not None and is_shape(asked.shape):
        raise BadInput(
            f"--psi: given {quoted(asked.psi)} with a model's shape, which has parameters of its own; "
            "expected one of the two"
        )
    if asked.psi is None and not is_shape(asked.shape):
        raise BadInput(
            "--psi: expected the parameters, or a model's shape (--config config.json, or --layers, "
            "--hidden and --heads), one of the two"
        )
    if asked.psi is not None:
        asked.refuse((*STEP, "block"), "with --psi", "a model's shape in its place")
        return words.parameters("--psi", asked.psi), None
    asked.refuse(STEP, "without --sequence", "both, for the activations")
    model = model_of(asked.shape)
    tokens = asked.tokens() if isinstance(model, Custom) and model.weighs_positions else 1
    return sum(parameters(model, tokens).values()), largest_part(model, tokens)
