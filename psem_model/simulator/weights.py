"""The weights of a transformer on one device, written out: their names and indices."""

from __future__ import annotations

from psem_model.simulator.tables import OUTSIDE
from spec.models.transformer import DENSE, LayerKind, Transformer

Key = tuple[int, str]  # a weight: its layer, or OUTSIDE, and its name


def _norm(model: Transformer, name: str, over: str = "h") -> dict[str, str]:
    parts = ("scale", "bias") if model.norm == "layer_norm" else ("scale",)
    return {f"{name}_norm_{part}": over for part in parts}


def _of_attention(model: Transformer) -> dict[str, str]:
    """The weights of queries, keys, values and what is made of them."""
    if latent := model.latent:
        x = "m" if latent.queries else "h"
        found = {"query_latent_weight": "hm"} | _norm(model, "query_latent", "m") if x == "m" else {}
        found |= {"query_weight": f"{x}grd", "query_straight_weight": f"{x}grn"}
        found |= {"key_latent_weight": "hl"} | _norm(model, "key_latent", "l")
        found |= {"key_weight": "hd", "key_straight_weight": "lgn", "value_weight": "lgy"}
        return found | {"output_weight": "gryh"}
    found = {
        "query_weight": "hgrd",
        "key_weight": "hgd",
        "value_weight": "hgd",
        "output_weight": "grdh",
    }
    if "head" in model.norms:
        found |= _norm(model, "query", "d") | _norm(model, "key", "d")
    if "heads" in model.norms:
        found |= _norm(model, "query_heads", "grd") | _norm(model, "key_heads", "gd")
    if "qkv" in model.biases:
        found |= {"query_bias": "grd", "key_bias": "gd", "value_bias": "gd"}
    return found


def _of_mlp(model: Transformer, inside: str, expert: str = "", of: str = "") -> dict[str, str]:
    found = {}
    widths = {"up": f"h{inside}", "down": f"{inside}h"} | (
        {"gate": f"h{inside}"} if model.gated else {}
    )
    for name, width in widths.items():
        found[f"{of}{name}_weight"] = expert + width
        if "mlp" in model.biases:
            found[f"{of}{name}_bias"] = expert + width[1]
    return found


def _of_layer(model: Transformer, kind: LayerKind) -> dict[str, str]:
    found = _of_attention(model)
    for name in ("attention", "attention_out", "mlp", "mlp_out"):
        found |= _norm(model, name) if name in model.norms else {}
    found |= {"sink_weight": "gr"} if model.sinks else {}
    if "output" in model.biases:
        found["output_bias"] = "h"
    if not model.experts or DENSE in kind:
        found |= _of_mlp(model, "i" if model.experts else "f")
    else:
        found |= {"router_weight": "hj"} | _of_mlp(model, "f", "e")
        found |= {"choices_bias": "j"} if "router" in model.biases else {}
        found |= _of_mlp(model, "t", of="shared_") if model.shared else {}
    return {prefix(kind) + name: at for name, at in found.items()}


def prefix(kind: LayerKind) -> str:
    """What the names of weights of a layer that differs from most begin with."""
    return "".join(f"{each}_" for each in sorted(kind))


def shapes(model: Transformer) -> dict[Key, str]:
    """The indices of each weight, named as in `spec.models.parts`."""
    found = {
        (layer, name): at
        for layer in range(model.layers)
        for name, at in _of_layer(model, model.kind(layer)).items()
    }
    outside = {"word_weight": "vh"} | _norm(model, "final")
    outside |= _norm(model, "word") if "words" in model.norms else {}
    outside |= {} if model.tied else {"head_weight": "vh"}
    outside |= {"place_weight": "wh"} if model.positions else {}
    return found | {(OUTSIDE, name): at for name, at in outside.items()}
