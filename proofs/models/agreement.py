"""A2: parts of models, executed on numbers, compute what the equations of architectures say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import isclose
from typing import Any

from proofs.models.equations import Equations, Token
from proofs.models.executed import Executed
from proofs.models.operations import require_operations
from proofs.models.realised_widths import READ_BACKWARD, require_products_in_full, require_widths
from proofs.trusted.kernel import KernelError
from spec.models.parts import layer, parts
from spec.models.profiles import TEXTBOOK, Profile, realised_parts, rows_of
from spec.models.transformer import (
    CAPPED,
    DENSE,
    DROPPED,
    EMBEDDING,
    HEAD,
    MASKED,
    NORMS,
    STRAIGHT,
    USUAL,
    Latent,
    Transformer,
)
from spec.models.values import OPERANDS, WRITTEN, Builder, Part, Role, Value

SAMPLES, POSITIONS, EXPERTS = 2, 2, 4
TOKENS = [*product(range(SAMPLES), range(POSITIONS))]
BOTH_CAPPED, ALL_DROPPED = frozenset({"scores", "logits"}), frozenset({"words", "shares", "output"})
GPT = Transformer(1, 4, 6, 3, 2, 5, 7, dropout=ALL_DROPPED, positions=3, spare=2, tied=True)
LLAMA = replace(
    GPT, gated=True, function="silu", norm="rms_norm", biases=frozenset(), positions=0, tied=False
)
WITH_EXPERTS = replace(LLAMA, dropout=frozenset(), experts=EXPERTS, chosen=2, odds="sigmoid")
OF_LAYERS = frozenset({"attention", "mlp"})
AROUND, AFTER = {"attention_out", "mlp_out"}, {"words", "attention_sum", "mlp_sum"}
MODELS = (  # which between them have all that models may have
    replace(GPT, norms=frozenset(AFTER), word_features=3, dropout=frozenset({"words"}), tempered=True),
    replace(
        GPT,
        norms=frozenset({"attention", "heads"}),
        biases=frozenset(),
        positions=0,
        parallel=True,
        capped=frozenset({"scores"}),
        rotary=1,
        dropout=frozenset({"shares"}),
    ),
    replace(
        LLAMA,
        norms=OF_LAYERS | AROUND | {"heads", "head"},
        capped=BOTH_CAPPED,
        angles=False,
        dense=6,
        dropout=frozenset({"shares", "output"}),
    ),
    replace(
        LLAMA,
        norms=OF_LAYERS | {"attention_sum"},
        latent=Latent(3, 0, 1, 3),
        parallel=True,
        biases=frozenset({"output", "mlp"}),
    ),
    replace(
        WITH_EXPERTS,
        latent=Latent(3, 5, 1, 3),
        shared=2,
        dense=6,
        biases=frozenset({"router"}),
        kinds=(frozenset({DENSE, MASKED}), USUAL),
        weighed_within=True,
    ),
    replace(
        WITH_EXPERTS,
        norms=OF_LAYERS | {"head"},
        biases=GPT.biases | {"router"},
        chosen=1,
        odds="softmax",
        sinks=True,
        clamped=True,
        shared=2,
        weighed_within=True,
        kinds=(frozenset({MASKED}), USUAL),
    ),
    replace(
        WITH_EXPERTS,
        norms=OF_LAYERS | {"turned", "attention_sum", "mlp_sum"},
        word_features=3,
        capped=frozenset({"logits"}),
        tied=True,
        tempered=True,
        biases=frozenset({"output"}),
        shared=2,
        weighed_first=True,
        weighed_within=True,
        unnormed=True,
        kinds=(USUAL, frozenset({STRAIGHT, MASKED}), USUAL),
        distances=True,
    ),
)


IN_FULL = replace(  # in several types, in steps, with copies of keys and values, and numbers of rows
    TEXTBOOK,
    in_full=frozenset({"softmax", "layer_norm", "rms_norm", "cross_entropy"}),
    rows=frozenset({"layer_norm", "rms_norm"}),
    rows_as_computed=frozenset({"layer_norm"}),
    composes=True,
    maximum=True,
    repeats=True,
    routes=True,
    scales_in_full=True,
)
WORDS = "normed of_chosen plain_odds of_groups scaled_words offset_scales spread_keys numbered_heads"
IN_STEPS: dict[str, Any] = dict.fromkeys([*WORDS.split(), "put_together", "chosen_in_full"], True)


def require_equations(claim: str) -> None:
    """Raise KernelError unless parts make of numbers what equations do, of each weight's elements.

    And however a system computes them.
    """
    for model in MODELS:
        _require_equations(claim, replace(model, **IN_STEPS), TEXTBOOK)
        _require_arrays(claim, model)
    heads = (MODELS[0], 1, 1, True), (MODELS[-2], 2, 1, False), (MODELS[-1], 6, 3, True)
    in_steps = (
        replace(m, heads=a, kv_heads=q, **IN_STEPS | {"of_chosen": of_chosen, "normed": not of_chosen})
        for m, a, q, of_chosen in heads
    )
    for model, function in zip((MODELS[1], *in_steps), READ_BACKWARD, strict=True):
        _require_equations(claim, replace(model, function=function), IN_FULL)
    _require_read(claim, _of_two_weights())
    _require_rows_of_others(claim)
    require_operations(claim)
    for model in (GPT, LLAMA):
        require_products_in_full(claim, replace(model, positions=0, dropout=frozenset()))
    if parts(replace(GPT, vocabulary=0)) != (layer(GPT),) or not _have_all_words():
        raise KernelError(f"{claim}: without words there is more than layers, or not all is tried")


def _require_equations(claim: str, model: Transformer, profile: Profile) -> None:
    chosen, sent = _routes(model, profile)
    sizes = profile.computed(model).sizes(SAMPLES, POSITIONS)
    run, equations, made = Executed(sizes, sent), Equations(model, chosen), list[float]()
    found = realised_parts(model, profile, WRITTEN)
    if sizes["c"] * model.experts * len(TOKENS) != len(sent):
        raise KernelError(f"{claim}: experts have {sizes['c']} slots")
    require_widths(claim, model, profile, sizes, found)
    for part in found:
        made = run.gives(part, made)
    x = {token: equations.embedding(token) for token in TOKENS}
    for kind in dict.fromkeys(model.kinds or (USUAL,)):
        x = equations.layer(kind, x)
    losses = [equations.loss(token, of) for token, of in x.items()]
    if not all(isclose(one, other) for one, other in zip(made, losses, strict=True)):
        raise KernelError(f"{claim}: {model} gives other losses than its equations: {made}, {losses}")
    for part in found if profile == TEXTBOOK else ():
        _require_rows(claim, part, equations.inputs)
        _require_read(claim, part)
    weights = {weight for part in found for weight in part.weights}
    places = [(w.name, product(*(range(sizes[i]) for i in w.indices))) for w in weights]
    if {(name, at) for name, every in places for at in every} != {*equations.read}:
        raise KernelError(f"{claim}: {model} has other weights than its equations")


def _have_all_words() -> bool:
    """Whether models between them have all norms, and all that may be capped, or dropped."""
    has = [{word for m in MODELS for word in getattr(m, of)} for of in ("norms", "capped", "dropout")]
    return has == [{*NORMS}, {*CAPPED}, {*DROPPED}] and (GPT.norms, GPT.odds) == (OF_LAYERS, "softmax")


ARRAYS = {  # as modules have them: a product that makes queries, keys and values, or both of a gate
    **dict.fromkeys(("qkv", "heads"), ("query key value",)),
    **dict.fromkeys(("mlp", "experts"), ("gate up",)),
    "latent": ("query_straight query", "key_latent key", "key_straight value"),
}


ONCE = frozenset({"mlp", "qkv"})


def _require_arrays(claim: str, model: Transformer) -> None:
    """Raise KernelError unless weights, and biases, are one array as a model's words say."""
    others = {"qkv", "heads"} if model.latent else {"latent"}
    for key, kind in product(ARRAYS, dict.fromkeys(model.kinds or (USUAL,))):
        has_experts = bool(model.experts) and DENSE not in kind
        found = layer(replace(model, joined=frozenset({key}), reads_first=True), kind)
        is_so = key not in others | ({"mlp"} if has_experts else {"experts"})
        of = "".join(f"{word}_" for word in sorted(kind))
        ends = ("weight",) if key == "latent" else ("weight", "bias")
        names = product(ends, ARRAYS[key] if is_so else ())
        arrays = [tuple(f"{of}{name}_{end}" for name in each.split()) for end, each in names]
        if [*found.arrays] != arrays or found.by_heads != (key in ("heads", "latent")):
            raise KernelError(f"{claim}: {key}: {found.arrays} are arrays, not {arrays}")
        if not found.reads_first or layer(model, kind).reads_first:
            raise KernelError(
                f"{claim}: rows are what products read, or not, as the model does not say"
            )
    every, twice = (layer(replace(GPT, joined=of)).arrays for of in (ONCE, frozenset(ARRAYS)))
    if sorted(every) != sorted(twice):
        raise KernelError(f"{claim}: an array is told twice")


