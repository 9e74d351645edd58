"""Published configurations have their published sizes; any other file is read or refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.reading.configurations import read
from psem_model.reading.families import FAMILIES
from psem_model.text.errors import BadInput
from spec.costs.model_costs import parameters
from spec.models.transformer import DENSE, DROPPED, STRAIGHT, USUAL, USUAL_NORMS

DENSE_LAYER = frozenset({DENSE})
CONFIGURATIONS = Path(__file__).parents[2] / "examples" / "configurations"

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
# those that transformers 5.23.0 counts, of models without memory (torch 2.13.0, device meta)
COUNTED = {
    "bloom": 176_247_271_424,
    "bloom-560m": 559_214_592,
    "bloom-7b1": 7_069_016_064,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_404_352,
    "falcon-180b": 178_557_088_768,
    "falcon-40b": 41_303_293_952,
    "falcon-7b": 6_921_720_704,
    "falcon-rw-1b": 1_311_625_216,
    "gemma-2-27b": 27_227_128_320,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2b": 2_506_172_416,
    "gemma-3-1b-pt": 999_885_952,
    "gemma-7b": 8_537_680_896,
    "gpt-oss-120b": 116_829_156_672,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-neox-20b": 20_554_567_680,
    "llama-4-maverick": 400_711_848_960,
    "llama-4-scout": 107_769_861_120,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "mistral-small-24b-base-2501": 23_572_403_200,
    "olmo-2-0325-32b": 32_234_279_936,
    "olmo-2-1124-13b": 13_716_198_400,
    "olmo-2-1124-7b": 7_298_617_344,
    "opt-125m": 125_239_296,
    "opt-6.7b": 6_658_473_984,
    "opt-66b": 65_719_701_504,
    "phi-3-medium-4k-instruct": 13_960_238_080,
    "phi-3-mini-4k-instruct": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "pythia-12b": 11_846_072_320,
    "pythia-160m": 162_322_944,
    "pythia-6.9b": 6_857_302_016,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "qwen3-235b-a22b": 235_093_634_560,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-32b": 32_762_123_264,
    "qwen3-8b": 8_190_735_360,
}
PARAMETERS = PUBLISHED | COUNTED


def published(name):
    return json.loads((CONFIGURATIONS / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("configurations")


@pytest.fixture
def shape(folder):
    """shape("gpt2", n_layer=2) -> the shape of a published configuration with some fields changed.

    A field that becomes `...` is left out.
    """

    def of(name, **changed):
        fields = {k: v for k, v in (published(name) | changed).items() if v is not ...}
        return read(write(folder, json.dumps(fields)))[1]

    return of


def write(folder, content):
    path = folder / "config.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def test_each_configuration_has_a_count_from_elsewhere():
    assert {path.stem for path in CONFIGURATIONS.glob("*.json")} == set(PARAMETERS)


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


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_published_model_has_its_published_number_of_parameters(name):
    family, model = read(str(CONFIGURATIONS / f"{name}.json"))
    assert family == published(name)["model_type"]
    assert sum(parameters(model).values()) == PARAMETERS[name]


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


def test_what_a_model_has_besides_is_told_and_not_counted(shape):
    alone = shape("deepseek-v3", num_nextn_predict_layers=0)
    assert alone == replace(shape("deepseek-v3"), left_out="")
    assert "num_nextn_predict_layers" in shape("deepseek-v3").left_out


def test_scores_and_logits_are_capped_where_a_bound_is_given(shape):
    assert shape("gemma-2-2b").capped == {"scores", "logits"}
    assert shape("gemma-2-2b", attn_logit_softcapping=...).capped == {"scores", "logits"}
    assert shape("gemma-2-2b", attn_logit_softcapping=None).capped == {"logits"}
    assert not shape("gemma-3-1b-pt").capped


def test_a_field_that_is_null_and_of_no_family_changes_nothing(shape):
    assert shape("llama-3-8b", anything=None) == shape("llama-3-8b")


def test_a_field_may_have_its_other_name(shape):
    assert shape("gpt2", n_embd=..., hidden_size=768) == shape("gpt2")
    assert shape("mixtral-8x7b-v0.1", num_local_experts=..., num_experts=8).experts == 8


REFUSED = [
    ("llama-2-7b", {"model_type": "qwen4"}, "model_type", "'qwen4'", "llama", "nearest: qwen"),
    ("llama-2-7b", {"model_type": 3}, "model_type", "given 3", "llama, mistral, mixtral"),
    ("llama-2-7b", {"model_type": ..., "architectures": ...}, "model_type is missing", "gpt2"),
    (
        "llama-2-7b",
        {"model_type": ..., "architectures": ["LlamaForCausalLm"]},
        "architectures",
        "'LlamaForCausalLm'",
        "nearest: LlamaForCausalLM",
    ),
    ("llama-2-7b", {"architectures": ["GPT2LMHeadModel"]}, "architectures", "LlamaForCausalLM"),
    ("llama-2-7b", {"architectures": ["LlamaModel"]}, "architectures", '["LlamaForCausalLM"]'),
    ("llama-2-7b", {"model_type": ..., "architectures": []}, "architectures", "a list of one of"),
    ("llama-2-7b", {"model_type": ..., "architectures": [1]}, "architectures", "given [1]"),
    ("llama-2-7b", {"hidden_size": ..., "hiden_size": 4096}, "hidden_size is missing", "'hiden_size'"),
    ("llama-2-7b", {"num_hidden_layers": ...}, "num_hidden_layers is missing", "a whole number"),
    ("llama-2-7b", {"vocab_size": 0}, "vocab_size", "given 0", "at least 1"),
    ("llama-2-7b", {"vocab_size": -5}, "vocab_size", "given -5", "at least 1"),
    ("llama-2-7b", {"vocab_size": "many"}, "vocab_size", 'given "many"', "a whole number"),
    ("llama-2-7b", {"vocab_size": 3.5}, "vocab_size", "given 3.5", "a whole number"),
    ("llama-2-7b", {"vocab_size": True}, "vocab_size", "given true", "a whole number"),
    ("llama-2-7b", {"vocab_size": None}, "vocab_size", "given null", "a whole number"),
    ("llama-2-7b", {"vocab_size": 10**30}, "vocab_size", "below 1e30"),
    ("llama-2-7b", {"num_key_value_heads": 5}, "num_key_value_heads", "given 5", "a divisor of", "32"),
    ("qwen2-7b", {"num_key_value_heads": ...}, "num_key_value_heads is missing", "28", "it is 32"),
    ("llama-2-7b", {"hidden_size": 4097}, "num_attention_heads", "a divisor of hidden_size, 4097"),
    ("llama-2-7b", {"hidden_act": "gelo"}, "hidden_act", "'gelo'", "nearest: gelu"),
    ("llama-2-7b", {"hidden_act": ["silu"]}, "hidden_act", 'given ["silu"]', "gelu_new"),
    ("llama-2-7b", {"tie_word_embeddings": "no"}, "tie_word_embeddings", '"no"', "true or false"),
    ("llama-2-7b", {"tie_word_embeddings": None}, "tie_word_embeddings", "null", "true or false"),
    ("llama-2-7b", {"attention_dropout": 1}, "attention_dropout", "given 1", "a probability"),
    ("llama-2-7b", {"attention_dropout": float("nan")}, "attention_dropout", "given NaN"),
    ("llama-2-7b", {"quantization_config": {"bits": 4}}, "quantization_config", "expected none"),
    ("llama-2-7b", {"pruned_heads": {"1": [2]}}, "pruned_heads", "expected none"),
    ("gpt2", {"add_cross_attention": True}, "add_cross_attention", "given true", "expected false"),
    ("mistral-7b-v0.1", {"attention_bias": True}, "attention_bias", "expected false"),
    ("qwen2-7b", {"attention_bias": False}, "attention_bias", "expected true"),
    ("mixtral-8x7b-v0.1", {"num_experts_per_tok": 9}, "num_experts_per_tok", "at most", "8"),
    ("mixtral-8x7b-v0.1", {"num_local_experts": ...}, "num_local_experts is missing"),
    ("gpt2", {"hidden_size": 1024}, "hidden_size", "given 1024", "768, as n_embd is"),
    ("gpt2", {"n_head": 7}, "n_head", "given 7", "a divisor of n_embd, 768"),
    # what transformers (5.0) refuses: a null where a number must be, a model within, uneven heads
    ("mistral-7b-v0.1", {"num_key_value_heads": None}, "num_key_value_heads", "given null"),
    ("mixtral-8x7b-v0.1", {"num_key_value_heads": None}, "num_key_value_heads", "given null"),
    ("llama-2-7b", {"text_config": {}}, "text_config", "given {}", "expected none"),
    ("gpt2", {"decoder": {"n_embd": 4}}, "decoder", "expected none"),
    ("llama-2-7b", {"hidden_size": 4097, "head_dim": 128}, "given 32", "a divisor of hidden_size"),
    # what changes weights or work, and is not modelled
    ("llama-2-7b", {"num_experts": 8}, "num_experts", "not known to change nothing"),
    ("llama-2-7b", {"tie_word_embedings": True}, "not known", "nearest: 'tie_word_embeddings'"),
    ("llama-2-7b", {"sliding_window": 4096}, "sliding_window", "not known to change nothing"),
    ("llama-2-7b", {"torch_dtype": "float8_e4m3fn"}, "torch_dtype", '"bfloat16" or "float16"'),
    ("deepseek-v3", {"scoring_func": "softmax"}, "scoring_func", 'expected "sigmoid"'),
    ("deepseek-v3", {"moe_layer_freq": 2}, "moe_layer_freq", "expected 1"),
    ("deepseek-v3", {"attention_bias": True}, "attention_bias", "expected false"),
    ("deepseek-v3", {"num_key_value_heads": 8}, "num_key_value_heads", "expected 128"),
    ("deepseek-v3", {"q_lora_rank": ...}, "q_lora_rank is missing", "or null"),
    ("deepseek-v3", {"kv_lora_rank": None}, "kv_lora_rank", "given null"),
    ("deepseek-v3", {"quantization_config": {"quant_method": "awq"}}, 'quant_method is "fp8"'),
    ("deepseek-v3", {"head_dim": 128}, "head_dim", "expected 64"),
    ("deepseek-v3", {"num_experts_per_tok": 257}, "at most n_routed_experts, 256"),
    ("gpt-oss-20b", {"hidden_act": "gelu"}, "hidden_act", 'expected "silu"'),
    ("gpt-oss-20b", {"experts_per_token": 2}, "experts_per_token", "expected 4"),
    ("gpt-oss-20b", {"quantization_config": 4}, 'quant_method is "mxfp4"'),
    ("llama-2-7b", {"model_type": "llama4"}, "encoder of images", "llama4_text"),
    ("llama-4-scout", {"no_rope_layers": [1, 0]}, "no_rope_layers", "a list of 48 of 0 and 1"),
    ("llama-4-scout", {"moe_layers": [48]}, "moe_layers", "below 48"),
    ("llama-4-scout", {"layer_types": ["full_attention"] * 48}, "layer_types", "chunked_attention"),
    ("llama-4-scout", {"num_hidden_layers": 10**5}, "at most 10,000 layers"),
    ("llama-4-scout", {"attn_temperature_tuning": "yes"}, "attn_temperature_tuning", "true or false"),
    ("llama-2-7b", {"model_type": "gemma3"}, "encoder of images", "gemma3_text"),
    ("qwen3-30b-a3b", {"mlp_only_layers": [0]}, "mlp_only_layers", "given [0]"),
    ("qwen3-30b-a3b", {"decoder_sparse_step": 2}, "decoder_sparse_step", "expected 1"),
    ("qwen3-30b-a3b", {"shared_expert_intermediate_size": 8}, "shared_expert_intermediate_size"),
    ("mixtral-8x7b-v0.1", {"output_router_logits": True}, "output_router_logits", "expected false"),
    ("qwen2-7b", {"max_window_layers": -1, "use_sliding_window": True}, "max_window_layers", "0 or"),
    ("qwen3-8b", {"layer_types": ["full_attention"]}, "layer_types", "a list of 36 of full_attention"),
    ("qwen3-8b", {"layer_types": ["sliding_attention"] * 36}, "no sliding_window"),
    ("gemma-2-2b", {"layer_types": ["linear_attention"] * 26}, "full_attention and sliding_attention"),
    ("gemma-3-1b-pt", {"sliding_window_pattern": 10**9}, "sliding_window_pattern", "at most 10,000"),
    ("gemma-2-2b", {"final_logit_softcapping": 0}, "final_logit_softcapping", "above 0, or null"),
    ("gemma-2b", {"use_bidirectional_attention": True}, "use_bidirectional_attention", "false"),
    ("opt-125m", {"word_embed_proj_dim": 512}, "word_embed_proj_dim", "expected 768"),
    ("opt-125m", {"do_layer_norm_before": False}, "do_layer_norm_before", "expected true"),
    ("opt-125m", {"layerdrop": 0.1}, "layerdrop", "expected 0.0"),
    ("bloom", {"apply_residual_connection_post_layernorm": True}, "expected false"),
    ("bloom", {"\x1e": 0}, '"\\u001e": given 0', "expected none"),
    ("bloom", {"n_inner": 1}, "n_inner", "expected 57344"),
    ("falcon-7b", {"new_decoder_architecture": True, "parallel_attn": False}, "parallel_attn"),
    ("falcon-7b", {"num_ln_in_parallel_attn": 2}, "num_ln_in_parallel_attn", "expected 1"),
    ("falcon-40b", {"num_kv_heads": 7}, "num_kv_heads", "a divisor of num_attention_heads, 128"),
    ("falcon-7b", {"hidden_dropout": 0.1}, "hidden_dropout", "expected 0.0"),
]


@pytest.mark.parametrize(("name", "changed", "words"), [(n, c, w) for n, c, *w in REFUSED])
def test_a_configuration_that_has_no_known_shape_is_refused_in_one_line(
    shape, folder, name, changed, words
):
    with pytest.raises(BadInput) as refused:
        shape(name, **changed)
    message = str(refused.value)
    assert message.startswith(str(folder)) and "\n" not in message
    assert not [word for word in words if word not in message]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\xff", "not UTF-8"),
        (b'{"vocab_size": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000, "too many brackets"),
        (b"[1]", "no object"),
        (b"null", "no object"),
        (b" " * (2**20 + 1), "more than 1,048,576 bytes"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(folder, content, words):
    with pytest.raises(BadInput, match=words) as refused:
        read(write(folder, content))
    assert "expected a model's config.json" in str(refused.value)


@pytest.mark.parametrize(
    "content", ['{"vocab_size": 1, "vocab_size": 2}', '{"a": {"b": 1, "b": 1}}', '{"a": 1, "a": 1}']
)
def test_a_key_that_is_given_twice_is_refused(folder, content):
    with pytest.raises(BadInput, match="twice; expected a model's config"):
        read(write(folder, content))


def test_the_nearest_name_of_a_packaged_model_is_told():
    with pytest.raises(BadInput, match=r"cannot read it.*name of a packaged one; nearest: qwen3-8b"):
        read("qwen3-8")


@pytest.mark.parametrize("name", ["llama-2-7b", "qwen2-7b"])
def test_null_stands_for_all_heads_where_transformers_takes_it(shape, name):
    assert shape(name, num_key_value_heads=None).kv_heads == shape(name).heads


def test_a_file_that_cannot_be_read_is_refused(folder):
    for path in (str(folder), str(folder / "none.json"), "", "config\0.json"):
        with pytest.raises(BadInput, match="cannot read it"):
            read(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
SMALL = st.integers(-1, 64)
NAMES = st.sampled_from([*FAMILIES, *(family.architecture for family in FAMILIES.values())])
FIELDS = sorted({field for name in PARAMETERS for field in published(name)} | {"head_dim", "n_inner"})


@st.composite
def malformed(draw):
    """A published configuration with fields dropped, and others that may be anything."""
    fields = published(draw(st.sampled_from(sorted(PARAMETERS))))
    for field in draw(st.sets(st.sampled_from(sorted(fields)), max_size=3)):
        del fields[field]
    value = SMALL | JSON | NAMES | NAMES.map(lambda name: [name])
    return fields | draw(st.dictionaries(st.sampled_from(FIELDS) | st.text(), value, max_size=4))


def result(path):
    """What is read, or what it is refused with."""
    try:
        return read(path)
    except BadInput as refused:
        return str(refused)


def check_that_it_is_read_or_refused(folder, content):
    """What is read can be counted; what is refused is refused in one line."""
    found = result(write(folder, content))
    if isinstance(found, str):
        assert len(found.splitlines()) == 1
        return
    family, model = found
    assert family in FAMILIES
    assert model.heads % model.kv_heads == 0
    assert model.chosen <= model.experts
    assert all(type(elements) is int and elements > 0 for elements in parameters(model).values())


@pytest.mark.slow
@given(fields=malformed())
def test_a_malformed_configuration_is_check_that_it_is_read_or_refused(folder, fields):
    check_that_it_is_read_or_refused(folder, json.dumps(fields))


@given(content=JSON.map(lambda value: json.dumps(value).encode()) | st.binary())
def test_any_file_is_check_that_it_is_read_or_refused(folder, content):
    check_that_it_is_read_or_refused(folder, content)
