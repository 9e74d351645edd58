"""What a configuration says beside a shape, and the plan does otherwise."""

import json

import pytest

from psem_model.reading.configurations import packaged


def written(folder, **fields):
    """A packaged configuration with other fields, in a file."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(packaged()["llama-3-8b"].read_text()) | fields))
    return path


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
        (
            "attn_implementation",
            "paged|eager",
            "common",
            "by one kernel (--profile); the configuration",
        ),
        ("attn_implementation", "owner/kernel", "eager", "by several operations (--profile); the"),
    ],
)
def test_attention_that_is_computed_otherwise_than_a_configuration_says_is_said(
    name, by, profile, said, psem, predicted, tmp_path
):
    path = written(tmp_path, **{name: by})
    args = ["--model", path, "--sequence", 4096, "--profile", profile]
    code, out, _ = psem("predict", "fsdp(8)", *args)
    assert (code, "attention is computed" in out) == (0, bool(said))
    assert said in " ".join(out.split())
    found = predicted("fsdp(8)", model=path, sequence=4096, profile=profile)
    assert found["inputs"]["attention"] == (by and by.removeprefix("paged|"))


@pytest.mark.parametrize(
    ("public", "private", "by"),
    [
        ("eager", "sdpa", "sdpa"),
        ("sdpa", "eager", "eager"),
        ("eager", None, None),
        (None, "sdpa", "sdpa"),
    ],
)
def test_of_two_names_of_what_computes_attention_the_one_that_is_set_last_counts(
    public, private, by, predicted, tmp_path
):
    path = written(tmp_path, attn_implementation=public, _attn_implementation=private)
    assert predicted("fsdp(2)", model=path, sequence=8)["inputs"]["attention"] == by


@pytest.mark.parametrize(
    "by", ["nonsense", "Eager", "", "\x1b[31msdpa\nverdict accepted", "a/b\n", "x" * 5000]
)
@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation"])
def test_what_is_no_way_to_compute_attention_is_refused_in_one_line(name, by, psem, tmp_path):
    code, out, err = psem(
        "predict", "fsdp(2)", "--config", written(tmp_path, **{name: by}), "--sequence", 8
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{name}: given " in err
    assert 'expected "eager" or "sdpa"' in err
    assert len(err) < 500
