"""Shapes of models: perceptrons, small transformers, and models of transformers by configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

TOKENS = 7  # of a sample, of models by configuration


@dataclass(frozen=True)
class Mlp:
    """Linear layers between so many features, each but the last followed by a gelu."""

    widths: tuple[int, ...]
    biases: bool = True

    def __str__(self) -> str:
        return f"mlp {'-'.join(map(str, self.widths))}{'' if self.biases else ' without biases'}"


@dataclass(frozen=True)
class Decoder:
    """A transformer like Llama: rms norms, turned queries and keys, a gated silu, no biases.

    `gpt`: like GPT: layer norms, learned places, a gelu, biases, the head's words are the embedding's.
    `fused`: attention by one kernel, that keeps no pairs of tokens.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int
    sequence: int
    fused: bool = False
    gpt: bool = False

    def __str__(self) -> str:
        kind = f"{'fused ' if self.fused else ''}{'gpt' if self.gpt else 'decoder'}"
        heads = f"{self.heads}/{self.kv_heads}"
        return f"{kind} {self.layers}x{self.hidden}x{self.feed_forward} {heads} {self.vocabulary}"


@dataclass(frozen=True)
class Configured:
    """A model of transformers, by its `model_type` and other fields of its configuration.

    `fused`: of one process, attention by one kernel, and not operation by operation.
    """

    family: str
    fields: tuple[tuple[str, Any], ...]
    vocabulary: int
    sequence: int
    fused: bool = False

    @property
    def content(self) -> dict[str, Any]:
        """What its config.json would have."""
        return {"model_type": self.family, "vocab_size": self.vocabulary, **dict(self.fields)}

    def __str__(self) -> str:
        numbers = (str(n) for _, n in self.fields if isinstance(n, int) and not isinstance(n, bool))
        tokens = f" of {self.sequence} tokens" * (self.sequence != TOKENS)
        kind = f"{'fused ' * self.fused}{self.family}"
        return f"{kind} {'-'.join(numbers)} {self.vocabulary}{tokens}"

    def but(self, sequence: int = 0, **fields: Any) -> Configured:
        """The same with other fields, or with so many tokens."""
        changed = tuple((dict(self.fields) | fields).items())
        return replace(self, fields=changed, sequence=sequence or self.sequence)


EVEN, ODD, PLAIN = Mlp((8, 16, 8)), Mlp((7, 13, 5)), Mlp((12, 20, 20, 4), biases=False)
SMALL = Decoder(2, 16, 4, 4, 24, 32, 6)  # tokens of a micro-batch differ in number from features
GROUPED = Decoder(3, 24, 4, 2, 40, 30, 8)  # fewer heads of keys than of queries
WIDE = Decoder(2, 32, 8, 8, 48, 64, 8)
FUSED, FUSED_GROUPED = replace(SMALL, sequence=8, fused=True), replace(GROUPED, fused=True)
GPT = replace(SMALL, gpt=True)
UNEVEN = Decoder(2, 16, 4, 4, 24, 30, 8)  # words that do not divide by 4
DEEP = Decoder(8, 16, 2, 2, 24, 20, 6)


LARGE = Mlp((300, 700, 700, 300))  # of more than one bucket, by default


def configured(family: str, **of: Any) -> Configured:
    """A small model of transformers, of 31 words and 7 tokens; rows of no weight divide by 4."""
    return Configured(family, tuple(of.items()), 31, TOKENS)


