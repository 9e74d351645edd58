"""A1-A3: what devices keep for backward of layers, and how many weights these have, in closed form.

Symbols are those of `model_symbols`. Activations are bytes that one device keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proofs.claim import claim
from proofs.costs.addresses import views_lie_in_arrays
from proofs.costs.given import arrays_are_given
from proofs.costs.model_symbols import Symbols, latent_layer, with_experts
from proofs.costs.own_parts import (
    own_parts_are_all,
    own_parts_are_those_of_their_order,
    own_parts_of_layers_are_all,
    own_rows_are_all,
    stored_beside,
)
from proofs.costs.weights import (
    experts_weights_are_counted,
    largest_are_found,
    mlps_are_cut,
    model_has_weights,
    opaque_is_as_said,
    own_model_is_alike,
)
from proofs.language.programs import GPT, LLAMA
from proofs.models.agreement import require_equations
from proofs.models.layer_lists import require_listed
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And
from spec.costs.model_costs import numbers_of, weight_elements
from spec.derivation.programs import EVERYTHING, PAIRS
from spec.models.parts import embedding, head, layer
from spec.models.profiles import TEXTBOOK, realised
from spec.models.values import Part

SHARES = frozenset({"scores", "seen", "shares"})  # that a kernel has inside


@claim("A1")
def layers_keep_these_activations(k: Kernel) -> tuple[Theorem, ...]:
    """A layer keeps sbh(34 + 5as/h) bytes, and sbh(10 + 24/n + 5as/(hn)) with tensor parallelism.

    With sequence parallelism an n-th of the whole; without attention's pairs, sbh(10 + 24/n) and
    34sbh/n; recomputing everything, 2sbh and 2sbh/n. Where norms keep two numbers of 4 bytes of each
    row, it is 16sb more. Gathered features that are held are whole:
    sbh(4 + 30/n) of 34sbh/n. The embedding keeps its mask, sbh, or with sequence parallelism an n-th.
    The head keeps 4sbh, 4sbv and 4sb, of which tensor parallelism divides the words' by n, and sequence
    parallelism all. (Claim A1; 2205.05198 sections 4.1-4.3, 5, table 2)
    """
    x = Symbols(k, GPT, square=True)
    sbh, pairs, n = x.s * x.b * x.h, 5 * x.a * x.s * x.s * x.b, x.n
    tokens, words = x.s * x.b, x.s * x.b * x.v
    first, last = embedding(x.shape), head(x.shape)
    rows = {
        "one_device": (x.program(""), 34 * sbh + pairs),
        "attention_again": (x.program("", PAIRS), 34 * sbh),
        "all_again": (x.program("", EVERYTHING), 2 * sbh),
        "tp": (x.program("tp"), sbh * (10 + 24 / n) + pairs / n),
        "tp_attention_again": (x.program("tp", PAIRS), sbh * (10 + 24 / n)),
        "tp_all_again": (x.program("tp", EVERYTHING), 2 * sbh),
        "tp_sp": (x.program("tp+sp"), (34 * sbh + pairs) / n),
        "tp_sp_held": (x.program("tp+sp", held=True), sbh * (4 + 30 / n) + pairs / n),
        "tp_sp_attention_again": (x.program("tp+sp", PAIRS), 34 * sbh / n),
        "tp_sp_all_again": (x.program("tp+sp", EVERYTHING), 2 * sbh / n),
        "embedding": (x.program("tp", part=first), sbh),
        "tp_sp_embedding": (x.program("tp+sp", part=first), sbh / n),
        "head": (x.program("", part=last), 4 * sbh + 4 * words + 4 * tokens),
        "tp_head": (x.program("tp", part=last), 4 * sbh + 4 * words / n + 4 * tokens),
        "tp_sp_head": (
            x.program("tp+sp", part=last),
            (4 * sbh + 4 * words + 4 * tokens) / n,
        ),
    }
    of_rows = realised(layer(x.shape), replace(TEXTBOOK, rows=frozenset({"layer_norm"})), 2)
    rows["numbers_of_rows"] = x.program("", part=of_rows), 34 * sbh + pairs + 2 * 2 * 4 * tokens
    largest_are_found(k)
    own_model_is_alike(k)
    opaque_is_as_said(k)
    arrays_are_given(k)
    own_parts_are_all(k)
    own_parts_are_those_of_their_order(k)
    own_rows_are_all(k)
    stored_beside(k)
    own_parts_of_layers_are_all(k)
    require_listed(k.claim)
    places = k.reals("places")
    weights_of_layer, ends = 12 * x.h * x.h + 13 * x.h, (2 * x.v + places + 2) * x.h
    numbers = {
        "embedding_numbers": ("", first, 8 * tokens, 8 * x.s),
        "embedding_numbers_in_turns": ("cp", first, 8 * tokens / n, 8 * x.s),
        "head_numbers": ("", last, 8 * tokens, 4),
        "layer_numbers": ("", None, 0, 0),
    }
    return (
        *x.keeps(rows),
        *_numbers_take(x, numbers),
        model_has_weights(k, x.shape, weights_of_layer, ends, places),
    )


@claim("A2")
def gated_layers_keep_these_activations(k: Kernel) -> tuple[Theorem, ...]:
    """A Llama-like layer keeps bs(8h + 4d(a + kv) + 8f + 2as) bytes.

    By hand, of 2 bytes each: what the two norms take and give, 4 of bsh; queries, turned, and what
    attention gives the output product, 2 of bs ad; keys, turned, and values, 2 of bs kv d; the shares,
    bas^2; what silu takes and gives, what that gates, and their product, 4 of bsf. Norms are made
    again, from what they take; turning needs angles alone. Tensor parallelism cuts heads and f, and
    with sequence parallelism also tokens, but for what norms gave where it is gathered and held.
    Without attention's pairs there are no shares; recomputing everything leaves what the layer takes.
    Attention in one kernel keeps no shares, and of each row a log-sum-exp, 4 of bsa. A norm of the
    queries of all heads, and one of the keys, keeps what it takes, the same over its root, and of each
    token a number of 4 bytes: one over that root, which tells its derivative.
    (Claim A2; the same rule as A1; 2307.08691, section 3.1)
    """
    x = Symbols(k, LLAMA)
    tokens, n = x.b * x.s, x.n
    bsh, shares = tokens * x.h, 2 * tokens * x.a * x.s
    inner = tokens * (4 * x.d * (x.a + x.kv) + 8 * x.f)
    rows = {
        "one_device": (x.program(""), 8 * bsh + inner + shares),
        "attention_again": (x.program("", PAIRS), 8 * bsh + inner),
        "all_again": (x.program("", EVERYTHING), 2 * bsh),
        "tp": (x.program("tp"), 8 * bsh + (inner + shares) / n),
        "tp_attention_again": (x.program("tp", PAIRS), 8 * bsh + inner / n),
        "tp_all_again": (x.program("tp", EVERYTHING), 2 * bsh),
        "tp_sp": (x.program("tp+sp"), (8 * bsh + inner + shares) / n),
        "tp_sp_held": (x.program("tp+sp", held=True), 4 * bsh + (4 * bsh + inner + shares) / n),
        "tp_sp_attention_again": (x.program("tp+sp", PAIRS), (8 * bsh + inner) / n),
        "tp_sp_all_again": (x.program("tp+sp", EVERYTHING), 2 * bsh / n),
    }
    as_kernel = realised(layer(x.shape), replace(TEXTBOOK, inside=SHARES, stores=SHARES), 2)
    for name, by in (("", 1), ("tp", n)):
        in_heads = (inner + 4 * tokens * x.a) / by
        rows[f"{name}_in_a_kernel".strip("_")] = x.program(name, part=as_kernel), 8 * bsh + in_heads
    of_heads = layer(replace(x.shape, norms=x.shape.norms | {"heads"}))
    more = tokens * (4 * x.d * (x.a + x.kv) + 2 * 4)
    rows["norms_of_heads"] = x.program("", part=of_heads), 8 * bsh + inner + shares + more
    heads = 2 * x.h * x.d * (x.a + x.kv)
    require_equations(k.claim)
    weights_of_layer, ends = heads + 3 * x.h * x.f + 2 * x.h, (2 * x.v + 1) * x.h
    views_lie_in_arrays(k)
    cosines = {
        "layer_angles": ("", None, 0, 2 * x.s * x.d * 2),
        "embedding_numbers": ("", embedding(x.shape), 8 * tokens, 0),
    }
    return (
        *x.keeps(rows),
        *_numbers_take(x, cosines),
        model_has_weights(k, x.shape, weights_of_layer, ends),
        *_latent_layer(x),
    )


def _latent_layer(x: Symbols) -> tuple[Theorem, ...]:
    """Of a layer whose queries, keys and values are made from few features of each token.

    It keeps what a norm takes and gives of these few, 4 of 2 bytes, queries and keys, of features that
    are turned and others, values, and what attention gives the output product. Turned features of keys
    are made from all features, once for all heads. (2405.04434, section 2.1)
    """
    part, few, of_queries, straight, of_values = latent_layer(x)
    program, tokens, of_a_key = x.program("", part=part), x.b * x.s, straight + x.d
    heads = (x.a + x.kv) * (of_a_key + of_values)
    whole = tokens * (8 * x.h + 4 * (few + of_queries))
    inner = tokens * (2 * heads + 8 * x.f + 2 * x.a * x.s)
    rows = {
        "latent": (program, whole + inner),
        "tp_latent": (x.program("tp", part=part), whole + inner / x.n),
    }
    of_inputs = x.h * (of_queries + few + x.d) + of_queries + few
    of_few = of_queries * x.a * of_a_key + few * x.kv * (straight + of_values)
    has = of_inputs + of_few + x.a * of_values * x.h + 3 * x.h * x.f + 2 * x.h
    found = sum(weight_elements(program, x.sizes, {}).values())
    return (*x.keeps(rows), x.k.prove("latent_layer_has", found == has))


def _numbers_take(x: Symbols, rows: Mapping[str, tuple[str, Part | None, Any, Any]]) -> list[Theorem]:
    """What devices keep of a part's tokens, and of places and the count of a loss, if they keep any."""
    found = []
    for name, (strategy, part, tokens, places) in rows.items():
        program = x.program(strategy, part=part)
        has = numbers_of((program,), x.shape, x.sizes, x.mesh(program), 2)
        claim = And(tokens == has.tokens, places == has.places)
        found.append(x.k.prove(f"{name}_take", claim))
    return found


