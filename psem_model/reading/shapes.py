"""A model's shape, from a configuration file or from the numbers that were typed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from psem_model.reading import words
from psem_model.text.errors import BadInput, refused
from spec.models.custom import Custom
from spec.models.transformer import DROPPED, Transformer

BLOCKS: dict[str, dict[str, Any]] = {  # kinds of layers, as their authors built them
    "gpt": {"dropout": DROPPED, "tied": True, "angles": False},  # arXiv 2104.04473
    "gpt-without-dropout": {"tied": True, "angles": False},
    "llama": {"gated": True, "function": "silu", "norm": "rms_norm", "biases": frozenset()},
}
SHAPE = (  # options that give a model's shape in numbers
    *("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary"),
    *("experts", "chosen"),
)
Typed = Mapping[str, str | None]  # an option's name, and what was typed


def is_shape(given: Typed) -> bool:
    """Whether anything was typed of a model's shape."""
    return any(given.get(name) is not None for name in ("config", *SHAPE))


def is_own(given: Typed) -> bool:
    """Whether it is the file of a model of one's own."""
    return (given.get("config") or "").endswith(".toml")


def model_of(given: Typed) -> Transformer | Custom:
    """A model of one's own, or a transformer. Raises BadInput."""
    return own(given) if is_own(given) else transformer(given)


def own(given: Typed) -> Custom:
    """A model of one's own, from its file. Raises BadInput."""
    from psem_model.reading.own_models import read

    _require_alone(given)
    return read(given["config"] or "")


def _require_alone(given: Typed) -> None:
    """Raise BadInput for a shape beside the file of a model."""
    also = next((name for name in (*SHAPE, "block") if given.get(name) is not None), None)
    if also:
        option = f"--{also.replace('_', '-')}"
        raise BadInput(f"{option}: given with --config or --model; expected one of the two")


def transformer(given: Typed) -> Transformer:
    """A model from a configuration file, or from the numbers that give its shape.

    `block`: of `BLOCKS`; none is gpt. Raises BadInput.
    """
    if given.get("config") is not None:
        _require_alone(given)
        from psem_model.reading.configurations import read

        return read(given["config"] or "").model
    for name in ("layers", "hidden", "heads"):
        if given.get(name) is None:
            raise BadInput(
                f"--{name}: missing; expected the model's shape, as --config config.json or "
                "--layers, --hidden and --heads"
            )
    numbers = {name: _number(name, given.get(name)) for name in SHAPE}
    if (numbers["layers"] or 0) > words.MOST_LAYERS:
        raise refused("--layers", given["layers"], f"at most {words.MOST_LAYERS:,} layers")
    return _shaped(given.get("block") or "gpt", numbers, given.get("sequence"))


def require_model(given: Typed) -> None:
    """Raise BadInput for a configuration that cannot be read: what else is wrong comes after it."""
    if given.get("config") is not None:
        kind_of(given)


def kind_of(given: Typed) -> str:
    """What its layers are called: a family of configurations, a block, or the name of its file."""
    if is_own(given):
        own(given)
        return Path(given["config"] or "").stem
    if given.get("config") is not None:
        from psem_model.reading.configurations import read

        return read(given["config"] or "").family
    return given.get("block") or "gpt"


def configured(given: Typed) -> dict[str, str | None]:
    """What a configuration says beside a shape, if there is one and it does: see `Plan`."""
    if given.get("config") is None or is_own(given):
        return {}
    from psem_model.reading.configurations import read

    found = read(given["config"] or "")
    return {"stored": found.stored, "attention": found.attention}


def _number(name: str, value: str | None) -> int | None:
    return None if value is None else words.count(f"--{name.replace('_', '-')}", value, "")


def _shaped(block: str, given: Mapping[str, int | None], sequence: str | None) -> Transformer:
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
    return Transformer(
        layers=given["layers"],
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=given["head_dim"] or hidden // heads,
        feed_forward=given["feed_forward"] or 4 * hidden,
        vocabulary=given["vocabulary"] or 0,
        positions=0 if BLOCKS[block].get("angles", True) else _places(given["vocabulary"], sequence),
        experts=given["experts"] or 0,
        chosen=given["chosen"] or 0,
        **BLOCKS[block],
    )


def _places(vocabulary: int | None, sequence: str | None) -> int:
    """How many places a GPT with words learns: those of a sample."""
    if not vocabulary:
        return 0
    if sequence is None:
        raise BadInput("--sequence: missing; expected the tokens of a sample: gpt learns their places")
    return words.count("--sequence", sequence, "tokens")


def small(block: str | None, experts: bool) -> Transformer:
    """A small model of some kind, to derive or check programs, which do not depend on sizes."""
    numbers = {"layers": "4", "hidden": "8", "heads": "2", "vocabulary": "16", "sequence": "4"}
    return transformer(
        {**numbers, "block": block, **({"experts": "4", "chosen": "2"} if experts else {})}
    )
