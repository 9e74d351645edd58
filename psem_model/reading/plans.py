"""Reading what a user typed about a model and the axes it is cut along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from psem_model.commands.options import OF_DEVICES, refuse
from psem_model.predict.models import ModelPlan
from psem_model.reading import placements, words
from psem_model.reading.products import Expression
from psem_model.text.errors import BadInput, choose, quoted
from psem_model.text.figures import counted
from spec.arithmetic import Number
from spec.compose import Product
from spec.distribute import ALL, FROM_SLICES, NOTHING, PAIRS
from spec.mesh import group_size
from spec.pipeline import Kind, Pipeline
from spec.placement import Placement
from spec.strategies import STRATEGIES
from spec.transformer import Transformer

RECOMPUTE = {again: again for again in (NOTHING, PAIRS, ALL, FROM_SLICES)}
RECOMPUTE |= {"selective": PAIRS, "full": ALL}  # as Megatron-LM calls them


def transformer(
    config: str | None, block: str, shape: Mapping[str, str | None], sequence: str | None
) -> Transformer:
    """A model from a configuration file, or from the numbers that give its shape."""
    if config is not None:
        given = next((name for name, value in shape.items() if value is not None), None)
        if given:
            raise BadInput(f"--{given.replace('_', '-')}: given with --config; expected one of the two")
        refuse(["block"], "with --config", "one of the two")
        from psem_model.reading.configurations import read

        return read(config)[1]
    for name in ("layers", "hidden", "heads"):
        if shape[name] is None:
            raise BadInput(
                f"--{name}: missing; expected the model's shape, as --config config.json or "
                "--layers, --hidden and --heads"
            )
    numbers = {
        name: None if value is None else words.count(f"--{name.replace('_', '-')}", value, "")
        for name, value in shape.items()
    }
    if (numbers["layers"] or 0) > words.MOST_LAYERS:
        raise BadInput(
            f"--layers: given {quoted(shape['layers'])}; expected at most {words.MOST_LAYERS:,} layers"
        )
    return _shaped(block, numbers, sequence)


def _shaped(block: str, given: dict[str, int | None], sequence: str | None) -> Transformer:
    """A block of one of two kinds, where nothing else is said as its authors built it."""
    hidden, heads = given["hidden"] or 0, given["heads"] or 0
    kv_heads = given["kv_heads"] or heads
    if given["head_dim"] is None and hidden % heads:
        raise BadInput(
            f"--heads: given {heads}; expected a divisor of --hidden {hidden}, or --head-dim"
        )
    if heads % kv_heads:
        raise BadInput(f"--kv-heads: given {kv_heads}; expected a divisor of --heads {heads}")
    if (given["experts"] is None) != (given["chosen"] is None):
        raise BadInput("--experts and --chosen go together; expected both or none")
    if (given["chosen"] or 0) > (given["experts"] or 0):
        raise BadInput(
            f"--chosen: given {given['chosen']}; expected at most --experts {given['experts']}"
        )
    positions = 0
    if given["vocabulary"] and block == "gpt":
        if sequence is None:
            raise BadInput(
                "--sequence: missing; expected the tokens of a sample: gpt learns their places"
            )
        positions = words.count("--sequence", sequence, "tokens")
    llama = choose("--block", block, BLOCKS) == "llama"
    return Transformer(
        layers=given["layers"],
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=given["head_dim"] or hidden // heads,
        feed_forward=given["feed_forward"] or 4 * hidden,
        vocabulary=given["vocabulary"] or 0,
        gated=llama,
        function="silu" if llama else "gelu",
        norm="rms_norm" if llama else "layer_norm",
        biases=frozenset() if llama else frozenset({"qkv", "output", "mlp"}),
        positions=positions,
        angles=llama,
        tied=not llama,
        dropout=not llama,
        experts=given["experts"] or 0,
        chosen=given["chosen"] or 0,
    )


BLOCKS = {
    "gpt": "layer norms, biases, gelu, dropout, tied words (arXiv 2104.04473)",
    "llama": "root mean square norms, gated silu, no biases",
}


def devices_of(plans: Sequence[Expression], devices: str | None) -> list[str | None]:
    """What --devices says of each of several plans: of those that do not say their sizes."""
    sized = next((plan for plan in plans if plan.sizes), None)
    unsized = next((plan for plan in plans if not plan.sizes), None)
    if devices is None and sized and unsized:
        given = f"{quoted(unsized.text)} without sizes beside {quoted(sized.text)}"
        raise BadInput(f"strategy: given {given}; expected dp(8), say, or --devices for it")
    return [None if plan.sizes and unsized else devices for plan in plans]


def mesh(found: Expression, devices: str | None) -> dict[str, int]:
    """Sizes of a product's axes: from the expression, or else from --devices, in the axes' order."""
    axes = found.product.axes
    missing = [axis for axis in axes if axis not in found.sizes]
    if not missing:
        if devices is not None:
            raise BadInput(
                f"--devices: given with {quoted(found.text)}, which says its sizes; expected one of "
                "the two"
            )
        return {axis: found.sizes[axis] for axis in axes}
    if found.sizes:
        number = next(n for n, f in enumerate(found.product.factors) if missing[0] in f.axes)
        raise found.wrong_factor(
            number,
            "one for each axis, such as tp(8), or none and --devices",
            f" without a size for {missing[0]}",
        )
    return words.mesh(required(devices), axes, found.text)


def placed(
    command: str, found: Expression | None, strategy: str | None, placement: str | None, hold: bool
) -> tuple[Placement, str]:
    """How training states are placed, by a strategy, a product of them or --placement; its title."""
    if found is None or found.text in STRATEGIES or placement is not None:
        return placements.chosen(command, strategy, placement, hold)
    refuse(["hold"], f"with {quoted(found.text)}", "it with --placement")
    return found.product.states, found.text


def mesh_of(found: Expression | None, placement: Placement, devices: str | None) -> dict[str, int]:
    """Sizes of its axes."""
    if found is None:
        return words.mesh(required(devices), placement.axes)
    return mesh(found, devices)


def required(devices: str | None) -> str:
    """The number of devices, if it is given."""
    if devices is None:
        raise BadInput(f"--devices: missing; expected: {OF_DEVICES}")
    return devices


@dataclass(frozen=True)
class Step:
    """What was typed of a step, as it was typed."""

    sequence: str | None
    micro_batch: str
    accumulate: str
    policy: str
    recompute: str
    held: bool
    order: str | None
    chunks: str | None
    unit: str | None
    offload_activations: bool


def held(product: Product, is_held: bool) -> Product:
    """The product, with what is gathered in forward kept for backward, or gathered again."""
    return Product(
        tuple(
            replace(factor, cuts=factor.cuts and replace(factor.cuts, held=is_held))
            for factor in product.factors
        )
    )


def plan(found: Expression, sizes: dict[str, int], model: Transformer, step: Step) -> ModelPlan:
    """A model on the axes of a product of strategies."""
    if step.sequence is None:
        raise BadInput("--sequence: missing; expected the tokens of a sample, such as 4096")
    micro_batches = words.count("--accumulate", step.accumulate, "micro-batches")
    pipe = Pipeline(Kind.ONE_F_ONE_B, 1, micro_batches)
    if found.product.pipe:
        stages = sizes[found.product.pipe]
        pipe = _pipeline(found, model, stages, micro_batches, step.order, step.chunks)
    planned = ModelPlan(
        model,
        held(found.product, step.held),
        sizes,
        words.count("--micro-batch", step.micro_batch, "samples"),
        words.count("--sequence", step.sequence, "tokens"),
        pipe,
        words.policy(step.policy),
        RECOMPUTE[choose("--recompute", step.recompute, RECOMPUTE)],
        None if step.unit is None else words.parameters("--unit", step.unit, "elements"),
        offload=step.offload_activations,
    )
    require_places(planned)
    require_experts(found, model.experts)
    require_even(found, sizes, planned.indices, planned.again == FROM_SLICES)
    _require_even_slots(found, planned)
    return planned


def _pipeline(
    found: Expression,
    model: Transformer,
    stages: int,
    micro_batches: int,
    order: str | None,
    chunks: str | None,
) -> Pipeline:
    v = 1 if chunks is None else words.count("--chunks", chunks, "chunks of layers in a stage")
    kinds = {kind.value: kind for kind in Kind}
    usual = Kind.INTERLEAVED if v > 1 else Kind.ONE_F_ONE_B
    name = usual.value if order is None else order
    kind = kinds[choose("--order", name, kinds)]
    if v > 1 and kind is not Kind.INTERLEAVED:
        raise BadInput(f"--order: given {quoted(name)} with --chunks {v}; expected interleaved")
    if kind is Kind.INTERLEAVED and micro_batches % stages:
        raise BadInput(
            f"--accumulate: given {micro_batches}; expected a multiple of the {stages} stages of "
            f"{quoted(found.text)}, as interleaved stages need"
        )
    require_layers(found, model, stages, v)
    return Pipeline(kind, stages, micro_batches, v)


NAMES = {
    "g": "the key-value heads",
    "f": "the features inside the MLP",
    "s": "the tokens of a sample",
    "e": "the experts",
}


def require_places(found: ModelPlan) -> None:
    """A model that learns places has no more of them."""
    if 0 < found.model.positions < found.sequence:
        raise BadInput(
            f"--sequence: given {found.sequence:,}; expected at most {found.model.positions:,}, the "
            "places that the model learns"
        )


def require_experts(found: Expression, experts: Number, expected: str = "a model with experts") -> None:
    """What cuts experts needs some."""
    for number, factor in enumerate(found.product.factors):
        if factor.cuts and "e" in factor.cuts.weights and not experts:
            raise found.wrong_factor(number, expected)


def require_layers(found: Expression, model: Transformer, stages: int, chunks: int = 1) -> None:
    """Every chunk of every stage has a layer."""
    if stages * chunks > model.layers:
        raise found.wrong_size(
            found.product.pipe or "",
            f"{stages} stages, of {counted(chunks, 'chunk')} each",
            f"at most {model.layers} in all, one for each layer",
        )


def require_even(
    found: Expression, sizes: Mapping[str, int], indices: Mapping[str, Number], sliced: bool = False
) -> None:
    """What is cut is cut evenly, but for words, which are padded.

    `sliced`: what layers take is kept in slices of the tokens, where it is not cut otherwise.
    """
    cut: dict[str, list[str]] = {}
    for axis in found.product.cuts:
        tokens = ["s"] if sliced and not axis.stream else []
        some = [*axis.weights, axis.stream, *(index for _, index in axis.brought), *tokens]
        for index in dict.fromkeys(i for i in some if i in NAMES and i in indices):
            axes = cut.setdefault(index, [])
            axes.append(axis.name)
            devices, size = group_size(sizes, axes), indices[index]
            if size % devices:
                in_slices = ", kept in slices" if index == "s" and sliced else ""
                raise found.wrong_size(
                    axis.name,
                    f"{devices} along {' x '.join(axes)}",
                    f"a divisor of {size:,}, {NAMES[index]}{in_slices}",
                )


def _require_even_slots(found: Expression, planned: ModelPlan) -> None:
    """Tokens spread evenly over the experts."""
    if planned.model.experts:
        model, samples, sequence = planned.model, planned.micro_batch, planned.sequence
        tokens = sequence * samples * model.chosen
        others = group_size(planned.mesh, [a.name for a in planned.axes if a.stream == "s"])
        if tokens % (model.experts * others):
            raise BadInput(
                f"--sequence, --micro-batch: given {sequence:,} x {samples:,} tokens, each sent to "
                f"{counted(model.chosen, 'expert')}: {tokens:,} in all with {quoted(found.text)}; "
                f"expected a multiple of {model.experts * others:,}, so that they spread evenly over "
                "the experts"
            )


def require_cut(found: Expression, sizes: Mapping[str, int], model: Transformer) -> None:
    """A model's weights and layers are cut evenly; of samples and tokens nothing is known."""
    weights = {name: size for name, size in model.sizes(1, 1).items() if name in ("g", "f", "e")}
    require_even(found, sizes, weights)
    if found.product.pipe:
        require_layers(found, model, sizes[found.product.pipe])