LIKE_LLAMA = {
    "num_hidden_layers": 3,
    "hidden_size": 20,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "intermediate_size": 27,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
}
FEW_HEADS = {**LIKE_LLAMA, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 6}
OF_EXPERTS = {"num_experts_per_tok": 2, "tie_word_embeddings": False}
DROPS = ("attn_pdrop", "embd_pdrop", "resid_pdrop")
OF_NEOX = {
    key: LIKE_LLAMA[key] for key in LIKE_LLAMA if key not in ("num_key_value_heads", "pad_token_id")
}
NEOX = configured("gpt_neox", **OF_NEOX)
JOINED = (
    configured("phi3", **LIKE_LLAMA),
    configured(
        "gpt2", n_layer=3, n_embd=18, n_head=3, n_inner=27, n_positions=9, **dict.fromkeys(DROPS, 0.0)
    ),
    NEOX,
    configured("bloom", n_layer=2, hidden_size=18, n_embed=18, n_head=3),
)
ALONE = (  # all features of a head are turned
    *(model for model in JOINED if model is not NEOX),
    configured("gpt_neox", **OF_NEOX, rotary_pct=1.0),
    configured(
        "opt",
        num_hidden_layers=3,
        hidden_size=20,
        num_attention_heads=5,
        ffn_dim=27,
        max_position_embeddings=32,
        word_embed_proj_dim=20,
        dropout=0.0,
    ),
    configured("llama", **LIKE_LLAMA),
    configured("qwen3", **FEW_HEADS, tie_word_embeddings=False),
    configured("olmo2", **(LIKE_LLAMA | {"num_key_value_heads": 1, "num_attention_heads": 2})),
)
OF_LATENT: dict[str, Any] = {
    **{key: LIKE_LLAMA[key] for key in LIKE_LLAMA if not key.endswith("heads")},
    **{"num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": False},
    **{"kv_lora_rank": 8, "q_lora_rank": 11, "qk_rope_head_dim": 6, "qk_nope_head_dim": 4},
    **{"v_head_dim": 7, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 9},
    **{"n_shared_experts": 2, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1},
}
OF_FALCON: dict[str, Any] = {
    **{"num_hidden_layers": 2, "hidden_size": 20, "num_attention_heads": 5, "ffn_hidden_size": 27},
    **{"attention_dropout": 0.0, "hidden_dropout": 0.0},
}
IN_GROUPS = {
    "topk_method": "group_limited_greedy",
    "n_routed_experts": 14,
    "n_group": 7,
    "topk_group": 3,
}
APART = {"multi_query": False, "parallel_attn": False, "bias": True, "alibi": True}
OF_LLAMA_4 = FEW_HEADS | {
    **{"num_hidden_layers": 4, "num_local_experts": 5, "num_experts_per_tok": 1},
    **{"intermediate_size_mlp": 10, "interleave_moe_layer_step": 2},
}
FEW_WIDE = {**FEW_HEADS, **OF_EXPERTS, "moe_intermediate_size": 9}
LATENT = configured("deepseek_v3", **OF_LATENT)
FALCON_OF_GROUPS = configured("falcon", **OF_FALCON, new_decoder_architecture=True, num_kv_heads=1)
BY_NUMBER = (  # tokens of experts, and heads, are taken by numbers; norms have one more than a scale
    configured("mixtral", **FEW_HEADS, num_local_experts=4, **OF_EXPERTS),
    configured("qwen3_moe", **FEW_WIDE, num_experts=7),
    configured("qwen3_moe", **FEW_WIDE, num_experts=4, norm_topk_prob=True),
    configured("gpt_oss", **FEW_HEADS, num_local_experts=4, **OF_EXPERTS),
    configured("llama4_text", **OF_LLAMA_4),
    configured("deepseek_v2", **OF_LATENT, topk_method="greedy"),
    LATENT,
    configured("gemma", **LIKE_LLAMA | {"head_dim": 6}),
    configured("gemma2", **FEW_HEADS, sliding_window=3),
    configured("gemma3_text", **FEW_HEADS, sliding_window=3),
    configured("falcon", **OF_FALCON),
    configured("falcon", **OF_FALCON | APART | {"num_hidden_layers": 3}),
    FALCON_OF_GROUPS,
    configured("deepseek_v2", **OF_LATENT | IN_GROUPS),
)
OF_OPT: dict[str, Any] = {
    **{"num_hidden_layers": 4, "hidden_size": 20, "num_attention_heads": 5, "ffn_dim": 27},
    **{"max_position_embeddings": 32, "dropout": 0.0, "do_layer_norm_before": False},
}
NORMED_AFTER = (  # sums are normalised; words have features of their own, or not
    configured("opt", **OF_OPT, word_embed_proj_dim=20),
    configured("opt", **OF_OPT | {"num_hidden_layers": 2}, word_embed_proj_dim=14),
)
FEW = (  # of one head, of one group of heads, of several, or of one token: which arrays are views
    *(model.but(num_attention_heads=1, num_key_value_heads=1) for model in (ALONE[0], ALONE[5])),
    ALONE[0].but(num_attention_heads=2, num_key_value_heads=1),
    ALONE[0].but(hidden_size=24, num_attention_heads=4, num_key_value_heads=2),
    ALONE[1].but(n_head=1),
    NEOX.but(num_attention_heads=1),
    NEOX.but(num_attention_heads=2),
    LATENT.but(sequence=8, num_attention_heads=1, num_key_value_heads=1),
    configured("qwen3", **FEW_HEADS | {"num_attention_heads": 6, "num_key_value_heads": 3}),
    configured("llama", **FEW_HEADS),
    FALCON_OF_GROUPS.but(hidden_size=24, num_attention_heads=4, num_kv_heads=2),
    FALCON_OF_GROUPS.but(hidden_size=24, num_attention_heads=4, alibi=True),
    *(model.but(sequence=1) for model in (ALONE[0], NEOX, ALONE[6], BY_NUMBER[4])),
)
IN_A_KERNEL = tuple(  # of which attention as transformers calls it has neither masks nor other values
    replace(model, fused=True)
    for model in (
        *(ALONE[1], *ALONE[4:], *BY_NUMBER[:3], BY_NUMBER[4], BY_NUMBER[7]),
        *(*FEW[12:14], FEW[0], FEW[4], FEW[5], *FEW[8:10]),
        *(ALONE[0], ALONE[3], FEW[2], FEW[3], FEW[6]),  # queries are put together head by head
    )
)
TURNED_OTHERWISE = configured("gemma3_text", **FEW_HEADS | {"num_hidden_layers": 7}, sliding_window=3)
IN_GROUPS_OF_TWO = {"hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2}
OF_WINDOW = configured("mistral", **LIKE_LLAMA | IN_GROUPS_OF_TWO, sliding_window=3)
WITH_A_MASK = tuple(  # which a kernel of attention is given, where a window has no more tokens
    replace(model, fused=True)
    for model in (
        configured("mistral", **LIKE_LLAMA, sliding_window=3),
        *(OF_WINDOW, OF_WINDOW.but(sliding_window=TOKENS), OF_WINDOW.but(sliding_window=TOKENS + 1)),
        OF_WINDOW.but(sequence=1, sliding_window=1),
        *(ALONE[0].but(sliding_window=3), FEW[3].but(sliding_window=4)),
        configured(
            "qwen2",
            **(LIKE_LLAMA | IN_GROUPS_OF_TWO | {"num_attention_heads": 6, "num_key_value_heads": 3}),
            **{"sliding_window": 5, "use_sliding_window": True, "max_window_layers": 1},
        ),
        TURNED_OTHERWISE,
        TURNED_OTHERWISE.but(num_attention_heads=4, num_key_value_heads=2, sliding_window=6),
        configured("mixtral", **FEW_HEADS, num_local_experts=4, **OF_EXPERTS, sliding_window=3),
        BY_NUMBER[4].but(num_attention_heads=4, num_key_value_heads=2, attention_chunk_size=3),
    )
)
GROUPED_FALCON = FALCON_OF_GROUPS.but(hidden_size=24, num_attention_heads=6, num_kv_heads=2)
FALCON, APART_FALCON = BY_NUMBER[10:12]
FALCONS = tuple(  # given a mask, of all layers or of each; or, of one head of keys, by no kernel
    replace(model.but(ffn_hidden_size=28 + number), fused=True)
    for number, model in enumerate(
        (
            *(FALCON, FALCON.but(hidden_size=24, num_attention_heads=2), FALCON.but(sequence=1)),
            *(FALCON.but(num_attention_heads=1), FALCON.but(num_attention_heads=1, alibi=True)),
            *(FALCON.but(multi_query=False), FALCON.but(multi_query=False, parallel_attn=False)),
            *(FALCON_OF_GROUPS, FALCON_OF_GROUPS.but(num_kv_heads=5), GROUPED_FALCON),
            *(GROUPED_FALCON.but(sequence=1), GROUPED_FALCON.but(alibi=True)),
            *(FALCON_OF_GROUPS.but(alibi=True), GROUPED_FALCON.but(sequence=1, alibi=True)),
            *(APART_FALCON, APART_FALCON.but(sequence=1), APART_FALCON.but(num_attention_heads=1)),
            FALCON.but(bias=True),
        )
    )
)
GIVEN_MASKS = tuple(  # whose layers are made again, of masks and others that they are given
    replace(model, fused=fused)
    for fused, models in (
        (False, (*ALONE[:2], *JOINED[3:], *ALONE[4:6], BY_NUMBER[4], *BY_NUMBER[7:9], APART_FALCON)),
        (False, (TURNED_OTHERWISE, OF_WINDOW, OF_WINDOW.but(sliding_window=TOKENS + 1))),
        (
            True,
            (ALONE[1], *ALONE[4:6], *FALCONS[7:9], FALCON.but(alibi=True), APART_FALCON, *WITH_A_MASK),
        ),
    )
    for model in models
)
WITH_EXPERTS = (
    configured("mixtral", **FEW_HEADS, num_local_experts=3, **OF_EXPERTS),
    configured("qwen3_moe", **FEW_HEADS, num_experts=3, moe_intermediate_size=9, **OF_EXPERTS),
    configured("gpt_oss", **FEW_HEADS, num_local_experts=3, **OF_EXPERTS),
)
