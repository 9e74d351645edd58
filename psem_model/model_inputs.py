"""Reading what a user typed about a model and the axes it is cut along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from psem_model import inputs
from psem_model.figures import counted
from psem_model.inputs import BadInput
from psem_model.model_predict import PIPE, ModelPlan
from spec.distribute import ALL, FROM_SLICES, NOTHING, PAIRS
from spec.mesh import group_size
from spec.model_strategies import MODEL_AXES
from spec.pipeline import Kind, Pipeline
from spec.strategies import STRATEGIES
from spec.transformer import Transformer

PIPELINE = "pp"
MODEL_STRATEGIES = (*MODEL_AXES, PIPELINE)
RECOMPUTE = {again: again for again in (NOTHING, PAIRS, ALL, FROM_SLICES)}
SHAPE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary")
EXPERTS = ("experts", "chosen")


def is_on_model_axes(strategy: str | None) -> bool:
    """Whether a strategy cuts the model, not only its states: tp, or a product such as dp*tp."""
    names = (strategy or "").split("*")
    return len(names) > 1 or (names[0] in MODEL_STRATEGIES and names[0] not in STRATEGIES)


def names_of(strategy: str) -> list[str]:
    """The strategies of a product."""
    names = [name.strip() for name in strategy.split("*")]
    for name in names:
        inputs.choose("strategy", name, MODEL_STRATEGIES)
    named = [axis_of(name) for name in names]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice:
        raise BadInput(f"strategy: given {strategy!r}, which cuts {twice} twice; expected each once")
    return names


def axis_of(name: str) -> str:
    """The axis of the mesh that a strategy is about."""
    return PIPE if name == PIPELINE else MODEL_AXES[name].name


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


def plan(
    strategy: str,
    devices: str,
    model: Transformer,
    sequence: str | None,
    micro_batch: str,
    accumulate: str,
    policy: str,
    recompute: str,
    held: bool,
    schedule: str | None,
    chunks: str | None,
) -> ModelPlan:
    """A model, cut along the axes of a strategy such as tp or dp*tp*pp."""
    names = names_of(strategy)
    if sequence is None:
        raise BadInput("--sequence: missing; expected the tokens of a sample, such as 4096")
    axes = [replace(MODEL_AXES[name], held=held) for name in names if name != PIPELINE]
    mesh = inputs.mesh(devices, [axis_of(name) for name in names])
    micro_batches = inputs.count("--accumulate", accumulate, "micro-batches")
    pipe = _pipeline(model, mesh.get(PIPE, 1), micro_batches, schedule, chunks)
    found = ModelPlan(
        model,
        tuple(axes),
        mesh,
        inputs.count("--micro-batch", micro_batch, "samples"),
        inputs.count("--sequence", sequence, "tokens"),
        pipe,
        inputs.policy(policy),
        RECOMPUTE[inputs.choose("--recompute", recompute, RECOMPUTE)],
    )
    _require_divisible(found)
    return found


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
        by_heads = [index for _, index in axis.brought]
        for index in {*axis.weights, axis.stream, *by_heads} & {*NAMES}:
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
