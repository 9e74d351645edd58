"""A2: how many bytes values take, as parts are written and as a system computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from proofs.trusted.kernel import KernelError
from spec.models.parts import BESIDE_OPERATIONS, BESIDE_ROUTES, MASK, layer, parts
from spec.models.profiles import TEXTBOOK, Profile, realised, realised_parts
from spec.models.transformer import MASKED, Transformer, is_layer
from spec.models.values import TRANSPOSED, Does, Operation, Part, Role, Value

OF_CHOICES = {"choices", "choices_offset", "choices_biased", "odds", "slot_odds"}
OF_SINKS = {"log_total", "sinks", "above_sinks", "left_by_sinks"}
OF_LOSS = {"raised", "total", "lost", "loss", "logits_capped"}
IN_FP32 = OF_CHOICES | OF_SINKS | OF_LOSS
INTEGER, REAL, HALF = 8, 4, 2  # bytes of a number
TOLD = {*BESIDE_ROUTES, *BESIDE_OPERATIONS} - {"weighed"}
OF_EACH_LAYER = {"largest_of_keys", "head_numbers"}
READ_BACKWARD = {  # of functions as they are composed: arrays beside their result; one is the argument
    "gelu_python": ("x by root of 2", "x by 2", "1 + erf"),
    "gelu_new": ("x", "tanh", "x by 2", "1 + tanh"),
    "gelu_fast": ("x", "0.04 x", "0.8 x", "1 + 0.04 x x", "tanh", "x by 2", "1 + tanh"),
    "clamped_silu": ("x", "clamped", "sigmoid"),
}
ROWS = "_unit_mean", "_unit_root"
OF_NO_LINE = {"largest"}  # it stands for what an operation computes on its way
COPIES = "_scale_and_one", "_taken", "_spread", "_by_token"
Sizes = Mapping[str, int]


def require_widths(
    claim: str, model: Transformer, profile: Profile, sizes: Sizes, in_halves: Sequence[Part]
) -> None:
    """Raise KernelError unless values have the types that are listed, and copies take as many bytes."""
    written, beside = parts(profile.computed(model)), _beside(model) if profile.routes else {}
    values = {v for part in written for line in part.operations for v in (*line.reads, line.makes)}
    names = {value.name for value in values}
    wrong = [str(v) for v in values if v.width != beside.get(v.name, _width(v, model, profile.routes))]
    wrong += [
        str(v) for v in values if v.name == "largest_of_keys" and v.indices != ("b", "g", "r", "s")
    ]
    alike = () if model.distances else ("g", "r")  # of masks of pairs, those of all heads
    wrong += [str(v) for v in values if v.repeats != (alike if v.name == MASK else ())]
    within = model.weighed_within and not model.weighed_first and "mlp" not in model.biases
    wrong += [str(v) for v in values if v.name == "weighed" and ("f" in v.indices) != within]
    within = within and model.gated and bool(model.experts)
    wrong += ["unweighed"] * (("unweighed" in names) is not within)
    lines = [line for part in written for line in part.operations]
    moved = {line.function for line in lines if _is_of_slots(line)}
    views = {line.makes.name for line in lines if line.function != TRANSPOSED}
    wrong += [name for name in views if name.endswith("_by_token")]  # what is copied is none
    turns = profile.composes and model.weighed_first  # odds of slots are read expert by expert
    wrong += [] if moved <= {TRANSPOSED if turns else ""} else ["slot_odds"]
    masked = [part for part in written if MASKED in part.name.split("_")]
    given = [part for part in written if any(v.name == MASK for v in part.first_readers)]
    wrong += [part.name for part in written if (part in masked) != (part in given)]
    for part in written:
        scales = [weight for weight in part.weights if weight.name.endswith("_scale")]
        more = [v for v in part.first_readers if v.name.endswith("_scale_and_one")]
        offset = model.offset_scales and profile.composes
        wrong += [part.name] if len(more) != len(scales) * offset else []
    for part in (part for part in written if is_layer(part.name)):
        in_all = {line.makes.name for line in part.operations} & OF_EACH_LAYER
        wrong += [part.name] if in_all != OF_EACH_LAYER & {*beside} else []
    copies = {copy for copy in COPIES for name in names if name.endswith(copy)}
    if wrong or (names & TOLD, copies) != ({*beside}, _copies(model) if profile.composes else set()):
        raise KernelError(f"{claim}: of {model} {wrong} have another type, or {copies} are copies")
    in_types = [
        (HALF, in_halves),
        *((width, realised_parts(model, profile, width)) for width in (REAL, 1) if profile.routes),
    ]
    for width, all_found in in_types:
        for part, found in zip(written, all_found, strict=True):
            of_rows = {line for line in found.operations if line.makes.name.endswith(ROWS)}
            squares = {line for line in of_rows if line.makes.name.endswith(ROWS[1])}
            made = sum(line.makes.width * _count(line.makes, sizes) for line in found.operations)
            says = profile.in_model(model)
            expected = sum(_taken(line, says, width, sizes) for line in part.operations)
            if squares != {line for line in of_rows if len({*line.reads}) == 1}:
                raise KernelError(f"{claim}: roots are of sums of squares, and means of sums")
            read = {value for line in found.operations for value in line.reads}
            unread = {line.makes for line in found.operations} - read - {found.gives}
            if {value.name for value in unread} - found.stores - OF_NO_LINE:
                raise KernelError(f"{claim}: of {model} {part.name} makes, and does not read, {unread}")
            kept = {*beside, "weighed"} if profile.routes else set()
            kept |= {line.makes.name for line in of_rows}
            if made != expected or not kept <= found.stores:
                raise KernelError(f"{claim}: of {model} {part.name} makes {made}, not {expected}")


def require_products_in_full(claim: str, model: Transformer) -> None:
    """Raise KernelError unless products that no kernel computes read, and are, fp32, and their views.

    Heads of keys are taken by their numbers, and are as many as those of queries, or groups.
    """
    kernel = frozenset({"scores", "seen", "shares"})
    profile = replace(TEXTBOOK, heads_alike=True, inside=kernel, repeats=True)
    shape = replace(model, in_steps=True, numbered_heads=True)
    part = realised(layer(shape), profile.in_model(shape), HALF)
    for line in part.operations:
        reads, makes = [value.width for value in line.reads if value.width], line.makes
        of_pairs = {"s", "u"} <= {*makes.indices} and makes.width != REAL
        of_products = makes.name in ("scores", "context", "keys", "values") and {*reads} != {REAL}
        of_views = makes.name in ("keys", "values") and makes.width != REAL
        if of_pairs or of_products or of_views:
            raise KernelError(f"{claim}: {line} reads {reads} bytes")


def _copies(m: Transformer) -> set[str]:
    """What is copied where operations are told one by one."""
    turns = m.turned and m.latent is None
    together = m.put_together and m.heads > 1
    of = m.offset_scales, m.numbered_heads and m.latent is None, m.spread_keys and turns, together
    return {copy for copy, has in zip(COPIES, of, strict=True) if has}


def _is_of_slots(line: Operation) -> bool:
    return line.makes.name == "slot_odds"


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
        "chosen_odds": HALF * m.of_chosen,
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
    if line.does is Does.CONTRACT and makes.name in in_full:  # choices of experts: of copies
        found += sum(_count(value, sizes) for value in line.reads) * REAL
    if line.function in profile.rows:
        of_rows = width if line.function in profile.rows_as_computed else REAL
        found += count // sizes[line.over] * of_rows * (2 if line.function == "layer_norm" else 1)
    if "rms_norm" in in_full and makes.name.endswith("_heads_norm_squares"):
        found += count * REAL
    if "rms_norm" in in_full and makes.name.endswith("_heads_norm_unit"):
        found += count * (REAL - width)
    if "cross_entropy" in in_full and makes.name == "logits" and makes.width == REAL:
        found += count * width
    if profile.maximum and makes.name == "raised":
        found += count // sizes["v"] * REAL
    if profile.composes and line.function in READ_BACKWARD:
        found += (len(READ_BACKWARD[line.function]) - 1) * count * width
    if profile.repeats and makes.name in ("keys", "values"):
        found += count * sizes["r"] * width * ("r" not in makes.indices)
    return found
