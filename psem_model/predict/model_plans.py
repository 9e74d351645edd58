"""The plan of a model on the axes of a mesh, from what was typed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from psem_model.predict.asked import OF_PIPELINES, Asked
from psem_model.predict.cuts import (
    copied,
    most_chunks,
    named,
    require_cut_there,
    require_even,
    require_experts,
    require_layers,
    require_placed,
)
from psem_model.predict.plan import Plan
from psem_model.reading import words
from psem_model.reading.meshes import mesh_of, required
from psem_model.reading.products import Expression
from psem_model.reading.profiles import require_held
from psem_model.reading.shapes import Typed, configured, is_own, model_of
from psem_model.text.errors import BadInput, quoted
from psem_model.text.figures import counted
from spec.checking.programs import types_of
from spec.checking.steps import check_step, in_part
from spec.costs.model_costs import parameters
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS
from spec.devices.layouts import LayoutError
from spec.devices.mesh import group_size
from spec.language.programs import Program
from spec.language.schedule import Kind, Schedule
from spec.language.steps import Step
from spec.meaning.terms import Terms
from spec.models.custom import Custom
from spec.models.opaque import Opaque
from spec.models.parts import parts
from spec.models.profiles import TEXTBOOK, Padding, Profile
from spec.models.states import State
from spec.models.transformer import Transformer, with_masks
from spec.numbers.arithmetic import Number, quotient
from spec.pipelines.pipeline import Order, Pipeline, least_micro_batches
from spec.pipelines.stages import ends
from spec.plans.compose import Product
from spec.plans.model_strategies import EXPERTS, INSIDE_MLPS, POSITIONS

RECOMPUTE = {again: again for again in (NOTHING, PAIRS, EVERYTHING, FROM_SLICES)}
RECOMPUTE |= {"selective": PAIRS, "full": EVERYTHING}  # as Megatron-LM calls them
ORDERS = tuple(kind.value for kind in Order)
MOST_CHUNKS = 100_000  # that can be told apart in good time


def held(product: Product, is_held: bool) -> Product:
    """The product, with what is gathered in forward kept for backward, or gathered again."""
    return Product(
        tuple(
            replace(factor, cuts=factor.cuts and replace(factor.cuts, held=is_held))
            for factor in product.factors
        )
    )


def plan(found: Expression, asked: Asked) -> Plan:
    """A model on the axes of a product of strategies. Raises BadInput."""
    asked.refuse(["psi", "mlp"], f"with {quoted(found.text)}", "the model's shape in its place")
    if asked.divisible:
        raise BadInput(
            f"--divisible: given with {quoted(found.text)} and a model; expected it with --psi"
        )
    sizes, given = mesh_of(found, asked.devices), asked.shape
    model = model_of(given)
    if is_own(given):
        require_textbook(asked, "a model of one's own")
    found, sizes = copied(found, sizes, model, asked.realises)
    micro_batches = asked.count_of_steps("micro-batches")
    pipe = Pipeline(Order.ONE_F_ONE_B, 1, micro_batches)
    if found.product.pipe:
        stages = sizes[found.product.pipe]
        pipe = _pipeline(asked, found.text, model, stages, micro_batches)
        if not pipe.layers:
            require_layers(found, model, stages, pipe.chunks)
    planned = _planned(
        asked,
        model,
        held(found.product, asked.hold),
        sizes,
        pipe,
        again=RECOMPUTE[given.get("recompute") or NOTHING],
        offload=bool(asked.model.get("offload_activations")),
        text=found.text,
        profile=fitted(asked.realises, found.product),
    )
    require_cut_there(found, model)
    require_held(planned.profile, model)
    if planned.again == FROM_SLICES and isinstance(model, Custom) and not model.has_index(POSITIONS):
        raise BadInput(
            f"--recompute: given sliced; expected a model with values of {POSITIONS}, or all"
        )
    with require_derived(found.text, planned.profile, given):
        step = planned.step
        if isinstance(model, Custom):
            check_step(step)
    require_owners(planned)
    require_experts(found, planned.indices.get(EXPERTS, 0))
    sliced = planned.again == FROM_SLICES
    require_even(found, sizes, planned.indices, planned.profile, sliced, named(model))
    require_placed(found, planned.step)
    return planned


def _planned(
    asked: Asked,
    model: Transformer | Custom,
    product: Product,
    sizes: Mapping[str, int],
    pipe: Pipeline,
    **more: Any,
) -> Plan:
    """A model whose samples are given, with no more places and chunks than can be."""
    samples, tokens, policy, model = asked.samples(), asked.tokens(), asked.bytes, masked(model, asked)
    unit = asked.unit_of(sum(parameters(model, tokens).values()))
    more |= {"unit": unit, **configured(asked.shape)}
    planned = Plan(model, product, sizes, samples, tokens, pipe, policy, **more)
    require_places(planned)
    if pipe.virtual_stages > MOST_CHUNKS:
        raise BadInput(
            f"--devices, --chunks: given {counted(pipe.stages, 'stage')} of "
            f"{counted(pipe.chunks, 'chunk')}; expected at most {MOST_CHUNKS:,} chunks in all"
        )
    return planned


def masked(model: Transformer | Custom, asked: Asked) -> Transformer | Custom:
    """The model, with masks where its attention is a kernel that is given them. Raises BadInput."""
    if not isinstance(model, Transformer) or not asked.realises.gives_masks:
        return model
    return with_masks(model, asked.tokens())


@contextmanager
def require_derived(text: str, profile: Profile, shape: Typed) -> Iterator[None]:
    """A right step is derived: what devices send is in their memory, and not inside a kernel."""
    try:
        yield
    except LayoutError as error:
        if is_own(shape):
            what = f"{quoted(text)}: no right step of this model is derived: {error}"
            raise BadInput(
                f"{what}; expected another strategy, or a step of your own: psem derive"
            ) from None
        given = quoted(profile.name)
        expected = "values that are not, by its keys outside or whole"
        raise BadInput(f"--profile: given {given}: {error}; expected {expected}") from None


def fitted(profile: Profile, product: Product) -> Profile:
    """As it realises a product: where parameters are slices there is no one vector, but units."""
    sliced = any(f.states and f.states.rest(State.PARAMETERS).sharded for f in product.factors)
    is_vector = profile.padding is Padding.VECTOR
    return replace(profile, padding=Padding.ELEMENT) if sliced and is_vector else profile


def require_owners(planned: Plan) -> None:
    """Where each weight has one owner, weights are known, and are updated there, and rest whole."""
    require_owned(planned.profile, planned.step)
    has_owners = any(group.schedule.cut for group in planned.step.groups)
    if planned.profile.padding is not Padding.WEIGHT or not has_owners:
        return
    if isinstance(planned.model, Opaque) and not planned.model.shapes:
        raise _not_owned(planned.profile, "a model's shape and --sequence")
    if planned.unit is not None:
        raise _not_owned(planned.profile, "no --unit, as whole weights are sent")


def require_owned(profile: Profile, step: Step) -> None:
    """Where each weight has one owner, it is updated there, and rests whole; so is one vector."""
    if not profile.owners:
        return
    is_vector = profile.padding is Padding.VECTOR
    whole = (State.PARAMETERS,) if is_vector else (State.PARAMETERS, State.GRADIENTS)
    if not all(_by_owners(group.schedule, whole) for group in step.groups):
        leaves = "leaves parameters whole, such as zero2"
        cuts = "cuts the optimizer state alone, such as zero1"
        raise _not_owned(profile, f"a strategy that {leaves if is_vector else cuts}")


def _not_owned(profile: Profile, expected: str) -> BadInput:
    is_vector = profile.padding is Padding.VECTOR
    cut = "all weights are one vector" if is_vector else "each weight has one owner"
    given = f"given {quoted(profile.name)}, where {cut}"
    return BadInput(f"--profile: {given}; expected {expected}")


def _by_owners(schedule: Schedule, whole: Iterable[State]) -> bool:
    """Whether a step's slices are those that are updated, and some states rest whole."""
    updates = (op.within for op in schedule.ops if op.kind is Kind.UPDATE)
    is_whole = not any(schedule.rest(state).sharded for state in whole)
    slices = {*schedule.rest(State.OPTIMIZER).sharded}
    return is_whole and all({*within} == slices == {*schedule.cut} for within in updates)


