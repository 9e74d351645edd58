"""Where a system was seen, or its sources say, to do otherwise than a plan by its profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from psem_model.predict.chunks import of_few
from psem_model.predict.plan import Plan
from spec.models.transformer import Transformer
from spec.numbers.arithmetic import Number
from spec.pipelines.pipeline import Half, Pipeline, works_of_stage

# seen of PyTorch 2.13, by gloo
BUCKETS = (
    "DDP fails in the second step: a chunk has no forward between its first and its last backward, in "
    "which to make its buckets again"
)
SLICED = (
    "without the embedding in its plan, layers take all tokens for slices of more: it fails, or with "
    "learned places and fused attention computes something else"
)
# Megatron-LM: core/transformer/attention.py (num_query_groups < world_size)
HEADS = "it makes no copies of key-value heads: it gathers queries, keys and values in each layer"
# transformers 5.23: integrations/sdpa_attention.py, models/*/modeling_*.py
MASKED = (
    "scaled_dot_product_attention has a mask of pairs of tokens, which is kept, and copies of keys and "
    "values for each head"
)
IN_PARTS = (
    "queries are put together head by head, and so does scaled_dot_product_attention leave what it "
    "gives: a copy for the next product is kept beside it"
)
NO_KERNEL = "transformers has no scaled_dot_product_attention of this model"
OTHER_KERNEL = "which kernel scaled_dot_product_attention has for values of other features is not known"


def unlike(plan: Plan) -> Iterator[str]:
    """What the profile has not, of this plan."""
    kin, pipe = {*plan.profile.names, *plan.profile.like}, plan.pipe
    cuts = [axis for axis in plan.product.cuts if plan.mesh[axis.name] != 1]
    if kin & {"ddp", "zero-redundancy"} and plan.product.pipe is not None and makes_no_buckets(pipe):
        yield BUCKETS
    if "whole-words" in kin and any(axis.stream and axis.weight_indices for axis in cuts):
        yield SLICED
    if "megatron" in kin and any(axis.copies_of for axis in cuts):
        yield HEADS
    if {"eager", "fused"} <= kin and isinstance(plan.model, Transformer):
        yield from _of_kernel(plan.model, plan.sequence)


def _of_kernel(model: Transformer, tokens: Number) -> Iterator[str]:
    """Attention of transformers by one kernel, beyond what is counted."""
    if model.sinks or "scores" in model.capped or (model.distances and "words" in model.norms):
        yield NO_KERNEL
    elif model.latent:
        yield OTHER_KERNEL
    elif (
        model.distances or model.numbered_heads or any(0 < window < tokens for window in model.windows)
    ):
        yield MASKED
    elif model.turned and model.joined & {"heads", "qkv"} and model.heads != 1:
        yield IN_PARTS


def makes_no_buckets(pipe: Pipeline) -> bool:
    """Whether a chunk has several backwards, and no forward from the first of them to the last.

    DDP makes its buckets again in the forward after its first backward. (torch 2.13: reducer.cpp,
    push_rebuilt_params; a forward before all, of which stages learn shapes, has it expect the first
    backward.) The first stage has the longest warm-up.
    """
    pipe = of_few(pipe)
    if pipe.micro_batches == 1:
        return False
    backwards, between = Counter[int](), set[int]()
    for work in works_of_stage(pipe, 0):
        if work.half is Half.BACKWARD:
            backwards[work.chunk] += 1
        elif work.half is Half.FORWARD and 0 < backwards[work.chunk] < pipe.micro_batches:
            between.add(work.chunk)
    return bool(len(between) < pipe.chunks)
