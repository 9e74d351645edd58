"""A transformer as operations on values: embedding, layers, head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from spec.models.custom import Custom
from spec.models.opaque import Opaque, opaque
from spec.models.transformer import (
    BY_HEADS,
    DENSE,
    EMBEDDING,
    HEAD,
    MASKED,
    STRAIGHT,
    USUAL,
    LayerKind,
    Transformer,
    layer_name,
)
from spec.models.values import (
    FULL,
    LOG_TOTAL,
    NUMBER_BYTES,
    TRANSPOSED,
    WRITTEN,
    Builder,
    Part,
    Role,
    Value,
)
from spec.numbers.arithmetic import Number

Model = Transformer | Opaque | Custom
# what operations keep, and backward does not read
BESIDE_ROUTES = (
    *("chosen", "chosen_places", "chosen_odds", "odds_mask"),
    *("undivided_odds", "odds_total", "weighed"),
)
# values of attention that no kernel computes: products in fp32, of copies (torch 2.13,
# aten/src/ATen/native/transformers/attention.cpp: _scaled_dot_product_attention_math)
PRODUCTS_IN_FULL = (
    *("query_turned", "key_taken_turned", "keys", "keys_repeated", "scores", "seen", "shares"),
    *("value_taken", "values", "values_repeated"),
    *("query_biased_turned", "key_biased_taken_turned", "value_biased_taken"),
)
BESIDE_OPERATIONS = ("largest_of_keys", "head_numbers", "word_factor")
MASK = "mask_of_pairs"


def _stream(name: str) -> Value:
    return Value(name, ("b", "s", "h"), Role.STREAM)


def _weight(name: str, *indices: str) -> Value:
    return Value(name, indices, Role.WEIGHT)


def _constant(name: str, *indices: str, width: int = 0) -> Value:
    return Value(name, indices, Role.CONSTANT, width)


def _biased(part: Builder, value: Value, *indices: str) -> Value:
    """The value, with an offset that does not depend on the sample: one for each of `indices`."""
    others = tuple(i for i in value.indices if i not in indices)
    bias, ones = _weight(f"{value.name}_bias", *indices), _constant("ones", *others)
    spread = part.contract(bias, ones, replace(value, name=f"{value.name}_offset"))
    return part.add(value, spread, replace(value, name=f"{value.name}_biased"))


def _norm(part: Builder, model: Transformer, name: str, x: Value, over: str = "h") -> Value:
    """Each token's features, or those of a head, normalised, scaled, and shifted."""
    unit = part.normalise(model.norm, over, x, Value(f"{name}_unit", x.indices))
    return _scaled(part, model, name, unit, over)


def _scaled(part: Builder, model: Transformer, name: str, unit: Value, *over: str) -> Value:
    scale = _weight(f"{name}_scale", *over)
    if model.in_steps and model.offset_scales:
        more = Value(f"{name}_scale_and_one", over, width=FULL)
        scale = part.contract(scale, _constant("ones", *over), more)
    y = part.contract(unit, scale, Value(name, unit.indices))
    return _biased(part, y, *over) if model.norm == "layer_norm" else y


def _norm_of_heads(part: Builder, model: Transformer, name: str, x: Value, *over: str) -> Value:
    """A token's features in all heads, over the root of the sum of their squares, and scaled.

    The root of their number is a factor of the scale.
    """
    squares = part.apply("square", x, Value(f"{name}_squares", x.indices))
    ones, of_token = _constant("ones", *over), ("b", "s")
    total = part.contract(squares, ones, Value(f"{name}_total", of_token, width=FULL))
    inverse = part.apply("inverse_root", total, Value(f"{name}_inverse", of_token, width=FULL))
    unit = part.contract(x, inverse, Value(f"{name}_unit", x.indices))
    return _scaled(part, model, name, unit, *over)