def of_step(
    asked: Asked, path: str, axes: tuple[str, ...], step: Step, profile: Profile = TEXTBOOK
) -> Plan:
    """A model's step of a file, for a model that has such parts.

    Raises BadInput, and LayoutError, with the line, for one that is wrong on slices.
    """
    sizes = words.mesh(required(asked.devices), axes)
    model = masked(model_of(asked.shape), asked)
    asked.refuse(["psi", "mlp", "recompute", "hold"], "with a model's step", "its shape alone")
    has = [(program.part.name, *map(str, program.part.weights)) for program in step.programs]
    needs = [(part.name, *map(str, part.weights)) for part in parts(model)]
    for one, other in zip_longest(has, needs, fillvalue=()):
        if sorted(one) != sorted(other):
            wrong = sorted({*one} ^ {*other})[0]
            raise BadInput(
                f"{quoted(path)}: given a model that {'has' if wrong in one else 'lacks'} {wrong}; "
                "expected the parts and weights of the shape (see --vocabulary); nearest: psem derive "
                "again, with the --model, or the --block or --experts of the model"
            )
    written = typed(step)
    micro_batches = asked.count_of_steps("micro-batches")
    pipe = Pipeline(Order.ONE_F_ONE_B, 1, micro_batches)
    if step.pipe:
        pipe = _pipeline(asked, path, model, sizes[step.pipe], micro_batches)
        most, expected = most_chunks(model)
        if not pipe.layers and pipe.virtual_stages > most:
            raise BadInput(
                f"--devices, --chunks: given {counted(pipe.stages, 'stage')} of "
                f"{counted(pipe.chunks, 'chunk')}; expected {expected}"
            )
    planned = _planned(
        asked,
        model,
        Product(()),
        sizes,
        pipe,
        offload=bool(asked.model.get("offload_activations")),
        text=path,
        written=written,
        profile=profile,
    )
    placed = [lies for p in written.programs for lies in p.lies.values()]
    cut = {(lie.index, axis) for lies in placed for axis, lie in lies.items() if axis in sizes}
    names = named(model)
    for index in dict.fromkeys(index for index, _ in cut if index in names):
        devices = group_size(sizes, {axis for of, axis in cut if of == index})
        if planned.indices[index] % devices:
            raise BadInput(
                f"--devices: given {devices} along what cuts {names[index]}; expected a divisor of "
                f"{planned.indices[index]:,}"
            )
    return planned


