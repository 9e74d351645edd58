"""Where PyTorch was seen to do otherwise than a plan by one of its profiles, and by how much."""

from __future__ import annotations

from collections.abc import Iterator

from psem_model.predict.plan import Plan

LOGITS = (
    "beside {along} PyTorch sends logits and what it sums of norms' gradients in the {} bytes that it "
    "computes with; here they are in 4"
)
WHOLE_WORDS = (
    "beside {along} PyTorch's gradients that wait are of all words, and what is summed over {along} waits "
    "too; here of slices, in every micro-step"
)
VIEWS = (
    "in a pipeline PyTorch keeps what backward gathers until the next forward has used it: it gathers less "
    "often than here, and holds more"
)
EXPERTS = (
    "transformers' experts keep more than here: up to 13 % of all with Mixtral, Qwen3 and DeepSeek"
)
OF_LLAMA_4 = "transformers' experts of Llama 4 take every token each: they keep several times as much"
WHOLE_SUMS = (
    "PyTorch sums whole gradients in no_sync, too, of which each device keeps all; here owners' slices"
)


def unlike(plan: Plan) -> Iterator[str]:
    """Notes of what the profile has not, of this plan."""
    profile, policy = plan.profile, plan.policy
    kin = {*profile.names, *profile.like}
    along = " and ".join(axis.name for axis in plan.product.cuts if plan.mesh[axis.name] != 1)
    if "fully-shard" in kin:
        if along and policy.gathered not in (None, policy.w):
            yield LOGITS.format(policy.gathered, along=along)
        if along and profile.waits_whole:
            yield WHOLE_WORDS.format(along=along)
        if plan.product.pipe is not None:
            yield VIEWS
    if profile.owners and profile.waits_whole:
        yield WHOLE_SUMS
    if "eager" in kin and not plan.opaque and getattr(plan.model, "experts", 0):
        yield OF_LLAMA_4 if plan.model.weighed_first else EXPERTS
