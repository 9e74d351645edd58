"""A plan says where its system is known to do otherwise."""

import pytest

from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.unlike import unlike


def notes(strategy, profile, name="llama-3-8b", **options):
    asked = Asked(
        "predict", strategy, model={"config": name, "sequence": "1024"}, profile=profile, **options
    )
    return [*unlike(read(asked))]


@pytest.mark.parametrize(
    ("strategy", "profile", "words"),
    [
        ("fsdp(2) * tp(2)", "fsdp2", "in the 2 bytes"),
        ("fsdp(2) * tp+sp(2)", "fully-shard+no-sync", "all words"),
        ("fsdp(2) * pp(2)", "fully-shard", "gathers less"),
        ("fsdp-offload(2)", "fully-shard-offload+no-sync", "wait go to the host"),
        ("zero1(2)", "zero-redundancy+no-sync", "whole gradients"),
        ("tp(16)", "megatron", "no copies of key-value heads"),
        ("tp(8)", "megatron", "pads words"),
    ],
)
def test_what_pytorch_or_megatron_does_otherwise_is_said(strategy, profile, words):
    assert any(words in note for note in notes(strategy, profile, accumulate="4"))


def test_experts_of_transformers_keep_more():
    assert "more than here" in notes("dp(1)", "eager", "mixtral-8x7b-v0.1")[0]
    assert "every token" in notes("dp(1)", "eager", "llama-4-scout")[0]


@pytest.mark.parametrize(
    ("strategy", "profile"),
    [("fsdp(2)", "fsdp2"), ("dp(2)", "ddp"), ("fsdp(2) * tp(2)", "fully-shard"), ("tp(2)", "megatron")],
)
def test_of_what_was_compared_nothing_is_said(strategy, profile):
    assert notes(strategy, profile) == []