def _dropped(part: Builder, model: Transformer, place: str, x: Value) -> Value:
    if place not in model.dropout:
        return x
    mask = _constant(f"{x.name}_mask", *x.indices, width=1)
    return part.contract(x, mask, Value(f"{x.name}_dropped", x.indices))


def _projected(part: Builder, model: Transformer, y: Value, name: str, *kept: str) -> Value:
    """One of queries, keys and values."""
    out = part.contract(y, _weight(f"{name}_weight", "h", *kept), Value(name, ("b", "s", *kept)))
    out = _biased(part, out, *kept) if "qkv" in model.biases else out
    if name == "value":
        return out
    if "heads" in model.norms:
        out = _norm_of_heads(part, model, f"{name}_heads_norm", out, *kept)
    return _norm(part, model, f"{name}_norm", out, "d") if "head" in model.norms else out


def _turned(part: Builder, model: Transformer, x: Value) -> Value:
    """Queries or keys, turned by the angle of their position."""
    if not model.turned:
        return x
    angles = _constant("angles", "s", "d", "x")
    indices = tuple("x" if i == "d" else i for i in x.indices)
    return part.contract(x, angles, Value(f"{x.name}_turned", indices))


def _of_keys(part: Builder, name: str, x: Value) -> Value:
    indices = tuple("u" if i == "s" else i for i in x.indices)
    return part.rename(x, Value(name, indices), ("s", "u"))


def _attention(part: Builder, model: Transformer, y: Value, kind: LayerKind) -> Value:
    q, keys, values = (_latent if model.latent else _from_tokens)(part, model, y)
    pairs, of_value = ("b", "g", "r", "s", "u"), values.indices[-1]
    scores = _capped(part, model, part.contract(q, keys, Value("scores", pairs)))
    mask = _constant("causal", *pairs)
    if MASKED in kind:
        of_all = () if model.distances else ("g", "r")  # heads, which have the same one
        mask = replace(mask, name=MASK, width=WRITTEN, repeats=of_all)
    seen = part.add(scores, mask, Value("seen", pairs))
    if model.in_steps and model.sinks:
        _number(part, "largest_of_keys", NUMBER_BYTES, seen, "u")
    total = Value("log_total", pairs[:-1], width=FULL)
    total = part.normalise(LOG_TOTAL, "u", seen, total) if model.sinks else total
    shares = part.normalise("softmax", "u", seen, Value("shares", pairs))
    shares = _dropped(part, model, "shares", shares)
    context = Value("of_keys" if model.sinks else "context", ("b", "s", "g", "r", of_value))
    context = part.contract(shares, values, context)
    context = _beside_sinks(part, total, context) if model.sinks else context
    if model.in_steps and model.put_together and model.heads != 1:
        by_token = replace(context, name="context_by_token")
        context = part.rename(context, by_token, ("s", "s"), function=TRANSPOSED)
    weight = _weight("output_weight", "g", "r", of_value, "h")
    out = part.contract(context, weight, Value("output", ("b", "s", "h")))
    return _biased(part, out, "h") if "output" in model.biases else out


def _beside_sinks(part: Builder, total: Value, context: Value) -> Value:
    """What keys give, less the share of a head's sink. The weight is minus the sink's score."""
    row = replace(total, name="sinks")
    sinks = part.contract(_weight("sink_weight", "g", "r"), _constant("ones", "b", "s"), row)
    above = part.add(total, sinks, replace(total, name="above_sinks"))
    left = part.apply("sigmoid", above, replace(total, name="left_by_sinks"))
    return part.contract(context, left, replace(context, name="context"))


