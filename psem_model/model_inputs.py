"""Reading what a user typed about a model and the axes it is cut along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from psem_model import inputs
from psem_model.expressions import Expression
from psem_model.figures import counted
from psem_model.inputs import BadInput
from psem_model.model_predict import ModelPlan
from psem_model.options import OF_DEVICES
from spec.compose import Product
from spec.distribute import ALL, FROM_SLICES, NOTHING, PAIRS
from spec.mesh import group_size
from spec.pipeline import Kind, Pipeline
from spec.transformer import Transformer

RECOMPUTE = {again: again for again in (NOTHING, PAIRS, ALL, FROM_SLICES)}


def transformer(
    config: str | None, block: str, shape: Mapping[str, str | None], sequence: str | None
) -> Transformer:
    """A model from a configuration file, or from the numbers that give its shape."""
    if config is not None:
        given = next((name for name, value in shape.items() if value is not None), None)
        if given:
            raise BadInput(f"--{given.replace('_', '-')}: given with --config; expected one of the two")
        from psem_model.configurations import read

        return read(config)[1]
    for name in ("layers", "hidden", "heads"):
        if shape[name] is None:
            raise BadInput(
                f"--{name}: missing; expected the model's shape, as --config config.json or "
                "--layers, --hidden and --heads"
            )
    numbers = {
        name: None if value is None else inputs.count(f"--{name.replace('_', '-')}", value, "")
        for name, value in shape.items()
    }
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
        positions = inputs.count("--sequence", sequence, "tokens")
    llama = inputs.choose("--block", block, BLOCKS) == "llama"
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
        tied=not llama,
        dropout=not llama,
        experts=given["experts"] or 0,
        chosen=given["chosen"] or 0,
    )


BLOCKS = {
    "gpt": "layer norms, biases, gelu, dropout, tied words (arXiv 2104.04473)",
    "llama": "root mean square norms, gated silu, no biases",
}


def mesh(found: Expression, devices: str | None) -> dict[str, int]:
    """Sizes of a product's axes: from the expression, or else from --devices, in the axes' order."""
    axes = found.product.axes
    missing = [axis for axis in axes if axis not in found.sizes]
    if not missing:
        if devices is not None:
            raise BadInput(
                "--devices: given with a strategy that says its sizes; expected one of the two"
            )
        return {axis: found.sizes[axis] for axis in axes}
    if found.sizes:
        raise BadInput(
            f"strategy: given {found.text!r}, without a size for {missing[0]}; expected one for each "
            "axis, such as tp(8), or none and --devices"
        )
    return inputs.mesh(required(devices), axes)


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
    schedule: str | None
    chunks: str | None
    unit: str | None


def plan(found: Expression, sizes: dict[str, int], model: Transformer, step: Step) -> ModelPlan:
    """A model on the axes of a product of strategies."""
    if step.sequence is None:
        raise BadInput("--sequence: missing; expected the tokens of a sample, such as 4096")
    product = Product(
        tuple(
            replace(factor, cuts=factor.cuts and replace(factor.cuts, held=step.held))
            for factor in found.product.factors
        )
    )
    micro_batches = inputs.count("--accumulate", step.accumulate, "micro-batches")
    stages = sizes[product.pipe] if product.pipe else 1
    planned = ModelPlan(
        model,
        product,
        sizes,
        inputs.count("--micro-batch", step.micro_batch, "samples"),
        inputs.count("--sequence", step.sequence, "tokens"),
        _pipeline(model, stages, micro_batches, step.schedule, step.chunks),
        inputs.policy(step.policy),
        RECOMPUTE[inputs.choose("--recompute", step.recompute, RECOMPUTE)],
        None if step.unit is None else inputs.count("--unit", step.unit, "elements"),
    )
    _require_divisible(planned)
    return planned


def _pipeline(
    model: Transformer, stages: int, micro_batches: int, schedule: str | None, chunks: str | None
) -> Pipeline:
    v = 1 if chunks is None else inputs.count("--chunks", chunks, "chunks of layers in a stage")
    kinds = {kind.value: kind for kind in Kind}
    name = schedule or (Kind.INTERLEAVED.value if v > 1 else Kind.ONE_F_ONE_B.value)
    kind = kinds[inputs.choose("--schedule", name, kinds)]
    if v > 1 and kind is not Kind.INTERLEAVED:
        raise BadInput(f"--schedule: given {name!r} with --chunks {v}; expected interleaved")
    if kind is Kind.INTERLEAVED and micro_batches % stages:
        raise BadInput(
            f"--accumulate: given {micro_batches}; expected a multiple of the {stages} stages, as "
            "interleaved stages need"
        )
    if stages * v > model.layers:
        raise BadInput(
            f"--devices: given {stages} stages, of {counted(v, 'chunk')} each; expected at most "
            f"{model.layers} in all, one for each layer"
        )
    return Pipeline(kind, stages, micro_batches, v)


NAMES = {
    "g": "the key-value heads",
    "f": "the features inside the MLP",
    "s": "the tokens of a sample",
    "e": "the experts",
}


def _require_divisible(found: ModelPlan) -> None:
    """What is cut must be cut evenly, but for words, which are padded."""
    cut: dict[str, list[str]] = {}
    for axis in found.axes:
        indices = (*axis.weights, axis.stream, *(index for _, index in axis.brought))
        for index in dict.fromkeys(i for i in indices if i in NAMES):
            cut.setdefault(index, []).append(axis.name)
    for index, axes in cut.items():
        devices, size = group_size(found.mesh, axes), found.indices[index]
        if index == "e" and not size:
            raise BadInput("strategy: given 'ep'; expected a model with --experts")
        if size % devices:
            raise BadInput(
                f"--devices: given {devices} along {' x '.join(axes)}; expected a divisor of "
                f"{size:,}, {NAMES[index]}"
            )
    if found.model.experts:
        tokens = found.micro_batch * found.sequence * found.model.chosen
        others = group_size(found.mesh, [a.name for a in found.axes if a.stream == "s"])
        if tokens % (found.model.experts * others):
            raise BadInput(
                f"--micro-batch: {tokens:,} tokens sent on each device's slice; expected a multiple "
                f"of {found.model.experts * others}, so that they spread evenly over the experts"
            )
