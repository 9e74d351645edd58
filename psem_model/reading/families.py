"""Families of models, as data.

Source: transformers 5.23.0, src/transformers/models/*/configuration_*.py and modeling_*.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psem_model.reading.family import (
    ATTENTION,
    EVERYWHERE,
    MLP,
    QKV,
    RESULTS,
    ROUTER,
    SHARES,
    WORDS,
    Family,
    Has,
    Places,
    Windows,
)
from psem_model.reading.fields import Fields
from spec.models.transformer import DENSE, STRAIGHT, USUAL, USUAL_NORMS, Latent, LayerKind

OF_ATTENTION: dict[str, tuple[bool, Places]] = {"attention_bias": (False, ATTENTION)}
LLAMA: dict[str, Any] = {"gated": True, "norm": "rms_norm"}
BOTH_SIDES = USUAL_NORMS | {"attention_out", "mlp_out"}
CLAMPED = {"function": "clamped_silu", "clamped": True}
NO_BIASES = {"attention_bias": False, "mlp_bias": False}


def _capped(scores: float | None, logits: float | None) -> Callable[[Fields], Has]:
    """Scores and logits are capped unless their bound is null; what bounds are, if absent."""
    bounds = (
        ("attn_logit_softcapping", "scores", scores),
        ("final_logit_softcapping", "logits", logits),
    )

    def read(fields: Fields) -> Has:
        return {"capped": frozenset(at for name, at, bound in bounds if fields.bound(name, bound))}

    return read


def _falcon(fields: Fields) -> Has:
    """Parallel blocks with a norm or two, keys of one head or some, distances or angles."""
    new, distances = fields.flag("new_decoder_architecture", False), fields.flag("alibi", False)
    parallel, one_key = fields.flag("parallel_attn", True), fields.flag("multi_query", True)
    heads = fields.size("num_attention_heads")
    norms = fields.get("num_ln_in_parallel_attn")
    if new and not parallel:
        raise fields.wrong("new_decoder_architecture", "false where parallel_attn is")
    if norms not in (None, 1, *([2] if new else [])):
        raise fields.wrong("num_ln_in_parallel_attn", "1 or 2" if new else "1")
    if new:
        kv_heads = fields.size_or("num_kv_heads", lambda: heads)
        if heads % kv_heads:
            raise fields.wrong("num_kv_heads", f"a divisor of num_attention_heads, {heads}")
    else:
        kv_heads = 1 if one_key else heads
        fields.only("num_kv_heads", kv_heads, heads)  # not looked at
    two = not parallel or (new and norms != 1)
    return {
        "kv_heads": kv_heads,
        "parallel": parallel,
        "norms": USUAL_NORMS if two else frozenset({"attention"}),
        "distances": distances,
        "angles": not distances,
    }


def _opt(fields: Fields) -> Has:
    """As many learned places as there are positions, and two more; words as wide as layers."""
    fields.only("word_embed_proj_dim", fields.size("hidden_size"))
    return {"positions": fields.size("max_position_embeddings"), "spare": 2}


def _bloom(fields: Fields) -> Has:
    """The MLP is four times as wide as the layers, whatever else it is said to be."""
    fields.only("n_inner", 4 * fields.size("n_embed"))
    return {}


def _neox(fields: Fields) -> Has:
    return {"parallel": fields.flag("use_parallel_residual", True)}


def _of_kinds(layers: int, dense: int, kind: Callable[[int], LayerKind]) -> Has:
    """Layers of some kinds, by their numbers; those without experts have an MLP of `dense` features."""
    kinds = tuple(map(kind, range(layers)))
    has: dict[str, Any] = {}
    if all(DENSE in each for each in kinds):
        kinds = tuple(each - {DENSE} for each in kinds)
        has = {"experts": 0, "chosen": 0, "shared": 0, "feed_forward": dense}
    elif any(DENSE in each for each in kinds):
        has = {"dense": dense}
    return has | {"kinds": kinds if any(kinds) else ()}


def _deepseek(odds: str, first: int, shared: int) -> Callable[[Fields], Has]:
    """Latent attention; experts, some of them shared, but in the first layers.

    `first`, `shared`: what two fields are, if absent.
    """

    def read(fields: Fields) -> Has:
        straight, turned = fields.size("qk_nope_head_dim"), fields.size("qk_rope_head_dim")
        fields.only("head_dim", turned)
        fields.only("qk_head_dim", straight + turned)
        heads = fields.size("num_attention_heads")
        fields.only("num_key_value_heads", heads)
        if "q_lora_rank" not in fields.given:
            raise fields.missing("q_lora_rank", "a whole number, or null")
        queries = fields.size_or("q_lora_rank", lambda: 0)
        values = fields.size("v_head_dim")
        fields.only("scoring_func", odds)
        more = fields.count("num_nextn_predict_layers", 0)
        without = fields.count("first_k_dense_replace", first)

        def kind(layer: int) -> LayerKind:
            return frozenset({DENSE}) if layer < without else USUAL

        fields.stored("fp8")
        return {
            "head_dim": turned,
            "latent": Latent(fields.size("kv_lora_rank"), queries, straight, values),
            "odds": odds,
            "shared": fields.count("n_shared_experts", shared) * fields.size("moe_intermediate_size"),
            "further": more,
            **_of_kinds(fields.listed("num_hidden_layers"), fields.size("intermediate_size"), kind),
        }

    return read


def _llama4(fields: Fields) -> Has:
    """Layers without experts, and layers whose queries and keys are not turned, among others."""
    layers = fields.listed("num_hidden_layers")
    step = fields.size_or("interleave_moe_layer_step", lambda: 1)
    with_experts = fields.numbers("moe_layers", layers)
    if with_experts is None:
        with_experts = [*range(step - 1, layers, step)]
    every = fields.size_or("no_rope_layer_interval", lambda: 4)
    turned = fields.numbers("no_rope_layers", 2)
    turned = turned or [int((layer + 1) % every != 0) for layer in range(layers)]
    if len(turned) != layers:
        raise fields.wrong("no_rope_layers", f"a list of {layers:,} of 0 and 1")
    types = ["chunked_attention" if each else "full_attention" for each in turned]
    fields.only("layer_types", types)
    tuning = fields.get("attn_temperature_tuning", True)
    if not isinstance(tuning, int):
        raise fields.wrong("attn_temperature_tuning", "true or false, or a whole number")
    chunk = fields.size_or("attention_chunk_size", lambda: 0)
    norms = {"turned"} if fields.flag("use_qk_norm", True) else set()

    def kind(layer: int) -> LayerKind:
        differs = {DENSE: layer not in with_experts, STRAIGHT: not turned[layer]}
        return frozenset(name for name, does in differs.items() if does)

    return {
        "odds": "sigmoid",
        "weighed_first": True,
        "shared": fields.size("intermediate_size"),
        "norms": USUAL_NORMS | norms,
        "windows": tuple(chunk * each for each in turned) if chunk else (),
        "chunked": bool(chunk),
        "tempered": bool(tuning),
        **_of_kinds(layers, fields.size("intermediate_size_mlp"), kind),
    }


def _gpt_oss(fields: Fields) -> Has:
    """What else a field is called, and how weights are stored."""
    fields.only("experts_per_token", fields.size("num_experts_per_tok"))
    fields.stored("mxfp4")
    return {}


DEEPSEEK: dict[str, Any] = {
    "fields": {"experts": "n_routed_experts"},
    "has": LLAMA,
    "all_kv_heads": True,
    "head_dim": 64,
    "experts": "moe_intermediate_size",
    "only": NO_BIASES | {"moe_layer_freq": 1},
    "harmless": frozenset(
        {
            # which experts tokens are sent to, factors of odds, and a loss that is not asked for
            *("n_group", "topk_group", "topk_method", "routed_scaling_factor", "aux_loss_alpha"),
            *("seq_aux", "ep_size", "auto_map", "quantization_config"),
        }
    ),
}


FAMILIES = {
    "llama": Family(
        "LlamaForCausalLM",
        has=LLAMA,
        even=True,
        biases=OF_ATTENTION | {"mlp_bias": (False, MLP)},
    ),
    "mistral": Family(
        "MistralForCausalLM",
        has=LLAMA,
        kv_heads=8,
        null_kv_heads=False,
        windows=Windows(4096),
        only=NO_BIASES,
    ),
    "mixtral": Family(
        "MixtralForCausalLM",
        has=LLAMA,
        kv_heads=8,
        null_kv_heads=False,
        windows=Windows(),
        experts="intermediate_size",
        only=NO_BIASES,
    ),
    "qwen2": Family(
        "Qwen2ForCausalLM",
        has=LLAMA | {"biases": QKV},
        kv_heads=32,
        windows=Windows(4096, switched=True, first=True),
        only={"attention_bias": True, "mlp_bias": False},
    ),
    "qwen3": Family(
        "Qwen3ForCausalLM",
        has=LLAMA | {"norms": USUAL_NORMS | {"head"}},
        kv_heads=32,
        head_dim=128,
        biases=OF_ATTENTION,
        windows=Windows(4096, switched=True, first=True),
    ),
    "qwen3_moe": Family(
        "Qwen3MoeForCausalLM",
        has=LLAMA | {"norms": USUAL_NORMS | {"head"}},
        kv_heads=4,
        null_kv_heads=False,
        biases=OF_ATTENTION,
        windows=Windows(4096, switched=True),
        experts="moe_intermediate_size",
        only={
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "qkv_bias": False,
            "use_qk_norm": True,
            "shared_expert_intermediate_size": 0,
        },
        harmless=frozenset({"intermediate_size", "max_window_layers"}),
    ),
    "gemma": Family(
        "GemmaForCausalLM",
        has=LLAMA,
        functions=("hidden_activation", "hidden_act"),
        function="gelu_pytorch_tanh",
        kv_heads=16,
        null_kv_heads=False,
        head_dim=256,
        tied=True,
        biases=OF_ATTENTION,
    ),
    "gemma2": Family(
        "Gemma2ForCausalLM",
        has=LLAMA | {"norms": BOTH_SIDES},
        functions=("hidden_activation", "hidden_act"),
        function="gelu_pytorch_tanh",
        kv_heads=4,
        null_kv_heads=False,
        head_dim=256,
        even=True,
        tied=True,
        biases=OF_ATTENTION,
        windows=Windows(4096, every=2),
        more=_capped(50.0, 30.0),
    ),
    "gemma3_text": Family(
        "Gemma3ForCausalLM",
        has=LLAMA | {"norms": BOTH_SIDES | {"head"}},
        functions=("hidden_activation", "hidden_act"),
        function="gelu_pytorch_tanh",
        kv_heads=4,
        null_kv_heads=False,
        head_dim=256,
        tied=True,
        biases=OF_ATTENTION,
        windows=Windows(4096, every=6, pattern="sliding_window_pattern"),
        more=_capped(None, None),
        harmless=frozenset({"_sliding_window_pattern"}),
    ),
    "phi3": Family(
        "Phi3ForCausalLM",
        has=LLAMA,
        dropout={"attention_dropout": (0.0, SHARES), "resid_pdrop": (0.0, RESULTS)},
        windows=Windows(),
        only=NO_BIASES | {"lm_head_bias": False, "full_attn_mod": 1, "interpolate_factor": 1},
        harmless=frozenset({"auto_map", "embd_pdrop", "original_max_position_embeddings"}),
    ),
    "olmo2": Family(
        "Olmo2ForCausalLM",
        has=LLAMA | {"norms": frozenset({"attention_out", "mlp_out", "heads"})},
        biases=OF_ATTENTION,
    ),
    "gpt2": Family(
        "GPT2LMHeadModel",
        fields={"heads": "n_head", "hidden": "n_embd", "layers": "n_layer", "feed_forward": "n_inner"},
        has={"angles": False, "biases": EVERYWHERE},
        functions=("activation_function",),
        function="gelu_new",
        all_kv_heads=True,
        no_head_dim=True,
        wide=True,
        tied=True,
        dropout={
            "embd_pdrop": (0.1, WORDS),
            "attn_pdrop": (0.1, SHARES),
            "resid_pdrop": (0.1, RESULTS),
        },
        only={"reorder_and_upcast_attn": False},
        more=lambda fields: {"positions": fields.size("n_positions")},
        harmless=frozenset({"n_ctx"}),
    ),
    "gpt_neox": Family(
        "GPTNeoXForCausalLM",
        function="gelu",
        all_kv_heads=True,
        no_head_dim=True,
        biases={"attention_bias": (True, ATTENTION)},
        has={"biases": MLP},
        dropout={"attention_dropout": (0.0, SHARES), "hidden_dropout": (0.0, RESULTS | WORDS)},
        more=_neox,
    ),
    "opt": Family(
        "OPTForCausalLM",
        fields={"feed_forward": "ffn_dim"},
        has={"angles": False},
        functions=("activation_function",),
        function="relu",
        all_kv_heads=True,
        no_head_dim=True,
        tied=True,
        biases={"enable_bias": (True, EVERYWHERE)},
        dropout={"dropout": (0.1, RESULTS), "attention_dropout": (0.0, SHARES)},
        only={
            "do_layer_norm_before": True,
            "_remove_final_layer_norm": False,
            "layer_norm_elementwise_affine": True,
            "layerdrop": 0.0,
        },
        more=_opt,
        harmless=frozenset({"activation_dropout"}),
    ),
    "bloom": Family(
        "BloomForCausalLM",
        fields={"hidden": "n_embed", "heads": "n_head", "layers": "n_layer", "feed_forward": ""},
        has={
            "norms": USUAL_NORMS | {"words"},
            "angles": False,
            "distances": True,
            "biases": EVERYWHERE,
        },
        functions=(),
        function="gelu",
        all_kv_heads=True,
        no_head_dim=True,
        wide=True,
        tied=True,
        dropout={"attention_dropout": (0.0, SHARES), "hidden_dropout": (0.0, RESULTS)},
        only={"apply_residual_connection_post_layernorm": False},
        more=_bloom,
    ),
    "falcon": Family(
        "FalconForCausalLM",
        fields={"feed_forward": "ffn_hidden_size"},
        functions=("activation",),
        function="gelu",
        all_kv_heads=True,
        no_head_dim=True,
        wide=True,
        tied=True,
        biases={"bias": (False, EVERYWHERE)},
        dropout={},
        only={
            "apply_residual_connection_post_layernorm": False,
            "attention_dropout": 0.0,
            "hidden_dropout": 0.0,
            "ff_factor": 4,
        },
        more=_falcon,
        harmless=frozenset({"auto_map"}),
    ),
    "llama4_text": Family(
        "Llama4ForCausalLM",
        has=LLAMA,
        kv_heads=8,
        head_dim=128,
        biases=OF_ATTENTION,
        experts="intermediate_size",
        more=_llama4,
        harmless=frozenset({"floor_scale", "attn_scale", "for_llm_compressor"}),
    ),
    "gpt_oss": Family(
        "GptOssForCausalLM",
        has=LLAMA | CLAMPED | {"sinks": True, "biases": MLP | ROUTER},
        kv_heads=8,
        head_dim=64,
        biases={"attention_bias": (True, ATTENTION)},
        windows=Windows(128, every=2),
        experts="intermediate_size",
        only={"hidden_act": "silu"},
        more=_gpt_oss,
        harmless=frozenset(
            {"swiglu_alpha", "swiglu_limit", "initial_context_length", "quantization_config"}
        ),
    ),
    "deepseek_v2": Family("DeepseekV2ForCausalLM", more=_deepseek("softmax", 0, 2), **DEEPSEEK),
    "deepseek_v3": Family("DeepseekV3ForCausalLM", more=_deepseek("sigmoid", 3, 1), **DEEPSEEK),
}


# what is known not to be one of them, and why
OTHERS = {
    "gemma3": "an encoder of images is not modelled; its text model alone is, as gemma3_text",
    "llama4": "an encoder of images is not modelled; its text model alone is, as llama4_text",
    "qwen2_moe": "experts that are shared by all tokens are not modelled",
}