def _from_tokens(part: Builder, model: Transformer, y: Value) -> tuple[Value, Value, Value]:
    """Queries, keys and values, each from what attention reads."""

    def placed(x: Value) -> Value:
        if not model.turned or "turned" not in model.norms:
            return _turned(part, model, x)
        x = _turned(part, model, x)
        return part.normalise(model.norm, x.indices[-1], x, replace(x, name=f"{x.name}_unit"))

    def taken(x: Value) -> Value:
        """Its heads, by their numbers: a copy."""
        if not (model.in_steps and model.numbered_heads):
            return x
        return part.contract(x, _constant("ones", "b"), replace(x, name=f"{x.name}_taken"))

    def spread(x: Value) -> Value:
        """One for each head of a group."""
        if not (model.in_steps and model.spread_keys and model.turned):
            return x
        each = Value(f"{x.name}_spread", ("b", "s", "g", "r", "d"))
        return part.contract(x, _constant("ones", "r"), each)

    q = placed(_projected(part, model, y, "query", "g", "r", "d"))
    k = placed(spread(taken(_projected(part, model, y, "key", "g", "d"))))
    if model.tempered and not model.turned:
        width = FULL if model.in_steps else 0
        by = _constant("temperatures", "s", width=width)
        q = part.contract(q, by, replace(q, name="query_tempered"))
    keys = _of_keys(part, "keys", k)
    if model.in_steps and model.numbered_heads:
        _number(part, "head_numbers", 2 * NUMBER_BYTES, _constant("ones", "h"), "h")
    return q, keys, _of_keys(part, "values", taken(_projected(part, model, y, "value", "g", "d")))


def _latent(part: Builder, model: Transformer, y: Value) -> tuple[Value, Value, Value]:
    """Queries, keys and values, from few features of each token; keys are turned from all of them."""

    def made(x: Value, name: str, *kept: str) -> Value:
        weight = _weight(f"{name}_weight", x.indices[-1], *kept)
        return part.contract(x, weight, Value(name, ("b", "s", *kept)))

    def few(name: str, index: str) -> Value:
        return _norm(part, model, f"{name}_norm", made(y, name, index), index)

    def joined(name: str, straight: Value, turned: Value, *heads: str) -> Value:
        """Each of the two is placed among the features of both; one that all heads have, in each."""
        indices = (*straight.indices[:-1], "z")
        first = part.contract(
            straight, _constant("straight_places", "n", "z"), Value(f"{name}_first", indices)
        )
        places = _constant("turned_places", *heads, turned.indices[-1], "z")
        last = part.contract(turned, places, Value(f"{name}_last", indices))
        return part.add(first, last, Value(f"{name}_joined", indices))

    x = few("query_latent", "m") if model.latent and model.latent.queries else y
    straight = made(x, "query_straight", "g", "r", "n")
    q = joined("query", straight, _turned(part, model, made(x, "query", "g", "r", "d")))
    x = few("key_latent", "l")
    straight, turned = made(x, "key_straight", "g", "n"), _turned(part, model, made(y, "key", "d"))
    keys = _of_keys(part, "keys", joined("key", straight, turned, "g"))
    return q, keys, _of_keys(part, "values", made(x, "value", "g", "y"))


def _capped(part: Builder, model: Transformer, x: Value, width: int = WRITTEN) -> Value:
    """Scores or logits, brought between two bounds: a bound times tanh of their part of it."""
    if x.name not in model.capped:
        return x
    return part.apply("cap", x, Value(f"{x.name}_capped", x.indices, width=width))


def _mlp(
    part: Builder,
    model: Transformer,
    y: Value,
    inside: str,
    *expert: str,
    of: str = "",
    odds: Value | None = None,
) -> Value:
    """The MLP of all tokens, or of each expert. `inside`: the index of its features.

    `odds`: by which its last product's operand is weighed.
    """
    tokens = tuple(i for i in y.indices if i not in ("h", *expert))
    wide = (*expert, *tokens, inside)
    biased = "mlp" in model.biases

    def widened(name: str) -> Value:
        weight = _weight(f"{of}{name}_weight", *expert, "h", inside)
        out = part.contract(y, weight, Value(f"{of}{name}", wide))
        return _biased(part, out, *expert, inside) if biased else out

    if model.gated:
        gate = part.apply(model.function, widened("gate"), Value(f"{of}gate_open", wide))
        up = widened("up")
        up = part.apply("clamp", up, Value(f"{of}up_clamped", wide)) if model.clamped else up
        inner = part.contract(gate, up, Value("unweighed" if odds else f"{of}gated", wide))
    else:
        inner = part.apply(model.function, widened("up"), Value(f"{of}active", wide))
    if odds:
        inner = part.contract(inner, odds, Value("weighed", wide))
    weight = _weight(f"{of}down_weight", *expert, inside, "h")
    out = part.contract(inner, weight, Value(f"{of}down", y.indices))
    return _biased(part, out, *expert, "h") if biased else out


