"""Where a system was seen, or its sources say, to do otherwise than a plan by its profile."""

from __future__ import annotations

import math
from collections.abc import Iterator

from psem_model.predict.plan import Plan
from spec.derivation.programs import EVERYTHING
from spec.models.states import State
from spec.models.transformer import Transformer

LOGITS = (
    "beside {} it sends logits, and terms of norms' gradients, in the {} bytes that it computes with; "
    "here they are in 4"
)
TERMS = "with no_sync terms of gradients over {} wait, and are summed once; here in every micro-step"
VIEWS = (
    "in a pipeline it keeps what backward gathers until the next forward has used it: it gathers less "
    "often than here, and holds more"
)
ON_DEVICE = "slices of gradients that have waited go to the host; here they stay on the device"
WHOLE_SUMS = (
    "it sums whole gradients in no_sync, too, of which each device keeps all; here owners' slices"
)
EXPERTS = "experts of transformers keep more than here: up to 13 % of all with Mixtral, Qwen3, DeepSeek"
OF_LLAMA_4 = "transformers' experts of Llama 4 take every token each: they keep several times as much"
PADDED = "it pads words to a multiple of 128 x tp, unless told otherwise; here to one of tp"
HEADS = "it makes no copies of key-value heads: it gathers queries, keys and values in each layer"
AGAIN = "with tp+sp it gathers what products read once more in backward, when all is made again"
TO_EXPERTS = "with tp+sp and experts it keeps what its dispatcher gathers; here it is gathered again"
WORDS_A_DEVICE, TENSOR = 128, "tensor"
LINK = "of several micro-steps it brings gradients back from the host to add to them, in 2 bytes"


def unlike(plan: Plan) -> Iterator[str]:
    """What the profile has not, of this plan."""
    kin = {*plan.profile.names, *plan.profile.like}
    if "fully-shard" in kin:
        yield from _of_shards(plan)
    if plan.profile.owners and plan.profile.waits_whole:
        yield WHOLE_SUMS
    model = plan.model
    if "eager" in kin and isinstance(model, Transformer) and model.experts:
        yield OF_LLAMA_4 if model.weighed_first else EXPERTS
    if "megatron" in kin and isinstance(model, Transformer):
        yield from _of_megatron(plan, model)
    if "zero-offload" in kin and plan.pipe.micro_batches != 1:
        yield LINK


def _cutting(plan: Plan) -> list[str]:
    """The axes of several devices that cut the model."""
    return [axis.name for axis in plan.product.cuts if plan.mesh[axis.name] != 1]


def _of_shards(plan: Plan) -> Iterator[str]:
    """Of FSDP2."""
    profile, policy, along = plan.profile, plan.policy, " and ".join(_cutting(plan))
    if along and policy.gathered not in (None, policy.w):
        yield LOGITS.format(along, policy.gathered)
    if along and profile.waits_whole:
        yield TERMS.format(along)
    if plan.product.pipe is not None:
        yield VIEWS
    rests = [group.schedule.rest(State.PARAMETERS) for group in plan.step.groups]
    if profile.waits_whole and any(rest.host for rest in rests):
        yield ON_DEVICE


def _of_megatron(plan: Plan, model: Transformer) -> Iterator[str]:
    """Of Megatron-LM."""
    cuts = {axis.name: axis for axis in plan.product.cuts if plan.mesh[axis.name] != 1}
    devices = math.prod(plan.mesh[name] for name in cuts if name.startswith(TENSOR))
    if devices > 1 and model.vocabulary % (WORDS_A_DEVICE * devices):
        yield PADDED
    if any(axis.copies_of for axis in cuts.values()):
        yield HEADS
    in_slices = any(axis.stream and axis.weight_indices for axis in cuts.values())
    if in_slices and plan.again == EVERYTHING:
        yield AGAIN
    if in_slices and model.experts and len(cuts) > 1:
        yield TO_EXPERTS
