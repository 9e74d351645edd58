"""A plan says where its system is known to do otherwise."""

import pytest

from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.unlike import unlike
from spec.models.states import State


def notes(strategy, profile, name="llama-3-8b", **options):
    asked = Asked(
        "predict", strategy, model={"config": name, "sequence": "1024"}, profile=profile, **options
    )
    return [*unlike(read(asked))]


@pytest.mark.parametrize(
    ("strategy", "profile", "said"),
    [
        ("tp(16)", "megatron", "no copies of key-value heads"),
        ("cp(2) * fsdp(2)", "fsdp2", "along context gradients of keys and values are sent in 4 bytes"),
        ("pp(2) * dp(2)", "ddp", "DDP fails in a pipeline"),
        ("tp+sp(2)", "parallelize+whole-words", "layers take all tokens for slices of more"),
        ("dp(1)", "eager", "of one sample"),
        ("zero-offload(2)", "zero-offload", "the whole of each weight"),
    ],
)
def test_what_a_system_does_otherwise_is_said(strategy, profile, said):
    (note,) = notes(strategy, profile, accumulate="2")
    assert said in note


@pytest.mark.parametrize(("micro_batches", "said"), [("2", 1), ("4", 0)])
def test_of_few_micro_batches_a_chunks_gradients_do_not_wait_for_all(micro_batches, said):
    model = {"config": "llama-3-8b", "sequence": "1024", "order": "interleaved", "chunks": "2"}
    asked = Asked("predict", "fsdp(2) * pp(2)", model=model, profile="fsdp2", accumulate=micro_batches)
    found = [*unlike(read(asked))]
    assert len(found) == said and all("fewer wait than here" in each for each in found)


@pytest.mark.parametrize(
    ("strategy", "profile"),
    [
        ("fsdp(2)", "fsdp2"),
        ("dp(2)", "ddp"),
        ("fsdp(2) * tp(2)", "fsdp2+no-sync"),
        ("fsdp(2) * tp(2) * pp(2)", "fully-shard"),
        ("fsdp-offload(2)", "fully-shard-offload+no-sync"),
        ("zero1(2)", "zero-redundancy+no-sync"),
        ("tp(2)", "megatron"),
        ("cp(2) * fsdp(2)", "fully-shard+fused"),
        ("pp(2) * dp(2)", "ddp"),
        ("tp+sp(2)", "parallelize"),
        ("tp(2)", "parallelize+whole-words"),
        ("zero-offload(2)", "common"),
    ],
)
def test_of_what_was_compared_nothing_is_said(strategy, profile):
    assert notes(strategy, profile, accumulate="4") == []


def test_with_no_sync_beside_tp_the_embeddings_gradient_waits_whole():
    """Recorded of PyTorch 2.13 by gloo: 64,640 bytes of gradients wait on each of four ranks."""
    names = ("block", "layers", "hidden", "heads", "kv_heads", "feed_forward", "vocabulary", "sequence")
    model = dict(zip(names, ("llama", "3", "32", "8", "8", "48", "60", "8"), strict=True))
    asked = Asked(
        "predict", "fsdp(2) * tp(2)", model=model, profile="fully-shard+no-sync", accumulate="3"
    )
    stage = read(asked).fullest
    assert stage.resting[State.GRADIENTS] + stage.waiting == 64_640