def _number(part: Builder, name: str, width: Number, x: Value, over: str) -> None:
    """What is kept and not read: for each row of a value so many bytes."""
    rows = tuple(index for index in x.indices if index != over)
    part.contract(x, _constant("ones", over), Value(name, rows, width=width))


def _of_routes(model: Transformer) -> Iterator[tuple[str, Number]]:
    """Bytes that choosing experts keeps of each token, beside its odds: numbers of its experts; of its
    places among the tokens of each; a mask of experts in other groups; odds before they were divided
    by their sum, and that.
    """
    yield "chosen", NUMBER_BYTES * model.chosen
    if not model.weighed_first:
        yield "chosen_places", 2 * NUMBER_BYTES * model.chosen
    if model.of_groups:
        yield "odds_mask", model.experts
    if model.normed:
        yield "undivided_odds", FULL * model.chosen
        yield "odds_total", FULL


def _experts(part: Builder, model: Transformer, y: Value) -> Value:
    """Each token is sent to the experts it chooses, and their results are summed as it weighs them.

    What the MLP that all tokens share makes of it is added.
    """
    choices = Value("choices", ("b", "s", "j"), width=FULL)
    chosen = part.contract(y, _weight("router_weight", "h", "j"), choices)
    chosen = _biased(part, chosen, "j") if "router" in model.biases else chosen
    odds = Value("odds", ("b", "s", "j"), width=FULL)
    if model.odds == "softmax":
        shares = part.normalise("softmax", "j", chosen, odds)
    else:
        shares = part.apply(model.odds, chosen, odds)
    to_slots, to_tokens = (("b", "c"), ("s", "c")), (("c", "b"), ("c", "s"))
    width = WRITTEN if model.routed and model.plain_odds else FULL
    slots = Value("slot_odds", ("e", "c"), width=width)
    how = TRANSPOSED if model.in_steps and model.weighed_first else ""
    weights = part.rename(shares, slots, *to_slots, function=how)
    if model.routed:
        for name, each in _of_routes(model):
            _number(part, name, each, shares, "j")
        if model.of_chosen:
            part.rename(shares, Value("chosen_odds", ("e", "c")), *to_slots)
    sent = part.rename(y, Value("sent", ("e", "c", "h")), *to_slots)
    weighed = Value("weighed", ("e", "c", "h"))
    if model.weighed_first:
        out = _mlp(part, model, part.contract(weights, sent, weighed), "f", "e")
    elif model.weighed_within and "mlp" not in model.biases:
        out = _mlp(part, model, sent, "f", "e", odds=weights)
    else:
        out = part.contract(weights, _mlp(part, model, sent, "f", "e"), weighed)
    returned = part.rename(out, Value("returned", ("b", "s", "h")), *to_tokens)
    if not model.shared:
        return returned
    return part.add(returned, _mlp(part, model, y, "t", of="shared_"), Value("mixed", y.indices))


