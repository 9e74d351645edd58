"""Heads that tensor parallelism cuts: copied, or refused, as the profile's system does."""

from __future__ import annotations

import pytest

from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.text.errors import BadInput

SHAPE = {"block": "llama", "layers": 1, "hidden": 24, "feed_forward": 24, "vocabulary": 32}
OF_PYTORCH = (
    "parallelize",
    "parallelize+loss-parallel",
    "pytorch",
    "fully-shard",
    "fsdp2",
    "fsdp2-op",
    "ddp",
)
COPYING = ("textbook", "common", "megatron", "eager", "chunked")


def planned(profile, strategy, heads, kv_heads):
    shape = {**SHAPE, "heads": heads, "kv_heads": kv_heads, "sequence": 8}
    model = {name: str(value) for name, value in shape.items()}
    return read(Asked("predict", strategy, model=model, profile=profile))


@pytest.mark.parametrize("profile", OF_PYTORCH)
@pytest.mark.parametrize("strategy", ["tp(4)", "tp+sp(4)", "fsdp(2) * tp(4)"])
def test_pytorch_has_no_more_ranks_than_key_value_heads(profile, strategy):
    strategy = strategy.replace("fsdp", "dp" if profile == "ddp" else "fsdp")
    with pytest.raises(BadInput) as found:
        planned(profile, strategy, 4, 2)
    words = "given 4 along tensor; expected a divisor of 2, the key-value heads, of which"
    assert f"{words} {profile} makes no copies" in str(found.value)
    assert "\n" not in str(found.value)
    assert planned(profile, strategy.replace("4", "2"), 4, 2).mesh["tensor"] == 2


@pytest.mark.parametrize("profile", COPYING)
def test_others_copy_key_value_heads(profile):
    assert planned(profile, "tp(4)", 4, 2).mesh == {"tensor": 2, "tensor_copies": 2}


@pytest.mark.parametrize("profile", [*OF_PYTORCH, *COPYING])
@pytest.mark.parametrize(
    ("devices", "heads", "kv_heads"), [(2, 3, 3), (2, 6, 3), (3, 4, 4), (3, 4, 2), (3, 4, 1)]
)
def test_heads_that_do_not_divide_are_refused_by_all(profile, devices, heads, kv_heads):
    with pytest.raises(BadInput, match=f"{devices} along tensor.*{kv_heads}, the key-value heads"):
        planned(profile, f"tp({devices})", heads, kv_heads)
