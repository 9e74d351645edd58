"""A plan says where its system is known to do otherwise."""

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.unlike import makes_no_buckets, unlike
from spec.models.states import State
from spec.pipelines.pipeline import Order, Pipeline, works_of_stage
from tests.support.plans import pipelines


def notes(strategy, profile, name="llama-3-8b", **options):
    asked = Asked(
        "predict", strategy, model={"config": name, "sequence": "1024"}, profile=profile, **options
    )
    return [*unlike(read(asked))]


@pytest.mark.parametrize(
    ("strategy", "profile", "said"),
    [
        ("tp(16)", "megatron", "no copies of key-value heads"),
        ("pp(2) * dp(2)", "ddp", "DDP fails in the second step"),
        ("tp+sp(2)", "parallelize+whole-words", "layers take all tokens for slices of more"),
    ],
)
def test_what_a_system_does_otherwise_is_said(strategy, profile, said):
    (note,) = notes(strategy, profile, accumulate="2")
    assert said in note


@pytest.mark.parametrize("strategy", ["tp(16)", "tp+sp(16)"])
def test_what_megatron_gathers_where_it_copies_no_key_value_heads_is_said(strategy):
    """Of 8 heads of 128 features and 64 that share them, 1,024 tokens: all but a 16th arrives."""
    (note,) = notes(strategy, "megatron", "llama-3-70b")
    assert f"sends {1024 * (64 + 2 * 8) * 128 * 15 // 16:,} elements" in note
    weights = 2 * 8192 * 8 * 128
    assert f"has {weights // 16:,} elements of a layer where {weights // 8:,} are counted" in note


def test_devices_that_megatron_cannot_cut_queries_keys_and_values_among_are_said():
    shape = {"block": "llama", "layers": "2", "hidden": "24", "heads": "6", "kv_heads": "2"}
    asked = Asked("predict", "tp(6)", model=shape | {"sequence": "8"}, profile="megatron")
    (note,) = unlike(read(asked))
    assert "refuses 6 devices that do not divide 40 features" in note


def test_copies_of_all_buckets_are_said_of_buckets_of_one_size_too():
    (note,) = notes("dp(4)", "ddp+fp16-hook", "gpt2", unit="1e6")
    assert "sums of 125 buckets" in note  # of 124,439,808 parameters
    assert f"take {2 * 124_439_808:,} bytes" in note


def test_programs_are_told_too_what_a_system_does_otherwise(psem):
    given = ("tp(16)", "--model", "llama-3-70b", "--sequence", "1024", "--profile", "megatron")
    found = json.loads(psem("predict", *given, "--json")[1])
    assert found["profile"]["unlike"] == notes("tp(16)", "megatron", "llama-3-70b")
    assert any("each of the 8 key-value heads is on 2 devices" in fact for fact in found["facts"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llama-3-8b", []),
        ("phi-4", []),
        ("pythia-160m", []),
        ("gemma-3-1b-pt", []),
        ("falcon-rw-1b", []),
        ("falcon-7b", []),
        ("falcon-40b", []),
        ("deepseek-v3", ["which kernel"]),
        ("bloom-560m", ["no scaled_dot_product_attention"]),
        ("gpt-oss-20b", ["no scaled_dot_product_attention"]),
    ],
)
def test_what_attention_by_one_kernel_keeps_beyond_what_is_counted_is_said(name, said):
    notes_ = notes("dp(1)", "eager+fused", name)
    assert len(notes_) == len(said)
    assert all(words in note for words, note in zip(said, notes_, strict=True))
    assert not notes("dp(1)", "eager", name)


@pytest.mark.parametrize("strategy", ["tp(2)", "tp+sp(2)", "cp-all-gather(2)", "cp(2)"])
def test_masks_that_a_ring_of_attention_would_be_given_are_said(strategy):
    for tokens in (4094, 4096):  # Mistral's tokens see the latest 4,096
        model = {"config": "mistral-7b-v0.1", "sequence": str(tokens)}
        found = [*unlike(read(Asked("predict", strategy, model=model, profile="eager+fused")))]
        assert len(found) == (tokens == 4096 and strategy == "cp(2)")