def layer(model: Transformer, kind: LayerKind = USUAL) -> Part:
    """Attention and MLP, on what comes in or on what attention makes of it; each is added to that.

    Weights of a layer that differs from most have its kind in their names.
    """
    model = replace(model, angles=model.angles and STRAIGHT not in kind)
    x = _stream("layer_in")
    part = Builder(layer_name(kind), x, "".join(f"{each}_" for each in sorted(kind)))

    def normed(name: str, value: Value) -> Value:
        return _norm(part, model, f"{name}_norm", value) if name in model.norms else value

    y = normed("attention", x)
    attended = normed("attention_out", _attention(part, model, y, kind))
    attended = _dropped(part, model, "output", attended)
    middle = x if model.parallel else normed("attention_sum", part.add(x, attended, _stream("middle")))
    if not model.parallel or "mlp" in model.norms:  # else attention and MLP share a norm
        y = normed("mlp", middle)
    if model.experts and DENSE not in kind:
        mixed = _experts(part, model, y)
    else:
        mixed = _mlp(part, model, y, "i" if model.experts else "f")
    mixed = _dropped(part, model, "output", normed("mlp_out", mixed))
    if model.parallel:
        mixed = part.add(attended, mixed, Value("both", x.indices))
    found = part.part(normed("mlp_sum", part.add(middle, mixed, _stream("layer_out"))))
    arrays = model.arrays(bool(model.experts) and DENSE not in kind)
    named = tuple(tuple(f"{part.of}{name}" for name in names) for names in arrays)
    by_heads = not BY_HEADS.isdisjoint(model.joined)
    return replace(found, arrays=named, by_heads=by_heads, reads_first=model.reads_first)


WORD_WEIGHT = "word_weight"


def embedding(model: Transformer) -> Part:
    """Each token's word, and its place."""
    part = Builder(EMBEDDING)
    tokens = _constant("tokens", "b", "s", "v")
    of_word = "o" if model.word_features else "h"
    words = replace(_stream("words"), indices=("b", "s", of_word))
    x = part.contract(tokens, _weight(WORD_WEIGHT, "v", of_word), words)
    if model.word_features:
        x = part.contract(x, _weight("widening_weight", "o", "h"), _stream("widened"))
    if model.positions:
        at = part.contract(
            _constant("places", "b", "s", "w"), _weight("place_weight", "w", "h"), _stream("placed")
        )
        x = part.add(x, at, _stream("embedded"))
    if model.in_steps and model.scaled_words:
        _number(part, "word_factor", WRITTEN, _constant("ones", "h"), "h")
    x = _norm(part, model, "word_norm", x) if "words" in model.norms else x
    return part.part(_dropped(part, model, "words", x))


def head(model: Transformer) -> Part:
    """The loss of each token: log of the sum of exp of all words' scores, less the next word's."""
    x = _stream("layers_out")
    part = Builder(HEAD, x)
    y = x if model.unnormed else _norm(part, model, "final_norm", x)
    if model.word_features:
        y = part.contract(y, _weight("narrowing_weight", "h", "o"), Value("narrowed", ("b", "s", "o")))
    words = _weight(WORD_WEIGHT if model.tied else "head_weight", "v", y.indices[-1])
    width = WRITTEN if "logits" in model.capped else FULL  # the loss is computed in fp32
    scores = part.contract(y, words, Value("logits", ("b", "s", "v"), width=width))
    scores = _capped(part, model, scores, FULL)
    of_token = ("b", "s")
    raised = part.apply("exp", scores, Value("raised", ("b", "s", "v"), width=FULL))
    total = part.contract(raised, _constant("ones", "v"), Value("total", of_token, width=FULL))
    log = part.apply("log", total, Value("log_total", of_token, width=FULL))
    lost = part.contract(
        scores, _constant("next_words", "b", "s", "v"), Value("lost", of_token, width=FULL)
    )
    return part.part(part.add(log, lost, Value("loss", of_token, Role.STREAM, FULL)))


@lru_cache(maxsize=256)
def parts(model: Model) -> tuple[Part, ...]:
    """Embedding, a layer of each kind, head; of a model without words layers alone; the opaque part.

    Or those that are given.
    """
    if isinstance(model, Opaque):
        return (opaque(),)
    if isinstance(model, Custom):
        return model.parts
    layers = tuple(layer(model, kind) for kind in dict.fromkeys(model.kinds or (USUAL,)))
    return (embedding(model), *layers, head(model)) if model.vocabulary else layers