@claim("A3")
def expert_layers_keep_these_activations(k: Kernel) -> tuple[Theorem, ...]:
    """With `chosen` of E experts, bs(8h + 4d(a + kv) + 2as + 4E + chosen (4h + 8f + 4)) bytes.

    By hand: attention and norms as without experts. The odds of all experts, for their softmax's
    backward, and of those chosen, which weigh what these give, take 4 bytes. In each of bs chosen
    slots: what an expert takes and gives, 2 of h, and 4 of f as in a gated MLP, of 2 bytes. Expert
    parallelism cuts samples, and slots by experts: an n-th of all. Where tensor parallelism cuts each
    expert, heads and f are cut alone, and with sequence parallelism also tokens and slots.
    (Claim A3; the same rule as A1)
    """
    x, experts, chosen = with_experts(k)
    tokens, slots, n = x.b * x.s, x.b * x.s * chosen, x.n
    whole = tokens * (8 * x.h + 4 * experts) + slots * (4 * x.h + 4)
    inner = tokens * 4 * x.d * (x.a + x.kv) + slots * 8 * x.f
    shares = 2 * tokens * x.a * x.s
    rows = {
        "one_device": (x.program(""), whole + inner + shares),
        "attention_again": (x.program("", PAIRS), whole + inner),
        "all_again": (x.program("", EVERYTHING), 2 * tokens * x.h),
        "ep": (x.program("ep"), (whole + inner + shares) / n),
        "ep_attention_again": (x.program("ep", PAIRS), (whole + inner) / n),
        "ep_all_again": (x.program("ep", EVERYTHING), 2 * tokens * x.h / n),
        "tp": (x.program("tp"), whole + (inner + shares) / n),
        "tp_sp": (x.program("tp+sp"), (whole + inner + shares) / n),
    }
    mlps_are_cut(k)
    model = replace(x.shape, vocabulary=1, chosen=chosen)
    return (*x.keeps(rows), *experts_weights_are_counted(k, model))
