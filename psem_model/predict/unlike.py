"""Where a system was seen, or its sources say, to do otherwise than a plan by its profile."""

from __future__ import annotations

from collections.abc import Iterator

from psem_model.predict.plan import Plan
from spec.models.transformer import Transformer
from spec.pipelines.pipeline import Order

# seen of PyTorch 2.13, by gloo
RING = "along {} gradients of keys and values are sent in 4 bytes; here in {}"
EARLY = "with few micro-batches a chunk's gradients are summed before others wait: fewer wait than here"
BUCKETS = "DDP fails in a pipeline, but by 1f1b with more micro-batches than stages"
SLICED = "it fails: without the embedding in its plan, layers take all tokens for slices of more"
# seen of transformers 5.23, of phi3, gpt_neox, falcon, qwen3 and deepseek
ALONE = (
    "of one sample it keeps 13 % less to 15 % more: where arrays are views of others, it is otherwise"
)
# Megatron-LM: core/transformer/attention.py (num_query_groups < world_size)
HEADS = "it makes no copies of key-value heads: it gathers queries, keys and values in each layer"
# DeepSpeed: runtime/zero/stage_1_and_2.py, async_accumulate_grad_in_cpu_via_gpu
PARTS = "it brings back, and keeps on the host, the whole of each weight that a device has a part of"


def unlike(plan: Plan) -> Iterator[str]:
    """What the profile has not, of this plan."""
    kin, pipe = {*plan.profile.names, *plan.profile.like}, plan.pipe
    cuts = [axis for axis in plan.product.cuts if plan.mesh[axis.name] != 1]
    is_staged, few = plan.product.pipe is not None, pipe.micro_batches <= pipe.stages
    if "fully-shard" in kin and plan.policy.gathered not in (None, plan.policy.w):
        rings = (axis.name for axis in plan.axes if axis.ring and plan.mesh[axis.name] != 1)
        yield from (RING.format(ring, plan.policy.gathered) for ring in rings)
    if "fully-shard" in kin and is_staged and pipe.chunks != 1 and few:
        yield EARLY
    if kin & {"ddp", "zero-redundancy"} and is_staged and (few or pipe.order is not Order.ONE_F_ONE_B):
        yield BUCKETS
    if "whole-words" in kin and any(axis.stream and axis.weight_indices for axis in cuts):
        yield SLICED
    if "eager" in kin and isinstance(plan.model, Transformer) and plan.micro_batch == 1:
        yield ALONE
    if "zero-offload" in kin and pipe.micro_batches != 1:
        yield PARTS
    if "megatron" in kin and any(axis.copies_of for axis in cuts):
        yield HEADS
