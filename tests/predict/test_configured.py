"""What a configuration says beside a shape, and the plan does otherwise."""

import json

import pytest

from psem_model.reading.configurations import packaged


@pytest.mark.parametrize(
    ("model", "policy", "said"),
    [
        ("olmo-2-1124-7b", "2,2,12", "2 bytes an element (--bytes); the configuration stores float32"),
        ("llama-3-8b", "4,4,8", "4 bytes an element (--bytes); the configuration stores bfloat16"),
        ("olmo-2-1124-7b", "4,4,8", ""),
        ("llama-3-8b", "2,2,12", ""),
        ("deepseek-v3", "2,2,12", "2 bytes an element (--bytes); the configuration stores fp8"),
        ("gpt-oss-20b", "4,4,8", "4 bytes an element (--bytes); the configuration stores mxfp4"),
    ],
)
def test_a_type_of_weights_that_is_not_computed_with_is_said(model, policy, said, psem, predicted):
    args = ["--model", model, "--sequence", 4096, "--bytes", policy]
    code, out, _ = psem("predict", "fsdp(8)", *args)
    assert (code, "the configuration stores" in out) == (0, bool(said))
    assert said in out
    stored = predicted("fsdp(8)", model=model, sequence=4096)["inputs"]["stored_type"]
    others = {"olmo": "float32", "deep": "fp8", "gpt-": "mxfp4"}
    assert stored == others.get(model[:4], "bfloat16")


@pytest.mark.parametrize(
    ("name", "by", "profile", "said"),
    [
        ("attn_implementation", "eager", "common", "by one kernel (--profile); the configuration"),
        (
            "_attn_implementation",
            "sdpa",
            "eager",
            "by several operations (--profile); the configuration",
        ),
        ("attn_implementation", "flash_attention_2", "common", ""),
        ("attn_implementation", "eager", "eager", ""),
        ("attn_implementation", None, "common", ""),
    ],
)
def test_attention_that_is_computed_otherwise_than_a_configuration_says_is_said(
    name, by, profile, said, psem, predicted, tmp_path
):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(packaged()["llama-3-8b"].read_text()) | {name: by}))
    args = ["--model", path, "--sequence", 4096, "--profile", profile]
    code, out, _ = psem("predict", "fsdp(8)", *args)
    assert (code, "attention is computed" in out) == (0, bool(said))
    assert said in " ".join(out.split())
    found = predicted("fsdp(8)", model=path, sequence=4096, profile=profile)
    assert found["inputs"]["attention"] == by
