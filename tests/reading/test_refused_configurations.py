"""A file of no known shape is refused in one line, as is one that is no configuration."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.reading.configurations import read
from psem_model.reading.families import FAMILIES
from psem_model.reading.fields import BYTES_OF
from psem_model.text.errors import BadInput
from spec.costs.model_costs import parameters
from tests.support.configurations import PACKAGED, published, write

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
    ("llama-2-7b", {"rms_norm_eps": "a"}, "rms_norm_eps", 'given "a"', "a number, 0 or more, or null"),
    ("llama-2-7b", {"rms_norm_eps": -1e-5}, "rms_norm_eps", "given -1e-05", "0 or more"),
    ("llama-2-7b", {"use_cache": 1}, "use_cache", "given 1", "true or false, or null"),
    ("llama-2-7b", {"max_position_embeddings": 1.5}, "given 1.5", "a whole number, 0 or more"),
    ("llama-2-7b", {"eos_token_id": ["2"]}, "eos_token_id", "the number of a token, or a list"),
    ("llama-2-7b", {"transformers_version": 4}, "transformers_version", "words in quotes"),
    ("gemma-3-1b-pt", {"hidden_act": "a"}, "hidden_act", "expected one of silu, swish, relu, gelu"),
    ("phi-4", {"auto_map": 3}, "auto_map", "given 3", "an object, or null"),
    ("mistral-7b-v0.1", {"attention_bias": 0}, "attention_bias", "given 0", "expected false"),
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
    ("gpt-oss-20b", {"num_key_value_heads": None}, "num_key_value_heads", "given null"),
    ("llama-4-scout", {"num_key_value_heads": None}, "num_key_value_heads", "given null"),
    ("gemma-2-2b", {"head_dim": None}, "head_dim", "given null"),
    ("gpt2", {"reorder_and_upcast_attn": None}, "reorder_and_upcast_attn", "given null"),
    (
        "opt-125m",
        {"layer_norm_elementwise_affine": None},
        "layer_norm_elementwise_affine",
        "given null",
    ),
    ("qwen3-8b", {"head_dim": None}, "head_dim", "given null"),
    ("llama-2-7b", {"text_config": {}}, "text_config", "given {}", "expected none"),
    ("gpt2", {"decoder": {"n_embd": 4}}, "decoder", "expected none"),
    ("llama-2-7b", {"hidden_size": 4097, "head_dim": 128}, "given 32", "a divisor of hidden_size"),
    # what changes weights or work, and is not modelled
    ("llama-2-7b", {"num_experts": 8}, "num_experts", "what it changes is not known"),
    ("llama-2-7b", {"tie_word_embedings": True}, "not known", "nearest: 'tie_word_embeddings'"),
    ("llama-2-7b", {"sliding_window": 4096}, "sliding_window", "what it changes is not known"),
    ("llama-2-7b", {"torch_dtype": "float8_e4m3fn"}, "torch_dtype", '"bfloat16" or "float16"'),
    (
        "llama-2-7b",
        {"torch_dtype": "bfloat16", "dtype": "float32"},
        "torch_dtype",
        'what dtype says: "float32"',
    ),
    ("llama-2-7b", {"output_attentions": True}, "output_attentions", "false"),
    ("llama-2-7b", {"output_hidden_states": True}, "output_hidden_states", "false"),
    ("gpt2", {"torchscript": True}, "torchscript", "false"),
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
    ("opt-125m", {"layerdrop": 0.1}, "layerdrop", "expected 0.0"),
    ("bloom", {"apply_residual_connection_post_layernorm": True}, "expected false"),
    ("bloom", {"\x1e": 0}, '"\\u001e": given 0', "expected no such field"),
    ("bloom", {"n_inner": 1}, "n_inner", "expected 57344"),
    ("falcon-7b", {"new_decoder_architecture": True, "parallel_attn": False}, "parallel_attn"),
    ("falcon-7b", {"num_ln_in_parallel_attn": 2}, "num_ln_in_parallel_attn", "expected 1"),
    ("falcon-40b", {"num_kv_heads": 7}, "num_kv_heads", "a divisor of num_attention_heads, 128"),
    ("falcon-7b", {"hidden_dropout": 0.1}, "hidden_dropout", "expected 0.0"),
    # what transformers (5.23) cannot build or run
    ("falcon-7b", {"num_ln_in_parallel_attn": True}, "given true", "expected 1"),
    ("falcon-40b", {"num_ln_in_parallel_attn": 2.0}, "given 2.0", "expected 1 or 2"),
    ("falcon-7b", {"hidden_size": 71 * 63}, "num_attention_heads: given 71", "even", "not 63"),
    ("llama-2-7b", {"hidden_size": 32 * 5}, "num_attention_heads: given 32", "an even number", "not 5"),
    ("llama-2-7b", {"head_dim": 1}, "head_dim: given 1", "an even number of features", "not 1"),
    ("pythia-6.9b", {"hidden_size": 32 * 5, "rotary_pct": 1.0}, "given 32", "not 5"),
    ("deepseek-v3", {"qk_rope_head_dim": 63}, "qk_rope_head_dim: given 63", "even"),
    ("deepseek-v3", {"n_group": 7}, "n_group: given 7", "a divisor of n_routed_experts, 256"),
    ("deepseek-v3", {"n_group": 256}, "n_group: given 256", "2 of them or more for each group"),
    ("deepseek-v3", {"n_group": None}, "n_group: given null", "at least 1"),
    ("deepseek-v3", {"n_group": ..., "n_routed_experts": 12}, "n_group is missing", "a divisor of"),
    ("deepseek-v3", {"n_shared_experts": 0}, "n_shared_experts: given 0", "at least 1"),
    ("deepseek-v3", {"topk_group": 9}, "topk_group: given 9", "at most n_group, 8"),
    ("deepseek-v2", {"n_group": 7}, "n_group: given 7", "a divisor of n_routed_experts, 160"),
    ("deepseek-v2", {"n_group": ...}, "n_group is missing", "at least 1"),
    ("deepseek-v2", {"topk_group": ...}, "topk_group is missing", "a whole number, 0 or more"),
    ("deepseek-v2", {"topk_method": "noaux_tc"}, "topk_method", "'noaux_tc'", "group_limited_greedy"),
    ("deepseek-v2", {"hidden_size": 5121}, "a divisor of hidden_size, 5121"),
    ("gemma-3-1b-pt", {"hidden_size": 1153}, "a divisor of hidden_size, 1153"),
    ("qwen3-30b-a3b", {"decoder_sparse_step": 1.0}, "given 1.0", "expected 1: no other"),
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
        (b'{"vocab_size": ' + b"9" * 5000 + b"}", "a number of too many digits"),
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
    with pytest.raises(BadInput, match=r"neither a file nor.*packaged one; nearest: qwen3-8b"):
        read("qwen3-8")


@pytest.mark.parametrize("name", ["llama-2-7b", "qwen2-7b"])
def test_null_stands_for_all_heads_where_transformers_takes_it(shape, name):
    assert shape(name, num_key_value_heads=None).kv_heads == shape(name).heads


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("llama-2-7b", "rms_norm_eps"),  # no float: a configuration of transformers is not made
        ("gpt2", "scale_attn_weights"),
        ("llama-2-7b", "rope_theta"),  # angles cannot be computed
        ("falcon-7b", "layer_norm_epsilon"),  # declared with None, and layer_norm takes none
        ("pythia-160m", "use_cache"),
    ],
)
def test_null_is_refused_where_transformers_takes_none(shape, name, field):
    with pytest.raises(BadInput, match=f"{field}: given null; expected a value, or no such field"):
        shape(name, **{field: None})
    assert shape(name, **{field: ...}) == shape(name)


@pytest.mark.parametrize("given", [32_000, -32_001, [1]])
def test_the_word_that_an_embedding_leaves_out_is_one_of_its_words(shape, given):
    with pytest.raises(BadInput, match=r"pad_token_id: given .*; expected the number of one of 32,000"):
        shape("llama-2-7b", pad_token_id=given)
    assert shape("llama-2-7b", pad_token_id=-1) == shape("llama-2-7b")
    assert shape("bloom-560m", pad_token_id=10**9) == shape("bloom-560m")  # it leaves none out


@pytest.mark.parametrize("given", [4, 4.0])
def test_falcons_mlp_is_four_times_as_wide_however_that_is_written(shape, given):
    assert shape("falcon-7b", ff_factor=given) == shape("falcon-7b")


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
FIELDS = sorted({field for name in PACKAGED for field in published(name)} | {"head_dim", "n_inner"})


@st.composite
def malformed(draw):
    """A published configuration with fields dropped, and others that may be anything."""
    fields = published(draw(st.sampled_from(PACKAGED)))
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
    family, model, stored, _ = found
    assert family in FAMILIES
    assert stored is None or stored in {*BYTES_OF, "fp8", "mxfp4"}
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