def _routes(model: Transformer, profile: Profile) -> tuple[dict[Token, list[int]], list[float]]:
    """Each token's experts, in turn, or all; and which token is in each of their slots."""
    if not model.experts:
        return {}, []
    count = model.experts if profile.routes and model.weighed_first else model.chosen
    chosen = {token: [(n + i) % model.experts for i in range(count)] for n, token in enumerate(TOKENS)}
    takes = [[token for token in TOKENS if e in chosen[token]] for e in range(model.experts)]
    return chosen, [float(token == other) for of in takes for token in of for other in TOKENS]


def _require_read(claim: str, part: Part) -> None:
    """Raise KernelError unless it is told which line reads a value first, and what is of weights alone.

    That is what weights are in, and nothing that depends on a sample.
    """
    leaves = {value: {value} for line in part.operations for value in line.reads}
    for line in part.operations:
        leaves[line.makes] = {leaf for value in line.reads for leaf in leaves[value]}
        if len(line.reads) != OPERANDS[line.does]:
            raise KernelError(f"{claim}: {line} reads other values than it should")
    of_weights = {
        value.name
        for value, of in leaves.items()
        if any(leaf.role is Role.WEIGHT for leaf in of)
        and all(leaf.role in (Role.WEIGHT, Role.CONSTANT) for leaf in of)
        and not any("b" in leaf.indices for leaf in of)
    }
    readers = {v: next(o for o in part.operations if v in o.reads) for v in part.first_readers}
    if part.of_weights != of_weights or part.first_readers != readers:
        raise KernelError(f"{claim}: {part.name}: {part.of_weights} are of weights, not {of_weights}")
    read = [value for value in leaves if value in readers]
    weights, indices = (
        [v for v in read if v.role is Role.WEIGHT],
        {i for v in read for i in v.indices},
    )
    if [*part.weights] != weights or sorted(part.indices) != sorted(indices):
        raise KernelError(f"{claim}: {part.name} has the weights {part.weights}, and {part.indices}")