@pytest.mark.parametrize("name", ["falcon-rw-1b", "opt-125m"])
@pytest.mark.parametrize("again", ["none", "all"])
def test_a_device_has_masks_and_numbers_of_places_of_its_own_samples(name, again):
    def kept(devices):
        model = {"config": name, "sequence": "64", "recompute": again}
        asked = Asked("predict", f"dp({devices})", model=model, profile="eager+fused")
        return read(asked).fullest.activations

    assert kept(4) == kept(1)


def test_copies_of_keys_and_values_of_wide_heads_are_said():
    shape = {"block": "llama", "layers": "1", "hidden": "24", "heads": "4", "sequence": "4"}
    for features, groups in product((256, 257), (1, 2, 4)):
        model = shape | {"head_dim": str(features), "kv_heads": str(groups)}
        found = [*unlike(read(Asked("predict", "dp(1)", model=model, profile="eager+fused")))]
        assert len(found) == (features > 256 and groups == 2)


SHAPE = {"block": "gpt", "layers": "3", "hidden": "10", "heads": "2", "sequence": "4"}


def test_copies_of_all_buckets_may_be_there_at_once_and_that_is_said():
    model = SHAPE | {"hidden": "512", "vocabulary": "1000"}
    plan = read(Asked("predict", "dp(2)", model=model, profile="ddp+fp16-hook"))
    (note,) = unlike(plan)
    assert f"copies of all take {2 * plan.psi:,} bytes" in note
    assert not [*unlike(read(Asked("predict", "dp(2)", model=model, profile="ddp")))]
    few = read(Asked("predict", "dp(2)", model=SHAPE, profile="ddp+fp16-hook"))  # in one bucket
    assert not [*unlike(few)]


@pytest.mark.parametrize("strategy", ["zero-offload(2)", "zero3-offload(2)"])
@pytest.mark.parametrize("micro_steps", ["1", "2"])
def test_a_buffer_of_the_largest_weight_is_said_where_no_weights_are_known(strategy, micro_steps):
    more = {"profile": "zero-offload", "accumulate": micro_steps}
    found = [*unlike(read(Asked("predict", strategy, psi="7B", **more)))]
    assert len(found) == (strategy == "zero-offload(2)")
    assert all("buffer of the largest weight" in note for note in found)
    if found:
        assert not [*unlike(read(Asked("predict", strategy, model=SHAPE, **more)))]


@pytest.mark.parametrize(
    ("name", "small"),
    [  # norms, and of GPT-2 biases, those of queries, keys and values as one
        ("llama-3-8b", (2 * 32 + 1) * 4096),
        ("gpt2", 12 * (4 + 3 + 1 + 4 + 1) * 768 + 2 * 768),
    ],
)
@pytest.mark.parametrize(
    ("strategy", "profile", "gathers"),
    [
        ("zero3-offload", "zero-offload", 2),
        ("fsdp-hold-offload", "zero-offload", 1),
        ("zero3", "zero-plus-plus", 2),
    ],
)
def test_small_weights_that_deepspeed_does_not_release_are_said(
    name, small, strategy, profile, gathers
):
    for micro_steps in (1, 3):
        told = notes(f"{strategy}(8)", profile, name, accumulate=str(micro_steps))
        (note,) = (each for each in told if each.startswith("weights of at most"))
        assert f"{2 * small:,} bytes more" in note
        assert f"and {(gathers * micro_steps - 1) * small * 7 // 8:,} elements fewer" in note
    assert not notes("zero-offload(8)", "zero-offload", name)[name == "gpt2" :]


