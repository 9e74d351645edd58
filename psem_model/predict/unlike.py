"""Where a system was seen, or its sources say, to do otherwise than a plan by its profile."""

from __future__ import annotations

from collections.abc import Iterator

from psem_model.predict.plan import Plan

# Megatron-LM: core/transformer/attention.py (num_query_groups < world_size)
HEADS = "it makes no copies of key-value heads: it gathers queries, keys and values in each layer"


def unlike(plan: Plan) -> Iterator[str]:
    """What the profile has not, of this plan."""
    kin = {*plan.profile.names, *plan.profile.like}
    cuts = [axis for axis in plan.product.cuts if plan.mesh[axis.name] != 1]
    if "megatron" in kin and any(axis.copies_of for axis in cuts):
        yield HEADS