def _of_two_weights() -> Part:
    """Two weights multiplied, and what they multiply together; one of them twice, and by no weights."""
    takes, one = Value("takes", ("b", "h"), Role.STREAM), Value("one", ("h", "m"), Role.WEIGHT)
    part, other = Builder("of_two_weights", takes), Value("other", ("m", "h"), Role.WEIGHT)
    both = part.contract(one, other, Value("both", ("h",)))
    ones = [Value(name, ("m",), Role.CONSTANT) for name in ("ones", "others")]
    of_ones = part.contract(ones[0], ones[1], Value("of_ones", ("m",)))
    some = part.contract(takes, of_ones, Value("some", ("b", "h", "m")))
    more = part.contract(some, one, replace(takes, name="more"))
    squares = part.apply("square", both, replace(both, name="squares"))
    gives = part.contract(more, squares, replace(takes, name="gives"))
    return part.part(gives)


def _require_rows_of_others(claim: str) -> None:
    """Raise KernelError unless rows of a table are its entries, also of one looked up by places.

    And of weights that experts are summed with, what their product makes.
    """
    takes, places = Value("takes", ("b", "s", "e"), Role.STREAM), Value("at", ("s", "v"), Role.CONSTANT)
    part, has = Builder("of_experts", takes), {"of_experts": ("e", "h"), "table": ("v", "h")}
    weights = [Value(name, indices, Role.WEIGHT) for name, indices in has.items()]
    made = part.contract(takes, weights[0], Value("made", ("b", "s", "h")))
    looked_up = part.contract(weights[1], places, Value("looked_up", ("s", "h")))
    found = part.part(part.contract(made, looked_up, replace(made, name="gives")))
    rows = [rows_of(weight, found) for weight in weights]
    if rows != [("h",), ("v",)]:
        raise KernelError(f"{claim}: weights of experts that are summed, and a table, have rows {rows}")


def _require_rows(claim: str, found: Part, inputs: Mapping[str, int]) -> None:
    """Raise KernelError unless rows of a weight are what its product makes, or reads, if it says so.

    Of a table, its entries; of experts' weights, the experts; of others, all that they have.
    """
    for part in (replace(found, reads_first=is_first) for is_first in (False, True)):
        for weight in part.weights:
            has, count = weight.indices, inputs.get(weight.name, 0)
            makes, reads = has[count:], has[:count]
            if part.name == HEAD and has[0] == "v":
                makes, reads = has[:1], has[1:]
            is_table = part.name == EMBEDDING and has[0] in "vw"
            expected = reads if reads and (is_table or part.reads_first) else makes
            if rows_of(weight, part) != (("e",) if "e" in has else expected):
                raise KernelError(f"{claim}: {weight} has the rows {rows_of(weight, part)}")
