"""Published configurations have their published sizes; fields say what their families mean."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conformance.counts import configurations, recorded, recorded_turned
from psem_model.reading.configurations import read
from psem_model.text.errors import BadInput
from spec.costs.model_costs import active, further_elements, parameters
from spec.models.transformer import DENSE, DROPPED, STRAIGHT, USUAL, USUAL_NORMS
from tests.support.configurations import published, write

DENSE_LAYER = frozenset({DENSE})

# Elements of the weights that are published with each configuration, without buffers (masks, angles)
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b-v0.1": 7_241_732_096,
    "mistral-nemo-base-2407": 12_247_782_400,
    "mixtral-8x7b-v0.1": 46_702_792_704,
    "mixtral-8x22b-v0.1": 140_620_634_112,
    "mixtral-8x22b-instruct-v0.1": 140_630_071_296,
    "qwen2-0.5b": 494_032_768,
    "qwen2-7b": 7_615_616_512,
}


def test_what_is_published_is_what_the_reference_implementation_counts():
    assert {name: recorded()[name] for name in PUBLISHED} == PUBLISHED


DEEPSEEK = {  # the names of its own inference code, and those of transformers
    "vocab_size": "vocab_size",
    "dim": "hidden_size",
    "inter_dim": "intermediate_size",
    "moe_inter_dim": "moe_intermediate_size",
    "n_layers": "num_hidden_layers",
    "n_dense_layers": "first_k_dense_replace",
    "n_heads": "num_attention_heads",
    "n_routed_experts": "n_routed_experts",
    "n_shared_experts": "n_shared_experts",
    "n_activated_experts": "num_experts_per_tok",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_nope_head_dim",
    "qk_rope_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
    "q_lora_rank": "q_lora_rank",
}


def deepseek(*sizes):
    return dict(zip(DEEPSEEK.values(), sizes, strict=True))


GPT_OSS = {
    **{"vocab_size": 201_088, "hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64},
    **{"num_attention_heads": 64, "num_key_value_heads": 8, "sliding_window": 128},
    **{"num_experts_per_tok": 4, "tie_word_embeddings": False, "attention_bias": True},
}
LLAMA_4 = {
    **{"vocab_size": 202_048, "hidden_size": 5120, "intermediate_size": 8192, "head_dim": 128},
    **{"intermediate_size_mlp": 16_384, "num_hidden_layers": 48, "num_attention_heads": 40},
    **{"num_key_value_heads": 8, "num_experts_per_tok": 1, "tie_word_embeddings": False},
    **{"attention_bias": False, "attention_chunk_size": 8192},
}
ORIGINALS = {  # the sizes that were compared, and with what
    # deepseek-ai/DeepSeek-V3: inference/configs, config_16B.json, config_236B.json, config_671B.json
    "deepseek-v2-lite": deepseek(
        *(102_400, 2048, 10_944, 1408, 27, 1, 16, 64, 2, 6, 512, 128, 64, 128, None)
    ),
    "deepseek-v2": deepseek(
        *(102_400, 5120, 12_288, 1536, 60, 1, 128, 160, 2, 6, 512, 128, 64, 128, 1536)
    ),
    "deepseek-v3": deepseek(
        *(129_280, 7168, 18_432, 2048, 61, 3, 128, 256, 1, 8, 512, 128, 64, 128, 1536)
    ),
    # transformers, GptOssConfig: its defaults are those of 120b; for 20b a tuned model's config.json,
    # and the arguments of slime-ascend's script for it
    "gpt-oss-120b": {**GPT_OSS, "num_hidden_layers": 36, "num_local_experts": 128},
    "gpt-oss-20b": {**GPT_OSS, "num_hidden_layers": 24, "num_local_experts": 32},
    # transformers, Llama4TextConfig: its defaults are Scout's; NeMo, Llama4Experts128Config, and the
    # metadata of a GGUF file for Maverick
    "llama-4-scout": {
        **LLAMA_4,
        **{"num_local_experts": 16, "interleave_moe_layer_step": 1, "use_qk_norm": True},
    },
    "llama-4-maverick": {
        **LLAMA_4,
        **{"num_local_experts": 128, "interleave_moe_layer_step": 2, "use_qk_norm": False},
    },
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_configuration_has_the_sizes_of_its_original(name):
    has = published(name)
    assert {field: has[field] for field in ORIGINALS[name]} == ORIGINALS[name]


FALCON_11B = {  # as copies of its config.json have it
    **{"activation": "gelu", "ff_factor": 4, "ffn_hidden_size": 16_384, "hidden_size": 4096},
    **{"num_attention_heads": 32, "num_ln_in_parallel_attn": 1, "tie_word_embeddings": False},
    **{"rope_theta": 500_042.0, "rope_scaling": None, "max_position_embeddings": 8192},
}
# as an excerpt of a copy has it; its window, words and that they are tied were not in the excerpt
PHI_4_MINI = {
    **{"hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 24},
    **{"num_hidden_layers": 32, "num_key_value_heads": 8, "partial_rotary_factor": 0.75},
    **{"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False},
    **{"max_position_embeddings": 131_072, "original_max_position_embeddings": 4096},
    "rope_scaling": {"type": "longrope", "long_factor": [1.0] * 48, "short_factor": [1.0] * 48},
    **{"sliding_window": 262_144, "tie_word_embeddings": True, "vocab_size": 200_064},
}
QWEN3_CODER = {  # no copy of its config.json was found to compare with
    **{"hidden_size": 6144, "intermediate_size": 8192, "moe_intermediate_size": 2560},
    **{"num_attention_heads": 96, "num_key_value_heads": 8, "num_hidden_layers": 62},
    **{"num_experts": 160, "qkv_bias": False, "use_qk_norm": True},
    "shared_expert_intermediate_size": 0,
}


# counts by hand from the sizes
@pytest.mark.parametrize(
    ("like", "changed", "count"),
    [
        ("falcon-40b", FALCON_11B, 11_102_822_400),
        ("phi-4", PHI_4_MINI, 3_836_021_760),
        ("qwen3-30b-a3b", QWEN3_CODER, 480_154_875_392),
        ("gpt2", {"n_layer": 6, "_num_labels": 1}, 81_912_576),  # distilgpt2
    ],
)
def test_a_configuration_with_fields_of_its_own_is_read(like, changed, count, shape):
    assert sum(parameters(shape(like, **changed)).values()) == count


@pytest.mark.parametrize("name", configurations())
def test_a_model_has_as_many_parameters_as_the_reference_implementation_counts(folder, name):
    content = configurations()[name]
    family, model, *_ = read(write(folder, json.dumps(content)))
    assert family == content["model_type"]
    assert sum(parameters(model).values()) == recorded()[name]


@pytest.mark.parametrize("name", configurations())
def test_cosines_have_as_many_columns_as_the_reference_implementation_makes(folder, name):
    model = read(write(folder, json.dumps(configurations()[name]))).model
    columns = recorded_turned()[name]
    assert columns == model.turned_features if model.turned else columns == 0 or model.distances


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("llama-2-7b", {"num_key_value_heads": 32}),  # as many as heads
        ("mistral-7b-v0.1", {"num_key_value_heads": 8}),
        ("mixtral-8x7b-v0.1", {"num_key_value_heads": 8, "tie_word_embeddings": False}),
        ("llama-3.1-405b", {"attention_bias": False, "mlp_bias": False, "attention_dropout": 0.0}),
        ("llama-3-8b", {"hidden_act": "silu", "tie_word_embeddings": False, "head_dim": 128}),
        ("qwen2-7b", {"attention_bias": True, "tie_word_embeddings": False, "head_dim": 128}),
        ("gpt2", {"n_inner": 3072, "tie_word_embeddings": True, "activation_function": "gelu_new"}),
        ("gpt2", {"attn_pdrop": 0.1, "resid_pdrop": 0.1, "embd_pdrop": 0.1}),
        ("gpt2", {"model_type": "gpt2"}),
        ("gpt2", {"architectures": ["GPT2LMHeadModel"]}),
    ],
)
def test_a_field_that_is_absent_is_what_transformers_takes_it_to_be(shape, name, absent):
    for field, value in absent.items():
        assert shape(name, **{field: ...}) == shape(name, **{field: value})


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("llama-3-8b", "num_key_value_heads", 32),
        ("llama-3-8b", "head_dim", 128),
        ("gpt2", "n_inner", 4 * 768),
    ],
)
def test_a_size_that_is_null_is_made_from_the_others(shape, name, field, value):
    assert shape(name, **{field: None}) == shape(name, **{field: value})


def test_biases_are_those_of_the_family(shape):
    both = {"attention_bias": True, "mlp_bias": True}
    assert shape("llama-3-8b", **both).biases == {"qkv", "output", "mlp"}
    assert shape("llama-3-8b", attention_bias=True).biases == {"qkv", "output"}
    assert shape("qwen2-7b").biases == {"qkv"}
    assert shape("mistral-7b-v0.1").biases == set()
    assert shape("gpt2").biases == {"qkv", "output", "mlp"}


def test_dropout_is_where_its_field_is_above_0(shape):
    none = {"attn_pdrop": 0, "resid_pdrop": 0.0, "embd_pdrop": 0}
    assert shape("gpt2").dropout == DROPPED and not shape("gpt2", **none).dropout
    assert shape("gpt2", **none | {"attn_pdrop": 0.1}).dropout == {"shares"}
    assert shape("opt-125m").dropout == {"output"}
    assert shape("llama-2-7b", attention_dropout=0.1).dropout == {"shares"}
    assert shape("pythia-160m", hidden_dropout=0.1).dropout == {"words", "output"}


def test_norms_are_where_the_family_has_them(shape):
    assert shape("llama-3-8b").norms == {"attention", "mlp"}
    assert shape("qwen3-8b").norms == {"attention", "mlp", "head"}
    assert shape("olmo-2-1124-7b").norms == {"attention_out", "mlp_out", "heads"}
    assert shape("gemma-2-2b").norms == {"attention", "attention_out", "mlp", "mlp_out"}
    assert shape("bloom").norms == {"words", "attention", "mlp"}
    assert shape("falcon-7b").norms == {"attention"} and shape("falcon-40b").norms == USUAL_NORMS
    assert shape("falcon-40b", num_ln_in_parallel_attn=1).norms == {"attention"}


@pytest.mark.parametrize(
    ("name", "changed", "windows"),
    [
        ("mistral-7b-v0.1", {}, (4096,)),
        ("mistral-7b-v0.1", {"sliding_window": ...}, (4096,)),
        ("mistral-7b-v0.1", {"sliding_window": None}, ()),
        ("mixtral-8x7b-v0.1", {}, ()),
        ("qwen2.5-7b", {}, ()),
        ("qwen2.5-7b", {"use_sliding_window": True}, ()),  # in layers from the 28th on, of 28
        ("qwen2-0.5b", {"use_sliding_window": True, "max_window_layers": 22}, (*[0] * 22, 4096, 4096)),
        ("qwen3-30b-a3b", {"use_sliding_window": True, "sliding_window": 9}, (9,)),
        ("phi-3-mini-4k-instruct", {}, (2047,)),
        ("gemma-2-2b", {}, (4096, 0)),
        ("gemma-3-1b-pt", {}, (512, 512, 512, 512, 512, 0)),
        ("gemma-3-1b-pt", {"sliding_window_pattern": ...}, (512, 512, 512, 512, 512, 0)),
        ("gemma-3-1b-pt", {"sliding_window_pattern": 1}, ()),
        ("gpt-oss-20b", {"layer_types": ...}, (128, 0)),
        ("gpt-oss-20b", {}, (128, 0) * 12),
        (
            "qwen3-0.6b",
            {
                "use_sliding_window": True,
                "sliding_window": 9,
                "num_hidden_layers": 2,
                "layer_types": ["sliding_attention", "full_attention"],
            },
            (9, 0),
        ),
    ],
)
def test_windows_are_those_of_the_family(shape, name, changed, windows):
    assert shape(name, **changed).windows == windows


def test_the_first_layers_of_deepseek_are_dense_as_many_as_it_says(shape):
    assert shape("deepseek-v3").kinds == (DENSE_LAYER,) * 3 + (USUAL,) * 58
    assert shape("deepseek-v3", first_k_dense_replace=...) == shape("deepseek-v3")
    none = shape("deepseek-v3", first_k_dense_replace=0)
    assert (none.kinds, none.dense) == ((), 0)
    every = shape("deepseek-v3", first_k_dense_replace=61)
    assert (every.kinds, every.experts, every.feed_forward) == ((), 0, 18432)


def test_every_second_layer_of_maverick_has_experts_and_every_fourth_knows_no_positions(shape):
    dense, straight = DENSE_LAYER, frozenset({STRAIGHT})
    found = shape("llama-4-maverick")
    assert found.kinds == (dense, USUAL, dense, straight) * 12
    assert found.windows == (8192, 8192, 8192, 0) * 12 and "turned" not in found.norms
    assert shape("llama-4-scout").kinds == (USUAL, USUAL, USUAL, straight) * 12
    assert shape("llama-4-scout", no_rope_layers=...) == shape("llama-4-scout", no_rope_layers=[])
    assert shape("llama-4-scout", moe_layers=[*range(48)]) == shape("llama-4-scout")
    assert shape("llama-4-scout", moe_layers=[]).experts == 0
    assert shape("llama-4-scout", attention_chunk_size=...) == shape("llama-4-scout")


def test_what_a_model_has_besides_is_told_and_not_counted(shape):
    alone = shape("deepseek-v3", num_nextn_predict_layers=0)
    model = shape("deepseek-v3")
    assert alone == replace(model, further=0)
    assert (
        further_elements(alone),
        further_elements(shape("deepseek-v3", num_nextn_predict_layers=2)),
    ) == (
        0,
        2 * further_elements(model),
    )
    words = 129280 * 7168  # of its own checkpoint, for the table and for the head
    of_checkpoint = sum(parameters(model).values()) + further_elements(model) + 2 * words
    assert round(of_checkpoint / 1e9, 1) == 684.5  # huggingface.co/deepseek-ai/DeepSeek-V3


ACTIVE = {  # billions, as published; and whether the table of words is counted
    "mixtral-8x7b-v0.1": (12.9, True),
    "qwen3-235b-a22b": (22, True),
    "deepseek-v2": (21, True),
    "deepseek-v3": (36.6, False),
    "deepseek-v2-lite": (2.4, False),
    "gpt-oss-20b": (3.6, False),
    "gpt-oss-120b": (5.1, False),
    "llama-4-scout": (17, True),
    "llama-4-maverick": (17, True),
}


@pytest.mark.parametrize("name", ACTIVE)
def test_a_token_passes_as_many_parameters_as_are_published(shape, name):
    model, (billions, with_words) = shape(name), ACTIVE[name]
    table = 0 if with_words else model.vocabulary * model.hidden
    near = 0.06 if isinstance(billions, float) else 0.5  # some are cut off, and not rounded
    assert abs((active(model) - table) / 1e9 - billions) < near


def test_of_a_model_without_experts_a_token_passes_all(shape):
    model = shape("llama-3-8b")
    assert active(model) == sum(parameters(model).values())


def test_scores_and_logits_are_capped_where_a_bound_is_given(shape):
    assert shape("gemma-2-2b").capped == {"scores", "logits"}
    assert shape("gemma-2-2b", attn_logit_softcapping=...).capped == {"scores", "logits"}
    assert shape("gemma-2-2b", attn_logit_softcapping=None).capped == {"logits"}
    assert not shape("gemma-3-1b-pt").capped


def test_a_field_that_is_null_and_of_no_family_changes_nothing(shape):
    assert shape("llama-3-8b", anything=None) == shape("llama-3-8b")


def test_embeddings_that_are_learned_are_refused_and_without_them_nothing_changes(shape):
    assert shape("llama-3-8b", learned_embeddings=False) == shape("llama-3-8b")
    with pytest.raises(BadInput, match="learned_embeddings: given true; expected false"):
        shape("llama-3-8b", learned_embeddings=True)


def test_what_other_published_configurations_have_besides_changes_nothing(shape):
    medium = {
        "n_embd": 1024,
        "n_head": 16,
        "n_layer": 24,
        "n_special": 0,
        "predict_special_tokens": True,
    }
    found = shape("gpt2", **medium, output_past=True, gradient_checkpointing=False)
    assert sum(parameters(found).values()) == 354_823_168  # gpt2-medium
    small = {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "vocab_size": 49152,
    }
    small |= {"num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True}
    found = shape("llama-2-7b", **small, is_llama_config=True, rope_interleaved=False)
    assert sum(parameters(found).values()) == 134_515_008  # SmolLM2-135M
    other = {"attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0}
    assert shape("pythia-160m", **other) == shape("pythia-160m")
    with pytest.raises(BadInput, match="hidden_dropout_prob: given"):
        shape("pythia-160m", hidden_dropout_prob=0.1)
    with pytest.raises(BadInput, match="gradient_checkpointing: given true; expected false"):
        shape("gpt2", gradient_checkpointing=True)


def test_a_field_may_have_its_other_name(shape):
    assert shape("gpt2", n_embd=..., hidden_size=768) == shape("gpt2")
    assert shape("mixtral-8x7b-v0.1", num_local_experts=..., num_experts=8).experts == 8


NEOX = published("pythia-160m")  # heads of 64 features
PHI = published("phi-4")  # of 128
LLAMA = published("llama-3.2-1b")


@pytest.mark.parametrize(
    ("content", "fields", "turned"),
    [
        (NEOX, {}, 16),
        ({key: of for key, of in NEOX.items() if key != "rotary_pct"}, {}, 16),  # a quarter, if absent
        (NEOX, {"rotary_pct": 0.3}, 20),  # of 19 features, in pairs
        (NEOX, {"rotary_pct": 1.0}, None),
        (NEOX, {"rope_parameters": {"partial_rotary_factor": 0.5}}, 32),
        (PHI, {}, None),
        (PHI, {"partial_rotary_factor": 0.75}, 96),
        (LLAMA, {"partial_rotary_factor": 1.0}, None),
    ],
)
def test_a_share_of_a_heads_features_is_turned(content, fields, turned, tmp_path):
    """As many columns as transformers' cosines have: compute_default_rope_parameters."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content | fields))
    assert read(str(path)).model.rotary == turned


@pytest.mark.parametrize(
    ("content", "fields", "words"),
    [
        (LLAMA, {"partial_rotary_factor": 0.5}, "partial_rotary_factor: given 0.5; expected 1.0"),
        (LLAMA, {"rope_scaling": {"partial_rotary_factor": 0.5}}, "rope_scaling, partial_rotary"),
        (LLAMA, {"rope_scaling": {"full": {"partial_rotary_factor": 0.5}}}, "full, partial_rotary"),
        (LLAMA, {"rope_scaling": "yarn"}, 'given "yarn"; expected an object, or null'),
        (NEOX, {"rotary_pct": 0}, "given 0; expected a number above 0, at most 1"),
        (NEOX, {"rotary_pct": "a"}, 'given "a"; expected a number above 0, at most 1'),
        (NEOX, {"partial_rotary_factor": 0.5}, "given 0.5; expected 0.25"),
        (PHI, {"partial_rotary_factor": 1.5}, "expected a number above 0, at most 1"),
    ],
)
def test_another_share_is_refused(content, fields, words, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content | fields))
    with pytest.raises(BadInput) as error:
        read(str(path))
    assert words in str(error.value) and "\n" not in str(error.value)