def typed(step: Step) -> Step:
    """The step with where each value of its programs lies. Raises LayoutError."""

    def of(program: Program) -> Program:
        return replace(program, lies={**program.lies, **types_of(program, Terms()).lies})

    return replace(step, programs=tuple(in_part(program, of) for program in step.programs))


def require_textbook(asked: Asked, given: str = "a model's step") -> None:
    """Of a model's step in a file, or a model's file, nothing is realised otherwise than it says."""
    if asked.profile not in (None, TEXTBOOK.name):
        expected = f"{TEXTBOOK.name}: the file says what is computed"
        asked.refuse(["profile"], f"with {given}", expected)


def require_effect(asked: Asked, plans: Sequence[Plan]) -> None:
    """Raise BadInput for an option that was typed and changes nothing in any of the plans."""
    if not any(plan.step.pipe for plan in plans):
        asked.refuse(OF_PIPELINES, "without pp", "a pipeline, as in tp(8) * pp(4)")
    if asked.hold and not any(map(_keeps_gathered, plans)):
        asked.refuse(["hold"], "where backward gathers nothing again", "a strategy such as tp+sp")
    if asked.unit and not any(g.costs.schedule.axes for p in plans for g in p.stage(0).groups):
        expected = "a product with dp, zero1 or the like"
        asked.refuse(["unit"], "where no weight or gradient is sent", expected)


def _keeps_gathered(plan: Plan) -> bool:
    """Whether it keeps for backward what would be gathered again."""
    again = replace(plan, product=held(plan.product, False)).costs
    return any(costs.program.kept != again[name].program.kept for name, costs in plan.costs.items())