@pytest.mark.parametrize(
    ("name", "stays", "apart"),
    [  # of 10^9 elements the head has more than half, or with two layers; or there are fewer in all
        ("llama-3-8b", 128_256 * 4096 + 4096, 0),
        ("llama-3.2-3b", 128_256 * 3072 + 3072 + 2 * 100_669_440, 128_256 * 3072),
        ("gpt2", 124_439_808, 0),
    ],
)
def test_what_deepspeed_uses_again_soon_is_not_released_and_that_is_said(name, stays, apart):
    for micro_steps in (1, 3):
        told = notes("zero3(8)", "zero-plus-plus", name, accumulate=str(micro_steps))
        (note,) = (each for each in told if each.startswith("what is used again"))
        assert f"{2 * stays:,} bytes more" in note
        assert f"{micro_steps * stays * 7 // 8:,} elements fewer" in note
        beside = [each for each in told if "is released between its uses" in each]
        assert [f"{micro_steps * apart * 7 // 8:,} elements more" in each for each in beside] == [
            True
        ] * (apart > 0)
    for strategy in ("fsdp-hold-offload(8)", "zero-offload(8)"):
        told = notes(strategy, "zero-offload", name)
        assert not any("used again" in each or "between its uses" in each for each in told)


# order, stages, chunks, and the numbers of micro-batches with which torch 2.13 fails, and does not
SEEN = (
    (Order.GPIPE, 2, 1, (2, 3), (1,)),
    (Order.ONE_F_ONE_B, 2, 1, (2,), (3, 4, 5)),
    (Order.ONE_F_ONE_B, 3, 1, (3,), (4,)),
    (Order.INTERLEAVED, 2, 2, (2, 4), (6, 8)),
    (Order.INTERLEAVED, 2, 3, (4,), (6, 8, 10, 12)),
    (Order.INTERLEAVED, 3, 2, (6,), (9,)),
    (Order.ZB_H1, 2, 1, (2,), (4, 6)),
    (Order.DUALPIPE_V, 2, 2, (4,), (5, 6, 8)),
)


@pytest.mark.parametrize(("order", "stages", "chunks", "fails", "runs"), SEEN)
def test_ddp_was_seen_to_fail_where_no_forward_is_between_a_chunks_backwards(
    order, stages, chunks, fails, runs
):
    said = {m: makes_no_buckets(Pipeline(order, stages, m, chunks)) for m in (*fails, *runs)}
    assert said == dict.fromkeys(fails, True) | dict.fromkeys(runs, False)


@given(pipelines(), st.data())
def test_if_any_stage_has_no_forward_there_the_first_has_none(pipe, data):
    works = works_of_stage(pipe, data.draw(st.integers(0, pipe.stages - 1)))
    chunk = data.draw(st.integers(0, pipe.chunks - 1))
    halves = "".join(work.half.value[0] for work in works if work.chunk == chunk)
    between = halves[halves.index("b") : halves.rindex("b")]
    if pipe.micro_batches > 1 and "f" not in between:
        assert makes_no_buckets(pipe)


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
        ("cp(2) * fsdp(2)", "fsdp2"),
        ("pp(2) * dp(2)", "ddp"),
        ("tp+sp(2)", "parallelize"),
        ("tp(2)", "parallelize+whole-words"),
        ("zero-offload(2)", "zero-offload"),
        ("dp(1)", "eager"),
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


@pytest.mark.parametrize(
    ("strategy", "model", "profile", "width"),
    [
        ("zero-offload(8)", "llama-3.2-1b", "zero-offload", 2),  # all weights are one vector
        ("zero3-offload(8)", "llama-3.2-1b", "zero-offload", 0),
        ("zero3-offload(8)", "llama-3-8b", "zero-offload", 0),  # words and head are two weights
        ("fsdp(8)", "llama-3.2-1b", "common", 0),  # a unit of their own
        ("fsdp(8)", "llama-3.2-1b", "fsdp2", 0),  # a root of both
        ("fsdp(8) * pp(2)", "llama-3.2-1b", "common", 0),  # each stage has its own
    ],
)
def test_of_words_that_the_first_unit_and_the_last_share_it_is_said_what_may_stay(
    strategy, model, profile, width, psem
):
    code, out, _ = psem(
        *("predict", strategy, "--model", model, "--sequence", 4096, "--profile", profile)
    )
    assert (code, "word_weight is of several units" in out) == (0, width > 0)
    bytes_ = width * 128_256 * 2048  # of the weight, or of its gradient, in bf16
    assert (f"{bytes_:,} bytes more may be there" in out) is (width > 0)
