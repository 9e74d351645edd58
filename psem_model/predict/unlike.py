"""Where a system was seen, or its sources say, to do otherwise than a plan by its profile."""

from __future__ import annotations

from collections.abc import Iterator

from psem_model.predict.plan import Plan
from spec.models.states import State

# seen of PyTorch 2.13, by gloo
WHOLE_SUMS = (
    "it sums whole gradients in no_sync, too, of which each device keeps all; here owners' slices"
)
# seen on a device beside the host
ON_DEVICE = "slices of gradients that have waited go to the host; here they stay on the device"
# torch/distributed/pipelining/stage.py: backward_maybe_with_nosync
WORDS = "in a pipeline the embedding's gradient waits whole, of all words; here of a device's own"
VIEWS = (
    "in a pipeline it keeps what backward gathers until the next forward has used it: it gathers less "
    "often than here, and holds more"
)
# Megatron-LM: core/transformer/attention.py (num_query_groups < world_size)
HEADS = "it makes no copies of key-value heads: it gathers queries, keys and values in each layer"


def unlike(plan: Plan) -> Iterator[str]:
    """What the profile has not, of this plan."""
    kin = {*plan.profile.names, *plan.profile.like}
    cuts = [axis for axis in plan.product.cuts if plan.mesh[axis.name] != 1]
    if "fully-shard" in kin:
        yield from _of_shards(plan, " and ".join(axis.name for axis in cuts))
    if plan.profile.owners and plan.profile.waits_whole:
        yield WHOLE_SUMS
    if "megatron" in kin and any(axis.copies_of for axis in cuts):
        yield HEADS


def _of_shards(plan: Plan, along: str) -> Iterator[str]:
    """Of FSDP2, beside what cuts the model `along` some axes."""
    profile = plan.profile
    if plan.product.pipe is not None:
        yield from (WORDS,) if along and not profile.whole_gradients else ()
        yield VIEWS
    rests = [group.schedule.rest(State.PARAMETERS) for group in plan.step.groups]
    if profile.waits_whole and any(rest.host for rest in rests):
        yield ON_DEVICE
