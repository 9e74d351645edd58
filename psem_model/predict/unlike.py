"""Where a system was seen, or its sources say, to do otherwise than a plan by its profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from psem_model.predict.chunks import of_few
from psem_model.predict.plan import Plan, StageCosts
from psem_model.predict.stages import parts_of_chunks
from spec.costs.memory import Unit
from spec.costs.model_costs import elements
from spec.devices.mesh import group_size
from spec.language.moves import Axis
from spec.language.schedule import REDUCTIONS, Buffer, Kind, Span
from spec.models.opaque import Opaque
from spec.models.profiles import Units
from spec.models.states import State
from spec.models.transformer import MASKED, Transformer
from spec.numbers.arithmetic import Number, ceil_div, quotient
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
# Megatron-LM: core/transformer/attention.py (num_query_groups < world_size); core/tensor_parallel/
# mappings.py: all_gather_last_dim_from_tensor_parallel_region, whose backward is a reduce_scatter
HEADS = (
    "it makes no copies of key-value heads: each layer gathers all queries, keys and values, which "
    "sends {sent:,} elements for a micro-batch, and in backward as many; of keys' and values' weights "
    "a device has {own:,} elements of a layer where {counts:,} are counted, and no sum over copies"
)
# core/tensor_parallel/layers.py: ColumnParallelLinear, divide
UNEVEN = (
    "it refuses {devices:,} devices that do not divide {features:,} features of queries, keys and "
    "values"
)
OF_KEYS = tuple(f"{of}_{kind}" for of in ("key", "value") for kind in ("weight", "bias"))
# transformers 5.23: integrations/sdpa_attention.py, models/*/modeling_*.py
OF_ONE_KEY = (
    "Falcon gives scaled_dot_product_attention one head of keys for all queries, which has no kernel: "
    "queries are kept scaled, and those that are not turned (alibi) are counted as they were"
)
# torch 2.13, distributed/tensor/experimental/_context_parallel/_attention.py:
# _scaled_dot_product_ring_efficient_attention
RING_MASKS = (
    "a mask of pairs of tokens is counted in each turn of a ring, and none is kept: PyTorch's ring "
    "attention refuses masks"
)
WHOLE_MASK = (
    "the mask of pairs of tokens for each head, which all layers share, is counted whole on each device"
)
# runtime/zero/stage_1_and_2.py: temp_grad_buffer_for_cpu_offload, temp_grad_buffer_for_gpu_offload
BROUGHT = (
    "a buffer of the largest weight, in which gradients come back from the host, and one there are not "
    "counted: no weights are known without a model's shape and --sequence"
)
# runtime/zero/parameter_offload.py: mark_persistent_parameters; stage3.py: _post_step; config.py
# partition_parameters.py, _all_gather: as they rest, and not quantised, if they are trained
PERSISTENT = (
    "weights of at most {most:,} elements are gathered once in a step, and stay (in stage 3): on each "
    "device {bytes:,} bytes more are there than is counted, and {fewer:,} elements fewer are sent"
)
PERSIST = 100_000  # stage3_param_persistence_threshold
# partitioned_param_coordinator.py: __params_to_release looks at all that follows, module by module
REUSED = (
    "what is used again within {within:,} elements is not released (in stage 3): of the last units "
    "{bytes:,} bytes more may be there from forward to backward, and {fewer:,} elements fewer are sent"
)
SPLIT = (
    "{name} is released between its uses, which are further apart than {within:,} elements (in stage "
    "3): {more:,} elements more are sent"
)
REUSE = 1_000_000_000  # stage3_max_reuse_distance
# torch 2.13, distributed/fsdp/_fully_shard/_fsdp_state.py: _validate_no_duplicate_params; wrap.py:
# transformer_auto_wrap_policy: what modules share is of one unit
TIED = (
    "{name} is of several units, and what passes of it is counted in the turn of each; between these "
    "{bytes:,} bytes more may be there beside a layer's"
)
WIDE = (
    "scaled_dot_product_attention has copies of keys and values for each head: a head has more than "
    "{most} features"
)
WIDEST = 256  # integrations/sdpa_attention.py: use_gqa_in_sdpa
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
    if "megatron" in kin and isinstance(plan.model, Transformer):
        yield from (_of_heads(plan, plan.model, axis) for axis in cuts if axis.copies_of)
    if "ddp" in kin:
        yield from _of_buckets(plan.fullest)
    if isinstance(plan.model, Opaque) and not plan.model.shapes and _brings_back(plan):
        yield BROUGHT
    if kin & {"zero-offload", "zero-plus-plus"} and not plan.opaque:
        yield from _persistent(plan.fullest)
        yield from _reused(plan.fullest)
    if plan.profile.units in (Units.LAYER, Units.PARAMETER):
        yield from _of_several_units(plan.fullest)
    if not isinstance(plan.model, Transformer):
        return
    has_masks = any(MASKED in kind for kind in plan.model.kinds)
    if {"eager", "fused"} <= kin:
        yield from _of_kernel(plan.model)
        if has_masks and any(axis.ring for axis in cuts):
            yield RING_MASKS
        if plan.model.shares_mask and any(axis.weight_indices or axis.stream for axis in cuts):
            yield WHOLE_MASK


def _of_several_units(stage: StageCosts) -> Iterator[str]:
    """Weights that units share, where what passes of them does so unit by unit."""
    uses = Counter(name for part in stage.counts for name in stage.plan.costs[part].parameters)
    width = {Buffer.VIEW: stage.plan.policy.computed, Buffer.FRESH: stage.plan.policy.fresh}
    for group in stage.groups:
        passing = {op.target for op in group.costs.schedule.micro_step if op.span is Span.UNIT}
        for name in (name for name in group.weights if uses[name] > 1):
            costs = next(c for c in stage.plan.costs.values() if name in c.parameters)
            stays = costs.parameters[name] * sum(width.get(buffer, 0) for buffer in passing)
            if stays:
                yield TIED.format(name=name, bytes=stays)


def _persistent(stage: StageCosts) -> Iterator[str]:
    """What small weights that stay gathered take beside their slices, and are not sent again for."""
    more: Number = 0
    fewer: Number = 0
    for group in stage.groups:
        schedule = group.costs.schedule
        gathers = (op for op in schedule.micro_step if op.kind is Kind.ALL_GATHER)
        views = sum(op.target is Buffer.VIEW for op in gathers)
        devices = group_size(stage.plan.mesh, schedule.rest(State.PARAMETERS).sharded)
        small: Number = 0
        chunks = parts_of_chunks(stage.plan.model, stage.number, stage.plan.pipe, group.layers)
        for part, count in sum(chunks, Counter[str]()).items() if views else ():
            costs = stage.plan.costs[part]
            arrays = costs.weights.arrays([name for name in group.weights if name in costs.parameters])
            sizes = (sum(costs.parameters[name] for name in array) for array in arrays)
            small += count * sum(size for size in sizes if size <= PERSIST)
        more += stage.plan.policy.computed * small
        fewer += (views * stage.plan.micro_steps - 1) * small * (devices - 1) // devices
    if more:
        yield PERSISTENT.format(most=PERSIST, bytes=more, fewer=fewer)


def _reused(stage: StageCosts) -> Iterator[str]:
    """What is not released before backward, as it is used again soon; what two uses gather apart."""
    plan, (group, *_) = stage.plan, stage.groups
    gathers = [op for op in group.costs.schedule.micro_step if op.kind is Kind.ALL_GATHER]
    if sum(op.target is Buffer.VIEW for op in gathers) < 2:
        return
    devices = group_size(plan.mesh, group.costs.schedule.rest(State.PARAMETERS).sharded)
    parts = [plan.costs[piece.part.name].parameters for piece in stage.pieces]
    after: Number = 0
    stay: Number = 0
    for number, sizes in reversed([*enumerate(parts)]):
        own = (size for name, size in sizes.items() if number or name not in parts[-1])
        stay += sum(own) if 2 * after < REUSE else 0  # of what both ends have, once
        after += sum(sizes.values())
    sent = plan.micro_steps * (devices - 1)
    yield REUSED.format(within=REUSE, bytes=plan.policy.computed * stay, fewer=sent * stay // devices)
    for name in (name for name in parts[0] if name in parts[-1] and after >= REUSE):
        yield SPLIT.format(name=name, within=REUSE, more=sent * parts[0][name] // devices)


def _brings_back(plan: Plan) -> bool:
    """Whether gradients come back from the host to be added to, weight by weight."""
    schedules = [group.schedule for group in plan.step.groups]
    is_there = any(schedule.rest(State.GRADIENTS).host for schedule in schedules)
    sliced = any(schedule.rest(State.PARAMETERS).sharded for schedule in schedules)
    return bool(plan.policy.added) and is_there and not sliced


def _of_heads(plan: Plan, model: Transformer, copies: Axis) -> str:
    """What Megatron-LM sends in place of copies of key-value heads, and has of their weights."""
    program, sizes = plan.layer.program, plan.layer.parameters
    (query,) = (line.makes for line in program.part.operations if line.makes.name == "query")
    devices = group_size(plan.mesh, (copies.copies_of, copies.name))
    features = (model.heads + 2 * model.kv_heads) * plan.indices["d"]
    if features % devices:
        return UNEVEN.format(devices=devices, features=features)
    each = elements(query, program.lies[query], plan.indices, plan.mesh)
    beside = quotient(2 * each * model.kv_heads, model.heads)  # of keys and values, cut as evenly
    has = sum(size for name, size in sizes.items() if name.endswith(OF_KEYS))
    own = quotient(has, plan.mesh[copies.name])
    return HEADS.format(sent=(devices - 1) * (each + beside), own=own, counts=has)


def _of_buckets(stage: StageCosts) -> Iterator[str]:
    """Sums of DDP's buckets begin in backward, and all may wait for the network: a bound."""
    count = total = largest = 0
    for costs in (group.costs for group in stage.groups if group.costs.sizes.policy.bytes_copied):
        sizes, ops = costs.sizes, costs.schedule.ops
        within = {op.within for op in ops if op.kind in REDUCTIONS and op.state is State.GRADIENTS}
        if not within:
            continue
        each: list[tuple[Unit, ...]] = [(replace(unit, times=1),) for unit in sizes.units] or [()]
        known = sum(unit.times for unit in sizes.units)
        count += known or ceil_div(sizes.psi, sizes.unit or sizes.psi)
        total += max(sizes.copied(of, Span.ALL_UNITS, ()) for of in within)
        largest = max(largest, *(sizes.copied(of, Span.UNIT, one) for of in within for one in each))
    if count > 1:
        yield (
            f"sums of {count:,} buckets run beside backward: copies of all take {total:,} bytes, and "
            f"may be there at once, where {largest:,} of one bucket are counted"
        )


def _of_kernel(model: Transformer) -> Iterator[str]:
    """Attention of transformers by one kernel, beyond what is counted."""
    if model.sinks or "scores" in model.capped or (model.distances and "words" in model.norms):
        yield NO_KERNEL
    elif model.latent:
        yield OTHER_KERNEL
    elif not model.has_kernel and model.distances:
        yield OF_ONE_KEY
    elif model.head_dim > WIDEST and not model.masked and 1 not in (model.kv_heads, _each(model)):
        yield WIDE.format(most=WIDEST)


def _each(model: Transformer) -> Number:
    """Heads of a group."""
    return quotient(model.heads, model.kv_heads)


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