def _pipeline(
    asked: Asked, text: str, model: Transformer | Custom, stages: int, micro_batches: int
) -> Pipeline:
    """The pipeline of so many stages that is asked for. Raises BadInput for one that cannot be."""
    given = asked.shape
    order, chunks = given.get("order"), given.get("chunks")
    v = 1 if chunks is None else words.count("--chunks", chunks, "chunks of layers in a stage")
    if order == Order.DUALPIPE_V.value:
        if chunks is not None and v != 2:
            raise BadInput(f"--chunks: given {v} with --order {order}; expected 2")
        v = 2
    usual = Order.INTERLEAVED if v > 1 else Order.ONE_F_ONE_B
    kind = Order(order or usual)
    if v > 1 and kind not in (Order.INTERLEAVED, Order.DUALPIPE_V):
        raise BadInput(f"--order: given {quoted(order)} with --chunks {v}; expected interleaved")
    if kind is Order.INTERLEAVED and chunks is None:
        raise BadInput("--order: given interleaved alone; expected --chunks too, of 2 or more")
    if kind is Order.INTERLEAVED and micro_batches % stages:
        raise BadInput(
            f"--accumulate: given {micro_batches}; expected a multiple of the {stages} stages of "
            f"{quoted(text)}, as interleaved stages need"
        )
    if micro_batches < (least := least_micro_batches(Pipeline(kind, stages, micro_batches, v))):
        raise BadInput(
            f"--accumulate: given {micro_batches}; expected at least {least:,} micro-batches, as "
            f"{kind.value} needs on {stages} stages"
        )
    listed = given.get("stage_layers")
    layers = () if listed is None else _stage_layers(listed, model, stages * v)
    pipe = Pipeline(kind, stages, micro_batches, v, layers=layers)
    if pipe.in_two_parts and asked.model.get("offload_activations"):
        raise BadInput(
            f"--offload-activations: given with --order {kind.value}; expected an order with backward "
            "in one part, such as 1f1b"
        )
    return pipe


def _stage_layers(given: str, model: Transformer | Custom, virtual_stages: int) -> tuple[int, ...]:
    """Layers of each stage, chunk by chunk; the first may have words alone, and so may the last."""
    expected = f"{counted(virtual_stages, 'number')} that make {model.layers:,} layers in all"
    try:
        found = tuple(map(int, given.split(",")))
    except ValueError:
        found = ()
    around = ends(model, Pipeline(Order.ONE_F_ONE_B, virtual_stages, 1))
    may_have_none = {int(piece.stage) for piece in around}
    least = [0 if number in may_have_none else 1 for number in range(virtual_stages)]
    if len(found) != virtual_stages or sum(found) != model.layers:
        raise BadInput(f"--stage-layers: given {quoted(given)}; expected {expected}")
    if any(count < low for count, low in zip(found, least, strict=True)):
        raise BadInput(f"--stage-layers: given {quoted(given)}; expected a layer on each stage between")
    return found


def require_places(found: Plan) -> None:
    """A model that learns places has no more of them; one without tokens has one."""
    model = found.model
    if isinstance(model, Custom) and found.sequence != 1 and not model.has_index(POSITIONS):
        raise BadInput(
            f"--sequence: given {found.sequence:,}; expected 1, as no value has the index {POSITIONS}"
        )
    places = model.positions if isinstance(model, Transformer) else 0
    if 0 < places < found.sequence:
        raise BadInput(
            f"--sequence: given {found.sequence:,}; expected at most {places:,}, the places that the "
            "model learns"
        )


def evened(plan: Plan, index: str) -> Number:
    """How many values of an index there would be, were there on each device as many as on the first.

    Along the axes that cut some weight along it.
    """
    lies = (program.lies[weight] for program in plan.step.programs for weight in program.part.weights)
    cut = {axis for of in lies for axis, lie in of.items() if lie.index == index}
    devices = group_size(plan.mesh, cut)
    return devices * quotient(plan.indices.get(index, 0), devices)


def uneven(plan: Plan) -> tuple[str, ...]:
    """The indices of features inside MLPs of which not all devices have as many."""
    return tuple(index for index in INSIDE_MLPS if evened(plan, index) != plan.indices.get(index, 0))
