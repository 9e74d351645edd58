"""A2: how many bytes values take, as parts are written and as a system computes them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from proofs.trusted.kernel import KernelError
from spec.models.parts import MASK, parts
from spec.models.profiles import Profile, realised_parts
from spec.models.transformer import Transformer
from spec.models.values import Operation, Role, Value

OF_CHOICES = {"choices", "choices_offset", "choices_biased", "odds", "slot_odds"}
OF_SINKS = {"log_total", "sinks", "above_sinks", "left_by_sinks"}
OF_LOSS = {"raised", "total", "lost", "loss", "logits_capped"}
IN_FP32 = OF_CHOICES | OF_SINKS | OF_LOSS
INTEGER, REAL, HALF = 8, 4, 2  # bytes of a number
Sizes = Mapping[str, int]


def require_widths(claim: str, model: Transformer, profile: Profile, sizes: Sizes) -> None:
    """Raise KernelError unless values have the types that are listed, and copies take as many bytes."""
    written, beside = parts(profile.computed(model)), _beside(model) if profile.routes else {}
    values = {
        value for part in written for line in part.operations for value in (*line.reads, line.makes)
    }
    wrong = [str(v) for v in values if v.width != beside.get(v.name, _width(v, model, profile.routes))]
    if wrong or not beside.keys() <= {value.name for value in values}:
        raise KernelError(f"{claim}: of {model} these have another type: {wrong}")
    for width in (HALF, REAL) if profile.routes else (HALF,):
        for part, found in zip(written, realised_parts(model, profile, width), strict=True):
            bytes_ = sum(line.makes.width * _count(line.makes, sizes) for line in found.operations)
            expected = sum(_taken(line, profile, width, sizes) for line in part.operations)
            if bytes_ != expected or (profile.routes and not beside.keys() <= found.stores):
                raise KernelError(f"{claim}: of {model} {part.name} makes {bytes_}, not {expected}")


def _count(value: Value, sizes: Sizes) -> int:
    return prod(sizes[index] for index in value.indices)


def _beside(m: Transformer) -> dict[str, int]:
    """Bytes for each token, or row, of what no backward reads, where operations are told one by one."""
    of_experts = {
        "chosen": m.chosen * INTEGER,  # a token's experts, and of each its place, and the token's
        "chosen_places": m.chosen * (INTEGER + INTEGER) * (not m.weighed_first),
        "odds_mask": m.experts * m.of_groups,
        "undivided_odds": m.chosen * REAL * m.normed,
        "odds_total": REAL * m.normed,
    }
    others = {
        "largest_of_keys": INTEGER * m.sinks,
        "head_numbers": (INTEGER + INTEGER) * (m.numbered_heads and m.latent is None),
        "word_factor": HALF * m.scaled_words,
    }
    found = others | (of_experts if m.experts else {})
    return {name: size for name, size in found.items() if size}


def _width(value: Value, model: Transformer, in_steps: bool) -> int:
    """Of masks of what is dropped 1; of what choices, sinks and a loss are computed from 4; else 2."""
    name = value.name
    if value.role is Role.CONSTANT:
        is_mask = name.endswith("_mask")
        return 1 if is_mask else HALF if name == MASK else REAL * (in_steps and name == "temperatures")
    if name == "slot_odds" and in_steps and model.plain_odds:
        return HALF
    of_norms = name.endswith(("_norm_total", "_norm_inverse", "_scale_and_one"))
    of_loss = name == "logits" and "logits" not in model.capped
    return REAL if name in IN_FP32 or of_norms or of_loss else HALF


def _taken(line: Operation, profile: Profile, width: int, sizes: Sizes) -> int:
    """Bytes of what a line makes, and of what a system makes beside it.

    Functions in fp32 read and make copies, and scales of norms are in fp32; norms keep numbers of each
    row; a loss is of copies, too, and finds largest ones; keys and values are there for each head.
    """
    makes, count, in_full = (
        line.makes,
        _count(line.makes, sizes),
        profile.in_full if width < REAL else (),
    )
    found = count * (width if makes.width == HALF else makes.width)
    if line.function in in_full:
        found += count * (2 * REAL + (REAL - width) * (line.function != "softmax"))
    if line.function in profile.rows:
        found += count // sizes[line.over] * REAL * (2 if line.function == "layer_norm" else 1)
    if "rms_norm" in in_full and makes.name.endswith("_heads_norm_squares"):
        found += count * REAL
    if "rms_norm" in in_full and makes.name.endswith("_heads_norm_unit"):
        found += count * (REAL - width)
    if "cross_entropy" in in_full and makes.name == "logits" and makes.width == REAL:
        found += count * HALF
    if profile.maximum and makes.name == "raised":
        found += count // sizes["v"] * REAL
    if profile.composes and line.function == "gelu_new":  # a cube, what tanh takes, and one more
        found += 3 * count * width
    if profile.repeats and makes.name in ("keys", "values"):
        found += count * sizes["r"] * width * ("r" not in makes.indices)
    return found
